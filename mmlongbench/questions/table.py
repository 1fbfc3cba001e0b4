"""The folder of questions: the table that the reader `own_documents` reads, typed lines, counts, and a manifest.

    table.jsonl        what `own_documents` reads: a line for each question
    questions.jsonl    the same questions with all that is known about them (`Question`)
    rejects.jsonl      what was left out, and why (`Reject`)
    summary.json       counts by stage and reason, and distributions beside those of MMLongBench-Doc (`Summary`)
    manifest.yaml      for `mmlongbench build`; written last

Every file appears complete or not at all. The lines have one order, whatever order they were made in.
"""

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from mmlongbench.answers import AnswerFormat
from mmlongbench.draws import KeyPart, digest
from mmlongbench.errors import Fault, SourceError
from mmlongbench.io.files import write_whole
from mmlongbench.io.json_lines import json_lines

Source: TypeAlias = Literal["Text", "Table", "Chart", "Figure", "Layout"]
"""Where an answer is found, as MMLongBench-Doc and the reader `own_documents` name it."""
Maker: TypeAlias = Literal["layer", "model"]  # what made a question: the layer of a PDF, without a model; or a model
_ID_LENGTH = 16


class Line(BaseModel):
    """The base of all lines and parts of lines: frozen, without unknown fields."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Grounding(Line):
    """Words of a page that a question rests on."""

    page: Annotated[int, Field(ge=1)]
    text: str
    box: tuple[float, float, float, float] | None = None
    """Where the words are: x0, y0, x1, y1 in points from the upper left corner of the page before rotation. None if the
    place is not known."""
    role: str = "answer"
    """What the words are for the question: `answer`, an `operand` that the answer is computed from, or a name of one's
    own such as `row`."""


class Question(Line):
    """A question that passed every check."""

    id: str  # the id; `question_id` makes it from the document and the content
    document: str
    document_sha256: str
    question: str
    answer: str | tuple[str, ...]  # or the elements of a list; `Not answerable` if there is no answer
    answer_format: AnswerFormat
    pages: tuple[int, ...]  # needed for the answer, from 1, ascending; empty if there is no answer
    sources: tuple[Source, ...] = ()  # where the answer is found
    kind: str  # what is asked for, such as `table-value` or `cross-page`
    synthetic: Maker  # what made the question. Such questions are never averaged with questions of people.
    accepted: tuple[str, ...] = ()  # other answers that are right
    doc_type: str = ""
    grounding: tuple[Grounding, ...] = ()
    derived: str = ""  # how the answer follows from the operands, such as `sum`; empty if it stands on a page
    twin_of: str = ""  # the id of the question that an unanswerable one is a minimal edit of
    edit: str = ""  # what was changed for an unanswerable question, such as `2019 → 2014`; empty for other questions
    alternatives: tuple[int, ...] = ()  # pages that answer the question too, counted from 1
    notes: dict[str, str] = {}  # further facts by name, such as the model that wrote it


class Reject(Line):
    """A candidate that is no question of the table, and the first check that it failed."""

    id: str
    document: str
    stage: str  # the stage that left it out, such as `twin` or `rendered`
    reason: str  # a short slug, by which rejects are counted
    found: str
    expected: str
    kind: str = ""
    question: str = ""  # the question, if there was one already
    pages: tuple[int, ...] = ()
    notes: dict[str, str] = {}


def question_id(document_sha256: str, *content: KeyPart) -> str:
    """Return the id of a question: a hash of its document and of what makes it this question.

    No other document and no place in a list goes into it, so a further document changes no id.
    """
    return digest("question", document_sha256, *content).hex()[:_ID_LENGTH]


TABLE = "table.jsonl"
QUESTIONS = "questions.jsonl"
REJECTS = "rejects.jsonl"
SUMMARY = "summary.json"
MANIFEST = "manifest.yaml"
_FORM = """\
# {n:,} synthetic questions (made by: {made}). They are in no average with questions of people.
datasets:
  - name: questions_{made}
    builder: docvqa
    reader: own_documents
    source: {{questions: {table}, documents: {documents}}}
    lengths: [8K, 16K, 32K, 64K, 128K]
    options: {{page_label: printed, synthetic: {made}, facets: [kind, synthetic]}}
