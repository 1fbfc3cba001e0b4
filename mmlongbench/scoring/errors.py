"""What can be wrong with scoring as a whole; what is wrong with single predictions is counted, not raised."""

from mmlongbench.errors import MMLongBenchError


class ScoringError(MMLongBenchError):
    """Predictions, a release or a metric that cannot be used as they stand."""


def missing(package: str, what: str) -> ScoringError:
    """That a package is not installed, which something needs."""
    return ScoringError(f'{what} needs {package}: pip install "mmlongbench[scoring]"')
