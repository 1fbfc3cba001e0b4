"""How text is compared: as answers, as words and as shingles. Passages and questions are not known here.

`normalise` is SQuAD's normalisation (Rajpurkar et al. 2016, the official evaluation script), and also removes accents
and Unicode punctuation. It joins what punctuation connects (`Vienna–Paris` becomes one word). So where nothing may
be missed, texts are also searched in further forms, in which punctuation separates words.

Some scripts set no blanks between words (Han, kana, Thai, Lao, Khmer, Burmese). There each character counts as a word
where texts are compared, so that an answer is found inside a sentence; for a search, each pair of neighbours is a word.
"""

import re
import string
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable
from functools import lru_cache
from itertools import chain, islice
from math import ceil

LONGEST_WORD = 255
"""A longer word is cut to this length for a search, because an index limits the length of its words."""
WORDS_IN_SHINGLE = 5
TEXTS_KEPT = 20_000
"""How many texts have their `forms` kept in memory for the next question; a hundred words take about 3 kB."""
SHINGLES_KEPT = 4_000
"""How many texts have their `shingles` kept in memory for the next question; a hundred words take about 8 kB."""

_ARTICLES = re.compile(r"\b(a|an|the)\b")
_ARTICLES_AND_POSSESSIVES = frozenset({"a", "an", "the", "s"})
_WORD = re.compile(r"[^\W_]+")
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
)
"""The ranges of the scripts that set no blanks between words."""
_RUNS = re.compile(rf"[{_UNSPACED}]+|[^{_UNSPACED}]+")
UNSPACED = re.compile(rf"[{_UNSPACED}]")
_VOICING = "\u3099\u309a"  # the marks that make が of か and ぱ of は: other letters, unlike accents
_VOICED = re.compile(r".[\u3099\u309a\uff9e\uff9f]")
"""A letter and its voicing mark, each a character, as some PDFs and file systems write them."""
_POINT = "\ue000"
"""Replaces a decimal point where punctuation is removed; a character without a meaning of its own."""
_BREAK = re.compile(rf"[^\w{_POINT}]+|_+")
_COMMAS = re.compile(r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?!\d)")
_GROUPS = re.compile(r"(?<![\d.,])\d{1,3}(?:,\d{3})+(?!\d)|(?<![\d.,])\d{1,3}(?:([ '’])\d{3})(?:\1\d{3})*(?!\d)")
_ZEROS = re.compile(r"(?<![\d.,])(\d+)\.(?:(\d*[1-9])?0+)(?![.,]?\d)")
_INNER = re.compile(r"(?<=\d)[.,](?=\d)")
_UNIT = re.compile(r"(?<=\d)(?=[^\W\d_])(?!(?:st|nd|rd|th|s)\b)")
_DIGIT = re.compile(r"\d")
_LETTERS = {
    **dict(zip("łøđðħıς", "loddhiσ", strict=True)),
    **{"ß": "ss", "æ": "ae", "œ": "oe", "þ": "th"},
    **dict.fromkeys("ʹʻʼʽʾʿˈ", "'"),
}
"""Characters that Unicode does not decompose: letters with strokes, ligatures, and letters used as apostrophes."""


class _Table(dict[int, str | None]):
    """A table for `str.translate` that is filled when characters are first used."""

    def __init__(self, written: Callable[[str], str]) -> None:
        super().__init__()
        self._written = written

    def __missing__(self, code: int) -> str | None:
        self[code] = self._written(chr(code))
        return self[code]


def _is_punctuation(character: str) -> bool:
    return character in string.punctuation or unicodedata.category(character).startswith("P")


def _is_mark(character: str) -> bool:
    is_mark = bool(unicodedata.combining(character)) or "\ufe00" <= character <= "\ufe0f" or character == "\u034f"
    return is_mark and character not in _VOICING


def _is_zero_width(character: str) -> bool:
    return unicodedata.category(character) == "Cf"


