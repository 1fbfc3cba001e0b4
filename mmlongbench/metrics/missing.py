"""The error of a metric that needs a package which is not installed."""

from mmlongbench.errors import ScoringError


def missing(package: str, what: str) -> ScoringError:
    """Return the error for a package that is not installed; `what` is the thing that needs it, such as "ANLS"."""
    return ScoringError(f'{what} needs {package}: pip install "mmlongbench[scoring]"')
