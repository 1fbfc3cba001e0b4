"""Reject lines: what was left out and why, for `rejects.jsonl`; nothing is dropped silently."""

from typing import Any

from mmlongbench.errors import Fault


def reject(dataset: str, id: str, fault: Fault, length: int | None = None) -> dict[str, Any]:
    """One line: a row reject has no length, a fit reject has one (tokens)."""
    return {"reject": {"dataset": dataset, "id": id, "length": length, **fault.fields()}}


def sentence(line: dict[str, Any]) -> str:
    """A reject in words."""
    fields = {key: value for key, value in line.items() if key not in ("dataset", "id", "length")}
    return f"{line['dataset']}, {line['id']}: {Fault(**fields)}"
