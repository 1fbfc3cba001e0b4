"""Finds gold among the units of its own context, by features that should not tell it.

A ridge regression learns from other clusters which features gold has, compared with the other units of its context. The
score of a question is the share of the other units that gold outranks: one half if nothing tells. The null draws
another unit of each context as gold and learns again; since the regression is linear in what it learns, all 999 draws
are learned at once.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from mmlongbench.shortcuts import trees
from mmlongbench.shortcuts.measured import (
    FOLDS,
    PERMUTATIONS,
    Flags,
    Floats,
    Ints,
    Lesson,
    Measured,
    folds_of,
    has_enough,
    uniforms,
)

MAX_CANDIDATES = 64
"""The maximum number of units of a context that are compared: gold, and others that are drawn."""
MAX_GROUPS = 1500
"""The maximum number of questions of a dataset that are compared."""
_RIDGE = 0.1
"""The penalty, as a share of the mean variance of a feature."""
_EQUAL = 1e-9
"""The difference below which two values are equal."""
_FORMS = (("more", "less"), ("high in rank", "low in rank"), ("rare", "usual"), ("extreme", "medium"))
"""How gold differs by a feature in each of its four forms, if it has more of the form and if it has less."""


@dataclass(frozen=True, slots=True)
class Group:
    """Candidates of one question, among which some are gold."""

    id: str
    """The id of the question."""
    cluster: str
    """What the question is about."""
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


@dataclass(frozen=True, slots=True)
class GoldLesson(Lesson):
    """Contexts in which gold is to be found."""

    compared: tuple[Floats, ...]
    """The features of the candidates of each context, in the forms of `_compared`."""
    golds: tuple[Ints, ...]
    """The places of gold among the candidates of each context."""

    def own(self, known: Flags, asked: Flags) -> Floats:
        """Return the scores of a ridge regression."""
        drawn = [golds[None, :] for golds in self.golds]
        weights = _weights(self.compared, drawn, known)
        return np.concatenate(
            [_outranked(self.compared[n] @ weights, drawn[n]) for n in np.flatnonzero(asked).tolist()]
        )

    def other(self, known: Flags, asked: Flags) -> Floats:
        """Return the scores of decision trees."""
        learned, tried = np.flatnonzero(known).tolist(), np.flatnonzero(asked).tolist()
        values = trees.gold_values(
            [self.compared[n] for n in learned], [self.golds[n] for n in learned], [self.compared[n] for n in tried]
        )
        ranked = zip(values, tried, strict=True)
        return np.concatenate([_outranked(each[:, None], self.golds[n][None, :]) for each, n in ranked])


def find_golds(kind: str, names: Sequence[str], groups: Sequence[Group]) -> Measured | None:
    """Measure how well features tell gold from the other candidates.

    Args:
        kind: what is tried.
        names: the name of each feature.
        groups: the candidates of each question.

    Returns:
        What was measured; None if there are too few clusters, or if no feature differs within a context.

    """
    once = Groups()
    for group in groups:
        once.add(group)
    kept, compared = _each_unit_once(once.kept)
    clusters = [group.cluster for group in kept]
    if not has_enough(clusters):
        return None
    told = np.any([each.any(axis=0) for each in compared], axis=0)
    if not told.any():
        return None
    compared = [each[:, told] for each in compared]
    drawn = [_golds(group) for group in kept]
    folds = folds_of(clusters)
    scores = _scores(compared, drawn, folds)
    weights = _weights(compared, drawn, np.ones(len(kept), dtype=bool))[:, 0]
    if np.ptp(scores) < 1e-9:
        return None
    return Measured(
        kind=kind,
        measure="units of the context that gold outranks",
        ids=tuple(group.id for group in kept),
        clusters=tuple(clusters),
        scores=scores[:, 0],
        null=scores[:, 1:].mean(axis=0),
        evidence=_strongest(_features(names, told), weights * np.concatenate(compared).std(axis=0)),
        chance=0.5,
        lesson=GoldLesson(tuple(compared), tuple(each[0] for each in drawn)),
    )


def _each_unit_once(groups: Sequence[Group]) -> tuple[list[Group], list[Floats]]:
    """Return groups whose candidates stand in contexts of one cluster alone, and the features of these candidates; a
    candidate of several clusters is left to one of them.

    Where distractors stand in many contexts, there are few of them, and golds differ from these few by chance. The null
    takes gold from the same few, so it does not spread as much.
    """
    owner, kept, compared = _owners(groups), list[Group](), list[Floats]()
    for group in groups:
        stays = np.array([owner.get(unit, group.cluster) == group.cluster for unit in group.units], dtype=bool)
        stays = stays | np.array(group.is_gold) if group.units else np.ones(len(group.is_gold), dtype=bool)
        is_gold = tuple(np.array(group.is_gold)[stays].tolist())
        if not all(is_gold):
            forms = _compared(group.features)[stays]
            kept.append(replace(group, features=group.features[stays], is_gold=is_gold, units=()))
            compared.append(forms - forms.mean(axis=0))
    return kept, compared


def _owners(groups: Sequence[Group]) -> dict[int, str]:
    """Return the cluster to which each candidate of several clusters is left: that of which it is gold, or else the one
    with the fewest candidates so far.
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
    return owner


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


def _golds(group: Group) -> Ints:
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
    """Return the weights of the features for the real golds and for each draw: a column for each."""
    width = compared[0].shape[1]
    products, sums = np.zeros((width, width)), np.zeros((width, len(drawn[0])))
    for number in np.flatnonzero(learned).tolist():
        products += compared[number].T @ compared[number] / len(compared[number])
        sums += compared[number][drawn[number]].mean(axis=1).T
    penalty = _RIDGE * max(np.trace(products) / width, 1e-9)
    found: Floats = np.linalg.solve(products + penalty * np.eye(width), sums)
    return found


def _scores(compared: Sequence[Floats], drawn: Sequence[Ints], folds: Ints) -> Floats:
    """Return the score of each question (rows) for the real golds and for each draw (columns)."""
    scores = np.full((len(compared), PERMUTATIONS + 1), 0.5)
    for fold in range(FOLDS):
        weights = _weights(compared, drawn, folds != fold)
        for number in np.flatnonzero(folds == fold).tolist():
            scores[number] = _outranked(compared[number] @ weights, drawn[number])
    return scores


def _outranked(given: Floats, drawn: Ints) -> Floats:
    """Return the share of the other candidates of a context that gold outranks, for each draw of the golds.

    Args:
        given: a row for each candidate, a column for each draw.
        drawn: a row of places of gold for each draw.

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


def _features(names: Sequence[str], told: Flags) -> list[tuple[tuple[str, str], str]]:
    """Return the form and the name of each feature that differs within a context."""
    features = [(form, name) for form in _FORMS for name in names]
    return [each for each, is_told in zip(features, told, strict=True) if is_told]


def _strongest(features: Sequence[tuple[tuple[str, str], str]], weights: Floats) -> str:
    """Return the three features with the largest weights, in words; each feature is named once. A weight is for one
    standard deviation, so that forms with other units can be compared.
    """
    found: dict[str, str] = {}
    for at in sorted(range(len(features)), key=lambda at: (-abs(weights[at]), at)):
        (more, less), name = features[at]
        found.setdefault(name, f"{name} ({more if weights[at] > 0 else less})")
    return f"gold differs by {', '.join(list(found.values())[:3])}"
