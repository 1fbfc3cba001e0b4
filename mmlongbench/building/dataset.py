"""A dataset opened for work: its builder bound, its documents known, its counter ready. One in each session."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, TypeVar

from pydantic import ValidationError

from mmlongbench.building.build_dir import BuildDir, Shard, rows_shard
from mmlongbench.building.build_plan import DatasetPlan
from mmlongbench.building.lines import (
    DOCUMENTS,
    NEGATIVES,
    ROWS,
    DocumentLine,
    KeptRow,
    ReadDocument,
    RefusedDocument,
    RowCounts,
)
from mmlongbench.building.prices import PRICES, KeptPrices
from mmlongbench.building.source_files import SourceFiles
from mmlongbench.building.stages.golds import Golds
from mmlongbench.documents.pictures import Cap, Pictures
from mmlongbench.documents.pixels import PictureFile
from mmlongbench.draws import Draws
from mmlongbench.errors import SourceChangedError
from mmlongbench.lengths import TokenBudget
from mmlongbench.manifest.calling import calling
from mmlongbench.manifest.model import DatasetSpec
from mmlongbench.manifest.registry import reader_type
from mmlongbench.manifest.resolve import bind_builder, placements_of
from mmlongbench.packing.place import Placement
from mmlongbench.packing.pricing import Pricer
from mmlongbench.task.builder import Builder
from mmlongbench.task.reader import Reader
from mmlongbench.task.rows import Row, SourcePaths
from mmlongbench.task.sources import Document, Page, World

if TYPE_CHECKING:
    from mmlongbench.corpus.retrieval.library import Library


_FoundT = TypeVar("_FoundT")


@dataclass(frozen=True, slots=True)
class Dataset:
    """Everything a shard of this dataset needs."""

    plan: DatasetPlan
    reader: Reader[Row]
    builder: Builder[Row]
    world: World
    pricer: Pricer
    golds: Golds
    prices: KeptPrices | None

    @property
    def spec(self) -> DatasetSpec:
        """The dataset as the manifest has it."""
        return self.plan.spec

    def draws(self, id: str) -> Draws:
        """The draws of a question; no length in the key."""
        return Draws((self.spec.seed, self.spec.drawn_name, id))

    def budget(self, length: int) -> TokenBudget:
        """The budget at a length; the reserve is the manifest's, or the task's own."""
        reserve = self.builder.spec.reserve if self.spec.reserve is None else self.spec.reserve
        return TokenBudget(length, reserve)

    def placements(self) -> tuple[Placement, ...]:
        """Where needles go in turn; one empty placement where there are none."""
        return placements_of(self.spec, self.builder)

    def close(self) -> None:
        """Save and close the prices; nothing can be packed any more."""
        if self.prices:
            self.prices.close()


def open_dataset(plan: DatasetPlan, build_dir: BuildDir, files: SourceFiles) -> Dataset:
    """Open a dataset of a build whose documents have been read."""
    name, world = plan.spec.name, _world(plan, build_dir, files)
    counter = plan.spec.counter.open()
    if counter.text.sha256 != plan.tokenizer["sha256"]:
        raise SourceChangedError(
            f"dataset {name!r}: counter.tokenizer: {plan.tokenizer['name']} is not the one that the build began with; "
            f"put it back and run the command again, or remove {build_dir.out} and build anew"
        )
    prices = KeptPrices(plan.corpus.cache / PRICES, counter.text.sha256) if plan.corpus else None
    pricer = Pricer(counter, world.sizes, prices)
    builder = bind_builder(plan.spec)
    return Dataset(
        plan, reader_type(plan.spec.reader)(), builder, world, pricer, Golds(builder, plan.spec.builder), prices
    )


def kept_rows(dataset: Dataset, build_dir: BuildDir) -> Iterator[Row]:
    """The questions of every file of a dataset, in source order.

    Raises:
        BuildError: they are not as many as were counted.

    """
    shard, kept, counted = rows_shard(dataset.spec.name), 0, -1
    for line in build_dir.read(shard, ROWS):
        if isinstance(line, KeptRow):
            kept += 1
            try:
                row = dataset.reader.row_type.model_validate(line.row)
            except ValidationError as error:  # its type is another than when it was written
                raise build_dir.damaged(shard) from error
            yield row
        elif isinstance(line, RowCounts):
            counted = line.counts.kept
    if kept != counted:
        raise build_dir.damaged(shard)


def _world(plan: DatasetPlan, build_dir: BuildDir, files: SourceFiles) -> World:
    """The documents as their shards have read them."""
    documents, faults = {}, dict(plan.refused)
    reader = reader_type(plan.spec.reader)()
    for file in plan.documents.values():
        read = _read_document(build_dir, plan, file.name)
        if isinstance(read, RefusedDocument):
            faults[file.id] = read.fault
            continue
        pages = tuple(
            Page(number, f"{reader.image_folder}/{file.name}/{file.image_name(number)}", width, height)
            for number, (width, height) in enumerate(read.pages)
        )
        documents[file.id] = Document(file.id, file.name, file.sha256, pages, tuple(read.keys))
    return World(
        documents,
        faults,
        _pictures(plan, reader, files),
        _library(plan, build_dir),
        _found(plan, reader.web_pages, "web_pages"),
        _found(plan, reader.shows, "shows"),
        _found(plan, reader.image_classes, "image_classes"),
        Draws((plan.spec.seed, plan.spec.drawn_name)),
        sample_draws(plan.spec),
        _Texts(build_dir, plan),
        _found(plan, reader.asked_pictures, "asked_pictures"),
    )


class _Texts:
    """The texts of a document's pages, read where they are asked for; those of a few documents are held."""

    def __init__(self, build_dir: BuildDir, plan: DatasetPlan) -> None:
        self._read = lru_cache(maxsize=16)(lambda name: _texts(_read_document(build_dir, plan, name)))

    def __call__(self, name: str) -> tuple[str, ...]:
        return self._read(name)


