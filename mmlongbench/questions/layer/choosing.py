"""Chooses among the candidates that passed: few of a page, each row of a document once, and shares of a file.

A document may have a fifth of the questions and a kind a quarter, so that no document and no kind decides the score of
the file. Which ones are taken is drawn by hashes of the documents and the questions.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction

from mmlongbench.draws import Draws
from mmlongbench.questions.layer.checks import Failed
from mmlongbench.questions.layer.facts import normal
from mmlongbench.questions.layer.kinds import Candidate

MOST_OF_A_PAGE = 5
"""How many questions may need a page."""
MOST_OF_A_KIND = 25
"""How many questions of a kind a document may have."""
OF_A_DOCUMENT, OF_A_KIND = Fraction(1, 5), Fraction(1, 4)
"""The largest shares of the questions of a file."""
_SURPLUS = Failed("choosing", "surplus", "more candidates than places", "a place on its page and among its kind")
Named = tuple[str, Candidate]
"""A document and a candidate."""


def shortlist(sha256: str, candidates: Sequence[Candidate]) -> tuple[list[Candidate], list[tuple[Candidate, Failed]]]:
    """Return the candidates of a document that OCR reads, and the others with the reason. Kinds take turns, rare ones
    first, so that a page with many cells is not used up by one kind.

    A name of a row is used by one question of a document, so no answer stands in another question, and no two questions
    have one answer.
    """
    draws = Draws(("choosing questions", sha256))
    asked = Counter(normal(candidate.question) for candidate in candidates)
    kinds: dict[str, list[Candidate]] = {}
    for candidate in candidates:
        kinds.setdefault(candidate.kind, []).append(candidate)
    queues = [draws.order(kind, of_kind, lambda c: c.question) for kind, of_kind in kinds.items()]
    queues.sort(key=lambda queue: (len(queue), queue[0].kind))
    taken: list[Candidate] = []
    left: list[tuple[Candidate, Failed]] = []
    pages, of_kind, names, answers = Counter[int](), Counter[str](), set[str](), set[object]()
    while any(queues):
        for queue in queues:
            while queue:
                candidate = queue.pop(0)
                own = {normal(fact.label) for fact in candidate.facts}
                is_free = (
                    asked[normal(candidate.question)] == 1
                    and of_kind[candidate.kind] < MOST_OF_A_KIND
                    and all(pages[page] < MOST_OF_A_PAGE for page in candidate.pages)
                    and not any(f" {one} " in f" {two} " or f" {two} " in f" {one} " for one in own for two in names)
                    and candidate.answer not in answers
                )
                if is_free:
                    taken.append(candidate)
                    pages.update(candidate.pages)
                    of_kind[candidate.kind] += 1
                    names |= own
                    answers.add(candidate.answer)
                    break
                left.append((candidate, _SURPLUS))
    return taken, left


def chosen(
    candidates: Mapping[str, Sequence[Candidate]], *, keeps_all: bool
) -> tuple[list[Named], list[tuple[str, Candidate, Failed]], tuple[str, ...]]:
    """Return the questions of a file, those that are left out with the reason, and notes on what could not be kept.

    With fewer than five documents, or four kinds, that have questions, no choice could keep the shares: then documents,
    or kinds, have any share, and a note says so.
    """
    every = [(name, candidate) for name, of_document in candidates.items() for candidate in of_document]
    if keeps_all or not every:
        return every, [], ()
    documents, kinds = Counter(name for name, _ in every), Counter(candidate.kind for _, candidate in every)
    notes = []
    if len(documents) < 1 / OF_A_DOCUMENT:
        notes.append(f"only {len(documents)} documents have questions: one may have more than a fifth of them")
    if len(kinds) < 1 / OF_A_KIND:
        notes.append(f"only {len(kinds)} kinds have questions: one may have more than a quarter of them")
    draws = Draws(("questions of a file", *sorted(documents)))
    turns: Counter[tuple[str, str]] = Counter()
    order: list[tuple[int, int, int, int, str, Candidate]] = []
    for name, candidate in draws.order("file", every, lambda each: f"{each[0]} {each[1].question}"):
        turns[name, candidate.kind] += 1
        order.append((turns[name, candidate.kind], kinds[candidate.kind], documents[name], len(order), name, candidate))
    order.sort(key=lambda each: each[:4])  # documents and kinds take turns, rare ones first
    bound = len(every)
    while True:  # each share is one of the questions that are taken in the end
        of_document = bound if notes and "documents" in notes[0] else int(OF_A_DOCUMENT * bound)
        of_kind = bound if notes and "kinds" in notes[-1] else int(OF_A_KIND * bound)
        names, used = Counter[str](), Counter[str]()
        taken: list[Named] = []
        left: list[tuple[str, Candidate, Failed]] = []
        for *_, name, candidate in order:
            if names[name] >= of_document:
                expected = f"at most a fifth of the questions, {of_document}; --all keeps them"
                left.append((name, candidate, Failed("choosing", "share-of-a-document", name, expected)))
            elif used[candidate.kind] >= of_kind:
                expected = f"at most a quarter of the questions, {of_kind}; --all keeps them"
                left.append((name, candidate, Failed("choosing", "share-of-a-kind", candidate.kind, expected)))
            else:
                taken.append((name, candidate))
                names[name] += 1
                used[candidate.kind] += 1
        if len(taken) >= bound:
            return taken, left, tuple(notes)
        bound = len(taken)
