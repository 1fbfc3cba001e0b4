"""Answers that stand where they should not: in another question, in a distractor, or twice in a context.

Texts are compared by `wording`, which shares no code with the search for negatives: this audit is a second opinion of
that filter.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from mmlongbench.draws import Draws
from mmlongbench.likeness import digest_of, letters, words
from mmlongbench.shortcuts.counted import Count, most_hits
from mmlongbench.shortcuts.findings import Finding
from mmlongbench.shortcuts.reading import AskedQuestion, ShownUnit

LETTERS = 4
"""The fewest letters of an answer that is looked for; shorter ones, and numbers, stand anywhere."""
_LONGEST = 20
"""The most words of an answer that is looked for; longer ones are summaries."""
_EXCHANGES = 199
"""How often the answers are exchanged between clusters, to find how often an answer stands somewhere by chance."""
_STRANGERS = 19
"""How many answers of other questions are looked for in each context, for the same reason."""
_LEAST = 5
"""The fewest words of a needle inside a text that is looked for elsewhere."""
OTHER_QUESTION = "answer in another question"
NEGATIVE = "answer in a negative"
REST = "answer in the rest of the context"
TWICE = "gold text twice in its context"


@dataclass(frozen=True, slots=True)
class Searched:
    """A question, and the answers that are looked for, in the form of `words`."""

    asked: AskedQuestion
    answers: tuple[str, ...]
    text: str
    """The words of the question."""


def searched(asked: AskedQuestion) -> Searched:
    """Return a question with the answers that are looked for: free ones, of at least four letters."""
    answers = [words(each) for each in asked.answers if letters(each) >= LETTERS] if asked.choices is None else []
    kept = [each for each in answers if 2 <= each.count(" ") <= _LONGEST + 1]
    return Searched(asked.without_context(), tuple(dict.fromkeys(kept)), words(asked.question))


def in_other_questions(dataset: str, questions: Sequence[Searched]) -> Finding | None:
    """Return how often the answer of a question stands in another question about the same thing; None if no question
    can be tried.

    Chance is how often the answers of other clusters stand there. A question about something else is not compared: a
    reader could not know that its words are an answer.
    """
    groups: dict[str, list[Searched]] = {}
    for each in questions:
        groups.setdefault(each.asked.cluster, []).append(each)
    several = {name: group for name, group in groups.items() if len({each.text for each in group} - {""}) > 1}
    count = Count(OTHER_QUESTION, "answers that stand in another question about the same thing")
    for group in several.values():
        for each in group:
            if each.answers:
                count.attempt(each.asked)
                if found := _stands(each, each.answers, group):
                    count.hit(each.asked, found)
    if not count.tried:
        return None
    by_chance = sorted(_exchanged(dataset, several))
    notes = [] if by_chance else ["chance is unknown: all questions with an answer in words are about one thing"]
    expected = sum(by_chance) / len(by_chance) / count.tried if by_chance else 0.0
    most = by_chance[int(0.95 * len(by_chance))] if by_chance else count.tried
    return count.finding(dataset, expected, most, notes)


def _stands(own: Searched, answers: Iterable[str], group: Iterable[Searched]) -> str:
    """Return which of some answers stands in another question of the group, in words; empty if none does."""
    others = [each for each in group if each.text and each.text != own.text and each.asked.id != own.asked.id]
    for answer in answers:
        for other in others:
            if answer in other.text:
                return f"{answer.strip()!r} stands in {other.asked.id}: {other.asked.question!r:.80}"
    return ""


def _exchanged(dataset: str, groups: Mapping[str, list[Searched]]) -> list[int]:
    """Return how many answers stand in other questions, each time after exchanging the answers between clusters."""
    names = sorted(name for name, group in groups.items() if any(each.answers for each in group))
    if len(names) < 2:
        return []
    draws, found = Draws(("shortcuts", OTHER_QUESTION, dataset)), []
    for number in range(_EXCHANGES):
        order = draws.order(f"exchange {number}", names)
        givers = dict(zip(order, [*order[1:], order[0]], strict=True))  # no cluster keeps its answers
        hits = 0
        for name in names:
            given = [each.answers for each in groups[givers[name]] if each.answers]
            asking = [each for each in groups[name] if each.answers]
            hits += sum(bool(_stands(own, given[n % len(given)], groups[name])) for n, own in enumerate(asking))
        found.append(hits)
    return found


class Leakage:
    """Looks for answers where they should not stand, in the questions of one dataset.

    A negative was drawn because it does not have the answer, so one that has it is a leak. Chance for other units, such
    as padding, is how often the answers of other subjects stand there; these are drawn from the questions that were
    added before. Pages of the document that a question is about are not searched: a document may say a thing twice.
    """

    def __init__(self, dataset: str) -> None:
        """`dataset` is its name."""
        self._dataset = dataset
        self._questions: list[Searched] = []
        self._strangers: list[Searched] = []
        self._negative = Count(NEGATIVE, "contexts with the answer in a negative")
        self._rest = Count(REST, "contexts with the answer in a unit that is no gold")
        self._twice = Count(TWICE, "contexts with a gold text twice")
        self._by_chance: list[float] = []
        """For each context that was compared: the share of strange answers that stand in it."""

    def add(self, asked: AskedQuestion) -> None:
        """Look at one question with its context; of these, only the question and its answers are kept."""
        own = searched(asked)
        _try_repeats(self._twice, asked)
        if own.answers:
            self._try_answers(asked, own)
            self._strangers.append(own)
        self._questions.append(own)

    def findings(self) -> Iterator[Finding]:
        """Yield what was found."""
        if finding := in_other_questions(self._dataset, self._questions):
            yield finding
        if self._negative.tried:
            yield self._negative.finding(self._dataset)
        if self._by_chance:
            chance = sum(self._by_chance) / len(self._by_chance)
            yield self._rest.finding(self._dataset, chance, self._most_by_chance(chance))
        if self._twice.tried:
            yield self._twice.finding(self._dataset)

    def _most_by_chance(self, chance: float) -> int:
        """Return how many contexts with their answer are no finding: more are there in one of 100 files by chance. In a
        file of few questions, chance is an estimate from few answers, so it may be higher.
        """
        known = len(self._strangers)
        return most_hits(self._rest.tried, (chance * known + 1) / (known + 2), 0.01)

    def _try_answers(self, asked: AskedQuestion, own: Searched) -> None:
        others = [
            unit for unit in asked.units if not unit.is_gold and unit.role not in ("own", "exemplar") and unit.texts
        ]
        negatives = [unit for unit in others if unit.role == "negative"]
        rest = [unit for unit in others if unit.role != "negative"]
        if negatives:
            self._negative.attempt(asked)
            if found := _stands_in(own.answers, negatives):
                self._negative.hit(asked, found)
        if not rest:
            return
        self._rest.attempt(asked)
        text = "\n".join(words(unit.text) for unit in rest)
        if any(answer in text for answer in own.answers):
            self._rest.hit(asked, _stands_in(own.answers, rest))
        if drawn := self._drawn(own):
            there = sum(any(answer in text for answer in each.answers) for each in drawn)
            self._by_chance.append(there / len(drawn))

    def _drawn(self, own: Searched) -> list[Searched]:
        """Return drawn questions about other subjects. They may have the answers of this question: without them, chance
        would be too low for an answer that many questions have.
        """
        draws = Draws(("shortcuts", REST, self._dataset, own.asked.id))
        found, last = list[Searched](), len(self._strangers) - 1
        for number in range(4 * _STRANGERS if last >= 0 else 0):
            other = self._strangers[draws.integer(f"stranger {number}", 0, last)]
            if other.asked.cluster != own.asked.cluster:
                found.append(other)
            if len(found) == _STRANGERS:
                break
        return found


def _stands_in(answers: Iterable[str], units: Iterable[ShownUnit]) -> str:
    """Return which of some answers stands in one of some units, in words; empty if none does."""
    wanted = tuple(answers)
    for unit in units:
        text = words(unit.text)
        for answer in wanted:
            if (at := text.find(answer)) >= 0:
                return f"{answer.strip()!r} stands in a unit ({unit.role or 'unknown role'}): {_around(text, at)!r}"
    return ""


def _around(text: str, at: int) -> str:
    return text[max(0, at - 30) : at + 60].strip()


def _try_repeats(count: Count, asked: AskedQuestion) -> None:
    """Look for a text that is the same as a gold, and for a needle that stands in another text."""
    golds = [
        (n, digest_of(unit.passage))
        for n, unit in enumerate(asked.units)
        if unit.is_gold and not unit.is_evidence and unit.texts
    ]
    golds = [(n, digest) for n, digest in golds if digest]
    if not golds:
        return
    count.attempt(asked)
    there: dict[bytes, list[int]] = {}
    for number, unit in enumerate(asked.units):
        if unit.texts:
            there.setdefault(digest_of(unit.passage), []).append(number)
    again = next((n for n, digest in golds if len(there[digest]) > 1), None)
    if again is not None:
        count.hit(asked, f"a gold text is there twice: {asked.units[again].passage!r:.60}")
    inside = [words(part) for part in asked.needles if isinstance(part, str) and words(part).count(" ") > _LEAST]
    if found := _stands_in(inside, [unit for unit in asked.units if not unit.is_gold and unit.texts]):
        count.hit(asked, found)
