"""Finish: merge the shards into the files of the release; the lock is written last."""

import hashlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mmlongbench.building.assets import asset_shards
from mmlongbench.building.dataset import open_dataset
from mmlongbench.building.plan import DatasetPlan
from mmlongbench.building.records import blocks_of, record_shards, rows_of
from mmlongbench.building.work import Shard, Work
from mmlongbench.documents.page_images import PageImages
from mmlongbench.errata import load_errata
from mmlongbench.files import sha256_of, sweep, whole, write_whole
from mmlongbench.formats import to_json
from mmlongbench.packing.budget import format_length
from mmlongbench.release.layout import DATA, IMAGES, ITEMS, LOCK, REJECTS
from mmlongbench.release.lock import lock_bytes, versions
from mmlongbench.world import ImageClass, ImageClasses


def finish(plans: list[DatasetPlan], work: Work) -> dict[str, Any]:
    """Write every file of a release whose shards are all done, the lock last; returns the lock."""
    files: dict[str, dict[str, Any]] = {}
    datasets = {}
    for plan in plans:
        cells = {}
        for length in plan.spec.lengths:
            written = list(_write_cell(plan.spec.name, length, work))
            files.update({path: _described(work.out / path) for path in written})
            cells[format_length(length)] = _cell(plan.spec.name, length, work)
        files.update({path: _described(work.out / path) for path in _write_negatives(plan, work)})
        datasets[plan.spec.name] = _summary(plan, work, cells)
        files.update(_images(plan, work))
    write_whole(work.out / REJECTS, map(to_json, _rejects(plans, work)))
    files[REJECTS] = _described(work.out / REJECTS)
    lock = {
        "format": 1,
        "versions": versions(),
        "manifest": [plan.public() for plan in plans],
        "datasets": datasets,
        "files": dict(sorted(files.items())),
    }
    sweep(work.out)
    write_whole(work.out / LOCK, lock_bytes(lock))
    return lock


def _shards(name: str, length: int, work: Work) -> list[Shard]:
    return record_shards(work.out, name, (length,))


def _lines(name: str, length: int, work: Work) -> Iterator[dict[str, Any]]:
    for shard in _shards(name, length, work):
        yield from work.read(shard)


def _write_cell(name: str, length: int, work: Work) -> Iterator[str]:
    """The public files of a cell and its items, unless nothing fits this length."""
    dataset = open_dataset(work.out, name)
    if not any("record" in line for line in _lines(name, length, work)):
        return
    questions = len(rows_of(work.out, name))
    spec = dataset.builder.spec
    path = spec.files.write(name, length, questions, len(dataset.placements()))
    records = (line["record"] for line in _lines(name, length, work) if "record" in line)
    write_whole(work.out / DATA / path, spec.format.bundle(records))
    yield f"{DATA}/{path}"
    if spec.bundle:
        bundled = spec.bundle.files.write(name, length, questions, len(dataset.placements()))
        lines = (line.get("record", line.get("bundled")) for line in _lines(name, length, work))
        write_whole(work.out / DATA / bundled, spec.bundle.format.bundle(record for record in lines if record))
        yield f"{DATA}/{bundled}"
    items = f"{ITEMS}/{Path(path).with_suffix('.parquet').as_posix()}"
    _write_items(work.out / items, (line["items"] for line in _lines(name, length, work) if "items" in line))
    yield items


