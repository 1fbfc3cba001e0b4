"""Whether something tells that a question has no answer: its words, the pages that it names, and what its context
shows. A context that is cut around an answer page shows more words of the question than one without an answer.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

import numpy as np

from mmlongbench.corpus.retrieval.negatives import STOP_WORDS
from mmlongbench.corpus.retrieval.text import tokens
from mmlongbench.likeness import words
from mmlongbench.shortcuts.findings import Measured
from mmlongbench.shortcuts.learners import guess_answers
from mmlongbench.shortcuts.reading import AskedQuestion, PageTexts
from mmlongbench.shortcuts.text_features import NAMED, of_named, of_questions, scaled
from mmlongbench.statistics import Floats

_REFUSALS = frozenset(map(words, ("not answerable", "unanswerable", "cannot be answered", "no answer")))
_YES, _NO = "answerable", "not answerable"


@dataclass(frozen=True, slots=True)
class Shown:
    """What a context shows, as far as detectors look."""

    question: int | None
    """How many distinct words the question has, without those that nearly every page holds; None if the texts of the
    pages are unknown."""
    found: tuple[int, ...]
    """How many of these words are on each shown page."""
    own: tuple[int, ...]
    """The numbers of the shown pages of its own document."""
    own_found: tuple[int, ...]
    """How many of these words are on each of them; empty if unknown."""
    document: int
    """Pages of its document; 0 if unknown."""


def shown_of(question: str, pages: Sequence[frozenset[str]], own: Mapping[int, int], document: int = 0) -> Shown:
    """Return what a context shows. `pages` has the words of each page (see `words_of_page`), `own` the places of the
    pages of its own document, with their numbers in the document; `document` is the number of its pages.
    """
    asked = frozenset(tokens(question)) - STOP_WORDS
    found = tuple(len(asked & page) for page in pages)
    return Shown(len(asked), found, tuple(own.values()), tuple(found[place] for place in own), document)


@lru_cache(4_000)
def words_of_page(text: str) -> frozenset[str]:
    """Return the distinct words of a page."""
    return frozenset(tokens(text))


def _share(shown: Shown) -> float | None:
    return None if shown.question is None else max(shown.found, default=0) / max(1, shown.question)


def _centre(shown: Shown) -> float | None:
    """How far the shown own pages are from the middle of their document, where this is cut."""
    if not shown.own or len(shown.own) >= shown.document:
        return None
    return abs(shown.own[0] + shown.own[-1] - (shown.document - 1)) / shown.document


def _best_is_outer(shown: Shown) -> float | None:
    """How far the best-matching own page is from the middle of the shown ones, where the document is cut."""
    found = shown.own_found
    if len(found) in (0, 1, shown.document) or not any(found):
        return None
    return abs(2 * found.index(max(found)) / (len(found) - 1) - 1)


DETECTORS: Mapping[str, Callable[[Shown], float | None]] = {
    "share of the question's words on the best page": _share,
    "number of the question's words on the best page": lambda shown: (
        None if shown.question is None else float(max(shown.found, default=0))
    ),
    "words of the question alone": lambda shown: None if shown.question is None else float(shown.question),
    "own pages shown": lambda shown: float(len(shown.own)),
    "pages of other documents are shown": lambda shown: float(len(shown.found) > len(shown.own)),
    "pages are missing between own pages": lambda shown: float(any(b > a + 1 for a, b in pairwise(shown.own))),
    "own pages are off the document's middle": _centre,
    "the best own page is off the middle of the shown ones": _best_is_outer,
    "the document is cut": lambda shown: float(len(shown.own) < shown.document) if shown.document else None,
}
"""Numbers that could tell whether a question has an answer; None where one is unknown."""


def shown_in(asked: AskedQuestion, texts: PageTexts | None) -> Shown | None:
    """Return what the context of a question shows; None if the release does not say which pages of its document."""
    own = [place for place, unit in enumerate(asked.units) if unit.role == "own"]
    if not asked.pages or len(own) != len(asked.pages):
        return None
    found = [texts.of(unit) if texts else "" if unit.image else unit.body for unit in asked.units]
    shown = shown_of(asked.question, list(map(words_of_page, found)), dict(zip(own, asked.pages, strict=True)))
    return shown if any(found) else replace(shown, question=None)


def is_refusal(answer: str) -> bool:
    """Return whether an answer says that there is none.

    >>> is_refusal("Not answerable."), is_refusal("no")
    (True, False)
    """
    return words(answer) in _REFUSALS


def measure_answerable(
    ids: Sequence[str],
    clusters: Sequence[str],
    questions: Sequence[str],
    answers: Sequence[str],
    shown: Sequence[Shown | None],
) -> Iterator[Measured | None]:
    """Yield what tells that a question has no answer; nothing if all questions, or none, have one.

    The null is that of `guess_answers`: answers are exchanged between documents, so questions about one document may be
    unanswerable together.
    """
    labels = [_NO if is_refusal(answer) else _YES for answer in answers]
    if len(set(labels)) < 2:
        return
    told = of_questions(questions)
    if told.size:
        evidence = "words and form of the question"
        yield guess_answers("not answerable from the question", ids, clusters, labels, told, evidence)
    named = np.array([of_named(question) for question in questions], dtype=np.float64)
    yield _told("not answerable from the pages it names", ids, clusters, labels, named, NAMED)
    known = [(number, context) for number, context in enumerate(shown) if context]
    if not known:
        return
    # the number of pages of each document, as far as any of its contexts shows
    pages = dict.fromkeys(clusters, 0)
    for n, context in known:
        pages[clusters[n]] = max(pages[clusters[n]], context.document, max(context.own, default=-1) + 1)
    seen = [replace(context, document=pages[clusters[n]]) for n, context in known]
    rows = np.array([[detect(context) for detect in DETECTORS.values()] for context in seen], dtype=np.float64)
    # the mean of a column where a number is unknown
    is_known = ~np.isnan(rows)
    means = np.where(is_known, rows, 0).sum(axis=0) / np.maximum(is_known.sum(axis=0), 1)
    some = [ids[n] for n, _ in known], [clusters[n] for n, _ in known], [labels[n] for n, _ in known]
    yield _told("not answerable from what is shown", *some, np.where(is_known, rows, means), tuple(DETECTORS))


def _told(
    kind: str,
    ids: Sequence[str],
    clusters: Sequence[str],
    labels: Sequence[str],
    features: Floats,
    names: Sequence[str],
) -> Measured | None:
    form = scaled(features)
    is_no = np.array([label == _NO for label in labels])
    if not is_no.any() or is_no.all():
        return None
    more = form[is_no].mean(axis=0) - form[~is_no].mean(axis=0)
    first = sorted(range(len(names)), key=lambda at: (-abs(more[at]), at))[:3]
    found = [f"{names[at]} ({'more' if more[at] > 0 else 'less'})" for at in first if abs(more[at]) > 1e-9]
    return guess_answers(kind, ids, clusters, labels, form, f"unanswerable questions differ by {', '.join(found)}")
