"""The declaration of a task by its builder: files, metric, placements, limits. Values only."""

from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict

from mmlongbench.documents.joined_pages import JoinPages
from mmlongbench.packing.place import Depth, Permutation, Placement
from mmlongbench.task.file_formats import JSON_LINES, FileFormat, FilePattern


@dataclass(frozen=True, slots=True)
class Placements:
    """The placements of needles; every question gets one example for each placement."""

    kind: type[Depth] | type[Permutation]
    """The kind: `Depth` for one needle, `Permutation` for several."""
    values: tuple[float, ...]
    """The depths, or the numbers of the permutations."""
    in_order: bool = False
    """Of permutations, whether the needles keep the order of the draft."""
    apart: float = 0.0
    """Of permutations, the least distance of two needles, as a share of the haystack. A question is rejected at a
    length that is too short for it."""

    @property
    def fault(self) -> str:
        """Why the placements cannot be used; empty if they can."""
        if self.kind is not Depth and self.kind is not Permutation:
            return (
                f"placements: kind is {self.kind!r}, expected mt.Depth or mt.Permutation; another placement is a place"
            )
        if self.kind is Depth and (self.in_order or self.apart):
            return "placements: in_order and apart are for mt.Permutation; at a depth, all needles stand together"
        if not isinstance(self.apart, int | float) or not 0 <= self.apart < 1:
            return f"placements: apart is {self.apart!r}, expected a share from 0 to below 1, such as 0.1"
        if not isinstance(self.values, tuple | list):
            return f"placements: values are {self.values!r:.40}, expected a tuple such as (0, 1, 2)"
        values = list(self.values)
        if not values or len({*values}) < len(values):
            return f"placements: values are {values!r}, expected at least one, and each once"
        if self.kind is Depth and not all(isinstance(each, int | float) and 0 <= each <= 1 for each in values):
            return f"placements: values are {values!r}, expected depths from 0 to 1"
        if self.kind is Permutation and not all(isinstance(each, int) and each >= 0 for each in values):
            return f"placements: values are {values!r}, expected whole numbers from 0, such as (0, 1, 2)"
        return ""

    def all(self) -> tuple[Placement, ...]:
        """Return the placements in the order of the file."""
        if self.kind is Depth:
            return tuple(map(Depth, self.values))
        return tuple(Permutation(int(value), self.in_order, self.apart) for value in self.values)


@dataclass(frozen=True, slots=True)
class FullPrompt:
    """How far the length of a prompt with every unit may be from the manifest's `reference_length`, in tokens."""

    below: int
    """By how many tokens a prompt may be shorter."""
    above: int
    """By how many tokens a prompt may be longer."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """A second public file beside the file of records, made from the records alone."""

    files: FilePattern
    """How such files are named."""
    format: FileFormat
    """How the records are written to the file."""


class Options(BaseModel):
    """The options of a builder, as a manifest sets them; a builder without options uses this class.

    Values are checked strictly: none is converted to another type. YAML has only lists, so a field that is a tuple
    needs `strict=False`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


@dataclass(frozen=True, slots=True)
class TaskSpec:
    """What a builder declares of its task."""

    files: FilePattern
    """How the public files are named; there is one for each length."""
    metric: str
    """The name of the metric, in the public scorer and among the entry points `mmlongbench.metrics`."""
    further_metrics: tuple[str, ...] = ()
    """Other metrics that can score the answers of this task. The name of a metric that uses a judge begins with
    `judge-`."""
    averaged_metric: str = ""
    """The metric whose scores enter averages if it scored every file. If it did not, or if this field is empty, the
    scores of `metric` enter averages."""
    kind: str = ""
    """The kind of its examples, for judges whose prompts differ by kind, such as `report` or `case` for summaries."""
    category: str = ""
    """The category whose average includes the datasets of this task, as in the paper: VRAG, NIAH, ICL, Summ, DocVQA."""
    counted_with: str = ""
    """A name that several datasets share. Only the mean of the scores of these datasets enters the average of the
    category (MM-NIAH: reasoning over text, and reasoning over images)."""
    reserve: int = 256
    """Tokens kept free for the answer and a chat template; a manifest may set another number."""
    variant_reserve: int = 0
    """Tokens kept free for what variants add to the prompt."""
    placements: Placements | None = None
    """The placements of needles; None if the task has no needles."""
    format: FileFormat = JSON_LINES
    """The format of a public file; one JSON object a line by default."""
    is_answer_of_context: bool = False
    """Whether the answer of a question depends on its context (counts of what is shown, labels of the classes that are
    shown). In any other task a question has one answer at all lengths and placements."""
    may_lack_answers: bool = False
    """Whether questions may have no reference answer: the answer in the record is empty then. Such answers can only be
    scored by a judge that sees the document, so `metric` must be one that asks a judge."""
    balance: str = ""
    """A field of the record whose values the lock counts, to show that they are balanced."""
    longest_side: int | None = None
    """The maximum side of a picture in pixels. A larger picture is shrunk; a manifest may set another number."""
    most_tokens: int | None = None
    """The maximum number of tokens of one picture; a manifest may set another number."""
    repeats_pictures: bool = False
    """Whether several units of a context may show the same picture: frames of a film in which nothing moves."""
    page_keys: bool = False
    """Whether the task needs to know which pages of different documents are equal (`Document.keys`)."""
    page_texts: bool = False
    """Whether the task needs the text of pages (`Documents.page_texts`)."""
    page_crops: bool = False
    """Whether the task shows pages as texts with crops of their tables and figures (`Documents.page_parts`)."""
    join_pages: JoinPages | None = None
    """How pages are joined to larger images, so that each of these images is a page of its document; None: they are
    not joined."""
    page_rankings: bool = False
    """Whether the task needs pages that are ranked for each row (`Builder.page_query`, `Sources.page_ranking`)."""
    full_prompt: FullPrompt | None = None
    """How long the prompt with every unit may be; None: any length."""
    paper_images: tuple[float, ...] = ()
    """Images per example at the five standard lengths in the paper (Table 3); empty if they are not known."""
    shown_slots: tuple[str, ...] = ()
    """Texts in braces that prompts show on purpose, such as `{label}`. If all prompts show another text in braces,
    `mmlongbench check` reports it, because it is probably a slot that was not filled in."""
    bundle: Bundle | None = None
    """A second file of the same records, if the public code reads them in another format (ICL)."""


@dataclass(frozen=True, slots=True)
class Remark:
    """Something that a builder notices about one released record, for the audit to count."""

    subject: str
    """What the remark is about, in the plural, such as `questions with an ordinal`."""
    fault: str = ""
    """The fault, in words that can follow a number of examples, such as `naming another picture`; empty if there is
    none."""
    is_promised: bool = False
    """Whether the builder's options promise that there is no fault. If so, a fault in a release of this engine is a
    problem, not only a remark."""
