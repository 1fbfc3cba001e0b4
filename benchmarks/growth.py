"""How the cost of a build grows: with length, documents, questions, passages, shares and Ray nodes.

Each size is a whole build, manifest to lock, in a process of its own. The first line of a size has the CPU seconds of
each step, with those of child processes; their sum for a unit, in milliseconds and as a ratio to the smallest size; the
MB on disk before the working folder is removed, and those of the release. The second line has the peak memory of the
process in each step, in MB. Sizes are options, so that a small run takes seconds: `growth.py documents --sizes 10,100`.
"""

import json
import multiprocessing
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
import numpy as np
import pymupdf
from PIL import Image
from worlds import DRAWS, classes, draw_reports, spell

from mmlongbench.building.build import build, do_stages
from mmlongbench.building.build_dir import BuildDir
from mmlongbench.building.executors import Executor, LocalExecutor
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
from tests.drawing.mm_niah.pages import page_of

QUIET = Progress(is_shown=False)
TOKENS = 6144 * K
"""Tokens of the examples of a length."""
WORDS, VOCABULARY, CHUNK = 100, 200_000, 10_000
"""Words of the longest passage, different words, and passages that are drawn at once."""
Source = dict[str, Any]


@dataclass
class Cost:
    """What a build has cost; CPU seconds and peak memory by step."""

    seconds: dict[str, float] = field(default_factory=dict)
    peaks: dict[str, float] = field(default_factory=dict)
    kept: float = 0
    released: float = 0
    tokens: int = 0

    @contextmanager
    def step(self, name: str) -> Iterator[None]:
        Path("/proc/self/clear_refs").write_text("5")  # forget the peak of memory
        begun = _cpu(os.getpid())
        yield
        self.seconds[name] = _cpu(os.getpid()) - begun
        status = Path("/proc/self/status").read_text().splitlines()
        self.peaks[name] = next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1024


def _cpu(process: int) -> float:
    """CPU seconds of a process and of its children, those that have ended and those that run."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        threads = list(Path(f"/proc/{process}/task").iterdir())
        children = [int(child) for thread in threads for child in (thread / "children").read_text().split()]
    except OSError:  # it has ended
        return 0
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK") + sum(map(_cpu, children))


def _size(folder: Path) -> float:
    """MB below a folder, in whole blocks of the disk."""
    return sum(path.lstat().st_blocks for path in folder.rglob("*")) * 512 / 1e6


def _alone(function: Callable[..., Any], *arguments: Any) -> Any:  # noqa: ANN401  (what it gives)
    """The result of a function in a process of its own."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


def _build(source: Source, out: Path) -> Cost:
    cost, build_dir, executor = Cost(), BuildDir(out), LocalExecutor(1, QUIET)
    build_dir.root.mkdir(parents=True)
    with cost.step("plan"):
        plans = plan_build(check_manifest(_manifest(source)), build_dir, executor)[0]
    with Session(out) as session:
        for stage in STAGES:
            with cost.step(stage.name):
                do_stages(plans, session, executor, stages=[stage])
        with cost.step("finish"):
            lock = finish(plans, session, executor)
    cost.kept = _size(out)
    cost.released = cost.kept - _size(build_dir.root)
    for counts in lock.readable.values():
        cost.tokens += sum(parse_length(length) * cell.examples for length, cell in counts.cells.items())
        if not cost.tokens or any(cell.ran_dry for cell in counts.cells.values()):
            print(f"not as meant: {counts.questions} {counts.cells}")
    return cost


def _manifest(source: Source) -> Manifest:
    return Manifest.model_validate({"datasets": [{"name": source["builder"], "seed": 42, **source}]})


