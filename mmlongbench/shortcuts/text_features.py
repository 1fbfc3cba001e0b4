"""What a reader could notice about texts, places and questions without understanding them, as numbers."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np

from mmlongbench.likeness import letters, missing, words
from mmlongbench.shortcuts.image_features import FORMATS, MODES
from mmlongbench.shortcuts.reading import ShownUnit
from mmlongbench.statistics import Floats

_LARGEST = 1e15
"""The largest number that is compared; sums of squares of larger ones could be infinite."""


def table(rows: Iterable[tuple[float, ...]]) -> Floats:
    """Return rows of numbers as one array. Headers and texts may have infinite numbers, and values that are no number:
    they are replaced by the largest number that is compared, and by 0.
    """
    found = np.array(list(rows), dtype=np.float64)
    return np.clip(np.nan_to_num(found, nan=0.0), -_LARGEST, _LARGEST)


def scaled(features: Floats) -> Floats:
    """Return features with mean 0 and spread 1, cut at six standard deviations."""
    spread = features.std(axis=0)
    found: Floats = np.clip((features - features.mean(axis=0)) / np.where(spread > 0, spread, 1), -6, 6)
    return found


def written(name: str, value: float) -> str:
    """Return the value of a feature as a person reads it.

    >>> written("format", 0.0), written("bytes", 48213.0), written("punctuation", 0.0312)
    ('JPEG', '48,213', '0.0312')
    """
    names = {"format": FORMATS, "colour mode": MODES}.get(name)
    if names:
        return names[int(value)] if value < len(names) else "another"
    return f"{value:,.0f}" if value == int(value) else f"{value:.3g}"


# ---- The form, the place and the neighbours of a unit

TEXT = ("characters", "words", "punctuation", "digits", "capitals", "line breaks", "a full stop at its end")
PLACE = ("place", "distance from the middle", "first", "last")
NEIGHBOURS = ("an image before it", "an image after it", "a neighbour of another role", "distance to an equal title")


def of_text(text: str) -> tuple[float, ...]:
    """Return the numbers of `TEXT`; punctuation, digits and capitals are shares of the characters."""
    n, times = max(1, len(text)), Counter(text)
    marks = sum(count for letter, count in times.items() if not letter.isalnum() and not letter.isspace())
    digits = sum(count for letter, count in times.items() if letter.isdigit())
    capitals = sum(count for letter, count in times.items() if letter.isupper())
    ends = float(text.rstrip().endswith("."))
    return float(len(text)), float(len(text.split())), marks / n, digits / n, capitals / n, times["\n"] / n, ends


def of_place(place: int, n: int) -> tuple[float, ...]:
    """Return the numbers of `PLACE` of the unit at a place among n.

    >>> of_place(0, 5)
    (0.0, 0.5, 1.0, 0.0)
    """
    at = place / max(1, n - 1)
    return at, abs(at - 0.5), float(place == 0), float(place == n - 1)


def of_neighbours(units: Sequence[ShownUnit], places: Sequence[int]) -> list[tuple[float, ...]]:
    """Return the numbers of `NEIGHBOURS` of the units at some places. For the first and the last unit, which lack a
    neighbour, the other neighbour counts twice, since places are tried apart.

    Roles are compared only if gold has the role of other units, as a page of the evidence has. A gold with a role of
    its own would differ from the rest without any leak: it stands beside others, and others stand beside it.
    """
    has_roles = not any(units[place].is_gold and not units[place].is_evidence for place in places)
    titles = ["" if unit.image else unit.text.strip().split("\n", 1)[0] for unit in units]
    titled: dict[str, list[int]] = {}
    for place, title in enumerate(titles):
        if title:
            titled.setdefault(title, []).append(place)
    rows: list[tuple[float, ...]] = []
    for place in places:
        others = [units[at] for at in (place - 1, place + 1) if 0 <= at < len(units)] or [units[place]]
        before, after = others[0], others[-1]
        equal = (abs(other - place) for other in titled.get(titles[place], ()) if other != place)
        beside = float(bool(before.image)), float(bool(after.image)), float(has_roles and before.role != after.role)
        rows.append((*beside, float(min(equal, default=len(units)))))
    return rows


# ---- Titles that stand in other titles or texts, and passages that look like the first one of an article

TITLE = (
    *("characters of the first line", "words of the first line", "capitals of the first line"),
    *("digits of the first line", "punctuation of the first line", "parentheses in the first line"),
)
CHAIN = (
    "other titles with its title",
    "other texts with its title",
    "a neighbour with its title",
    "other titles in it",
)
PART = (
    *("its title at its beginning", "how often it has its title", "a small letter at its beginning"),
    *("a definition at its beginning", "a parenthesis at its beginning", "a year at its beginning"),
)
_LETTERS = 4
"""The fewest letters of a title that is looked for elsewhere."""
_BEGINNING = 160
"""How many characters count as the beginning of a text."""
_DEFINES = re.compile(r"\b(?:is|was|are|were)\s+(?:an?|the|one)\b")
_YEAR = re.compile(r"\b1\d{3}\b|\b20\d\d\b")


def of_title(text: str) -> tuple[float, ...]:
    """Return the numbers of `TITLE` of a text."""
    title = text.strip().split("\n", 1)[0]
    n = max(1, len(title))
    marks = sum(not letter.isalnum() and not letter.isspace() for letter in title)
    shares = sum(map(str.isupper, title)) / n, sum(map(str.isdigit, title)) / n, marks / n
    return float(len(title)), float(len(title.split())), *shares, float(title.count("("))


def titles_of(units: Sequence[ShownUnit]) -> list[str]:
    """Return the words of the title of each unit; empty if it has no title. What all titles begin or end with belongs
    to the template.

    >>> unit = lambda title: ShownUnit("", "", (f"Document (Title: {title}): ", "Some text"), (), False)
    >>> titles_of([unit("Tern Rock"), unit("Mill Pond")])
    [' tern rock ', ' mill pond ']
    """
    heads = [unit.texts[0] if len(unit.texts) > 1 else "" for unit in units]
    some = [head for head in heads if head]
    if len(set(some)) < 2:
        return ["" for _ in heads]
    begin, end = _common(some), _common([head[::-1] for head in some])
    titles = [words(head[begin : len(head) - end]) if head else "" for head in heads]
    return [title if letters(title) >= _LETTERS else "" for title in titles]


def _common(texts: Sequence[str]) -> int:
    """Return how many letters at the beginning all texts have in common, without a word that goes on differently."""
    first, last = min(texts), max(texts)
    same = next((n for n, (one, other) in enumerate(zip(first, last, strict=False)) if one != other), len(first))
    return len(re.sub(r"\w+$", "", first[:same]))


def of_chain(units: Sequence[ShownUnit], places: Sequence[int]) -> list[tuple[float, ...]]:
    """Return the numbers of `CHAIN` for the units at some places; they are compared with one another and with the units
    beside them.
    """
    titles = titles_of([units[place] for place in places])
    if not any(titles):
        return [(0.0,) * len(CHAIN) for _ in places]
    around = {at for place in places for at in (place - 1, place, place + 1) if 0 <= at < len(units)}
    texts = {at: words(units[at].body) for at in around}
    rows: list[tuple[float, ...]] = []
    for number, (place, title) in enumerate(zip(places, titles, strict=True)):
        others = [(titles[n], texts[at]) for n, at in enumerate(places) if n != number]
        beside = [texts[at] for at in (place - 1, place + 1) if at in texts]
        in_it = float(sum(bool(other) and other != title and other in texts[place] for other, _ in others))
        if not title:
            rows.append((0.0, 0.0, 0.0, in_it))
            continue
        in_titles = sum(title in other and other != title for other, _ in others)
        in_texts, in_neighbours = sum(title in text for _, text in others), any(title in text for text in beside)
        rows.append((float(in_titles), float(in_texts), float(in_neighbours), in_it))
    return rows


def of_parts(units: Sequence[ShownUnit]) -> list[tuple[float, ...]]:
    """Return the numbers of `PART` for some units: whether a text looks like the beginning of its article."""
    rows: list[tuple[float, ...]] = []
    for unit, title in zip(units, titles_of(units), strict=True):
        text = unit.body.lstrip()
        begin = text[:_BEGINNING]
        rows.append(
            (
                float(bool(title) and title.strip() in words(begin)[: len(title) + 12]),
                float(words(text).count(title)) if title else 0.0,
                float(text[:1].islower()),
                float(bool(_DEFINES.search(begin))),
                float("(" in begin),
                float(bool(_YEAR.search(begin))),
            )
        )
    return rows


# ---- The answers that a question offers

OFFER = ("words of the other choices", "places out of order", "its number", "words of the question")
LABEL = (
    *("exemplars", "place of the first exemplar", "place of the last exemplar", "middle of the places of exemplars"),
    "neighbours of equal label",
)


def of_offers(offered: Sequence[str], question: str) -> list[tuple[float, ...]]:
    """Return the numbers of `OFFER` of each answer that a question offers: the share of its words that stand in other
    choices and in the question, with how many others it is not in order, and its value if all are numbers.

    >>> of_offers(["1 km", "3 km", "2 km"], "How many km?")
    [(0.5, 0.0, 0.0, 0.5), (0.5, 1.0, 0.0, 0.5), (0.5, 1.0, 0.0, 0.5)]
    """
    bags = [frozenset(words(choice).split()) for choice in offered]
    asked, numbers = frozenset(words(question).split()), [_number(choice) for choice in offered]
    known = [number for number in numbers if number is not None]
    are_numbers = len(known) == len(offered)
    # the rank of each choice in order: by value if all are numbers, otherwise by letters
    keys = [choice.casefold() for choice in offered]
    ranks = np.unique(np.array(known if are_numbers else keys), return_inverse=True)[1]
    rows: list[tuple[float, ...]] = []
    for place, bag in enumerate(bags):
        others = frozenset().union(*(other for at, other in enumerate(bags) if at != place))
        n = max(1, len(bag))
        out_of_order = int((ranks[:place] > ranks[place]).sum() + (ranks[place + 1 :] < ranks[place]).sum())
        value = known[place] if are_numbers else 0.0
        rows.append((len(bag & others) / n, float(out_of_order), value, len(bag & asked) / n))
    return rows


def _number(text: str) -> float | None:
    """Return the value of a number; None for another text, also for `nan` and `infinity`."""
    try:
        found = float(text.strip().strip("%$€£").replace(",", ""))
    except ValueError:
        return None
    return found if math.isfinite(found) else None


def of_labels(units: Sequence[ShownUnit], offered: Sequence[str]) -> list[tuple[float, ...]]:
    """Return the numbers of `LABEL` of each label; empty if the exemplars do not say their labels."""
    shown = [_label(unit.text, offered) for unit in units if unit.role == "exemplar"]
    if not any(shown):
        return []
    n = max(1, len(shown) - 1)
    rows: list[tuple[float, ...]] = []
    for label in offered:
        places = [place / n for place, other in enumerate(shown) if other == label]
        twins = sum(one == other == label for one, other in pairwise(shown))
        first, last, mean = (places[0], places[-1], sum(places) / len(places)) if places else (-1.0, -1.0, -1.0)
        rows.append((float(len(places)), first, last, mean, float(twins)))
    return rows


def _label(text: str, offered: Sequence[str]) -> str:
    """Return the offered label that a text ends with; empty if it ends with none. Of several, the longest is meant."""
    end = text.rstrip()
    ends = [label for label in offered if label and end.endswith(label) and not end[: -len(label)][-1:].isalnum()]
    return max(ends, key=len, default="")


# ---- Questions: their words, the form of their text, and what they name

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
    numbers = []
    for page in pages:
        if digits := page["after"] or page["before"]:
            numbers.append(int(digits))
        elif (word := page["word"].lower()) in _ORDINALS:
            numbers.append(_ORDINALS.index(word) + 1)
    number = next(filter(None, numbers), 0)
    figures, sections = len(_FIGURE.findall(question)), len(_SECTION.findall(question))
    return float(len(pages)), float(number), float(figures), float(sections), float(len(re.findall(r"\d+", question)))


def of_questions(questions: Sequence[str]) -> Floats:
    """Return the words of questions as numbers, with the form of the text and what it names; empty if there are no
    words.
    """
    if len(set(questions)) < 2:
        return np.empty((0, 0))
    try:
        from sklearn.decomposition import KernelPCA
        from sklearn.feature_extraction.text import TfidfVectorizer
    except ModuleNotFoundError as error:
        raise missing("scikit-learn", "guessing from the words of questions") from error
    counted = TfidfVectorizer(ngram_range=(1, 2), min_df=2, token_pattern=r"\w+", max_features=20_000)
    form = scaled(table((*of_text(question), *of_named(question)) for question in questions))
    try:
        weights = counted.fit_transform(questions)
    except ValueError:  # no word occurs twice
        return form
    # There are more words than questions, so the components are those of the inner products of questions.
    components: Floats = KernelPCA(_WORD_PARTS, kernel="linear", eigen_solver="dense").fit_transform(weights)
    return np.concatenate([components / max(float(components.std(axis=0).max()), 1e-9), form], axis=1)
