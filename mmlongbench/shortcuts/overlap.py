"""Duplicates within a dataset: questions, the picture of a question, gold pictures, and golds of several subjects."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from mmlongbench.likeness import Look, NearIndex, Pictures, digest_of, is_same_wording, words
from mmlongbench.prompt import Image
from mmlongbench.shortcuts.counted import Count, findings_of
from mmlongbench.shortcuts.findings import Finding
from mmlongbench.shortcuts.reading import AskedQuestion, ShownUnit

_MAX_COMPARED = 200
"""The most questions about one thing that a question is compared with by resemblance; equal words are always found."""
TWICE = "question asked twice"
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

    def __init__(self, dataset: str, pictures: Pictures) -> None:
        """`pictures` says what the pictures of the release look like."""
        self._dataset, self._pictures = dataset, pictures
        self._twice = Count(TWICE, "questions with the words and the subject of another one")
        self._asked_with = Count(ASKED_WITH, "questions whose own picture is also in the context")
        self._golds = Count(GOLD, "contexts that show a gold picture twice")
        self._offered = Count(OFFERED, "questions that offer a choice twice")
        self._earlier: dict[str, dict[bytes, _Question]] = {}
        self._pages = _GoldPages(pictures)

    def add(self, asked: AskedQuestion) -> None:
        """Look at one question with its context.

        Raises:
            ReleaseError: a picture is missing or damaged, or a package is not installed.

        """
        if subject := _subject(asked):
            _try_question(self._twice, asked, self._earlier.setdefault(subject, {}))
        self._pages.add(asked)
        _try_choices(self._offered, asked, self._pictures)
        shown = [(n, path) for n, unit in enumerate(asked.units) for path in unit.images]
        if shown:
            _try_own_pictures(self._asked_with, asked, shown, self._pictures)
            _try_golds(self._golds, asked, shown, self._pictures)

    def findings(self) -> Iterator[Finding]:
        """Yield what was found."""
        said = f"{len(self._pictures.uniform)} nearly uniform pictures were compared by their bytes alone"
        notes = dict.fromkeys((ASKED_WITH, GOLD), said) if self._pictures.uniform else {}
        counts = [self._twice, self._asked_with, self._golds, self._offered, self._pages.count]
        yield from findings_of(counts, self._dataset, notes)


class _GoldPages:
    """The pages that hold answers, to find a document that is there under two names: its questions are learned from
    each other, although they count as questions about two subjects.
    """

    def __init__(self, pictures: Pictures) -> None:
        self.count = Count(SHARED, "questions with a gold page that is a gold page of another subject")
        self._pictures, self._index = pictures, NearIndex()
        self._owners: dict[str | bytes, AskedQuestion] = {}
        """The first question about each page, by the digest of its picture or text."""

    def add(self, asked: AskedQuestion) -> None:
        pages = [unit for unit in asked.units if unit.is_evidence]
        if not pages or not asked.subject:
            return
        self.count.attempt(asked)
        for page in pages:
            for key in self._keys(page):
                other = self._owners.setdefault(key, asked.without_context())
                if other.subject != asked.subject:
                    where = f"{page.image or page.id} is a page of {other.subject}"
                    self.count.hit(asked, f"{where}, too (see {other.id})")
                    self.count.hit(other, f"has a page of {asked.subject} (see {asked.id})", is_first=True)

    def _keys(self, page: ShownUnit) -> Iterator[str | bytes]:
        """Yield the keys under which a page is known: those of all pages that look like it, or its words."""
        for path in page.images:
            look = self._pictures[path]
            yield from self._index.near(look)
            self._index.add(look)
            yield look.digest
        if not page.images and words(page.body).count(" ") >= _FEWEST_WORDS:
            yield digest_of(page.body)


@dataclass(frozen=True, slots=True)
class _Question:
    """What is kept of a question to find it again."""

    asked: AskedQuestion
    digest: bytes

    def is_like(self, other: "_Question") -> bool:
        """Return whether two questions about the same thing are the same question.

        Questions that offer answers, or have different answers, must have equal words: "is there a car?" and "is there
        a cat?" are two questions.
        """
        if self.digest == other.digest:
            return True
        one, two = self.asked, other.asked
        is_comparable = one.choices is two.choices is None and set(one.answers) & set(two.answers)
        return bool(is_comparable) and is_same_wording(one.question, two.question)


def _try_question(count: Count, asked: AskedQuestion, earlier: dict[bytes, _Question]) -> None:
    """Look for a question among the earlier ones about the same thing, of which one is kept for each wording."""
    digest = digest_of(asked.question)
    if not digest:
        return
    count.attempt(asked)
    question = _Question(asked.without_context(), digest)
    equal = [earlier[digest]] if digest in earlier else []
    for other in equal or islice(earlier.values(), _MAX_COMPARED):
        if question.is_like(other):
            count.hit(asked, f"has the words of {other.asked.id}: {asked.question!r:.80}")
            count.hit(other.asked, f"has the words of {asked.id}: {other.asked.question!r:.80}", is_first=True)
    earlier.setdefault(digest, question)


def _subject(asked: AskedQuestion) -> str:
    """Return what a question is about; if its cluster is unknown, its needles."""
    needles = " ".join(part.path if isinstance(part, Image) else digest_of(part).hex() for part in asked.needles)
    return asked.subject or needles


def _try_own_pictures(count: Count, asked: AskedQuestion, shown: Sequence[tuple[int, str]], pictures: Pictures) -> None:
    """Look for the pictures that a question asks with among the units of its context."""
    if not asked.images:
        return
    count.attempt(asked)
    for own in asked.images:
        if found := _first_near(pictures[own], [path for _, path in shown], pictures):
            count.hit(asked, f"{own} is {found} of its context")


def _try_choices(count: Count, asked: AskedQuestion, pictures: Pictures) -> None:
    """Look for a text or picture that a question offers twice: neither can be right, or both are."""
    offered = asked.choices.offered if asked.choices else ()
    if len(offered) < 2:
        return
    count.attempt(asked)
    for at, choice in enumerate(offered):
        if isinstance(choice, Image):
            earlier = [each.path for each in offered[:at] if isinstance(each, Image)]
            if found := _first_near(pictures[choice.path], earlier, pictures):
                count.hit(asked, f"{choice.path} is again {found}")
        elif _folded(choice) in [_folded(each) for each in offered[:at] if isinstance(each, str)]:
            count.hit(asked, f"offers {choice[:40]!r} twice")


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())


def _try_golds(count: Count, asked: AskedQuestion, shown: Sequence[tuple[int, str]], pictures: Pictures) -> None:
    """Look for the gold pictures of a context among its other units."""
    golds = [(place, path) for place, path in shown if _is_planted(asked.units[place])]
    if not golds:
        return
    count.attempt(asked)
    for at, gold in golds:
        others = [path for place, path in shown if place != at]
        if found := _first_near(pictures[gold], others, pictures):
            count.hit(asked, f"{gold} is again {found}")


def _is_planted(unit: ShownUnit) -> bool:
    """Return whether a unit was put in to be found. A page of the evidence may look like others of its document."""
    return unit.is_gold and not unit.is_evidence


def _first_near(look: Look, others: Iterable[str], pictures: Pictures) -> str:
    return next((path for path in others if pictures[path].is_near(look)), "")
