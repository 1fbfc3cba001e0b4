"""What `mmlongbench audit --json` prints: one line of JSON for each file, as a model that others can read it with."""

from pydantic import BaseModel, ConfigDict


class _Line(BaseModel):
    model_config = ConfigDict(frozen=True)


class SpreadFigures(_Line):
    """Mean, standard deviation, least and most; all 0 of nothing."""

    mean: float
    sd: float
    min: int | float
    """As `max`, a whole number where whole numbers are spread."""
    max: int | float


class CostlyExample(_Line):
    """An example that costs much on a model."""

    id: str
    tokens: int


class ModelFigures(_Line):
    """What a file costs on one model."""

    tokens: SpreadFigures
    """Of the prompt, text and images, without the reserve."""
    over_window: int
    """Examples whose prompt and reserve are more than the window."""
    over_images: int
    """Examples with more images than a request may hold."""
    refused: int
    """Examples with an image that the model refuses."""
    first_refused: str
    not_counted: int
    """Examples that could not be read or counted."""
    fits: float
    """The share of the examples that do."""
    worst: list[CostlyExample]
    """The costliest first."""


class RemarkFault(_Line):
    """What is wrong with some of the examples that a remark is about."""

    fault: str
    count: int
    first: str
    """Where it was found first."""


class RemarkFigures(_Line):
    """What a builder noticed about the records of a file, under one subject."""

    subject: str
    examples: int
    faults: list[RemarkFault]


class ProblemFigures(_Line):
    """A kind of problem."""

    problem: str
    count: int
    first: str
    """Where it was found first."""


class AuditLine(_Line):
    """What was counted in one file; `models` and `remarks` stand there only where there are any."""

    file: str
    dataset: str
    """Empty where none is known."""
    length: int
    """In tokens."""
    examples: int
    fill: SpreadFigures
    """(prompt + reserve) / L."""
    text: SpreadFigures
    """Tokens an example, as that of images."""
    image: SpreadFigures
    images: SpreadFigures
    """Images an example."""
    fill_histogram: list[int]
    """Examples in 20 equal bins of fill from 0 to 1, then those over 1."""
    models: dict[str, ModelFigures] = {}
    remarks: list[RemarkFigures] = []
    problems: list[ProblemFigures]
