r"""Reads lists as models and annotators write them, in one pass and within a limit, without evaluating code.

The public code evaluates them as Python.
"""

import json
import re

MAX_CHARACTERS = 100_000
"""The maximum characters of a list; the longest gold list of MMLongBench-Doc has fewer than a thousand."""
_STRING = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_DIGITS = r"\d+(?:_\d+)*"
_NUMBER = rf"[+-]?(?:{_DIGITS}(?:\.(?:{_DIGITS})?)?|\.{_DIGITS})(?:[eE][+-]?{_DIGITS})?"
_ELEMENT = re.compile(
    rf"\s*(?:(?P<text>{_STRING})|(?P<number>{_NUMBER})|(?P<word>None|True|False))\s*(?P<end>[,\]])", re.DOTALL
)
_CLOSED = re.compile(r"\s*\]$")
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-7]{1,3})|(.))", re.DOTALL)
_LETTERS = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "\n": ""}
_ITSELF = "\\'\""


def literal_list(text: str) -> list[str] | None:
    """Return the elements of a list in brackets as strings; None if the text is no such list.

    The elements may be strings, numbers, None, True and False in Python's notation; numbers are returned as Python
    prints them.

    >>> literal_list("['a', 1.50, -2,]"), literal_list("[1, x]"), literal_list("[]")
    (['a', '1.5', '-2'], None, [])
    """
    text = text.strip()
    if not text.startswith("[") or len(text) > MAX_CHARACTERS:
        return None
    if not text.removeprefix("[").removesuffix("]").strip():
        return [] if text.endswith("]") else None
    elements, at = list[str](), 1
    while (found := _ELEMENT.match(text, at)) and (value := _value(found)) is not None:
        elements.append(value)
        at = found.end()
        if found["end"] == "]":
            return elements if at == len(text) else None
        if _CLOSED.match(text, at):  # a comma after the last element
            return elements
    return None


def gold_list(text: str) -> list[str]:
    """Return the elements of a gold answer, which is JSON in releases, Python in the source, or a single element."""
    if text.startswith("["):
        try:
            value: object = json.loads(text)
        except (ValueError, RecursionError):
            value = literal_list(text)
        if isinstance(value, list):
            return [str(element) for element in value]
    return [text]


def _value(found: re.Match[str]) -> str | None:
    if found["word"]:
        return found["word"]
    if found["number"]:
        try:
            return str(float(found["number"]) if re.search(r"[.eE]", found["number"]) else int(found["number"]))
        except ValueError:  # more digits than Python accepts
            return None
    body = found["text"][1:-1]
    try:
        return _ESCAPE.sub(_unescaped, body) if "\\" in body else body
    except (ValueError, OverflowError):  # there is no character with this number
        return None


def _unescaped(found: re.Match[str]) -> str:
    if code := next((group for group in found.group(1, 2, 3) if group), None):
        return chr(int(code, 16))
    if found[4]:
        return chr(int(found[4], 8))
    letter = found[5]
    return _LETTERS.get(letter, letter if letter in _ITSELF else found[0])
