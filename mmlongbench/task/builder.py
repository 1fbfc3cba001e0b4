"""What a builder is: a task family, bound to one dataset. The engine knows every task through this class alone.

A builder declares: what it writes, how a row becomes a draft, how an example becomes the public record, how the record
becomes the prompt again. It never sees a length, a depth or a token count.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import ClassVar, Generic, TypeVar

from mmlongbench.corpus.retrieval.negatives import Query
from mmlongbench.draft import Draft
from mmlongbench.draws import Draws
from mmlongbench.errors import DraftError
from mmlongbench.packing.pack import Example
from mmlongbench.prompt import Part, Prompt
from mmlongbench.task.evidence import Evidence
from mmlongbench.task.rows import Record, Row, Suspect
from mmlongbench.task.sources import Sources
from mmlongbench.task.spec import Options, Remark, TaskSpec

RowT = TypeVar("RowT", bound=Row)


class Builder(ABC, Generic[RowT]):
    """A task family. Write `row_type`, `spec`, `draft`, `record`, `prompt`; the last three are pure.

    The rest has defaults.
    """

    row_type: ClassVar[type[Row]]
    """The rows that `draft` takes. A reader fits if it gives rows of this type, or of a subclass."""
    options_type: ClassVar[type[Options]] = Options
    """What a manifest may set under `options`."""
    variants: ClassVar[tuple[str, ...]] = ()
    """Names of other renderings of the released prompt, which `render_variant` gives."""
    dataset: str
    """The name of the dataset that it is bound to."""
    options: Options

    def __init__(self, dataset: str, options: Options) -> None:
        """Bind the task to the name and the options of a dataset."""
        self.dataset = dataset
        self.options = options

    @property
    @abstractmethod
    def spec(self) -> TaskSpec:
        """What it declares of its task: files, metric, placements, limits."""

    @abstractmethod
    def draft(self, row: RowT, sources: Sources, draws: Draws) -> Draft:
        """Return a row as a draft: one example before it has a length.

        Raises:
            Rejected: the row cannot be asked.

        """

    @abstractmethod
    def record(self, example: Example) -> Record:
        """Return the public record of an example; the engine adds `length`, `tokens` and the placement."""

    @abstractmethod
    def prompt(self, record: Record) -> Prompt:
        """Return the prompt of a record, from the record alone; fields that it does not know change nothing."""

    def render_variant(self, record: Record, variant: str) -> Prompt:
        """Return the prompt of a record in one of the `variants`."""
        raise DraftError(f"there is no variant {variant!r} of dataset {self.dataset!r}")

    def selects(self, sources: Sources) -> Callable[[RowT], bool] | None:
        """Return what tells whether a row is asked about at all, before any is sampled; None: every row is."""
        return None

    def queries(self, row: RowT, sources: Sources) -> Sequence[Query]:
        """Return the searches for hard negatives that `draft` takes from (`sources.corpus.negatives`).

        They are searched for after the questions are chosen and before any example is packed. `draft` may take them
        only as its take order is gone through, as a part of `Chain` that is a function. Only rows that are chosen are
        asked for their queries.
        """
        return ()

    def gold(self, record: Record) -> object:
        """Return the answer that a metric compares with."""
        return record.get("answer")

    def question(self, record: Record) -> str:
        """Return the question alone, as a judge is shown it; empty where the task has none."""
        question = record.get("question")
        return question if isinstance(question, str) else ""

    def answer_format(self, record: Record) -> object:
        """Return the format of the answer, such as `Integer` or `List`, for metrics that score by it; None: none.

        A metric says what is wrong with a format that it does not know, so that it may be given any value.
        """
        return record.get("answer_format")

    def evidence(self, record: Record) -> Evidence | None:
        """Return where the answer of a record stands; None: the record does not tell."""
        return None

    def source_id(self, record: Record) -> str:
        """Return the id of a record's question in its source, where that is not the released one; empty if unknown.

        Claims of gold summaries that others publish are found by it.
        """
        return str(record.get("source_id", ""))

    def needles(self, record: Record) -> Sequence[Part] | None:
        """Return every needle as the prompt shows it: an image, or a text from its first character on.

        The audit looks for them in the prompt. They are the same at every length and placement of a question; their
        order is that of the prompt where two are alike. None: the record does not tell.
        """
        return None

    def facets(self, record: Record) -> Mapping[str, Sequence[str]]:
        """Return what a report breaks scores down by: for each facet, the names of the groups that a record is in."""
        return {}

    def cluster(self, record: Record) -> str:
        """Return what a record's question is about, where several questions are about one thing; empty if unknown.

        It must be the same at every length and placement of a question. The intervals of a report resample clusters.
        """
        return ""

    def remarks(self, record: Record) -> Iterable[Remark]:
        """Return what can be noticed about a released record beyond its counts; the audit counts it."""
        return ()


class SharedContextBuilder(Builder[RowT]):
    """A task whose questions share contexts, as many-shot tasks do; a context is packed to fit all its questions."""

    @abstractmethod
    def contexts(self, rows: Sequence[RowT], sources: Sources) -> Sequence[Draft]:
        """Return all contexts of the dataset, over all rows that are in. Each question is at home in one of them."""


class ExaminingBuilder(Builder[RowT]):
    """A task that can tell which annotations of its source may be wrong; `mmlongbench doctor` asks it."""

    @abstractmethod
    def suspects(self, rows: Sequence[RowT], sources: Sources) -> Iterable[Suspect]:
        """Return the rows whose annotation may be wrong, as far as the texts of pages tell.

        `sources` has only the documents that `examined_documents` names, and the rows. No errata are applied: an
        annotation that a manifest's errata correct is found again.
        """

    @abstractmethod
    def examined_documents(self, rows: Sequence[RowT]) -> Iterable[str]:
        """Return the ids of the documents whose texts `suspects` needs."""
