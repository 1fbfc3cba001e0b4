"""What somebody decides about a subject, and the file that holds it: errata for suspects, a sheet for questions.

A file is read again before each change, because it may have been changed elsewhere; it is replaced as a whole, and what
else it holds stays in it.
"""

import os
import stat
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Annotated, ClassVar, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, StringConstraints, model_validator

from mmlongbench.errors import ReleaseError
from mmlongbench.io.files import atomic_replace, file_lock, folder_lock
from mmlongbench.web.viewer.places import cache_folder, key_of
from mmlongbench.web.viewer.reviewing.subjects import Subject

Act: TypeAlias = Literal["accept", "revise", "remove", "keep", "undo"]
_WRITABLE = stat.S_IWUSR | stat.S_IWGRP | stat.S_IWOTH
_PATIENCE = 5.0
"""The seconds for which a change waits for another viewer that writes the same file."""


class Choice(BaseModel):
    """What a page sends when somebody decides."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    act: Act
    problem: Annotated[str, StringConstraints(max_length=60)] = ""
    """What is wrong with a question, by a name of the review sheet."""
    comment: Annotated[str, StringConstraints(max_length=2000)] = ""
    values: dict[
        Annotated[str, StringConstraints(max_length=200)], Annotated[str, StringConstraints(max_length=20_000)]
    ] = {}
    """The fields of the form that differ from the source, by name."""
    seen: Annotated[str, StringConstraints(max_length=64)] | None = None
    """The mark of the decision that the page showed, empty if it showed none; None: anything is replaced."""

    @model_validator(mode="after")
    def _is_text(self) -> "Choice":
        if any("\0" in text for text in (self.problem, self.comment, *self.values, *self.values.values())):
            raise ValueError("a NUL character, which no table can hold")
        return self


@dataclass(frozen=True, slots=True)
class Decided:
    """What the file says about a subject."""

    act: Act
    words: str
    """What was decided, by whom and why."""
    values: Mapping[str, str] = field(default_factory=dict)
    """The fields that were revised, as a page shows them."""
    comment: str = ""
    """The comment, if the file has it apart from everything else."""
    problem: str = ""
    """What is wrong with a question, if the file says it."""

    @property
    def mark(self) -> str:
        """What tells this decision from others."""
        return blake2b(f"{self.act}\0{self.words}".encode("utf-8", "backslashreplace"), digest_size=8).hexdigest()


@dataclass(frozen=True, slots=True)
class Action:
    """A button of the page."""

    act: Act
    key: str
    name: str
    about: str


def as_typed(text: str) -> str:
    """Return a text with the ends of lines that a browser gives to it, so that only what somebody changed differs."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


class DecisionFile(ABC):
    """A file that holds decisions."""

    actions: ClassVar[tuple[Action, ...]]

    def __init__(self, path: Path, by: str) -> None:
        self.path, self.by = path, by
        self._guard = threading.Lock()

    @abstractmethod
    def read(self) -> Mapping[str, Decided]:
        """Return what is decided, by the id of the subject.

        Raises:
            MMLongBenchError: the file cannot be read.

        """

    @abstractmethod
    def change(self, subject: Subject, choice: Choice) -> None:
        """Read the file, change what it says about a subject, and write it.

        Raises:
            MMLongBenchError: the choice cannot be written; the file is as before.

        """

    def replace(self, data: bytes) -> None:
        """Replace the file as a whole. A link stays a link, and permissions stay as they are.

        Raises:
            ReleaseError: the file is protected against writing.
            OSError: it cannot be written.

        """
        path = self.path.resolve()
        mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else None
        if mode is not None and (not mode & _WRITABLE or not os.access(path, os.W_OK)):
            raise ReleaseError(f"{self.path}: is protected against writing; allow it (chmod u+w), or give another file")
        with atomic_replace(path) as temporary, temporary.open("xb") as file:
            if mode is not None:
                os.fchmod(file.fileno(), mode)
            file.write(data)

    def decide(self, subject: Subject, choice: Choice) -> None:
        """Write what was chosen; only one thread and one process changes a file at a time.

        Raises:
            MMLongBenchError: it cannot be written; the file is as before.

        """
        if choice.act not in [each.act for each in self.actions]:
            raise ReleaseError(f"{choice.act}: is not among what can be decided here")
        try:
            with self._guard, self._alone():
                self._require_seen(subject, choice)
                self.change(subject, choice)
        except OSError as error:
            raise ReleaseError(f"{self.path}: cannot be written: {error.strerror or error}") from error

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep other viewers from changing the file, also those of other users, who have another cache."""
        path, what = self.path.resolve(), str(self.path)
        lock = cache_folder() / "locks" / key_of((), str(path))
        with file_lock(lock, what, patience=_PATIENCE), folder_lock(path.parent, what, patience=_PATIENCE):
            yield

    def _require_seen(self, subject: Subject, choice: Choice) -> None:
        """Refuse to replace a decision that the page did not show: somebody made it after the page was opened."""
        if choice.seen is None:
            return
        found = self.read().get(subject.id)
        if choice.seen != (found.mark if found else ""):
            now = f"{found.act}: {found.words[:200]}" if found else "not decided"
            raise ReleaseError(
                f"{subject.id}: was decided elsewhere since this page was opened ({now}); load the page again"
            )
