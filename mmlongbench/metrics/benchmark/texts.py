"""Prepares texts for the benchmark's metrics: normalises them, compares their words, takes the part after a prefix.

Every regular expression here looks at each character a bounded number of times, whatever the text.
"""

import re
import string
from collections import Counter

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


def token_f1(prediction: str, gold: str) -> float:
    """Return the harmonic mean of precision and recall over normalised words; each occurrence of a word counts.

    >>> round(token_f1("eight degrees", "up to eight degrees"), 3)
    0.667
    """
    said, wanted = normalised(prediction).split(), normalised(gold).split()
    same = sum((Counter(said) & Counter(wanted)).values())
    if not same:
        return 0.0
    precision, recall = same / len(said), same / len(wanted)
    return 2 * precision * recall / (precision + recall)


def after_prefix(text: str, prefix: str) -> str:
    r"""Return the text after the first `prefix`, or the whole text if there is no `prefix`; case is ignored.

    A second prefix directly after the first is removed, too. The public code of 2026 takes everything after the prefix;
    for the code of the paper's runs, see `rest_of_line`.

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

    A second prefix directly after the first is removed, too. At the time of the paper's runs, the public code read
    outputs in this way.

    >>> rest_of_line("So it is.\nanswer: Answer: Peru\nas shown", "Answer:"), rest_of_line("Peru\nas shown", "Answer:")
    ('Peru', 'Peru')
    """
    pattern = re.compile(re.escape(prefix), re.IGNORECASE)
    found = pattern.search(text)
    rest = text[found.end() if found else 0 :].split("\n", 1)[0].strip()
    again = pattern.match(rest)
    return rest[again.end() :].strip() if again else rest
