"""SMuDGE: whether an answer from a document agrees with the gold answer, and was taken from the same place.

Score = α · match + (1 − α) · grounding (Nourbakhsh et al., Findings of NAACL 2025, arXiv:2503.19120). The gold and the
prediction are searched for on all pages. If a string is found equally well at several places, the smallest distance
between a place of the gold and a place of the prediction counts; places on different pages have a distance of 1.

The gold is at the text that is most similar to it (section 3.1); only predictions have a threshold. An example whose
gold answer has no letter in common with the document is not scored; counts and sums, which are not extractive, are.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar

import numpy as np

from mmlongbench.errors import Fault, ScoringError
from mmlongbench.metrics.smudge.answers import (
    MAX_ELEMENT,
    MAX_ELEMENTS,
    Golds,
    elements_of,
    golds_of,
    paired,
    said_of,
)
from mmlongbench.metrics.smudge.library import Library, Text
from mmlongbench.metrics.smudge.matching import kind_of, match_score
from mmlongbench.metrics.smudge.places import Found, distance_between, grounding_score
from mmlongbench.metrics.smudge.words import split
from mmlongbench.task.metric import Details, Metric, Profile, Score, ScoringInput, Settings

_REFUSALS = ("not answerable", "unanswerable", "fail to answer")
"""Refusals, in the words that the benchmarks ask for."""
_VERDICTS = ("yes", "no")
"""Answers that no text of the document is; section 4 of the paper leaves such questions out."""
_KEPT = 1024
"""For how many gold answers the places are kept in memory; the same questions occur at every length."""


@dataclass(frozen=True, slots=True)
class Compared:
    """The comparison of one prediction with one gold."""

    match: float
    distance: float
    is_found: bool
    """Whether the prediction was found on a page where the gold was found."""
    is_exhaustive: bool = True
    """Whether the search was complete, not cut by a limit."""

    def score(self, alpha: float) -> float:
        """Return the sum of match and grounding, weighted with `alpha` and 1 − `alpha`."""
        return alpha * self.match + (1 - alpha) * grounding_score(self.distance)


class SMuDGE(Metric):
    """Groundedness of extractive answers."""

    name = "smudge"
    profiles: ClassVar[Mapping[Profile, str]] = {"paper": "arXiv:2503.19120"}

    def __init__(self, settings: Settings) -> None:
        """Keep the profile, the documents or the list of words, the weights, and how strings are found.

        Raises:
            ScoringError: there are no documents or no weights, or a weight is not from 0 to 1.

        """
        if settings.documents is None and settings.words is None:
            raise ScoringError("smudge: no documents: name their folder (--documents), or a list of words (--words)")
        for alpha in settings.alphas or (-1.0,):
            if not 0 <= alpha <= 1:
                found = alpha if settings.alphas else "none"
                raise ScoringError(f"smudge: alphas: expected weights from 0 to 1, found {found}; the paper takes 0.25")
        super().__init__(settings)
        self._alphas = settings.alphas
        self._library = Library(
            settings.documents, settings.words, ignores_reading_order=settings.ignores_reading_order
        )
        self._gold = lru_cache(maxsize=_KEPT)(self._located)

    def out_of_scope(self, asked: ScoringInput) -> str:
        """Return why an example is not scored, such as a gold answer that is not text in the document.

        The result is empty if the example is scored, or if the document cannot be read.
        """
        golds, name = golds_of(asked), _document(asked)
        if golds is None or not name:
            return "there is no gold answer that is text, or no document"
        if all(_needle(gold) in _REFUSALS for gold in golds.values):
            return "the document has no answer"
        if all(_needle(gold) in _VERDICTS for gold in golds.values):
            return "the gold answer is yes or no"
        if isinstance(self._library.open(name), Fault):
            return ""  # the user must fix this, so `score` gives it as a failure
        located = [self._gold(name, gold).is_located for gold in golds.values]
        is_there = all(located) if golds.is_list else any(located)
        return "" if is_there else "the gold answer is not in the text of its document"

    def score(self, asked: ScoringInput) -> Score:
        """Return the score of one example. If the gold cannot be found, the score has a failure instead of a value."""
        golds, name = golds_of(asked), _document(asked)
        if golds is None or not name:
            lacking = "a gold answer that is text" if golds is None else "a document (`doc_name`)"
            return Score(None, failure=f"smudge: the record has not {lacking}: it asks for no extractive answer")
        text = self._library.open(name)
        if isinstance(text, Fault):
            return Score(None, failure=f"smudge: {text}")
        located = {gold: self._gold(name, gold) for gold in golds.values}
        there = [gold for gold in golds.values if located[gold].is_located]
        if not there or (golds.is_list and len(there) < len(golds.values)):
            absent = next(gold for gold in golds.values if gold not in there)
            return Score(None, failure=f"smudge: {absent[:80]!r} is not in its document")
        return self._compared(text, Golds(tuple(there), golds.is_list), located, said_of(asked.prediction))

    def _compared(self, text: Text, golds: Golds, located: dict[str, Found], said: str) -> Score:
        """Return the score of a prediction, compared with golds that were all found in the document."""
        parts = elements_of(said) if golds.is_list else [said]
        if golds.is_list:
            parts = [part if len(part) <= MAX_ELEMENT else "" for part in parts]
        table = [
            [self._compare(text, gold, located[gold], part) for part in parts[:MAX_ELEMENTS]] for gold in golds.values
        ]
        over = max(len(golds.values), len(parts)) if golds.is_list else 1
        chosen = {alpha: _chosen(table, alpha, is_list=golds.is_list) for alpha in self._alphas}
        about: Details = {
            "type": kind_of(golds.values[0]),
            "is_gold_exact": all(located[gold].similarity == 1 for gold in golds.values),
            "is_exhaustive": all(located[gold].is_exhaustive for gold in golds.values)
            and all(each.is_exhaustive for row in table for each in row),
        }
        return self._scored(chosen, over, about)

    def _scored(self, chosen: dict[float, list[Compared]], over: int, about: Details) -> Score:
        """Return the score at the first of the weights (`alphas`); the details have the score at each weight.

        The score at a weight is the sum of the scores of the chosen pairs, divided by `over`.
        """

        def mean(values: Iterable[float]) -> float:
            return sum(values) / over

        first = chosen[self._alphas[0]]
        details: dict[str, object] = {
            "match": mean(each.match for each in first),
            "grounding": mean(grounding_score(each.distance) for each in first),
            "is_found": bool(first) and all(each.is_found for each in first),
            **about,
        }
        scores = {alpha: mean(each.score(alpha) for each in pairs) for alpha, pairs in chosen.items()}
        details |= {f"alpha_{alpha:g}": score for alpha, score in scores.items()}
        return Score(scores[self._alphas[0]], details)

    def _located(self, name: str, gold: str) -> Found:
        text = self._library.open(name)
        if isinstance(text, Fault):
            return Found()
        found = text.locator.best(_needle(gold), text.pages)
        return found if found.similarity > 0 else Found()

    def _compare(self, text: Text, gold: str, located: Found, said: str) -> Compared:
        """Return the comparison of a prediction with a gold that was found.

        A prediction that equals the gold is at the gold's place. If a page without the gold has
        text that is more similar to the prediction, the prediction counts as not found.
        """
        needle, match = _needle(said), match_score(gold, said)
        if needle == _needle(gold):
            return Compared(match, 0.0, is_found=True)
        found = text.locator.best_near(needle, np.unique(located.pages).tolist())
        distance = distance_between(located, found)
        return Compared(match, distance, is_found=found.is_located, is_exhaustive=found.is_exhaustive)


def _document(asked: ScoringInput) -> str:
    """Return the name of the document that the question is about; empty if unknown."""
    return (asked.evidence.document or "") if asked.evidence else ""


def _chosen(table: list[list[Compared]], alpha: float, *, is_list: bool) -> list[Compared]:
    """Return the comparisons of the best pairs (see `paired`) at a weight. If the golds are alternatives, the list
    has only the best pair.
    """
    pairs = paired([[each.score(alpha) for each in row] for row in table])
    return [table[gold][part] for gold, part in (pairs if is_list else pairs[:1])]


def _needle(text: str) -> str:
    """Return a string in the form that is searched for."""
    return " ".join(split(text))
