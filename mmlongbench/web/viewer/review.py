"""What a review shows: suspects of `mmlongbench doctor`, or questions of a folder that `mmlongbench questions` made,
each beside its pages as contexts of the release show them.

What is decided is written in errata or in a review sheet.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from mmlongbench.errors import MMLongBenchError, ReleaseError
from mmlongbench.io.files import read_regular
from mmlongbench.task.metric import Evidence
from mmlongbench.web.viewer.index import Index, IndexRow
from mmlongbench.web.viewer.viewed import Viewed, ViewedFile, as_text, example_of

_MAX_BYTES = 64 * 1024 * 1024
"""The most bytes of a file of suspects."""
_MAX_PAGES = 24
"""The most pages that are shown beside an answer."""
_MAX_EXAMPLES = 12
"""The most examples whose records are read to find them."""


@dataclass(frozen=True, slots=True)
class Subject:
    """A row or a question that somebody should look at."""

    id: str
    dataset: str
    """The dataset; empty if it is not known, as below."""
    document: str
    kind: str
    """Why it is here, as a slug."""
    why: str
    """Why it is here, in words."""
    question: str
    answer: str
    pages: tuple[int, ...]
    """The claimed pages, from 1."""
    proposed: tuple[int, ...] = ()
    """The pages that are proposed instead."""
    fields: tuple[tuple[str, str, str], ...] = ()
    """The row of a suspect: (name, value, proposed value); a text as it is, any other value as JSON."""


@dataclass(frozen=True, slots=True)
class Review:
    """The subjects of a review, and what they are, such as `suspects`."""

    subjects: Sequence[Subject]
    name: str


class SuspectLine(BaseModel):
    """A line that `mmlongbench doctor --json` prints."""

    model_config = ConfigDict(frozen=True)

    dataset: str
    id: str
    kind: str
    evidence: str
    correction: dict[str, JsonValue] = {}
    fields: dict[str, JsonValue] = {}
    """The row of the source; empty if it could not be read, or in a file of an older version."""


def open_review(suspects: Path | None, questions: Path | None) -> Review | None:
    """Open what is to be reviewed: the output of `mmlongbench doctor --json`, and a folder that `mmlongbench questions`
    made; None if nothing is.
    """
    if questions:
        return Review(_questions(questions), "questions")
    return Review(_suspects(suspects), "suspects") if suspects else None


def _questions(folder: Path) -> list[Subject]:
    from mmlongbench.questions.review import in_order, read_folder, shown_answer

    return [
        Subject(
            id=question.id,
            dataset="",
            document=question.document,
            kind=question.notes.get("flags") or question.kind,
            why="; ".join(rest.text for rest in question.grounding),
            question=question.question,
            answer=shown_answer(question.answer),
            pages=question.pages,
        )
        for question in in_order(read_folder(folder).values())
    ]


def _suspects(path: Path) -> list[Subject]:
    """Read the suspects of a file, the first of each row of each dataset."""
    try:
        texts = read_regular(path, _MAX_BYTES).splitlines()
    except (OSError, ValueError) as error:
        raise ReleaseError(f"{path}: cannot be read: {' '.join(str(error).split())[:200]}") from error
    lines: dict[tuple[str, str], SuspectLine] = {}
    for number, text in enumerate(texts, 1):
        if not text.strip():
            continue
        try:
            line = SuspectLine.model_validate_json(text)
        except ValidationError as error:
            first = error.errors()[0]
            why = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"[:200]
            raise ReleaseError(
                f"{path}, line {number}: expected the output of `mmlongbench doctor --json`; {why}"
            ) from error
        lines.setdefault((line.dataset, line.id), line)
    if not lines:
        raise ReleaseError(f"{path}: has no suspect; write it with `mmlongbench doctor MANIFEST --json`")
    return [_suspect(line) for line in lines.values()]


def _suspect(line: SuspectLine) -> Subject:
    # corrected fields first; a field that only the correction has is one that the row lacks
    fields = {**dict.fromkeys(line.correction), **line.fields}
    ordered = {**{name: fields[name] for name in line.correction}, **fields}
    of_pages = [name for name in line.correction if "page" in name] or [name for name in ordered if "page" in name]
    return Subject(
        id=line.id,
        dataset=line.dataset,
        document=next((str(line.fields[name]) for name in ("doc_id", "doc", "document") if line.fields.get(name)), ""),
        kind=line.kind,
        why=line.evidence,
        question=str(line.fields.get("question") or ""),
        answer=as_text(line.fields.get("answer") or ""),
        pages=tuple(dict.fromkeys(page for name in of_pages for page in _numbers(ordered.get(name)))),
        proposed=tuple(dict.fromkeys(page for name in of_pages for page in _numbers(line.correction.get(name)))),
        fields=tuple((name, as_text(value), as_text(line.correction.get(name, ""))) for name, value in ordered.items()),
    )


def _numbers(value: JsonValue) -> Iterator[int]:
    """Yield the page numbers in a value: a list, or a text such as `[4, 5]`."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return
    for number in value if isinstance(value, list) else [value]:
        if type(number) is int and 0 < number < 10**6:
            yield number


