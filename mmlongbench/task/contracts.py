"""What a builder and a reader are: the protocols that the engine calls and plug-ins meet.

A builder declares: what it writes, how a row becomes a draft, how an example becomes the public record, how the record
becomes the prompt again. A reader turns one dataset's raw files into rows. Neither is known here by name.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeAlias, runtime_checkable

from pydantic import BaseModel, ConfigDict

from mmlongbench.documents.page_store import Pages
from mmlongbench.draft import Draft
from mmlongbench.draws import Draws
from mmlongbench.errors import Fault
from mmlongbench.packing.pack import Example
from mmlongbench.packing.place import Depth, Permutation, Placement
from mmlongbench.prompt import Part, Prompt
from mmlongbench.task.formats import JSON_LINES, FileFormat, FilePattern
from mmlongbench.task.sources import World

Record: TypeAlias = dict[str, Any]
"""One example in the public format."""
SourcePaths: TypeAlias = Mapping[str, Path]
"""What a manifest's `source` names, by the reader's names for it."""


class Options(BaseModel):
    """The options of a builder, as a manifest sets them; a builder without any uses this one.

    Strict: no value is turned into another type. YAML has lists only: a field that is a tuple says `strict=False`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Row(BaseModel):
    """One question as its source has it, cleaned; readers add their fields."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str
    """The released id; from the source where it has any, else of the source's row number."""
    repairs: tuple[str, ...] = ()
    """What was mended on the way in, as slugs to count by."""
    file: str = ""
    """The name of the source file it stands in, for rejects."""
    place: str = ""
    """Where it stands there: a line, a row."""


@dataclass(frozen=True, slots=True)
class RowFault:
    """A row that cannot be read."""

    id: str
    fault: Fault


@dataclass(frozen=True, slots=True)
class RawRow:
    """A row as its source has it, before it is cleaned."""

    id: str
    """That of the row which is made of it."""
    value: dict[str, Any] | Fault
    """Its fields, or what is wrong with it as a whole."""
    file: str
    place: str


@dataclass(frozen=True, slots=True)
class Suspect:
    """A row whose annotation may be wrong."""

    id: str
    kind: str
    """A slug to count by."""
    evidence: str
    correction: Mapping[str, Any] = field(default_factory=dict)
    """What would be right, by the source's own field names; empty where nobody can tell."""


def at_place(id: str, found: Row | Fault, file: str, place: str) -> Row | RowFault:
    """What a reader made of a raw row, with the place where that stands in its source."""
    if isinstance(found, Row):
        return found.model_copy(update={"file": file, "place": place})
    return RowFault(id, replace(found, file=found.file or file, place=found.place or place))


@dataclass(frozen=True, slots=True)
class Placements:
    """Where needles go in turn: each gives one example of every question."""

    kind: type[Depth] | type[Permutation]
    values: tuple[float, ...]

    def all(self) -> tuple[Placement, ...]:
        """The placements in the order of the file."""
        return tuple(Depth(v) if self.kind is Depth else Permutation(int(v)) for v in self.values)


@dataclass(frozen=True, slots=True)
class FullPrompt:
    """The span of prompts with every unit, around the manifest's `reference_length`, in tokens."""

    below: int
    above: int


@dataclass(frozen=True, slots=True)
class Bundle:
    """A public file beside the records, made of them alone."""

    files: FilePattern
    format: FileFormat


