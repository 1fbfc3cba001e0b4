"""The built-in task families. They import only what `mmlongbench.task` exports, as the task families of other packages
do.
"""