def _folded(character: str) -> str:
    """Return a character in lower case, without accents; empty for a character without width, like a soft hyphen."""
    parts = unicodedata.normalize("NFKD", character).lower()
    kept = "".join(_LETTERS.get(part, part) for part in parts if not (_is_mark(part) or _is_zero_width(part)))
    whole = unicodedata.normalize("NFC", kept)
    return f" {whole} " if UNSPACED.match(whole) else whole


def _apart(character: str) -> str:
    """Return a character as `_folded` does, but with spaces around a symbol or a raised digit, so that it is a word of
    its own. "&" becomes "and".
    """
    is_joined = not unicodedata.category(character).startswith(("S", "No"))
    return " and " if character in "&＆" else _folded(character) if is_joined else f" {_folded(character)} "


def _as_words(character: str) -> str:
    return "".join(part if part.isalnum() else " " for part in _apart(character))


_BARE = _Table(lambda character: "".join(part for part in _folded(character) if not _is_punctuation(part)))
_APART = _Table(_apart)
_AS_WORDS = _Table(_as_words)
_BROKEN = _Table(lambda character: " " if _is_zero_width(character) else _as_words(character))
_UNACCENTED = _Table(lambda c: "" if unicodedata.combining(c) and c not in _VOICING else c)


def normalise(text: str) -> str:
    """Return a text in lower case, without accents, punctuation and articles, and with single spaces.

    >>> normalise("The  Café—“Déjà-vu”, an  inn in Łódź")
    'cafedejavu inn in lodz'
    """
    return " ".join(_ARTICLES.sub(" ", _composed(text).translate(_BARE)).split())


def contains(text: str, answer: str) -> bool:
    """Return whether a text contains an answer at word boundaries; every text contains an answer without words.

    Both are compared in two forms: normalised, and with spaces instead of punctuation. Decimal points between digits
    stay.

    >>> contains("She sang at the Olympia, Paris.", "olympia paris"), contains("an oxbow", "ox")
    (True, False)
    >>> contains("the Vienna–Paris railway", "Paris"), contains("There are 34 people.", "3.4")
    (True, False)
    >>> contains("答案是艾勒里。", "艾勒里"), contains("がらす", "からす")
    (True, False)
    """

    def glued(text: str) -> str:  # normalised, but with decimal points
        return normalise(_INNER.sub(_POINT, _COMMAS.sub(lambda found: found.group().replace(",", ""), text)))

    bare, spaced = normalise(answer), _spaced(answer)
    if not bare or f" {glued(answer)} " in f" {glued(text)} ":
        return True
    return (len(spaced) > 1 or spaced == bare) and f" {spaced} " in f" {_spaced(text)} "


def _composed(text: str) -> str:
    """Return a text with each letter and its voicing mark as one character, since other tables read single ones."""
    return _VOICED.sub(lambda found: unicodedata.normalize("NFKC", found[0]), text)


def _spaced(text: str) -> str:
    """Return the words of a text with single spaces. Decimal points stay, and each number gets one spelling: 3,000.0km
    becomes 3000 km.
    """
    text = _composed(text)
    words = text.translate(_AS_WORDS)
    if not _DIGIT.search(words):
        return " ".join(words.split())
    folded = _GROUPS.sub(lambda found: re.sub(r"\D", "", found.group()), text.translate(_APART))
    folded = _ZEROS.sub(lambda found: f"{found[1]}.{found[2]}" if found[2] else found[1], folded)
    return " ".join(_BREAK.sub(" ", _UNIT.sub(" ", _INNER.sub(_POINT, folded))).split())


def _loose(text: str) -> tuple[str, str, str]:
    """Return three forms of a text: normalised; with spaces instead of punctuation; and its words, with numbers in one
    spelling, without articles and possessives.
    """
    telling = (word for word in _spaced(text).split() if word not in _ARTICLES_AND_POSSESSIVES)
    return normalise(text), " ".join(_composed(text).translate(_BROKEN).split()), " ".join(telling)


@lru_cache(maxsize=TEXTS_KEPT)
def forms(text: str) -> str:
    """Return all forms of a text in which `needles` are searched for, each on a line; the first is the normalised form.

    >>> forms("The 3.0km-long Jackie Wilson’s song").replace(_POINT, ".").splitlines()
    [' 30kmlong jackie wilsons song ', ' the 3 0km long jackie wilson s song ', ' 3 km long jackie wilson song ']
    """
    return "\n".join(f" {form} " for form in _loose(text))


