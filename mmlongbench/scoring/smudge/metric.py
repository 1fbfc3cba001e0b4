"""SMuDGE: whether an answer taken from a document says what the gold says, and is taken from where the gold stands.

Score = α · match + (1 − α) · grounding (Nourbakhsh et al., Findings of NAACL 2025). The gold is looked for on the pages
that the record names as evidence (`ans_page_list`), the prediction on all pages. Where a string stands at several
places alike, those count that are closest to each other. A gold that its own pages do not have (a count, a sum, a page
of pictures), and a question without evidence, are not scored: these answers are not extractive.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from mmlongbench.errors import Fault
from mmlongbench.scoring.errors import ScoringError
from mmlongbench.scoring.metric import Asked, Details, Scored, Settings
from mmlongbench.scoring.smudge.answers import (
    MOST_ELEMENTS,
    MOST_OF_ELEMENT,
    Golds,
    elements_of,
    golds_of,
    paired,
    said_of,
)
from mmlongbench.scoring.smudge.library import Library, Text
from mmlongbench.scoring.smudge.matching import kind_of, match_score
from mmlongbench.scoring.smudge.places import Found, distance_between, grounding_score
from mmlongbench.scoring.smudge.words import split

_REFUSALS = ("not answerable", "unanswerable", "fail to answer")
"""The words that the benchmarks ask for; letters of any string resemble some of a page by more than 0.3."""
_MOST_PAGES = 10_000
_KEPT = 1024
"""Places of gold answers that are remembered: the same questions are asked at every length."""


@dataclass(frozen=True, slots=True)
class Compared:
    """One prediction against one gold."""

    match: float
    distance: float
    is_found: bool
    """Whether the prediction stands on a page that the gold stands on."""

    def score(self, alpha: float) -> float:
        """The weighted sum."""
        return alpha * self.match + (1 - alpha) * grounding_score(self.distance)


class SMuDGE:
    """Groundedness of extractive answers (a `Metric`)."""

    name = "smudge"

    def __init__(self, settings: Settings) -> None:
        """Take the folder of documents or the list of words, the weights, and whether to do without reading order.

        Raises:
            ScoringError: there are no documents, or a weight is not from 0 to 1.

        """
        if settings.documents is None and settings.words is None:
            raise ScoringError("smudge: no documents: name their folder (--documents), or a list of words (--words)")
        for alpha in settings.alphas or (-1.0,):
            if not 0 <= alpha <= 1:
                found = alpha if settings.alphas else "none"
                raise ScoringError(f"smudge: alphas: expected weights from 0 to 1, found {found}; the paper takes 0.25")
        self._alphas = settings.alphas
        self._library = Library(settings.documents, settings.words, is_walked=settings.is_walked)
        self._gold = lru_cache(maxsize=_KEPT)(self._located)

    def out_of_scope(self, asked: Asked) -> str:
        """Why a question asks for no answer that stands in its document."""
        golds, name, evidence = golds_of(asked), asked.record.get("doc_name"), _evidence(asked)
        if golds is None or not isinstance(name, str) or not name:
            return "there is no gold answer that is text, or no document"
        if not evidence:
            return "no evidence pages"
        if isinstance(self._library.open(name), Fault):
            return ""  # which is to be mended: it fails
        located = [self._gold(name, gold, evidence).is_located for gold in golds.values]
        is_there = all(located) if golds.is_list else any(located)
        return "" if is_there else "the gold answer is not in the text of its evidence pages"

    def score(self, asked: Asked) -> Scored:
        """One example; without a score where the gold cannot be located."""
        golds, name, evidence = golds_of(asked), asked.record.get("doc_name"), _evidence(asked)
        if golds is None or not isinstance(name, str) or not name:
            lacking = "a gold answer that is text" if golds is None else "a document (`doc_name`)"
            return Scored(None, failure=f"smudge: the record has not {lacking}: it asks for no extractive answer")
        if not evidence:
            return Scored(None, failure="smudge: no evidence pages (`ans_page_list`): the answer is not extractive")
        text = self._library.open(name)
        if isinstance(text, Fault):
            return Scored(None, failure=f"smudge: {text}")
        located = {gold: self._gold(name, gold, evidence) for gold in golds.values}
        return self._compared(text, golds, located, said_of(asked.prediction), evidence)

    def _compared(
        self, text: Text, golds: Golds, located: dict[str, Found], said: str, evidence: tuple[int, ...]
    ) -> Scored:
        """The score of a prediction, its golds located."""
        there = [gold for gold in golds.values if located[gold].is_located]
        if not there or (golds.is_list and len(there) < len(golds.values)):
            absent = next(gold for gold in golds.values if gold not in there)
            pages = ", ".join(map(str, evidence[:8]))
            return Scored(None, failure=f"smudge: {absent[:80]!r} is not on its evidence pages ({pages})")
        parts = elements_of(said) if golds.is_list else [said]
        if golds.is_list:
            parts = [part if len(part) <= MOST_OF_ELEMENT else "" for part in parts]
        table = [[_compare(text, gold, located[gold], part) for part in parts[:MOST_ELEMENTS]] for gold in there]
        over = max(len(there), len(parts)) if golds.is_list else 1
        chosen = {alpha: _chosen(table, alpha, is_list=golds.is_list) for alpha in self._alphas}
        exact = [located[gold].similarity == 1 for gold in there]
        return self._scored(chosen, over, {"type": kind_of(there[0]), "is_gold_exact": all(exact)})

    def _scored(self, chosen: dict[float, list[Compared]], over: int, about: Details) -> Scored:
        """The mean of the pairs chosen at each weight over as many as there should be; of the first, what it is of."""

        def mean(values: Iterable[float]) -> float:
            return sum(values) / over

        first = chosen[self._alphas[0]]
        details: dict[str, Any] = {
            "match": mean(each.match for each in first),
            "grounding": mean(grounding_score(each.distance) for each in first),
            "is_found": bool(first) and all(each.is_found for each in first),
            **about,
        }
        scores = {alpha: mean(each.score(alpha) for each in pairs) for alpha, pairs in chosen.items()}
        details |= {f"alpha_{alpha:g}": score for alpha, score in scores.items()}
        return Scored(scores[self._alphas[0]], details)

    def _located(self, name: str, gold: str, evidence: tuple[int, ...]) -> Found:
        text = self._library.open(name)
        return Found() if isinstance(text, Fault) else text.locator.best(" ".join(split(gold)), evidence)


def _chosen(table: list[list[Compared]], alpha: float, *, is_list: bool) -> list[Compared]:
    """The pairs of gold and prediction that score best at a weight; of alternatives the best one."""
    pairs = paired([[each.score(alpha) for each in row] for row in table])
    return [table[gold][part] for gold, part in (pairs if is_list else pairs[:1])]


def _compare(text: Text, gold: str, located: Found, said: str) -> Compared:
    """A prediction against a gold that was located.

    Where the prediction resembles another page more, it does not stand on the gold's. One that repeats the gold stands
    where the gold does; a refusal stands nowhere.
    """
    needle, pages = " ".join(split(said)), sorted({place.page for place in located.places})
    if needle == " ".join(split(gold)):
        return Compared(match_score(gold, said), 0.0, is_found=True)
    found = Found() if needle in _REFUSALS else text.locator.best_near(needle, pages)
    return Compared(match_score(gold, said), distance_between(located, found), found.is_located)


def _evidence(asked: Asked) -> tuple[int, ...]:
    """The pages that hold the answer, from 0."""
    pages = asked.record.get("ans_page_list")
    if not isinstance(pages, list | tuple):
        return ()
    return tuple(sorted({page for page in pages[:_MOST_PAGES] if isinstance(page, int) and page >= 0}))
