"""The benchmark's own metrics, as they are chosen by name; what they compute stands beside, in pure functions.

The public code puts the prompt's last words ("Answer:") before what a model said and scores both the whole and what
stands behind these words, the better counts. So are its own output files scored here, and every prediction with
`Settings.is_compatible`; else predictions are taken as they stand.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from mmlongbench.scoring.benchmark.answers import (
    binary_acc,
    cls_acc,
    flattened,
    mc_acc,
    soft_acc,
    sub_em,
    yes_or_no,
)
from mmlongbench.scoring.benchmark.documents import FORMATS, doc_qa
from mmlongbench.scoring.benchmark.rouge import MOST_CHARACTERS, rouge, rouge_scorer
from mmlongbench.scoring.benchmark.texts import after_prefix
from mmlongbench.scoring.metric import Asked, Scored, Settings

ANSWER, LABEL, SUMMARY = "Answer:", "label:", "Summary:"
"""What the prompts of the tasks end with."""
DEFAULTS = (0, 1, 1, 0)
"""Which the public code takes in turn for what was said to a yes/no question, where neither word was: 1 is yes."""


def whole_text(asked: Asked, settings: Settings, prefix: str) -> str:
    """What was said, behind the prompt's last words where the public code would put them."""
    return (asked.lead or (prefix if settings.is_compatible else "")) + asked.prediction


def texts_scored(asked: Asked, settings: Settings, prefix: str) -> tuple[str, ...]:
    """The texts of which the better counts."""
    whole = whole_text(asked, settings, prefix)
    return tuple(dict.fromkeys((whole, after_prefix(whole, prefix)))) if whole != asked.prediction else (whole,)


@dataclass(frozen=True, slots=True)
class SubstringExactMatch:
    """Whether an answer is part of what was said, both normalised; of raw and parsed output the better."""

    settings: Settings
    name: ClassVar[str] = "sub_em"

    def score(self, asked: Asked) -> Scored:
        """1 or 0."""
        whole = whole_text(asked, self.settings, ANSWER)
        return Scored(max(sub_em(text, asked.gold) for text in dict.fromkeys((whole, after_prefix(whole, ANSWER)))))


@dataclass(frozen=True, slots=True)
class YesNo:
    """Whether the last yes or no is right; neither is a refusal, which is wrong, and flagged."""

    settings: Settings
    name: ClassVar[str] = "binary_acc"

    def score(self, asked: Asked) -> Scored:
        """1 or 0, and whether it was refused."""
        text = whole_text(asked, self.settings, ANSWER)
        default = DEFAULTS[asked.place % len(DEFAULTS)] if self.settings.is_compatible else None
        return Scored(binary_acc(text, str(asked.gold), default), {"refused": yes_or_no(text) is None})


@dataclass(frozen=True, slots=True)
class TotalCount:
    """Whether the counts add up to the total of the answer."""

    settings: Settings
    name: ClassVar[str] = "soft_acc"

    def score(self, asked: Asked) -> Scored:
        """1 or 0."""
        gold = asked.gold
        if not isinstance(gold, list) or not all(isinstance(count, int) for count in gold):
            return _mistyped(gold, "a list of whole numbers")
        return _best(soft_acc, asked, self.settings, ANSWER)


@dataclass(frozen=True, slots=True)
class OptionLetter:
    """Whether the option's letter is right."""

    settings: Settings
    name: ClassVar[str] = "mc_acc"

    def score(self, asked: Asked) -> Scored:
        """1 or 0."""
        if not isinstance(asked.gold, int):
            return _mistyped(asked.gold, "the place of an option")
        return _best(mc_acc, asked, self.settings, ANSWER)


@dataclass(frozen=True, slots=True)
class ClassLabel:
    """Whether the label is right."""

    settings: Settings
    name: ClassVar[str] = "cls_acc"

    def score(self, asked: Asked) -> Scored:
        """1 or 0."""
        if not isinstance(asked.gold, int):
            return _mistyped(asked.gold, "a label")
        return _best(cls_acc, asked, self.settings, LABEL)


@dataclass(frozen=True, slots=True)
class DocumentAnswer:
    """Answers about documents by the format of the gold answer; what stands behind "Answer:" is compared."""

    settings: Settings
    name: ClassVar[str] = "doc_qa"

    def score(self, asked: Asked) -> Scored:
        """From 0 to 1."""
        kind = asked.record.get("answer_format")
        if kind not in FORMATS:
            return Scored(None, failure=f"answer_format is {kind!r:.80}, expected one of {', '.join(FORMATS)}")
        return Scored(doc_qa(after_prefix(whole_text(asked, self.settings, ANSWER), ANSWER), asked.gold, kind))


@dataclass(frozen=True)
class RougeL:
    """F1 of the longest common subsequence of a summary and its reference (rougeL of rouge-score, stemmed)."""

    settings: Settings
    name: ClassVar[str] = "rouge"

    def score(self, asked: Asked) -> Scored:
        """From 0 to 1; the four figures of the public code beside it."""
        answers = list(flattened(asked.gold))
        texts = texts_scored(asked, self.settings, SUMMARY)
        each = [rouge(self._scorer, text, answers) for text in texts]
        figures = {key: max(found[key] for found in each) for key in each[0]}
        is_cut = any(len(text) > MOST_CHARACTERS for text in texts)
        return Scored(figures["rougeL_f1"], {**figures, **({"cut": True} if is_cut else {})})

    @cached_property
    def _scorer(self) -> Any:  # noqa: ANN401  (of a package that may be absent)
        return rouge_scorer()


def _best(function: Callable[[str, Any], float], asked: Asked, settings: Settings, prefix: str) -> Scored:
    return Scored(max(function(text, asked.gold) for text in texts_scored(asked, settings, prefix)))


def _mistyped(gold: object, expected: str) -> Scored:
    return Scored(None, failure=f"the answer is {gold!r:.80}, expected {expected}")
