"""Images per example, by dataset and length, beside the paper's numbers (MMLongBench, Table 3)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from mmlongbench.lengths import STANDARD_LENGTHS
from mmlongbench.release.findings import FileAudit


@dataclass(frozen=True, slots=True)
class Row:
    """One dataset: (mean, standard deviation) of the images per example, by length in tokens."""

    dataset: str
    images: Mapping[int, tuple[float, float]]
    paper: Mapping[int, float]


def table(audits: Iterable[FileAudit], paper: Mapping[str, Sequence[float]]) -> list[Row]:
    """Return a row for each dataset. Datasets with a `.json` file come first, the others are in the given order.

    If a length has both a `.json` file and another file of the same records, only the other file is counted. `paper`
    has the paper's numbers of each dataset, at the standard lengths.
    """
    found: dict[str, dict[int, tuple[float, float]]] = {}
    for audit in sorted(audits, key=lambda audit: not audit.file.endswith(".json")):
        if audit.images.n:
            found.setdefault(audit.dataset, {})[audit.length] = (audit.images.mean, audit.images.deviation)
    return [
        Row(name, images, dict(zip(STANDARD_LENGTHS, paper.get(name, ()), strict=False)))
        for name, images in found.items()
    ]
