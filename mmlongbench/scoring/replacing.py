"""Decides whether a run may overwrite a scores file. The file must have scores of the same model; scores by a metric of
the run must have the same profile and choices.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from mmlongbench.errors import ScoringError
from mmlongbench.scoring.scores import read_scores
from mmlongbench.task.metric import Provenance


def refuse_another_model(file: Path, model: str) -> None:
    """Refuse to overwrite the scores of another model.

    Raises:
        ScoringError: the file holds such scores.

    """
    first = next(read_scores(file), None) if file.is_file() else None
    if first and first.model != model:
        todo = "give --model another name, or another --out"
        raise ScoringError(f"{file}: holds scores of {first.model!r}, not of {model!r}; {todo}")


def refuse_other_choices(file: Path, made: Mapping[str, Provenance]) -> None:
    """Refuse to overwrite scores if the new scores by the same metric have another profile or other choices.

    Args:
        file: the scores file to write; it may not exist yet.
        made: where the rules of the new scores come from, by metric.

    Raises:
        ScoringError: the file holds such scores.

    """
    unseen = set(made)
    for line in read_scores(file) if file.is_file() else ():
        if line.metric not in unseen:
            continue
        new = made[line.metric]
        if (line.profile, *line.choices) != (new.profile, *new.choices):
            there, wanted = _said(line.profile, line.choices), _said(new.profile, new.choices)
            todo = "give another --out, or delete the file"
            raise ScoringError(f"{file}: holds scores by {line.metric} ({there}), not ({wanted}); {todo}")
        unseen.discard(line.metric)
        if not unseen:
            return


def _said(profile: str, choices: Sequence[str]) -> str:
    return ", ".join([profile, *choices])
