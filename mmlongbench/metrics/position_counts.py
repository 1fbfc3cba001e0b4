"""Compares counts position by position, as MM-NIAH scores them (Wang et al. 2024, arXiv:2406.07230, "soft accuracy").

The public code and the paper agree: the score is the number of positions at which the listed number equals the
answer's, divided by the number of positions of the answer. A reply in which no list can be read (see `listed_values`)
scores 0. This benchmark's prompts ask for "Answer: [answer]", unlike MM-NIAH's, so only the text after "Answer:" is
read here. MM-NIAH's code reads the whole reply; `choices` names this difference.
"""

import json
from collections.abc import Mapping, Sequence
from typing import ClassVar

from mmlongbench.answers import after_prefix
from mmlongbench.metrics.benchmark.metrics import ANSWER
from mmlongbench.task.metric import Profile, RuleMetric, Score, ScoringInput


def listed_values(prediction: str) -> list[object] | None:
    """Return the values that a reply lists, or None if the reply is not a list.

    The reply must be a JSON list, or a JSON object in which every value is a list; these lists are joined. A code fence
    is ignored.

    >>> listed_values("[0, 2]."), listed_values('{"1": [0], "2": [2]}'), listed_values("[0, 2] or so")
    ([0, 2], [0, 2], None)
    """
    text = prediction.strip(".").replace("json", "").replace("```", "").strip()
    try:
        found: object = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if isinstance(found, dict):
        is_spread = all(isinstance(part, list) for part in found.values())
        found = [value for part in found.values() for value in part] if is_spread else None
    return found if isinstance(found, list) else None


def position_accuracy(prediction: str, answer: Sequence[int]) -> float:
    """Return the share of the answer's positions at which the reply lists the same number as the answer.

    >>> position_accuracy("[0, 2, 0, 9]", [0, 1, 0]), position_accuracy("[0]", [0, 1]), position_accuracy("none", [0])
    (0.6666666666666666, 0.5, 0.0)
    """
    said = listed_values(prediction) or []
    matched = [place for place, (one, other) in enumerate(zip(said, answer, strict=False)) if one == other]
    return len(matched) / len(answer)


class PositionCount(RuleMetric):
    """The share of positions at which the listed counts equal the answer's (MM-NIAH's own metric)."""

    name: ClassVar[str] = "mm-niah-count"
    profiles: ClassVar[Mapping[Profile, str]] = {
        "official": "OpenGVLab/MM-NIAH@7bca1e7",
        "paper": "arXiv:2406.07230",
    }
    choices = ('read behind "Answer:"',)

    def compared_answer(self, asked: ScoringInput) -> str:
        """Return the text after "Answer:", in lower case without blanks."""
        return "".join(after_prefix(asked.lead + asked.prediction, ANSWER).lower().split())

    def full_answer(self, asked: ScoringInput) -> str:
        """Return all counts."""
        return str(asked.answer)

    def score(self, asked: ScoringInput) -> Score:
        """Return a score from 0 to 1, with the detail `is_list`: whether a list was read (see `listed_values`)."""
        gold = asked.answer
        if not isinstance(gold, list) or not gold or not all(type(count) is int for count in gold):
            return Score(None, failure=f"the answer is {gold!r:.80}, expected a list of whole numbers")
        said = after_prefix(asked.lead + asked.prediction, ANSWER)
        return Score(position_accuracy(said, gold), {"is_list": listed_values(said) is not None})
