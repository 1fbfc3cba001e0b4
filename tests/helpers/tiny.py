"""A source of four PDFs of two to five small pages, built in a fraction of a second, and the means to build it."""

import io
import json
import math
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import yaml

from mmlongbench.cli import main
from mmlongbench.io.files import sha256_of
from mmlongbench.release.release import open_release
from tokenization import CrossModalCounter, load_tokenizer, vision_rule

PAGES = {"ash": 2, "birch": 3, "cedar": 4, "dogwood": 5}
SIDE = 200
"""Points: 400 pixels at 144 DPI, 14 × 14 cells, 196 tokens a page. Four pages fit 1K, nine fit 2K."""
PATIENCE = "mmlongbench.building.executors.PATIENCE"
"""The seconds after which a build without `--workers` starts others; on a busy machine, any build might."""
Row = dict[str, str]


def row(doc: str, question: str, answer: str, pages: str, **other: str) -> Row:
    """A row of `samples.json`."""
    common = {"doc_type": "Tree", "evidence_sources": "['Pure-text (Plain-text)']", "answer_format": "Str"}
    return {"doc_id": doc, "question": question, "answer": answer, "evidence_pages": pages, **common, **other}


ROWS = (
    row("ash.pdf", "What is its wood?", "hard", "[1]"),
    row("birch.pdf", "What is its bark?", "white", "[2]", doc_type="Bark"),
    row("cedar.pdf", "Which two colours?", "['red', 'brown']", "[1, 4]", answer_format="List", doc_type="Bark"),
    row("dogwood.pdf", "How many petals?", "4", "[3]", answer_format="Int"),
    row("dogwood.pdf", "Who planted it?", "Not answerable", "[]", answer_format="None"),
    row("oak.pdf", "Where is it?", "nowhere", "[1]"),  # its document is missing
    row("birch.pdf", "Why?", "for it has always been so, they say", "[1]"),  # long-form
    row("ash.pdf", "On which page?", "three", "[3]"),  # out of range
    row("ash.pdf", "Which page is none?", "zero", "[0]"),  # page 0
    row("dogwood.pdf", "How many in all?", "5", "[1, 2, 3, 4, 5]", answer_format="Int"),  # fits 2K, not 1K
    row("cedar.pdf", "How tall is it?", "30 m", "[2]"),
)
KEPT = ("mmlongdoc_0", "mmlongdoc_1", "mmlongdoc_2", "mmlongdoc_3", "mmlongdoc_4", "mmlongdoc_10")
REJECTED = {
    "mmlongdoc_5": "missing-document",
    "mmlongdoc_6": "long-form-answer",
    "mmlongdoc_7": "answer-page-out-of-range",
    "mmlongdoc_8": "answer-page-out-of-range",
    "mmlongdoc_9": "above-admission-length",
}


def draw_source(folder: Path, rows: tuple[Row, ...] = ROWS) -> None:
    """Write `samples.json`, the PDFs and a manifest of them."""
    (folder / "documents").mkdir(parents=True)
    for name, count in PAGES.items():
        draw_pdf(folder / "documents" / f"{name}.pdf", count)
    write_rows(folder, rows)
    write_manifest(folder / "tiny.yaml")


def draw_pdf(path: Path, pages: int, side: float = SIDE) -> None:
    """Write a PDF of square pages with their page numbers as text; the bytes are the same every time."""
    import pymupdf

    with pymupdf.open() as document:
        for number in range(pages):
            page = document.new_page(width=side, height=side)
            page.insert_text((20, 40), f"{path.stem}, {number + 1} of {pages}")
        document.save(path, no_new_id=True)


def write_rows(folder: Path, rows: tuple[Row, ...]) -> None:
    """Write `samples.json`."""
    (folder / "samples.json").write_text(json.dumps(rows), "utf-8")


def write_manifest(path: Path, **changes: Any) -> Path:
    """Write a manifest of the tiny source, which stands in the manifest's folder."""
    dataset = {
        "name": "mmlongdoc",
        "builder": "docvqa",
        "reader": "mmlongbench_doc",
        "source": {"samples": "samples.json", "documents": "documents"},
        "lengths": ["1K", "2K"],
        "admission_length": "1K",
        "reserve": 64,
        "licence": "none",
        "options": {"max_answer_words": 5},
        **changes,
    }
    path.write_text(yaml.safe_dump({"datasets": [dataset]}), "utf-8")
    return path


