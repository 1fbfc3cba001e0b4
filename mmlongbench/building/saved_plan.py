"""The plan of an unfinished build as a file: a later build that continues it, and every worker, reads it."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from pydantic import TypeAdapter

from mmlongbench.building.build_dir import BuildDir
from mmlongbench.building.build_plan import DatasetPlan
from mmlongbench.building.source_files import save_source_files
from mmlongbench.errors import BuildError
from mmlongbench.io.files import write_whole
from mmlongbench.release.lock import versions

FORMAT: Literal[5] = 5
"""The format version of the plan file."""


@dataclass(frozen=True, slots=True)
class SavedDataset:
    """The plan of one dataset, as it is saved."""

    plan: DatasetPlan
    public: dict[str, Any]
    """Everything that decides the release's bytes, as `DatasetPlan.public` returned it."""


@dataclass(frozen=True, slots=True)
class SavedPlan:
    """The plan of an unfinished build, as it is saved."""

    versions: dict[str, str]
    root: str
    """The path of the working folder when the plan was saved. If the folder has been moved, `load_interrupted_plan`
    changes all saved paths that begin with this path."""
    datasets: list[SavedDataset]
    format: Literal[5] = FORMAT
    """The format version of this file; a build with another version cannot be continued."""

    @property
    def plans(self) -> dict[str, DatasetPlan]:
        """Return the plan of each dataset, by name."""
        return {each.plan.spec.name: each.plan for each in self.datasets}

    @property
    def public(self) -> list[dict[str, Any]]:
        """Return `SavedDataset.public` of each dataset, in order."""
        return [each.public for each in self.datasets]


_SAVED = TypeAdapter(SavedPlan)


def load_interrupted_plan(build_dir: BuildDir) -> SavedPlan | None:
    """Return the plan that an interrupted build has saved; None if there is none or it is damaged.

    The folder of the build may have been moved since the plan was saved.

    Raises:
        BuildError: the plan has the format of an earlier or later version.

    """
    try:
        saved: object = json.loads(build_dir.plan.read_bytes().decode("utf-8", "surrogateescape"))
        if _is_of_another_version(saved):
            raise BuildError(
                f"--out {build_dir.out}: holds an unfinished build of another version of mmlongbench; finish it with "
                "that version, give another folder, or remove this one"
            )
        if not isinstance(saved, dict):
            return None
        return _SAVED.validate_python(_moved(saved, saved["root"], str(build_dir.root)))
    except FileNotFoundError:
        return None
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):  # cut off, or not a plan
        return None


def _is_of_another_version(saved: object) -> bool:
    """Return whether a JSON value is a complete plan in another format than `FORMAT`. Plans in the first format have no
    version number.
    """
    return (
        isinstance(saved, dict) and {"root", "versions", "datasets"} <= saved.keys() and saved.get("format") != FORMAT
    )


def _moved(saved: object, before: str, now: str) -> object:
    """Return a copy of saved values for a working folder that was moved from `before` to `now`: each path below
    `before`, such as that of a sample or a corpus, becomes a path below `now`.
    """
    if before == now:
        return saved
    if isinstance(saved, str):
        return now + saved.removeprefix(before) if saved.startswith(f"{before}/") else saved
    if isinstance(saved, list):
        return [_moved(each, before, now) for each in saved]
    return {key: _moved(each, before, now) for key, each in saved.items()} if isinstance(saved, dict) else saved


def save_plans(plans: list[DatasetPlan], build_dir: BuildDir) -> None:
    """Write the plan to the file where workers, and a later build that continues this one, find it."""
    save_source_files(build_dir, (file for plan in plans for file in plan.files))
    datasets = [SavedDataset(replace(plan, files=()), plan.public()) for plan in plans]
    _write(SavedPlan(versions(), str(build_dir.root), datasets), build_dir)


def save_page_seconds(build_dir: BuildDir, seconds: Mapping[str, float]) -> None:
    """Change the time limits of pages in a saved plan; `seconds` has the new limit of each dataset, by name. No byte of
    a release depends on these limits.
    """
    saved = load_interrupted_plan(build_dir)
    if saved is None:
        return
    datasets = [replace(each, plan=_within(each.plan, seconds)) for each in saved.datasets]
    if datasets != saved.datasets:
        _write(replace(saved, root=str(build_dir.root), datasets=datasets), build_dir)


def _within(plan: DatasetPlan, seconds: Mapping[str, float]) -> DatasetPlan:
    """Return a plan with the time limit that `seconds` has for its dataset; without one, the limit stays as it is."""
    limit = seconds.get(plan.spec.name, plan.spec.limits.seconds_a_page)
    limits = replace(plan.spec.limits, seconds_a_page=limit)
    return replace(plan, spec=plan.spec.model_copy(update={"limits": limits}))


def _write(saved: SavedPlan, build_dir: BuildDir) -> None:
    data = _SAVED.dump_python(saved)  # JSON mode would lose names of documents that are not valid Unicode
    text = json.dumps(data, ensure_ascii=False, default=os.fspath)  # everything but paths is JSON already
    write_whole(build_dir.plan, [text.encode("utf-8", "surrogateescape")])


def load_plans(build_dir: BuildDir) -> dict[str, DatasetPlan]:
    """Return the saved plans of all datasets, by name.

    Raises:
        BuildError: there is no plan, or it cannot be read.

    """
    found = load_interrupted_plan(build_dir)
    if found is None:
        raise BuildError(f"{build_dir.plan}: is missing or damaged; run the build, or its stage `prepare`, again")
    return found.plans
