"""SMuDGE: whether an answer from a document agrees with the gold answer, and was taken from the same place.

Score = α · match + (1 − α) · grounding (Nourbakhsh et al., Findings of NAACL 2025, arXiv:2503.19120). The gold and the
prediction are searched for on all pages. If a string is found equally well at several places, the smallest distance
between a place of the gold and a place of the prediction counts; places on different pages have a distance of 1.

The gold is at the text that is most similar to it (section 3.1); only predictions have a threshold. An example whose
gold answer has no letter in common with the document is not scored; counts and sums, which are not extractive, are.
"""

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, TypeAlias

from mmlongbench.documents.limits import Limits
from mmlongbench.documents.names import folder_names
from mmlongbench.errors import Fault, PageLimitError, ScoringError, SourceError
from mmlongbench.io.files import file_inside, pdfs_by_name
from mmlongbench.metrics.smudge.matching import (
    MAX_ELEMENT,
    MAX_ELEMENTS,
    elements_of,
    golds_of,
    grounding_score,
    kind_of,
    match_score,
    paired,
    said_of,
    split,
)
from mmlongbench.task.metric import Metric, Profile, Score, ScoringInput, Settings

if TYPE_CHECKING:
    from mmlongbench.metrics.smudge.reading import Found, Reading
    from mmlongbench.metrics.smudge.words import WordList

MAX_BYTES = 256 * 1024 * 1024
"""How many bytes of documents are kept in memory; the current document is always kept."""
Opened: TypeAlias = "Reading | Fault"


class Library:
    """Opens documents from a folder of PDFs or a list of words, and keeps those used last in memory."""

    def __init__(self, documents: Path | None, words: Path | None, bound: int = MAX_BYTES) -> None:
        self._documents, self._words, self._bound = documents, words, bound
        self._kept = OrderedDict[str, Opened]()
        self._limits = Limits()

    def open(self, name: str) -> Opened:
        """Return the document that has this name in a release, or a fault that says why the document cannot be used.

        Raises:
            SourceError: the list of words, or the folder, cannot be read.
            PageLimitError: a page of the document takes too much time or memory.

        """
        if name in self._kept:
            self._kept.move_to_end(name)
            return self._kept[name]
        opened = self._kept[name] = self._read(name)
        while (
            len(self._kept) > 1
            and sum(1024 if isinstance(each, Fault) else each.weight for each in self._kept.values()) > self._bound
        ):
            self._kept.popitem(last=False)
        return opened

    def _read(self, name: str) -> Opened:
        from mmlongbench.metrics.smudge.reading import Reading  # needs numpy; a metric that is only listed does not
        from mmlongbench.metrics.smudge.words import pdf_words, words_of

        if self._list is not None:
            if name not in self._list:
                return _absent(name, "a word in the list of words")
            source = self._list.words(name)
        else:
            found = self._files.get(name) or self._files.get(name.removesuffix(".pdf"))
            if isinstance(found, Fault):
                return found
            if found is None or self._documents is None:
                return _absent(name, "a PDF of this name in the folder of documents")
            inside = file_inside(self._documents, found.relative_to(self._documents))
            if not inside:
                return _absent(name, "a PDF inside the folder of documents")
            source = pdf_words(inside, self._limits)
        try:
            words = words_of(source, name)
        except PageLimitError as error:
            raise error.in_scores() from error
        except SourceError as error:
            return error.fault
        if not len(words):
            todo = "give a list of words from an OCR"
            return Fault("document-without-words", "words on its pages", "none", name, todo=todo)
        return Reading(words)

    @cached_property
    def _list(self) -> "WordList | None":
        from mmlongbench.metrics.smudge.words import WordList

        return WordList(self._words) if self._words else None

    @cached_property
    def _files(self) -> dict[str, Path | Fault]:
        """Return every PDF by the name of its file without `.pdf`, and by its name in a release."""
        own = pdfs_by_name(self._documents) if self._documents else {}
        released = folder_names(own)
        return {released[stem]: found for stem, found in own.items()} | own


def _absent(name: str, expected: str) -> Fault:
    return Fault("missing-document", expected, "none", name, todo="give the folder that has the document (--data)")


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
    """Whether all places of the prediction were compared."""

    def score(self, alpha: float) -> float:
        """Return the sum of match and grounding, weighted with `alpha` and 1 − `alpha`."""
        return alpha * self.match + (1 - alpha) * grounding_score(self.distance)