END = "\x1e"
"""What stands between the outputs of commands of one process; no command prints it."""
IN_TURN = f"""
import json, sys
from mmlongbench.cli import main

for sys.argv in json.loads(sys.argv[1]):
    code = 1
    try:
        main()
    except SystemExit as stop:
        code = stop.code or 0
    except Exception:
        sys.excepthook(*sys.exc_info())  # as at the end of a process
    print(end={END!r})
    print(code, end={END!r}, flush=True)
    print(end={END!r}, file=sys.stderr, flush=True)
"""


@dataclass(frozen=True)
class Ran:
    """The result of a command."""

    code: int
    out: str
    err: str


def command(*args: object) -> Ran:
    """Run the command line in this process; it starts workers only if `--workers` says so, however long it takes."""
    out, err = io.StringIO(), io.StringIO()
    argv = mock.patch.object(sys, "argv", ["mmlongbench", *map(str, args)])
    with argv, mock.patch(PATIENCE, math.inf), redirect_stdout(out), redirect_stderr(err):
        try:
            main()
        except SystemExit as stop:
            return Ran(int(stop.code or 0), out.getvalue(), err.getvalue())


def in_one_process(*commands: Sequence[object], **options: Any) -> list[Ran]:
    """Run command lines one after the other in one process of their own, whose imports they share."""
    lines = json.dumps([["mmlongbench", *map(str, words)] for words in commands])
    options = {"check": True, "capture_output": True, "text": True, **options}
    done = subprocess.run([sys.executable, "-c", IN_TURN, lines], **options)
    outs, errs = (text.split(END)[:-1] for text in (done.stdout, done.stderr))
    codes, outs = outs[1::2], outs[::2]
    assert len(codes) == len(outs) == len(errs) == len(commands)
    return [Ran(int(code), out, err) for code, out, err in zip(codes, outs, errs, strict=True)]


def mmlongbench(*args: object, **options: Any) -> Ran:
    """Run the command line in a process of its own."""
    options = {"check": False, "capture_output": True, "text": True, **options}
    done = subprocess.run([sys.executable, "-m", "mmlongbench", *map(str, args)], **options)
    return Ran(done.returncode, done.stdout, done.stderr)


def build(source: Path, out: Path, *args: object) -> Ran:
    """Build the tiny source in this process."""
    workers = () if "--workers" in args else ("--workers", 1)  # on a busy machine, other processes would be started
    return command("build", source / "tiny.yaml", "--out", out, *workers, *args)


def leftovers(out: Path) -> list[Path]:
    """Files that a finished build must not leave."""
    return [*out.rglob(".*")]


def environment(**variables: object) -> dict[str, str]:
    """The environment with some variables more."""
    return {**os.environ, **{name: str(value) for name, value in variables.items()}}


def hashes(release: Path) -> dict[str, str]:
    """The SHA-256 of every file of a release, whatever its name."""
    return {str(path.relative_to(release)): sha256_of(path) for path in sorted(release.rglob("*")) if path.is_file()}


def records(release: Path, length: str, name: str = "mmlongdoc") -> list[dict[str, Any]]:
    """The lines of a public file."""
    path = release / "mmlb_data" / "documentQA" / f"{name}_K{length.removesuffix('K')}.jsonl"
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def on_model(release: Path, length: str, model: str, side: int = 400) -> dict[str, int]:
    """The tokens of each prompt on a model by id, with pages of `side` pixels: each text between images by itself."""
    counter = CrossModalCounter(load_tokenizer("llama2"), vision_rule(model))
    prompts = {each.id: each.prompt for each in open_release(release).examples("mmlongdoc", length)}
    return {id: counter.prompt(prompt.sized(lambda _: (side, side))).total for id, prompt in prompts.items()}


def rejects(release: Path) -> list[dict[str, Any]]:
    """The lines of `rejects.jsonl`."""
    return [json.loads(line) for line in (release / "rejects.jsonl").read_bytes().splitlines()]


def lock(release: Path) -> dict[str, Any]:
    """The lock."""
    read: dict[str, Any] = json.loads((release / "build.lock.json").read_text("utf-8"))
    return read


def relock(release: Path, edit: Callable[[dict[str, Any]], object]) -> None:
    """Edit the lock."""
    edited = lock(release)
    edit(edited)
    (release / "build.lock.json").write_text(json.dumps(edited), "utf-8")


def rewrite(file: Path, edit: Callable[[list[dict[str, Any]]], object]) -> None:
    """Edit the records of a public file."""
    lines = [json.loads(line) for line in file.read_bytes().splitlines()]
    edit(lines)
    file.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), "utf-8")
