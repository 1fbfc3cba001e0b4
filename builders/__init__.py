"""The built-in task families. They import only the exports of `mmlongbench.task`, like the families of other
packages.
"""
