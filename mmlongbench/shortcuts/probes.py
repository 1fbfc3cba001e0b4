"""The probes: what each of them looks at. How well it tells is measured in `learners`.

Each probe keeps a few numbers of a question while contexts are read, so that a release of any size fits in memory.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from mmlongbench.draws import Draws, digest
from mmlongbench.likeness import words
from mmlongbench.prompt import Image
from mmlongbench.shortcuts import image_features as images_f
from mmlongbench.shortcuts import text_features as texts_f
from mmlongbench.shortcuts.answerable import Shown, is_refusal, measure_answerable, shown_in
from mmlongbench.shortcuts.findings import Measured
from mmlongbench.shortcuts.image_features import ImageFacts
from mmlongbench.shortcuts.learners import (
    MAX_CANDIDATES,
    MAX_QUESTIONS,
    Group,
    Groups,
    find_golds,
    free_prior,
    guess_answers,
    offered_prior,
)
from mmlongbench.shortcuts.reading import AskedQuestion, PageTexts, ShownUnit
from mmlongbench.shortcuts.text_features import of_questions, scaled, table

SHAPE = ("units", "images", "own units", "units of padding", "characters")
_COMPARED = 60
"""How many units of a context are compared at most; other units are drawn."""
_FIRST = 32
"""From how many contexts the words are chosen that are compared."""
_WORDS = 24
"""How many words are compared."""
NAMES = "gold from file names"
CHOICE_TEXTS = ("right choice from its text", "right choice from the other choices")
"""The kinds in which the choices are texts; if all questions offer the same ones, only their place could tell."""
KINDS: Mapping[str, Sequence[str]] = {
    NAMES: images_f.NAME,
    "gold from image files": images_f.FILE,
    "gold from quantisation": images_f.QUANTISATION,
    "gold from metadata of images": images_f.META,
    "gold from EXIF tags": images_f.TAGS,
    "gold from sizes of images": images_f.SIZE,
    "gold from the form of heads": texts_f.TEXT,
    "gold from the form of texts": texts_f.TEXT,
    "gold from titles": texts_f.TITLE,
    "gold from chained titles": texts_f.CHAIN,
    "gold from the part of its source": texts_f.PART,
    "gold from its place": texts_f.PLACE,
    "gold from its neighbours": texts_f.NEIGHBOURS,
    "right choice from its file": (
        *(*images_f.FILE, *images_f.QUANTISATION, *images_f.META, *images_f.SIZE, *images_f.NAME),
    ),
    CHOICE_TEXTS[0]: texts_f.TEXT,
    CHOICE_TEXTS[1]: texts_f.OFFER,
    "right label from its exemplars": texts_f.LABEL,
}
"""The names of the features, by the kind of probe."""


@dataclass(slots=True)
class Kept:
    """What is kept of the questions of a dataset."""

    asked: list[AskedQuestion] = field(default_factory=list)
    """The questions without their contexts."""
    shapes: list[tuple[float, ...]] = field(default_factory=list)
    """The numbers of `SHAPE` of each context."""
    places: list[float] = field(default_factory=list)
    """The mean place of gold in each context, from 0 to 1; -1 if it shows none."""
    shown: list[Shown | None] = field(default_factory=list)
    """What each context shows of its question's document; None if that is unknown."""
    groups: dict[str, Groups] = field(default_factory=dict)
    """The candidates of each question, by the kind of probe."""
    words: "WordGroups" = field(default_factory=lambda: WordGroups())
    """The candidates of each question with their words."""

    def add(
        self, asked: AskedQuestion, images: ImageFacts, *, has_depths: bool, texts: PageTexts | None = None
    ) -> None:
        """Keep what probes need of one question.

        If places of needles are requested (`has_depths`), they tell nothing about gold by design. `texts` are those of
        pages that are shown as images.
        """
        units = asked.units
        self.asked.append(asked.without_context())
        roles, characters = Counter(unit.role for unit in units), sum(len(unit.text) for unit in units)
        numbers = len(units), sum(bool(unit.image) for unit in units), roles["own"], roles["padding"], characters
        self.shapes.append(tuple(map(float, numbers)))
        golds = [place / max(1, len(units) - 1) for place, unit in enumerate(units) if unit.is_gold]
        self.places.append(sum(golds) / len(golds) if golds else -1.0)
        self.shown.append(shown_in(asked, texts))
        for kind, group in (*gold_groups(asked, images, has_depths=has_depths), *choice_groups(asked, images)):
            self.groups.setdefault(kind, Groups()).add(group)
        self.words.add(asked)


