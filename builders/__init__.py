"""The built-in task families. They import only what `mmlongbench` exports, like a stranger's."""
