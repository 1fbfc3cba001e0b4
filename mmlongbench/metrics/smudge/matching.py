"""Takes the strings to compare from gold answers and predictions, and scores how well they match; no document is used.

Nourbakhsh et al., Findings of NAACL 2025 (arXiv:2503.19120), section 3.2 and appendices B.3 and B.4. The kind of the
gold answer decides how both strings are compared. Digits alone are numeric, letters alone are textual, and anything
else is hybrid, even `1,700`, `(8)` and every text with a blank. A hybrid is compared by its digits, and by all its
other characters.

The paper leaves some points open, which are decided here: strings are compared without case and with single blanks; if
the gold is numeric, the whole prediction must be one number; a hybrid without digits is compared by its text alone.
"""

import ast
import json
import math
import re
import unicodedata
from collections.abc import Sequence
from typing import Literal, TypeAlias

from mmlongbench.answers import edit_distance
from mmlongbench.task.metric import ScoringInput

Kind: TypeAlias = Literal["numeric", "textual", "hybrid"]
SCALES = (0, 2, 3, 6, 9)
"""Two numbers are equal if they differ by one of these powers of ten: none, per cent, thousand, million, billion."""
_NUMBERS_WEIGHT, _TEXT_WEIGHT = 10, 1
_OTHER_DIGIT = re.compile(r"[^\D0-9]")
_NUMBER = re.compile(r"[+-]?([0-9]{1,3}(?:,[0-9]{3})+|[0-9]*)(?:\.([0-9]*))?")


def kind_of(text: str) -> Kind:
    """Return the kind of a string (appendix B.3).

    >>> [kind_of(text) for text in ("12", "apple", "1,700", "(8)", "Chapel Hill", "12 mg")]
    ['numeric', 'textual', 'hybrid', 'hybrid', 'hybrid', 'hybrid']
    """
    compared = plain(text)
    if compared and all(letter in "0123456789" for letter in compared):
        return "numeric"
    return "textual" if compared.isalpha() else "hybrid"


def match_score(gold: str, prediction: str) -> float:
    """Return a score from 0 to 1 by the kind of the gold answer.

    >>> match_score("apple", "app1e"), match_score("12", "26"), match_score("12", "1200")
    (0.8, 0.0, 1.0)
    >>> [round(match_score("up to 12 milligrams", said), 2) for said in ("up to 12 mgs", "up to 1z milligrams")]
    [0.94, 0.0]
    """
    wanted, said = plain(gold), plain(prediction)
    kind = kind_of(gold)
    if kind == "textual":
        return similarity(wanted, said)
    if kind == "numeric":
        return float(_is_same(_value(wanted), _value(said)))
    digits, others = _apart(wanted)
    said_digits, said_others = _apart(said)
    text = similarity(others, said_others)
    return harmonic_mean(float(_is_same(_value(digits), _value(said_digits))), text) if digits else text


def plain(text: str) -> str:
    r"""Return a string in the form that is compared: one form of each character and digit, no case, single blanks.

    >>> plain(" Up  to ①२\nMGS. ")
    'up to 12 mgs.'
    """
    folded = " ".join(unicodedata.normalize("NFKC", text).casefold().split())
    return _OTHER_DIGIT.sub(lambda digit: str(unicodedata.decimal(digit[0])), folded)


def similarity(one: str, other: str) -> float:
    """Return the normalised Levenshtein similarity of two strings, from 0 to 1; case and blanks count.

    >>> similarity("milligrams", "mgs"), similarity("", "")
    (0.3, 1.0)
    """
    longest = max(len(one), len(other))
    return (longest - edit_distance(one, other, "smudge")) / longest if longest else 1.0


def harmonic_mean(numbers: float, text: float) -> float:
    """Return the weighted harmonic mean of the score of the numbers and that of the text; 0 if either score is 0.

    The numbers weigh ten times as much as the text (appendix B.4).

    >>> round(harmonic_mean(1.0, 10 / 17), 2), harmonic_mean(0.0, 1.0)
    (0.94, 0.0)
    """
    if not numbers or not text:
        return 0.0
    return (_NUMBERS_WEIGHT + _TEXT_WEIGHT) / (_NUMBERS_WEIGHT / numbers + _TEXT_WEIGHT / text)


def _apart(text: str) -> tuple[str, str]:
    """Return the digits of a string, and everything else."""
    return "".join(re.findall("[0-9]", text)), re.sub("[0-9]", "", text)


def _value(text: str) -> tuple[str, int] | None:
    """Return (digits, power of ten) of a number; the digits have the sign, but no zeros at either end.

    Return None if the whole string is not a number.
    """
    found = _NUMBER.fullmatch(text)
    if found is None or not any(found.groups()):
        return None
    whole, fraction = (found[1] or "").replace(",", ""), found[2] or ""
    digits = (whole + fraction).lstrip("0")
    kept = digits.rstrip("0")
    sign = "-" if text[0] == "-" and kept else ""
    return sign + kept, len(digits) - len(kept) - len(fraction) if kept else 0


