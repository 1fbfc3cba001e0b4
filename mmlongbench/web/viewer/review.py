"""What a review shows: suspects of `mmlongbench doctor`, or questions of a folder that `mmlongbench questions` made.

Pages show them beside the pages of their documents; what is decided is written in errata or in a review sheet.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from mmlongbench.errors import ReleaseError
from mmlongbench.io.files import read_regular

if TYPE_CHECKING:
    from mmlongbench.questions.question import Question

MAX_BYTES = 64 * 1024 * 1024
"""The most bytes of a file of suspects."""


@dataclass(frozen=True, slots=True)
class Field:
    """A field of the row of a suspect. Its values are a text as it is, any other value as JSON."""

    name: str
    text: str
    proposed: str = ""
    """The value that is proposed; empty if none is."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A row or a question that somebody should look at."""

    number: int
    """Its number in the viewer, from 0."""
    id: str
    dataset: str
    """The dataset, if it is known."""
    document: str
    """The document, if it is known."""
    kind: str
    """Why it is here, as a slug."""
    why: str
    """Why it is here, in words."""
    question: str
    answer: str
    """The claimed answer."""
    pages: tuple[int, ...]
    """The claimed pages, from 1."""
    proposed: tuple[int, ...]
    """The pages that are proposed instead."""
    fields: tuple[Field, ...] = ()


@dataclass(frozen=True, slots=True)
class Review:
    """The subjects of a review, and what they are, such as `suspects`."""

    subjects: Sequence[Subject]
    name: str

    def subject(self, number: int) -> Subject:
        """Return a subject by its number, from 0.

        Raises:
            ReleaseError: there is no such subject.

        """
        if not 0 <= number < len(self.subjects):
            raise ReleaseError(f"there is nothing to review with the number {number + 1}")
        return self.subjects[number]


def open_review(suspects: Path | None, questions: Path | None) -> Review | None:
    """Open what is to be reviewed; None if nothing is.

    Args:
        suspects: the output of `mmlongbench doctor --json`.
        questions: a folder that `mmlongbench questions` made.

    Raises:
        MMLongBenchError: something cannot be read.

    """
    if questions:
        from mmlongbench.questions.reviewing.merging import read_folder
        from mmlongbench.questions.reviewing.sheet import in_order

        return Review(question_subjects(in_order(read_folder(questions).values())), "questions")
    return Review(read_suspects(suspects), "suspects") if suspects else None


class SuspectLine(BaseModel):
    """A line that `mmlongbench doctor --json` prints."""

    model_config = ConfigDict(frozen=True)

    dataset: str
    id: str
    kind: str
    evidence: str
    """Why the row may be wrong."""
    correction: dict[str, JsonValue] = {}
    """The values that are proposed."""
    fields: dict[str, JsonValue] = {}
    """The row of the source; empty if it could not be read, or in a file of an older version."""


def read_suspects(path: Path) -> list[Subject]:
    """Read the suspects of a file, the first of each row of each dataset.

    Raises:
        ReleaseError: the file cannot be read, or has no suspect.

    """
    try:
        texts = read_regular(path, MAX_BYTES).splitlines()
    except (OSError, ValueError) as error:
        raise ReleaseError(f"{path}: cannot be read: {' '.join(str(error).split())[:200]}") from error
    lines: dict[tuple[str, str], SuspectLine] = {}
    for number, text in enumerate(texts, 1):
        if text.strip():
            found = _line(text, f"{path}, line {number}")
            lines.setdefault((found.dataset, found.id), found)
    if not lines:
        raise ReleaseError(f"{path}: has no suspect; write it with `mmlongbench doctor MANIFEST --json`")
    return [_suspect(number, line) for number, line in enumerate(lines.values())]


def _line(text: bytes, where: str) -> SuspectLine:
    try:
        return SuspectLine.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"]))
        said = f"{field}: {first['msg']}"[:200]
        raise ReleaseError(f"{where}: expected the output of `mmlongbench doctor --json`; {said}") from error


def _suspect(number: int, line: SuspectLine) -> Subject:
    fields = {**{name: None for name in line.correction if name not in line.fields}, **line.fields}
    pages = [name for name in line.correction if "page" in name] or [name for name in fields if "page" in name]
    return Subject(
        number=number,
        id=line.id,
        dataset=line.dataset,
        document=next((str(line.fields[name]) for name in ("doc_id", "doc", "document") if line.fields.get(name)), ""),
        kind=line.kind,
        why=line.evidence,
        question=str(line.fields.get("question") or ""),
        answer=shown_value(line.fields.get("answer") or ""),
        pages=tuple(dict.fromkeys(page for name in pages for page in _numbers(fields.get(name)))),
        proposed=tuple(dict.fromkeys(page for name in pages for page in _numbers(line.correction.get(name)))),
        fields=tuple(
            Field(name, shown_value(value), shown_value(line.correction.get(name, "")))
            for name, value in sorted(fields.items(), key=lambda item: item[0] not in line.correction)
        ),
    )


def shown_value(value: object) -> str:
    """Return the value of a field as a page shows it: a text as it is, any other value as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _numbers(value: JsonValue) -> Iterator[int]:
    """Yield the page numbers in a value: a list, or a text such as `[4, 5]`."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return
    for each in value if isinstance(value, list) else [value]:
        if type(each) is int and 0 < each < 10**6:
            yield each


def question_subjects(questions: "Sequence[Question]") -> list[Subject]:
    """Return the questions of a folder as they are reviewed."""
    from mmlongbench.questions.reviewing.sheet import shown_answer

    return [
        Subject(
            number=number,
            id=each.id,
            dataset="",
            document=each.document,
            kind=each.notes.get("flags") or each.kind,
            why="; ".join(rest.text for rest in each.grounding),
            question=each.question,
            answer=shown_answer(each.answer),
            pages=each.pages,
            proposed=(),
        )
        for number, each in enumerate(questions)
    ]
