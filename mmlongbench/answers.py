"""Answers: their formats, the lists in them, the answer in a model's output, and the forms in which they are compared.

Builders, questions and metrics share this. The forms are those of public code: SQuAD's (`normalised`), and
MMLongBench-Doc's (`cleaned`, `is_exact`, `anls`).
"""

import ast
import json
import re
import string
import warnings
from collections.abc import Iterable, Mapping
from typing import Literal, TypeAlias

from mmlongbench.errors import ScoringError

# --- formats ----------------------------------------------------------------------------------------------------------

AnswerFormat: TypeAlias = Literal["String", "Integer", "Float", "List", "None"]
"""The format of an answer, as MMLongBench-Doc names it; `None` if the question is not answerable."""
ANSWER_FORMATS: Mapping[str, AnswerFormat] = {
    "Int": "Integer",
    "Integer": "Integer",
    "Float": "Float",
    "Str": "String",
    "String": "String",
    "List": "List",
    "None": "None",
}
"""The names of formats in sources, and what they are in releases."""
NOT_ANSWERABLE = "Not answerable"
"""The answer of a question that its document does not answer."""
_INTEGER = re.compile(r"[+-]?\d+|[+-]?\d{1,3}(,\d{3})+")
_FLOAT = re.compile(
    r"(?P<currency>[$£€])?\s?[+-]?(?:(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d*)?|\.\d+)(?:e[+-]?\d+)?\s?(?:%|million|miles?)?",
    re.IGNORECASE,
)


def is_not_answerable(text: str) -> bool:
    """Return whether a text is "Not answerable", in any case and with or without a full stop."""
    return text.casefold().rstrip(".") == NOT_ANSWERABLE.casefold()


def number_format(text: str, currencies: str = "$£") -> Literal["Integer", "Float", "String"]:
    """Return the format of a text that is one number as the benchmark's scorer reads it; `String` for any other text.

    The scorer removes the currency before the number, and a unit behind it.

    >>> [number_format(text) for text in ("1,066", "$1.5 million", "12%", "€5", "2019-04-01")]
    ['Integer', 'Float', 'Float', 'String', 'String']
    """
    if _INTEGER.fullmatch(text):
        return "Integer"
    number = _FLOAT.fullmatch(text)
    return "Float" if number and (number["currency"] or "") in currencies else "String"


def format_of(value: object) -> AnswerFormat:
    """Return the format of an answer whose source declares none; the value is a text or any other value of JSON.

    >>> [format_of(each) for each in ("1,066", "12.5%", "Tern Rock", "2019-04-01", "['a', 'b']", "Not answerable", 3)]
    ['Integer', 'Float', 'String', 'String', 'List', 'None', 'Integer']
    """
    text = str(value).strip()
    if isinstance(value, list | tuple) or literal_list(text) is not None:
        return "List"
    return "None" if is_not_answerable(text) else number_format(text)


# --- lists ------------------------------------------------------------------------------------------------------------

MAX_LIST = 100_000
"""The maximum characters of a text that is parsed as a list; the parser needs a hundred times the memory of the text.
The longest gold list of MMLongBench-Doc has fewer than a thousand."""


def literal_list(text: str) -> list[object] | None:
    """Parse a text as a list in Python's notation; return None if it is no such list. Nothing is evaluated.

    >>> literal_list("['a', 1]"), literal_list("[1, x]"), literal_list("3")
    (['a', 1], None, None)
    """
    if len(text) > MAX_LIST or not text.strip().startswith("["):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # warnings of the compiler about a backslash before a letter
            value = ast.literal_eval(text.strip())
        str(value)  # a hexadecimal number may have too many decimal digits to print
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    return value if isinstance(value, list) else None


def flat_list(text: str) -> list[str] | None:
    """Return the elements of a list as Python prints them; None if the text is no list, or a list in which anything but
    texts, numbers, None, True and False stands.

    >>> flat_list("['a', 1.50, -2,]"), flat_list("[1, x]"), flat_list("[]"), flat_list("[[1]]")
    (['a', '1.5', '-2'], None, [], None)
    """
    values = literal_list(text)
    if values is None or not all(value is None or isinstance(value, str | int | float) for value in values):
        return None
    return [str(value) for value in values]


def gold_list(text: str) -> list[str]:
    """Return the elements of a gold answer, which is JSON in releases, Python in the source, or a single element."""
    if text.startswith("["):
        try:
            value: object = json.loads(text)
        except (ValueError, RecursionError):
            value = flat_list(text)
        if isinstance(value, list):
            return [str(element) for element in value]
    return [text]


def flattened(answers: object) -> Iterable[str]:
    """Yield each answer as a string; `answers` is one answer, a list of answers, or a list of such lists."""
    if isinstance(answers, list | tuple):
        for answer in answers:
            yield from flattened(answer)
    else:
        yield str(answers)


# --- the answer in a model's output -----------------------------------------------------------------------------------


def after_prefix(text: str, prefix: str) -> str:
    r"""Return the text after the first `prefix`, or the whole text if there is no `prefix`; case is ignored.

    A second prefix directly after the first is removed, too. The benchmark's public code of 2026 takes everything after
    the prefix; for the code of the paper's runs, see `rest_of_line`.

    >>> after_prefix("So it is.\nanswer: Answer: Peru\nas shown", "Answer:")
    'Peru\nas shown'
    """
    pattern = re.compile(re.escape(prefix), re.IGNORECASE)
    found = pattern.search(text)
    rest = (text[found.end() :] if found else text).strip()
    again = pattern.match(rest)
    return rest[again.end() :].strip() if again else rest


