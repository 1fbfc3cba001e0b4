"""Time and memory of `mmlongbench shortcuts` over releases of any number of examples."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pyarrow as pa
import pyarrow.parquet as pq
from shortcut_bases import REAL, build_drawn, build_real

from mmlongbench.release.items import items_path
from mmlongbench.release.layout import DATA, IMAGES
from mmlongbench.release.release import open_release

_GROUP = 50_000
"""How many items are written at once."""
_RUN = """
import resource, sys
from mmlongbench.cli import main
try:
    main()
except SystemExit as stopped:
    if stopped.code:
        raise
    used = resource.getrusage(resource.RUSAGE_SELF)
    (peak,) = (line for line in open("/proc/self/status") if line.startswith("VmHWM"))
    print(used.ru_utime + used.ru_stime, int(peak.split()[1]) / 1024)
"""


@click.command()
@click.option("--release", type=click.Path(path_type=Path, exists=True, file_okay=False), help="A built release.")
@click.option("--examples", default="1000,10000", show_default=True, help="To how many examples it is multiplied.")
@click.option("--length", default="128K", show_default=True, help="The length of the real release.")
def cost(release: Path | None, examples: str, length: str) -> None:
    """Seconds and memory of the command, for a release as it is and for one whose questions are multiplied.

    Each copy of a question is about a document of its own, with its own files of page images, or its own texts.
    """
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        built = release or (build_real(root, length) if REAL.is_dir() else build_drawn(root))
        for dataset in open_release(built).datasets:
            _show(dataset, "as built", built)
            for n in map(int, examples.split(",")):
                multiplied = multiply(built, dataset, n, root / f"{dataset} {n}")
                _show(dataset, f"{n} examples", multiplied)
                shutil.rmtree(multiplied)


def _show(dataset: str, what: str, release: Path) -> None:
    started = time.perf_counter()
    command = [sys.executable, "-c", _RUN, "shortcuts", str(release), "--dataset", dataset, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    *findings, used = done.stdout.splitlines()
    cpu, peak = map(float, used.split())
    wall = time.perf_counter() - started
    click.echo(f"{dataset:<16} {what:<16} {cpu:7.1f} s of CPU  {wall:7.1f} s  {peak:6.0f} MB  {len(findings)} findings")


def multiply(release: Path, dataset: str, n: int, out: Path) -> Path:
    """Write a release with the questions of a dataset repeated up to n examples, at its longest length."""
    opened = open_release(release)
    length = opened.lengths(dataset)[-1]
    name = opened.file(dataset, length).name
    shutil.copytree(release, out, copy_function=os.link)
    for path in (out / DATA / name, items_path(out, name)):
        path.unlink()  # a hard link: the release that was copied keeps its file
    lines = (release / DATA / name).read_text("utf-8").splitlines()
    units: dict[str, list[dict[str, Any]]] = {}
    for row in pq.read_table(items_path(release, name)).to_pylist():
        units.setdefault(row["id"], []).append(row)
    schema = pq.read_schema(items_path(release, name))
    with (out / DATA / name).open("w") as file, pq.ParquetWriter(items_path(out, name), schema) as writer:
        rows: list[dict[str, Any]] = []
        for at, line in _repeated(lines, n):
            record = json.loads(line)
            rows += [_renamed(row, at, out) for row in units[str(record["id"])]]
            file.write(f"{json.dumps(_renamed(record, at, out))}\n")
            if len(rows) > _GROUP:
                writer.write_table(pa.Table.from_pylist(rows, schema))
                rows = []
        writer.write_table(pa.Table.from_pylist(rows, schema))
    return out


def _repeated(lines: list[str], n: int) -> Iterator[tuple[int, str]]:
    yield from ((number // len(lines), lines[number % len(lines)]) for number in range(n))


def _renamed(row: dict[str, Any], copy: int, out: Path) -> dict[str, Any]:
    """Return a record or an item of a copy: its id, its document, the paths of its images and its texts are its own."""
    found = {**row, "id": f"{row['id']}x{copy}"}
    if "doc_name" in row:
        found["doc_name"] = f"{row['doc_name']}x{copy}"
    if row.get("image"):
        found["image"] = _path(row["image"], copy)
    if "page_list" in row:
        found["page_list"] = [_path(each, copy) for each in row["page_list"]]
        for old, new in zip(row["page_list"], found["page_list"], strict=True):
            path = out / IMAGES / new
            if (out / IMAGES / old).is_file() and not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                path.hardlink_to(out / IMAGES / old)
    if "page_text_list" in row:
        found["page_text_list"] = [f"{each} {copy}" for each in row["page_text_list"]]
    return found


def _path(path: str, copy: int) -> str:
    folder, document, page = path.rsplit("/", 2)
    return f"{folder}/{document}x{copy}/{page.replace(document, f'{document}x{copy}')}"
