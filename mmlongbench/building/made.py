"""What the shards of a build have made, compared with what stands in the release before the lock is written."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mmlongbench.building.assets import asset_shards
from mmlongbench.building.build_dir import BuildDir, Shard
from mmlongbench.building.build_plan import DatasetPlan
from mmlongbench.building.dataset import open_dataset
from mmlongbench.building.engine import Engine
from mmlongbench.building.source_files import Hashed, hash_files
from mmlongbench.errors import BuildError
from mmlongbench.lengths import format_length
from mmlongbench.release.layout import IMAGES


def cell_shards(plan: DatasetPlan) -> list[Shard]:
    """One shard for each length of a dataset."""
    return [Shard("cells", plan.spec.name, format_length(length)) for length in plan.spec.lengths]


def check_made(
    plans: Sequence[DatasetPlan], build_dir: BuildDir, files: Mapping[str, Mapping[str, Any]], engine: Engine
) -> None:
    """Make sure that every file stands there as its shard has made it.

    What is another file now, or none, is removed with the result of its shard, so that it is made again. Files that
    other machines have put to a URL are not here, and not compared.

    Raises:
        BuildError: a file was changed; it is named.

    """
    here = [path for path in files if engine.has_all_files or (build_dir.out / path).exists()]
    with engine.progress.bar("finish: files compared", len(here)) as advance:
        found = dict(hash_files([build_dir.out / path for path in here], advance))
    changed = [path for path in here if not _is_same(found[build_dir.out / path], files[path])]
    if not changed:
        return
    gone = set(changed)
    for path, shard in _makers(plans, build_dir):
        if path in gone:
            (build_dir.out / path).unlink(missing_ok=True)
            build_dir.discard(shard)
    more = f", and {len(changed) - 1:,} more files" if len(changed) > 1 else ""
    raise BuildError(
        f"{build_dir.out / changed[0]}: is not the file that this build has made there{more}; run the command again "
        "to make it anew"
    )


def _is_same(found: Hashed | OSError, made: Mapping[str, Any]) -> bool:
    return isinstance(found, Hashed) and found.sha256 == made["sha256"]


def _makers(plans: Sequence[DatasetPlan], build_dir: BuildDir) -> Iterator[tuple[str, Shard]]:
    """Every file that a shard has made."""
    for plan in plans:
        for shard in cell_shards(plan):
            yield from ((path, shard) for path in next(build_dir.read(shard))["files"])
        for shard in asset_shards(build_dir, open_dataset(build_dir.out, plan.spec.name)):
            yield from ((f"{IMAGES}/{line['path']}", shard) for line in build_dir.read(shard))