# The pages beside a claimed answer.


@dataclass(frozen=True, slots=True)
class ShownPage:
    """A page of the document, as a context of the release shows it."""

    number: int
    file: ViewedFile | None = None
    """The file of an example that shows it; None if none does."""
    image: int = -1
    """The number of its image in the index of the file; -1 if it is shown as a text, or not at all."""
    path: str = ""
    text: str = ""
    joined: tuple[int, int] | None = None
    """The first and the last page that the image shows, from 1, if it joins pages."""


def pages_beside(
    viewed: Viewed, index: Index, subject: Subject
) -> tuple[list[ShownPage], list[int], tuple[ViewedFile, int] | None]:
    """Return the pages that a subject names, as far as a context of the release shows them; the numbers of the claimed
    ones; and the shortest example of the subject, if there is one.

    The longest example of the subject comes first, then other examples about the same document.
    """
    examples = list(_examples(viewed, index, subject))
    claimed, shown = list(subject.pages), dict[int, ShownPage]()
    for file, row, is_own in islice(examples, _MAX_EXAMPLES):
        try:
            record = index.record(file.number, row)
            evidence = example_of(viewed, file, dict(record), f"{file.name}, {row.id}").evidence
        except MMLongBenchError:
            continue
        if evidence is None:
            continue
        if is_own and not claimed:
            claimed = [page + 1 for page in (evidence.document_pages or evidence.pages)]
        wanted = list(dict.fromkeys([*claimed, *subject.proposed]))[:_MAX_PAGES]
        for page in wanted:
            if page not in shown and (found := _page(index, file, evidence, page)):
                shown[page] = found
        if wanted and all(page in shown for page in wanted):
            break
    own = [(file, row.row) for file, row, is_own in examples if is_own]
    wanted = list(dict.fromkeys([*claimed, *subject.proposed]))[:_MAX_PAGES]
    return [shown.get(page) or ShownPage(page) for page in wanted], claimed, own[-1] if own else None


def _examples(viewed: Viewed, index: Index, subject: Subject) -> Iterator[tuple[ViewedFile, IndexRow, bool]]:
    """Yield the examples of a subject, the longest first, then those about its document: (file, row, is its own)."""
    files = [file for file in viewed.files if subject.dataset in ("", file.dataset)]
    others, document = list[tuple[ViewedFile, IndexRow, bool]](), subject.document.removesuffix(".pdf")
    for file in sorted(files, key=lambda file: -file.length):
        for row in index.rows(file.number):
            if row.fault:
                continue
            if row.id == subject.id:
                document = row.document or document
                yield file, row, True
            elif row.document:
                others.append((file, row, False))
    yield from (other for other in others if document and other[1].document in (document, f"{document}.pdf"))


def _page(index: Index, file: ViewedFile, evidence: Evidence, page: int) -> ShownPage | None:
    """Return a page as an example shows it: alone, or in an image that joins it with its neighbours."""
    number, joined = page - 1, None
    if evidence.joined:
        spans = ((image, first, last) for image, (first, last) in evidence.joined.items() if first < page <= last + 1)
        if (span := next(spans, None)) is None:
            return None
        number, joined = span[0], (span[1] + 1, span[2] + 1)
    path, text = evidence.images.get(number, ""), evidence.texts.get(number, "")
    images = index.images(file.number)
    if path in images:
        return ShownPage(page, file, images.index(path), path, joined=joined)
    return ShownPage(page, file, text=text) if text else None
