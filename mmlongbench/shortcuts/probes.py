"""The probes: what each of them looks at. How well it tells is measured in `golds` and `guesses`.

Each probe keeps a few numbers of a question while contexts are read, so that a release of any size fits in memory.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from mmlongbench.draws import Draws
from mmlongbench.shortcuts import features as f
from mmlongbench.shortcuts.answerable import Shown, is_refusal, measure_answerable, shown_in
from mmlongbench.shortcuts.candidates import CHOICE_TEXTS, KINDS, NAMES, choice_groups, gold_groups
from mmlongbench.shortcuts.depths import measure_depths
from mmlongbench.shortcuts.golds import Groups, find_golds
from mmlongbench.shortcuts.guesses import MAX_QUESTIONS, guess_answers, scaled
from mmlongbench.shortcuts.measured import Measured
from mmlongbench.shortcuts.pages import PageTexts
from mmlongbench.shortcuts.priors import format_prior, free_prior, offered_prior
from mmlongbench.shortcuts.reading import AskedQuestion, ShownUnit
from mmlongbench.shortcuts.vectors import of_questions

SHAPE = ("units", "images", "own units", "units of padding", "characters")


@dataclass(slots=True)
class Kept:
    """What is kept of the questions of a dataset."""

    ids: list[str] = field(default_factory=list)
    clusters: list[str] = field(default_factory=list)
    questions: list[str] = field(default_factory=list)
    answers: list[str] = field(default_factory=list)
    formats: list[str] = field(default_factory=list)
    """The format of each answer; empty if it is unknown."""
    shapes: list[tuple[float, ...]] = field(default_factory=list)
    """The numbers of `SHAPE` of each context."""
    places: list[float] = field(default_factory=list)
    """The mean place of gold in each context, from 0 to 1; -1 if it shows none."""
    placements: list[tuple[float, ...]] = field(default_factory=list)
    """The placements at which each question stands."""
    chances: list[tuple[int, int]] = field(default_factory=list)
    """The place of the right choice, and the number of choices; (-1, 0) for a free answer."""
    offered: set[tuple[object, ...]] = field(default_factory=set)
    """The answers that questions offer; equal ones once."""
    shown: list[Shown | None] = field(default_factory=list)
    """What each context shows of its question's document; None if that is unknown."""
    groups: dict[str, Groups] = field(default_factory=dict)
    """The candidates of each question, by the kind of probe."""


def keep(
    questions: Iterable[AskedQuestion], images: f.ImageFacts, *, has_depths: bool, texts: PageTexts | None = None
) -> Kept:
    """Read the questions of a dataset and keep what probes need.

    Args:
        questions: the questions.
        images: reads the headers of images.
        has_depths: whether the places of needles are requested; places then tell nothing about gold by design.
        texts: the texts of pages that are shown as images.

    """
    kept = Kept()
    for asked in questions:
        keep_one(kept, asked, images, has_depths=has_depths, texts=texts)
    return kept


def keep_one(
    kept: Kept, asked: AskedQuestion, images: f.ImageFacts, *, has_depths: bool, texts: PageTexts | None = None
) -> None:
    """Keep what probes need of one question; `texts` has the texts of pages that are shown as images."""
    choices = asked.choices
    kept.ids.append(asked.id)
    kept.clusters.append(asked.cluster)
    kept.questions.append(asked.question)
    kept.answers.append(asked.answer)
    kept.formats.append(asked.format)
    kept.shapes.append(_shape(asked.units))
    kept.places.append(_mean_place(asked.units))
    kept.placements.append(asked.placements)
    kept.chances.append((choices.right, len(choices.offered)) if choices else (-1, 0))
    kept.shown.append(shown_in(asked, texts))
    if choices:
        kept.offered.add(choices.offered)
    for kind, group in (*gold_groups(asked, images, has_depths=has_depths), *choice_groups(asked, images)):
        kept.groups.setdefault(kind, Groups()).add(group)


def _shape(units: Sequence[ShownUnit]) -> tuple[float, ...]:
    roles = Counter(unit.role for unit in units)
    texts = sum(len(unit.text) for unit in units)
    return float(len(units)), float(sum(bool(u.image) for u in units)), roles["own"], roles["padding"], float(texts)