def needles(name: str) -> frozenset[str]:
    """Return the texts to search for in `forms`, to find a name however it is punctuated; empty for an empty name.

    >>> sorted(needles("St. John's"))
    [' st john ', ' st john s ', ' st johns ']
    """
    normalised, *others = _loose(name)
    found = [normalised, *(form for form in others if len(form) > 1)]
    return frozenset(f" {form} " for form in found) if normalised else frozenset()


def tokens(text: str) -> list[str]:
    """Return the words to search by: runs of letters and digits, in lower case, without accents; of a script without
    blanks, each pair of neighbouring characters.

    >>> tokens("Zoë's 3.5-litre (V8)"), tokens("艾勒里港 がらす")
    (['zoe', 's', '3', '5', 'litre', 'v8'], ['艾勒', '勒里', '里港', 'がら', 'らす'])
    """
    folded = text.lower()
    if not text.isascii():  # lower case again: a ligature like № has capitals when it is decomposed
        folded = unicodedata.normalize("NFC", unicodedata.normalize("NFKD", folded).translate(_UNACCENTED).lower())
        if UNSPACED.search(folded):
            words: list[str] = []
            for run in (run for word in _WORD.findall(folded) for run in _RUNS.findall(word)):
                if UNSPACED.match(run):
                    words += [run[at : at + 2] for at in range(len(run) - 1)] or [run]
                else:
                    words.append(run[:LONGEST_WORD])
            return words
    return [word[:LONGEST_WORD] for word in _WORD.findall(folded)]


@lru_cache(maxsize=SHINGLES_KEPT)
def shingles(normalised: str) -> frozenset[str]:
    """Return all runs of five words of a normalised text; a shorter text is one shingle, an empty text has none."""
    words = normalised.split()
    if not words:
        return frozenset()
    if len(words) <= WORDS_IN_SHINGLE:
        return frozenset((" ".join(words),))
    return frozenset(map(" ".join, zip(*(words[at:] for at in range(WORDS_IN_SHINGLE)), strict=False)))


class NearDuplicates:
    """A collection of texts that tells whether another text is close to one of them.

    The result is exact. A text that is near one of `n` shingles has at least `threshold * n` of these, so it has one of
    any `n - threshold * n + 1` of them: only so many are in an inverted index, and others cost a look-up each.
    """

    def __init__(self, threshold: float) -> None:
        """Two texts are near if the Jaccard similarity of their shingles is at least `threshold`, 0 < threshold <=
        1.
        """
        if not 0 < threshold <= 1:
            raise ValueError(f"a threshold of near-duplicates is above 0 and at most 1, not {threshold}")
        self._threshold = threshold
        self._holders: dict[str, list[frozenset[str]]] = {}

    def add(self, found: frozenset[str]) -> None:
        new = found.difference(self._holders)  # the rare ones, which few other texts have
        for shingle in islice(chain(new, found - new), len(found) - ceil(self._threshold * len(found)) + 1):
            self._holders.setdefault(shingle, []).append(found)

    def near(self, found: frozenset[str]) -> bool:
        held, least = self._holders.keys() & found, self._threshold
        for other, both in Counter(chain.from_iterable(map(self._holders.__getitem__, held))).items():
            sizes = len(found) + len(other)
            most = both + ceil(least * len(other)) - 1  # as if all that are not in the index were shared
            if most >= least * (sizes - most) and (both := len(found & other)) >= least * (sizes - both):
                return True
        return False


def holder(names: Iterable[str]) -> Callable[[str], bool]:
    """Return a function that tells whether a text contains one of some names at word boundaries, in any of its `forms`.

    >>> holder(["Olympia, Paris"])("She sang at the Olympia (Paris).")
    True
    """
    every = frozenset(form for name in names for form in needles(name))
    known = [form for form in every if not any(other in form for other in every - {form})]  # a part of others is enough

    def holds(text: str) -> bool:
        searched = forms(text)
        return any(map(searched.__contains__, known))

    return holds
