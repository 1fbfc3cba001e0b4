"""A session: everything of one build that one process holds open. Each part is opened once, when it is first needed."""

from array import array
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from pathlib import Path

from mmlongbench.building.build_dir import BuildDir, Shard, blocks, questions_shard, rows_shard
from mmlongbench.building.build_plan import DatasetPlan, canary_of, load_plan
from mmlongbench.building.dataset import Dataset, StoredRows, open_dataset
from mmlongbench.building.finished_release import Released, ReleasedCell
from mmlongbench.building.shard_results import QUESTIONS, RECORDS, ROWS, Asked, RowCounts, ShownImages
from mmlongbench.building.source_files import SourceFiles
from mmlongbench.corpus.corpus import Corpus
from mmlongbench.corpus.retrieval.bm25 import FOLDER, RankBm25Index, find_index
from mmlongbench.corpus.retrieval.dense import ModelSpec, Reranker
from mmlongbench.corpus.retrieval.search import Search
from mmlongbench.errors import BuildError
from mmlongbench.lengths import format_length
from mmlongbench.task.builder import SharedContextBuilder
from mmlongbench.task.rows import Row

TOGETHER = "all"
"""The name of the only block of records at a length if questions share contexts."""
NeededImages = tuple[frozenset[str], tuple[tuple[str, str], ...]]
"""The images that must be made: the paths of pages in the release, and (path in the release, name in the source) of
each picture, sorted. A picture that an extended release has is among them if its path does not depend on its content:
it is compared, because two names may give one path."""


