"""Public files of questions, and predictions of models whose blindness a script sets exactly."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

FOUR = "NIAH/retrieval-image_test_K8_dep6.jsonl"
"""Questions that offer four pictures."""
TWO = "NIAH/vh_single_test_80_K8_dep6.jsonl"
"""Questions that are answered by yes or no."""
DEPTHS = (0.0, 0.4)
Record: TypeAlias = dict[str, Any]
IsRight: TypeAlias = Callable[[int, float], bool]
"""Whether the answer to a question (its number) at a depth is right."""


def four(number: int, depth: float, answer: int | None = None) -> Record:
    """A question with four pictures; the right one changes from question to question."""
    offered = [f"mm-niah/{number}-{place}.jpg" for place in range(4)]
    right = number % 4 if answer is None else answer
    common = {"question": "Which?", "ctxs": [], "image_list": [], "choices_image": offered, "depth": depth}
    return {"id": f"mm-niah-{number}", "answer": right, "positive_ctxs": [{"image": f"{number}.jpg"}], **common}


def two(number: int, depth: float) -> Record:
    """A question with two answers about a photograph of its own."""
    common = {"question": "Is it?", "ctxs": [], "needles": [f"{number}.jpg"], "depth": depth}
    return {"id": f"vh-{number}", "answer": ("Yes", "No")[number % 2], **common}


def public_files(folder: Path, records: Mapping[str, Sequence[Record]]) -> Path:
    """Write public files; return their folder."""
    for name, every in records.items():
        write(folder / "mmlb_data" / name, every)
    return folder / "mmlb_data"


def write(path: Path, lines: Sequence[Record]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return path


def said(record: Record, *, is_right: bool) -> str:
    """The right answer of a record, or another one that it offers."""
    if isinstance(record["answer"], int):
        return "ABCD"[(record["answer"] + (not is_right)) % 4]
    return str(record["answer"]) if is_right else {"Yes": "No", "No": "Yes"}[record["answer"]]


def predictions(
    path: Path,
    file: str,
    records: Sequence[Record],
    is_right: IsRight,
    context: str = "",
    model: str = "m",
    samples: int = 1,
) -> Path:
    """Write the predictions of a model in a context."""
    lines = []
    for record in records:
        number = int(record["id"].rpartition("-")[2])
        answer = said(record, is_right=is_right(number, record["depth"]))
        common = {"file": file, "id": record["id"], "depth": record["depth"], "model": model, "prediction": answer}
        for sample in range(samples):
            lines.append({**common, **({"context": context} if context else {}), "sample": sample})
    return write(path, lines)
