"""The samples of the built-in readers: miniatures that the package draws itself, found by entry point.

They are fixtures of quickstarts and tests. No builder and no reader imports them.
"""
