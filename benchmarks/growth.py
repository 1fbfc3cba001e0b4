"""How the cost of a build grows: with length, documents, questions, passages and shares.

Each size is a whole build, manifest to lock, in a process of its own. Its row has the CPU seconds, with those of child
processes; their sum for a unit, and this as a ratio to the smallest size; and the MB on disk before the working folder
is removed, and after it. The next row has the CPU seconds of each step and the peak memory of the process in it, in MB;
in brackets is its memory at the end of the step, without pages of files that are mapped.
Sizes are options, so that a small run takes seconds: `growth.py documents --sizes 10,100`.
"""

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import click
import numpy as np
import pymupdf
from lengths import alone
from PIL import Image
from worlds import WORLDS, Source, draw_reports, spell, write

from mmlongbench.building.build import build, do_stages
from mmlongbench.building.build_dir import BuildDir
from mmlongbench.building.executors import LocalExecutor
from mmlongbench.building.finish import finish
from mmlongbench.building.planning import check_manifest, plan_build
from mmlongbench.building.session import Session
from mmlongbench.building.shares import finish_release, run_stage
from mmlongbench.building.stages.table import STAGES
from mmlongbench.corpus.build import make_corpus
from mmlongbench.corpus.corpus import Corpus
from mmlongbench.corpus.retrieval.bm25 import FOLDER, find_index
from mmlongbench.io.files import sha256_of
from mmlongbench.io.progress import Progress
from mmlongbench.lengths import K, format_length, parse_length
from mmlongbench.manifest.model import Manifest

QUIET = Progress(is_shown=False)
TOKENS = 1024 * K
"""Tokens of the questions of a length, roughly."""
WORDS, VOCABULARY, CHUNK = 100, 200_000, 10_000
"""Words of the longest passage, different words, and passages that are drawn at once."""
Costs = dict[str, tuple[float, float, float]]
"""CPU seconds of each step, its peak memory, and what is left of it at the end without pages of files."""


