"""The target `mteb`: retrieval of pages for questions about documents, in the form that mteb loads.

One folder for each dataset whose examples say on which pages the answer is. Length plays no part: the corpus has every
page that an example shows at any of the chosen lengths, once.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from mmlongbench.errors import ReleaseError
from mmlongbench.exports.row_groups import picture_of, picture_schema, write_rows
from mmlongbench.exports.target import Export, Exported, Target
from mmlongbench.io.files import write_whole
from mmlongbench.io.printable import md
from mmlongbench.release.layout import IMAGES
from mmlongbench.release.release import Example

SPLIT = "test"
CONFIGS = ("corpus", "queries", "qrels", "top_ranked")
"""The configurations that mteb reads."""
_NOTE = (
    "questions name no document: `top_ranked` restricts the candidates of each question to the pages of its document; "
    "without it, many questions have no unique answer"
)


class MTEB(Target):
    """Folders for `mteb`."""

    summary: ClassVar[str] = "retrieval of pages for questions about documents, as mteb loads it: a folder a dataset"
    image_forms: ClassVar[str] = ""
    image_advice: ClassVar[str] = "the images of this target are in its tables; leave it out"
    without_model: ClassVar[str] = "a table of pages holds no requests"

    def write(self, export: Export) -> Exported:
        """Write a folder for each dataset with documents, and a page that says how to load them."""
        by_dataset: dict[str, _Retrieval] = {}
        for cell in export.cells:
            for example in cell.examples():
                by_dataset.setdefault(cell.dataset, _Retrieval()).add(example)
        kept = {name: retrieval for name, retrieval in by_dataset.items() if retrieval.relevant}
        if not kept:
            raise ReleaseError(
                f"{export.release.path.name}: no chosen example says on which page of a document its answer is"
            )
        copied = sum(_write(export, name, retrieval) for name, retrieval in kept.items())
        left_out = tuple(f"{name}: {why}" for name, retrieval in by_dataset.items() for why in retrieval.left_out())
        rows = [("folder", "pages as", "pages", "questions"), ("---", "---", "---:", "---:")]
        for name, retrieval in kept.items():
            pages = f"{len(retrieval.texts or retrieval.pages):,}"
            rows.append((f"`{name}`", "text" if retrieval.texts else "image", pages, f"{len(retrieval.relevant):,}"))
        table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
        missing = "\n".join(f"- {md(why)}" for why in left_out) or "Nothing is left out."
        export.write_page("mteb.md", table=table, first=next(iter(kept)), left_out=missing)
        return Exported(sum(len(each.relevant) for each in kept.values()), left_out, (_NOTE,), copied)


@dataclass(slots=True)
class _Retrieval:
    """The pages and questions of a dataset."""

    pages: dict[str, tuple[str, int | None]] = field(default_factory=dict)
    """(document, page number) by the id of a page: the path of its image, or document and number of its text."""
    texts: dict[str, str] = field(default_factory=dict)
    """The texts of pages that are shown as text, by id."""
    queries: dict[str, tuple[str, str]] = field(default_factory=dict)
    """(question, answer) by the id of a question."""
    wanted: dict[str, dict[str, None]] = field(default_factory=dict)
    """The ids of the pages that hold the answer of each question, shown or not."""
    candidates: dict[str, dict[str, None]] = field(default_factory=dict)
    """The ids of the pages of each question's document."""

    def add(self, example: Example) -> None:
        """Add what an example shows."""
        evidence = example.evidence
        if evidence is None or evidence.document is None:
            return
        for path in example.prompt.images:
            self.pages.setdefault(path, (path.split("/")[-2] if "/" in path else "", None))
        self.queries[example.id] = (_question(example), json.dumps(example.answer, ensure_ascii=False))
        ids = dict(evidence.images)
        if evidence.texts:
            ids = {number: f"{evidence.document}#page={number}" for number in evidence.texts}
            self.texts |= {ids[number]: text for number, text in evidence.texts.items()}
        candidates = self.candidates.setdefault(example.id, {})
        for number in evidence.shown:
            if (id := ids.get(number)) is not None:
                self.pages[id] = (evidence.document, number)
                candidates[id] = None
        self.wanted.setdefault(example.id, {}).update({ids[each]: None for each in evidence.pages if each in ids})

    @property
    def relevant(self) -> Mapping[str, Sequence[str]]:
        """The pages in the corpus that hold the answer, of each question that has one."""
        there = {id: [page for page in pages if page in self.pages] for id, pages in self.wanted.items()}
        return {id: pages for id, pages in there.items() if pages}

    def left_out(self) -> Iterator[str]:
        """Yield what is not in the folder, with the reason."""
        if not self.queries:
            yield "its examples do not say on which page of a document the answer is"
        relevant = self.relevant
        yield from (f"{id}: no page holds its answer" for id in self.queries if id not in relevant)