def rest_of_line(text: str, prefix: str) -> str:
    r"""Return the rest of the line after the first `prefix`, or the first line if there is none; case is ignored.

    A second prefix directly after the first is removed, too. At the time of the paper's runs, the benchmark's public
    code read outputs in this way.

    >>> rest_of_line("So it is.\nanswer: Answer: Peru\nas shown", "Answer:"), rest_of_line("Peru\nas shown", "Answer:")
    ('Peru', 'Peru')
    """
    pattern = re.compile(re.escape(prefix), re.IGNORECASE)
    found = pattern.search(text)
    rest = text[found.end() if found else 0 :].split("\n", 1)[0].strip()
    again = pattern.match(rest)
    return rest[again.end() :].strip() if again else rest


# --- SQuAD's form -----------------------------------------------------------------------------------------------------

_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_WITHOUT_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalised(text: str) -> str:
    """Return a text as SQuAD compares answers: lower case, no ASCII punctuation, no articles, single blanks.

    >>> normalised("The  peoples' Republic, of China.")
    'peoples republic of china'
    """
    return without_articles(text.lower().translate(_WITHOUT_PUNCTUATION))


def without_articles(text: str) -> str:
    """Return a text without `a`, `an` and `the`, and with single blanks; the text must be in lower case."""
    return single_blanks(_ARTICLES.sub(" ", text))


def single_blanks(text: str) -> str:
    """Return a text with one blank in place of each run of white space, and no blanks at either end."""
    return " ".join(text.split())


# --- MMLongBench-Doc's form -------------------------------------------------------------------------------------------

_EXACT = tuple(
    re.compile(pattern)
    for pattern in (
        r"\b\d+(?:-\d+|\s\d+)?\b",  # a phone number, a range, a number
        r"\b\d{4}[-\s]\d{2}(?:[-\s]\d{2})?\b",
        r"[a-zA-Z0-9._%+-]+@[a-zA-Z0-9.-]+\.[a-zA-Z]{2,}",
    )
)
TAU = 0.5
"""A similarity of at most this counts as 0 in ANLS."""


def cleaned(text: str) -> str:
    """Return a text in lower case, without parts in parentheses, without quotes around it, without dollar signs before
    it, and without percent signs after it.

    >>> cleaned(" $3.65% "), cleaned("'Football (Soccer)'")
    ('3.65', 'football')
    """
    text = text.lower().strip()
    kept, at = list[str](), 0
    while (start := text.find("(", at)) >= 0 and (end := text.find(")", start)) >= 0:
        kept.append(text[at:start].rstrip())
        at = end + 1
    text = without_quotes("".join((*kept, text[at:])).strip())
    return text.strip().lstrip("$").strip().rstrip("%").strip()


def without_quotes(text: str) -> str:
    """Remove a quotation mark at the beginning of a text and one at its end; the two need not be a pair."""
    text = text[1:] if text[:1] in ("'", '"') else text
    return text[:-1] if text[-1:] in ("'", '"') else text


def is_exact(gold: str) -> bool:
    """Return whether only an equal answer is right: True for a URL, file, page, number, time, date or mail address.

    The gold answer must be cleaned (`cleaned`) before. Other texts are scored by similarity.
    """
    if "https://" in gold or "a.m." in gold or "p.m." in gold:
        return True
    if gold.endswith((".py", "ipynb")) or gold.startswith("page"):
        return True
    return any(pattern.fullmatch(gold) for pattern in _EXACT)


def anls(gold: str, prediction: str) -> float:
    """Return the normalised Levenshtein similarity of two strings, or 0 if it is at most `TAU`. Case and blanks count.

    If the lengths differ too much for a similarity above `TAU`, the letters are not compared. As in the
    public code, the distance is divided by the length of the longer string in capitals, where "ß" is two letters.

    >>> round(anls("yellow", "yello"), 3), anls("yellow", "blue"), anls("", "")
    (0.833, 0.0, 1.0)
    """
    longest = max(len(gold.upper()), len(prediction.upper()))
    if not longest:
        return 1.0
    if 1.0 - abs(len(gold) - len(prediction)) / longest <= TAU:
        return 0.0
    similarity = 1.0 - edit_distance(gold, prediction, "ANLS") / longest
    return similarity if similarity > TAU else 0.0


def edit_distance(one: str, other: str, what: str) -> int:
    """Return the smallest number of characters to insert, delete or replace to turn one string into the other.

    Raises:
        ScoringError: rapidfuzz, which `what` needs, is not installed.

    """
    try:
        from rapidfuzz.distance import Levenshtein
    except ImportError as error:
        raise missing("rapidfuzz", what) from error
    return Levenshtein.distance(one, other)


def missing(package: str, what: str) -> ScoringError:
    """Return the error for a package that is not installed; `what` is the thing that needs it, such as "ANLS"."""
    return ScoringError(f'{what} needs {package}: pip install "mmlongbench[scoring]"')