# ---- Candidates: gold and other units of its context, and the answers that a question offers


def gold_groups(asked: AskedQuestion, images: ImageFacts, *, has_depths: bool) -> Iterator[tuple[str, Group]]:
    """Yield the candidates of a context for each kind of probe: gold, and drawn others of the same medium; of the same
    role, too, if gold is among the document's own units.
    """
    compared = _compared(asked)
    if compared is None:
        return
    places, units, bare = compared
    rows: dict[str, Iterable[tuple[float, ...]]]
    if units[0].image:
        facts = [images.of(unit.image) for unit in units]
        rows = {
            NAMES: [images_f.of_name(unit.image) for unit in units],
            "gold from image files": [fact["file"] for fact in facts],
            "gold from quantisation": [fact["tables"] for fact in facts],
            "gold from metadata of images": [fact["meta"] for fact in facts],
            "gold from EXIF tags": [fact["tags"] for fact in facts],
            "gold from sizes of images": [fact["size"] for fact in facts],
            # Numbers of pages and times grow with the place, so how many digits they have is left out.
            "gold from the form of heads": [texts_f.of_text(re.sub(r"\d+", "0", unit.text)) for unit in units],
        }
    else:
        rows = {
            "gold from the form of texts": [texts_f.of_text(unit.text) for unit in units],
            "gold from titles": [texts_f.of_title(unit.text) for unit in units],
            "gold from chained titles": texts_f.of_chain(asked.units, places),
            "gold from the part of its source": texts_f.of_parts(units),
        }
    for kind, features in rows.items():
        yield kind, replace(bare, features=table(features))
    rows = {} if has_depths else {"gold from its place": [texts_f.of_place(at, len(asked.units)) for at in places]}
    rows["gold from its neighbours"] = texts_f.of_neighbours(asked.units, places)
    for kind, features in rows.items():
        yield kind, replace(bare, features=table(features), units=())


def _compared(asked: AskedQuestion) -> tuple[list[int], list[ShownUnit], Group] | None:
    """Return the candidates of a context: their places, the units, and a group without features; None if there is no
    gold among others.
    """
    golds, places = candidates(asked)
    if not golds or len(places) == len(golds):
        return None
    units = [asked.units[place] for place in places]
    shown = tuple(asked.units[place].image or digest(asked.units[place].text).hex() for place in golds)
    is_gold = tuple(unit.is_gold for unit in units)
    numbers = tuple(int.from_bytes(digest(unit.image or unit.text)[:7]) for unit in units)
    return places, units, Group(asked.id, asked.cluster, shown, np.empty((len(units), 0)), is_gold, numbers)


class WordGroups:
    """The candidates of each context with the words that they have: a bag of words of heads and bodies.

    A word is compared if it stands in some units of nearly every context, rather in one of them or in all but one. Such
    words are chosen without looking which units are gold, from the first contexts alone, so that few words are kept.
    """

    def __init__(self) -> None:
        self.words: tuple[str, ...] = ()
        self.groups = Groups()
        self._first: list[tuple[Group, dict[str, int]]] = []
        """The first contexts: the candidates, and which of them have each word, as bits."""

    def add(self, asked: AskedQuestion) -> None:
        """Look at the candidates of a context."""
        if (compared := _compared(asked)) is None:
            return
        _, units, bare = compared
        having: dict[str, int] = {}
        for at, unit in enumerate(units):
            for word in set(words(unit.text).split()):
                having[word] = having.get(word, 0) | 1 << at
        if self.words:
            self._keep(bare, having)
            return
        self._first.append((bare, having))
        if len(self._first) == _FIRST:
            self.choose()

    def choose(self) -> None:
        """Choose the words if that was not done, and keep the candidates that were added before."""
        if self.words:
            return
        times, rarity = Counter[str](), dict[str, float]()
        for bare, having in self._first:
            for word, bits in having.items():
                share = bits.bit_count() / len(bare.is_gold)
                if share < 1:
                    times[word] += 1
                    rarity[word] = rarity.get(word, 0.0) + min(share, 1 - share)
        first = sorted(times, key=lambda word: (-times[word], round(rarity[word], 9), word))
        self.words = tuple(first[:_WORDS])
        for bare, having in self._first if self.words else ():
            self._keep(bare, having)
        self._first.clear()

    def _keep(self, bare: Group, having: dict[str, int]) -> None:
        rows = (tuple(float(having.get(word, 0) >> at & 1) for word in self.words) for at in range(len(bare.is_gold)))
        self.groups.add(replace(bare, features=table(rows)))


