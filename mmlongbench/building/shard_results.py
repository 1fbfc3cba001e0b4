"""The lines of shards' results: one type for each kind of line that one stage writes and a later stage reads."""

import json
from dataclasses import dataclass, field, fields
from typing import Annotated, Literal, TypeAlias, cast

from pydantic import BaseModel, Field, TypeAdapter
from typing_extensions import TypedDict

from mmlongbench.errors import Fault
from mmlongbench.release.items import Item, ItemColumns
from mmlongbench.release.lock import CellCounts, LockedFile, QuestionCounts
from mmlongbench.release.rejects import Reject
from mmlongbench.task.rows import Record


class CropOfPage(TypedDict):
    """A crop of a table or a figure of a page, or of a whole page that has no text."""

    kind: Literal["table", "figure", "page"]
    box: tuple[int, int, int, int]
    """Its corners on the page as it is shown, in points: x0, y0, x1, y1."""
    size: tuple[int, int]
    """(width, height) in pixels."""


class PartedPage(TypedDict):
    """A page as texts with crops between them."""

    texts: list[str]
    """The texts before, between and after the crops; one more than crops, and some may be empty."""
    crops: list[CropOfPage]


@dataclass(frozen=True, slots=True)
class ReadDocument:
    """A document whose pages are known; `keys`, `texts` and `parted` are empty unless the task asks for them
    (`TaskSpec.page_keys`, `TaskSpec.page_texts`, `TaskSpec.page_crops`).
    """

    pages: list[tuple[int, int]]
    """(width, height) of each page, in pixels."""
    keys: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    parted: list[PartedPage] = field(default_factory=list)
    damaged: dict[int, str] = field(default_factory=dict)
    """What MuPDF says of the pages that it does not draw whole, by their number from 0."""
    hidden_text: list[int] = field(default_factory=list)
    """The pages, from 0, with text that cannot be seen; it is in no text."""
    kind: Literal["read"] = "read"


@dataclass(frozen=True, slots=True)
class RefusedDocument:
    """A document that cannot be used."""

    fault: Fault
    kind: Literal["refused"] = "refused"


@dataclass(frozen=True, slots=True)
class ReadRow:
    """A row of the source that could be read."""

    row: dict[str, object]
    kind: Literal["row"] = "row"


@dataclass(frozen=True, slots=True)
class Asked:
    """A row that was chosen as a question."""

    place: int
    """The number of its row among the readable rows, from 0."""
    id: str
    kind: Literal["asked"] = "asked"


@dataclass(frozen=True, slots=True)
class RowCounts:
    """How many rows of a dataset were kept, and how many were left out, by reason."""

    counts: QuestionCounts
    rows: str = ""
    """The SHA-256 of the result of the rows stage, from which the questions were chosen."""
    kind: Literal["counts"] = "counts"


@dataclass(frozen=True, slots=True)
class FoundNegatives:
    """The hard negatives of a query."""

    id: str
    numbers: list[int]
    """The passage numbers of the hard negatives, hardest first."""
    rejected: dict[str, int]
    """How many passages were rejected, by reason."""


@dataclass(frozen=True, slots=True)
class RankedPages:
    """The pages that were ranked for a row."""

    id: str
    pages: list[tuple[str, int]]
    """(document, page from 0), the best first (`PageRanking.pages`)."""
    gold_ranks: list[int]


@dataclass(slots=True)
class PackedRecord:
    """An example that will be released."""

    items: ItemColumns
    ran_dry: bool
    missing: int
    """How many more units of mean size would have fitted; 0 if the units did not run out."""
    line: bytes = b""
    """The record as a line of JSON, as a public file has it. It is the next line of the result, and no field of this
    one, so that it is copied without being read."""
    kind: Literal["record"] = "record"

    @property
    def record(self) -> Record:
        """The record, read from its line."""
        return cast("Record", json.loads(self.line))

    @property
    def item_rows(self) -> list[Item]:
        """The rows of its units in the table of items."""
        columns = {key: values for key, values in self.items.items() if isinstance(values, list)}
        shared = {key: value for key, value in self.items.items() if key not in columns}
        rows = (dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True))
        return [cast("Item", {**shared, "position": position, **row}) for position, row in enumerate(rows)]


