"""DocVQA: answer a question about one document, among pages of others (paper, section 3; public files `documentQA/`).

Longer than the budget: the document is cut from the outside in, around its answer pages. Shorter: other documents are
laid left and right of it. The prompt names a document by the first 15 characters of its folder, so no two in one
context may agree in these.
"""

import itertools
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

from pydantic import Field

import mmlongbench as mm
from builders.docvqa.answers import longest_words
from builders.docvqa.rows import DocumentQuestion

INSTRUCTION = (
    "You are given a document with text and images, and a question. Answer the question as concisely as you can, "
    "using a single phrase or sentence if possible. If the question cannot be answered based on the information in "
    "the article, write 'Not answerable.' Write your answer in the following format:\nAnswer: [answer]\n\n"
)
_UPTO_TWELVE = "one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve"
_NUMBER = rf"\(?(?:no\.?\s*|number\s+|#\s*)?(?:\d+|{_UPTO_TWELVE}|\w+teen|twenty|thirty|forty|fifty)\b"
_WORDS = "first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth"
_NTH = rf"(?:cover|title|{_WORDS}|last|final|penultimate|next|previous|\d+(?:st|nd|rd|th))"
NAMES_PAGE = re.compile(rf"\b(?:page|slide)s?\s*{_NUMBER}|\b{_NTH}\s+(?:page|slide)s?\b", re.IGNORECASE)
PageLabel = Literal["none", "index", "printed"]


class DocVQAOptions(mm.Options):
    """What a manifest may set."""

    page_label: PageLabel = "none"
    """Whether a page's line names its number: not (the public loader today), from 0 (the paper's figure), from 1."""
    max_answer_words: int = Field(default=5, ge=1)
    """A string answer or list element of more words is long-form, and rejected."""


@dataclass(frozen=True, slots=True)
class DocVQA:
    """Long-document QA over page images."""

    dataset: str
    options: DocVQAOptions

    options_type: ClassVar[type[mm.Options]] = DocVQAOptions
    spec: ClassVar[mm.TaskSpec] = mm.TaskSpec(mm.FilePattern("documentQA/{name}_K{k}.jsonl"), metric="doc_qa")

    def draft(self, row: DocumentQuestion, world: mm.World, draws: mm.Draws) -> mm.Draft:
        """The document inside out, then other documents in a drawn order."""
        own = world.document(row.doc)
        _check(row, own, self.options.max_answer_words)
        required, rest = mm.inside_out(self._units(own, "own"), row.pages)
        others = draws.order("padding", (world.document(id) for id in world.pool("documents")), lambda d: d.id)
        padding = _Padding(self, own, tuple(others))
        question = mm.Question(row.id, _question(own.name, row.question), {"row": row, "document": own.name})
        return mm.Draft(row.id, (INSTRUCTION,), (question,), required, mm.Chain((rest, padding)))

    def record(self, example: mm.Example) -> mm.Record:
        """One line of the public file."""
        row: DocumentQuestion = example.question.data["row"]
        answer = json.dumps(row.answer, ensure_ascii=False) if row.answer_format == "List" else row.answer[0]
        return {
            "id": row.id,
            "doc_name": example.question.data["document"],
            "question": row.question,
            "answer": answer,
            "answer_format": row.answer_format,
            "ans_page_list": list(row.pages),
            "page_list": list(example.prompt.images),
            "answer_sources": list(row.sources),
            "doc_type": row.doc_type,
            "page_label": self.options.page_label,
            "question_names_page": bool(NAMES_PAGE.search(row.question)),
            "gaps": _gaps(example.units),
        }

    def prompt(self, record: mm.Record) -> mm.Prompt:
        """The prompt of a released line."""
        label = record.get("page_label", "none")
        units = [page_unit(path, page_index(path), label, "own") for path in record["page_list"]]
        return mm.assemble((INSTRUCTION,), units, "\n\n", _question(record["doc_name"], record["question"]))

    def _units(self, document: mm.Document, role: Literal["own", "padding"]) -> list[mm.Unit]:
        return [page_unit(page.path, page.index, self.options.page_label, role) for page in document.pages]


@dataclass(frozen=True, slots=True)
class _Padding:
    """Other documents left and right: never the same bytes, never a label that the context shows already."""

    builder: DocVQA
    own: mm.Document
    others: tuple[mm.Document, ...]

    def __call__(self) -> Iterator[mm.Unit]:
        return mm.alternate_sides(self._documents())

    def _documents(self) -> Iterable[Sequence[mm.Unit]]:
        labels, contents = {mm.label(self.own.name)}, {self.own.sha256}
        for other in self.others:
            if mm.label(other.name) not in labels and other.sha256 not in contents:
                labels.add(mm.label(other.name))
                contents.add(other.sha256)
                yield self.builder._units(other, "padding")


def page_unit(path: str, index: int, label: str, role: Literal["own", "padding"]) -> mm.Unit:
    """A page with the line that names its document; `index` from 0."""
    number = {"none": "", "index": f" (page {index})", "printed": f" (page {index + 1})"}[label]
    folder = path.split("/")[-2]
    head = f"Document {mm.label(folder)}{number}: "
    return mm.Unit(path, role, mm.Image(path), (0, index), head=head, group=folder, data={"index": index})


def page_index(path: str) -> int:
    """The page's number in its file's name, from 0.

    >>> page_index("mmlongbench-doc/ab/ab_page12.jpg")
    12
    """
    return int(path.rsplit("page", 1)[1].split(".")[0])


def _question(document: str, question: str) -> tuple[mm.Part, ...]:
    asked = f"Based on Document {mm.label(document)}, answer the following question. {question}"
    return (f"\n\nQuestion: {asked}\nAnswer:",)


def _check(row: DocumentQuestion, document: mm.Document, max_words: int) -> None:
    """Refuse a long-form answer, and a page that the document does not have."""
    if row.answer_format in ("String", "List") and longest_words(row.answer) > max_words:
        found = max(row.answer, key=lambda value: len(value.split()))
        raise mm.Rejected(mm.Fault("long-form-answer", f"at most {max_words} words", repr(found), field="answer"))
    if row.pages and row.pages[-1] >= len(document.pages):
        expected, found = f"pages from 1 to {len(document.pages)} of {document.id}", f"page {row.pages[-1] + 1}"
        raise mm.Rejected(mm.Fault("answer-page-out-of-range", expected, found, field="evidence_pages"))


def _gaps(units: Sequence[mm.Unit]) -> str:
    """Runs of the document's own pages, from 0, that are missing between two that are shown, such as `1-2, 7-7`.

    A string: loaders give a column of lists that are all empty, as at long lengths, another type.
    """
    shown = [unit.data["index"] for unit in units if unit.role == "own"]
    return ", ".join(f"{a + 1}-{b - 1}" for a, b in itertools.pairwise(shown) if b > a + 1)
