"""Which scores file a run may write over: one of the same model whose scores were made with the same choices."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from mmlongbench.errors import ScoringError
from mmlongbench.scoring.scores import read_scores
from mmlongbench.task.metric import Provenance


def refuse_another_model(file: Path, model: str) -> None:
    """Refuse to write over the scores of another model.

    Raises:
        ScoringError: the file holds such scores.

    """
    first = next(read_scores(file), None) if file.is_file() else None
    if first and first.model != model:
        todo = "give --model another name, or another --out"
        raise ScoringError(f"{file}: holds scores of {first.model!r}, not of {model!r}; {todo}")


def refuse_other_choices(file: Path, made: Mapping[str, Provenance]) -> None:
    """Refuse to write over scores of a metric that have another profile, or were made with other choices.

    Args:
        file: the scores file that is to be written; it need not be there.
        made: by metric, where the rules of the new scores come from.

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
