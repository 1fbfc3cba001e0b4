"""Reads the output files of the public code's `eval.py`: one JSON object for each dataset and length.

`args.test_files` is the public file. `args.datasets` is the dataset that the run was about; several ablations read the
file of another dataset. `args.max_test_samples` is the number of examples drawn from the file. `data` has the examples,
each with the fields of its public line except the context, and with `output`: the prompt's last words, then the model's
output. Examples of many-shot files have their id in a field `example`.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mmlongbench.errors import SourceError
from mmlongbench.io.files import read_whole
from mmlongbench.scoring.rows import told_by

LEADS = ("Answer:", "Summary:", "label:")
"""The texts with which prompts end. The public code repeats the end of its prompt at the start of each output."""


@dataclass(frozen=True, slots=True)
class OutputRow:
    """One example that a model was given."""

    fields: Mapping[str, object]
    """The `id` of the example, and its `depth` or `permutation` if it has one."""
    text: str | None
    """The model's output; None if it is not text."""
    lead: str
    """The text of `LEADS` that stood before the output; empty if there was none."""
    told: bytes | None
    """A digest that identifies the row (see `told_by`)."""


@dataclass(frozen=True, slots=True)
class Official:
    """The content of one output file of the public code."""

    file: str
    """The path of the public file, as `args.test_files` has it; it may begin with `mmlb_data/`."""
    dataset: str
    """The public code's name for the dataset; empty if it is missing."""
    sample: int | None
    """How many ids were drawn from the file; None if all were used."""
    rows: Sequence[OutputRow]


@dataclass(frozen=True, slots=True)
class Output:
    """What is known about one output file of the public code, without its rows."""

    path: Path
    file: str
    """The public file, below `mmlb_data/`."""
    dataset: str
    """See `Official.dataset`."""
    sample: int | None
    """See `Official.sample`."""

    def __str__(self) -> str:
        return f"{self.path.name}: {self.dataset} on {self.file}"


def read_official(path: Path) -> Official | str:
    """Read an output file, or return why it is not one."""
    try:
        found: object = json.loads(read_whole(path, "an output of the public code"))
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
    """Return whether `dataset`, a name in the public code, can mean the dataset `name` of a public file.

    It can if `dataset` contains `name`. It also can if `dataset` is split at each `-` and `_`, and `name` contains all
    its parts.

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