def _cpu(process: int) -> float:
    """CPU seconds of a process and of its children, those that have ended and those that run."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        threads = list(Path(f"/proc/{process}/task").iterdir())
        children = [int(child) for thread in threads for child in (thread / "children").read_text().split()]
    except OSError:  # it has ended
        return 0
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK") + sum(map(_cpu, children))


@contextmanager
def _step(costs: Costs, name: str) -> Iterator[None]:
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak of memory
    begun = _cpu(os.getpid())
    yield
    status = Path("/proc/self/status").read_text().splitlines()
    memory = {line.split(":")[0]: int(line.split()[1]) / 1024 for line in status if line.endswith("kB")}
    costs[name] = (_cpu(os.getpid()) - begun, memory["VmHWM"], memory["RssAnon"])


def _size(folder: Path) -> float:
    """MB below a folder, in whole blocks of the disk."""
    return sum(path.lstat().st_blocks for path in folder.rglob("*")) * 512 / 1e6


def _manifest(source: Source) -> Manifest:
    return Manifest.model_validate({"datasets": [{"name": source["builder"], "seed": 42, **source}]})


def _build(source: Source, out: Path) -> tuple[Costs, float, float, int]:
    """Build a release; the costs, the MB on disk and those of them in the working folder, and the tokens."""
    costs: Costs = {}
    build_dir, executor = BuildDir(out), LocalExecutor(1, QUIET)
    build_dir.root.mkdir(parents=True)
    with _step(costs, "plan"):
        plans = plan_build(check_manifest(_manifest(source)), build_dir, executor)[0]
    with Session(out, plans) as session:
        for stage in STAGES:
            with _step(costs, stage.name):
                do_stages(session, executor, stages=[stage])
        with _step(costs, "finish"):
            lock = finish(session, executor)
    (cells,) = (counts.cells.items() for counts in lock.readable.values())
    tokens = sum(parse_length(length) * cell.examples for length, cell in cells)
    return costs, _size(out), _size(build_dir.root), tokens


def _grow(name: str, sizes: Sequence[str], draw: Callable[[Path, int], Source], unit: str = "") -> None:
    """Build one size after the other, and show what each costs."""
    first = 0.0
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            source = alone(draw, Path(folder), parse_length(size) if unit else int(size))
            costs, kept, working, tokens = alone(_build, source, Path(folder) / "release")
        seconds = sum(spent for spent, *_ in costs.values())
        each = 1e6 * seconds / (tokens if unit else int(size))
        first = first or each
        print(f"{name} {size}: {seconds:.1f} s, {each:.2f} µs a {unit or name[:-1]}, {each / first:.2f}; ", end="")
        print(f"{kept:.0f} MB, {kept - working:.0f} of them released")
        _show(costs)


def _show(costs: Costs) -> None:
    shown = (f"{step} {spent:.2f} s {peak:.0f} ({own:.0f}) MB" for step, (spent, peak, own) in costs.items())
    print("   " + "; ".join(shown), flush=True)


def draw_documents(side: int, documents: int, root: Path, questions: int) -> Source:
    """Documents of four square pages, which differ by their number alone, and questions about them in turn."""
    documents = documents or questions
    with pymupdf.open() as pdf:
        for page in range(4):
            pdf.new_page(width=side, height=side).insert_text((20, 60), f"00000000 {page}", fontsize=20)
        data = pdf.tobytes(expand=255)
    (root / "documents").mkdir()
    for n in range(documents):
        (root / "documents" / f"d{n:08}.pdf").write_bytes(data.replace(b"30" * 8, f"{n:08}".encode().hex().encode()))
    of, asked = "d{:08}".format, range(questions)
    rows = [{"doc": of(n % documents), "question": f"Which is {n}?", "answer": f"{n}", "pages": "1"} for n in asked]
    source = {"questions": write(root / "questions.jsonl", rows), "documents": str(root / "documents")}
    return {"builder": "docvqa", "reader": "own_documents", "source": source, "lengths": ["8K"]}


def draw_passages(root: Path, count: int, queries: int) -> Source:
    """The n-th commonest word has a chance in proportion to 1 / n. A question is ten words of its passage."""
    weights = np.cumsum(1 / np.arange(1, VOCABULARY + 1))
    vocabulary, asked = np.array([spell(rank) for rank in range(VOCABULARY)]), list[dict[str, object]]()
    (root / "images").mkdir()
    with (root / "corpus.json").open("w") as file:
        for n in range(count):
            if n % CHUNK == 0:
                drawn = np.frombuffer(hashlib.shake_256(f"{n}".encode()).digest(4 * CHUNK * WORDS), np.uint32)
                ranks = np.searchsorted(weights, drawn * (weights[-1] / 2**32))
                rows = vocabulary[ranks].reshape(CHUNK, WORDS).tolist()
            words = [*rows[n % CHUNK][: 60 + n * 37 % 41], *([f"answer{n}"] if n < queries else ())]
            article = {"_id": f"{n}", "wikipedia_title": f"Sheet {n}", "text": [f"Sheet {n}", " ".join(words)]}
            file.write(json.dumps({**article, "wikipedia_id": f"{n}"}) + "\n")
            if n < queries:
                Image.new("RGB", (640, 480), (n % 256, 90, 120)).save(root / "images" / f"oven_{n:08d}.jpg")
                place: dict[str, list[object]] = {"title": [f"Sheet {n}"], "wikipedia_id": [f"{n}"]}
                gold = {**place, "start_paragraph_id": [1], "end_paragraph_id": [1]}
                output = {"original_answer": words[-1], "answer": [words[-1]], "provenance": [gold]}
                question = {"input": "Which?", "original_question": f"Which of {' '.join(words[:10])} is it?"}
                asked.append({"image": f"oven_{n:08d}.jpg", **question, "output": output})
    source = {"questions": write(root / "viquae.jsonl", asked), "images": str(root / "images")}
    task = {"builder": "vrag", "reader": "viquae", "options": {"gold": "span"}, "lengths": ["8K"]}
    return {**task, "source": source, "corpus": str(root / "corpus")}


SIZES = {
    "lengths": "8K,32K,128K,512K,1M",
    "documents": "10,100,1000,10000",
    "questions": "1000,10000,100000",
    "passages": "10000,100000,1000000",
    "shares": "1,4,16",
}


@click.command(context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.argument("axis", type=click.Choice([*SIZES]))
@click.option("--sizes", default="", help="Separated by commas.")
@click.option("--only", default="", help="Builders whose names begin so, for lengths.")
@click.option("--queries", default=100, help="Questions, for passages.")
@click.option("--copies", default=14, help="Times that twelve reports are drawn, for shares.")
def main(axis: str, sizes: str, only: str, queries: int, copies: int) -> None:
    """Print how the cost of a build grows along an axis."""
    named = (sizes or SIZES[axis]).split(",")
    if axis == "lengths":  # the longer the examples, the fewer they are; `lengths.py` has the records stage alone
        for builder in (name for name in WORLDS if name.startswith(only)):
            _grow(builder, named, partial(_at_length, builder), "token")
    if axis == "documents":
        _grow(axis, named, partial(draw_documents, 200, 0))  # 38 pages fill an example
    if axis == "questions":
        _grow(axis, named, partial(draw_documents, 800, 8))  # three pages fill an example
    if axis == "passages":
        passages(map(int, named), queries)
    if axis == "shares":
        shares(map(int, named), copies)


def _at_length(builder: str, root: Path, length: int) -> Source:
    """At most 32 questions."""
    (root / "source").mkdir()
    source = WORLDS[builder](root / "source")
    sample = {**source.get("sample", {}), "n": max(1, TOKENS // length)}
    return {"builder": builder, **source, "sample": sample, "lengths": [format_length(length)]}


def passages(sizes: Iterable[int], queries: int) -> None:
    """The corpus, its index, then a release of a few questions at 8K."""
    for size in sizes:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            source = alone(draw_passages, root, size, queries)
            costs = alone(_corpus, root)
            index = _size(root / "corpus" / FOLDER)
            print(f"passages {size}: corpus {_size(root / 'corpus') - index:.0f} MB, index {index:.0f} MB")
            _show(costs | alone(_build, source, root / "release")[0])


def _corpus(root: Path) -> Costs:
    costs: Costs = {}
    with _step(costs, "cut"):
        make_corpus(str(root / "corpus.json"), root / "corpus")
    with _step(costs, "index"):
        find_index(Corpus.open(root / "corpus"), root / "corpus" / FOLDER)
    return costs


def shares(sizes: Iterable[int], copies: int) -> None:
    """Shares of two stages, each command in a process of its own, against a build in one process."""
    with tempfile.TemporaryDirectory() as folder:
        source, out = draw_reports(Path(folder), copies) | {"lengths": ["8K", "32K"]}, Path(folder) / "release"
        whole, expected = alone(_run, source, out, "", ""), _files(out)
        print(f"whole: {whole:.1f} s")
        for of in sizes:
            shutil.rmtree(out)
            parts = [(stage, f"{n}/{of}") for stage in ("records", "images") for n in range(1, of + 1)]
            todo = [("prepare", ""), *parts, ("finish", "")]
            spent = sum(alone(_run, source, out, stage, part) for stage, part in todo)
            same = "the same" if _files(out) == expected else "OTHER"
            print(f"{of} shares: {spent:.1f} s, {(spent - whole) / len(todo):.2f} s more a command; {same} bytes")


def _run(source: Source, out: Path, stage: str, share: str) -> float:
    """Build all, run a share of a stage, or finish; the CPU seconds."""
    begun, manifest, executor = _cpu(os.getpid()), _manifest(source), LocalExecutor(1, QUIET)
    if not stage:
        build(manifest, out, executor)
    elif stage == "finish":
        finish_release(out, executor)
    else:
        run_stage(manifest, out, executor, stage, share or None)
    return _cpu(os.getpid()) - begun


def _files(out: Path) -> dict[str, str]:
    return {path.relative_to(out).as_posix(): sha256_of(path) for path in out.rglob("*") if path.is_file()}


if __name__ == "__main__":
    main()
