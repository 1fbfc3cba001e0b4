"""Normalises the answers of document questions in the same way for all sources. Each repair has a name; an answer that
cannot be repaired is refused.
"""

import ast
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from builders.docvqa.options import AnswerWords
from mmlongbench.task import Fault

AnswerFormat: TypeAlias = Literal["Integer", "Float", "String", "List", "None"]
NOT_ANSWERABLE = "Not answerable"
_FORMATS: dict[str, AnswerFormat] = {
    "Int": "Integer",
    "Integer": "Integer",
    "Float": "Float",
    "Str": "String",
    "String": "String",
    "List": "List",
    "None": "None",
}
_MAX_LITERAL = 100_000
"""The maximum characters of a text that is parsed as a list; the parser needs a hundred times the memory of the
text."""
_INTEGER = re.compile(r"[+-]?\d+|[+-]?\d{1,3}(,\d{3})+")
_FLOAT = re.compile(
    r"[$£]?\s?[+-]?((\d{1,3}(,\d{3})+|\d+)(\.\d*)?|\.\d+)(e[+-]?\d+)?\s?(%|million|miles?)?", re.IGNORECASE
)
"""Matches what the public scorer reads as a number; the scorer removes these currency signs and units first."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer whose format and text agree."""

    format: AnswerFormat
    values: tuple[str, ...]
    """The elements if the format is `List`; one string for any other format."""
    repairs: tuple[str, ...] = ()


def normalise(value: object, declared: str) -> Answer | Fault:
    """Return the answer, with a text and a format that agree. Return a `Fault` if the value or the declared format is
    not valid. The value is a text or any other value of JSON.

    >>> normalise("21%", "Int")
    Answer(format='String', values=('21%',), repairs=('integer-to-string',))
    >>> normalise("['red', 'blue']", "Str")
    Answer(format='List', values=('red', 'blue'), repairs=('string-to-list',))
    >>> normalise(5.0, "Integer"), normalise([1, "x"], "List").values
    (Answer(format='Integer', values=('5',), repairs=()), ('1', 'x'))
    """
    if isinstance(value, bool) or not isinstance(value, str | int | float | list) or value != value:
        return Fault("missing-or-mistyped-field", "a text, a number or a list", repr(value)[:80], field="answer")
    if declared not in _FORMATS:
        expected = f"one of {', '.join(_FORMATS)}"
        return Fault("unknown-answer-format", expected, repr(declared)[:80], field="answer_format")
    kind = _FORMATS[declared]
    if isinstance(value, list):
        return _listed(value, kind)
    is_whole = isinstance(value, float) and value.is_integer() and kind == "Integer"
    return _of_text(str(int(value) if is_whole else value).strip(), kind)


def _of_text(text: str, kind: AnswerFormat) -> Answer | Fault:
    if text.casefold().rstrip(".") == NOT_ANSWERABLE.casefold():
        return Answer("None", (NOT_ANSWERABLE,), () if kind == "None" else (f"{kind.lower()}-to-none",))
    if kind == "None":
        return Fault("answer-of-format-none", f"{NOT_ANSWERABLE!r}", repr(text), field="answer")
    if not text:
        return Fault("empty-answer", "an answer", "nothing", field="answer")
    if kind in ("List", "String") or literal_list(text) is not None:
        return _list_or_string(text, kind)
    if kind == "Integer" and not _INTEGER.fullmatch(text):
        return Answer("String", (text,), ("integer-to-string",))
    if kind == "Float" and not _FLOAT.fullmatch(text):
        return Answer("String", (text,), ("float-to-string",))
    return Answer(kind, (text,))


def _list_or_string(text: str, kind: AnswerFormat) -> Answer | Fault:
    """Return a List if the text is written as a list, otherwise a String, whatever format was declared."""
    values = literal_list(text)
    if values is None:
        return Answer("String", (text,), ("list-to-string",) if kind == "List" else ())
    return _listed(values, kind)


def _listed(values: Sequence[object], kind: AnswerFormat) -> Answer | Fault:
    elements = tuple(str(value).strip() if isinstance(value, str | int | float) else "" for value in values)
    if not elements or not all(elements):
        expected = "a list of at least one string or number, none empty"
        return Fault("list-answer", expected, repr(values)[:120], field="answer")
    return Answer("List", elements, () if kind == "List" else (f"{kind.lower()}-to-list",))


def format_of(value: object) -> str:
    """Return the format of an answer whose source declares no format.

    >>> [format_of(each) for each in ("1,066", "12.5%", "Tern Rock", "2019-04-01", "['a', 'b']", "Not answerable", 3)]
    ['Integer', 'Float', 'String', 'String', 'List', 'None', 'Integer']
    """
    text = str(value).strip()
    if isinstance(value, list) or literal_list(text) is not None:
        return "List"
    if text.casefold().rstrip(".") == NOT_ANSWERABLE.casefold():
        return "None"
    if _INTEGER.fullmatch(text):
        return "Integer"
    return "Float" if _FLOAT.fullmatch(text) else "String"


def literal_list(text: str) -> list[object] | None:
    """Parse a string as a list in Python or JSON notation; return None if it is not a list.

    >>> literal_list("['a', 1]"), literal_list("[1, x]"), literal_list("3")
    (['a', 1], None, None)
    """
    if len(text) > _MAX_LITERAL or not text.strip().startswith("["):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings of the compiler about a backslash before a letter
            value = ast.literal_eval(text.strip())
        str(value)  # a hexadecimal number may have too many decimal digits to print
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    return value if isinstance(value, list) else None


def count_words(values: Sequence[str], how: AnswerWords) -> int:
    """Return the number of words (parts between blanks) of an answer. If `how` is `whole`, the words of all elements
    are counted together. If not, only the element with the most words is counted.

    >>> count_words(("New York", "Rome"), "whole"), count_words(("New York", "Rome"), "per_element")
    (3, 2)
    """
    counts = [len(value.split()) for value in values]
    return sum(counts) if how == "whole" else max(counts)
