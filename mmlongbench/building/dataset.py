"""A dataset that is open for work: its builder, counter and checks, and the sources that drafts are made from. Rows,
texts of pages, hard negatives and prices of texts stay on disk.
"""

import hashlib
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path
from types import NoneType
from typing import ClassVar, Generic, TypeVar, overload

from pydantic import TypeAdapter, ValidationError

from mmlongbench.building.build_dir import BLOCK, BuildDir, Shard, questions_shard, rows_shard
from mmlongbench.building.build_plan import DatasetPlan, locked_counter
from mmlongbench.building.example_checks import ExampleChecks, draft_fault
from mmlongbench.building.shard_results import (
    DOCUMENTS,
    NEGATIVES,
    QUESTIONS,
    RANKINGS,
    ROWS,
    Asked,
    DocumentLine,
    FoundNegatives,
    RankedPages,
    ReadDocument,
    ReadRow,
    RefusedDocument,
)
from mmlongbench.building.source_files import SourceFiles
from mmlongbench.corpus.corpus import Corpus
from mmlongbench.corpus.retrieval.pages import PageRanking
from mmlongbench.corpus.retrieval.search import SearchedCorpus
from mmlongbench.documents.joined_pages import JoinPages, layout
from mmlongbench.documents.names import crop_path
from mmlongbench.documents.page_parts import WHOLE_PAGE
from mmlongbench.documents.pictures import Cap, Pictures
from mmlongbench.documents.pixels import PictureFile
from mmlongbench.draft import ContextDraft, Draft
from mmlongbench.draws import Draws
from mmlongbench.errors import BuildError, DraftError, Fault, SourceChangedError
from mmlongbench.io.sqlite_rows import Store
from mmlongbench.lengths import TokenBudget
from mmlongbench.manifest.binding import calling
from mmlongbench.manifest.model import DatasetSpec
from mmlongbench.packing.pricing import Pricer
from mmlongbench.release.layout import StageName
from mmlongbench.task.builder import Builder
from mmlongbench.task.reader import Reader
from mmlongbench.task.rows import Row, SourcePaths
from mmlongbench.task.sources import Crop, Document, Documents, ImageClasses, Images, Page, Sources, WebPages
from mmlongbench.task.task import Task


def row_of(line: ReadRow, kind: type[Row], build_dir: BuildDir, shard: Shard) -> Row:
    """Return the row of a line; if the reader's row type has changed since then, the result is removed."""
    try:
        return kind.model_validate(line.row)
    except ValidationError as error:
        raise build_dir.damaged(shard) from error


class StoredRows(Sequence[Row]):
    """Rows of a source, in its order, with errata applied: all that can be read, or those that are questions. The rows
    stay on disk; only their positions in the file are held in memory, eight bytes a row.
    """

    def __init__(self, build_dir: BuildDir, dataset: str, kind: type[Row], starts: "array[int] | None" = None) -> None:
        """Read nothing yet, because the rows stage may not be done; `starts` says where the rows begin, if not all."""
        self._build_dir, self._shard, self._kind = build_dir, rows_shard(dataset), kind
        self._given = starts

    @cached_property
    def _starts(self) -> "array[int]":
        """Where each row begins in the file, in bytes."""
        if self._given is not None:
            return self._given
        lines = self._build_dir.read_placed(self._shard, ROWS)
        return array("q", (start for start, line in lines if isinstance(line, ReadRow)))

    def __iter__(self) -> Iterator[Row]:
        if self._given is not None:
            yield from map(self.__getitem__, range(len(self)))
        for line in () if self._given is not None else self._build_dir.read(self._shard, ROWS):
            if isinstance(line, ReadRow):
                yield row_of(line, self._kind, self._build_dir, self._shard)

    def __len__(self) -> int:
        return len(self._starts)

    @overload
    def __getitem__(self, place: int) -> Row: ...

    @overload
    def __getitem__(self, place: slice) -> Sequence[Row]: ...

    def __getitem__(self, place: int | slice) -> Row | Sequence[Row]:
        if isinstance(place, slice):
            return [self[index] for index in range(len(self))[place]]
        line = self._build_dir.line_at(self._shard, self._starts[place], ROWS)
        if not isinstance(line, ReadRow):
            raise self._build_dir.damaged(self._shard)
        return row_of(line, self._kind, self._build_dir, self._shard)