@dataclass(frozen=True, slots=True)
class TaskSpec:
    """What a builder declares of its task."""

    files: FilePattern
    metric: str
    """The public scorer's name for the metric: an entry of `mmlongbench.metrics`."""
    further_metrics: tuple[str, ...] = ()
    """Other metrics that its answers can be scored by; one that asks a judge has a name that begins with `judge-`."""
    averaged_metric: str = ""
    """The metric its datasets enter averages by where it was scored; `metric` otherwise."""
    kind: str = ""
    """What kind its examples are, where a metric words its questions by it: summaries of a `report` or a `case`."""
    category: str = ""
    """Whose average its datasets enter, as the paper groups them: VRAG, NIAH, ICL, Summ, DocVQA."""
    counted_with: str = ""
    """Datasets that share this name enter the average once, as their mean (MM-NIAH: reasoning over text and images)."""
    reserve: int = 256
    """Tokens kept free: to generate, and for a chat template; a manifest may say otherwise."""
    placements: Placements | None = None
    """None where nothing is put at a depth."""
    format: FileFormat = JSON_LINES
    is_answer_of_context: bool = False
    """Whether the answer of a question depends on its context (counts of what is shown, labels of the classes that
    are). Of any other task, a question has one answer at all lengths and placements."""
    balance: str = ""
    """A field of the record whose values the lock counts, to show that they are balanced."""
    longest_side: int | None = None
    """Of a picture, in pixels: larger ones are shrunk; a manifest may say otherwise."""
    most_tokens: int | None = None
    """What one picture may cost; a manifest may say otherwise."""
    page_keys: bool = False
    """Whether it needs to know equal pages of different documents (`Document.keys`)."""
    page_texts: bool = False
    """Whether it needs the text of pages (`World.page_texts`)."""
    full_prompt: FullPrompt | None = None
    """How long the prompt with every unit may be; any length by default."""
    paper_images: tuple[float, ...] = ()
    """Images an example at the five standard lengths, as the paper has them (Table 3), where they are known."""
    bundle: Bundle | None = None
    """A second file of the same records, where the public format wants another shape (ICL)."""


@dataclass(frozen=True, slots=True)
class Remark:
    """What a builder notices about one released record, for the audit to count."""

    subject: str
    """What it is about, in the plural, such as `questions with an ordinal`."""
    fault: str = ""
    """What is wrong, in words that follow any number of them, such as `naming another picture`; empty if nothing is."""
    is_promised: bool = False
    """Whether these options promise that nothing is wrong; a fault is then a problem of a release of this engine."""


@runtime_checkable
class RemarkingBuilder(Protocol):
    """A builder that looks at released records, its own and those that others made, beyond their counts."""

    def remarks(self, record: Record) -> Iterable[Remark]:
        """Return what can be noticed about one record."""
        ...


class Builder(Protocol):
    """A task family, bound to one dataset; `draft`, `record` and `prompt` are pure.

    It may have more: `variants` (see the audit); `remarks` (see `RemarkingBuilder`);
    `selects(world) -> Callable[[Row], bool]`, which rows this dataset asks about at all, before any is sampled;
    `suspects(rows, world) -> Iterable[Suspect]`, rows whose annotation may be wrong, as far as the texts of pages tell
    (`doctor`); and, where many questions share one context (ICL),
    `contexts(rows, world) -> Sequence[Draft]`, all contexts of the dataset over all rows that are in. Each question is
    at home in one of them, and every context is packed to fit every question it is asked; for scoring,
    `gold(record) -> Any`, the answer that a metric compares with (`record["answer"]` by default),
    `facets(record) -> Mapping[str, Sequence[str]]`, what a report breaks scores down by, the names of the groups that
    a record is in for each (an answer's format, its evidence sources), and `cluster(record) -> str` (see
    `HasClusters`).
    """

    options_type: ClassVar[type[Any]]
    """A pydantic model of what a manifest may set."""

    def __init__(self, dataset: str, options: Any) -> None:  # noqa: ANN401  (its own Options)
        """Bind the task to a dataset's name and options."""

    @property
    def spec(self) -> TaskSpec:
        """What it declares."""
        ...

    @property
    def dataset(self) -> str:
        """The name it was bound to."""
        ...

    def draft(self, row: Any, world: World, draws: Draws) -> Draft:  # noqa: ANN401  (its reader's Row)
        """One row as a draft; raises Rejected where the row cannot be asked."""
        ...

    def record(self, example: Example) -> Record:
        """The public record, without `length`, `tokens` and the placement: the engine adds these."""
        ...

    def prompt(self, record: Record) -> Prompt:
        """The prompt, from the public record alone; tolerant of fields it does not know."""
        ...


