"""Questions as numbers: their words, the form of their text, and the pages, figures and tables that they name."""

import re
from collections.abc import Sequence

import numpy as np

from mmlongbench.likeness import missing
from mmlongbench.shortcuts import features as f
from mmlongbench.shortcuts.guesses import scaled
from mmlongbench.shortcuts.measured import Floats

NAMED = ("pages named", "number of the named page", "figures or tables named", "sections named", "numbers in it")
_WORD_PARTS = 48
"""Into how many numbers the words of questions are reduced: their principal components. The strongest one has the
spread of one standard deviation, so that words which occur in few questions weigh little."""
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
_PAGE = re.compile(
    rf"\b(?:pages?|slides?|p\.|pp\.)\s*(?P<after>\d{{1,4}})\b"
    rf"|\b(?P<before>\d{{1,4}})(?:st|nd|rd|th)\s+(?:page|slide)\b"
    rf"|\b(?P<word>{'|'.join(_ORDINALS)}|last|next|previous)\s+(?:page|slide)\b",
    re.IGNORECASE,
)
_FIGURE = re.compile(r"\b(?:fig(?:ure)?|table|chart|diagram|appendix|equation)s?\b\.?\s*[\dA-Z]", re.IGNORECASE)
_SECTION = re.compile(r"\b(?:section|chapter|part)s?\s+[\dIVX]", re.IGNORECASE)


def of_named(question: str) -> tuple[float, ...]:
    """Return the numbers of `NAMED` of a question; the number of a page is 0 if none is named by a number.

    >>> of_named("What does Table 3 on page 12 show?"), of_named("Who wrote the second slide?")[:2]
    ((1.0, 12.0, 1.0, 0.0, 2.0), (1.0, 2.0))
    """
    pages = list(_PAGE.finditer(question))
    number = next((n for each in pages if (n := _number(each))), 0)
    figures, sections = len(_FIGURE.findall(question)), len(_SECTION.findall(question))
    return float(len(pages)), float(number), float(figures), float(sections), float(len(re.findall(r"\d+", question)))


def _number(found: re.Match[str]) -> int:
    if digits := found["after"] or found["before"]:
        return int(digits)
    word = found["word"].lower()
    return _ORDINALS.index(word) + 1 if word in _ORDINALS else 0


def of_questions(questions: Sequence[str]) -> Floats:
    """Return the words of questions as numbers, with the form of the text and what it names; empty if there are no
    words.

    Raises:
        ReleaseError: scikit-learn is not installed.

    """
    if len(set(questions)) < 2:
        return np.empty((0, 0))
    try:
        from sklearn.feature_extraction.text import TfidfVectorizer
    except ModuleNotFoundError as error:
        raise missing("scikit-learn", "guessing from the words of questions") from error
    counted = TfidfVectorizer(ngram_range=(1, 2), min_df=2, token_pattern=r"\w+", max_features=20_000)
    form = scaled(f.table([(*f.of_text(question), *of_named(question)) for question in questions]))
    try:
        weights = counted.fit_transform(questions)
    except ValueError:  # no word occurs twice
        return form
    products = np.asarray((weights @ weights.T).todense(), dtype=np.float64)
    strengths, directions = np.linalg.eigh(_centred(products))
    strongest = np.argsort(-strengths)[:_WORD_PARTS]
    words = directions[:, strongest] * np.sqrt(np.maximum(strengths[strongest], 0))
    return np.concatenate([words / max(float(words.std(axis=0).max()), 1e-9), form], axis=1)


def _centred(products: Floats) -> Floats:
    """Return the inner products of rows after the mean row is taken from each."""
    means = products.mean(axis=0)
    found: Floats = products - means - means[:, None] + means.mean()
    return found
