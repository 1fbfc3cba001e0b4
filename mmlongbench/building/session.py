"""A session: everything that one process holds open of one build. It opens what is asked for, once, and closes it."""

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from mmlongbench.building.build_dir import BuildDir
from mmlongbench.building.build_plan import DatasetPlan, load_plans
from mmlongbench.building.dataset import Dataset, kept_rows, open_dataset
from mmlongbench.building.source_files import SourceFiles
from mmlongbench.building.stages.needed import NeededImages, needed_images
from mmlongbench.manifest.registry import reader_type
from mmlongbench.manifest.resolve import bind_builder
from mmlongbench.task.rows import Row
from mmlongbench.task.spec import TaskSpec


class Session:
    """The open parts of a build, in one process. Each is opened when it is first asked for, and stays open.

    A stage may ask only for what the stages before it have made: a dataset once its documents are read, rows once they
    are chosen, needed images once all records are packed.
    """

    def __init__(self, out: Path) -> None:
        """`out` is the folder of the release; its plan is saved."""
        self.build_dir = BuildDir(out)
        self._plans: dict[str, DatasetPlan] | None = None
        self._datasets: dict[str, Dataset] = {}
        self._rows: dict[str, tuple[Row, ...]] = {}
        self._needed: dict[str, NeededImages] = {}
        self._tasks: dict[str, TaskSpec] = {}
        self._folders: dict[str, str] | None = None
        """Where the images of a dataset go, by its name."""
        self._source_files: SourceFiles | None = None

    def __enter__(self) -> "Session":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def plans(self) -> Mapping[str, DatasetPlan]:
        """The plans of all datasets, by name.

        Raises:
            BuildError: there is none, or it cannot be read.

        """
        if self._plans is None:
            self._plans = load_plans(self.build_dir)
        return self._plans

    def plan(self, name: str) -> DatasetPlan:
        """Return the plan of a dataset."""
        return self.plans[name]

    def task(self, name: str) -> TaskSpec:
        """Return what the builder of a dataset declares; no document need be read."""
        if name not in self._tasks:
            self._tasks[name] = bind_builder(self.plan(name).spec).spec
        return self._tasks[name]

    def dataset(self, name: str) -> Dataset:
        """Return a dataset with its documents, pictures and corpus."""
        if name not in self._datasets:
            self._datasets[name] = open_dataset(self.plan(name), self.build_dir, self.source_files)
        return self._datasets[name]

    def rows(self, name: str) -> tuple[Row, ...]:
        """Return the questions of a dataset, which each of its files asks, in the source's order."""
        if name not in self._rows:
            self._rows[name] = tuple(kept_rows(self.dataset(name), self.build_dir))
        return self._rows[name]

    def needed(self, name: str) -> NeededImages:
        """Return the images that the examples of a dataset show."""
        if name not in self._needed:
            self._needed[name] = needed_images(self, name)
        return self._needed[name]

    def names_sharing_images(self, name: str) -> list[str]:
        """Return the datasets whose images stand in the same folder of the release as those of one."""
        if self._folders is None:
            plans = self.plans.items()
            self._folders = {each: reader_type(plan.spec.reader).image_folder for each, plan in plans}
        return [each for each, folder in self._folders.items() if folder == self._folders[name]]

    @property
    def source_files(self) -> SourceFiles:
        """The source files as they were fingerprinted."""
        if self._source_files is None:
            self._source_files = SourceFiles(self.build_dir)
        return self._source_files

    def close(self) -> None:
        """Close what is open of datasets and source files; what is asked for later opens again."""
        for dataset in self._datasets.values():
            dataset.close()
        self._datasets.clear()
        self._rows.clear()
        self._needed.clear()
        if self._source_files is not None:
            self._source_files.close()
            self._source_files = None
