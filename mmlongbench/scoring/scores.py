"""The scores file: one line of JSON for each example, model and metric. Scoring writes it, a report reads it.

`scores/<model>.<metrics>.jsonl`; a line has everything a report needs, so that no release has to be there.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from mmlongbench.errors import ReleaseError
from mmlongbench.scoring.reasoning import Reasoning
from mmlongbench.task.formats import JSON_LINES
from mmlongbench.task.metric import PROFILES, Profile

UNKNOWN: Literal["unknown"] = "unknown"
SHOWN_PROFILES: tuple[str, ...] = (*PROFILES, UNKNOWN)
"""In the order in which reports show them."""


def profile_order(profile: str) -> tuple[int, str]:
    """Return a key that sorts profiles as reports show them; choices may stand behind a profile's name.

    >>> sorted(["ours", "official, reasoning kept", "official"], key=profile_order)
    ['official', 'official, reasoning kept', 'ours']
    """
    return SHOWN_PROFILES.index(profile.partition(", ")[0]), profile


class ScoreLine(BaseModel):
    """One example, scored by one metric."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str
    """Whose predictions they are."""
    metric: str
    profile: Profile | Literal["unknown"] = UNKNOWN
    """Whose rules the score follows; `unknown` in files that were written before scores had profiles."""
    follows: str = ""
    """The code or paper that the rules are taken from, with its version."""
    choices: Sequence[str] = ()
    """What changes scores within the profile, such as `rule-extracted`."""
    is_own: bool = False
    """Whether it is its task's own: the dataset enters averages by it, unless `averaged_metric` scored every model."""
    averaged_metric: str = ""
    """See `TaskSpec`."""
    file: str
    """Below `mmlb_data/`."""
    dataset: str
    category: str = ""
    counted_with: str = ""
    """See `TaskSpec`."""
    length: int
    """Of the file, in tokens."""
    id: str
    depth: float | None = None
    """As asked for, where the file has depths."""
    permutation: int | None = None
    status: Literal["scored", "absent", "failed", "skipped"]
    """`absent`: there is no prediction, the score is 0; `failed`: it could not be scored, there is no score; `skipped`:
    the model cannot be asked it, there is no score."""
    skipped: str = ""
    """Why the model cannot be asked it."""
    score: float | None
    reasoning: Reasoning = ""
    """What became of reasoning in the prediction; empty where there was none."""
    details: Mapping[str, Any] = {}
    cluster: str = ""
    """What its question is about, a document say; empty where it is a cluster of its own."""
    facets: Mapping[str, Sequence[str]] = {}
    """The groups it is in, by what a report breaks down by."""
    failure: str = ""


def read_scores(folder: Path) -> Iterator[ScoreLine]:
    """Every line of every scores file of a folder, file after file by name.

    Raises:
        ReleaseError: there is none, or a line is none: file, line and field.

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
