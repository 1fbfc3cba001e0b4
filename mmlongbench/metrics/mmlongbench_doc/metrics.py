"""MMLongBench-Doc's protocol without a judge, and ANLS alone, as metrics."""

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

from mmlongbench.answers import NOT_ANSWERABLE, after_prefix, anls, cleaned, flattened, gold_list, single_blanks
from mmlongbench.metrics.benchmark.documents import cleaned as number_alone
from mmlongbench.metrics.mmlongbench_doc.extraction import concise, extract_answer
from mmlongbench.metrics.mmlongbench_doc.rules import (
    Judged,
    accuracy_and_f1,
    score_extracted,
)
from mmlongbench.task.metric import LENIENT, Details, MetricWithTotals, Profile, RuleMetric, Score, ScoringInput

PROTOCOL = "mayubo2333/MMLongBench-Doc@d73f0dc"
"""The public code whose rules score an extracted answer."""
FORMATS = ("Integer", "Float", "String", "None", "List")
"""The formats of gold answers, as releases name them."""
_MAX_SHOWN = 200
"""The maximum characters of an extracted answer that are kept in the details of its score."""


def scored_extracted(asked: ScoringInput, extracted: str) -> Score:
    """Return the score of the answer that was extracted from a response, with the details that accuracy and F1 need."""
    kind = asked.answer_format
    if not isinstance(kind, str) or kind not in FORMATS:
        return Score(None, failure=f"answer_format is {kind!r:.80}, expected one of {', '.join(FORMATS)}")
    return Score(score_extracted(_readable(str(asked.gold), kind), kind, extracted), _details(asked, extracted))


def absent_details(asked: ScoringInput) -> Details:
    """Return the details that accuracy and F1 need for an example without a prediction, which counts as a wrong
    answer.
    """
    return {"answerable": str(asked.gold) != NOT_ANSWERABLE, "answered": True}


def totals_of_extracted(scored: Iterable[Score]) -> Mapping[str, float]:
    """Return generalized accuracy and F1 from the details of `scored_extracted` and `absent_details`; examples
    without a score are left out.
    """
    return accuracy_and_f1(
        [
            Judged(each.score, bool(each.details.get("answerable", True)), bool(each.details.get("answered", True)))
            for each in scored
            if each.score is not None
        ]
    )


class Rules(RuleMetric, MetricWithTotals):
    """MMLongBench-Doc without a judge: rules extract the answer from the response, and the protocol's rules score it.

    Extraction (`rule-extracted`) depends only on the response and the answer format. It is this project's substitute
    for the judge of the protocol.
    """

    name: ClassVar[str] = "mmlongbench-doc"
    profiles: ClassVar[Mapping[Profile, str]] = {"ours": PROTOCOL}
    choices = ("rule-extracted",)

    def compared_answer(self, asked: ScoringInput) -> str:
        """Return the extracted answer, in lower case with single blanks."""
        return _compared(extract_answer(asked.prediction.strip(), str(asked.answer_format)))

    def score(self, asked: ScoringInput) -> Score:
        """Return a score from 0 to 1."""
        return scored_extracted(asked, extract_answer(asked.prediction.strip(), str(asked.answer_format)))

    def absent(self, asked: ScoringInput) -> Details:
        """Return the details of an example without a prediction (see `absent_details`)."""
        return absent_details(asked)

    @classmethod
    def totals(cls, scored: Sequence[Score]) -> Mapping[str, float]:
        """Return accuracy and F1."""
        return totals_of_extracted(scored)


class LenientRules(Rules):
    """MMLongBench-Doc without a judge, the best of three readings: extracted, concise, and unchanged.

    The rules score the extracted answer, the text that `concise` returns, and the unchanged response. The highest score
    counts, as an upper bound of the score with a judge.
    """

    name: ClassVar[str] = "mmlongbench-doc-lenient"
    choices = (LENIENT,)

    def score(self, asked: ScoringInput) -> Score:
        """Return a score from 0 to 1."""
        said = asked.prediction.strip()
        extracted = extract_answer(said, str(asked.answer_format))
        found = [scored_extracted(asked, answer) for answer in dict.fromkeys((extracted, concise(said), said))]
        return max(found, key=lambda each: each.score or 0.0)


class ANLS(RuleMetric):
    """The normalised Levenshtein similarity to the nearest answer; 0 if it is at most one half.

    Upper and lower case are equal, and several blanks count as one. A gold list is compared in two forms: its elements
    joined by commas, and the list as it is written.
    """

    name: ClassVar[str] = "anls"
    profiles: ClassVar[Mapping[Profile, str]] = {"paper": "arXiv:1905.13648"}

    def compared_answer(self, asked: ScoringInput) -> str:
        """Return the text after "Answer:", in lower case with single blanks."""
        return _compared(after_prefix(asked.lead + asked.prediction, "Answer:"))

    def score(self, asked: ScoringInput) -> Score:
        """Return a score from 0 to 1."""
        said = self.compared_answer(asked)
        return Score(max((anls(_compared(gold), said) for gold in _golds(asked)), default=0.0))


def _golds(asked: ScoringInput) -> Iterable[str]:
    if asked.answer_format == "List":
        return [", ".join(gold_list(str(asked.gold))), str(asked.gold)]
    return flattened(asked.gold)


def _readable(gold: str, kind: str) -> str:
    """Return a gold answer in a form that the public code's rules can read: for a number, "1066" and not "1,066"."""
    try:
        float(cleaned(gold))
    except ValueError:
        return number_alone(gold) if kind in ("Integer", "Float") else gold
    return gold


def _compared(text: str) -> str:
    return single_blanks(text.lower())


def _details(asked: ScoringInput, extracted: str) -> dict[str, object]:
    shown = extracted if len(extracted) <= _MAX_SHOWN else f"{extracted[:_MAX_SHOWN]}…"
    answerable = str(asked.gold) != NOT_ANSWERABLE
    return {"extracted": shown, "answerable": answerable, "answered": extracted != NOT_ANSWERABLE}
