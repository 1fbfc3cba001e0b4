"""What models answer without the context, or without a part of it: scores of the contexts of `mmlongbench run`, compared
question by question.
"""
