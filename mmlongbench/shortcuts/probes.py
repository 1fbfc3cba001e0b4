"""The probes: what each of them looks at. How well it tells is measured in `golds` and `guesses`.

Each probe keeps a few numbers of a question while contexts are read, so that a release of any size fits in memory.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from mmlongbench.draws import Draws
from mmlongbench.prompt import Image
from mmlongbench.shortcuts import features as f
from mmlongbench.shortcuts.extra import missing
from mmlongbench.shortcuts.golds import MAX_CANDIDATES, Group, find_golds
from mmlongbench.shortcuts.guesses import MAX_QUESTIONS, guess_answers, scaled
from mmlongbench.shortcuts.measured import Floats, Measured
from mmlongbench.shortcuts.priors import free_prior, offered_prior
from mmlongbench.shortcuts.reading import AskedQuestion, ShownUnit

_WORD_PARTS = 48
"""Into how many numbers the words of questions are reduced: their principal components. The strongest one has the
spread of one standard deviation, so that words which occur in few questions weigh little."""
_COMPARED = 60
"""How many units of a context are compared at most; other units are drawn."""


@dataclass(slots=True)
class Kept:
    """What is kept of the questions of a dataset."""

    ids: list[str] = field(default_factory=list)
    clusters: list[str] = field(default_factory=list)
    questions: list[str] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)
    shapes: list[tuple[float, ...]] = field(default_factory=list)
    """The numbers of `SHAPE` of each context."""
    places: list[float] = field(default_factory=list)
    """The mean place of gold in each context, from 0 to 1; -1 if it shows none."""
    chances: list[tuple[int, int]] = field(default_factory=list)
    """The place of the right choice, and the number of choices; (-1, 0) for a free answer."""
    offered: set[tuple[object, ...]] = field(default_factory=set)
    """The answers that questions offer; equal ones once."""
    groups: dict[str, list[Group]] = field(default_factory=dict)
    """The candidates of each question, by the kind of probe."""


_CHOICE_TEXTS = "right choice from its text"
SHAPE = ("units", "images", "own units", "units of padding", "characters")
_GOLD_KINDS = {
    "gold from file names": f.NAME,
    "gold from image files": f.FILE,
    "gold from metadata of images": f.META,
    "gold from sizes of images": f.SIZE,
    "gold from the form of texts": f.TEXT,
    "gold from titles": f.TITLE,
    "gold from its place": f.PLACE,
    "gold from its neighbours": f.NEIGHBOURS,
    "right choice from its file": (*f.FILE, *f.META, *f.SIZE, *f.NAME),
    _CHOICE_TEXTS: f.TEXT,
}


def keep(questions: Iterable[AskedQuestion], images: f.ImageFacts, *, has_depths: bool) -> Kept:
    """Read the questions of a dataset and keep what probes need.

    Args:
        questions: the questions.
        images: reads the headers of images.
        has_depths: whether the places of needles are requested; places then tell nothing about gold by design.

    """
    kept = Kept()
    for asked in questions:
        keep_one(kept, asked, images, has_depths=has_depths)
    return kept


def keep_one(kept: Kept, asked: AskedQuestion, images: f.ImageFacts, *, has_depths: bool) -> None:
    """Keep what probes need of one question."""
    choices = asked.choices
    kept.ids.append(asked.id)
    kept.clusters.append(asked.cluster)
    kept.questions.append(asked.question)
    kept.answers.append(asked.answer)
    kept.shapes.append(_shape(asked.units))
    kept.places.append(_mean_place(asked.units))
    kept.chances.append((choices.right, len(choices.offered)) if choices else (-1, 0))
    if choices:
        kept.offered.add(choices.offered)
    for kind, group in (*_gold_groups(asked, images, has_depths=has_depths), *_choice_groups(asked, images)):
        kept.groups.setdefault(kind, []).append(group)


def _shape(units: Sequence[ShownUnit]) -> tuple[float, ...]:
    roles = Counter(unit.role for unit in units)
    texts = sum(len(unit.text) for unit in units)
    return float(len(units)), float(sum(bool(u.image) for u in units)), roles["own"], roles["padding"], float(texts)


def _mean_place(units: Sequence[ShownUnit]) -> float:
    places = [place / max(1, len(units) - 1) for place, unit in enumerate(units) if unit.is_gold]
    return sum(places) / len(places) if places else -1.0


def _gold_groups(asked: AskedQuestion, images: f.ImageFacts, *, has_depths: bool) -> Iterator[tuple[str, Group]]:
    """Yield the candidates of a context for each kind of probe: gold, and drawn others of the same medium; of the same
    role, too, if gold is among the document's own units.
    """
    golds = [place for place, unit in enumerate(asked.units) if unit.is_gold]
    if not golds or len(golds) >= MAX_CANDIDATES // 2:
        return
    first = asked.units[golds[0]]
    golds = [place for place in golds if bool(asked.units[place].image) == bool(first.image)]
    others = [
        place
        for place, unit in enumerate(asked.units)
        if not unit.is_gold and bool(unit.image) == bool(first.image) and (first.role != "own" or unit.role == "own")
    ]
    drawn = Draws(("shortcuts", asked.id)).order("candidates", others)[:_COMPARED]
    places = sorted([*golds, *drawn])
    units = [asked.units[place] for place in places]

    def group(rows: Iterable[tuple[float, ...]]) -> Group:
        shown = tuple(asked.units[place].image or asked.units[place].text for place in golds)
        return Group(asked.id, asked.cluster, shown, f.table(list(rows)), tuple(unit.is_gold for unit in units))

    if len(places) == len(golds):
        return
    if first.image:
        facts = [images.of(unit.image) for unit in units]
        yield "gold from file names", group(f.of_name(unit.image) for unit in units)
        yield "gold from image files", group(each["file"] for each in facts)
        yield "gold from metadata of images", group(each["meta"] for each in facts)
        yield "gold from sizes of images", group(each["size"] for each in facts)
    else:
        yield "gold from the form of texts", group(f.of_text(unit.text) for unit in units)
        yield "gold from titles", group(f.of_title(unit.text) for unit in units)
    if not has_depths:
        yield "gold from its place", group(f.of_place(place, len(asked.units)) for place in places)
    yield "gold from its neighbours", group(f.of_neighbours(asked.units, place) for place in places)


def _choice_groups(asked: AskedQuestion, images: f.ImageFacts) -> Iterator[tuple[str, Group]]:
    """Yield the offered answers as candidates, without the place at which they are offered."""
    if asked.choices is None or len(asked.choices.offered) < 2:
        return
    offered, right = asked.choices.offered, asked.choices.right
    is_right = tuple(place == right for place in range(len(offered)))
    gold = (f"{asked.id}: {right}",)
    if all(isinstance(each, Image) for each in offered):
        paths = [each.path for each in offered if isinstance(each, Image)]
        rows = []
        for path in paths:
            facts = images.of(path)
            rows.append((*facts["file"], *facts["meta"], *facts["size"], *f.of_name(path)))
        yield "right choice from its file", Group(asked.id, asked.cluster, gold, f.table(rows), is_right)
    else:
        texts = [each for each in offered if isinstance(each, str)]
        yield (
            _CHOICE_TEXTS,
            Group(asked.id, asked.cluster, gold, f.table([f.of_text(text) for text in texts]), is_right),
        )


def measure(kept: Kept) -> Iterator[Measured]:
    """Yield what each probe measures in a dataset; a probe that cannot be tried there yields nothing."""
    found = [*_priors(kept), *_guesses(kept)]
    for kind, groups in kept.groups.items():
        if kind == _CHOICE_TEXTS and len(kept.offered) == 1:
            continue  # the choices are the same for all questions, so only their place could tell
        found.append(find_golds(kind, _GOLD_KINDS[kind], groups))
    yield from (each for each in found if each is not None)


def _priors(kept: Kept) -> Iterator[Measured | None]:
    """Yield how often an answer is right that is given without reading the question."""
    offered = [number for number, (_, n) in enumerate(kept.chances) if n > 1]
    free = [number for number, (_, n) in enumerate(kept.chances) if n == 0]
    ids, clusters, answers = kept.ids, kept.clusters, kept.answers
    yield offered_prior([ids[n] for n in offered], [clusters[n] for n in offered], [kept.chances[n] for n in offered])
    yield free_prior([ids[n] for n in free], [clusters[n] for n in free], [answers[n] for n in free])


def _guesses(kept: Kept) -> Iterator[Measured | None]:
    """Yield what the question, the shape of its context, and the place of gold tell about the answer; and what the
    question tells about the place of gold.
    """
    some = sorted(Draws(("shortcuts",)).order("questions", range(len(kept.ids)))[:MAX_QUESTIONS])
    ids, clusters = [kept.ids[n] for n in some], [kept.clusters[n] for n in some]
    answers = [kept.answers[n] for n in some]
    words = _words([kept.questions[n] for n in some])
    if words.size:
        yield guess_answers("answer from the question", ids, clusters, answers, words, "words and form of the question")
    shapes = np.array([kept.shapes[n] for n in some], dtype=np.float64)
    if shapes.size:
        evidence = f"numbers of the context: {', '.join(SHAPE)}"
        yield guess_answers("answer from the shape of the context", ids, clusters, answers, scaled(shapes), evidence)
    placed = [n for n in some if kept.places[n] >= 0]
    places = np.array([[kept.places[n]] for n in placed], dtype=np.float64)
    if not placed:
        return
    where = ([kept.ids[n] for n in placed], [kept.clusters[n] for n in placed])
    forms = np.concatenate([places, (places - 0.5) ** 2, places <= 0.01, places >= 0.99], axis=1)
    told = [kept.answers[n] for n in placed]
    yield guess_answers("answer from the place of gold", *where, told, scaled(forms), "where gold is in the context")
    asked = _words([kept.questions[n] for n in placed])
    if asked.size:
        thirds = ["beginning" if at < 1 / 3 else "end" if at > 2 / 3 else "middle" for at in places[:, 0]]
        yield guess_answers("place of gold from the question", *where, thirds, asked, "words and form of the question")


def _words(questions: Sequence[str]) -> Floats:
    """Return the words of questions as numbers, with the form of the text; empty if there are no words.

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
    form = f.table([f.of_text(question) for question in questions])
    try:
        weights = counted.fit_transform(questions)
    except ValueError:  # no word occurs twice
        return scaled(form)
    products = np.asarray((weights @ weights.T).todense(), dtype=np.float64)
    strengths, directions = np.linalg.eigh(_centred(products))
    strongest = np.argsort(-strengths)[:_WORD_PARTS]
    words = directions[:, strongest] * np.sqrt(np.maximum(strengths[strongest], 0))
    return np.concatenate([words / max(float(words.std(axis=0).max()), 1e-9), scaled(form)], axis=1)


def _centred(products: Floats) -> Floats:
    """Return the inner products of rows after the mean row is taken from each."""
    means = products.mean(axis=0)
    found: Floats = products - means - means[:, None] + means.mean()
    return found