MAX_HELD, HELD_BLOCKS = 1 << 16, 16
"""The maximum number of prices that are held in memory, and of blocks of lines: 2,000 negatives of 32 questions take
two megabytes."""


class KeptPrices(Store):
    """The prices of texts for one tokenizer, in tokens; new prices are written in groups, the last group when the file
    is closed.
    """

    table: ClassVar[str] = "prices"
    columns: ClassVar[str] = "text BLOB, tokens INTEGER NOT NULL"

    def __init__(self, folder: Path, tokenizer: str) -> None:
        """Open or make the price file of a tokenizer, given by its SHA-256, in a folder."""
        self._held: dict[str, int] = {}
        super().__init__(folder / f"{tokenizer[:32]}.sqlite")

    def unusable(self, error: Exception) -> BuildError:
        """Return the error to raise when the file cannot be used."""
        return BuildError(f"the price file {self.path} cannot be used: {error}; remove that file")

    def get(self, text: str) -> int | None:
        """Return the price of a text, or None if it was never kept."""
        price = self._held.get(text)
        if price is None and (row := self.row(_key(text))):
            price = int(row[1])
            self._hold(text, price)
        return price

    def __setitem__(self, text: str, price: int) -> None:
        self._hold(text, price)
        self.put(_key(text), price)

    def _hold(self, text: str, price: int) -> None:
        if len(self._held) >= MAX_HELD:
            self._held.clear()
        self._held[text] = price


def _key(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:16]


KnownT = TypeVar("KnownT", FoundNegatives, RankedPages)