def _is_same(gold: tuple[str, int] | None, prediction: tuple[str, int] | None) -> bool:
    """Return whether two numbers are the same, or differ only by a power of ten in `SCALES`; False if one is None."""
    if gold is None or prediction is None or gold[0] != prediction[0]:
        return False
    return not gold[0] or abs(gold[1] - prediction[1]) in SCALES


# Which strings are compared. A gold answer of the format List has elements. Each gold element is located by itself, and
# is paired with at most one predicted element. The score is the sum of the pairs' scores, divided by the length of the
# longer list. In any other format, several gold answers are alternatives, and the one with the best score counts.

MAX_ELEMENTS = 64
"""The maximum number of elements of a predicted list that are compared. Further elements are not compared, but
they count in the length of the list."""
MAX_ELEMENT = 128
"""The maximum characters of a predicted element; a longer one matches no element of a gold answer."""
MAX_SAID = 100_000
"""How many characters of a prediction are compared; the rest is cut off."""
_LEAD = re.compile(r"\A[\s*_#]*answer[\s*_]*:[\s*_]*", re.IGNORECASE)


def golds_of(asked: ScoringInput) -> tuple[tuple[str, ...], bool]:
    """Return the gold answers of an example, and whether a right prediction must have all of them; if not, one is
    enough. Return no answers if there are none, or if any of them is empty or is neither a string nor a number.
    """
    is_list = asked.answer_format == "List"
    gold = asked.answer.get("answer") if isinstance(asked.answer, dict) else asked.answer
    if is_list and isinstance(gold, str):
        gold = _listed(gold) or gold
    values = gold if isinstance(gold, list | tuple) else [gold]
    texts = tuple(str(value) for value in values if _is_text(value) and str(value).strip())
    return (texts if len(texts) == len(values) else ()), is_list


def said_of(prediction: str) -> str:
    """Return a prediction without "Answer:" at its beginning and without marks of emphasis around it.

    >>> said_of("**Answer:** up to 12 mgs"), said_of("*12*")
    ('up to 12 mgs', '12')
    """
    return _LEAD.sub("", prediction[:MAX_SAID], count=1).strip().strip("*`").strip()


def elements_of(said: str) -> list[str]:
    r"""Return the elements of a predicted list.

    A list in brackets is read as JSON or Python. Any other text is split into lines; a single line is split at
    semicolons or, if it has none, at commas.

    >>> elements_of('["a", 1]'), elements_of("- a\n- b, c"), elements_of("a, b"), elements_of("a")
    (['a', '1'], ['a', 'b, c'], ['a', 'b'], ['a'])
    """
    if (values := _listed(said)) is not None:
        return [str(value) for value in values if _is_text(value)]
    for separator in ("\n", ";", ","):
        if separator in said:
            parts = (part.strip().lstrip("-*•").strip() for part in said.split(separator))
            return [part for part in parts if part]
    return [said] if said else []


def paired(scores: Sequence[Sequence[float]]) -> list[tuple[int, int]]:
    """Return pairs (index of a gold, index of a prediction). The pair with the best score is taken first, then the best
    of the pairs that remain; each gold and each prediction is in at most one pair.

    `scores` has a row for each gold and a column for each prediction.

    >>> paired([[0.2, 0.9, 0.9], [0.1, 1.0, 0.3]])
    [(1, 1), (0, 2)]
    """
    cells = [(-score, gold, said) for gold, row in enumerate(scores) for said, score in enumerate(row)]
    pairs = list[tuple[int, int]]()
    golds, saids = set[int](), set[int]()
    for _, gold, said in sorted(cells):
        if gold not in golds and said not in saids:
            golds.add(gold)
            saids.add(said)
            pairs.append((gold, said))
    return pairs


def _listed(text: str) -> list[object] | None:
    if not text.startswith("["):
        return None
    for read in (json.loads, ast.literal_eval):
        try:
            value: object = read(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            continue
        return value if isinstance(value, list) else None
    return None


def _is_text(value: object) -> bool:
    return isinstance(value, str | int | float) and not isinstance(value, bool)


_THOUSANDS = re.compile(r"(?<=[0-9]),(?=[0-9]{3}(?![0-9]))")
_BEFORE = "([{\"'“‘«"
_AFTER = ".,;:!?)]}\"'”’»"


def split(text: str) -> list[str]:
    """Return the words of a string in the form that is compared: no case, no thousands' commas, no brackets, quotes or
    punctuation around a word.

    >>> split("The  ﬁrst (in 2019), of “Chapel Hill” ... 12,500 %.")
    ['the', 'first', 'in', '2019', 'of', 'chapel', 'hill', '...', '12500', '%']
    """
    words = _THOUSANDS.sub("", unicodedata.normalize("NFKC", text).casefold()).split()
    return [word.lstrip(_BEFORE).rstrip(_AFTER) or word for word in words]


def grounding_score(distance: float) -> float:
    """Return exp(−d / (1 − d)): 1 at the same place, 0 at a distance of 1.

    >>> grounding_score(0.0), round(grounding_score(0.2), 4), grounding_score(1.0)
    (1.0, 0.7788, 0.0)
    """
    return math.exp(-distance / (1 - distance)) if distance < 1 else 0.0
