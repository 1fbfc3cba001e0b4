"""The error of a probe that needs a package which is not installed."""

from mmlongbench.errors import ReleaseError


def missing(package: str, what: str) -> ReleaseError:
    """Return the error for a package that is not installed; `what` is what needs it, such as `a comparison`."""
    return ReleaseError(f'{what} needs {package}: pip install "mmlongbench[shortcuts]"')
