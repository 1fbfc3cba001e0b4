"""The stages `round-trip` and `grades`: two models answer under the rules of answers, and a committee grades.

The answer of the author is never replaced by a vote. Where models agree against it, or do not agree at all, people
decide. Only questions that models answer pass by themselves, which selects towards easy ones; the report says how much.
"""

import statistics

from mmlongbench.questions.writing.answers import same_answer
from mmlongbench.questions.writing.asking import NoAnswer, Request
from mmlongbench.questions.writing.context import Context, held, passed, rejected
from mmlongbench.questions.writing.families import family
from mmlongbench.questions.writing.forms import Answered, Graded
from mmlongbench.questions.writing.lines import Candidate, Judged
from mmlongbench.questions.writing.probes import is_right
from mmlongbench.questions.writing.wordings import GRADE, answered, shown_answer

SHOWN = 5
"""How many pages a model reads: the evidence and the best others."""
READERS = 2
JUDGES = 3
"""The members of the committee, of different families (M-LongDoc)."""
MIN_GRADE = 4.0
"""The smallest mean grade."""
SPREAD = 2
"""The difference of grades from which people decide."""


def round_trip(candidate: Candidate, context: Context) -> Judged:
    """Return whether models answer a question rightly from its evidence among other pages: two of three votes, of which
    the author's answer is one.
    """
    others = context.rankings.ranked(candidate.doc, candidate.question, candidate.pages)
    pages = sorted([*candidate.pages, *others[: max(0, SHOWN - len(candidate.pages))]])
    given: list[tuple[str, Answered | NoAnswer]] = [
        (model, context.answer("round-trip", model, candidate, pages))
        for model in context.readers(candidate, "round-trip")[:READERS]
    ]
    right = [model for model, found in given if is_right(candidate, found)]
    shown = "; ".join(f"{model}: {_shown(found)}" for model, found in given)
    if right:
        return passed(
            candidate,
            f"{len(right)} of {len(given)} models agree: {shown}",
            "all" if len(right) == len(given) else "some",
        )
    firm = [found.answers for _, found in given if isinstance(found, Answered) and found.is_answerable]
    if len(firm) >= 2 and same_answer(firm[0], firm[1], candidate.answer_format):
        return held(candidate, "answers-disagree", shown)
    return held(candidate, "ambiguous", shown)


def grades(candidate: Candidate, context: Context) -> Judged:
    """Return what a committee of other families than the author's thinks of the answer."""
    shown = context.library.shown(candidate.doc, candidate.pages)
    given: dict[str, int] = {}
    failures = 0
    for model in _committee(context.readers(candidate, "grades")):
        found = context.ask(Request("grades", model, GRADE, answered(candidate), Graded, shown))
        if isinstance(found, NoAnswer):
            failures += 1
        else:
            given[model] = found.grade
    if not given:
        return rejected(candidate.slot, "invalid-reply", "no member of the committee gave a grade")
    mean, spread = statistics.fmean(given.values()), max(given.values()) - min(given.values())
    said = ", ".join(f"{model} {grade}" for model, grade in sorted(given.items()))
    detail = f"mean {mean:.2f}, spread {spread}: {said}{f'; {failures} without a grade' if failures else ''}"
    if spread >= SPREAD:
        return held(candidate, "judges-contradict", detail)
    return passed(candidate, detail) if mean >= MIN_GRADE else rejected(candidate.slot, "low-grade", detail)


def _committee(models: list[str]) -> list[str]:
    """Return the members: the first model of each family."""
    first = {family(model): model for model in reversed(models)}
    return [model for model in models if first[family(model)] == model][:JUDGES]


def _shown(found: Answered | NoAnswer) -> str:
    if isinstance(found, NoAnswer):
        return found.reason
    return shown_answer(found.answers)[:80] if found.is_answerable and found.answers else "no answer"
