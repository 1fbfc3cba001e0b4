"""What a release shares with another release or with a folder of files. What is kept in memory is what holds the
answers of the release itself; the other side is read as a stream.
"""

import json
import os
from collections.abc import Iterator
from contextlib import suppress
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

    def compare(self, other: Path) -> None:
        """Compare everything of another release, or of a folder of files, with all questions.

        Raises:
            ReleaseError: there is no such folder, or a file of the other release is missing or damaged.

        """
        if not other.is_dir():
            raise ReleaseError(f"{other}: is no folder; give a release, or a folder of pictures and texts")
        if (other / LOCK).is_file():
            self._compare_release(open_release(other))
            return
        # Files of a folder that cannot be read are skipped: they are not the user's release.
        for root, folders, names in os.walk(other):
            folders.sort()
            for path in (Path(root) / name for name in sorted(names)):
                where, ending = path.relative_to(other).as_posix(), path.suffix.lower()
                if not path.is_file():  # a pipe, or a link to nothing
                    continue
                if ending in PICTURE_ENDINGS:
                    with suppress(*unreadable()):
                        self.compare_picture(where, look_of(read_regular(path, MAX_BYTES)))
                elif ending in (*_TEXTS, *_LINES):
                    self._compare_lines(path, where, is_json=ending in _LINES)

    def compare_question(self, where: str, question: str, subject: str, answers: tuple[str, ...] | None) -> None:
        """Compare a question that stands somewhere; its answers are None if they are unknown, as in a folder."""
        if len(question) <= LONGEST:  # a longer text is no question
            for key in self._questions.same(question, subject, answers):
                self._hit(0, key, f"is asked at {where}: {question!r:.80}")

    def compare_picture(self, where: str, look: Look) -> None:
        """Compare a picture that is somewhere."""
        for digest in self._index.near(look):
            for key in self._by_look[digest]:
                self._hit(1, key, f"a picture is {where}")

    def compare_passage(self, where: str, passage: str) -> None:
        """Compare a passage that stands somewhere."""
        for key in self._by_passage.get(digest_of(passage), ()):
            self._hit(2, key, f"a passage is at {where}: {passage!r:.60}")

    def findings(self) -> Iterator[Finding]:
        """Yield what is shared, by dataset."""
        for dataset, counts in self._counts.items():
            yield from findings_of(counts, dataset)

    def _hit(self, kind: int, key: _Key, what: str) -> None:
        self._counts[key[0]][kind].hit(self._asked[key], what)

    def _compare_release(self, release: Release) -> None:
        pictures = Pictures.of(release)
        seen: set[bytes | str] = set()
        for dataset in release.datasets:
            for asked in asked_questions(release, dataset):
                where = f"{release.path.name}, {dataset}, {asked.id}"
                self.compare_question(where, asked.question, asked.subject, asked.answers)
                for path in (*asked.images, *(path for unit in asked.units for path in unit.images)):
                    if path not in seen:
                        seen.add(path)
                        self.compare_picture(f"{release.path.name}, {path}", pictures[path])
                for unit in asked.units:
                    if unit.is_passage and (digest := digest_of(unit.passage)) not in seen:
                        seen.add(digest)
                        self.compare_passage(where, unit.passage)

    def _compare_lines(self, path: Path, where: str, *, is_json: bool) -> None:
        """Compare each line of a text, or each text in a line of JSON, as a passage and as a question."""
        with path.open("rb") as file:
            for number, _, line in bounded_lines(file):
                if line is None:
                    continue
                for text in _texts_of(line) if is_json else [line.decode("utf-8", "replace")]:
                    if words(text):
                        self.compare_question(f"{where}, line {number}", text, "", None)
                    if is_long(text):
                        self.compare_passage(f"{where}, line {number}", text)


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
