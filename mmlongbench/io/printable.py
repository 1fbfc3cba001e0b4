"""Text as a terminal or a log may show it: nothing in it that is obeyed, nothing invisible, no secret of a URL."""

import io
import re
from collections.abc import Callable
from typing import TextIO

_OBEYED = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f\u034f\u115f\u1160\u3164\uffa0]"
)
"""Controls, marks that turn the direction of text, what has no width, lone surrogates; not the joiners of letters."""
_WORD = re.compile(r"\S+")
_SCHEME = r"[A-Za-z][\w+.-]{0,30}:/{1,2}"
"""A path of a URL has lost one of its slashes."""
_USER = re.compile(rf"(?P<scheme>{_SCHEME})(?:[^\s/@]*:[^\s]*@|[^\s/?#@]*@)")
"""A password may hold a slash or a quote, though it must not."""
_ADDRESS = re.compile(rf"{_SCHEME}[^\s?]*\?")
_MARKS = re.compile(r"(?<=.)[\])}'\",;:.]{0,4}\Z", re.DOTALL)
"""Marks at the end of a query, which belong to the sentence."""


def printable(text: str) -> str:
    r"""A text in one line, with an escape in place of each character that would not simply be seen.

    >>> printable("a\x1b[2J\u202eb\nc"), printable("Straße 家 😀")
    ('a\\x1b[2J\\u202eb\\nc', 'Straße 家 😀')
    """
    return _OBEYED.sub(lambda match: match[0].encode("unicode_escape", "surrogatepass").decode(), text)


def without_secrets(text: str) -> str:
    """A text in which no URL has a user, a password or a query.

    >>> without_secrets("s3://KEY:SECRET@bucket/a, https://host/b?sig=TOKEN: not found")
    's3://…@bucket/a, https://host/b?…: not found'
    """
    return _WORD.sub(lambda word: _without_query(_without_user(word[0])), text) if ":/" in text else text


def _without_user(word: str) -> str:
    """Return a word with the user and the password of each URL left out.

    Nothing is searched behind the last @, so that time grows with the length, however many URLs there are.
    """
    end = word.rfind("@") + 1
    return _USER.sub(r"\g<scheme>…@", word[:end]) + word[end:]


def _without_query(word: str) -> str:
    """Return a word with the query of its URL left out; nothing is searched behind the last question mark."""
    found = _ADDRESS.search(word, 0, word.rfind("?") + 1)
    if not found or found.end() == len(word):
        return word
    marks = _MARKS.search(word, max(found.end() + 1, len(word) - 4))
    return f"{word[: found.end()]}…{marks[0] if marks else ''}"


def shown(text: str) -> str:
    """A text, from wherever, as it is shown."""
    return printable(without_secrets(text))


class PrintableStream(io.TextIOBase):
    """A stream to a terminal or a pipe that shows every line as it may be shown.

    What draws on a terminal itself, such as a line of progress, writes to `stream`.
    """

    def __init__(self, stream: TextIO, line: Callable[[str], str] = shown) -> None:
        """Write to another stream each line as a function returns it."""
        self.stream, self._line = stream, line

    def write(self, text: str) -> int:
        """Write a text; only the ends of its lines are obeyed."""
        self.stream.write("\n".join(map(self._line, text.split("\n"))))
        return len(text)

    def flush(self) -> None:
        """Let the other stream write what it holds."""
        self.stream.flush()

    def isatty(self) -> bool:
        """Return whether the other stream is a terminal."""
        return self.stream.isatty()

    def fileno(self) -> int:
        """Return the number of the other stream."""
        return self.stream.fileno()

    @property
    def encoding(self) -> str:  # type: ignore[override]  # of a stream that has one
        """How text becomes bytes."""
        return self.stream.encoding


def drawn_on(stream: TextIO) -> TextIO:
    """The stream behind one that shows text only."""
    return stream.stream if isinstance(stream, PrintableStream) else stream
