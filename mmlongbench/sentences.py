"""Splits text into sentences by rules, without a model. Only the lists of words (abbreviations, and words that often
begin a sentence) are specific to English.

A sentence ends only at whitespace, so no word is ever cut. A blank line always ends a sentence.
"""

import re
from collections.abc import Iterator

_BLANK_LINE = re.compile(r"\n\s*\n|\u2029")
_CLOSERS = "\"'”’»›)]}*_"
_OPENERS = "\"'“”‘’«‹„([{¿¡*_"
_TERMINALS = frozenset(".!?…。！？｡")
_LAST = _TERMINALS | frozenset(_CLOSERS)
_GOES_ON = frozenset(".,;:!?…%&/+=|–—-)]}")
_LEFT_OUT = frozenset(("[...", "[…", "(...", "(…"))
_SHORT_PARTS = re.compile(r"(?:[^\W\d_]{1,2}[.-]+)+[^\W\d_]{1,2}")
_ROMAN = re.compile(r"[IVXLCDM]+\b")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_NEVER = _words(
    "Mr Mrs Ms Mx Messrs Mme Mlle Dr Drs Prof Gen Lt Col Maj Capt Cmdr Cpl Sgt Adm Rev Fr Hon Gov Sen Rep Pres Supt "
    "Msgr Sr. Sra Herr approx cf viz vs resp esp incl ca eg ie e.g i.e E.g I.e i.a a.k.a D.Phil"
)
"""After these abbreviations a sentence goes on, whatever follows."""
_BEFORE_NUMBERS = _words(
    "No Nos no nos Nr nr Vol Vols vol vols Fig Figs fig figs Eq Eqs eq eqs Art art Sec sec Sect sect Ch ch Chap chap "
    "p pp P Pp Op op Bk bk Pt pt Ex ex par para Par fl n v l ll N° n°"
)
"""After these abbreviations a sentence goes on if a number follows."""
_SOMETIMES = _words(
    "St Ste Mt Ft Ave Blvd Rd Sq Jr Sr Esq Inc Ltd Co Corp Cos Bros Cie Dept Univ Assn Jan Feb Mar Apr Jun Jul Aug "
    "Sep Sept Oct Nov Dec al etc ed eds trans repr rev est min max dept spp sp var subsp"
)
"""A sentence ends after one of these abbreviations only before a word that often begins a sentence (`_STARTERS`). The
same holds after initials, and after letters with periods between them."""
_STARTERS = _words(
    "A After All Although An And Another Any As At Because Before Both But By During Each Every Few For From Further "
    "Had Has He Her Here His However I If In It Its Later Many Most My Nevertheless On Once One Other Others Our Over "
    "She Since So Some Such That The Their Then There Therefore These They This Those Though Through Thus To Today "
    "Two Under Until Upon Was We Were What When Where Which While Who Why With Within Without You Your "
    "Are Can Could Did Do Does How Is Should Would"
)


def sentences(text: str) -> list[str]:
    """Return the sentences of a text with whitespace normalised; no word is lost.

    >>> sentences("Dr. J. Smith paid $3.50. He left!")
    ['Dr. J. Smith paid $3.50.', 'He left!']
    """
    return [" ".join(words) for words in word_sentences(text)]


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Return where each sentence of a text begins and ends, in characters; the text itself is not changed.

    >>> sentence_spans(" He left!  She  stayed.")
    [(1, 9), (11, 23)]
    """
    spans, at = [], 0
    for words in word_sentences(text):
        begin = text.index(words[0], at)
        for word in words:
            at = text.index(word, at) + len(word)
        spans.append((begin, at))
    return spans


def word_sentences(text: str) -> Iterator[list[str]]:
    """Yield the sentences of a text, each as a list of its words."""
    for block in _BLANK_LINE.split(text):
        words = block.split()
        begin = 0
        for at in [at for at, word in enumerate(words[:-1], 1) if word[-1] in _LAST]:
            if _ends(words[at - 1], words[at], is_first=at - 1 == begin):
                yield words[begin:at]
                begin = at
        if words:
            yield words[begin:]


def _ends(word: str, following: str, *, is_first: bool) -> bool:
    """Return whether a sentence ends between two words."""
    bare = word.rstrip(_CLOSERS)
    if not bare or bare[-1] not in _TERMINALS or bare in _LEFT_OUT or not _can_begin(following):
        return False
    if bare[-1] != "." or bare.endswith(".."):
        return True
    return not _is_abbreviation(bare[:-1].lstrip(_OPENERS), following.lstrip(_OPENERS), is_first=is_first)


def _can_begin(word: str) -> bool:
    """Return whether a sentence may begin with a word. The word must not begin in lower case, or with a sign that only
    continues a sentence.
    """
    bare = word.lstrip(_OPENERS)
    return bool(bare) and not bare[0].islower() and bare[0] not in _GOES_ON


def _is_abbreviation(word: str, following: str, *, is_first: bool) -> bool:
    """Return whether the period after a word belongs to an abbreviation or a number, so that the sentence goes on."""
    if word.isdigit():
        return is_first and len(word) <= 3  # the number of a list item
    if word in _NEVER:
        return True
    if word in _BEFORE_NUMBERS and (following[0].isdigit() or _ROMAN.match(following)):
        return True
    is_initial = len(word) == 1 and word.isalpha()
    may_be_short = (
        is_initial
        or word in _SOMETIMES
        or (len(word) <= 12 and not word.isalpha() and bool(_SHORT_PARTS.fullmatch(word)))
    )
    return may_be_short and following.rstrip(_CLOSERS + ",") not in _STARTERS
