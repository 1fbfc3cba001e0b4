"""The scores file: one line of JSON for each example, model and metric, or for each answer if a model has several
answers (samples) to one example. Scoring writes it, a report reads it.

The file is called `<model>.<metrics>.jsonl` (see `scores_file`). A line has everything a report needs, so the
release is not needed.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from mmlongbench.errors import ReleaseError
from mmlongbench.scoring.reasoning import Reasoning
from mmlongbench.task.file_formats import JSON_LINES
from mmlongbench.task.metric import PROFILES, Profile

CONTEXT = "context "
"""How the choice begins that lines have if the model was given another context than the released prompt."""
UNKNOWN: Literal["unknown"] = "unknown"
Status: TypeAlias = Literal["scored", "absent", "failed", "skipped", "outside"]
MAX_SAMPLE = 999_999
"""The highest number that a sample may have."""
SHOWN_PROFILES: tuple[str, ...] = (*PROFILES, UNKNOWN)
"""The profiles, in the order in which reports show them."""


def profile_order(profile: str) -> tuple[int, str]:
    """Return a key that sorts profiles as reports show them; a profile's name may be followed by choices.

    >>> sorted(["ours", "official, reasoning kept", "official"], key=profile_order)
    ['official', 'official, reasoning kept', 'ours']
    """
    return SHOWN_PROFILES.index(profile.partition(", ")[0]), profile


class ScoreLine(BaseModel):
    """One answer to an example, scored by one metric."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str
    """The model whose prediction was scored."""
    metric: str
    profile: Profile | Literal["unknown"] = UNKNOWN
    """The profile, which says whose rules the score follows; `unknown` in old files, whose lines have no profile."""
    follows: str = ""
    """The code or paper that the rules come from, with its version."""
    choices: Sequence[str] = ()
    """The choices that change scores within the profile, such as `rule-extracted`."""
    is_own: bool = False
    """Whether the metric is the task's own metric (`TaskSpec.metric`). `counted_metrics` says which metric averages
    use."""
    averaged_metric: str = ""
    """See `TaskSpec`."""
    file: str
    """The public file, below `mmlb_data/`."""
    dataset: str
    category: str = ""
    counted_with: str = ""
    """See `TaskSpec`."""
    length: int
    """The length of the file, in tokens."""
    id: str
    depth: float | None = None
    """The requested depth, if the file has depths."""
    permutation: int | None = None
    status: Status
    """`absent`: there is no prediction, and the score is 0; `failed`: the example could not be scored; `skipped`: the
    model cannot be given the example; `outside`: the metric does not apply to the example (`Metric.out_of_scope`), and
    `failure` says why. Only scored and absent examples have a score; those outside are in no mean and no count."""
    skipped: str = ""
    """Why the model cannot be given the example; empty if it can."""
    score: float | None
    reasoning: Reasoning = ""
    """What was done with reasoning in the prediction; empty if there was none."""
    details: Mapping[str, object] = {}
    cluster: str = ""
    """An id that questions about the same thing, such as a document, share (`Builder.cluster`); empty if the question
    has no such id."""
    facets: Mapping[str, Sequence[str]] = {}
    """The groups that the example is in, by facet."""
    failure: str = ""
    digest: str = ""
    """The SHA-256 of the prompt, the images and the answer of the example that was scored (see `example_digest`); empty
    in old files, and for public files of other origin."""
    lock: str = ""
    """The first 16 hexadecimal digits of the SHA-256 of the release's lock; empty where `digest` is."""
    is_stale: bool = False
    """Whether the prediction was made for an example with another digest, and scored because of `--allow-stale`."""
    sample: int = Field(default=0, ge=0, le=MAX_SAMPLE)
    """The number of the answer among the model's answers to the same example."""
    answer: str = ""
    """A hash of the answer as the metric compares it (`Metric.compared_answer`), so that equal answers are found; empty
    if the example has only one answer."""


def read_scores(folder: Path) -> Iterator[ScoreLine]:
    """Yield every line of one scores file, or of all scores files in a folder, sorted by file name.

    Raises:
        ReleaseError: there is no scores file, or a line is not valid; the error names file, line and field.

    """
    files = sorted(folder.glob("*.jsonl")) if folder.is_dir() else [folder]
    if not files or not files[0].is_file():
        raise ReleaseError(f"{folder}: no scores there (*.jsonl); `mmlongbench score` writes them")
    for file in files:
        for where, line in JSON_LINES.unbundle(file):
            try:
                yield ScoreLine.model_validate(line)
            except ValidationError as error:
                first = error.errors()[0]
                field = ".".join(map(str, first["loc"]))
                raise ReleaseError(f"{file.name}, {where}: {field}: {first['msg']}; is it a scores file?") from error
