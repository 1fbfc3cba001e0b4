"""A review: its subjects, and the file of decisions if there is one."""

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mmlongbench.errors import ReleaseError
from mmlongbench.web.viewer.reviewing.decisions import Decided, DecisionFile
from mmlongbench.web.viewer.reviewing.subjects import Subject, question_subjects, read_suspects


@dataclass(frozen=True)
class Review:
    """What is reviewed."""

    subjects: Sequence[Subject]
    name: str
    """What the subjects are, such as `suspects`."""
    file: DecisionFile | None = None
    """Where decisions are written; None: they are not."""
    problems: Mapping[str, str] = field(default_factory=dict)
    """What may be wrong with a question: each slug with its meaning."""
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    """What a page must send to write; other sites cannot read it."""

    def decided(self) -> Mapping[str, Decided]:
        """Return what is decided, by id.

        Raises:
            MMLongBenchError: the file of decisions cannot be read.

        """
        return self.file.read() if self.file else {}

    def subject(self, number: int) -> Subject:
        """Return a subject by its number.

        Raises:
            ReleaseError: there is no such subject.

        """
        if not 0 <= number < len(self.subjects):
            raise ReleaseError(f"there is nothing to review with the number {number + 1}")
        return self.subjects[number]


def open_review(suspects: Path | None, questions: Path | None, write: Path | None, annotator: str) -> Review | None:
    """Open what is to be reviewed; None if nothing is.

    Args:
        suspects: the output of `mmlongbench doctor --json`.
        questions: a folder that `mmlongbench questions` made.
        write: the file of decisions.
        annotator: who decides.

    Raises:
        MMLongBenchError: something cannot be read, or decisions cannot be written in this form.

    """
    review = _suspects(suspects, write, annotator) if suspects else None
    if questions:
        review = _questions(questions, write, annotator)
    if review and review.file:
        review.decided()  # a file that cannot be read is named before anyone decides
    return review


def _suspects(path: Path, write: Path | None, annotator: str) -> Review:
    from mmlongbench.web.viewer.reviewing.errata_file import ErrataFile

    subjects, lines = read_suspects(path)
    return Review(subjects, "suspects", ErrataFile(write, annotator, lines) if write else None)


def _questions(path: Path, write: Path | None, annotator: str) -> Review:
    from mmlongbench.questions.reviewing.decisions import FURTHER, PROBLEMS
    from mmlongbench.questions.reviewing.merging import read_folder
    from mmlongbench.questions.reviewing.sheet import in_order
    from mmlongbench.web.viewer.reviewing.sheet_file import SheetFile

    found = read_folder(path)
    file = SheetFile(write, annotator, found) if write else None
    return Review(question_subjects(in_order(found.values())), "questions", file, {**PROBLEMS, **FURTHER})
