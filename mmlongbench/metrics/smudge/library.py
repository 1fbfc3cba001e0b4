"""Finds documents by their names in a release, reads their words, and keeps these in memory up to a limit."""

from collections import OrderedDict
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

from mmlongbench.documents.limits import Limits
from mmlongbench.documents.names import folder_names
from mmlongbench.errors import Fault, PageLimitError, SourceError
from mmlongbench.io.files import file_inside, pdfs_by_name
from mmlongbench.metrics.smudge.paths import Paths
from mmlongbench.metrics.smudge.pdf_words import pdf_words
from mmlongbench.metrics.smudge.places import Locator
from mmlongbench.metrics.smudge.reading import Reading
from mmlongbench.metrics.smudge.windows import letters_of
from mmlongbench.metrics.smudge.word_list import WordList
from mmlongbench.metrics.smudge.words import Word, Words, words_of

MAX_BYTES = 256 * 1024 * 1024
"""How many bytes of documents are kept in memory; the current document is always kept."""


class Text:
    """The words of one document, and the objects that find strings in it."""

    def __init__(self, words: Words, *, ignores_reading_order: bool) -> None:
        self.pages, self.size = tuple(words.pages.tolist()), len(words)
        letters = letters_of(words)
        paths = Paths(letters) if ignores_reading_order else None
        self.locator: Locator = paths or Reading(letters)
        self.weight = words.weight + letters.weight + (paths.weight if paths else 0)


Opened: TypeAlias = Text | Fault


class Library:
    """Opens documents from a folder of PDFs or a list of words, and keeps those used last in memory."""

    def __init__(
        self, documents: Path | None, words: Path | None, *, ignores_reading_order: bool, bound: int = MAX_BYTES
    ) -> None:
        self._documents, self._words, self._ignores_reading_order, self._bound = (
            documents,
            words,
            ignores_reading_order,
            bound,
        )
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
        while len(self._kept) > 1 and self._weight() > self._bound:
            self._kept.popitem(last=False)
        return opened

    def _weight(self) -> int:
        return sum(each.weight if isinstance(each, Text) else 1024 for each in self._kept.values())

    def _read(self, name: str) -> Opened:
        source = self._source(name)
        if isinstance(source, Fault):
            return source
        try:
            words = words_of(source, name)
        except PageLimitError as error:
            raise error.in_scores() from error
        except SourceError as error:
            return error.fault
        if not len(words):
            todo = "give a list of words from an OCR"
            return Fault("document-without-words", "words on its pages", "none", name, todo=todo)
        return Text(words, ignores_reading_order=self._ignores_reading_order)

    def _source(self, name: str) -> Iterator[Word] | Fault:
        if self._list is not None:
            return self._list.words(name) if name in self._list else _absent(name, "a word in the list of words")
        found = self._files.get(name) or self._files.get(name.removesuffix(".pdf"))
        if isinstance(found, Fault):
            return found
        if found is None or self._documents is None:
            return _absent(name, "a PDF of this name in the folder of documents")
        inside = file_inside(self._documents, found.relative_to(self._documents))
        return pdf_words(inside, self._limits) if inside else _absent(name, "a PDF inside the folder of documents")

    @cached_property
    def _list(self) -> WordList | None:
        return WordList(self._words) if self._words else None

    @cached_property
    def _files(self) -> dict[str, Path | Fault]:
        """Return every PDF by the name of its file without `.pdf`, and by its name in a release."""
        own = pdfs_by_name(self._documents) if self._documents else {}
        released = folder_names(own)
        return {released[stem]: found for stem, found in own.items()} | own


def _absent(name: str, expected: str) -> Fault:
    return Fault("missing-document", expected, "none", name, todo="give the folder that has the document (--data)")
