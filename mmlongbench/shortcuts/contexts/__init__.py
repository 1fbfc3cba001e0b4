"""What models answer without the context, or without a part of it: the contexts of `mmlongbench run`, compared."""
