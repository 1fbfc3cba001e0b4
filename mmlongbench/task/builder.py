"""What a builder is: the protocol that the engine calls and a task family meets.

A builder declares: what it writes, how a row becomes a draft, how an example becomes the public record, how the record
becomes the prompt again.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar, Protocol, runtime_checkable

from mmlongbench.draft import Draft
from mmlongbench.draws import Draws
from mmlongbench.packing.pack import Example
from mmlongbench.prompt import Part, Prompt
from mmlongbench.task.rows import Record
from mmlongbench.task.sources import World
from mmlongbench.task.spec import Remark, TaskSpec


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
