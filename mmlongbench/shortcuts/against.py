"""What a release shares with another release or with a folder of files. What is kept in memory is what holds the
answers of the release itself; the other side is read as a stream.
"""

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from mmlongbench.documents.image_urls import MAX_BYTES
from mmlongbench.documents.pixels import PICTURE_ENDINGS, unreadable
from mmlongbench.errors import ReleaseError
from mmlongbench.io.files import bounded_lines, read_regular
from mmlongbench.likeness import LONGEST, KnownQuestions, Look, NearIndex, Pictures, digest_of, is_long, look_of, words
from mmlongbench.release.layout import LOCK
from mmlongbench.release.release import Release, open_release
from mmlongbench.shortcuts.counted import Count, findings_of
from mmlongbench.shortcuts.findings import Finding
from mmlongbench.shortcuts.reading import AskedQuestion, asked_questions

_TEXTS = (".txt", ".md")
_LINES = (".jsonl", ".ndjson")
_Key = tuple[str, str]
"""The dataset and the id of a question."""


@dataclass(frozen=True, slots=True)
class Other:
    """One thing of the other side: a question with its answers, a passage or a picture."""

    where: str
    """Where it is, in words."""
    question: str = ""
    subject: str = ""
    answers: tuple[str, ...] | None = None
    """The answers of the question; None if they are unknown, as in a folder of files."""
    passage: str = ""
    look: Look | None = None


class Answering:
    """What holds the answers of a release: its questions, and the pictures and passages that answer them or that they
    ask with.
    """

    def __init__(self, pictures: Pictures) -> None:
        """Take what the pictures of the release look like."""
        self.pictures = pictures
        self._index = NearIndex()
        self._by_look: dict[str, list[_Key]] = {}
        self._by_passage: dict[bytes, list[_Key]] = {}
        self._questions = KnownQuestions()
        self._asked: dict[_Key, AskedQuestion] = {}
        self._counts: dict[str, tuple[Count, Count, Count]] = {}

    def add(self, dataset: str, asked: AskedQuestion) -> None:
        """Add a question of the release."""
        key = (dataset, asked.id)
        counts = self._counts.setdefault(
            dataset,
            (
                Count("question shared with another", "questions that are asked elsewhere"),
                Count("picture shared with another", "questions with a picture that is elsewhere"),
                Count("passage shared with another", "questions with an answering passage that is elsewhere"),
            ),
        )
        self._asked[key] = asked.without_context()
        if words(asked.question):
            counts[0].attempt(asked)
            self._questions.add(key, asked.question, asked.subject, () if asked.choices else asked.answers)
        # the units that hold the answer; the document's own units if nothing says which of them do
        golds = [unit for unit in asked.units if unit.is_gold]
        answering = golds or [unit for unit in asked.units if unit.role == "own"]
        paths = dict.fromkeys([*asked.images, *(path for unit in answering for path in unit.images)])
        for path in paths:
            look = self.pictures[path]
            self._index.add(look)
            self._by_look.setdefault(look.digest, []).append(key)
        passages = [unit.passage for unit in answering if unit.is_passage]
        for passage in passages:
            self._by_passage.setdefault(digest_of(passage), []).append(key)
        for count, found in zip(counts[1:], (paths, passages), strict=True):
            if found:
                count.attempt(asked)

    def compare(self, other: Other) -> None:
        """Compare one thing of the other side with all questions."""
        if other.question and len(other.question) <= LONGEST:  # a longer text is no question
            for key in self._questions.same(other.question, other.subject, other.answers):
                self._hit(0, key, f"is asked at {other.where}: {other.question!r:.80}")
        if other.look is not None:
            for digest in self._index.near(other.look):
                for key in self._by_look[digest]:
                    self._hit(1, key, f"a picture is {other.where}")
        if other.passage:
            for key in self._by_passage.get(digest_of(other.passage), ()):
                self._hit(2, key, f"a passage is at {other.where}: {other.passage!r:.60}")

    def findings(self) -> Iterator[Finding]:
        """Yield what is shared, by dataset."""
        for dataset, counts in self._counts.items():
            yield from findings_of(counts, dataset)

    def _hit(self, kind: int, key: _Key, what: str) -> None:
        self._counts[key[0]][kind].hit(self._asked[key], what)


def others_of(against: Path) -> Iterator[Other]:
    """Yield everything of another release, or of a folder of files.

    Raises:
        ReleaseError: there is no such folder, or a file of the other release is missing or damaged.

    """
    if not against.is_dir():
        raise ReleaseError(f"{against}: is no folder; give a release, or a folder of pictures and texts")
    return _of_release(open_release(against)) if (against / LOCK).is_file() else _of_folder(against)


def _of_release(release: Release) -> Iterator[Other]:
    pictures = Pictures.of(release)
    seen: set[bytes | str] = set()
    for dataset in release.datasets:
        for asked in asked_questions(release, dataset):
            where = f"{release.path.name}, {dataset}, {asked.id}"
            yield Other(where, question=asked.question, subject=asked.subject, answers=asked.answers)
            for path in (*asked.images, *(path for unit in asked.units for path in unit.images)):
                if path not in seen:
                    seen.add(path)
                    yield Other(f"{release.path.name}, {path}", look=pictures[path])
            for unit in asked.units:
                if unit.is_passage and (digest := digest_of(unit.passage)) not in seen:
                    seen.add(digest)
                    yield Other(where, passage=unit.passage)


def _of_folder(folder: Path) -> Iterator[Other]:
    """Yield the pictures, the paragraphs of texts, and the texts of JSON lines. Files that cannot be read are skipped:
    they are not the user's release.
    """
    for root, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = Path(root) / name
            where = path.relative_to(folder).as_posix()
            ending = path.suffix.lower()
            if not path.is_file():  # a pipe, or a link to nothing
                continue
            if ending in PICTURE_ENDINGS:
                with suppress(*unreadable()):
                    yield Other(where, look=look_of(read_regular(path, MAX_BYTES)))
            elif ending in (*_TEXTS, *_LINES):
                yield from _lines(path, where, is_json=ending in _LINES)


def _lines(path: Path, where: str, *, is_json: bool) -> Iterator[Other]:
    """Yield each line of a text as a passage and as a question, or each text of the object in a line of JSON."""
    with path.open("rb") as file:
        for number, _, line in bounded_lines(file):
            if line is None:
                continue
            for text in _texts_of(line) if is_json else [line.decode("utf-8", "replace")]:
                if words(text):
                    yield Other(f"{where}, line {number}", question=text, passage=text if is_long(text) else "")


def _texts_of(line: bytes) -> Iterator[str]:
    try:
        todo = [json.loads(line)]
    except (ValueError, RecursionError):
        return
    while todo:
        value = todo.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, dict | list):
            todo.extend(value.values() if isinstance(value, dict) else value)
