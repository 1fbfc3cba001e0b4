"""Whether the places at which needles are requested are balanced: whether each question stands at all of them, and
whether they tell the answer.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from mmlongbench.shortcuts.counted import Count
from mmlongbench.shortcuts.features import table
from mmlongbench.shortcuts.findings import Finding
from mmlongbench.shortcuts.guesses import guess_answers, scaled
from mmlongbench.shortcuts.measured import Measured
from mmlongbench.shortcuts.priors import offered_prior
from mmlongbench.shortcuts.reading import AskedQuestion

UNEVEN = "question that lacks a placement"


def measure_depths(
    ids: Sequence[str], clusters: Sequence[str], answers: Sequence[str], placements: Sequence[Sequence[float]]
) -> Iterator[Measured | None]:
    """Yield what the requested placements of a question tell about its answer; if each question has one placement, also
    how often the most frequent one is right. If all questions have the same placements, nothing is yielded.
    """
    known = sorted({each for found in placements for each in found})
    if len(known) < 2 or len({tuple(sorted(each)) for each in placements}) < 2:
        return
    rows = table([tuple(float(found.count(each)) for each in known) for found in map(list, placements)])
    evidence = "the placements at which a question stands"
    yield guess_answers("answer from requested placements", ids, clusters, answers, scaled(rows), evidence)
    if any(len(each) != 1 for each in placements):
        return
    measured = offered_prior(ids, clusters, [(known.index(each[0]), len(known)) for each in placements])
    if measured:
        usual, times = Counter(each[0] for each in placements).most_common(1)[0]
        yield replace(
            measured,
            kind="requested placement from priors",
            measure="placements guessed right",
            evidence=f"placement {usual:g} is requested for {times} of {len(ids)} questions",
        )


class Depths:
    """Looks for questions that do not stand at all placements at which others stand, in one dataset."""

    def __init__(self, dataset: str) -> None:
        """`dataset` is its name."""
        self._dataset = dataset
        self._asked: list[AskedQuestion] = []

    def add(self, asked: AskedQuestion) -> None:
        """Look at one question."""
        if asked.placements:
            self._asked.append(asked.without_context())

    def findings(self) -> Iterator[Finding]:
        """Yield what was found; nothing if no question stands at several placements."""
        known = {each for asked in self._asked for each in asked.placements}
        if len(known) < 2 or all(len(asked.placements) == 1 for asked in self._asked):
            return
        count = Count(UNEVEN, "questions that do not stand at all placements")
        for asked in self._asked:
            count.attempt(asked)
            if lacking := sorted(known - set(asked.placements)):
                count.hit(asked, f"lacks placement {', '.join(f'{each:g}' for each in lacking)}")
        yield count.finding(self._dataset)