class Session(AbstractContextManager["Session"]):
    """The open parts of a build in one process. Each is opened when it is first needed, and stays open.

    A stage may use only what earlier stages have made. `dataset` can be called after the stages documents and rows,
    `questions` after the stage questions, and `needed_images` after the stage records.
    """

    def __init__(self, out: Path, plans: Iterable[DatasetPlan] | None = None) -> None:
        """`out` is the folder of a release whose plan has been saved; it is read unless it is given."""
        self.build_dir = BuildDir(out)
        self._given = plans
        self._datasets: dict[str, Dataset] = {}
        self._questions: dict[str, Sequence[Row]] = {}
        self._hashed_ids: dict[str, frozenset[str]] = {}
        self._searches: dict[str, Search] = {}
        self._needed: dict[str, NeededImages] = {}

    def __exit__(self, *_: object) -> None:
        self.close()

    @cached_property
    def plans(self) -> Mapping[str, DatasetPlan]:
        """The plans of all datasets, by name."""
        if self._given is None:
            return load_plan(self.build_dir).plans
        return {plan.spec.name: plan for plan in self._given}

    @cached_property
    def source_files(self) -> SourceFiles:
        """The source files as they were fingerprinted."""
        return SourceFiles(self.build_dir)

    @cached_property
    def released(self) -> Released | None:
        """The finished release that this build extends; None if it extends none."""
        return Released(self.build_dir.extended) if self.build_dir.extended else None

    def dataset(self, name: str) -> Dataset:
        """Return a dataset with its documents, pictures and corpus."""
        if name not in self._datasets:
            plan = self.plans[name]
            canary = canary_of(self.plans.values()) if plan.spec.canary else ""
            self._datasets[name] = open_dataset(plan, self.build_dir, self.source_files, canary)
        return self._datasets[name]

    def questions(self, name: str) -> Sequence[Row]:
        """Return the rows that every file of a dataset asks about, in the source's order; they stay on disk."""
        if name not in self._questions:
            build_dir, shard, starts = self.build_dir, rows_shard(name), array("q")
            chosen = build_dir.read(questions_shard(name), QUESTIONS)  # questions as in the source, rejects, counts
            line = next(chosen, None)
            rows = ((start, read.row) for start, read in build_dir.read_placed(shard, ROWS) if read.kind == "row")
            for place, (start, row) in enumerate(rows):
                if isinstance(line, Asked) and (line.place, line.id) == (place, row.get("id")):
                    starts.append(start)
                    line = next(chosen, None)
            is_of_these_rows = not isinstance(line, Asked)
            for line in chosen:  # noqa: B007  (the last one is wanted)
                pass
            counts = (line.counts.kept, line.rows) if isinstance(line, RowCounts) else None
            if not is_of_these_rows or counts != (len(starts), build_dir.fingerprint(shard)):
                build_dir.discard(shard)  # either the rows or the choice was changed
                raise build_dir.damaged(questions_shard(name))
            self._questions[name] = StoredRows(build_dir, name, self.plans[name].bound.reader_type.row_type, starts)
        return self._questions[name]

    def hashed_ids(self, name: str) -> frozenset[str]:
        """Return the ids of those questions whose id holds `#`, by which ids of queries are built (`Query.id`)."""
        if name not in self._hashed_ids:
            self._hashed_ids[name] = frozenset(row.id for row in self.questions(name) if "#" in row.id)
        return self._hashed_ids[name]

    def record_shards(self, name: str, lengths: tuple[int, ...]) -> list[Shard]:
        """Return the shards that pack a dataset at these lengths: block after block and, in each block, the longest
        length first. A length that is taken whole from an extended release has none.

        So a process can reuse what it has read and counted for a block at the next length, and the build does not end
        with one long shard.
        """
        is_shared, rows = isinstance(self.plans[name].bound.builder, SharedContextBuilder), len(self.questions(name))
        packed = sorted((length for length in lengths if not self.takes_whole(name, length)), reverse=True)
        return [
            Shard("records", name, f"{format_length(length)}/{block}", steps)
            for block, steps in ({TOGETHER: rows} if is_shared else blocks(rows)).items()
            for length in packed
        ]

    def search(self, name: str) -> Search:
        """Return the search for hard negatives in the corpus of a dataset."""
        if name not in self._searches:
            plan, spec = self.plans[name], self.plans[name].spec.retrieval
            if plan.corpus is None:
                raise BuildError(f"dataset {name!r} has no corpus: name one in its manifest (`corpus: …`)")
            corpus, cache, reranker = Corpus.open(plan.corpus.folder), plan.corpus.cache, None
            if spec.reranker is not None:
                model = ModelSpec(spec.reranker.model, spec.reranker.revision, spec.reranker.trust_remote_code)
                reranker = Reranker.open(model, cache / "embeddings")
            index = find_index(corpus, cache / FOLDER) if spec.engine == "tantivy" else RankBm25Index(corpus)
            self._searches[name] = Search(cache / "rankings", corpus, index, spec.k, reranker)
        return self._searches[name]

    def needed_images(self, name: str) -> NeededImages:
        """Return the images that the examples of a dataset show and that must be made; all its records must be packed.
        Images that an extended release has are left out.
        """
        if name not in self._needed:
            plan, pages, pictures = self.plans[name], set[str](), dict[str, str]()
            by_content = plan.bound.names_pictures_by_content
            for shard in self.record_shards(name, plan.spec.lengths):
                shown = self.build_dir.last(shard, RECORDS)
                if not isinstance(shown, ShownImages):
                    raise self.build_dir.damaged(shard)
                pages.update(shown.pages)
                for path, origin in ((path, origin) for path, names in shown.pictures.items() for origin in names):
                    other = pictures.setdefault(path, origin)
                    if by_content:  # all pictures with one path have the same content
                        pictures[path] = min(origin, other)
                    elif other != origin:
                        raise BuildError(f"two pictures would be {path}: {pictures[path]!r} and {origin!r}; rename one")
            made = self.released.shown if self.released else frozenset()
            left = {path: origin for path, origin in pictures.items() if path not in made or not by_content}
            self._needed[name] = frozenset(pages.difference(pictures, made)), tuple(sorted(left.items()))
        return self._needed[name]

    def taken(self, name: str, length: int) -> ReleasedCell | None:
        """Return what the extended release has of a dataset at a length; None if it has nothing."""
        if self.released is None or self.released.kept(name) is None:
            return None
        bound = self.plans[name].bound
        return self.released.cell(name, length, bound.task, len(bound.placements))

    def takes_whole(self, name: str, length: int) -> bool:
        """Return whether the build copies the files of a dataset at a length from the release that it extends. It does
        so if the release has the length and the same questions. The questions are the same if their sources and their
        number are the same, and if the task cannot leave them out because of a length that is added.
        """
        released = self.released
        if released is None or self.taken(name, length) is None:
            return False
        bound = self.plans[name].bound
        if bound.builder.may_reject_everywhere and not all(self.taken(name, each) for each in bound.spec.lengths):
            return False
        is_same_source = released.source_hashes(name) == self.plans[name].source_hashes
        return is_same_source and released.kept(name) == len(self.questions(name))

    def close(self) -> None:
        """Close all open datasets and source files; they are opened again if they are needed later."""
        for dataset in self._datasets.values():
            dataset.close()
        for opened in (self._datasets, self._questions, self._hashed_ids, self._searches, self._needed):
            opened.clear()
        self.__dict__.pop("released", None)
        if "source_files" in self.__dict__:
            self.__dict__.pop("source_files").close()
