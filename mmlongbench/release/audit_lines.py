"""The output of `mmlongbench audit --json`: one line of JSON for each file, which `AuditLine` can parse again."""

from pydantic import BaseModel, ConfigDict


class _Line(BaseModel):
    model_config = ConfigDict(frozen=True)


class SpreadFigures(_Line):
    """Mean, standard deviation, smallest and largest value; all are 0 if there are no values."""

    mean: float
    """The mean."""
    sd: float
    """The standard deviation of the population."""
    min: int | float
    """The smallest value; a whole number if the values are whole numbers."""
    max: int | float
    """The largest value."""


class CostlyExample(_Line):
    """An example that costs much on a model."""

    id: str
    """Its id."""
    tokens: int
    """The tokens of its prompt."""


class ModelFigures(_Line):
    """What a file costs on one model."""

    tokens: SpreadFigures
    """The tokens of each prompt (its text and its images), without the reserve."""
    over_window: int
    """The number of examples whose prompt and reserve are larger than the window."""
    over_images: int
    """The number of examples with more images than a request may hold."""
    refused: int
    """The number of examples with an image that the model refuses."""
    first_refused: str
    """The first refused example, and why; empty if there is none."""
    not_counted: int
    """The number of examples that could not be read or counted."""
    fits: float
    """The share of the counted and refused examples that fit the model; 1 if there are none."""
    worst: list[CostlyExample]
    """The costliest examples, the costliest first."""


class RemarkFault(_Line):
    """A fault of some of the examples that a remark is about."""

    fault: str
    """The fault in words, to be printed after the number of its examples."""
    count: int
    """How many examples have it."""
    first: str
    """Where it was first found."""


class RemarkFigures(_Line):
    """What a builder noticed about the records of a file, under one subject."""

    subject: str
    """The subject, in the plural."""
    examples: int
    """How many examples the subject applies to."""
    faults: list[RemarkFault]
    """The faults that some of these examples have."""


class ProblemFigures(_Line):
    """A kind of problem, and how often it was found."""

    problem: str
    """The problem in words."""
    count: int
    """How often it was found."""
    first: str
    """Where it was first found."""


class AuditLine(_Line):
    """The counts of one file; `models`, `remarks` and `recall` are there only if they have entries."""

    file: str
    """The path below `mmlb_data/`; for problems elsewhere, the part of the release, such as `mmlb_image`."""
    dataset: str
    """The name of the dataset; empty if it is unknown."""
    length: int
    """The length in tokens."""
    examples: int
    """The number of examples."""
    fill: SpreadFigures
    """(prompt + reserve) / length."""
    text: SpreadFigures
    """Text tokens per example."""
    image: SpreadFigures
    """Image tokens per example."""
    images: SpreadFigures
    """Images per example."""
    fill_histogram: list[int]
    """The number of examples in 20 equal bins of fill from 0 to 1, then the number above 1."""
    models: dict[str, ModelFigures] = {}
    """The cost of the file on each requested model, by the model's name."""
    remarks: list[RemarkFigures] = []
    """What the builder noticed about the records."""
    recall: dict[str, float] = {}
    """If contexts are retrieved: the mean share of a question's answer pages among the first k pages, by k."""
    problems: list[ProblemFigures]
    """The problems that were found; empty if there are none."""
