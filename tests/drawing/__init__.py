"""The samples of the built-in readers: small example sources that the package draws itself, found by entry points.

They are for quickstarts and tests. No builder and no reader imports them.
"""