class SMuDGE(Metric):
    """Groundedness of extractive answers."""

    name = "smudge"
    profiles: ClassVar[Mapping[Profile, str]] = {"paper": "arXiv:2503.19120"}

    def __init__(self, settings: Settings) -> None:
        """Keep the profile, the documents or the list of words, and the weights.

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
        self._library = Library(settings.documents, settings.words)
        self._gold = lru_cache(maxsize=_KEPT)(self._located)

    def out_of_scope(self, asked: ScoringInput) -> str:
        """Return why an example is not scored, such as a gold answer that is not text in the document.

        The result is empty if the example is scored, or if the document cannot be read.
        """
        golds, is_list, name = *golds_of(asked), _document(asked)
        if not golds or not name:
            return "there is no gold answer that is text, or no document"
        if all(_needle(gold) in _REFUSALS for gold in golds):
            return "the document has no answer"
        if all(_needle(gold) in _VERDICTS for gold in golds):
            return "the gold answer is yes or no"
        if isinstance(self._library.open(name), Fault):
            return ""  # the user must fix this, so `score` gives it as a failure
        located = [bool(self._gold(name, gold).places) for gold in golds]
        is_there = all(located) if is_list else any(located)
        return "" if is_there else "the gold answer is not in the text of its document"

    def score(self, asked: ScoringInput) -> Score:
        """Return the score of one example. If the gold cannot be found, the score has a failure instead of a value.

        The score is that at the first of the weights (`alphas`); the details have the score at each weight.
        """
        golds, is_list, name = *golds_of(asked), _document(asked)
        if not golds or not name:
            lacking = "a document (`doc_name`)" if golds else "a gold answer that is text"
            return Score(None, failure=f"smudge: the record has not {lacking}: it asks for no extractive answer")
        text = self._library.open(name)
        if isinstance(text, Fault):
            return Score(None, failure=f"smudge: {text}")
        located = {gold: self._gold(name, gold) for gold in golds}
        there = [gold for gold in golds if located[gold].places]
        if not there or (is_list and len(there) < len(golds)):
            absent = next(gold for gold in golds if gold not in there)
            return Score(None, failure=f"smudge: {absent[:80]!r} is not in its document")
        said = said_of(asked.prediction)
        parts = [part if len(part) <= MAX_ELEMENT else "" for part in elements_of(said)] if is_list else [said]
        table = [[self._compare(text, gold, located[gold], part) for part in parts[:MAX_ELEMENTS]] for gold in there]
        over = max(len(there), len(parts)) if is_list else 1
        scores = dict[float, float]()
        chosen = list[Compared]()
        for alpha in reversed(self._alphas):
            pairs = paired([[each.score(alpha) for each in row] for row in table])
            chosen = [table[gold][part] for gold, part in (pairs if is_list else pairs[:1])]
            scores[alpha] = sum(each.score(alpha) for each in chosen) / over
        first = self._alphas[0]  # the last that the loop chose
        details: dict[str, object] = {
            "match": sum(each.match for each in chosen) / over,
            "grounding": sum(grounding_score(each.distance) for each in chosen) / over,
            "is_found": bool(chosen) and all(each.is_found for each in chosen),
            "type": kind_of(there[0]),
            "is_gold_exact": all(located[gold].similarity == 1 for gold in there),
            "is_exhaustive": all(located[gold].is_exhaustive for gold in there)
            and all(each.is_exhaustive for row in table for each in row),
            **{f"alpha_{alpha:g}": scores[alpha] for alpha in self._alphas},
        }
        return Score(scores[first], details)

    def _located(self, name: str, gold: str) -> "Found":
        text = self._library.open(name)
        if isinstance(text, Fault):  # only if the document changes meanwhile
            raise ScoringError(f"smudge: {text}")
        return text.best(_needle(gold), text.pages)

    def _compare(self, text: "Reading", gold: str, located: "Found", said: str) -> Compared:
        """Return the comparison of a prediction with a gold that was found.

        A prediction that equals the gold is at the gold's place. If a page without the gold has
        text that is more similar to the prediction, the prediction counts as not found.
        """
        needle, match = _needle(said), match_score(gold, said)
        if needle == _needle(gold):
            return Compared(match, 0.0, is_found=True)
        found = text.best_near(needle, sorted({place.page for place in located.places}))
        return Compared(match, located.distance(found), is_found=bool(found.places), is_exhaustive=found.is_exhaustive)


def _document(asked: ScoringInput) -> str:
    """Return the name of the document that the question is about; empty if unknown."""
    return (asked.evidence.document or "") if asked.evidence else ""


def _needle(text: str) -> str:
    """Return a string in the form that is searched for."""
    return " ".join(split(text))
