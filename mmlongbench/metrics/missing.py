"""The error of a metric that needs a package which is not installed."""

from mmlongbench.errors import ScoringError


def missing(package: str, what: str) -> ScoringError:
    """Return the error for a package that is not installed; `what` needs it."""
    return ScoringError(f'{what} needs {package}: pip install "mmlongbench[scoring]"')
