"""The stages of a build in their order, and the shards of each: the one list that every way of building follows."""

from collections.abc import Callable
from typing import TypeAlias

from mmlongbench.building.assets import asset_shards
from mmlongbench.building.build_dir import BuildDir, Shard
from mmlongbench.building.build_plan import DatasetPlan
from mmlongbench.building.dataset import open_dataset
from mmlongbench.building.made import cell_shards
from mmlongbench.building.records import blocks_of, questions_of, record_shards, rows_of

_List: TypeAlias = Callable[[DatasetPlan, BuildDir], list[Shard]]


def _documents(plan: DatasetPlan, build_dir: BuildDir) -> list[Shard]:
    return [Shard("documents", plan.spec.name, document) for document in plan.documents]


def _rows(plan: DatasetPlan, build_dir: BuildDir) -> list[Shard]:
    return [Shard("rows", plan.spec.name, "all")]


def _negatives(plan: DatasetPlan, build_dir: BuildDir) -> list[Shard]:
    name = plan.spec.name
    rows = len(rows_of(build_dir.out, name)) if plan.corpus else 0
    return [Shard("negatives", name, block, questions_of(block, rows)) for block in blocks_of(rows)]


def _records(plan: DatasetPlan, build_dir: BuildDir) -> list[Shard]:
    return record_shards(build_dir.out, plan.spec.name, plan.spec.lengths)


def _images(plan: DatasetPlan, build_dir: BuildDir) -> list[Shard]:
    return asset_shards(build_dir, open_dataset(build_dir.out, plan.spec.name))


STAGES: dict[str, _List] = {
    "documents": _documents,
    "rows": _rows,
    "negatives": _negatives,
    "records": _records,
    "images": _images,
    "cells": lambda plan, build_dir: cell_shards(plan),
}
"""By name; the shards of one are known once those before it are done."""
