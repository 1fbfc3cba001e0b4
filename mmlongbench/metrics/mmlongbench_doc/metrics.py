"""MMLongBench-Doc's protocol without a judge, and ANLS alone, as metrics; the rules that score an extracted answer.

Where the paper's text and the public code differ, the code is followed: an Integer prediction is cut to a whole number
("5.9" is 5), "mile" and "million" are not removed, a list of exact strings is compared as a whole.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import isclose
from typing import ClassVar

from mmlongbench.answers import (
    NOT_ANSWERABLE,
    after_prefix,
    anls,
    cleaned,
    flat_list,
    flattened,
    gold_list,
    is_exact,
    single_blanks,
)
from mmlongbench.metrics.benchmark.documents import cleaned as number_alone
from mmlongbench.metrics.mmlongbench_doc.extraction import concise, extract_answer
from mmlongbench.task.metric import LENIENT, Details, MetricWithTotals, Profile, RuleMetric, Score, ScoringInput

PROTOCOL = "mayubo2333/MMLongBench-Doc@d73f0dc"
"""The public code whose rules score an extracted answer."""
FORMATS = ("Integer", "Float", "String", "None", "List")
"""The formats of gold answers, as releases name them."""
TOLERANCE = 0.01
"""The relative tolerance of a Float."""
_MAX_SHOWN = 200
"""The maximum characters of an extracted answer that are kept in the details of its score."""


def score_extracted(gold: str, answer_format: str, extracted: str) -> float:
    """Return the score of a concise answer, from 0 to 1. `answer_format` is the name of the format in the source or in
    a release.

    The score is 0 if a number or a list cannot be read. For a gold number or a list that cannot be read, the rules of
    the public code raise an error, and its scorer counts 0, too.

    >>> score_extracted("5", "Integer", "5.0"), score_extracted("18.29%", "Float", "$18.3")
    (1.0, 1.0)
    >>> score_extracted("['red', 'blue']", "List", "['Blue', 'red']"), score_extracted("red", "String", "reds")
    (1.0, 0.75)
    """
    if answer_format in ("Int", "Integer"):
        try:
            return float(int(gold) == int(float(extracted)))
        except (ValueError, OverflowError):
            return 0.0
    if answer_format == "Float":
        wanted, said = _number(cleaned(gold)), _number(cleaned(extracted))
        if wanted is None or said is None:
            return 0.0
        return float(any(_is_close(each, said) for each in (wanted / 100, wanted, wanted * 100)))
    if answer_format == "List":
        return _list(gold_list(gold), extracted)
    return (
        float(cleaned(gold) == cleaned(extracted))
        if is_exact(cleaned(gold))
        else anls(cleaned(gold), cleaned(extracted))
    )


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _is_close(wanted: float, said: float) -> bool:
    """Return whether two numbers differ by at most one per cent, or are equal after rounding. Both are rounded to the
    number of decimals of the number that has fewer, but at least to two.
    """
    if isclose(wanted, said, rel_tol=TOLERANCE):
        return True
    digits = max(min(_digits(said), _digits(wanted)), 2)
    return round(said, digits) == round(wanted, digits)


def _digits(number: float) -> int:
    """Return how many digits Python prints after the point; 3 if it prints no point."""
    _, point, behind = str(number).partition(".")
    return len(behind) if point else 3


def _list(golds: Sequence[str], extracted: str) -> float:
    """Return the score of a list, which is 0 if the two lists have different lengths.

    Both lists are sorted. If the first gold element is a number or an exact string (`is_exact`), all elements must be
    equal. If not, each gold element is compared with the element at the same place, and the lowest similarity counts.
    """
    said = flat_list(extracted) if extracted.startswith("[") else [extracted]
    if said is None or len(said) != len(golds) or not golds:
        return 0.0
    wanted = sorted(cleaned(element) for element in golds)
    given = sorted(cleaned(element) for element in said)
    if _number(wanted[0]) is not None or is_exact(wanted[0]):
        return float("-".join(wanted) == "-".join(given))
    return min(anls(gold, answer) for gold, answer in zip(wanted, given, strict=True))


def scored_extracted(asked: ScoringInput, extracted: str) -> Score:
    """Return the score of the answer that was extracted from a response, with the details that accuracy and F1 need."""
    kind = asked.answer_format
    if not isinstance(kind, str) or kind not in FORMATS:
        return Score(None, failure=f"answer_format is {kind!r:.80}, expected one of {', '.join(FORMATS)}")
    gold = str(asked.answer)
    readable = gold
    if kind in ("Integer", "Float") and _number(cleaned(gold)) is None:  # the public code's rules cannot read "1,066"
        readable = number_alone(gold)
    shown = extracted if len(extracted) <= _MAX_SHOWN else f"{extracted[:_MAX_SHOWN]}…"
    details = {"extracted": shown, "answerable": gold != NOT_ANSWERABLE, "answered": extracted != NOT_ANSWERABLE}
    return Score(score_extracted(readable, kind, extracted), details)


def absent_details(asked: ScoringInput) -> Details:
    """Return the details that accuracy and F1 need for an example without a prediction, which counts as a wrong
    answer.
    """
    return {"answerable": str(asked.answer) != NOT_ANSWERABLE, "answered": True}


def totals_of_extracted(scored: Iterable[Score]) -> Mapping[str, float]:
    """Return generalized accuracy and F1 from the details of `scored_extracted` and `absent_details`; examples
    without a score are left out.
    """
    return accuracy_and_f1(
        [
            (each.score, bool(each.details.get("answerable", True)), bool(each.details.get("answered", True)))
            for each in scored
            if each.score is not None
        ]
    )


def accuracy_and_f1(answers: Sequence[tuple[float, bool, bool]]) -> Mapping[str, float]:
    """Return generalized accuracy (the mean score) and F1 of answers, each as (score, whether the question is
    answerable, whether the model gave an answer); "Fail to answer" counts as an answer.

    Recall is the mean score of the answerable questions. Precision is the sum of these scores divided by the number of
    questions that were answered. F1 is 0 if there are no answerable questions, or if no question was answered.
    """
    accuracy = sum(score for score, _, _ in answers) / len(answers) if answers else 0.0
    answerable = [score for score, is_answerable, _ in answers if is_answerable]
    answered, earned = sum(is_answered for _, _, is_answered in answers), sum(answerable)
    if not answerable or not answered or not earned:
        return {"accuracy": accuracy, "f1": 0.0}
    recall, precision = earned / len(answerable), earned / answered
    return {"accuracy": accuracy, "f1": 2 * recall * precision / (recall + precision)}


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
        golds = flattened(asked.answer)
        if asked.answer_format == "List":
            golds = [", ".join(gold_list(str(asked.answer))), str(asked.answer)]
        return Score(max((anls(_compared(gold), said) for gold in golds), default=0.0))


def _compared(text: str) -> str:
    return single_blanks(text.lower())