def _texts(read: DocumentLine) -> tuple[str, ...]:
    return tuple(read.texts) if isinstance(read, ReadDocument) else ()


def _read_document(build_dir: BuildDir, plan: DatasetPlan, name: str) -> DocumentLine:
    shard = Shard("documents", plan.spec.name, name)
    found = list(build_dir.read(shard, DOCUMENTS))
    if len(found) != 1:
        raise build_dir.damaged(shard)
    return found[0]


def sample_draws(spec: DatasetSpec) -> Draws:
    """The draws that say which questions are in."""
    return Draws((spec.seed if spec.sample.seed is None else spec.sample.seed, spec.drawn_name, "sample"))


def _found(plan: DatasetPlan, find: Callable[[SourcePaths], _FoundT], method: str) -> _FoundT:
    """What a method of the reader finds in the sources."""
    with calling("reader", plan.spec.reader, f"{method}()"):
        return find(plan.sources)


def _pictures(plan: DatasetPlan, reader: Reader[Row], files: SourceFiles) -> Pictures:
    """The pictures that the reader can find; each is compared with the fingerprints as it is read."""
    own, asked = bind_builder(plan.spec).spec, plan.spec.pictures
    most = asked.most_tokens or own.most_tokens
    cap = Cap(most, asked.above, plan.spec.counter.open().image.tokens) if most else None

    def found(name: str) -> PictureFile | None:
        with calling("reader", plan.spec.reader, "image()", about=f"picture {name!r}"):
            return reader.image(plan.sources, name)

    return Pictures(
        reader.image_folder,
        found,
        plan.spec.limits.pixels,
        asked.longest_side or own.longest_side,
        cap,
        by_content=reader.names_images_by_content,
        reading=files.unchanged,
    )


def _library(plan: DatasetPlan, build_dir: BuildDir) -> "Library | None":
    """The corpus with its rankings, if the dataset has one."""
    if plan.corpus is None:
        return None
    from mmlongbench.building.rankings import open_rankings
    from mmlongbench.corpus.corpus import Corpus
    from mmlongbench.corpus.retrieval.library import Library

    corpus, spec = Corpus.open(plan.corpus.folder), plan.spec
    spare = Draws((spec.seed, spec.drawn_name, "spare")) if spec.retrieval.random_fill else None
    prepared = _Prepared(build_dir, spec.name)
    rankings = open_rankings(corpus, spec.retrieval, plan.corpus.cache)
    return Library(corpus, rankings, spec.retrieval.near_duplicate, prepared, spare)


class _Prepared:
    """The negatives that shards of this build have found, read as the shards are done."""

    def __init__(self, build_dir: BuildDir, dataset: str) -> None:
        self._build_dir = build_dir
        self._dataset = dataset
        self._known: dict[str, list[int]] = {}
        self._read: set[str] = set()

    def __call__(self, id: str) -> list[int] | None:
        if id not in self._known:
            folder = self._build_dir.root / "negatives" / self._dataset
            for block in sorted({path.stem for path in folder.glob("[0-9]*.jsonl")} - self._read):
                self._read.add(block)
                lines = self._build_dir.read(Shard("negatives", self._dataset, block), NEGATIVES)
                self._known.update((line.id, line.numbers) for line in lines)
        return self._known.get(id)
