"""Texts as the benchmark's metrics compare them: normalised, taken apart into words, cut off behind a prefix.

Every regular expression here looks at each character a bounded number of times, whatever a model said.
"""

import re
import string
from collections import Counter

_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_WITHOUT_PUNCTUATION = str.maketrans("", "", string.punctuation)


def normalised(text: str) -> str:
    """As SQuAD compares answers: lower case, no ASCII punctuation, no articles, single blanks.

    >>> normalised("The  peoples' Republic, of China.")
    'peoples republic of china'
    """
    return without_articles(text.lower().translate(_WITHOUT_PUNCTUATION))


def without_articles(text: str) -> str:
    """Without `a`, `an` and `the`, blanks made single; the case is the caller's."""
    return single_blanks(_ARTICLES.sub(" ", text))


def single_blanks(text: str) -> str:
    """Every run of white space as one blank, none at either end."""
    return " ".join(text.split())


def token_f1(prediction: str, gold: str) -> float:
    """The harmonic mean of precision and recall over normalised words, each as often as it stands there.

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
    r"""What stands behind the first `prefix`, in any case, and behind one more at once; all where there is none.

    The public code of 2026 takes everything behind it; for that of the paper's runs, see `rest_of_line`.

    >>> after_prefix("So it is.\nanswer: Answer: Peru\nas shown", "Answer:")
    'Peru\nas shown'
    """
    pattern = re.compile(re.escape(prefix), re.IGNORECASE)
    found = pattern.search(text)
    rest = (text[found.end() :] if found else text).strip()
    again = pattern.match(rest)
    return rest[again.end() :].strip() if again else rest


def rest_of_line(text: str, prefix: str) -> str:
    r"""Return what stands behind the first `prefix` on its line, and behind one more at once.

    Where there is none it is the first line. So the public code read outputs at the time of the paper's runs.

    >>> rest_of_line("So it is.\nanswer: Answer: Peru\nas shown", "Answer:"), rest_of_line("Peru\nas shown", "Answer:")
    ('Peru', 'Peru')
    """
    pattern = re.compile(re.escape(prefix), re.IGNORECASE)
    found = pattern.search(text)
    rest = text[found.end() if found else 0 :].split("\n", 1)[0].strip()
    again = pattern.match(rest)
    return rest[again.end() :].strip() if again else rest