@runtime_checkable
class HasClusters(Protocol):
    """A builder whose questions are no independent draws: several are about one document, entity or picture."""

    def cluster(self, record: Record) -> str:
        """Return what a record's question is about; empty where the record does not tell.

        It must be the same at every length and placement of a question. The intervals of a report resample clusters.
        """
        ...


def clusters_of(builder: Builder) -> Callable[[Record], str]:
    """Return what tells the cluster of a record; empty for all records of a builder that knows no clusters."""
    return builder.cluster if isinstance(builder, HasClusters) else lambda record: ""


@runtime_checkable
class HasGold(Protocol):
    """A builder whose answers are not the records' `answer`."""

    def gold(self, record: Record) -> Any:  # noqa: ANN401  (as its metric takes it)
        """Return the answer of a record that a metric compares with."""
        ...


def gold_of(builder: Builder) -> Callable[[Record], Any]:
    """Return what gives the answer of a record: the builder's `gold`, if that is a method, else its field `answer`."""
    if isinstance(builder, HasGold) and callable(builder.gold):
        return builder.gold
    return lambda record: record.get("answer")


@runtime_checkable
class HasNeedles(Protocol):
    """A builder that says what the needles of a record are; the audit looks for them in the prompt."""

    def needles(self, record: Record) -> Sequence[Part]:
        """Return every needle as the prompt shows it: an image, or a text from its first character on.

        They are the same at every length and placement of a question; their order is that of the prompt where two are
        alike.
        """
        ...


def needles_of(builder: Builder) -> Callable[[Record], Sequence[Part]] | None:
    """Return what gives the needles of a record; None of a builder whose `needles` is no method, or that has none."""
    return builder.needles if isinstance(builder, HasNeedles) and callable(builder.needles) else None


@runtime_checkable
class HasVariants(Protocol):
    """A builder that offers other renderings of its records than the released one."""

    @property
    def variants(self) -> Sequence[str]:
        """Return the names of the renderings."""
        ...

    def prompt(self, record: Record, variant: str = ...) -> Prompt:
        """Return the prompt of a record in one of the renderings; in the released one by default."""
        ...


class Reader(Protocol):
    """The raw files of one dataset; one whose rows can be corrected is a `CorrectableReader` too.

    It may have more: `image(sources, name) -> PictureFile | None`, the picture that a row calls by a name, a path or a
    cell of a table;
    `shows(sources) -> Mapping[str, frozenset[str]]`, a pool of pictures by name, with the objects each shows;
    `web_pages(sources) -> Mapping[str, Sequence[str | Image]]`, interleaved pages by id, in the source's order, with
    pictures by name; `asked_pictures(sources) -> Iterable[str]`, the pictures that any row, also a refused one, asks
    about or shows beside its question (see `World.is_asked_picture`); `image_classes(sources) -> ImageClasses`, classes
    with their exemplars; `optional_sources`, names that a manifest may leave out; `hub_files`, which files of a dataset
    of the hub stand in for a source's path; `names_images_by_content`, where the names of pictures would tell their
    class.
    """

    row_type: ClassVar[type[Row]]
    sources: ClassVar[tuple[str, ...]]
    """The names a manifest gives paths for."""
    image_folder: ClassVar[str]
    """Where its images go below `mmlb_image/`."""

    def __init__(self) -> None:
        """A reader has no state."""

    def rows(self, sources: SourcePaths) -> Iterator[Row | RowFault]:
        """Every row of the source in its order, or what is wrong with it."""
        ...

    def documents(self, sources: SourcePaths) -> Mapping[str, Pages | Fault]:
        """Document id → PDF or page images, of all documents for rows and padding; a fault refuses the document."""
        ...

    def draw_sample(self, folder: Path) -> dict[str, Path]:
        """Draw a miniature of this source in its raw format, the same bytes every time; returns its sources."""
        ...
