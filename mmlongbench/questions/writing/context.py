"""What a check needs besides the question: the documents, the settings, the ranking of pages, and models to ask. And
the outcomes that a check can return.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from mmlongbench.draws import Draws
from mmlongbench.questions.writing.asking import CallFailedError, NoAnswer, Request
from mmlongbench.questions.writing.documents import Library, ReadDocument
from mmlongbench.questions.writing.families import others
from mmlongbench.questions.writing.forms import Answered
from mmlongbench.questions.writing.lines import Candidate, Judged
from mmlongbench.questions.writing.settings import WritingSettings
from mmlongbench.questions.writing.wordings import ANSWER, asked

if TYPE_CHECKING:
    from rank_bm25 import BM25Okapi

PENDING = "call-failed"
"""The reason of a question whose call got no reply."""


@dataclass(frozen=True)
class Rankings:
    """Ranks the pages of documents for questions, by BM25 over their words."""

    library: Library
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _known: "dict[str, BM25Okapi]" = field(default_factory=dict)

    def ranked(self, doc: str, question: str, without: Sequence[int] = ()) -> list[int]:
        """Return the pages of a document, from 1, best first. Pages without text, and pages with equal scores, are in
        their order.
        """
        from rank_bm25 import BM25Okapi

        from mmlongbench.questions.writing.answers import words

        with self._lock:
            if doc not in self._known:
                texts = [text.split() or ["\0"] for text in self.library.documents[doc].texts]
                self._known[doc] = BM25Okapi(texts)
            scores = self._known[doc].get_scores(words(question).split())
        order = sorted(range(len(scores)), key=lambda page: (-round(float(scores[page]), 9), page))
        return [page + 1 for page in order if page + 1 not in without]


@dataclass(frozen=True, slots=True)
class Context:
    """What every check may use."""

    library: Library
    settings: WritingSettings
    rankings: Rankings
    ask: Callable[[Request[Any]], Any]
    """Asks a model (`asking.Desk.ask`)."""

    def document(self, candidate: Candidate) -> ReadDocument:
        """Return the document of a question."""
        return self.library.documents[candidate.doc]

    def readers(self, candidate: Candidate, stage: str) -> list[str]:
        """Return the models that may check a question, in the order drawn for a stage; none is of the author's
        family.
        """
        draws = Draws((self.settings.seed, candidate.slot, stage))
        return others(candidate.author, self.settings.models, draws)

    def answer(
        self, stage: str, model: str, candidate: Candidate, pages: Sequence[int], doc: str = ""
    ) -> Answered | NoAnswer:
        """Return a model's answer to a question from pages of its document, or of another one."""
        shown = self.library.shown(doc or candidate.doc, pages)
        return self.ask(Request(stage, model, ANSWER, asked(candidate), Answered, shown))  # type: ignore[no-any-return]


def passed(candidate: Candidate, detail: str = "", reason: str = "") -> Judged:
    """Return that a question goes on as it is; a reason is only a note."""
    return Judged(slot=candidate.slot, outcome="passed", reason=reason, detail=detail, candidate=candidate)


def revised(candidate: Candidate, reason: str, detail: str, **changes: object) -> Judged:
    """Return that a question goes on with other fields."""
    after = candidate.model_copy(update={**changes, "repairs": (*candidate.repairs, reason)})
    return Judged(slot=candidate.slot, outcome="revised", reason=reason, detail=detail, candidate=after)


def held(candidate: Candidate, reason: str, detail: str) -> Judged:
    """Return that a question goes on, but people decide about it."""
    after = candidate.model_copy(update={"flags": (*candidate.flags, reason)})
    return Judged(slot=candidate.slot, outcome="held", reason=reason, detail=detail, candidate=after)


def rejected(slot: str, reason: str, detail: str) -> Judged:
    """Return that a question, or a slot without one, ends here."""
    return Judged(slot=slot, outcome="rejected", reason=reason, detail=" ".join(detail.split())[:300])


def pending(slot: str, error: CallFailedError) -> Judged:
    """Return that a call failed, so that nothing is known."""
    return Judged(slot=slot, outcome="pending", reason=PENDING, detail=str(error)[:300])
