"""Plug-ins that cannot be used; the module itself can be imported."""

import importlib
import sys


class Incomplete:
    """A builder that cannot draft."""

    options_type = None


def __getattr__(name: str) -> object:
    if name == "Lacking":
        return importlib.import_module("a_library_that_is_not_installed")
    if name == "Quitting":
        sys.exit("this plug-in wants another Python")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
