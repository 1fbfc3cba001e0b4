"""Duplicates within a release, and what it shares with another release or with a folder of files."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from mmlongbench.prompt import Image
from mmlongbench.release.opened import Release
from mmlongbench.shortcuts.against import Answering, others_of
from mmlongbench.shortcuts.asked import Asked, asked_once
from mmlongbench.shortcuts.counted import Count, findings_of
from mmlongbench.shortcuts.findings import Finding
from mmlongbench.shortcuts.near import Look, Pictures
from mmlongbench.shortcuts.questions import is_same_wording
from mmlongbench.shortcuts.wording import digest_of

_MOST = 200
"""The most questions about one thing that a question is compared with by resemblance; equal words are always found."""
TWICE = "question asked twice"
ASKED_WITH = "picture of the question in its context"
GOLD = "gold picture twice in its context"


def overlap_findings(release: Release, against: Release | Path | None = None) -> Iterator[Finding]:
    """Yield what is there twice in each dataset, and what it shares with something else.

    Each question is read once, with one context of its longest length. What is kept of a question is small: its words,
    and the digests of the pictures and passages that hold its answer.

    Args:
        release: the release.
        against: another release, its folder, or a folder of files: pictures, `.txt`, `.md` and `.jsonl`.

    Raises:
        ReleaseError: a file is missing or damaged, a package is not installed, or there is no such folder.

    """
    pictures = Pictures.of(release)
    shared = None if against is None else Answering(pictures)
    for dataset in release.datasets:
        yield from within(dataset, asked_once(release, dataset), pictures, shared)
    if shared is not None and against is not None:
        for other in others_of(against):
            shared.compare(other)
        yield from shared.findings()


def within(
    dataset: str, questions: Iterable[Asked], pictures: Pictures, shared: Answering | None = None
) -> Iterator[Finding]:
    """Yield what is there twice in one dataset; `shared` is given each question, to compare it with something else."""
    twice = Count(TWICE, "questions with the words and the subject of another one")
    asked_with = Count(ASKED_WITH, "questions whose own picture is also in the context")
    golds = Count(GOLD, "contexts that show a gold picture twice")
    earlier: dict[str, dict[bytes, _Question]] = {}
    for asked in questions:
        if subject := _subject(asked):
            _try_question(twice, asked, earlier.setdefault(subject, {}))
        looks = [(n, path) for n, unit in enumerate(asked.units) for path in unit.images]
        if looks:
            _try_own_pictures(asked_with, asked, looks, pictures)
            _try_golds(golds, asked, looks, pictures)
        if shared is not None:
            shared.add(dataset, asked)
    said = f"{len(pictures.uniform)} nearly uniform pictures were compared by their bytes alone"
    notes = dict.fromkeys((ASKED_WITH, GOLD), said) if pictures.uniform else {}
    yield from findings_of([twice, asked_with, golds], dataset, notes)


@dataclass(frozen=True, slots=True)
class _Question:
    """What is kept of a question to find it again."""

    asked: Asked
    digest: bytes

    def is_like(self, other: "_Question") -> bool:
        """Return whether two questions about the same thing are the same question.

        Questions that offer answers, or have different answers, must have equal words: "is there a car?" and "is there
        a cat?" are two questions.
        """
        if self.digest == other.digest:
            return True
        one, two = self.asked, other.asked
        is_comparable = one.is_free and two.is_free and set(one.answers) & set(two.answers)
        return bool(is_comparable) and is_same_wording(one.question, two.question)


def _try_question(count: Count, asked: Asked, earlier: dict[bytes, _Question]) -> None:
    """Look for a question among the earlier ones about the same thing, of which one is kept for each wording."""
    digest = digest_of(asked.question)
    if not digest:
        return
    count.attempt(asked)
    question = _Question(asked.without_units(), digest)
    equal = [earlier[digest]] if digest in earlier else []
    for other in equal or islice(earlier.values(), _MOST):
        if question.is_like(other):
            count.hit(asked, f"has the words of {other.asked.id}: {asked.question!r:.80}")
            count.hit(other.asked, f"has the words of {asked.id}: {other.asked.question!r:.80}")
    earlier.setdefault(digest, question)


def _subject(asked: Asked) -> str:
    """Return what a question is about; if its cluster is unknown, its needles."""
    needles = " ".join(part.path if isinstance(part, Image) else digest_of(part).hex() for part in asked.needles)
    return asked.cluster or needles


def _try_own_pictures(count: Count, asked: Asked, shown: Sequence[tuple[int, str]], pictures: Pictures) -> None:
    """Look for the pictures that a question asks with among the units of its context."""
    if not asked.images:
        return
    count.attempt(asked)
    for own in asked.images:
        if found := _first_near(pictures[own], [path for _, path in shown], pictures):
            count.hit(asked, f"{own} is {found} of its context")


def _try_golds(count: Count, asked: Asked, shown: Sequence[tuple[int, str]], pictures: Pictures) -> None:
    """Look for the gold pictures of a context among its other units."""
    golds = [(place, path) for place, path in shown if asked.units[place].is_gold]
    if not golds:
        return
    count.attempt(asked)
    for at, gold in golds:
        others = [path for place, path in shown if place != at]
        if found := _first_near(pictures[gold], others, pictures):
            count.hit(asked, f"{gold} is again {found}")


def _first_near(look: Look, others: Iterable[str], pictures: Pictures) -> str:
    return next((path for path in others if pictures[path].is_near(look)), "")
