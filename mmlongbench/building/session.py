"""A session: everything of one build that one process holds open. Each part is opened once, when it is first needed."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import TracebackType

from mmlongbench.building.build_dir import BuildDir, questions_shard, rows_shard
from mmlongbench.building.build_plan import DatasetPlan
from mmlongbench.building.canary import canary_of
from mmlongbench.building.dataset import Dataset, open_dataset, rows_at
from mmlongbench.building.lines import QUESTIONS, Asked, RowCounts
from mmlongbench.building.released import Released, ReleasedCell
from mmlongbench.building.saved_plan import load_plans
from mmlongbench.building.source_files import SourceFiles
from mmlongbench.building.stages.records import NeededImages, needed_images
from mmlongbench.corpus.corpus import Corpus
from mmlongbench.corpus.retrieval.bm25 import FOLDER, RankBm25Index, find_index
from mmlongbench.corpus.retrieval.dense import ModelSpec, Reranker
from mmlongbench.corpus.retrieval.search import Search
from mmlongbench.errors import BuildError
from mmlongbench.manifest.binding import bind_builder
from mmlongbench.manifest.plugins import reader_type
from mmlongbench.task.rows import Row
from mmlongbench.task.spec import TaskSpec

EMBEDDINGS, RANKINGS = "embeddings", "rankings"
"""Names of folders below `CorpusPlan.cache`."""


def open_search(plan: DatasetPlan) -> Search:
    """Open the search for hard negatives of a dataset (see `Session.search`)."""
    if plan.corpus is None:
        raise BuildError(f"dataset {plan.spec.name!r} has no corpus: name one in its manifest (`corpus: …`)")
    corpus, cache, spec = Corpus.open(plan.corpus.folder), plan.corpus.cache, plan.spec.retrieval
    reranker = None
    if spec.reranker is not None:
        model = ModelSpec(spec.reranker.model, spec.reranker.revision, spec.reranker.trust_remote_code)
        reranker = Reranker.open(model, cache / EMBEDDINGS)
    index = find_index(corpus, cache / FOLDER) if spec.engine == "tantivy" else RankBm25Index(corpus)
    return Search(cache / RANKINGS, corpus, index, spec.k, reranker)


class Session:
    """The open parts of a build in one process. Each is opened when it is first needed, and stays open.

    A stage may use only what earlier stages have made. `dataset` can be called after the stages documents and rows,
    `questions` after the stage questions, and `needed` after the stage records.
    """

    def __init__(self, out: Path) -> None:
        """`out` is the folder of a release whose plan has been saved."""
        self.build_dir = BuildDir(out)
        self._plans: dict[str, DatasetPlan] | None = None
        self._datasets: dict[str, Dataset] = {}
        self._questions: dict[str, tuple[Row, ...]] = {}
        self._searches: dict[str, Search] = {}
        self._needed: dict[str, NeededImages] = {}
        self._tasks: dict[str, TaskSpec] = {}
        self._folders: dict[str, str] | None = None
        """The image folder of each dataset, by the name of the dataset."""
        self._source_files: SourceFiles | None = None
        self._released: Released | None = None

    def __enter__(self) -> "Session":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def plans(self) -> Mapping[str, DatasetPlan]:
        """Return the plans of all datasets, by name.

        Raises:
            BuildError: there is no plan, or it cannot be read.

        """
        if self._plans is None:
            self._plans = load_plans(self.build_dir)
        return self._plans

    def plan(self, name: str) -> DatasetPlan:
        """Return the plan of a dataset."""
        return self.plans[name]

    def task(self, name: str) -> TaskSpec:
        """Return what the builder of a dataset declares; this reads no document."""
        if name not in self._tasks:
            self._tasks[name] = bind_builder(self.plan(name).spec).spec
        return self._tasks[name]

    def dataset(self, name: str) -> Dataset:
        """Return a dataset with its documents, pictures and corpus."""
        if name not in self._datasets:
            opened = open_dataset(self.plan(name), self.build_dir, self.source_files)
            canary = canary_of(self.plans.values()) if self.plan(name).spec.canary else ""
            self._datasets[name] = replace(opened, canary=canary)
        return self._datasets[name]

    def questions(self, name: str) -> tuple[Row, ...]:
        """Return the rows that every file of a dataset asks about, in the source's order."""
        if name not in self._questions:
            self._questions[name] = self._asked(name)
        return self._questions[name]

    def _asked(self, name: str) -> tuple[Row, ...]:
        chosen = list(self.build_dir.read(questions_shard(name), QUESTIONS))
        ids = {line.place: line.id for line in chosen if isinstance(line, Asked)}
        kind = self.dataset(name).reader.row_type
        found = dict(rows_at(ids.keys(), self.build_dir, name, kind))
        counted = [(line.counts.kept, line.rows) for line in chosen if isinstance(line, RowCounts)]
        is_of_these_rows = counted == [(len(ids), self.build_dir.fingerprint(rows_shard(name)))]
        if not is_of_these_rows or {place: row.id for place, row in found.items()} != ids:
            self.build_dir.discard(rows_shard(name))  # either the rows or the choice was changed
            raise self.build_dir.damaged(questions_shard(name))
        return tuple(found.values())

    def search(self, name: str) -> Search:
        """Return the search for hard negatives in the corpus of a dataset.

        Raises:
            BuildError: the dataset has no corpus.
            SourceError: the index is broken or belongs to another corpus.
            ModelError: the reranker's model is not on disk, or the extra `dense` is missing.

        """
        if name not in self._searches:
            self._searches[name] = open_search(self.plan(name))
        return self._searches[name]

    def needed(self, name: str) -> NeededImages:
        """Return the images that the examples of a dataset show."""
        if name not in self._needed:
            self._needed[name] = needed_images(self, name)
        return self._needed[name]

    @property
    def released(self) -> Released | None:
        """The finished release that this build extends; None if it extends none."""
        if self._released is None and self.build_dir.extended:
            self._released = Released(self.build_dir.extended)
        return self._released

    def taken(self, name: str, length: int) -> ReleasedCell | None:
        """Return what the extended release has of a dataset at a length; None if it has nothing."""
        if self.released is None or self.released.kept(name) is None:
            return None
        return self.released.cell(name, length, self.task(name), len(self.dataset(name).placements()))

    def takes_whole(self, name: str, length: int) -> bool:
        """Return whether the build copies the files of a dataset at a length from the release that it extends. It does
        so if the release has the length and the same questions. The questions are the same if their sources and their
        number are the same.
        """
        released = self.released
        if released is None or self.taken(name, length) is None:
            return False
        is_same_source = released.source_hashes(name) == self.plan(name).source_hashes
        return is_same_source and released.kept(name) == len(self.questions(name))

    def names_sharing_images(self, name: str) -> list[str]:
        """Return the names of the datasets whose images are in the same folder of the release as those of `name`;
        `name` is among them.
        """
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
        """Close all open datasets and source files; they are opened again if they are needed later."""
        for dataset in self._datasets.values():
            dataset.close()
        self._datasets.clear()
        self._questions.clear()
        self._searches.clear()
        self._needed.clear()
        self._released = None
        if self._source_files is not None:
            self._source_files.close()
            self._source_files = None
