"""Cost against length: what a token of packed and written examples costs at 8K to 1M, for every installed builder.

The records stage alone, warm: documents read, prices kept, pictures decoded. Each cell has a process of its own, which
does its questions once and then again and again; medians of these rounds are shown, in seconds of CPU and of wall time
for a million tokens, and the most memory that the process ever had. What a question costs at any length weighs most at
8K, so the ratio of 1M to the cheapest length is told too: that one shows whether anything grows faster than the length.
"""

import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from worlds import QUESTIONS, WORLDS, run_stages

from mmlongbench.building.build_dir import Shard
from mmlongbench.building.session import Session
from mmlongbench.building.shard_results import RECORDS, PackedRecord
from mmlongbench.building.stages.records import pack_rows
from mmlongbench.lengths import K, format_length, parse_length
from mmlongbench.manifest.model import Manifest
from mmlongbench.manifest.plugins import installed
from mmlongbench.task.builder import SharedContextBuilder

LENGTHS = "8K,32K,128K,512K,1M"
TIME, MEMORY = 1.5, 2.0
"""Targets: the largest ratio of 1M to 8K."""


@dataclass(frozen=True, slots=True)
class Cell:
    """What one process measured."""

    length: int
    examples: int
    """Seconds of one round."""
    fill: float
    """The smallest."""
    rounds: int
    cpu: float
    """Seconds of a million tokens."""
    wall: float
    peak: float
    """Memory in MB."""


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--only", default="", help="Builders whose names begin so.")
@click.option("--lengths", default=LENGTHS, show_default=True)
@click.option("--seconds", default=3.0, show_default=True, help="Least time for each cell.")
def main(only: str, lengths: str, seconds: float) -> None:
    """Print a table of builders and lengths."""
    print(f"{'builder':<16}{'length':>7}{'examples':>9}{'fill':>7}{'rounds':>7}{'s/Mtoken':>10}{'wall':>8}{'MB':>6}")
    for plugin in installed("builder"):
        if not plugin.name.startswith(only):
            continue
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "release"
            alone(_prepare, plugin.name, out)
            cells = [alone(_measure, plugin.name, out, parse_length(length), seconds) for length in lengths.split(",")]
        _show(plugin.name, cells)


def alone(function: Any, *arguments: Any) -> Any:  # noqa: ANN401  (what it gives)
    """The result of a function in a process of its own."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        return pool.submit(function, *arguments).result()


def _prepare(builder: str, out: Path) -> None:
    """Draw the source of a builder, read its documents, choose its questions, search its negatives."""
    root = out.parent / "source"
    root.mkdir()
    dataset = {**WORLDS[builder](root), "name": builder, "builder": builder, "lengths": ["8K"], "seed": 42}
    run_stages(Manifest.model_validate({"datasets": [dataset]}), out).close()


def _measure(builder: str, out: Path, length: int, seconds: float) -> Cell:
    """Pack and write some questions at a length: as many as make about a million tokens, at least one."""
    session = Session(out)
    dataset, rows, build_dir = session.dataset(builder), session.questions(builder), session.build_dir
    if not isinstance(dataset.builder, SharedContextBuilder):
        rows = rows[: max(1, min(QUESTIONS, 1024 * K // length))]
    shard = Shard("records", builder, f"{format_length(length)}/measured")
    cpu, wall = list[float](), list[float]()
    while len(cpu) < 4 or sum(wall[1:]) < seconds:  # the first round fills the caches
        clocks = time.process_time(), time.perf_counter()
        build_dir.write(shard, (line for line, _ in pack_rows(dataset, rows, length)))
        cpu.append(time.process_time() - clocks[0])
        wall.append(time.perf_counter() - clocks[1])
    peak = _peak()  # before the lines are read
    records = [line.record for line in build_dir.read(shard, RECORDS) if isinstance(line, PackedRecord)]
    used = [(record["length"], record["tokens"]["reserve"]) for record in records]
    tokens, least = sum(prompt for prompt, _ in used) / 1e6, min(map(sum, used))
    cost, elapsed = (statistics.median(each[1:]) / tokens for each in (cpu, wall))
    return Cell(length, len(used), least / length, len(cpu) - 1, cost, elapsed, peak)


def _peak() -> float:
    """Return the peak memory of this process; `getrusage` would include that of its parent at the start."""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


def _show(builder: str, cells: Sequence[Cell]) -> None:
    for cell in cells:
        print(
            f"{builder:<16}{format_length(cell.length):>7}{cell.examples:>9}{cell.fill:>7.3f}{cell.rounds:>7}"
            f"{cell.cpu:>10.4f}{cell.wall:>8.4f}{cell.peak:>6.0f}"
        )
    first, last = cells[0], cells[-1]
    least = min(cell.cpu for cell in cells)
    print(
        f"{'':<16}{format_length(last.length)} / {format_length(first.length)}: time {last.cpu / first.cpu:.2f} "
        f"(target <= {TIME}), memory {last.peak / first.peak:.2f} (target <= {MEMORY}); "
        f"time / the cheapest length {last.cpu / least:.2f}"
    )


if __name__ == "__main__":
    main()
