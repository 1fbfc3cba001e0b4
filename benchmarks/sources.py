"""Finds the PDFs that the benchmarks read: a given folder, the real ones, or drawn ones."""

import statistics
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from mmlongbench.documents.limits import Limits
from mmlongbench.errors import Fault, SourceError
from mmlongbench.manifest.plugins import sample_function

READER = "mmlongbench_doc"
REAL = Path(__file__).resolve().parents[2] / "shared/real/mmlongbench-doc/documents"
"""Real PDFs that may lie beside the checkout."""
LIMITS = Limits()


@contextmanager
def open_pdfs(folder: Path | None) -> Iterator[list[Path]]:
    """The PDFs of a folder; without one the real ones, or else the reports of the reader's sample."""
    if folder is None and not REAL.is_dir():
        with tempfile.TemporaryDirectory() as drawn:
            yield _pdfs(sample_function(READER)(Path(drawn))["documents"])
        return
    yield _pdfs(folder or REAL)


def _pdfs(folder: Path) -> list[Path]:
    found = sorted(path for path in folder.iterdir() if path.suffix.lower() == ".pdf")
    if not found:
        raise SourceError(Fault("no-documents", "a folder with PDFs", "none in it", folder.name))
    return found


def spread(values: Sequence[float], form: str = ".2f") -> str:
    """Return the median of several rounds, with the smallest and the largest value.

    >>> spread([3, 1, 2])
    '2.00 (1.00 to 3.00)'
    """
    return f"{statistics.median(values):{form}} ({min(values):{form}} to {max(values):{form}})"