@dataclass(frozen=True, slots=True)
class BundledRecord:
    """A record that is only in the second file of a task (`TaskSpec.bundle`)."""

    record: Record
    kind: Literal["bundled"] = "bundled"


@dataclass(frozen=True, slots=True)
class LeftOutUnits:
    """How many units of a context were left out, by reason."""

    left_out: dict[str, int]
    kind: Literal["left_out"] = "left_out"


@dataclass(frozen=True, slots=True)
class SharedCounts:
    """Counts of a task whose questions share contexts, at one length (see `CellCounts`)."""

    not_asked: int
    missing_classes: int
    kind: Literal["shared"] = "shared"


@dataclass(frozen=True, slots=True)
class ShownImages:
    """The images and the texts of units that the examples of a shard show; this is the last line of the shard's
    result.
    """

    pages: list[str]
    """The paths of pages in the release, and of crops of pages."""
    pictures: dict[str, list[str]]
    """The names of pictures in the source, by their path in the release."""
    texts: list[tuple[str, int, str]] = field(default_factory=list)
    """(unit, characters, SHA-256) of each text (`release.assets.text_digest`), sorted; a unit with needles in it has
    several texts."""
    kind: Literal["shown"] = "shown"


@dataclass(frozen=True, slots=True)
class MadeImage:
    """An image of the release, described when it was made."""

    path: str
    """The path below `mmlb_image/`."""
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class WrittenCell:
    """The files of a dataset at a length, and their counts."""

    files: dict[str, LockedFile]
    counts: CellCounts
    kind: Literal["cell"] = "cell"


def to_fields(line: "Line") -> dict[str, object]:
    """Return a line as plain JSON values."""

    def plain(value: object) -> object:
        if isinstance(value, Fault):
            return value.fields()
        if isinstance(value, BaseModel):
            return value.model_dump(exclude_unset=True)
        if isinstance(value, dict) and isinstance(next(iter(value.values()), None), BaseModel):
            return {key: plain(each) for key, each in value.items()}
        return value

    return {each.name: plain(getattr(line, each.name)) for each in fields(line) if each.type is not bytes}


DocumentLine: TypeAlias = Annotated[ReadDocument | RefusedDocument, Field(discriminator="kind")]
RowLine: TypeAlias = Annotated[ReadRow | Reject, Field(discriminator="kind")]
QuestionLine: TypeAlias = Annotated[Asked | Reject | RowCounts, Field(discriminator="kind")]
RecordLine: TypeAlias = Annotated[
    PackedRecord | BundledRecord | Reject | LeftOutUnits | SharedCounts | ShownImages,
    Field(discriminator="kind"),
]
CellLine: TypeAlias = Annotated[WrittenCell | Reject, Field(discriminator="kind")]
Line: TypeAlias = (
    DocumentLine | RowLine | RankedPages | QuestionLine | FoundNegatives | RecordLine | MadeImage | CellLine
)

DOCUMENTS: TypeAdapter[DocumentLine] = TypeAdapter(DocumentLine)
ROWS: TypeAdapter[RowLine] = TypeAdapter(RowLine)
QUESTIONS: TypeAdapter[QuestionLine] = TypeAdapter(QuestionLine)
RANKINGS: TypeAdapter[RankedPages] = TypeAdapter(RankedPages)
NEGATIVES: TypeAdapter[FoundNegatives] = TypeAdapter(FoundNegatives)
RECORDS: TypeAdapter[RecordLine] = TypeAdapter(RecordLine)
IMAGES: TypeAdapter[MadeImage] = TypeAdapter(MadeImage)
CELLS: TypeAdapter[CellLine] = TypeAdapter(CellLine)