def _mean_place(units: Sequence[ShownUnit]) -> float:
    places = [place / max(1, len(units) - 1) for place, unit in enumerate(units) if unit.is_gold]
    return sum(places) / len(places) if places else -1.0


def measure(kept: Kept) -> Iterator[Measured]:
    """Yield what each probe measures in a dataset; a probe that cannot be tried there yields nothing."""
    yield from measure_cheap(kept)
    found = list(_guesses(kept))
    for kind, groups in kept.groups.items():
        if kind == NAMES or (kind in CHOICE_TEXTS and len(kept.offered) == 1):
            continue  # if the choices are the same for all questions, only their place could tell
        found.append(find_golds(kind, KINDS[kind], groups.kept))
    yield from (each for each in found if each is not None)


def measure_cheap(kept: Kept) -> Iterator[Measured]:
    """Yield what the probes measure that need no text and no image: priors, balance, names of files."""
    found = [
        *_priors(kept),
        *measure_depths(kept.ids, kept.clusters, kept.answers, kept.placements),
        find_golds(NAMES, KINDS[NAMES], kept.groups.get(NAMES, Groups()).kept),
    ]
    yield from (each for each in found if each is not None)


def _priors(kept: Kept) -> Iterator[Measured | None]:
    """Yield how often an answer is right that is given without reading the question."""
    offered = [number for number, (_, n) in enumerate(kept.chances) if n > 1]
    ids, clusters, answers = kept.ids, kept.clusters, kept.answers
    free = [number for number, (_, n) in enumerate(kept.chances) if n == 0 and answers[number]]
    yield offered_prior([ids[n] for n in offered], [clusters[n] for n in offered], [kept.chances[n] for n in offered])
    yield free_prior([ids[n] for n in free], [clusters[n] for n in free], [answers[n] for n in free])
    known = [n for n in free if kept.formats[n] and not is_refusal(answers[n])]
    if len({kept.formats[n] for n in known}) > 1:
        of_known = [ids[n] for n in known], [clusters[n] for n in known], [answers[n] for n in known]
        yield format_prior(*of_known, [kept.formats[n] for n in known])


def _guesses(kept: Kept) -> Iterator[Measured | None]:
    """Yield what the question, the shape of its context, and the place of gold tell about the answer; and what the
    question tells about the place of gold.
    """
    some = sorted(Draws(("shortcuts",)).order("questions", range(len(kept.ids)))[:MAX_QUESTIONS])
    ids, clusters = [kept.ids[n] for n in some], [kept.clusters[n] for n in some]
    answers, questions = [kept.answers[n] for n in some], [kept.questions[n] for n in some]
    told = of_questions(questions)
    refusals = list(measure_answerable(ids, clusters, questions, answers, [kept.shown[n] for n in some]))
    yield from refusals
    if told.size:
        found = guess_answers(
            "answer from the question", ids, clusters, answers, told, "words and form of the question"
        )
        if not found or not any(each and np.array_equal(each.scores, found.scores) for each in refusals):
            yield found  # otherwise, `Not answerable` is the only answer that occurs often enough to be guessed
    shapes = np.array([kept.shapes[n] for n in some], dtype=np.float64)
    if shapes.size:
        evidence = f"numbers of the context: {', '.join(SHAPE)}"
        yield guess_answers("answer from the shape of the context", ids, clusters, answers, scaled(shapes), evidence)
    placed = [n for n in some if kept.places[n] >= 0]
    if placed:
        yield from _of_places(kept, placed)


def _of_places(kept: Kept, placed: Sequence[int]) -> Iterator[Measured | None]:
    """Yield what the place of gold tells about the answer, and the question about this place."""
    places = np.array([[kept.places[n]] for n in placed], dtype=np.float64)
    where = ([kept.ids[n] for n in placed], [kept.clusters[n] for n in placed])
    forms = np.concatenate([places, (places - 0.5) ** 2, places <= 0.01, places >= 0.99], axis=1)
    told = [kept.answers[n] for n in placed]
    yield guess_answers("answer from the place of gold", *where, told, scaled(forms), "where gold is in the context")
    asked = of_questions([kept.questions[n] for n in placed])
    if asked.size:
        thirds = ["beginning" if at < 1 / 3 else "end" if at > 2 / 3 else "middle" for at in places[:, 0]]
        yield guess_answers("place of gold from the question", *where, thirds, asked, "words and form of the question")
