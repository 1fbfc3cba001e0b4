"""Pages per second: the engine's rendering to JPEG against `page.get_pixmap(dpi=144).tobytes("png")`.

Both render the same pages of the same documents in one run, document by document in turn, so that a machine that slows
down slows both. Each round gives a ratio; the medians of the rounds are printed. No bytes reach the disk. `cores` is
what a way had of the processor: two processes that a busy machine gave 1.1 cores cannot show what they can do.
"""

import multiprocessing
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from inspect import unwrap
from pathlib import Path
from threading import Barrier

import click
from worlds import LIMITS, open_pdfs, spread

from mmlongbench.documents.pdf import page_sizes, render_pages
from mmlongbench.errors import SourceError
from mmlongbench.io.progress import Progress
from mmlongbench.manifest.model import PageSpec

PAGES = PageSpec()
PROCESSES = 2
NAIVE, ONE, TWO = "naive PNG, 1 process", "engine, 1 process", f"engine, {PROCESSES} processes"
TARGETS = {NAIVE: "", ONE: ">= 2.2", TWO: ">= 4.0"}
"""Targets of the ratio to the naive way."""
PATIENCE = 120
"""Seconds until a worker that does not start is an error."""


@dataclass(frozen=True, slots=True)
class Document:
    """A PDF and the pages of it that are rendered."""

    path: Path
    numbers: tuple[int, ...]


@dataclass(slots=True)
class Cost:
    """Seconds by the clock, and seconds of processors."""

    wall: float = 0.0
    cpu: float = 0.0

    def add(self, other: "Cost") -> None:
        """Add the seconds of another."""
        self.wall += other.wall
        self.cpu += other.cpu


Way = Callable[[Document], None]
Round = dict[str, Cost]
"""What all pages cost, by way."""


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False), required=False)
@click.option("--pages-per-document", type=click.IntRange(min=1), default=20, show_default=True)
@click.option("--rounds", type=click.IntRange(min=1), default=2, show_default=True)
def main(folder: Path | None, pages_per_document: int, rounds: int) -> None:
    """Render pages of the PDFs in FOLDER both ways, and print pages per second side by side."""
    with open_pdfs(folder) as paths, _workers() as pool:
        documents = list(_documents(paths, pages_per_document))
        steps = rounds * (len(documents) + 1)
        with Progress().bar("pages", steps) as advance:
            done = [_round(documents, pool, turn, advance) for turn in range(rounds)]
    _show(done, documents)


def naive(document: Document) -> None:
    """Render as code that ignores speed would."""
    import pymupdf

    with pymupdf.open(document.path) as pdf:
        for number in document.numbers:
            pdf[number].get_pixmap(dpi=PAGES.dpi).tobytes("png")


def engine(document: Document) -> None:
    """What a shard of the images stage does, but for writing the file."""
    for _ in unwrap(render_pages)(document.path, document.numbers, PAGES.dpi, PAGES.quality, LIMITS):
        pass


def _documents(paths: Sequence[Path], most: int) -> Iterator[Document]:
    """Documents with at most so many of their pages, evenly spread; those that the engine refuses are named."""
    for path in paths:
        try:
            pages = len(list(page_sizes(path, PAGES.dpi, LIMITS)))
        except SourceError as error:
            print(f"left out: {error}")
            continue
        count = min(most, pages)
        yield Document(path, tuple(index * pages // count for index in range(count)))


def _timed(way: Way, document: Document) -> Cost:
    wall, cpu = time.perf_counter(), time.process_time()
    way(document)
    return Cost(time.perf_counter() - wall, time.process_time() - cpu)


def _round(documents: Sequence[Document], pool: ProcessPoolExecutor, turn: int, advance: Callable[[], None]) -> Round:
    """Every document both ways in this process, which way first in turn; then all of them by the workers."""
    costs = {NAIVE: Cost(), ONE: Cost()}
    for index, document in enumerate(documents):
        ways: list[tuple[str, Way]] = [(NAIVE, naive), (ONE, engine)]
        for name, way in ways if (index + turn) % 2 else reversed(ways):
            costs[name].add(_timed(way, document))
        advance()
    began = time.perf_counter()
    shards = list(pool.map(partial(_timed, engine), sorted(documents, key=_size, reverse=True)))
    together = Cost(time.perf_counter() - began, sum(cost.cpu for cost in shards))
    advance()
    return {**costs, TWO: together}


def _size(document: Document) -> tuple[int, int]:
    return len(document.numbers), document.path.stat().st_size


@contextmanager
def _workers() -> Iterator[ProcessPoolExecutor]:
    """Yield worker processes that have already started, because a build pays for their start only once."""
    context = multiprocessing.get_context("spawn")
    ready = context.Barrier(PROCESSES + 1, timeout=PATIENCE)
    with ProcessPoolExecutor(PROCESSES, context, _start, (ready,)) as pool:
        for _ in range(PROCESSES):
            pool.submit(int)
        ready.wait()
        yield pool


def _start(ready: Barrier) -> None:
    """Load what rendering loads, then wait for the others."""
    import pymupdf  # noqa: F401
    from PIL import Image

    Image.preinit()
    ready.wait()


def _show(rounds: Sequence[Round], documents: Sequence[Document]) -> None:
    pages = sum(len(document.numbers) for document in documents)
    print(f"{pages} pages of {len(documents)} documents, {PAGES.dpi} DPI, {len(rounds)} rounds: medians (range)")
    print(f"{'':24}{'cores':>6}{'pages/s':>10}   {'ratio':24}target")
    for name, target in TARGETS.items():
        cores = statistics.median(done[name].cpu / done[name].wall for done in rounds)
        rate = pages / statistics.median(done[name].wall for done in rounds)
        ratio = spread([done[NAIVE].wall / done[name].wall for done in rounds]) if target else ""
        print(f"{name:24}{cores:6.2f}{rate:10.1f}   {ratio:24}{target}".rstrip())


if __name__ == "__main__":
    main()
