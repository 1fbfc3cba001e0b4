"""Finish: what the shards have counted goes into the lock, which is written last."""

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from mmlongbench.building.assets import asset_shards
from mmlongbench.building.build_dir import BuildDir, Shard
from mmlongbench.building.build_plan import CorpusPlan, DatasetPlan
from mmlongbench.building.cells import described
from mmlongbench.building.dataset import open_dataset
from mmlongbench.building.engine import Engine
from mmlongbench.building.fingerprints import files_of
from mmlongbench.building.made import cell_shards, check_made
from mmlongbench.building.records import blocks_of, rows_of
from mmlongbench.building.source_files import one_spelling, source_files
from mmlongbench.corpus.info import read_info
from mmlongbench.documents.page_images import PageImages
from mmlongbench.errors import SourceChangedError
from mmlongbench.io.atomic import sweep, write_whole
from mmlongbench.io.progress import Progress
from mmlongbench.manifest.errata import load_errata
from mmlongbench.release.layout import IMAGES, ITEMS, LOCK, REJECTS
from mmlongbench.release.lock import lock_bytes, versions
from mmlongbench.task.formats import to_json
from mmlongbench.task.sources import ImageClass, ImageClasses


def finish(plans: list[DatasetPlan], build_dir: BuildDir, engine: Engine) -> dict[str, Any]:
    """Write what a release whose shards are all done still lacks, the lock last; returns the lock.

    Raises:
        SourceChangedError: a source is no longer what was fingerprinted.
        BuildError: a file of the release is no longer what a shard has made.

    """
    files: dict[str, dict[str, Any]] = {}
    datasets = {}
    for plan in plans:
        cells = {}
        for shard in cell_shards(plan):
            made = next(build_dir.read(shard))
            files.update(made["files"])
            cells[shard.name] = made["cell"]
        files.update({path: described(build_dir.out / path) for path in _write_negatives(plan, build_dir)})
        datasets[plan.spec.name] = _summary(plan, build_dir, cells)
        files.update(_images(plan, build_dir))
    write_whole(build_dir.out / REJECTS, map(to_json, _rejects(plans, build_dir)))
    files[REJECTS] = described(build_dir.out / REJECTS)
    lock = {
        "format": 1,
        "versions": versions(),
        "manifest": [plan.public() for plan in plans],
        "datasets": datasets,
        "files": dict(sorted(files.items())),
    }
    check_made(plans, build_dir, files, engine)
    check_sources(plans, build_dir, engine.progress)
    sweep(build_dir.out)
    write_whole(build_dir.out / LOCK, lock_bytes(lock))
    return lock


def _summary(plan: DatasetPlan, build_dir: BuildDir, cells: dict[str, dict[str, int]]) -> dict[str, Any]:
    """Counts of a dataset, and the documents whose names were changed or that could not be used."""
    dataset = open_dataset(build_dir.out, plan.spec.name)
    (counts,) = (line["counts"] for line in build_dir.read(_all_rows(plan)) if "counts" in line)
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
        **({"corpus": _corpus(plan.corpus), "negatives": _negatives(plan, build_dir)} if plan.corpus else {}),
        **({"classes": _classes(dataset.world.image_classes)} if dataset.world.image_classes else {}),
        "licence": plan.spec.licence,
    }


def _corpus(plan: CorpusPlan) -> dict[str, Any]:
    """How much a corpus holds; `wikidata_ids` is null where it was built before these were kept."""
    info = read_info(plan.folder)
    ids = info.wikidata_ids if info.keeps_wikidata_ids else None
    return {"articles": info.articles, "passages": info.passages, "wikidata_ids": ids}


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


def _images(plan: DatasetPlan, build_dir: BuildDir) -> dict[str, dict[str, Any]]:
    shards = asset_shards(build_dir, open_dataset(build_dir.out, plan.spec.name))
    lines = (line for shard in shards for line in build_dir.read(shard))
    return {f"{IMAGES}/{line['path']}": {"bytes": line["bytes"], "sha256": line["sha256"]} for line in lines}


def _write_negatives(plan: DatasetPlan, build_dir: BuildDir) -> Iterator[str]:
    """How many passages were turned away for each question, and why."""
    if plan.corpus:
        path = f"{ITEMS}/{plan.spec.name}.negatives.jsonl"
        found = ({"id": line["id"], "clean": len(line["numbers"]), **line} for line in _searched(plan, build_dir))
        kept = ({key: line[key] for key in ("id", "clean", "rejected")} for line in found)
        write_whole(build_dir.out / path, map(to_json, kept))
        yield path


def _searched(plan: DatasetPlan, build_dir: BuildDir) -> Iterator[dict[str, Any]]:
    for block in blocks_of(len(rows_of(build_dir.out, plan.spec.name))) if plan.corpus else ():
        yield from build_dir.read(Shard("negatives", plan.spec.name, block))


def _negatives(plan: DatasetPlan, build_dir: BuildDir) -> dict[str, Any]:
    """Passages turned away by reason, the fewest that remained for a question, and a digest of what was found."""
    rejected: Counter[str] = Counter()
    fewest, found = [], hashlib.sha256()
    for line in _searched(plan, build_dir):
        rejected.update(line["rejected"])
        fewest.append(len(line["numbers"]))
        found.update(to_json(line))
    counts = dict(sorted(rejected.items()))
    return {"rejected": counts, "fewest_clean": min(fewest, default=0), "sha256": found.hexdigest()}


def _rejects(plans: list[DatasetPlan], build_dir: BuildDir) -> Iterator[dict[str, Any]]:
    """Row rejects first, then fit rejects by length, dataset after dataset."""
    for plan in plans:
        for line in (line for shard in (_all_rows(plan), *cell_shards(plan)) for line in build_dir.read(shard)):
            if "reject" in line:
                yield line["reject"]


def _all_rows(plan: DatasetPlan) -> Shard:
    return Shard("rows", plan.spec.name, "all")


def check_sources(plans: Iterable[DatasetPlan], build_dir: BuildDir, progress: Progress) -> None:
    """Hash all sources again, and list them again, to make sure that they are what was fingerprinted.

    Raises:
        SourceChangedError: a file has changed, is gone or is new.

    """
    files = source_files(build_dir.out)
    with progress.bar("finish: sources compared", files.count()) as advance:
        files.check_all(advance)
    for plan in plans:
        for name, path in plan.sources.items():
            known = files.names(plan.spec.name, f"source.{name}")
            for new in (found for found in files_of(path) if one_spelling(found) not in known):
                raise SourceChangedError(
                    f"{new}: came into the source while the release was built (dataset {plan.spec.name!r}, "
                    f"source.{name}); take it out and run the command again, or remove {build_dir.out} and build anew"
                )