"""
"""The manifest: `facets` names the further columns of the table, by which reports break scores down."""
_COLUMNS = (
    "question",
    "answer",
    "pages",
    "answer_format",
    "accepted",
    "sources",
    "doc_type",
    "kind",
    "synthetic",
)
"""The columns of the table after `id` and `doc`; they are fields of a question."""
MMLONGBENCH_DOC: Mapping[str, Mapping[str, float]] = {
    "answer_format": {"String": 29.1, "Integer": 34.8, "Float": 18.5, "List": 17.6},
    "evidence_pages": {"single-page": 45.7, "cross-page": 33.7, "unanswerable": 20.6},
    "source": {"Text": 35.5, "Layout": 13.9, "Table": 25.4, "Chart": 20.7, "Figure": 35.4},
}
"""The shares in per cent in MMLongBench-Doc (camera-ready, Table 2). Formats and sources are those of its answerable
questions; an answer may have several sources."""


class Share(Line):
    value: str
    count: int
    share: float
    mmlongbench_doc: float | None = None


class Summary(Line):
    questions: int
    rejected: int
    by_document: dict[str, dict[str, int]]  # how many questions of each kind each document has
    by_kind: dict[str, int]
    rejects: dict[str, dict[str, int]]  # how many candidates were left out, by stage and reason
    distributions: dict[str, tuple[Share, ...]]
    """Shares of answer formats, numbers of evidence pages, and sources, beside those of MMLongBench-Doc."""
    counts: dict[str, int]  # further counts by name
    made_with: dict[str, str]  # what else decides the questions, such as the versions of programs
    notes: tuple[str, ...] = ()  # what could not be kept, such as the largest share of a document


def write_folder(
    out: Path,
    documents: Path,
    made: Maker,
    questions: Sequence[Question],
    rejects: Sequence[Reject],
    more: Mapping[str, int] | None = None,
    made_with: Mapping[str, str] | None = None,
    left_out: Sequence[str] = (),
    notes: Sequence[str] = (),
) -> Summary:
    """Write the folder of questions, in any order, and return its counts. The manifest excludes the documents
    `left_out`, so that their pages are in no context.
    """
    kept = sorted(questions, key=lambda each: (each.document, each.pages, each.kind, each.id))
    left = sorted(rejects, key=lambda each: (each.document, each.stage, each.reason, each.pages, each.id))
    summary = Summary(
        questions=len(kept),
        rejected=len(left),
        by_document=_counts((each.document, each.kind) for each in kept),
        by_kind=dict(sorted(Counter(each.kind for each in kept).items())),
        rejects=_counts((each.stage, each.reason) for each in left),
        distributions=_distributions(kept),
        counts=dict(sorted((more or {}).items())),
        made_with=dict(sorted((made_with or {}).items())),
        notes=tuple(notes),
    )
    write_lines(out / QUESTIONS, kept)
    write_lines(out / REJECTS, left)
    rows = ({"id": each.id, "doc": each.document, **{name: getattr(each, name) for name in _COLUMNS}} for each in kept)
    write_whole(out / TABLE, (json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in rows))
    write_whole(out / SUMMARY, [summary.model_dump_json(indent=1).encode(), b"\n"])
    where = Path(os.path.relpath(documents.absolute(), out.absolute())).as_posix()
    manifest = _FORM.format(n=len(kept), made=made, table=TABLE, documents=json.dumps(where, ensure_ascii=False))
    if left_out:
        manifest += f"    exclude: {json.dumps(sorted(left_out), ensure_ascii=False)}\n"
    write_whole(out / MANIFEST, [manifest.encode()])
    return summary


def write_lines(path: Path, lines: Iterable[Line]) -> None:
    """Write typed lines as JSON Lines; fields with their default value are left out."""
    write_whole(path, (each.model_dump_json(exclude_defaults=True).encode() + b"\n" for each in lines))


def read_questions(path: Path) -> Iterator[Question]:
    """Yield the questions of `questions.jsonl`; the error names the line that is none."""
    for line in json_lines(path):
        if isinstance(line.value, Fault):
            raise SourceError(replace(line.value, file=path.name, place=f"line {line.number}"))
        try:
            yield Question.model_validate(line.value)
        except ValidationError as error:
            first = error.errors()[0]
            field, found = ".".join(map(str, first["loc"])), repr(first.get("input"))[:80]
            todo = "write the questions again, or correct the line"
            raise SourceError(
                Fault("not-a-question", first["msg"], found, path.name, f"line {line.number}", field, todo)
            ) from error


def _counts(pairs: Iterable[tuple[str, str]]) -> dict[str, dict[str, int]]:
    counts: dict[str, dict[str, int]] = {}
    for (one, two), count in sorted(Counter(pairs).items()):
        counts.setdefault(one, {})[two] = count
    return counts


def _distributions(questions: Sequence[Question]) -> dict[str, tuple[Share, ...]]:
    answerable = [each for each in questions if each.answer_format != "None"]
    groups = ["single-page" if len(each.pages) == 1 else "cross-page" for each in answerable]
    groups += ["unanswerable"] * (len(questions) - len(answerable))
    values: dict[str, tuple[list[str], int]] = {
        "answer_format": ([each.answer_format for each in answerable], len(answerable)),
        "evidence_pages": (groups, len(questions)),
        "source": ([source for each in answerable for source in each.sources], len(answerable)),
    }
    shares = {}
    for name, (found, total) in values.items():
        counts, public = Counter(found), MMLONGBENCH_DOC[name]
        shares[name] = tuple(
            Share(
                value=value,
                count=counts[value],
                share=round(100 * counts[value] / total, 1) if total else 0.0,
                mmlongbench_doc=public.get(value),
            )
            for value in (*public, *sorted(set(counts) - set(public)))
        )
    return shares
