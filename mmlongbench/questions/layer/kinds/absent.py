"""Questions without an answer: minimal edits of questions with one. One qualifier changes: a year, a row, a number.

The changed words are nowhere in the document beside the others; `checks.py` tries every page.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from mmlongbench.answers import NOT_ANSWERABLE
from mmlongbench.draws import Draws
from mmlongbench.questions.layer.candidate import Candidate
from mmlongbench.questions.layer.document import Document
from mmlongbench.questions.layer.index import normal
from mmlongbench.questions.layer.kinds.places import complete_captions, runs

_YEAR = re.compile(r"\b(?:19|20)\d\d\b")
_EDITED = ("table-value", "table-change", "table-pair", "cross-page-pair")


def edits(document: Document, draws: Draws, candidates: Sequence[Candidate]) -> Iterator[Candidate | None]:
    """Yield edits of the candidates of a document; at most one of each candidate."""
    for candidate in candidates:
        if candidate.kind in _EDITED and candidate.facts and not candidate.facts[0].is_text:
            found = [_other_year(document, draws, candidate), _other_row(document, draws, candidate)]
            kinds = [each for each in found if each is not None]
            if kinds:
                yield draws.choice(f"edit {candidate.question}", kinds)
        elif candidate.kind in ("caption-page", "heading-title"):
            yield from _other_number(document, candidate)


def _other_year(document: Document, draws: Draws, candidate: Candidate) -> Candidate | None:
    """Return the question with a year that is nowhere in the document."""
    years = sorted(set(_YEAR.findall(candidate.facts[0].header)))
    if len(years) != 1 or candidate.kind != "table-value":
        return None
    year, column = years[0], candidate.facts[0].header
    near = [str(int(year) + step) for step in range(-12, 13) if abs(step) >= 1]
    free = [each for each in near if each not in document.index.years and not document.index.has(f"fy{each[2:]}")]
    if not free:
        return None
    nearest = sorted(free, key=lambda each: (abs(int(each) - int(year)), each))[:3]
    other = draws.choice(f"year {candidate.question}", nearest)
    changed = candidate.question.replace(f"“{column}”", f"“{column.replace(year, other)}”")
    fact = candidate.facts[0]
    found = _edit(candidate, changed, other, f"{year} → {other}", (other,))
    elsewhere = tuple(phrase for phrase in (fact.table.title.words, fact.label, other) if phrase)
    return replace(found, elsewhere=(elsewhere,)) if found else None


def _other_row(document: Document, draws: Draws, candidate: Candidate) -> Candidate | None:
    """Return the question with the row of another table, whose label is not on the pages of this table, nor beside."""
    fact = candidate.facts[-1]
    if candidate.question.count(f"“{fact.label}”") != 1 or _is_general(fact.label):
        return None
    title = fact.table.title.words
    near = {page + step for page in document.parts_of(fact.table) for step in (-1, 0, 1)}
    near |= set(document.index.pages_with(title) if title else ())
    others = {
        other.label
        for other in document.facts
        if other.page not in near and not other.is_text and not near & set(document.index.pages_with(other.label))
    }
    plain = (label for label in others if not _is_general(label) and _shared(label, fact.label) <= 1)
    fitting = draws.order(f"row {candidate.question}", plain)
    if not fitting:
        return None
    label = max(fitting, key=lambda each: _shared(fact.label, each))  # of equal ones, the first
    changed = candidate.question.replace(f"“{fact.label}”", f"“{label}”")
    phrases = tuple(phrase for phrase in (title, label, fact.leaf) if phrase)
    return _edit(candidate, changed, label, f"{fact.label} → {label}", phrases)


def _other_number(document: Document, candidate: Candidate) -> Iterator[Candidate | None]:
    """Yield the question with the number after the last one."""
    if candidate.kind == "caption-page":
        for kind, captions in complete_captions(document).items():
            name, after = f"{kind} {len(captions)}", f"{kind} {len(captions) + 1}"
            if f" {name} " in candidate.question and not document.index.has(after):
                yield _edit(candidate, candidate.question.replace(name, after), after, f"{name} → {after}", (after,))
        return
    numbers = {heading.number for heading in runs(document)}
    for number in numbers:
        *above, last = number.split(".")
        after = ".".join([*above, str(int(last) + 1)])
        is_last = above and after not in numbers and not document.index.has(after)
        if is_last and f"section {number} " in candidate.question:
            changed = candidate.question.replace(f"section {number} ", f"section {after} ")
            yield _edit(candidate, changed, after, f"{number} → {after}", (after,))


def _edit(candidate: Candidate, question: str, absent: str, edit: str, phrases: tuple[str, ...]) -> Candidate | None:
    if question == candidate.question:
        return None
    return replace(
        candidate,
        kind="unanswerable",
        question=question,
        answer=NOT_ANSWERABLE,
        sources=(),
        phrases=(phrases,),
        accepted=(),
        derived="",
        absent=absent,
        edit=edit,
        original=candidate.question,
        slots=tuple(f"edit {slot}" for slot in candidate.slots),
        notes={"edit of": candidate.kind},
    )


def _shared(one: str, two: str) -> int:
    """Return how many words two labels share; with more than one, the one might be meant by the other."""
    return len({word for word in normal(one).split() if len(word) > 3} & set(normal(two).split()))


def _is_general(label: str) -> bool:
    """Return whether a label is too general for another table: it might be there under another name."""
    words = set(normal(label).split())
    return len(normal(label)) < 6 or bool(words & {"total", "other", "net", "all", "average", "subtotal"})
