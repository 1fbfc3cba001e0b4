"""The output files of the public code's `eval.py`: one JSON object a dataset and length, as much as scoring needs.

`args.test_files` names the public file, `args.datasets` what was made of it (several ablations read the file of another
dataset), `args.max_test_samples` how many examples were drawn from it; `data` has the examples, each with the fields of
its public line but for its context, and `output`: the prompt's last words, then what the model said. Examples of
many-shot files have their id one level deeper.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mmlongbench.errors import SourceError
from mmlongbench.io.safe_read import read_whole
from mmlongbench.scoring.rows import told_by

LEADS = ("Answer:", "Summary:", "label:")
"""The prompts' last words, which the public code puts before each output."""


@dataclass(frozen=True, slots=True)
class OutputRow:
    """One example that a model was asked."""

    fields: Mapping[str, Any]
    """Its id and placement."""
    text: str | None
    """What the model said; None where that is no text."""
    lead: str
    """What stands before it."""
    told: bytes | None
    """See `told_by`."""


@dataclass(frozen=True, slots=True)
class Official:
    """One output file."""

    file: str
    """The public file, below `mmlb_data/`."""
    dataset: str
    """As the public code calls what it was asked; empty where that is not said."""
    sample: int | None
    """How many ids were drawn; None: all."""
    rows: Sequence[OutputRow]


@dataclass(frozen=True, slots=True)
class Output:
    """One output file of the public code."""

    path: Path
    file: str
    """Below `mmlb_data/`."""
    dataset: str
    """See `Official.dataset`."""
    sample: int | None
    """How many ids were drawn from the file; None: all."""

    def __str__(self) -> str:
        return f"{self.path.name}: {self.dataset} on {self.file}"


def read_official(path: Path) -> Official | str:
    """An output file, or what it is not."""
    try:
        found = json.loads(read_whole(path, "an output of the public code"))
    except SourceError as error:
        return " ".join(str(error).split())
    except (ValueError, RecursionError) as error:
        return f"expected JSON, found {error!s:.120}"
    if not isinstance(found, dict) or not isinstance(found.get("data"), list):
        return "expected an object with `data`, a list"
    args = found.get("args")
    file = args.get("test_files") if isinstance(args, dict) else None
    if not isinstance(args, dict) or not isinstance(file, str):
        return "expected `args.test_files`, the public file that was asked"
    sample, dataset = args.get("max_test_samples"), args.get("datasets")
    is_sample = isinstance(sample, int) and not isinstance(sample, bool)
    rows = [_row(each) for each in found["data"]]
    return Official(file, dataset if isinstance(dataset, str) else "", sample if is_sample else None, rows)


def is_called(dataset: str, name: str) -> bool:
    """Whether the public code's name for a dataset can be that of a public file's: one says no more than the other.

    >>> [is_called(*each) for each in (("mm_niah_counting-text", "counting-text"), ("text_doc", "text_mmlongdoc"))]
    [True, True]
    >>> [is_called(*each) for each in (("triviaqa", "viquae"), ("occ_vrag", "viquae"), ("text_doc", "mmlongdoc"))]
    [False, False, False]
    """
    return name in dataset or all(part in name for part in re.split("[-_]", dataset))


def _row(found: object) -> OutputRow:
    row = found if isinstance(found, dict) else {}
    inner = row.get("example")
    example = inner if isinstance(inner, dict) else row
    fields = {key: source[key] for source in (example, row) for key in ("id", "depth", "permutation") if key in source}
    output = row.get("output")
    if not isinstance(output, str):
        return OutputRow(fields, None, "", None)
    lead = next((lead for lead in LEADS if output.startswith(lead)), "")
    return OutputRow(fields, output.removeprefix(lead), lead, told_by({**example, **row}))
