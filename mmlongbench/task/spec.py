"""What a builder declares of its task: files, metric, placements, limits. Values only."""

from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict

from mmlongbench.packing.place import Depth, Permutation, Placement
from mmlongbench.task.formats import JSON_LINES, FileFormat, FilePattern


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


class Options(BaseModel):
    """The options of a builder, as a manifest sets them; a builder without any uses this one.

    Strict: no value is turned into another type. YAML has lists only: a field that is a tuple says `strict=False`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


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
    """Whether it needs the text of pages (`Documents.page_texts`)."""
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
