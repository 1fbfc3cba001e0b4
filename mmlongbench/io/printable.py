"""Makes text safe for a terminal or a log: no control characters, nothing invisible, no secrets in URLs."""

import html
import io
import re
from collections.abc import Callable
from typing import TextIO
from urllib.parse import unquote

_OBEYED = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f\u034f\u115f\u1160\u3164\uffa0]"
)
"""Matches control characters, marks that change the direction of text, invisible characters and lone surrogates. The
characters that join others, as in an emoji, are not matched."""
_WORD = re.compile(r"\S+")
_SCHEME = r"[A-Za-z][\w+.-]{0,30}:/{1,2}"
"""The scheme of a URL; a URL that was handled as a path has only one slash."""
_USER = re.compile(rf"(?P<scheme>{_SCHEME})(?:[^\s/@]*:[^\s]*@|[^\s/?#@]*@)")
"""The user and password of a URL. A password with a slash or a quote is found too, although URLs do not allow these."""
_ADDRESS = re.compile(rf"{_SCHEME}[^\s?]*\?")
_MARKS = re.compile(r"(?<=.)[\])}'\",;:.]{0,4}\Z", re.DOTALL)
"""The punctuation directly after a query, which belongs to the sentence around the URL."""

_SLASHES = re.compile(r":[\\/]{2}")
"""Matches what is after the scheme of a URL, also with backslashes, which programs read as slashes."""
_AFTER_URL = "])}>'\",;:."
_MAIL = frozenset({"mailto", "mail", "email", "e-mail", "contact"})
"""Words before an address such as `Email:me@host`, which is no login."""
_MAX_ENCODED = 8  # how often a URL is decoded; one that is encoded more often may hold anything


def md(text: str) -> str:
    r"""Return a text as Markdown that shows it as it is, in one line; what is between backticks is code.

    >>> md("a|b  <image> *c*")
    'a\\|b &lt;image&gt; \\*c\\*'
    """
    parts = re.split(r"(`[^`]+`)", " ".join(text.split()))
    for at, part in enumerate(parts):
        plain = re.sub(r"([\\`*_\[\]|#!~$])", r"\\\1", html.escape(part, quote=False))
        parts[at] = part.replace("|", " ") if at % 2 else plain
    return "".join(parts)


def printable(text: str) -> str:
    r"""Return a text in one line, with an escape for each character that would not be visible.

    >>> printable("a\x1b[2J\u202eb\nc"), printable("Straße 家 😀")
    ('a\\x1b[2J\\u202eb\\nc', 'Straße 家 😀')
    """
    return _OBEYED.sub(lambda match: match[0].encode("unicode_escape", "surrogatepass").decode(), text)


def without_secrets(text: str) -> str:
    """Return a text in which no URL has a user, a password or a query.

    >>> without_secrets("s3://KEY:SECRET@bucket/a, https://host/b?sig=TOKEN: not found")
    's3://…@bucket/a, https://host/b?…: not found'
    """
    return _WORD.sub(lambda word: _without_secrets(word[0]), text) if ":/" in text else text


def _without_secrets(word: str) -> str:
    """Return a word without the user, the password and the query of each URL.

    Nothing is searched after the last @ or the last question mark, so the time grows only with the length, however many
    URLs there are.
    """
    end = word.rfind("@") + 1
    word = _USER.sub(r"\g<scheme>…@", word[:end]) + word[end:]
    address = _ADDRESS.search(word, 0, word.rfind("?") + 1)
    if not address or address.end() == len(word):
        return word
    marks = _MARKS.search(word, max(address.end() + 1, len(word) - 4))
    return f"{word[: address.end()]}…{marks[0] if marks else ''}"


def has_secret(text: str) -> bool:
    """Return whether a text may have a secret that would be published with it: a URL with a user, a password, a
    query, a fragment or parameters, also an encoded one, or `user:password@host` without a scheme.

    >>> has_secret("https://host/x%3Fsig=TOKEN"), has_secret("//user:TOKEN@host"), has_secret("see me@example.org")
    (True, True, False)
    """
    return any(_has_secret(word[0]) for word in _WORD.finditer(text))


def _has_secret(word: str) -> bool:
    for _ in range(_MAX_ENCODED):
        word = _SLASHES.sub("://", word)
        _, is_url, path = word.partition("://")
        plain = path.rstrip(_AFTER_URL)
        bare = word.rstrip(_AFTER_URL)  # "(https://host/x?)" ends with a question mark, and has no query
        if without_secrets(bare) != bare or "#" in path or ";" in plain or (not is_url and _is_login(word)):
            return True
        word, before = unquote(word), word
        if word == before:
            return False
    return True


def _is_login(word: str) -> bool:
    """Return whether a word is `user:password@host`; `mailto:me@host` and `hub:owner/name@revision` are not."""
    user, _, host = word.rpartition("@")
    name, _, password = user.partition(":")
    kind = name.strip("([<{'\"").lower()
    is_known = ":" not in password and (kind in _MAIL or (kind == "hub" and password.count("/") == 1))
    return bool(host and password) and not is_known


def without_password(address: str) -> str:
    """Return an address without everything before its last `@`, which may be a password; it need not be a valid URL.

    >>> without_password("user:secret@host/v1"), without_password("host/v1")
    ('…@host/v1', 'host/v1')
    """
    user, at, rest = address.rpartition("@")
    return f"…@{without_secrets(rest)}" if at and user else without_secrets(address)


def shown(text: str) -> str:
    """Return a text in the form in which it may be shown: `printable` and `without_secrets`."""
    return printable(without_secrets(text))


class PrintableStream(io.TextIOBase):
    """A stream to a terminal or a pipe that makes every line safe to show.

    Code that draws on the terminal itself, such as a progress line, writes to `stream`.
    """

    def __init__(self, stream: TextIO, line: Callable[[str], str] = shown) -> None:
        self.stream, self._line = stream, line

    def write(self, text: str) -> int:
        """Write a text; line ends stay, and each line is converted."""
        self.stream.write("\n".join(map(self._line, text.split("\n"))))
        return len(text)

    def flush(self) -> None:
        self.stream.flush()

    def isatty(self) -> bool:
        return self.stream.isatty()

    def fileno(self) -> int:
        return self.stream.fileno()

    @property
    def encoding(self) -> str:  # type: ignore[override]  # the other stream always has one
        return self.stream.encoding


def drawn_on(stream: TextIO) -> TextIO:
    """Return the stream that a `PrintableStream` writes to; any other stream is returned unchanged."""
    return stream.stream if isinstance(stream, PrintableStream) else stream