def _question(example: Example) -> str:
    """Return the question alone: that of the record, or the text after the context."""
    asked = example.record.get("question")
    if isinstance(asked, str) and asked.strip():
        return asked.strip()
    outline = example.prompt.outline
    parts = outline.after if outline else example.prompt.turns[-1].parts[-1:]
    text = "".join(part for part in parts if isinstance(part, str)).strip()
    return text.removeprefix("Question:").removesuffix("Answer:").strip()


def _write(export: Export, name: str, retrieval: _Retrieval) -> int:
    import pyarrow as pa
    import yaml

    text: pa.DataType = pa.string()
    relevant, pages, root, copied = retrieval.relevant, retrieval.pages, export.release.path / IMAGES, 0
    path_of = {config: export.out / name / config / f"{SPLIT}-00000.parquet" for config in CONFIGS}
    if retrieval.texts:
        texts = pa.schema([("id", text), ("text", text), ("doc_id", text), ("page_number_in_doc", pa.int64())])
        rows: Iterable[tuple[Mapping[str, object], int]] = (
            ({"id": id, "text": said, "doc_id": pages[id][0], "page_number_in_doc": pages[id][1]}, len(said))
            for id, said in retrieval.texts.items()
        )
        write_rows(path_of["corpus"], texts, rows)
    else:
        pictures = picture_schema("id", "doc_id", numbers=["page_number_in_doc"])
        write_rows(path_of["corpus"], pictures, _image_rows(root, pages), is_packed=True)
        copied = sum(export.release.lock.files[f"{IMAGES}/{id}"].bytes for id in pages)
    asked = ((id, *retrieval.queries[id]) for id in relevant)
    rows = (({"id": id, "text": question, "answer": answer}, len(question)) for id, question, answer in asked)
    write_rows(path_of["queries"], pa.schema([("id", text), ("text", text), ("answer", text)]), rows)
    pairs = ((id, page) for id, wanted in relevant.items() for page in wanted)
    rows = (({"query-id": id, "corpus-id": page, "score": 1}, len(page)) for id, page in pairs)
    qrels = pa.schema([("query-id", text), ("corpus-id", text), ("score", pa.int32())])
    write_rows(path_of["qrels"], qrels, rows)
    lists = ((id, list(retrieval.candidates[id])) for id in relevant)
    rows = (({"query-id": id, "corpus-ids": ids}, sum(map(len, ids))) for id, ids in lists)
    write_rows(path_of["top_ranked"], pa.schema([("query-id", text), ("corpus-ids", pa.list_(text))]), rows)
    files = {config: [{"split": SPLIT, "path": f"{config}/{SPLIT}-*"}] for config in CONFIGS}
    configs = [{"config_name": config, "data_files": paths} for config, paths in files.items()]
    head = f"---\n{yaml.safe_dump({'configs': configs}, sort_keys=False)}---\n"
    write_whole(export.out / name / "README.md", [head.encode()])
    return copied


def _image_rows(root: Path, pages: Mapping[str, tuple[str, int | None]]) -> Iterator[tuple[Mapping[str, object], int]]:
    """Yield the pages in the order of their ids, so that the pages of a document are together."""
    for id, (document, number) in sorted(pages.items()):
        data = (root / id).read_bytes()
        picture = picture_of(data, Path(id).stem, id)
        yield {"id": id, "image": picture, "doc_id": document, "page_number_in_doc": number}, len(data)
