"""The output files of the public code's `eval.py`: one JSON object a dataset and length, as much as scoring needs.

`args.test_files` names the public file, `args.max_test_samples` how many examples were drawn from it; `data` has the
examples, each with all fields of its public line, and `output`: the prompt's last words, then what the model said.
Examples of many-shot files have their id one level deeper.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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


@dataclass(frozen=True, slots=True)
class Official:
    """One output file."""

    file: str
    """The public file, below `mmlb_data/`."""
    sample: int | None
    """How many ids were drawn; None: all."""
    rows: Sequence[OutputRow]


def read_official(path: Path) -> Official | str:
    """An output file, or what it is not."""
    try:
        found = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        return f"expected JSON, found {error!s:.120}"
    if not isinstance(found, dict) or not isinstance(found.get("data"), list):
        return "expected an object with `data`, a list"
    args = found.get("args")
    file = args.get("test_files") if isinstance(args, dict) else None
    if not isinstance(args, dict) or not isinstance(file, str):
        return "expected `args.test_files`, the public file that was asked"
    sample = args.get("max_test_samples")
    return Official(file, sample if isinstance(sample, int) else None, [_row(each) for each in found["data"]])


def _row(found: object) -> OutputRow:
    row = found if isinstance(found, dict) else {}
    inner = row.get("example")
    example = inner if isinstance(inner, dict) else row
    fields = {key: source[key] for source in (example, row) for key in ("id", "depth", "permutation") if key in source}
    output = row.get("output")
    if not isinstance(output, str):
        return OutputRow(fields, None, "")
    lead = next((lead for lead in LEADS if output.startswith(lead)), "")
    return OutputRow(fields, output.removeprefix(lead), lead)
