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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from pydantic import ValidationError

from mmlongbench.errors import Fault, SourceError
from mmlongbench.io.files import write_whole
from mmlongbench.io.json_lines import json_lines
from mmlongbench.questions.question import Line, Maker, Question, Reject
from mmlongbench.questions.summary import Summary, summarise

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


def write_folder(
    out: Path,
    documents: Path,
    made: Maker,
    questions: Sequence[Question],
    rejects: Sequence[Reject],
    more: Mapping[str, int] | None = None,
    made_with: Mapping[str, str] | None = None,
    left_out: Sequence[str] = (),
) -> Summary:
    """Write the folder of questions, and return its counts.

    Args:
        out: the folder.
        documents: the folder of the documents, which the manifest names relative to `out`.
        made: what made the questions; the manifest tells the builder, which keeps them out of averages.
        questions: the accepted questions, in any order.
        rejects: the candidates that were left out, in any order.
        more: further counts by name, for `Summary.counts`.
        made_with: what else decides the questions, such as versions, for `Summary.made_with`.
        left_out: the documents that the manifest excludes, so that their pages are in no context.

    """
    kept = sorted(questions, key=lambda each: (each.document, each.pages, each.kind, each.id))
    left = sorted(rejects, key=lambda each: (each.document, each.stage, each.reason, each.pages, each.id))
    summary = summarise(kept, left, more or {}, made_with or {})
    write_lines(out / QUESTIONS, kept)
    write_lines(out / REJECTS, left)
    write_whole(out / TABLE, map(_row, kept))
    write_whole(out / SUMMARY, [summary.model_dump_json(indent=1).encode(), b"\n"])
    manifest = _manifest(out, documents, made, kept)
    if left_out:
        manifest += f"    exclude: {json.dumps(sorted(left_out), ensure_ascii=False)}\n"
    write_whole(out / MANIFEST, [manifest.encode()])
    return summary


def write_lines(path: Path, lines: Iterable[Line]) -> None:
    """Write typed lines as JSON Lines; fields with their default value are left out."""
    write_whole(path, (each.model_dump_json(exclude_defaults=True).encode() + b"\n" for each in lines))


def read_questions(path: Path) -> Iterator[Question]:
    """Yield the questions of `questions.jsonl`.

    Raises:
        SourceError: the file is missing, or a line is no question; the error names the line.

    """
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


def _row(question: Question) -> bytes:
    """Return a line of the table that `own_documents` reads."""
    row = {
        "id": question.id,
        "doc": question.document,
        "question": question.question,
        "answer": question.answer,
        "pages": question.pages,
        "answer_format": question.answer_format,
        "accepted": question.accepted,
        "sources": question.sources,
        "doc_type": question.doc_type,
        "kind": question.kind,
        "synthetic": question.synthetic,
    }
    return json.dumps(row, ensure_ascii=False).encode() + b"\n"


def _manifest(out: Path, documents: Path, made: Maker, questions: Sequence[Question]) -> str:
    """Return the manifest of the questions."""
    where = Path(os.path.relpath(documents.absolute(), out.absolute())).as_posix()
    return _FORM.format(n=len(questions), made=made, table=TABLE, documents=json.dumps(where, ensure_ascii=False))
