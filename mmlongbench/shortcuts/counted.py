"""Findings that are counted, not estimated: a single case is a leak, if chance does not explain it.

`Leakage` looks for answers where they should not stand, `Overlap` for what is there twice, and `Depths` for questions
that lack a placement. Each looks at one question after another and keeps little of it.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from mmlongbench.draws import Draws
from mmlongbench.likeness import (
    Look,
    NearIndex,
    Pictures,
    digest_of,
    is_same_wording,
    letters,
    missing,
    words,
)
from mmlongbench.prompt import Image, needle_parts
from mmlongbench.shortcuts.findings import MIN_SUBJECTS, TOLERATED, Finding, Verdict
from mmlongbench.shortcuts.reading import AskedQuestion, ShownUnit
from mmlongbench.shortcuts.tenths import TENTHS
from mmlongbench.statistics import wilson


@dataclass(slots=True)
class Count:
    """What is counted about the questions of one dataset: which were tried, and which of them were hit."""

    kind: str
    measure: str
    file: str = ""
    tried: int = 0
    clusters: set[str] = field(default_factory=set)
    hits: dict[str, str] = field(default_factory=dict)
    """What was found, in words, by the id of the question."""
    carriers: set[str] = field(default_factory=set)
    """The ids of the hit questions without which nothing would be found."""

    def attempt(self, asked: AskedQuestion) -> None:
        """Count a question as tried."""
        self.file = asked.file
        self.tried += 1
        self.clusters.add(asked.cluster)

    def hit(self, asked: AskedQuestion, what: str, *, is_first: bool = False) -> None:
        """Keep what was found about a question; the first thing found is kept.

        `is_first` says that the question is the first of several that are the same: only the others must go.
        """
        self.hits.setdefault(asked.id, what)
        if not is_first:
            self.carriers.add(asked.id)

    def finding(self, dataset: str, chance: float = 0.0, at_chance: int = 0, notes: Iterable[str] = ()) -> Finding:
        """Return the finding. `chance` is the share that is expected if nothing tells, `at_chance` the largest number
        of hits that chance still explains.
        """
        found = len(self.hits) / self.tried if self.tried else 0.0
        low, high = (end - chance for end in wilson(found, self.tried))
        verdict: Verdict = "clean" if high < TOLERATED else "undecided"
        if len(self.hits) > at_chance and low > 0:
            verdict = "leak"
        first = [f"{id}: {what}" for id, what in list(self.hits.items())[:3]]
        more = [f"and {len(self.hits) - 3} more"] if len(self.hits) > 3 else []
        return Finding(
            dataset=dataset,
            file=self.file,
            kind=self.kind,
            verdict=verdict,
            questions=self.tried,
            clusters=len(self.clusters),
            measure=self.measure,
            found=found,
            chance=chance,
            low=low,
            high=high,
            p=None,
            smallest=None,
            needed=None,
            evidence="; ".join([*(first or ["nothing was found"]), *more, *notes]),
            examples=tuple(list(self.hits)[:10]),
            carriers=tuple(id for id in self.hits if id in self.carriers),
        )


def findings_of(counts: Iterable[Count], dataset: str, notes: Mapping[str, str] | None = None) -> list[Finding]:
    """Return the findings of all counts that tried something; `notes` are more words for the evidence, by kind."""
    said = notes or {}
    return [
        count.finding(dataset, notes=[said[count.kind]] if count.kind in said else ())
        for count in counts
        if count.tried
    ]


# ---- Answers in another question, in a negative, in the rest of a context; gold texts that stand twice

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
TEXT_TWICE = "gold text twice in its context"


@dataclass(frozen=True, slots=True)
class Searched:
    """A question without its context, and the answers that are looked for, in the form of `words`."""

    asked: AskedQuestion
    answers: tuple[str, ...]
    text: str
    """The words of the question."""

    @classmethod
    def of(cls, asked: AskedQuestion) -> "Searched":
        """Take the free answers of at least four letters."""
        answers = [words(answer) for answer in asked.answers if letters(answer) >= LETTERS] if not asked.choices else []
        kept = [answer for answer in answers if 2 <= answer.count(" ") <= _LONGEST + 1]
        return cls(asked.without_context(), tuple(dict.fromkeys(kept)), words(asked.question))


def in_other_questions(dataset: str, questions: Sequence[Searched]) -> Finding | None:
    """Return how often the answer of a question stands in another question about the same thing; None if no question
    can be tried.

    Chance is how often the answers of other clusters stand there. A question about something else is not compared: a
    reader could not know that its words are an answer.
    """
    groups: dict[str, list[Searched]] = {}
    for question in questions:
        groups.setdefault(question.asked.cluster, []).append(question)
    groups = {name: group for name, group in groups.items() if len({each.text for each in group} - {""}) > 1}
    count = Count(OTHER_QUESTION, "answers that stand in another question about the same thing")
    for group in groups.values():
        for question in group:
            if question.answers:
                count.attempt(question.asked)
                if found := _stands(question, question.answers, group):
                    count.hit(question.asked, found)
    if not count.tried:
        return None
    # How many answers stand in other questions, each time after exchanging the answers between clusters.
    names = sorted(name for name, group in groups.items() if any(each.answers for each in group))
    draws, by_chance = Draws(("shortcuts", OTHER_QUESTION, dataset)), list[int]()
    for number in range(_EXCHANGES if len(names) > 1 else 0):
        order = draws.order(f"exchange {number}", names)
        givers = dict(zip(order, [*order[1:], order[0]], strict=True))  # no cluster keeps its answers
        hits = 0
        for name in names:
            given = [each.answers for each in groups[givers[name]] if each.answers]
            asking = [each for each in groups[name] if each.answers]
            hits += sum(bool(_stands(own, given[n % len(given)], groups[name])) for n, own in enumerate(asking))
        by_chance.append(hits)
    if not by_chance:
        note = "chance is unknown: all questions with an answer in words are about one thing"
        return count.finding(dataset, 0.0, count.tried, [note])
    expected = sum(by_chance) / len(by_chance) / count.tried
    return count.finding(dataset, expected, sorted(by_chance)[int(0.95 * len(by_chance))])


def _stands(own: Searched, answers: Iterable[str], group: Iterable[Searched]) -> str:
    """Return which of some answers stands in another question of the group, in words; empty if none does."""
    others = [each for each in group if each.text and each.text != own.text and each.asked.id != own.asked.id]
    for answer in answers:
        for other in others:
            if answer in other.text:
                return f"{answer.strip()!r} stands in {other.asked.id}: {other.asked.question!r:.80}"
    return ""


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
        self._twice = Count(TEXT_TWICE, "contexts with a gold text twice")
        self._by_chance: list[float] = []
        """For each context that was compared: the share of strange answers that stand in it."""

    def add(self, asked: AskedQuestion) -> None:
        """Look at one question with its context; of these, only the question and its answers are kept."""
        own = Searched.of(asked)
        self._try_repeats(asked)
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
            try:
                from scipy.stats import binom
            except ModuleNotFoundError as error:
                raise missing("scipy", "a search for answers") from error
            # More contexts have their answer in one of 100 files by chance. In a file of few questions, chance is an
            # estimate from few answers, so it may be higher.
            chance, known = sum(self._by_chance) / len(self._by_chance), len(self._strangers)
            most = int(binom.isf(0.01, self._rest.tried, (chance * known + 1) / (known + 2)))
            yield self._rest.finding(self._dataset, chance, most)
        if self._twice.tried:
            yield self._twice.finding(self._dataset)

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
        # Drawn questions about other subjects. They may have the answers of this question: without them, chance would
        # be too low for an answer that many questions have.
        draws = Draws(("shortcuts", REST, self._dataset, own.asked.id))
        drawn, last = list[Searched](), len(self._strangers) - 1
        for number in range(4 * _STRANGERS if last >= 0 else 0):
            other = self._strangers[draws.integer(f"stranger {number}", 0, last)]
            if other.asked.cluster != own.asked.cluster:
                drawn.append(other)
            if len(drawn) == _STRANGERS:
                break
        if drawn:
            there = sum(any(answer in text for answer in other.answers) for other in drawn)
            self._by_chance.append(there / len(drawn))

    def _try_repeats(self, asked: AskedQuestion) -> None:
        """Look for a text that is the same as a gold, and for a needle that stands in another text."""
        passages = [(n, unit) for n, unit in enumerate(asked.units) if unit.texts]
        keys = {n: (digest_of(unit.passage), unit.images) for n, unit in passages}  # a caption may have many pictures
        golds = [n for n, unit in passages if unit.is_gold and not unit.is_evidence and keys[n][0]]
        if not golds:
            return
        self._twice.attempt(asked)
        there = Counter(keys.values())
        again = next((n for n in golds if there[keys[n]] > 1), None)
        if again is not None:
            self._twice.hit(asked, f"a gold text is there twice: {asked.units[again].passage!r:.60}")
        needles = (part for parts in map(needle_parts, asked.needles) if len(parts) == 1 for part in parts)
        inside = [words(part) for part in needles if isinstance(part, str)]
        inside = [text for text in inside if text.count(" ") > _LEAST]
        if found := _stands_in(inside, [unit for unit in asked.units if not unit.is_gold and unit.texts]):
            self._twice.hit(asked, found)


def _stands_in(answers: Sequence[str], units: Iterable[ShownUnit]) -> str:
    """Return which of some answers stands in one of some units, in words; empty if none does."""
    for unit in units:
        text = words(unit.text)
        for answer in answers:
            if (at := text.find(answer)) >= 0:
                around = text[max(0, at - 30) : at + 60].strip()
                return f"{answer.strip()!r} stands in a unit ({unit.role or 'unknown role'}): {around!r}"
    return ""


# ---- Questions, pictures and pages that are there twice

_MAX_COMPARED = 200
"""The most questions about one thing that a question is compared with by resemblance; equal words are always found."""
ASKED_TWICE = "question asked twice"
ASKED_WITH = "picture of the question in its context"
GOLD = "gold picture twice in its context"
OFFERED = "choice offered twice"
SHARED = "gold page under two subjects"
_FEWEST_WORDS = 20
"""The fewest words of a page that is compared as a text; pages with fewer, such as titles of parts, are equal by
chance."""


class Overlap:
    """Looks for what is there twice in the questions of one dataset. What is kept of a question is small: its words,
    and the digests of the pictures and passages that hold its answer.
    """

    def __init__(self, dataset: str, pictures: Pictures, *, may_repeat: bool = False) -> None:
        """`pictures` says what the pictures of the release look like. If those of a context may repeat, as in a film,
        a gold picture that is there twice is no finding.
        """
        self._dataset, self._pictures, self._may_repeat = dataset, pictures, may_repeat
        self._twice = Count(ASKED_TWICE, "questions with the words of another one, and its subject or another answer")
        self._asked_with = Count(ASKED_WITH, "questions whose own picture is also in the context")
        self._golds = Count(GOLD, "contexts that show a gold picture twice")
        self._offered = Count(OFFERED, "questions that offer a choice twice")
        self._shared = Count(SHARED, "questions with a gold page that is a gold page of another subject")
        self._earlier: dict[str, dict[bytes, AskedQuestion]] = {}
        """By subject, which may be empty: a question for each wording."""
        self._index = NearIndex()
        self._owners: dict[str | bytes, AskedQuestion] = {}
        """The first question about each gold page, by the digest of its picture or text."""

    def add(self, asked: AskedQuestion) -> None:
        """Look at one question with its context; raises ReleaseError for a damaged picture or a missing package."""
        self._try_question(asked)
        self._try_pages(asked)
        offered = asked.choices.offered if asked.choices else ()
        if len(offered) > 1:  # a text or picture that is offered twice: neither can be right, or both are
            self._offered.attempt(asked)
            for at, choice in enumerate(offered):
                if isinstance(choice, Image):
                    earlier = [part.path for part in offered[:at] if isinstance(part, Image)]
                    if found := self._first_near(choice.path, earlier):
                        self._offered.hit(asked, f"{choice.path} is again {found}")
                elif _folded(choice) in [_folded(part) for part in offered[:at] if isinstance(part, str)]:
                    self._offered.hit(asked, f"offers {choice[:40]!r} twice")
        shown = [(n, path) for n, unit in enumerate(asked.units) for path in unit.images]
        if shown and asked.images:
            self._asked_with.attempt(asked)
            for own in asked.images:
                if found := self._first_near(own, [path for _, path in shown]):
                    self._asked_with.hit(asked, f"{own} is {found} of its context")
        # A page of the evidence may look like others of its document.
        golds = [(n, path) for n, path in shown if asked.units[n].is_gold and not asked.units[n].is_evidence]
        if golds and not self._may_repeat:
            self._golds.attempt(asked)
            for place, gold in golds:
                if found := self._first_near(gold, [path for n, path in shown if n != place]):
                    self._golds.hit(asked, f"{gold} is again {found}")

    def findings(self) -> Iterator[Finding]:
        """Yield what was found."""
        said = f"{len(self._pictures.uniform)} nearly uniform pictures were compared by their bytes alone"
        notes = dict.fromkeys((ASKED_WITH, GOLD), said) if self._pictures.uniform else {}
        counts = [self._twice, self._asked_with, self._golds, self._offered, self._shared]
        yield from findings_of(counts, self._dataset, notes)

    def _try_question(self, asked: AskedQuestion) -> None:
        """Look for a question among the earlier ones about the same thing, and for one with the same words and another
        answer, if texts of unknown subjects are all that it is about.

        Questions that offer answers, or have different answers, must have equal words: "is there a car?" and "is there
        a cat?" are two questions.
        """
        parts = [part for needle in asked.needles for part in needle_parts(needle)]
        needles = " ".join(part.path if isinstance(part, Image) else digest_of(part).hex() for part in parts)
        subject, digest = asked.subject or needles, digest_of(asked.question)
        if not subject or not digest:
            return
        self._twice.attempt(asked)
        earlier = self._earlier.setdefault(subject, {})
        if digest in earlier:
            like = [earlier[digest]]
        else:
            like = [
                other
                for other in islice(earlier.values(), _MAX_COMPARED)
                if asked.choices is other.choices is None
                and set(asked.answers) & set(other.answers)
                and is_same_wording(asked.question, other.question)
            ]
        for other in like:
            self._twice.hit(asked, f"has the words of {other.id}: {asked.question!r:.80}")
            self._twice.hit(other, f"has the words of {asked.id}: {other.question!r:.80}", is_first=True)
        earlier.setdefault(digest, asked.without_context())
        if asked.subject or asked.choices or asked.images or any(isinstance(part, Image) for part in parts):
            return
        first = self._earlier.setdefault("", {}).setdefault(digest, asked.without_context())
        if not set(asked.answers) & set(first.answers):  # the words do not say which one is meant
            self._twice.hit(asked, f"has the words of {first.id} and another answer: {asked.question!r:.80}")
            self._twice.hit(first, f"has the words of {asked.id} and another answer", is_first=True)

    def _try_pages(self, asked: AskedQuestion) -> None:
        """Look for a document that is there under two names: its questions are learned from each other, although they
        count as questions about two subjects.
        """
        pages = [unit for unit in asked.units if unit.is_evidence]
        if not pages or not asked.subject:
            return
        self._shared.attempt(asked)
        for page in pages:
            keys: list[str | bytes] = []  # those of all pages that look like it, or its words
            for path in page.images:
                look = self._pictures[path]
                keys += [*self._index.near(look), look.digest]
                self._index.add(look)
            if not page.images and words(page.body).count(" ") >= _FEWEST_WORDS:
                keys.append(digest_of(page.body))
            for key in keys:
                other = self._owners.setdefault(key, asked.without_context())
                if other.subject != asked.subject:
                    where = f"{page.image or page.id} is a page of {other.subject}"
                    self._shared.hit(asked, f"{where}, too (see {other.id})")
                    self._shared.hit(other, f"has a page of {asked.subject} (see {asked.id})", is_first=True)

    def _first_near(self, path: str, others: Iterable[str]) -> str:
        look: Look = self._pictures[path]
        return next((other for other in others if self._pictures[other].is_near(look)), "")


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())


# ---- Placements

UNEVEN = "question that lacks a placement"


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
        known = {placement for asked in self._asked for placement in asked.placements}
        if len(known) < 2 or all(len(asked.placements) == 1 for asked in self._asked):
            return
        count = Count(UNEVEN, "questions that do not stand at all placements")
        for asked in self._asked:
            count.attempt(asked)
            if lacking := sorted(known - set(asked.placements)):
                count.hit(asked, f"lacks placement {', '.join(f'{placement:g}' for placement in lacking)}")
        yield count.finding(self._dataset)


# ---- A tenth of a context


class Tenths:
    """Counts for one dataset how often a tenth of a context gives its answer (`tenths`).

    It is enough if it gives the answers of more than half of the questions that a guess has wrong. A drawn tenth often
    has the right majority, so what is above chance alone is no leak.
    """

    def __init__(self, dataset: str) -> None:
        self._dataset = dataset
        said = "answers that this part of the context has"
        self._counts = [Count(f"answer from {part} of its context", said) for part in TENTHS]
        self._answers: Counter[str] = Counter()
        self.untried = ""
        """Why a tenth could not be tried; empty if it could."""

    def add(self, asked: AskedQuestion) -> None:
        """Look at one question."""
        if isinstance(asked.tenths, str):
            self.untried = self.untried or asked.tenths
            return
        self._answers[asked.answer] += bool(asked.tenths)
        for count, part, is_right in zip(self._counts, TENTHS, asked.tenths, strict=False):
            count.attempt(asked)
            if is_right:
                count.hit(asked, f"{part} of its {len(asked.units)} units gives {asked.answer!r:.40}")

    def findings(self) -> Iterator[Finding]:
        """Yield a finding for each tenth; chance is how often the most frequent answer is right."""
        tried = self._answers.total()
        for count in self._counts if tried >= MIN_SUBJECTS else ():
            chance = self._answers.most_common(1)[0][1] / tried
            found, half = count.finding(self._dataset, chance), (1 - chance) / 2
            verdict: Verdict = "leak" if found.low >= half else "clean" if found.high < half else "undecided"
            yield found.model_copy(update={"verdict": verdict})
