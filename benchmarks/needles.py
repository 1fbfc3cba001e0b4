"""Needles in haystacks at every length: images an example, fill, worst depth, and what six depths cost against one.

Builds all eight datasets from drawn photographs of COCO's sizes and from the pages of PDFs as web pages. Photographs
are made up after COCO's sizes, so their number an example is a check of the arithmetic, not a reproduction.
"""

import json
import shutil
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
from haystacks import TASKS, draw_photographs, draw_web_pages
from sources import open_pdfs, spread
from staged import run_stages

from mmlongbench.building.build import build
from mmlongbench.building.executors import LocalExecutor
from mmlongbench.draws import Draws
from mmlongbench.io.progress import Progress
from mmlongbench.manifest.model import Manifest
from mmlongbench.packing.pack import JOINTS, Packed, examples, pack
from mmlongbench.packing.place import Placement, place_units
from mmlongbench.packing.pricing import Pricer
from mmlongbench.release.layout import DATA

PHOTOGRAPHS = {"vh_single": "single", "vh_multi": "several"}
LENGTHS = "8K,16K,32K,64K,128K"


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--documents", type=click.Path(path_type=Path, exists=True, file_okay=False), help="PDFs to take pages of."
)
@click.option("--out", type=click.Path(path_type=Path), help="Keep the release there.")
@click.option("--questions", default=10, show_default=True, help="Of each dataset.")
@click.option("--photographs", default=1500, show_default=True, help="In the pool.")
@click.option("--lengths", default=LENGTHS, show_default=True)
@click.option("--workers", default=2, show_default=True)
@click.option("--plain", is_flag=True, help="Photographs with `finish: none`, the paper's way.")
@click.option("--only", default="", help="Datasets whose names begin so.")
def main(
    documents: Path | None,
    out: Path | None,
    questions: int,
    photographs: int,
    lengths: str,
    workers: int,
    plain: bool,
    only: str,
) -> None:
    """Build the eight datasets and print what they hold."""
    with tempfile.TemporaryDirectory() as folder, open_pdfs(documents) as pdfs:
        drawn = Path(folder)
        datasets = []
        if "vh_".startswith(only[:3]):
            datasets += _photographs(drawn / "vh", photographs, questions, plain)
        if only[:3] != "vh_":
            datasets += _web_pages(drawn / "web", pdfs, questions)
        wanted = [{**d, "lengths": lengths.split(",")} for d in datasets if d["name"].startswith(only)]
        manifest = Manifest.model_validate({"datasets": wanted})
        release = out or drawn / "release"
        started = time.perf_counter()
        lock = build(manifest, release, LocalExecutor(workers, Progress(is_shown=False))).lock.public()
        click.echo(f"built in {time.perf_counter() - started:.0f} s")
        for name, data in lock["datasets"].items():
            click.echo(f"{name}: {data['questions']} {data['cells']}")
        for path in sorted((release / DATA).rglob("*.jsonl")):
            _show(path)
        if any(d["name"] == "retrieval-text" for d in wanted):
            _depths(manifest, drawn / "again")
            shutil.rmtree(drawn / "again")


def _photographs(folder: Path, photographs: int, questions: int, plain: bool) -> list[dict[str, Any]]:
    sources = draw_photographs(folder, photographs, questions)
    made = []
    for name, needles in PHOTOGRAPHS.items():
        source = {**sources, "questions": folder / f"{name.removeprefix('vh_')}.json"}
        options = {"needles": needles, "finish": "none" if plain else "closing"}
        made.append(_dataset(name, "visual_haystack", "visual_haystacks", source, options))
    return made


def _web_pages(folder: Path, pdfs: list[Path], questions: int) -> list[dict[str, Any]]:
    sources = draw_web_pages(pdfs, folder, questions)
    made = []
    for name in TASKS:
        task, needle = name.split("-")
        source = {**sources, "questions": folder / f"{name}.jsonl"}
        made.append(_dataset(name, "mm_niah", "mm_niah", source, {"task": task, "needle": needle}))
    return made


def _dataset(
    name: str, builder: str, reader: str, source: Mapping[str, Path], options: Mapping[str, str]
) -> dict[str, Any]:
    paths = {key: str(path) for key, path in source.items()}
    return {"name": name, "builder": builder, "reader": reader, "source": paths, "options": dict(options)}


def _show(path: Path) -> None:
    """One line a file."""
    length = int(path.stem.split("_K")[1].split("_")[0]) * 1024
    fills, images, errors = [], [], []
    for line in path.read_text("utf-8").splitlines():
        record = json.loads(line)
        used = record["length"] + record["tokens"]["reserve"]
        fills.append(used / length)
        shown = record["ctxs"] if "image_list" not in record else record["image_list"]
        images.append(len(shown))
        if "depth" in record:
            errors.append(abs(record["depth"] - record["depth_achieved"]) * length)
    worst = f", worst depth {max(errors):.0f} tokens" if errors else ""
    click.echo(
        f"{path.name:<44} n={len(fills):<4} fill {statistics.mean(fills):.4f} [{min(fills):.4f}, {max(fills):.4f}] "
        f"images {statistics.mean(images):.1f}{worst}"
    )


def _depths(manifest: Manifest, out: Path, rounds: int = 3) -> None:
    """Return the seconds for retrieval-text at its longest length: to choose and place units, and to join prompts."""
    (spec,) = (dataset for dataset in manifest.datasets if dataset.name == "retrieval-text")
    small = spec.model_copy(update={"lengths": (spec.admission_length,)})
    session = run_stages(Manifest(datasets=(small,)), out)
    dataset, rows = session.dataset(spec.name), session.questions(spec.name)
    budget = dataset.budget(max(spec.lengths))
    whats = ("planned at one depth", "planned at all depths", "packed at one depth", "packed at all depths")
    spent: dict[str, list[float]] = {what: [] for what in whats}
    for turn in range(rounds + 1):
        for what, seconds in spent.items():
            started = time.perf_counter()
            for row in rows:
                draws = dataset.draws(row.id)
                draft = dataset.builder.draft(row, dataset.sources, draws)
                places = dataset.placements() if "all" in what else dataset.placements()[2:3]
                if what.startswith("planned"):
                    _plan(pack(draft, budget, dataset.pricer, JOINTS), places, dataset.pricer, draws)
                else:
                    examples(draft, budget, places, dataset.pricer, draws)
            if turn:  # the first round fills the cache of prices
                seconds.append(time.perf_counter() - started)
    for what, seconds in spent.items():
        click.echo(f"{len(rows)} questions of retrieval-text {what}: {spread(seconds)} s")
    for what in ("planned", "packed"):
        one, all_six = (statistics.median(spent[f"{what} at {where}"]) for where in ("one depth", "all depths"))
        click.echo(f"{what}, all depths / one depth: {all_six / one:.2f}")


def _plan(packed: Packed, places: Sequence[Placement], pricer: Pricer, draws: Draws) -> None:
    """Units chosen, and where each stands: no prompt is joined."""
    costs = [pricer.unit(unit).total + 2 for unit in packed.units]
    for placement in places:
        place_units(packed.units, costs, placement, draws, pricer.text)


if __name__ == "__main__":
    main()