@click.group(context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
def main() -> None:
    """Print a table for an axis."""


def _grow(name: str, unit: str, sizes: str, draw: Callable[[Path, int], Source]) -> None:
    """Build one size after the other, and show what each costs."""
    first = 0.0
    for size in map(parse_length if unit == "Ktoken" else int, sizes.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            source = _alone(draw, Path(folder), size)
            cost: Cost = _alone(_build, source, Path(folder) / "release")
        steps = [step for step in cost.seconds if cost.seconds[step] >= 0.1] if unit != "Ktoken" else [*cost.seconds]
        each = 1000 * sum(cost.seconds.values()) / (cost.tokens / 1000 if unit == "Ktoken" else size)
        first = first or each
        shown = format_length(size) if unit == "Ktoken" else f"{size:,}"
        print(f"{name} {shown}: {sum(cost.seconds.values()):.1f} s, {each:.4f} ms a {unit}, {each / first:.2f}; "
              f"disk {cost.kept:.0f} MB, release {cost.released:.0f} MB")  # fmt: skip
        print("   " + "  ".join(f"{step} {cost.seconds[step]:.2f} s {cost.peaks[step]:.0f} MB" for step in steps))


def _lines(path: Path, rows: Sequence[Mapping[str, Any]]) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


# --- lengths: the same tokens in all, so that longer examples are fewer ----------------------------------------------


@main.command()
@click.option("--sizes", default="8K,32K,128K,512K,1M")
@click.option("--only", default="", help="Worlds whose names begin so.")
def lengths(sizes: str, only: str) -> None:
    """Lengths: text needles, pages and many-shot."""
    for draw in (text_needles, pages, many_shot):
        if draw.__name__.startswith(only):
            _grow(draw.__name__, "Ktoken", sizes, draw)


def text_needles(root: Path, length: int) -> Source:
    """Prose of 1.2M tokens; six examples a question."""
    (root / "pages").mkdir()
    for number in range(900):
        (root / "pages" / f"page{number:04}.txt").write_text("\n\n".join(page_of(DRAWS.at("page", number))))
    ask = "What is the pass phrase of gate {}?".format
    rows = [
        {"question": ask(n), "answer": f"zq{n:07}", "needles": [f"The pass phrase of gate {n} is zq{n:07}."]}
        for n in range(1, 1 + max(1, TOKENS // length // 6))
    ]
    source = {"questions": _lines(root / "questions.jsonl", rows), "documents": str(root / "pages")}
    task = {"name": "retrieval-text", "builder": "mm_niah", "reader": "own_pages"}
    return {**task, "source": source, "lengths": [format_length(length)]}


def pages(root: Path, length: int) -> Source:
    """A context is made of whole documents of 20 pages."""
    return draw_documents(root, 60, TOKENS // length, 20, 800) | {"lengths": [format_length(length)]}


def many_shot(root: Path, length: int) -> Source:
    """Fifty classes of seventy pictures; the same examples at all lengths."""
    task = {"builder": "many_shot", "sample": {"stratify": "kind", "n": 16}}
    return {**classes(root), **task, "lengths": [format_length(length)]}


# --- documents, questions ---------------------------------------------------------------------------------------------


def draw_documents(root: Path, documents: int, questions: int, count: int, side: int) -> Source:
    """Documents of `count` square pages, which differ by their number alone, and questions about them in turn."""
    with pymupdf.open() as pdf:
        for page in range(count):
            pdf.new_page(width=side, height=side).insert_text((20, 60), f"00000000 {page}", fontsize=20)
        data = pdf.tobytes(expand=255)
    (root / "documents").mkdir()
    for n in range(documents):
        (root / "documents" / f"d{n:08}.pdf").write_bytes(data.replace(b"30" * 8, f"{n:08}".encode().hex().encode()))
    rows = [
        {"doc": f"d{n % documents:08}", "question": f"Which is number {n}?", "answer": f"{n}", "pages": "1"}
        for n in range(questions)
    ]
    source = {"questions": _lines(root / "questions.jsonl", rows), "documents": str(root / "documents")}
    return {"builder": "docvqa", "reader": "own_documents", "source": source, "lengths": ["8K"]}


@main.command()
@click.option("--sizes", default="10,100,1000,10000")
def documents(sizes: str) -> None:
    """Documents of four small pages, each with a question at 8K."""
    _grow("documents", "document", sizes, _of_documents)


def _of_documents(root: Path, size: int) -> Source:
    return draw_documents(root, size, size, 4, 200)


@main.command()
@click.option("--sizes", default="1000,10000,100000")
def questions(sizes: str) -> None:
    """Questions about 32 pages, three of which fill an example of 8K."""
    _grow("questions", "question", sizes, _of_questions)


def _of_questions(root: Path, size: int) -> Source:
    return draw_documents(root, 8, size, 4, 800)


# --- passages ---------------------------------------------------------------------------------------------------------


@main.command()
@click.option("--sizes", default="10000,100000,1000000")
@click.option("--queries", default=100)
def passages(sizes: str, queries: int) -> None:
    """Passages of 60 to 100 words: the corpus, its index, then a release of questions at 8K."""
    for size in map(int, sizes.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            source = _alone(_draw_passages, root, size, queries)
            made = [_alone(make, root) for make in (_cut, _index)]
            disk = {name: _size(root / name) for name in ("corpus", f"corpus/{FOLDER}")}
            made.append(_alone(_build, source, root / "release"))
        print(
            f"passages {size:,}: corpus {disk.pop('corpus') - sum(disk.values()):.0f} MB, index {sum(disk.values()):.0f} MB"
        )
        for cost in made:
            for step, seconds in cost.seconds.items():
                each = 1000 * seconds / (queries if step in ("questions", "negatives", "records") else size)
                print(f"   {step:<10}{seconds:>8.2f} s{each:>10.4f} ms each{cost.peaks[step]:>7.0f} MB")


def _draw_passages(root: Path, count: int, queries: int) -> Source:
    """The n-th commonest word has a chance in proportion to 1 / n. A question is ten words of its passage."""
    weights = np.cumsum(1 / np.arange(1, VOCABULARY + 1))
    vocabulary, draws, asked = np.array([spell(rank) for rank in range(VOCABULARY)]), np.random.default_rng(42), []
    (root / "images").mkdir()
    with (root / "corpus.json").open("w") as file:
        for start in range(0, count, CHUNK):
            drawn = draws.random((min(CHUNK, count - start), WORDS))
            for n, row in enumerate(vocabulary[np.searchsorted(weights, drawn * weights[-1])].tolist(), start):
                words = [*row[: 60 + n * 37 % 41], *([f"answer{n}"] if n < queries else ())]
                names = {"_id": f"{n}", "wikipedia_id": f"{n}", "wikipedia_title": f"Sheet {n}"}
                file.write(json.dumps({**names, "text": [f"Sheet {n}", " ".join(words)]}) + "\n")
                if n < queries:
                    Image.new("RGB", (640, 480), (n % 256, 90, 120)).save(root / "images" / f"oven_{n:08d}.jpg")
                    span = {"title": [f"Sheet {n}"], "wikipedia_id": [f"{n}"], "start_paragraph_id": [1]}
                    gold = {**span, "end_paragraph_id": [1]}
                    said = {"original_answer": words[-1], "answer": [words[-1]], "provenance": [gold]}
                    text = {"input": "Which is it?", "original_question": f"Which of {' '.join(words[:10])} is it?"}
                    asked.append({"image": f"oven_{n:08d}.jpg", **text, "output": said})
    source = {"questions": _lines(root / "viquae.jsonl", asked), "images": str(root / "images")}
    task = {"builder": "vrag", "reader": "viquae", "options": {"gold": "span"}, "lengths": ["8K"]}
    return {**task, "source": source, "corpus": str(root / "corpus")}


def _cut(root: Path) -> Cost:
    cost = Cost()
    with cost.step("cut"):
        make_corpus(str(root / "corpus.json"), root / "corpus")
    return cost


def _index(root: Path) -> Cost:
    cost = Cost()
    with cost.step("index"):
        find_index(Corpus.open(root / "corpus"), root / "corpus" / FOLDER)
    return cost


# --- shares and nodes -------------------------------------------------------------------------------------------------


@main.command()
@click.option("--sizes", default="1,4,16")
@click.option("--copies", default=14, help="Times that twelve reports are drawn anew.")
def shares(sizes: str, copies: int) -> None:
    """Shares of a stage, each a process of its own, against a build in one process."""
    with tempfile.TemporaryDirectory() as folder:
        source, out = _reports(Path(folder), copies), Path(folder) / "release"
        cpu, whole = _alone(_step, source, out, "", "")
        expected = _files(out)
        print(f"whole: {cpu:.1f} s, {whole} files in the working folder")
        for of in map(int, sizes.split(",")):
            shutil.rmtree(out)
            steps = ["prepare", *(stage.name for stage in STAGES if stage.name in ("records", "images")), "finish"]
            spent = {}
            for stage in steps:
                parts = [f"{n}/{of}" for n in range(1, of + 1)] if stage in ("records", "images") else [""]
                spent[stage] = sum(_alone(_step, source, out, stage, part)[0] for part in parts)
            total, same = sum(spent.values()), _files(out) == expected
            shown = ", ".join(f"{stage} {seconds:.1f}" for stage, seconds in spent.items())
            more = (total - cpu) / (2 * of)
            print(f"{of} shares: {total:.1f} s ({shown}), {more:+.2f} s a share; bytes {'same' if same else 'DIFFER'}")


@main.command()
@click.option("--sizes", default="1,2,4")
@click.option("--copies", default=14, help="Times that twelve reports are drawn anew.")
def nodes(sizes: str, copies: int) -> None:
    """Ray nodes of one CPU each on this machine, which has not so many: the overhead, not the speed."""
    import ray
    from ray.cluster_utils import Cluster

    from mmlongbench.building.ray_executor import RayExecutor

    memory = 80 * 1024 * 1024
    with tempfile.TemporaryDirectory() as folder:
        source, out = _reports(Path(folder), copies), Path(folder) / "release"
        for count in (0, *map(int, sizes.split(","))):
            executor: Executor = LocalExecutor(1, QUIET)
            if count:
                node = {"num_cpus": 1, "include_dashboard": False, "object_store_memory": memory}
                cluster = Cluster(initialize_head=True, head_node_args=node)
                for _ in range(count - 1):
                    cluster.add_node(num_cpus=1, object_store_memory=memory)
                ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
                executor = RayExecutor(QUIET, cluster.address)
            begun, driver = time.perf_counter(), time.process_time()
            build(_manifest(source), out, executor)
            wall, driver = time.perf_counter() - begun, time.process_time() - driver
            files = _files(out)
            expected = files if not count else expected
            by_node = sorted(executor.nodes.values()) if isinstance(executor, RayExecutor) else []
            print(f"{count} nodes: {wall:.1f} s by the clock, {driver:.1f} s of CPU in the process that asks; shards "
                  f"by node {by_node}; bytes {'same' if files == expected else 'DIFFER'}", flush=True)  # fmt: skip
            shutil.rmtree(out)
            if count:
                ray.shutdown()
                cluster.shutdown()


def _reports(root: Path, copies: int) -> Source:
    return {**draw_reports(root, copies), "lengths": ["8K", "32K"]}


def _step(source: Source, out: Path, stage: str, share: str) -> tuple[float, int]:
    """Run a stage, all if it has no name; the CPU seconds, and the files in the working folder."""
    cost, executor = Cost(), LocalExecutor(1, QUIET)
    with cost.step("all"):
        if not stage:
            build(_manifest(source), out, executor)
        elif stage == "finish":
            finish_release(out, executor)
        else:
            run_stage(_manifest(source), out, executor, stage, share or None)
    return cost.seconds["all"], sum(path.is_file() for path in (out / ".build").rglob("*"))


def _files(out: Path) -> dict[str, str]:
    return {path.relative_to(out).as_posix(): sha256_of(path) for path in out.rglob("*") if path.is_file()}


if __name__ == "__main__":
    main()
