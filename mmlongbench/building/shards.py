"""The shard functions of the stages; an engine maps them, in any order, over any processes."""

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from mmlongbench.building.assets import copy_pictures, forget_assets, reading, render_document
from mmlongbench.building.build_dir import BuildDir, Shard, Stage
from mmlongbench.building.build_plan import DatasetPlan, load_plan
from mmlongbench.building.cells import write_cell
from mmlongbench.building.dataset import limits_of, open_dataset
from mmlongbench.building.records import pack_block, rows_of
from mmlongbench.building.sampling import choose_rows
from mmlongbench.building.search import find_negatives
from mmlongbench.building.source_files import source_files
from mmlongbench.documents.page_store import Pages, keys_and_texts_of, keys_of, sizes_of, texts_of
from mmlongbench.errors import SourceError
from mmlongbench.manifest.model import DatasetSpec
from mmlongbench.manifest.resolve import bind_builder
from mmlongbench.task.spec import TaskSpec


def run_shard(out: Path, shard: Shard) -> float:
    """Do one shard, unless it is done; the seconds it took."""
    build_dir, begun = BuildDir(out), time.perf_counter()
    with build_dir.lock_shard(shard), _collected_seldom():
        if not build_dir.is_done(shard):
            build_dir.write(shard, _unchanged(build_dir, shard))
    return time.perf_counter() - begun


def _unchanged(build_dir: BuildDir, shard: Shard) -> Iterator[Any]:
    """The result of a shard, which is kept only if what it was made of is what was fingerprinted."""
    with source_files(build_dir.out).unchanged_tables(shard.dataset):
        yield from _STAGES[shard.stage](build_dir, shard)


@contextmanager
def _collected_seldom() -> Iterator[None]:
    """Let Python look for reference cycles less often: shards make millions of values and hardly any cycle."""
    before = gc.get_threshold()
    gc.set_threshold(50_000, 20, 20)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def forget() -> None:
    """Forget what this process knows of builds: a new one may use the same folder."""
    for known in (open_dataset, _plan, rows_of, source_files):
        known.cache_clear()
    forget_assets()


@cache
def _plan(out: Path, dataset: str) -> tuple[DatasetPlan, TaskSpec]:
    plan = load_plan(BuildDir(out), dataset)
    return plan, bind_builder(plan.spec).spec


def _read_document(build_dir: BuildDir, shard: Shard) -> Iterator[Any]:
    """One document: the sizes of its pages, and what else the task asks of them; or what is wrong with it."""
    plan, asked = _plan(build_dir.out, shard.dataset)
    file = plan.documents[shard.name]
    with reading(build_dir, shard.dataset, file):
        read = _pages(file.pages, plan.spec, asked)
    yield read


def _pages(document: Pages, spec: DatasetSpec, asked: TaskSpec) -> dict[str, Any]:
    """What the task asks of the pages of a document, or what is wrong with them."""
    limits = limits_of(spec)
    try:
        read: dict[str, Any] = {"pages": sizes_of(document, spec.pages.dpi, limits)}
        if asked.page_keys and asked.page_texts:
            found = list(keys_and_texts_of(document, limits, ocr=spec.pages.ocr))
            read |= {"keys": [key for key, _ in found], "texts": [text for _, text in found]}
        elif asked.page_keys:
            read["keys"] = list(keys_of(document, limits))
        elif asked.page_texts:
            read["texts"] = list(texts_of(document, limits, ocr=spec.pages.ocr))
    except SourceError as error:
        return {"fault": error.fault.fields()}
    return read


def _choose(build_dir: BuildDir, shard: Shard) -> Iterator[Any]:
    """All rows of a dataset: which questions are in every file."""
    yield from choose_rows(open_dataset(build_dir.out, shard.dataset))


_STAGES: dict[Stage, Callable[[BuildDir, Shard], Iterator[Any]]] = {
    "documents": _read_document,
    "rows": _choose,
    "negatives": find_negatives,
    "records": pack_block,
    "assets": render_document,
    "pictures": copy_pictures,
    "cells": write_cell,
}
