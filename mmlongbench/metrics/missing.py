"""What a metric says where a package is not installed that it needs."""

from mmlongbench.errors import ScoringError


def missing(package: str, what: str) -> ScoringError:
    """That a package is not installed, which something needs."""
    return ScoringError(f'{what} needs {package}: pip install "mmlongbench[scoring]"')
