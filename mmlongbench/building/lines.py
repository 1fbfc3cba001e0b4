"""The lines of shards' results: what one stage writes and the next one reads, each of a type of its own."""

from dataclasses import dataclass, field, fields
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, Field, TypeAdapter

from mmlongbench.errors import Fault
from mmlongbench.release.items import Item
from mmlongbench.release.lock import CellCounts, LockedFile, QuestionCounts
from mmlongbench.task.rows import Record


@dataclass(frozen=True, slots=True)
class ReadDocument:
    """A document whose pages are known; `keys` and `texts` as far as the task asks for them."""

    pages: list[tuple[int, int]]
    """(width, height) of each page, in pixels."""
    keys: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    kind: Literal["read"] = "read"


@dataclass(frozen=True, slots=True)
class RefusedDocument:
    """A document that cannot be used."""

    fault: Fault
    kind: Literal["refused"] = "refused"


@dataclass(frozen=True, slots=True)
class ReadRow:
    """A row of the source that can be read."""

    row: dict[str, Any]
    """The fields of the reader's row."""
    kind: Literal["row"] = "row"


@dataclass(frozen=True, slots=True)
class Asked:
    """A question of every file."""

    place: int
    """The place of its row among the rows that can be read, from 0."""
    id: str
    """The id of its row."""
    kind: Literal["asked"] = "asked"


@dataclass(frozen=True, slots=True)
class Reject:
    """What was left out, and why."""

    dataset: str
    id: str
    length: int | None
    """Of a question that does not fit; None of a row that is in no file."""
    fault: Fault
    kind: Literal["reject"] = "reject"

    def fields(self) -> dict[str, Any]:
        """Return the line of `rejects.jsonl`."""
        return {"dataset": self.dataset, "id": self.id, "length": self.length, **self.fault.fields()}


@dataclass(frozen=True, slots=True)
class RowCounts:
    """What became of the rows of a dataset."""

    counts: QuestionCounts
    rows: str = ""
    """The SHA-256 of the result that the questions were chosen from."""
    kind: Literal["counts"] = "counts"


@dataclass(frozen=True, slots=True)
class FoundNegatives:
    """The hard negatives of a question."""

    id: str
    """Of the question."""
    numbers: list[int]
    """Their places in the corpus."""
    rejected: dict[str, int]
    """How many passages were turned away, by reason."""


@dataclass(frozen=True, slots=True)
class PackedRecord:
    """An example that is released."""

    record: Record
    items: list[Item]
    ran_dry: bool
    missing: int
    """For how many units of the mean size there was still room."""
    pictures: dict[str, str] = field(default_factory=dict)
    """The source's names of its pictures, by released path; in `ShownImages` once the line is written."""
    kind: Literal["record"] = "record"


@dataclass(frozen=True, slots=True)
class BundledRecord:
    """A record that only the bundled file needs."""

    record: Record
    pictures: dict[str, str] = field(default_factory=dict)
    kind: Literal["bundled"] = "bundled"


@dataclass(frozen=True, slots=True)
class LeftOutUnits:
    """Units of a context that were excluded, by reason."""

    left_out: dict[str, int]
    kind: Literal["left_out"] = "left_out"


@dataclass(frozen=True, slots=True)
class SharedCounts:
    """What is counted of contexts that questions share."""

    not_asked: int
    missing_classes: int
    kind: Literal["shared"] = "shared"


@dataclass(frozen=True, slots=True)
class ShownImages:
    """The images that a block of examples shows; the last line of its result."""

    pages: list[str]
    """Released paths."""
    pictures: dict[str, list[str]]
    """The source's names by released path."""
    kind: Literal["shown"] = "shown"


@dataclass(frozen=True, slots=True)
class MadeImage:
    """An image of the release, as it was made."""

    path: str
    """Below `mmlb_image/`."""
    bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class WrittenCell:
    """The files of a dataset at a length, and what is counted of it."""

    files: dict[str, LockedFile]
    """By path below the release."""
    counts: CellCounts
    kind: Literal["cell"] = "cell"


def to_fields(line: "Line") -> dict[str, object]:
    """Return a line as plain JSON values."""
    return {each.name: _plain(getattr(line, each.name)) for each in fields(line)}


def _plain(value: object) -> object:
    if isinstance(value, Fault):
        return value.fields()
    if isinstance(value, BaseModel):
        return value.model_dump(exclude_unset=True)
    is_of_models = isinstance(value, dict) and isinstance(next(iter(value.values()), None), BaseModel)
    return {key: _plain(each) for key, each in value.items()} if is_of_models and isinstance(value, dict) else value


DocumentLine: TypeAlias = Annotated[ReadDocument | RefusedDocument, Field(discriminator="kind")]
RowLine: TypeAlias = Annotated[ReadRow | Reject, Field(discriminator="kind")]
QuestionLine: TypeAlias = Annotated[Asked | Reject | RowCounts, Field(discriminator="kind")]
RecordLine: TypeAlias = Annotated[
    PackedRecord | BundledRecord | Reject | LeftOutUnits | SharedCounts | ShownImages, Field(discriminator="kind")
]
CellLine: TypeAlias = Annotated[WrittenCell | Reject, Field(discriminator="kind")]
Line: TypeAlias = (
    ReadDocument
    | RefusedDocument
    | ReadRow
    | Asked
    | Reject
    | RowCounts
    | FoundNegatives
    | PackedRecord
    | BundledRecord
    | LeftOutUnits
    | SharedCounts
    | ShownImages
    | MadeImage
    | WrittenCell
)
"""Any line of any stage."""

DOCUMENTS: TypeAdapter[DocumentLine] = TypeAdapter(DocumentLine)
ROWS: TypeAdapter[RowLine] = TypeAdapter(RowLine)
QUESTIONS: TypeAdapter[QuestionLine] = TypeAdapter(QuestionLine)
NEGATIVES: TypeAdapter[FoundNegatives] = TypeAdapter(FoundNegatives)
RECORDS: TypeAdapter[RecordLine] = TypeAdapter(RecordLine)
IMAGES: TypeAdapter[MadeImage] = TypeAdapter(MadeImage)
CELLS: TypeAdapter[CellLine] = TypeAdapter(CellLine)
