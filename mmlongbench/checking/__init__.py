"""The conformance suite: rules that every task must keep, whoever wrote it. It builds a small release and looks at it.

It knows no task by name, and prints nothing.
"""
