"""Chooses among the candidates that passed: few of a page, one of a row, and shares of kinds.

Which ones is drawn by hashes of the document and the question, so another document changes nothing.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from mmlongbench.draws import Draws
from mmlongbench.questions.layer.candidate import Candidate
from mmlongbench.questions.layer.checks import Failed
from mmlongbench.questions.layer.index import normal

MOST_OF_A_PAGE = 5
"""How many questions may need a page, and of how many it may be the page of the question before its edit."""
MOST_OF_A_KIND: dict[str, int] = {
    "table-value": 20,
    "table-row": 8,
    "table-pair": 8,
    "table-change": 8,
    "table-sum": 6,
    "table-largest": 6,
    "table-count": 6,
    "cross-page-pair": 10,
    "cross-page-difference": 8,
    "cross-page-join": 10,
    "caption-number": 8,
    "caption-page": 5,
    "caption-count": 4,
    "heading-of-caption": 5,
    "heading-title": 6,
    "heading-number": 5,
    "heading-page": 5,
    "subsection-count": 4,
}
"""How many questions of a kind a document may have."""
ABSENT = "unanswerable"
"""The kind of questions without an answer."""
ABSENT_SHARE = 0.21
"""The share of questions without an answer; it is that of MMLongBench-Doc."""


class _Chosen:
    """What was chosen so far."""

    def __init__(self) -> None:
        self.taken: list[Candidate] = []
        self.left: list[Candidate] = []
        self._pages: Counter[tuple[bool, int]] = Counter()
        self._kinds: Counter[str] = Counter()
        self._slots: set[str] = set()

    def offer(self, candidate: Candidate, most: int) -> bool:
        """Take a candidate if its kind, pages and slots are free; return whether it was taken."""
        places = [(bool(candidate.absent), page) for page in candidate.pages]
        is_free = (
            self._kinds[candidate.kind] < most
            and all(self._pages[place] < MOST_OF_A_PAGE for place in places)
            and self._slots.isdisjoint(candidate.slots)
        )
        (self.taken if is_free else self.left).append(candidate)
        if is_free:
            self._kinds[candidate.kind] += 1
            self._pages.update(places)
            self._slots.update(candidate.slots)
        return is_free


def asked_twice(candidates: Mapping[int, Candidate]) -> Iterator[tuple[int, Failed]]:
    """Yield the number of each candidate that asks what another one asks, with the reason: all of them if their answers
    differ, because the question then has no one answer, otherwise all but the first.
    """
    same: dict[str, list[int]] = {}
    for number, candidate in candidates.items():
        same.setdefault(normal(candidate.question), []).append(number)
    for numbers in same.values():
        answers = {candidates[number].answer for number in numbers}
        for number in numbers if len(answers) > 1 else numbers[1:]:
            found = " / ".join(sorted(map(str, answers)))
            yield number, Failed("choosing", "same-question", found, "another question, or one with one answer")


def chosen(sha256: str, candidates: Sequence[Candidate]) -> tuple[list[Candidate], list[Candidate]]:
    """Return the chosen candidates of a document, and those that are left over.

    Kinds take turns, so that a page with many cells is not used up by one kind. Questions without an answer come last,
    because their share depends on how many of the others there are.
    """
    draws = Draws(("choosing questions", sha256))
    by_kind: dict[str, list[Candidate]] = {}
    for candidate in candidates:
        by_kind.setdefault(candidate.kind, []).append(candidate)
    absent = draws.order("absent", by_kind.pop(ABSENT, []), lambda each: each.question)
    rarest = sorted(by_kind.items(), key=lambda item: (len(item[1]), item[0]))
    queues = [draws.order(kind, found, lambda each: each.question) for kind, found in rarest]
    result = _Chosen()
    while any(queues):
        for queue in queues:
            while queue:
                candidate = queue.pop(0)
                if result.offer(candidate, MOST_OF_A_KIND[candidate.kind]):
                    break
    most = round(len(result.taken) * ABSENT_SHARE / (1 - ABSENT_SHARE))
    for candidate in absent:
        result.offer(candidate, most)
    return result.taken, result.left
