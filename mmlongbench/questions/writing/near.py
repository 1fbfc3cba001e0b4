"""The stage `duplicates`: of questions that ask the same, one stays: that of the smaller slot, whoever came first."""

from collections.abc import Sequence

from mmlongbench.likeness import is_same_wording
from mmlongbench.questions.writing.answers import same_answer, words
from mmlongbench.questions.writing.context import passed, rejected
from mmlongbench.questions.writing.lines import Candidate, Judged

COMMON = 0.6
"""The share of words that two questions with the same answer and page must have in common, of the shorter one's."""
_GRAMMAR = (
    "a an and are as at be by do does did for from had has have how in is it its many much of on or that the their "
    "there this to was were what when where which who whose why with"
)
_PLAIN = frozenset(_GRAMMAR.split())


def without_duplicates(candidates: Sequence[Candidate]) -> list[Judged]:
    """Return, for each question, whether an earlier slot of its document asks the same."""
    kept: dict[tuple[str, bool], list[Candidate]] = {}
    found = {}
    for candidate in sorted(candidates, key=lambda each: each.slot):
        others = kept.setdefault((candidate.doc, candidate.is_answerable), [])
        twin = next(((other, reason) for other in others if (reason := _same(candidate, other))), None)
        if twin:
            found[candidate.slot] = rejected(candidate.slot, twin[1], f"{twin[0].slot}: {twin[0].question[:160]}")
        else:
            others.append(candidate)
            found[candidate.slot] = passed(candidate)
    return [found[candidate.slot] for candidate in candidates]


def _same(one: Candidate, other: Candidate) -> str:
    """Return how two questions of a document are the same; empty if they are not."""
    if words(one.question) == words(other.question):
        return "duplicate"
    mine, theirs = content_words(one.question), content_words(other.question)
    if _numbers(mine) != _numbers(theirs):
        return ""  # cells of one table, years of one series
    if not one.is_answerable:
        return "near-duplicate" if one.parent == other.parent else ""
    if one.answer_format != other.answer_format or not same_answer(one.answer, other.answer, one.answer_format):
        return ""
    common = len(mine & theirs) / max(1, min(len(mine), len(theirs)))
    is_near = is_same_wording(one.question, other.question) or (one.pages == other.pages and common >= COMMON)
    return "near-duplicate" if is_near else ""


def content_words(question: str) -> set[str]:
    """Return the words of a question that are not grammar.

    >>> sorted(content_words("Who is the keeper of Quarl Bay?"))
    ['bay', 'keeper', 'quarl']
    """
    return set(words(question).split()) - _PLAIN


def _numbers(found: set[str]) -> set[str]:
    return {word for word in found if word.isdecimal()}
