"""Guesses an answer, or finds gold, from what should not tell it; and measures how often the guess is right.

What is learned is learned from other clusters by ridge regressions. They are linear in what they learn, so all 999
draws of the null are learned at once with the real answers or golds: these are the first column, the draws the others.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np

from mmlongbench.likeness import missing
from mmlongbench.shortcuts.findings import (
    FOLDS,
    PERMUTATIONS,
    TOLERATED,
    Flags,
    Measured,
    folds_of,
    has_enough,
    uniforms,
)
from mmlongbench.statistics import Floats, Ints, effective_number

MAX_QUESTIONS = 2000
"""The maximum number of questions of a dataset from which an answer is guessed."""
MAX_ANSWERS = 10
"""How many different answers are guessed: the most frequent ones."""
_LEAST = 4
"""In how many clusters an answer must occur to be guessed."""
_RIDGE = 0.1
"""The penalty of a regression, as a share of the variance of a feature."""

# ---- Answers from features of a question


def guess_answers(
    kind: str, ids: Sequence[str], clusters: Sequence[str], answers: Sequence[str], features: Floats, evidence: str
) -> Measured | None:
    """Measure how well features tell the answers; None if there are too few clusters, or fewer than two answers that
    occur in several clusters.

    The score of a question is the share of questions with other answers for which its answer is less likely: one half
    if nothing tells, however often an answer occurs. The null exchanges answers between clusters of about the same
    size, so that answers of a cluster stay together. A feature with a larger spread weighs more.
    """
    # all rare answers are one
    spread = Counter(answer for answer, _ in dict.fromkeys(zip(answers, clusters, strict=True)))
    frequent = sorted((a for a, n in spread.items() if n >= _LEAST), key=lambda a: (-spread[a], a))[:MAX_ANSWERS]
    place = {answer: number for number, answer in enumerate(frequent)}
    labels = np.array([place.get(answer, len(frequent)) for answer in answers], dtype=np.int64)
    classes = len(frequent) + any(answer not in place for answer in answers)
    if classes < 2 or not has_enough(clusters) or not features.size or np.ptp(features, axis=0).max() == 0:
        return None
    folds, drawn = folds_of(clusters), _exchanged(labels, clusters)
    scores = np.full((len(ids), PERMUTATIONS + 1), 0.5)
    for fold in range(FOLDS):
        tested = folds == fold
        if tested.any() and not tested.all():
            scores[tested] = _told(features, drawn, tested, classes)
    if np.ptp(scores) < 1e-9:
        return None
    return Measured(
        kind=kind,
        measure="pairs of questions with different answers that are told apart",
        ids=tuple(ids),
        clusters=tuple(clusters),
        scores=scores[:, 0],
        null=scores[:, 1:].mean(axis=0),
        evidence=evidence,
    )


def _exchanged(labels: Ints, clusters: Sequence[str]) -> Ints:
    """Return the real labels (first column) and those of each draw of the null.

    In a draw, each cluster is given the answers of one cluster of about its size, maybe its own, from a drawn one of
    them on and round. So answers that depend on each other do so in the null, too. If the answers of several small
    clusters were given to a large one, the null would spread less than the scores of a clean file.
    """
    members: dict[str, list[int]] = {}
    for number, cluster in enumerate(clusters):
        members.setdefault(cluster, []).append(number)
    names = sorted(members)
    laid, sizes = np.array([n for name in names for n in members[name]]), np.array([len(members[n]) for n in names])
    starts = np.cumsum(sizes) - sizes
    keys, turns = uniforms(2 * PERMUTATIONS * len(names), "exchange", *names).reshape(2, PERMUTATIONS, -1)
    found = np.empty((len(labels), PERMUTATIONS + 1), dtype=np.int64)
    found[:, 0] = labels
    for alike in _of_like_size(sizes):
        givers = alike[np.argsort(keys[:, alike], axis=1)]
        for giver, taker in zip(givers.T, alike.tolist(), strict=True):
            first = (turns[:, taker] * sizes[giver]).astype(np.int64)
            answers = starts[giver] + (first + np.arange(sizes[taker])[:, None]) % sizes[giver]
            found[members[names[taker]], 1:] = labels[laid[answers]]
    return found


def _of_like_size(sizes: Ints) -> list[Ints]:
    """Return the numbers of clusters in groups of which the largest cluster has at most 1.5 times the questions of the
    smallest.

    >>> [group.tolist() for group in _of_like_size(np.array([9, 1, 2, 1, 6, 3]))]
    [[0, 4], [5, 2], [1, 3]]
    """
    groups: list[list[int]] = []
    for number in np.argsort(-sizes, kind="stable").tolist():
        if not groups or 3 * sizes[number] < 2 * sizes[groups[-1][0]]:
            groups.append([])
        groups[-1].append(number)
    return [np.array(group) for group in groups]


def _told(features: Floats, drawn: Ints, tested: Flags, classes: int) -> Floats:
    """Return the scores of the tested questions: a row for each, a column for the real answers and for each draw."""
    try:
        from scipy.stats import rankdata
        from sklearn.linear_model import Ridge
    except ModuleNotFoundError as error:
        raise missing("scikit-learn", "guessing answers") from error
    of_known, of_asked = drawn[~tested], drawn[tested]
    scores = np.full(of_asked.shape, 0.5)
    # A prediction is a weighted sum of what is learned. The weights are the same for all answers and draws: those that
    # are learned if each known question has an answer of its own.
    ridge = Ridge(_RIDGE * len(of_known), solver="cholesky").fit(features[~tested], np.eye(len(of_known)))
    weights = ridge.predict(features[tested])
    for answer in range(classes):
        likely = np.round(weights @ (of_known == answer).astype(np.float64), 9)
        own = of_asked == answer
        others = np.count_nonzero(~own, axis=0)
        # among all, minus among those with this answer: how many others are less likely, and half of the equal ones
        lower = rankdata(likely, axis=0) - rankdata(np.where(own, likely, np.inf), axis=0)
        np.copyto(scores, lower / np.maximum(1, others), where=own & (others > 0))
    return scores


# ---- Answers without reading the question

_PRIORS, _RIGHT = "answer from priors", "questions answered right"
_CANDIDATES = 20
"""How many answers of a format are drawn in the null: the most frequent ones. No more can be right in one question of
twenty each."""
_MAX_DRAWN = 2000
"""How many answers are drawn at most."""


def offered_prior(ids: Sequence[str], clusters: Sequence[str], chances: Sequence[tuple[int, int]]) -> Measured | None:
    """Measure how often the choice is right that is right most often elsewhere; the null renumbers the choices of each
    cluster at random. `chances` has the place of the right choice, and the number of choices, of each question.
    """
    if not has_enough(clusters):
        return None
    right = np.array([place for place, _ in chances], dtype=np.int64)
    offered = np.array([n for _, n in chances], dtype=np.int64)
    names, numbers = np.unique(np.array(clusters), return_inverse=True)
    turned = uniforms(PERMUTATIONS * len(names), "prior", *names.tolist()).reshape(len(names), PERMUTATIONS)
    turns = (turned[numbers] * offered[:, None]).astype(np.int64)
    drawn = np.concatenate([right[:, None], (right[:, None] + turns) % offered[:, None]], axis=1)
    scores = _most_frequent(drawn, folds_of(clusters))
    most = int(np.bincount(right).argmax())
    return Measured(
        kind=_PRIORS,
        measure=_RIGHT,
        ids=tuple(ids),
        clusters=tuple(clusters),
        scores=scores[:, 0],
        null=scores[:, 1:].mean(axis=0),
        evidence=f"choice {most + 1} is right in {int((right == most).sum())} of {len(ids)} questions",
        chance=float((1 / offered).mean()),
    )


def free_prior(
    ids: Sequence[str], clusters: Sequence[str], answers: Sequence[str], formats: Sequence[str] | None = None
) -> Measured | None:
    """Measure how often the most frequent free answer is right; with `formats`, the most frequent one of its format,
    such as `2` of all whole numbers. A question often tells the format of its answer.

    The null has it right in one question of twenty. It draws as many questions as would be independent: the questions
    of a document are often not answerable together.
    """
    if not has_enough(clusters):
        return None
    # Not np.unique: its array of texts has as many characters for each as the longest one, and drops NULs at the end.
    folded = [answer.casefold() for answer in answers]
    number_of = {answer: number for number, answer in enumerate(sorted(set(folded)))}
    numbers = np.array([number_of[answer] for answer in folded], dtype=np.int64)
    forms, form_of = np.unique(formats or [""] * len(answers), return_inverse=True)
    folds, scores = folds_of(clusters), np.zeros(len(ids))
    for form in range(len(forms)):
        own = form_of == form
        scores[own] = _most_frequent(numbers[own][:, None], folds[own])[:, 0]
    kind, evidence = _PRIORS, ""
    if formats is None:
        usual, times = Counter(answers).most_common(1)[0]
        evidence = f"the most frequent answer is {usual[:40]!r}, in {times} of {len(ids)} questions"
    else:
        (form_name, usual), times = Counter(zip(formats, answers, strict=True)).most_common(1)[0]
        kind, of_form = "answer from its format", formats.count(form_name)
        evidence = f"of the {of_form} answers of the format {form_name}, {times} are {usual[:40]!r}"
    n = min(_MAX_DRAWN, max(1, round(effective_number(scores, clusters))))
    return Measured(
        kind=kind,
        measure=_RIGHT,
        ids=tuple(ids),
        clusters=tuple(clusters),
        scores=scores,
        null=_null_of_free(numbers, form_of, sorted(set(clusters)), n),
        evidence=evidence,
        chance=0.0,
    )


def _most_frequent(drawn: Ints, folds: Ints) -> Floats:
    """Return whether the most frequent answer of the other folds is right: a row for each question. Where the other
    folds have no question, nothing is guessed.
    """
    scores = np.zeros(drawn.shape)
    most = int(drawn.max()) + 1
    for fold in range(FOLDS):
        tested = folds == fold
        if not tested.all():
            counts = np.stack([(drawn[~tested] == answer).sum(axis=0) for answer in range(most)])
            scores[tested] = drawn[tested] == counts.argmax(axis=0)
    return scores


def _null_of_free(answers: Ints, formats: Ints, clusters: Sequence[str], n: int) -> Floats:
    """Return the mean score of each draw of n answers in which one of twenty is right at most.

    The frequent answers of the file are drawn again, each as often as in the file if that is tolerable, and the most
    frequent one of the other folds is guessed. Where many answers are about equally frequent, one of them is always
    more frequent than the others by chance.
    """
    # The shares of the most frequent answers, so that the most frequent ones of all formats are right in one question
    # of twenty at most.
    frequent = [
        np.sort(np.bincount(answers[formats == form]))[::-1][:_CANDIDATES] / len(formats)
        for form in range(int(formats.max()) + 1)
    ]
    limit = min(1.0, TOLERATED / sum(shares.max() for shares in frequent))
    shares = np.concatenate([np.minimum(of_form, of_form.max() * limit) for of_form in frequent])
    form_of = np.repeat(np.arange(len(frequent)), [len(of_form) for of_form in frequent])
    rest = len(shares)
    where = uniforms(PERMUTATIONS * n, "free prior", *clusters)
    drawn = np.searchsorted(np.cumsum(shares), where, "right").reshape(n, -1)
    draws, times = np.arange(PERMUTATIONS), np.empty((FOLDS, rest + 1, PERMUTATIONS), dtype=np.int64)
    for fold in range(FOLDS):
        cells = drawn[fold::FOLDS] * PERMUTATIONS + draws
        times[fold] = np.bincount(cells.ravel(), minlength=(rest + 1) * PERMUTATIONS).reshape(rest + 1, -1)
    others, right = times.sum(axis=0) - times, np.zeros(PERMUTATIONS)
    for form in range(len(frequent)):
        own = np.flatnonzero(form_of == form)
        guessed = own[others[:, own].argmax(axis=1)]
        right += np.take_along_axis(times, guessed[:, None], axis=1).sum(axis=(0, 1))
    return right / n


# ---- Gold among the units of its context

MAX_CANDIDATES = 64
"""The maximum number of units of a context that are compared: gold, and others that are drawn."""
MAX_GROUPS = 1500
"""The maximum number of questions of a dataset that are compared."""
_EQUAL = 1e-9
"""The difference below which two values are equal."""
_FORMS = (("more", "less"), ("high in rank", "low in rank"), ("rare", "usual"), ("extreme", "medium"))
"""How gold differs by a feature in each of its four forms, if it has more of the form and if it has less."""


@dataclass(frozen=True, slots=True)
class Group:
    """Candidates of one question, among which some are gold."""

    id: str
    cluster: str
    golds: tuple[str, ...]
    """The gold candidates: paths of images, or digests of texts. A gold is compared once in a dataset; otherwise it
    would be learned by heart from a question in one fold and found again in another."""
    features: Floats
    """A row of numbers for each candidate."""
    is_gold: tuple[bool, ...]
    """Which of them are gold."""
    units: tuple[int, ...] = ()
    """A number for each candidate, the same wherever it stands; empty if no candidate stands in several contexts."""


@dataclass(slots=True)
class Groups:
    """The groups of a dataset that are compared: no gold twice, and so few that they fit in memory."""

    kept: list[Group] = field(default_factory=list)
    _seen: set[str] = field(default_factory=set)

    def add(self, group: Group) -> None:
        """Keep a group that has gold and others, unless it shares a gold with an earlier one."""
        is_mixed = any(group.is_gold) and not all(group.is_gold)
        if is_mixed and len(self.kept) < MAX_GROUPS and self._seen.isdisjoint(group.golds):
            self.kept.append(group)
            self._seen.update(group.golds)


def find_golds(kind: str, names: Sequence[str], groups: Sequence[Group]) -> Measured | None:
    """Measure how well features tell gold from the other candidates of its context; None if there are too few clusters,
    or if no feature differs within a context.

    A regression learns from other clusters which features gold has, compared with the other units of its context. The
    score of a question is the share of the other units that gold outranks: one half if nothing tells. The null draws
    another unit of each context as gold and learns again.
    """
    once = Groups()
    for group in groups:
        once.add(group)
    kept, compared = _each_unit_once(once.kept)
    clusters = [group.cluster for group in kept]
    if not has_enough(clusters):
        return None
    differs = np.any([forms.any(axis=0) for forms in compared], axis=0)
    if not differs.any():
        return None
    compared = [forms[:, differs] for forms in compared]
    drawn, folds = [_drawn_golds(group) for group in kept], folds_of(clusters)
    scores = np.full((len(kept), PERMUTATIONS + 1), 0.5)
    for fold in range(FOLDS):
        weights = _weights(compared, drawn, folds != fold)
        for number in np.flatnonzero(folds == fold).tolist():
            scores[number] = _outranked(compared[number] @ weights, drawn[number])
    if np.ptp(scores) < 1e-9:
        return None
    # A weight is for one standard deviation, so that forms with other units can be compared.
    weights = _weights(compared, drawn, np.ones(len(kept), dtype=bool))[:, 0] * np.concatenate(compared).std(axis=0)
    features = [form_and_name for form_and_name, tells in zip(product(_FORMS, names), differs, strict=True) if tells]
    told: dict[str, str] = {}  # each feature is named once
    for at in sorted(range(len(features)), key=lambda at: (-abs(weights[at]), at)):
        (more, less), name = features[at]
        told.setdefault(name, f"{name} ({more if weights[at] > 0 else less})")
    return Measured(
        kind=kind,
        measure="units of the context that gold outranks",
        ids=tuple(group.id for group in kept),
        clusters=tuple(clusters),
        scores=scores[:, 0],
        null=scores[:, 1:].mean(axis=0),
        evidence=f"gold differs by {', '.join(list(told.values())[:3])}",
        chance=0.5,
    )


def _each_unit_once(groups: Sequence[Group]) -> tuple[list[Group], list[Floats]]:
    """Return groups whose candidates stand in contexts of one cluster alone, and the features of these candidates; a
    candidate of several clusters is left to one of them: that of which it is gold, or else the one with the fewest
    candidates so far.

    Where distractors stand in many contexts, there are few of them, and golds differ from these few by chance. The null
    takes gold from the same few, so it does not spread as much.
    """
    shown: dict[int, dict[str, None]] = {}
    owner: dict[int, str] = {}
    for group in groups:
        for unit, is_gold in zip(group.units, group.is_gold, strict=False):
            shown.setdefault(unit, {})[group.cluster] = None
            if is_gold:
                owner.setdefault(unit, group.cluster)
    left: Counter[str] = Counter()
    for unit in sorted(shown):  # the numbers are digests, so their order is drawn
        if unit not in owner:
            owner[unit] = min(shown[unit], key=lambda cluster: (left[cluster], cluster))
            left[owner[unit]] += 1
    kept, compared = list[Group](), list[Floats]()
    for group in groups:
        stays = np.array([owner.get(unit, group.cluster) == group.cluster for unit in group.units], dtype=bool)
        stays = stays | np.array(group.is_gold) if group.units else np.ones(len(group.is_gold), dtype=bool)
        golds = tuple(np.array(group.is_gold)[stays].tolist())
        if not all(golds):
            forms = _compared(group.features)[stays]
            kept.append(replace(group, features=group.features[stays], is_gold=golds, units=()))
            compared.append(forms - forms.mean(axis=0))
    return kept, compared


def _compared(features: Floats) -> Floats:
    """Return features in four forms, each centred in its context: the value in standard deviations, the rank, how rare
    the value is, and how far the rank is from the middle.
    """
    spread = features.std(axis=0)
    value = (features - features.mean(axis=0)) / np.where(spread > 0, spread, 1)
    rank, rarity = np.empty_like(features), np.empty_like(features)
    for column in range(features.shape[1]):
        _, inverse, counts = np.unique(features[:, column], return_inverse=True, return_counts=True)
        below = np.cumsum(counts) - counts
        rank[:, column] = (below + (counts - 1) / 2)[inverse] / max(1, len(features) - 1)
        rarity[:, column] = 1 / counts[inverse]
    rank -= rank.mean(axis=0)
    extreme = np.abs(rank)
    forms = np.clip(value, -4, 4), rank, rarity - rarity.mean(axis=0), extreme - extreme.mean(axis=0)
    found: Floats = np.concatenate(forms, axis=1)
    return found


def _drawn_golds(group: Group) -> Ints:
    """Return the places of gold: a row for the real one and for each draw of the null, a column for each gold.

    Groups of a cluster with gold at the same place have the same draws. Otherwise, several questions about one thing
    that offer the same choices would count as several independent ones.
    """
    real = np.flatnonzero(np.array(group.is_gold))
    n = len(group.is_gold)
    of_all = uniforms(PERMUTATIONS * n, "gold", group.cluster, n, *real.tolist()).reshape(PERMUTATIONS, -1)
    drawn = np.argpartition(of_all, len(real) - 1, axis=1)[:, : len(real)]
    return np.concatenate([real[None, :], drawn])


def _weights(compared: Sequence[Floats], drawn: Sequence[Ints], learned: Flags) -> Floats:
    """Return the weights of the features for the real golds and for each draw: a column for each.

    It is a ridge regression of 96,000 candidates at most on 1,000 targets, each nearly all 0. The sums over golds are
    formed directly, since a table of all targets would take 770 MB.
    """
    width = compared[0].shape[1]
    products, sums = np.zeros((width, width)), np.zeros((width, len(drawn[0])))
    for number in np.flatnonzero(learned).tolist():
        products += compared[number].T @ compared[number] / len(compared[number])
        sums += compared[number][drawn[number]].mean(axis=1).T
    penalty = _RIDGE * max(np.trace(products) / width, 1e-9)
    found: Floats = np.linalg.solve(products + penalty * np.eye(width), sums)
    return found


def _outranked(given: Floats, drawn: Ints) -> Floats:
    """Return the share of the other candidates of a context that gold outranks, for each draw of the golds.

    `given` has a row for each candidate and a column for each draw; `drawn` has a row of places of gold for each draw.
    """
    draws, golds = np.arange(len(drawn)), drawn.shape[1]
    of_golds = np.zeros(len(drawn))
    for place in range(golds):
        own = given[drawn[:, place], draws]
        below = np.count_nonzero(given < own - _EQUAL, axis=0)
        of_golds += (below + np.count_nonzero(given <= own + _EQUAL, axis=0)) / 2
    inner = golds * golds / 2  # what the golds have over one another and themselves
    found: Floats = np.clip((of_golds - inner) / (golds * (len(given) - golds)), 0, 1)
    return found
