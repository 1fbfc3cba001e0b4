"""Reads an export back as VLMEvalKit does: `python check_vlmevalkit.py RELEASE OUT`, in an environment with pandas.

VLMEvalKit is not on the package index. This code does what its class `MMLongBench` does: it reads the table with
pandas, evaluates the list of images, looks for each image in the folders of the class, and splits the text at the
markers. Golds go through a table of results and `predictions.py`.
"""

import ast
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "helpers"))

COLUMNS = "index question_id question answer image_path mmlb_subset task source_dataset question_type tags extra_info"


def main() -> None:
    release, out = (Path(argument).resolve() for argument in sys.argv[1:3])
    import pandas
    from loader_check import Truth, gold_of

    import mmlongbench as mm

    started, truth = time.monotonic(), Truth(release)
    lines: list[str] = []
    for path in sorted(out.glob("MMLongBench_*.tsv")):
        table = pandas.read_csv(path, sep="\t")
        truth.same("tables with all columns", path.name, list(table.columns), COLUMNS.split())
        truth.same("tables with unique indexes", path.name, bool(table["index"].is_unique), True)
        keys = [json.loads(line) for line in path.with_suffix(".index.jsonl").read_text("utf-8").splitlines()]
        truth.same("tables with a key for each row", path.name, [key["index"] for key in keys], list(table["index"]))
        golds = [check_row(truth, key, row, out) for key, (_, row) in zip(keys, table.iterrows(), strict=True)]
        lines += predictions(table.assign(prediction=[gold_of(example) for example in golds]), path, out)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "golds.jsonl"
        file.write_text("".join(lines), "utf-8")
        scores = mm.score(release, file, only_answered=True, tasks=truth.tasks)
    for cell in scores.cells:
        truth.same("files whose golds score 1", f"{cell.dataset} {cell.length}", cell.score, 1.0)
    truth.same("tables of golds without a problem", "golds", scores.problems, ())
    truth.end(f"VLMEvalKit as read by pandas {version('pandas')}", out, time.monotonic() - started)


def check_row(truth: Any, key: dict[str, Any], row: Any, out: Path) -> Any:
    from loader_check import sequence_of

    example = truth.of(key)
    where = f"{row['mmlb_subset']}, {row['index']}"
    expected = sequence_of(example)
    if key.get("has_changed_markers"):
        spaced = [(kind, re.sub(r"<(image|image token)>", r"< \1 >", said)) for kind, said in expected]
        truth.counts["texts with a changed marker"] += sum(a != b for a, b in zip(expected, spaced, strict=True))
        expected = spaced
    truth.same("part sequences equal", where, prompt(row, out / "release/mmlb_image"), expected)
    extra = json.loads(row["extra_info"])
    truth.same("typed answers equal", where, extra["answer"], example.answer)
    truth.same("digests equal", where, key["digest"], example.digest)
    truth.same("metrics known", where, bool(metric_of(row)), True)
    return example


def prompt(row: Any, root: Path) -> list[tuple[str, str]]:
    """The parts of a prompt, with the paths of images below their root."""
    images = [resolved(path, row, root) for path in ast.literal_eval(row["image_path"])]
    parts, used = [], 0
    for piece in re.split(r"(<image token>|<image>)", str(row["question"])):
        if piece in ("<image token>", "<image>"):
            if used < len(images):
                parts.append(("image", str(images[used].relative_to(root))))
                used += 1
        elif piece:
            parts.append(("text", piece))
    return parts + [("left over", str(path)) for path in images[used:]]


def resolved(path: str, row: Any, root: Path) -> Path:
    """The first file that exists, as with `MMLB_IMAGE_ROOT`."""
    length = f"{row['mmlb_subset'].split('_')[1]}K"
    found = [each for each in (root / length / path, root / path) if os.path.exists(each)]  # noqa: PTH110
    return found[0] if found else Path("missing")


def metric_of(row: Any) -> str:
    """The metric that VLMEvalKit chooses; empty if it knows none."""
    source = row["source_dataset"]
    if row["task"] == "NIAH":
        if source.startswith("vh_"):
            return "binary_acc"
        if "counting" in source:
            return "soft_acc"
        is_known = "retrieval" in source or "reasoning" in source
        return ("mc_acc" if "image" in source else "sub_em") if is_known else ""
    return {"vrag": "sub_em", "ICL": "cls_acc", "summ": "rouge", "documentQA": "doc_qa_llm"}.get(row["task"], "")


def predictions(table: Any, path: Path, out: Path) -> list[str]:
    """The lines that `predictions.py` makes of a table of results."""
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / f"MODEL_{path.name}"
        table.to_csv(results, sep="\t", index=False)
        command = [sys.executable, str(out / "predictions.py"), str(results), str(path.with_suffix(".index.jsonl"))]
        ran = subprocess.run(command, check=True, capture_output=True, text=True)
    return ran.stdout.splitlines(keepends=True)


if __name__ == "__main__":
    main()
