"""A builder is a task family, applied to one dataset. The engine uses every task through this class alone.

A builder declares what it writes, how a row becomes a draft, how an example becomes the public record, and how the
record becomes the prompt again. It never sees a length, a depth or a token count.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

from mmlongbench.corpus.retrieval.negatives import Query
from mmlongbench.corpus.retrieval.pages import PageQuery
from mmlongbench.draft import ContextDraft, Draft
from mmlongbench.draws import Draws
from mmlongbench.errors import DraftError
from mmlongbench.packing.pack import PackedExample
from mmlongbench.prompt import Needle, Part, Prompt
from mmlongbench.task.metric import Evidence, Metric, ScoringInput
from mmlongbench.task.rows import Record, Row, Suspect
from mmlongbench.task.sources import Sources
from mmlongbench.task.spec import Options, Remark, TaskSpec


@dataclass(frozen=True, slots=True)
class Choices:
    """The answers that a question offers, and which of them is right."""

    offered: tuple[Part, ...]
    """The answers in the order in which the question shows them, as texts or images; for a question that is answered
    by yes or no, these two words in an order that is the same for all questions."""
    right: int
    """The place of the right answer among them, from 0."""

    def __post_init__(self) -> None:
        """Check that the right answer is offered, and that all answers are of one kind.

        Raises:
            ValueError: a record has no such answer, or offers texts beside images.

        """
        if not isinstance(self.right, int) or not 0 <= self.right < len(self.offered):
            raise ValueError(f"the right answer is {self.right!r}, expected a place from 0 to {len(self.offered) - 1}")
        if len({isinstance(each, str) for each in self.offered}) > 1:
            raise ValueError("offers texts beside images, expected one kind")

    @property
    def chance(self) -> float:
        """The probability that a guess is right."""
        return 1 / len(self.offered)


RowT = TypeVar("RowT", bound=Row)


class Builder(ABC, Generic[RowT]):
    """A task family. Subclasses define `row_type`, `spec`, `draft`, `record` and `prompt`; the last three are pure.

    All other methods have defaults.
    """

    row_type: ClassVar[type[Row]]
    """The class of rows that `draft` takes. A reader fits if its rows are of this class or of a subclass."""
    options_type: ClassVar[type[Options]] = Options
    """The options that a manifest may set under `options`."""
    variants: ClassVar[tuple[str, ...]] = ()
    """The names of other forms of the released prompt; `render_variant` returns the prompt in one of these forms."""
    record_fields: ClassVar[Mapping[str, str]] = {}
    """What each field of a record means, by the name of the field: one sentence each, which `mmlongbench list` shows.
    The fields that the engine adds are not repeated here."""
    may_reject_everywhere: ClassVar[bool] = False
    """Whether `record` may raise `Rejected(…, everywhere=True)`. Each question is then tried at all lengths first."""
    dataset: str
    """The name of the dataset that this builder works on."""
    options: Options
    """The options that the manifest sets, as an `options_type`."""

    def __init__(self, dataset: str, options: Options) -> None:
        """Keep the name and the options of a dataset."""
        self.dataset = dataset
        self.options = options

    @property
    @abstractmethod
    def spec(self) -> TaskSpec:
        """Return what the builder declares of its task: files, metric, placements, limits."""

    @abstractmethod
    def draft(self, row: RowT, sources: Sources, draws: Draws) -> Draft | ContextDraft:
        """Turn a row into a draft: one example before it has a length. Only a `Task` may return a `Draft`, which
        `completed` completes.

        Raises:
            Rejected: no example can be made of the row.

        """

    @abstractmethod
    def record(self, example: PackedExample) -> Record:
        """Return the public record of an example; the engine adds `length`, `tokens` and the needle positions.

        Raises:
            Rejected: the question has no valid answer about this context, so it is left out at this length.

        """

    @abstractmethod
    def prompt(self, record: Record) -> Prompt:
        """Rebuild the prompt from the record alone; fields that the builder does not know have no effect."""

    def render_variant(self, record: Record, variant: str) -> Prompt:
        """Return the prompt of a record in one of the `variants`."""
        raise DraftError(f"there is no variant {variant!r} of dataset {self.dataset!r}")

    def selects(self, sources: Sources) -> Callable[[RowT], bool] | None:
        """Return a function that says whether a row is asked about at all; None: every row is asked about. The engine
        applies the function before it draws the sample.
        """
        return None

    def queries(self, row: RowT, sources: Sources) -> Sequence[Query]:
        """Return the searches for the hard negatives that `draft` uses (`sources.corpus.negatives`).

        The engine searches after the questions are chosen and before any example is packed. So `draft` may read the
        negatives only while its take order is iterated: in a function that is a part of a `Chain`. This method is
        called only for rows that were chosen.
        """
        return ()

    def page_query(self, row: RowT, sources: Sources) -> PageQuery | None:
        """Return the search for pages that `draft` uses (`sources.page_ranking`); None: no page is ranked for the row.

        The engine ranks pages before the questions are chosen, for every row, if `TaskSpec.page_rankings` says so. It
        may raise `Rejected`; `draft` must then reject the row, too.
        """
        return None

    def gold_ranks(self, record: Record) -> Sequence[int] | None:
        """Return the ranks, from 1, of the pages that hold the answer, as a retriever found them; 0 for a page that it
        did not find. The audit derives recall from them. None: the context was not retrieved.
        """
        return None

    def own_metrics(self) -> Mapping[str, type[Metric]]:
        """Return the metrics that no package installs, by name: those in the file of the task."""
        return {}

    def completed(self, draft: Draft | ContextDraft, row: RowT) -> ContextDraft:
        """Return a draft with what its task says once for all rows (`Task`); of a builder, the draft itself."""
        if isinstance(draft, Draft):
            raise DraftError("returned an mt.Draft, which is for an mt.Task; expected an mt.advanced.ContextDraft")
        return draft

    def answer_of(self, record: Record) -> object:
        """Return the answer that a metric compares with."""
        return record.get("answer")

    def accepted(self, record: Record) -> Sequence[object]:
        """Return other answers that count as right, each in the form of the answer. A prediction has the best of the
        scores that it has for any of the answers.
        """
        return ()

    def choices(self, record: Record) -> Choices | None:
        """Return the answers that the question offers; None: the answer is free.

        The chance of a guess follows from them, which `mmlongbench shortcuts` compares results with. Labels and options
        that the prompt shows, yes and no, and the labels of classes are such answers.
        """
        return None

    def question_of(self, record: Record) -> str:
        """Return the question alone, as a judge sees it; empty if the task has none."""
        question = record.get("question")
        return question if isinstance(question, str) else ""

    def answer_format(self, record: Record) -> object:
        """Return the format of the answer, such as `Integer` or `List`, for metrics that score by the format; None: the
        answer has no format.

        Any value is allowed: a metric reports a format that it does not know.
        """
        return record.get("answer_format")

    def evidence(self, record: Record) -> Evidence | None:
        """Return where the answer of a record is; None: the record does not say."""
        return None

    def source_id(self, record: Record) -> str:
        """Return the id that a record's question has in its source, if that is not the released id; otherwise an empty
        text. Published claims of gold summaries are found by the released id or by this id.
        """
        return str(record.get("source_id", ""))

    def needles(self, record: Record) -> Sequence[Needle] | None:
        """Return every needle as the prompt shows it: an image, a text that begins where the needle begins, or a
        tuple of texts and images that stand one after another.

        The audit looks for the needles in the prompt. They are the same at every length and placement of a question.
        Equal needles must be in the order of the prompt. None: the record does not say which needles it has.
        """
        return None

    def labels(self, record: Record) -> Sequence[str]:
        """Return what each unit of the prompt is, for people, in the order of the prompt, such as `the asked picture`;
        empty texts for units without a label, and an empty list if there is none. No model sees them.
        """
        return ()

    def facets(self, record: Record) -> Mapping[str, Sequence[str]]:
        """Return the groups that a record is in, by facet, such as `answer format`; a report shows the score of each
        group.
        """
        return {}

    def cluster(self, record: Record) -> str:
        """Return an id that questions about the same thing share; empty if unknown.

        It must be the same at every length and placement of a question. The confidence intervals of a report resample
        whole clusters.
        """
        return ""

    def remarks(self, record: Record) -> Iterable[Remark]:
        """Return what the builder notices about a released record besides its token counts; the audit counts these
        remarks.
        """
        return ()


class SharedContextBuilder(Builder[RowT]):
    """A task whose questions share contexts, as many-shot tasks do; a context is packed to fit all its questions."""

    @abstractmethod
    def contexts(self, rows: Sequence[RowT], sources: Sources) -> Sequence[ContextDraft]:
        """Return all contexts of the dataset, made of all chosen rows. The record of each question is made from one of
        these contexts.
        """


class ExaminingBuilder(Builder[RowT]):
    """A task that can find annotations of its source which may be wrong; `mmlongbench doctor` uses it."""

    @abstractmethod
    def suspects(self, rows: Sequence[RowT], sources: Sources) -> Iterable[Suspect]:
        """Return the rows whose annotation may be wrong, as far as the texts of pages show.

        `sources` has only `rows`, and the documents that `examined_documents` returns. Errata are not applied, so an
        annotation that the errata correct is found again.
        """

    @abstractmethod
    def examined_documents(self, rows: Sequence[RowT]) -> Iterable[str]:
        """Return the ids of the documents whose texts `suspects` needs."""


def scoring_input(
    builder: Builder[Row], record: Record, file: str, prediction: str = "", *, lead: str = "", place: int = 0
) -> ScoringInput:
    """Return the input of a metric for one record of the public `file`; each method of the builder is called once. The
    other values are fields of `ScoringInput`.

    Raises:
        DraftError: the builder's `evidence` returns something other than an `Evidence` or None.

    """
    evidence = builder.evidence(record)
    if not isinstance(evidence, Evidence | None):
        raise DraftError(f"evidence() returned a {type(evidence).__name__}, expected mt.Evidence or None")
    return ScoringInput(
        file,
        builder.dataset,
        str(record.get("id", "")),
        builder.answer_of(record),
        prediction,
        lead=lead,
        place=place,
        kind=builder.spec.kind,
        question=builder.question_of(record),
        answer_format=builder.answer_format(record),
        evidence=evidence,
        source_id=builder.source_id(record),
        cluster=builder.cluster(record),
        facets=builder.facets(record),
        record=record,
        accepted=tuple(builder.accepted(record)),
    )
