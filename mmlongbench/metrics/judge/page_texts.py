"""The texts of documents' pages, read from a folder of PDFs; several threads may use it."""

import threading
from collections import OrderedDict
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

from mmlongbench.documents.limits import Limits
from mmlongbench.documents.names import folder_names
from mmlongbench.documents.pdf import read_pages
from mmlongbench.errors import Fault, PageLimitError, SourceError
from mmlongbench.io.files import file_inside, pdfs_by_name

MAX_KEPT = 64 * 1024 * 1024
"""How many characters of documents are kept in memory; the current document is always kept."""


class PageTexts:
    """The page texts of the documents of a folder; a document is found by its name in a release or its file name."""

    def __init__(self, folder: Path | None) -> None:
        """Keep the folder; a document is read when its text is needed."""
        self._folder = folder
        self._guard = threading.Lock()
        self._kept = OrderedDict[str, tuple[str, ...]]()
        self._limits = Limits()

    def of(self, name: str) -> tuple[str, ...]:
        """Return the text of each page; empty for a document that is missing or cannot be read within limits.

        Raises:
            SourceError: the folder cannot be read.
            PageLimitError: a page of the document takes too much time or memory.

        """
        with self._guard:
            if name not in self._kept:
                self._kept[name] = self._read(name)
            self._kept.move_to_end(name)
            while len(self._kept) > 1 and self._size() > MAX_KEPT:
                self._kept.popitem(last=False)
            return self._kept[name]

    def _size(self) -> int:
        return sum(len(text) for texts in self._kept.values() for text in texts)

    def _read(self, name: str) -> tuple[str, ...]:
        found = self._files.get(name)
        if self._folder is None or not isinstance(found, Path):
            return ()
        inside = file_inside(self._folder, found.relative_to(self._folder))
        try:
            return tuple(page.text for page in read_pages(inside, self._limits)) if inside else ()
        except PageLimitError as error:
            raise error.in_scores() from error
        except SourceError:
            return ()

    @cached_property
    def _files(self) -> Mapping[str, Path | Fault]:
        """Return every PDF by the name of its file, with and without `.pdf`, and by its name in a release."""
        own = pdfs_by_name(self._folder) if self._folder else {}
        released = folder_names(own)
        return {released[stem]: found for stem, found in own.items()} | {f"{s}.pdf": f for s, f in own.items()} | own
