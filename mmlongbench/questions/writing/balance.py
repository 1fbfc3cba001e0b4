"""The stage `balance`: takes what the quotas want among the questions that passed, by drawn order. The rest is surplus.

A page has at most two questions, and one of each kind. Places that a kind leaves open are filled by other kinds, so
that a document gets the number that is wanted of it; where a quota is not reached, it is said why.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from mmlongbench.draws import Draws
from mmlongbench.questions.question import Line
from mmlongbench.questions.writing.lines import Candidate, Judged, Kind, QuotaLine, Slot
from mmlongbench.questions.writing.quotas import MAX_A_PAGE


class Reached(Line):
    """What became of a quota."""

    doc: str
    kind: Kind
    wanted: int
    least: int
    """The minimum of MMLongBench-Doc for the document's type."""
    reached: int
    why_not: str = ""
    """Why it was not reached: pages, or reasons with their counts; empty if it was."""


def balanced(
    passed: Sequence[Candidate], quotas: Sequence[QuotaLine], seed: int
) -> tuple[list[Candidate], list[Candidate]]:
    """Return the questions of the table and the surplus, each in the order of the slots."""
    chosen: list[Candidate] = []
    for doc in sorted({each.doc for each in passed}):
        own = [each for each in passed if each.doc == doc]
        chosen += _of_document(own, [quota for quota in quotas if quota.doc == doc], seed)
    taken = {each.slot for each in chosen}
    return sorted(chosen, key=_slot), sorted((each for each in passed if each.slot not in taken), key=_slot)


def _slot(candidate: Candidate) -> str:
    return candidate.slot


def _of_document(passed: Sequence[Candidate], quotas: Sequence[QuotaLine], seed: int) -> list[Candidate]:
    draws = Draws((seed, passed[0].doc, "balance"))
    drawn = draws.order("questions", passed, _slot)
    left = {quota.kind: quota.wanted for quota in quotas}
    pages, patterns, chosen = Counter[int](), set[tuple[int, Kind]](), list[Candidate]()

    def take(candidate: Candidate) -> bool:
        about = candidate.pages or candidate.about
        own = {(page, candidate.kind) for page in about}
        if any(pages[page] >= MAX_A_PAGE for page in about) or own & patterns:
            return False
        pages.update(about)
        patterns.update(own)
        chosen.append(candidate)
        return True

    for candidate in drawn:
        if left.get(candidate.kind, 0) > 0 and take(candidate):
            left[candidate.kind] -= 1
    missing = sum(count for kind, count in left.items() if kind != "unanswerable")
    for candidate in drawn:
        if missing > 0 and candidate.is_answerable and candidate not in chosen and take(candidate):
            missing -= 1
    return chosen


def reached(
    quotas: Sequence[QuotaLine],
    accepted: Sequence[Candidate],
    slots: Sequence[Slot],
    ended: Mapping[str, Judged],
    held: Sequence[Candidate],
) -> list[Reached]:
    """Return what became of every quota.

    Args:
        quotas: what was wanted.
        accepted: the questions of the table.
        slots: all slots.
        ended: the line with which each question that was rejected or is pending ended, by slot.
        held: the questions that wait for people.

    """
    counts = Counter((each.doc, each.kind) for each in accepted)
    waiting = Counter((each.doc, each.kind) for each in held)
    found = []
    for quota in quotas:
        count = counts[quota.doc, quota.kind]
        why = ""
        if count < quota.wanted:
            own = [slot.id for slot in slots if slot.doc == quota.doc and slot.kind == quota.kind]
            reasons = Counter(ended[id].reason for id in own if id in ended)
            parts = [quota.why_fewer, *(f"{reason} {number}" for reason, number in sorted(reasons.items()))]
            parts.append(f"held for people {number}" if (number := waiting[quota.doc, quota.kind]) else "")
            why = "; ".join(part for part in parts if part) or "at most two questions a page, one of each kind"
        found.append(
            Reached(doc=quota.doc, kind=quota.kind, wanted=quota.wanted, least=quota.least, reached=count, why_not=why)
        )
    return found