def candidates(asked: AskedQuestion) -> tuple[list[int], list[int]]:
    """Return the places of gold, and those of gold and of the units that it is compared with."""
    golds = [place for place, unit in enumerate(asked.units) if unit.is_gold]
    if not golds or len(golds) >= MAX_CANDIDATES // 2:
        return [], []
    first = asked.units[golds[0]]
    golds = [place for place in golds if bool(asked.units[place].image) == bool(first.image)]
    others = [
        place
        for place, unit in enumerate(asked.units)
        if not unit.is_gold and bool(unit.image) == bool(first.image) and (first.role != "own" or unit.role == "own")
    ]
    drawn = Draws(("shortcuts", asked.id)).order("candidates", others)[:_COMPARED]
    return golds, sorted([*golds, *drawn])


def choice_groups(asked: AskedQuestion, images: ImageFacts) -> Iterator[tuple[str, Group]]:
    """Yield the offered answers as candidates, without the place at which they are offered."""
    if asked.choices is None or len(asked.choices.offered) < 2:
        return
    offered, right = asked.choices.offered, asked.choices.right
    is_right = tuple(place == right for place in range(len(offered)))

    def group(rows: Iterable[tuple[float, ...]], gold: str = asked.id) -> Group:
        return Group(asked.id, asked.cluster, (f"{gold}: {right}",), table(rows), is_right)

    paths = [part.path for part in offered if isinstance(part, Image)]
    texts = [part for part in offered if isinstance(part, str)]
    if paths:
        facts = [(images.of(path), images_f.of_name(path)) for path in paths]
        rows = ((*fact["file"], *fact["tables"], *fact["meta"], *fact["size"], *name) for fact, name in facts)
        yield "right choice from its file", group(rows)
        return
    yield CHOICE_TEXTS[0], group(texts_f.of_text(text) for text in texts)
    yield CHOICE_TEXTS[1], group(texts_f.of_offers(texts, asked.question))
    if labels := texts_f.of_labels(asked.units, texts):
        # Questions that share a context and a label are compared once.
        context = digest("context", *(unit.id for unit in asked.units)).hex()[:12]
        yield "right label from its exemplars", group(labels, context)


# ---- What is measured


def measure(kept: Kept) -> Iterator[Measured]:
    """Yield what each probe measures in a dataset; a probe that cannot be tried there yields nothing."""
    found = [
        *_priors(kept.asked),
        *measure_depths(*_columns(kept.asked), [asked.placements for asked in kept.asked]),
        find_golds(NAMES, KINDS[NAMES], kept.groups.get(NAMES, Groups()).kept),
        *_guesses(kept),
    ]
    offered = {asked.choices.offered for asked in kept.asked if asked.choices}
    for kind, groups in kept.groups.items():
        if kind == NAMES or (kind in CHOICE_TEXTS and len(offered) == 1):
            continue  # if the choices are the same for all questions, only their place could tell
        found.append(find_golds(kind, KINDS[kind], groups.kept))
    kept.words.choose()
    if kept.words.words:
        names = [f"the word {word!r}" for word in kept.words.words]
        found.append(find_golds("gold from its words", names, kept.words.groups.kept))
    yield from filter(None, found)