def _write_items(path: Path, examples: Iterator[list[dict[str, Any]]]) -> None:
    """One row a unit: where it stands in which prompt, its role and its tokens."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    strings, integers = ("id", "unit", "role", "inside", "image"), ("position", "start", "text_tokens", "image_tokens")
    types = {"placement": pa.float64(), **dict.fromkeys(strings, pa.string()), **dict.fromkeys(integers, pa.int64())}
    schema = pa.schema(types)
    with whole(path) as file, pq.ParquetWriter(file, schema) as writer:
        batch: list[dict[str, Any]] = []
        for items in examples:
            batch += items
            if len(batch) >= 50_000:
                writer.write_table(pa.Table.from_pylist(batch, schema))
                batch = []
        writer.write_table(pa.Table.from_pylist(batch, schema))


def _cell(name: str, length: int, work: Work) -> dict[str, Any]:
    """Examples, fit rejects, examples whose units ran out before the room did, barred units, what should balance."""
    counts = Counter(kind for line in _lines(name, length, work) for kind in ("record", "reject") if kind in line)
    dry = sum(line.get("ran_dry", False) for line in _lines(name, length, work))
    cell: dict[str, Any] = {"examples": counts["record"], "rejected": counts["reject"], "ran_dry": dry}
    for key in ("not_asked", "missing_classes"):
        if number := sum(line.get(key, 0) for line in _lines(name, length, work)):
            cell[key] = number
    left_out: Counter[str] = Counter()
    for line in _lines(name, length, work):
        left_out.update(line.get("left_out", {}))
    if missing := max((line.get("missing", 0) for line in _lines(name, length, work)), default=0):
        cell["missing_units"] = missing
    if left_out:
        cell["left_out"] = dict(sorted(left_out.items()))
    if field := open_dataset(work.out, name).builder.spec.balance:
        values = Counter(str(line["record"][field]) for line in _lines(name, length, work) if "record" in line)
        cell[f"by_{field}"] = dict(sorted(values.items()))
    return cell


def _summary(plan: DatasetPlan, work: Work, cells: dict[str, dict[str, int]]) -> dict[str, Any]:
    """Counts of a dataset, and the documents whose names were changed or that could not be used."""
    dataset = open_dataset(work.out, plan.spec.name)
    (counts,) = (line["counts"] for line in work.read(_all_rows(plan)) if "counts" in line)
    return {
        "questions": counts,
        "cells": cells,
        "documents": {
            "usable": len(dataset.world.documents),
            "refused": {id: str(fault) for id, fault in sorted(dataset.world.faults.items())},
            **({"images_by_dpi": dpis} if (dpis := _images_by_dpi(plan)) else {}),
            "renamed": {file.id: file.name for file in plan.documents.values() if file.id != file.name},
        },
        **({"errata": _errata(plan)} if plan.spec.errata else {}),
        **({"negatives": _negatives(plan, work)} if plan.corpus else {}),
        **({"classes": _classes(dataset.world.image_classes)} if dataset.world.image_classes else {}),
        "licence": plan.spec.licence,
    }


def _images_by_dpi(plan: DatasetPlan) -> dict[str, int]:
    """How many documents are rendered images as the source has them, by DPI."""
    found = Counter(str(file.pages.dpi) for file in plan.documents.values() if isinstance(file.pages, PageImages))
    return {dpi: count for dpi, count in sorted(found.items()) if dpi != "None"}


def _errata(plan: DatasetPlan) -> dict[str, Any]:
    """What the errata say, and who says so; `repaired` and the rejects have what came of it."""
    errata = load_errata(plan.spec.errata) if plan.spec.errata else {}
    return {id: erratum.model_dump(mode="json", exclude_defaults=True) for id, erratum in sorted(errata.items())}


def _classes(found: ImageClasses) -> dict[str, Any]:
    """The splits and their counts, by domain, and the classes that only one of them has."""
    domains: dict[str, list[ImageClass]] = {}
    for each in found.classes.values():
        domains.setdefault(each.domain, []).append(each)
    return {
        "splits": {"exemplars": found.exemplar_split, "tests": found.test_split},
        "domains": {
            domain: {
                "classes": len(classes),
                "exemplars": sum(len(each.exemplars) for each in classes),
                "tests": sum(each.tests for each in classes),
                "without_exemplars": sorted(each.name for each in classes if not each.exemplars),
                "without_tests": sorted(each.name for each in classes if not each.tests),
            }
            for domain, classes in sorted(domains.items())
        },
    }


def _images(plan: DatasetPlan, work: Work) -> dict[str, dict[str, Any]]:
    shards = asset_shards(work, open_dataset(work.out, plan.spec.name))
    lines = (line for shard in shards for line in work.read(shard))
    return {f"{IMAGES}/{line['path']}": {"bytes": line["bytes"], "sha256": line["sha256"]} for line in lines}


def _write_negatives(plan: DatasetPlan, work: Work) -> Iterator[str]:
    """How many passages were turned away for each question, and why."""
    if plan.corpus:
        path = f"{ITEMS}/{plan.spec.name}.negatives.jsonl"
        found = ({"id": line["id"], "clean": len(line["numbers"]), **line} for line in _searched(plan, work))
        kept = ({key: line[key] for key in ("id", "clean", "rejected")} for line in found)
        write_whole(work.out / path, map(to_json, kept))
        yield path


def _searched(plan: DatasetPlan, work: Work) -> Iterator[dict[str, Any]]:
    for block in blocks_of(len(rows_of(work.out, plan.spec.name))) if plan.corpus else ():
        yield from work.read(Shard("negatives", plan.spec.name, block))


def _negatives(plan: DatasetPlan, work: Work) -> dict[str, Any]:
    """Passages turned away by reason, the fewest that remained for a question, and a digest of what was found."""
    rejected: Counter[str] = Counter()
    fewest, found = [], hashlib.sha256()
    for line in _searched(plan, work):
        rejected.update(line["rejected"])
        fewest.append(len(line["numbers"]))
        found.update(to_json(line))
    counts = dict(sorted(rejected.items()))
    return {"rejected": counts, "fewest_clean": min(fewest, default=0), "sha256": found.hexdigest()}


def _rejects(plans: list[DatasetPlan], work: Work) -> Iterator[dict[str, Any]]:
    """Row rejects first, then fit rejects by length, dataset after dataset."""
    for plan in plans:
        shards = [_all_rows(plan)]
        for length in plan.spec.lengths:
            shards += _shards(plan.spec.name, length, work)
        for line in (line for shard in shards for line in work.read(shard)):
            if "reject" in line:
                yield line["reject"]


def _all_rows(plan: DatasetPlan) -> Shard:
    return Shard("rows", plan.spec.name, "all")


def _described(path: Path) -> dict[str, Any]:
    return {"bytes": path.stat().st_size, "sha256": sha256_of(path)}