class KnownLines(Generic[KnownT]):
    """The lines of a stage whose shards are blocks of rows, by the id of each line: that of its row, or this id and `#`
    and any text. Blocks are read on demand, and few are held.
    """

    def __init__(
        self,
        build_dir: BuildDir,
        stage: StageName,
        dataset: str,
        kind: TypeAdapter[KnownT],
        ids: Callable[[], Iterable[str]],
    ) -> None:
        """`ids` returns the ids of the rows in the order of the blocks; it is called when a line is first wanted."""
        self._build_dir, self._stage, self._dataset, self._ids = build_dir, stage, dataset, ids
        self._added: dict[str, KnownT] = {}
        read = lru_cache(maxsize=HELD_BLOCKS)(lambda shard: {line.id: line for line in build_dir.read(shard, kind)})
        self._read: Callable[[Shard], dict[str, KnownT]] = read

    @cached_property
    def _blocks(self) -> dict[str, int]:
        return {id: place // BLOCK for place, id in enumerate(self._ids())}

    def add(self, lines: Iterable[KnownT]) -> None:
        """Add lines; a forecast adds hard negatives that no shard has written."""
        self._added.update((line.id, line) for line in lines)

    def of(self, id: str) -> KnownT | None:
        """Return the line with an id; None if no block has one."""
        if id in self._added:
            return self._added[id]
        row = id
        while row not in self._blocks and "#" in row:
            row = row.rpartition("#")[0]
        shard = Shard(self._stage, self._dataset, f"{self._blocks[row]:05d}") if row in self._blocks else None
        return self._read(shard).get(id) if shard and self._build_dir.result(shard).is_file() else None


@dataclass(frozen=True, slots=True)
class Dataset:
    """Everything a shard of this dataset needs."""

    plan: DatasetPlan
    sources: Sources
    pricer: Pricer
    checks: ExampleChecks
    negatives: KnownLines[FoundNegatives]
    prices: KeptPrices | None
    canary: str = ""
    """The canary that each record has; empty if the manifest does not ask for one."""
    left_out: dict[str, Fault | None] = field(default_factory=dict)
    """Why a question is left out at all lengths, by its id; None if it is not. It has the questions that were tried."""

    @property
    def spec(self) -> DatasetSpec:
        """The dataset as the manifest describes it."""
        return self.plan.spec

    @property
    def builder(self) -> Builder[Row]:
        """The builder of the dataset."""
        return self.plan.bound.builder

    def draws(self, id: str) -> Draws:
        """Return the draws of a question; they do not depend on the length."""
        return Draws((self.spec.seed, self.spec.drawn_name, id))

    def draft(self, row: Row) -> ContextDraft:
        """Return the draft that the builder makes of a row, with what its task says once for all rows."""
        draft = self.builder.draft(row, self.sources, self.draws(row.id))
        if isinstance(self.builder, Task) and isinstance(draft, Draft) and draft.question is None:
            draft = copy(draft)
            draft.question = self.builder.question(row)
        if fault := draft_fault(draft):
            raise DraftError(fault)
        return self.builder.completed(draft, row)

    def budget(self, length: int) -> TokenBudget:
        """Return the budget at a length."""
        return TokenBudget(length, self.plan.bound.reserve, self.plan.bound.task.variant_reserve)

    def close(self) -> None:
        """Save the token counts of passages, and close the file that keeps them; after that, nothing can be packed."""
        if self.prices:
            self.prices.close()


def open_dataset(plan: DatasetPlan, build_dir: BuildDir, files: SourceFiles, canary: str) -> Dataset:
    """Open a dataset whose documents stage is done: the parts that its reader has, and its corpus."""
    spec, bound, name = plan.spec, plan.bound, plan.spec.name
    reader = bound.reader_type()
    rows = StoredRows(build_dir, name, bound.reader_type.row_type)
    rankings = KnownLines[RankedPages](build_dir, "rankings", name, RANKINGS, lambda: (row.id for row in rows))

    def asked() -> Iterator[str]:
        return (line.id for line in build_dir.read(questions_shard(name), QUESTIONS) if isinstance(line, Asked))

    negatives = KnownLines[FoundNegatives](build_dir, "negatives", name, NEGATIVES, asked)

    def page_ranking(id: str) -> PageRanking | None:
        line = rankings.of(id)
        return PageRanking(tuple(line.pages), tuple(line.gold_ranks)) if line else None

    def numbers_of(id: str) -> Sequence[int] | None:
        line = negatives.of(id)
        return line.numbers if line else None

    corpus, prices = None, None
    if plan.corpus:
        spare = Draws((spec.seed, spec.drawn_name, "spare")) if spec.retrieval.random_fill else None
        corpus = SearchedCorpus(Corpus.open(plan.corpus.folder), spec.retrieval.near_duplicate, numbers_of, spare)
    classes = _of_reader(plan, "image_classes", reader.image_classes, ImageClasses, NoneType)
    has_pages = bound.reader_type.web_pages is not Reader.web_pages
    sample_seed = spec.seed if spec.sample.seed is None else spec.sample.seed
    sources = Sources(
        documents=None if bound.reader_type.documents is Reader.documents else _documents(plan, build_dir),
        images=None if bound.reader_type.image is Reader.image else _images(plan, reader, files),
        web_pages=WebPages(_of_reader(plan, "web_pages", reader.web_pages, Mapping)) if has_pages else None,
        image_classes=classes,
        corpus=corpus,
        page_rankings=page_ranking,
        rows=rows,
        draws=Draws((spec.seed, spec.drawn_name)),
        sample_draws=Draws((sample_seed, spec.drawn_name, "sample")),
    )
    for key, found, planned in (
        ("counter", bound.counter, plan.counter),
        *((f"count_as.{key}", bound.count_as[key], planned) for key, planned in plan.count_as.items()),
    ):
        counter = locked_counter(found)
        if changed := next((part for part in {**planned, **counter} if planned.get(part) != counter.get(part)), ""):
            raise SourceChangedError(
                f"dataset {name!r}: {key}.{changed} is not the one that this build was started with "
                f"({planned.get(changed)}); restore it and run the command again, or remove {build_dir.out} and start "
                "the build again"
            )
    if plan.corpus:
        prices = KeptPrices(plan.corpus.cache / "prices", bound.counter.text.sha256)
    pricer = Pricer(bound.counter, sources.sizes, prices)
    return Dataset(plan, sources, pricer, ExampleChecks(bound), negatives, prices, canary)


_FoundT = TypeVar("_FoundT")


def _of_reader(plan: DatasetPlan, method: str, find: Callable[[SourcePaths], _FoundT], *expected: type) -> _FoundT:
    with calling("reader", plan.spec.reader, f"{method}()"):
        value = find(plan.sources)
        if not isinstance(value, expected):
            names = " or ".join(kind.__name__ for kind in expected)
            raise DraftError(f"returned a {type(value).__name__}, expected {names}")
        return value


def _images(plan: DatasetPlan, reader: Reader[Row], files: SourceFiles) -> Images:
    """Return the pictures of the reader; each is compared with its fingerprint when it is read."""
    task, given = plan.bound.task, plan.spec.pictures
    most = given.most_tokens or task.most_tokens

    def picture(name: str) -> PictureFile | None:
        with calling("reader", plan.spec.reader, "image()", about=f"picture {name!r}"):
            return reader.image(plan.sources, name)

    pictures = Pictures(
        reader.image_folder,
        picture,
        plan.spec.limits.pixels,
        given.longest_side or task.longest_side,
        Cap(most, given.above, plan.bound.counter.image_price) if most else None,
        by_content=plan.bound.names_pictures_by_content,
        as_jpeg=given.encode == "jpeg",
        reading=files.unchanged,
    )
    with calling("reader", plan.spec.reader, "shows()"):
        shown = _of_reader(plan, "shows", reader.shows, Mapping)
        return Images(pictures, shown, _of_reader(plan, "asked_pictures", reader.asked_pictures, Iterable))


def _documents(plan: DatasetPlan, build_dir: BuildDir) -> Documents:
    """Return the documents that the documents stage has read. Their texts are read on demand; those of the 16 documents
    that were used last stay in memory.
    """
    join, folder = plan.bound.task.join_pages, plan.bound.reader_type.image_folder

    def read_document(name: str) -> DocumentLine:
        shard = Shard("documents", plan.spec.name, name)
        lines = list(build_dir.read(shard, DOCUMENTS))
        if len(lines) != 1:
            raise build_dir.damaged(shard)
        return lines[0]

    last_read = lru_cache(maxsize=16)(read_document)

    def texts(name: str) -> tuple[str, ...]:
        line = last_read(name)
        pages = line.texts if isinstance(line, ReadDocument) else ()
        if not join:
            return tuple(pages)
        return tuple("\n".join(pages[place] for place in group) for group in join.groups(len(pages)))

    def texts_around_crops(name: str) -> tuple[tuple[str, ...], ...]:
        line = last_read(name)
        return tuple(tuple(page["texts"]) for page in line.parted) if isinstance(line, ReadDocument) else ()

    documents, faults = {}, dict(plan.refused)
    for file in plan.documents.values():
        line = read_document(file.name)
        if isinstance(line, RefusedDocument):
            faults[file.id] = line.fault
            continue
        named_pages = zip(file.named_pages(len(line.pages)), line.pages, strict=True)
        pages = [Page(number, f"{folder}/{file.name}/{name}", *size) for (number, name), size in named_pages]
        crops = []
        for page, parts in zip(pages, line.parted, strict=False):
            for crop in parts["crops"]:  # a crop of a whole page is the image of the page
                path = page.path if crop["kind"] == WHOLE_PAGE else crop_path(page.path, crop["box"])
                crops.append(Crop(page.index, crop["kind"], crop["box"], path, *crop["size"]))
        document = Document(
            file.id,
            file.name,
            file.sha256,
            tuple(pages),
            tuple(line.keys),
            file.missing,
            tuple(crops),
            damaged=line.damaged,
            hidden_text=tuple(line.hidden_text),
        )
        documents[file.id] = joined(document, join) if join else document
    return Documents(documents, faults, texts, texts_around_crops)


def joined(document: Document, join: JoinPages) -> Document:
    """Return a document whose pages are joined images; none is missing, because an image shows the pages that exist."""
    groups = join.groups(len(document.pages))
    shown = tuple(tuple(document.pages[place] for place in group) for group in groups)
    single = tuple(tuple(document.keys[place] for place in group) for group in groups) if document.keys else ()
    # an image whose pages are all blank has no key
    keys = tuple(hashlib.sha256(" ".join(group).encode()).hexdigest()[:16] if any(group) else "" for group in single)
    pages = []
    for number, group in enumerate(shown):
        folder, _, _ = group[0].path.rpartition("/")
        width, height = layout([(page.width, page.height) for page in group], join.pixels)[0]
        pages.append(Page(number, f"{folder}/{join.file_name(document.name, number)}", width, height))
    return replace(document, pages=tuple(pages), keys=keys, missing=(), joined=shown, joined_keys=single)