def _columns(questions: Sequence[AskedQuestion]) -> tuple[list[str], list[str], list[str]]:
    return [q.id for q in questions], [q.cluster for q in questions], [q.answer for q in questions]


def _priors(questions: Sequence[AskedQuestion]) -> Iterator[Measured | None]:
    """Yield how often an answer is right that is given without reading the question."""
    offering = [(asked, asked.choices) for asked in questions if asked.choices and len(asked.choices.offered) > 1]
    ids, clusters, _ = _columns([asked for asked, _ in offering])
    yield offered_prior(ids, clusters, [(choices.right, len(choices.offered)) for _, choices in offering])
    free = [asked for asked in questions if not (asked.choices and asked.choices.offered) and asked.answer]
    yield free_prior(*_columns(free))
    known = [asked for asked in free if asked.format and not is_refusal(asked.answer)]
    formats = [asked.format for asked in known]
    if len(set(formats)) > 1:
        yield free_prior(*_columns(known), formats)


def measure_depths(
    ids: Sequence[str], clusters: Sequence[str], answers: Sequence[str], placements: Sequence[Sequence[float]]
) -> Iterator[Measured | None]:
    """Yield what the requested placements of a question tell about its answer; if each question has one placement, also
    how often the most frequent one is right. If all questions have the same placements, nothing is yielded.
    """
    known = sorted({placement for found in placements for placement in found})
    if len(known) < 2 or len({tuple(sorted(found)) for found in placements}) < 2:
        return
    rows = table(tuple(float(found.count(placement)) for placement in known) for found in map(list, placements))
    evidence = "the placements at which a question stands"
    yield guess_answers("answer from requested placements", ids, clusters, answers, scaled(rows), evidence)
    if any(len(found) != 1 for found in placements):
        return
    measured = offered_prior(ids, clusters, [(known.index(found[0]), len(known)) for found in placements])
    if measured:
        usual, times = Counter(found[0] for found in placements).most_common(1)[0]
        yield replace(
            measured,
            kind="requested placement from priors",
            measure="placements guessed right",
            evidence=f"placement {usual:g} is requested for {times} of {len(ids)} questions",
        )


def _guesses(kept: Kept) -> Iterator[Measured | None]:
    """Yield what the question, the shape of its context, and the place of gold tell about the answer; and what the
    question tells about the place of gold.
    """
    some = sorted(Draws(("shortcuts",)).order("questions", range(len(kept.asked)))[:MAX_QUESTIONS])
    questions = [kept.asked[n] for n in some]
    columns, texts = _columns(questions), [asked.question for asked in questions]
    told, evidence = of_questions(texts), "words and form of the question"
    ids, clusters, answers = columns
    refusals = list(measure_answerable(ids, clusters, texts, answers, [kept.shown[n] for n in some]))
    yield from refusals
    if told.size:
        found = guess_answers("answer from the question", *columns, told, evidence)
        if not found or not any(probe and np.array_equal(probe.scores, found.scores) for probe in refusals):
            yield found  # otherwise, `Not answerable` is the only answer that occurs often enough to be guessed
    shapes = np.array([kept.shapes[n] for n in some], dtype=np.float64)
    if shapes.size:
        numbers = f"numbers of the context: {', '.join(SHAPE)}"
        yield guess_answers("answer from the shape of the context", *columns, scaled(shapes), numbers)
    placed = [n for n in some if kept.places[n] >= 0]
    if not placed:
        return
    questions = [kept.asked[n] for n in placed]
    ids, clusters, answers = _columns(questions)
    places = np.array([[kept.places[n]] for n in placed], dtype=np.float64)
    forms = scaled(np.concatenate([places, (places - 0.5) ** 2, places <= 0.01, places >= 0.99], axis=1))
    yield guess_answers("answer from the place of gold", ids, clusters, answers, forms, "where gold is in the context")
    told = of_questions([asked.question for asked in questions])
    if told.size:
        thirds = ["beginning" if at < 1 / 3 else "end" if at > 2 / 3 else "middle" for at in places[:, 0]]
        yield guess_answers("place of gold from the question", ids, clusters, thirds, told, evidence)
