"""The target `mteb`: retrieval of pages for questions about documents, in the form that mteb loads.

One folder for each dataset whose examples say on which pages the answer is. Length plays no part: the corpus has every
page that an example shows at any of the chosen lengths, once.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from mmlongbench.errors import ReleaseError
from mmlongbench.exports.row_groups import picture_of, picture_schema, write_rows
from mmlongbench.exports.target import Export, Exported, Target
from mmlongbench.exports.writing import refuse_model, write_text
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
PAGE = """# Retrieval of pages for questions about documents

{table}

```python
from mteb.abstasks.retrieval_dataset_loaders import RetrievalDatasetLoader

data = RetrievalDatasetLoader(hf_repo="DIR/{first}", revision=None, split="test").load()  # DIR: an absolute path
data["corpus"], data["queries"], data["relevant_docs"], data["top_ranked"]
```

The corpus has every page that an example of the dataset shows at any length, once. `qrels` names the pages that hold
the answer. Questions name no document, so `top_ranked` restricts the candidates of each question to the pages of its
document that are shown at some length. Questions that no page answers are left out, as mteb would drop them.

## What is left out

{left_out}
"""


class MTEB(Target):
    """Folders for `mteb`."""

    summary: ClassVar[str] = "retrieval of pages for questions about documents, as mteb loads it: a folder a dataset"

    def write(self, export: Export) -> Exported:
        """Write a folder for each dataset with documents, and a page that says how to load them."""
        refuse_model(export, "a table of pages holds no requests")
        if export.images:
            raise ReleaseError(f"--images {export.images}: the images of this target are in its tables; leave it out")
        found: dict[str, _Retrieval] = {}
        for cell in export.cells:
            for example in cell.examples():
                found.setdefault(cell.dataset, _Retrieval()).add(example)
        kept = {name: each for name, each in found.items() if each.relevant}
        if not kept:
            raise ReleaseError(
                f"{export.release.path.name}: no chosen example says on which page of a document its answer is"
            )
        copied = sum(_write(export, name, each) for name, each in kept.items())
        left_out = tuple(f"{name}: {said}" for name, each in found.items() for said in each.left_out())
        write_text(export.out / "README.md", _page(kept, left_out))
        return Exported(sum(len(each.relevant) for each in kept.values()), left_out, (_NOTE,), copied)


@dataclass(slots=True)
class _Retrieval:
    """The pages and questions of a dataset."""

    pages: dict[str, tuple[str, int | None]] = field(default_factory=dict)
    """(document, page number) of each page, by its id: the path of its image, or document and number of its text."""
    texts: dict[str, str] = field(default_factory=dict)
    """The texts of pages that are shown as text, by id."""
    queries: dict[str, tuple[str, str]] = field(default_factory=dict)
    """(question, answer) by id."""
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
            self.pages.setdefault(path, (_folder(path), None))
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


def _folder(path: str) -> str:
    """Return the name of the document that a page belongs to, by the folder of its image."""
    return path.split("/")[-2] if "/" in path else ""


def _question(example: Example) -> str:
    """Return the question alone: that of the record, or the text after the context."""
    asked = example.record.get("question")
    if isinstance(asked, str) and asked.strip():
        return asked.strip()
    outline = example.prompt.outline
    parts = outline.after if outline else example.prompt.turns[-1].parts[-1:]
    text = "".join(part for part in parts if isinstance(part, str)).strip()
    return text.removeprefix("Question:").removesuffix("Answer:").strip()


def _write(export: Export, name: str, found: _Retrieval) -> int:
    """Write the folder of a dataset, and return the bytes of the images in it."""
    import pyarrow as pa

    out, relevant, copied = export.out / name, found.relevant, 0
    text: pa.DataType = pa.string()
    if found.texts:
        texts = pa.schema([("id", text), ("text", text), ("doc_id", text), ("page_number_in_doc", pa.int64())])
        write_rows(_table(out, "corpus"), texts, _text_rows(found))
    else:
        pictures = picture_schema("id", "doc_id", numbers=["page_number_in_doc"])
        rows = _image_rows(export.release.path / IMAGES, found)
        write_rows(_table(out, "corpus"), pictures, rows, is_packed=True)
        copied = sum(export.release.lock.files[f"{IMAGES}/{id}"].bytes for id in found.pages)
    queries = pa.schema([("id", text), ("text", text), ("answer", text)])
    asked = ((id, *found.queries[id]) for id in relevant)
    rows = (({"id": id, "text": said, "answer": answer}, len(said)) for id, said, answer in asked)
    write_rows(_table(out, "queries"), queries, rows)
    pairs = ((id, page) for id, pages in relevant.items() for page in pages)
    qrels = pa.schema([("query-id", text), ("corpus-id", text), ("score", pa.int32())])
    rows = (({"query-id": id, "corpus-id": page, "score": 1}, len(page)) for id, page in pairs)
    write_rows(_table(out, "qrels"), qrels, rows)
    ranked = pa.schema([("query-id", text), ("corpus-ids", pa.list_(text))])
    lists = ((id, list(found.candidates[id])) for id in relevant)
    rows = (({"query-id": id, "corpus-ids": pages}, sum(map(len, pages))) for id, pages in lists)
    write_rows(_table(out, "top_ranked"), ranked, rows)
    write_text(out / "README.md", _head())
    return copied


def _table(out: Path, config: str) -> Path:
    return out / config / f"{SPLIT}-00000.parquet"


def _text_rows(found: _Retrieval) -> Iterator[tuple[Mapping[str, object], int]]:
    for id, text in found.texts.items():
        document, number = found.pages[id]
        yield {"id": id, "text": text, "doc_id": document, "page_number_in_doc": number}, len(text)


def _image_rows(root: Path, found: _Retrieval) -> Iterator[tuple[Mapping[str, object], int]]:
    """Yield the pages in the order of their ids, so that the pages of a document are together."""
    for id, (document, number) in sorted(found.pages.items()):
        data = (root / id).read_bytes()
        picture = picture_of(data, Path(id).stem, id)
        yield {"id": id, "image": picture, "doc_id": document, "page_number_in_doc": number}, len(data)


def _head() -> str:
    """Return the head of a folder's README, which names the configurations that mteb reads."""
    import yaml

    files = {name: [{"split": SPLIT, "path": f"{name}/{SPLIT}-*"}] for name in CONFIGS}
    configs = [{"config_name": name, "data_files": paths} for name, paths in files.items()]
    return f"---\n{yaml.safe_dump({'configs': configs}, sort_keys=False)}---\n"


def _page(kept: Mapping[str, _Retrieval], left_out: Sequence[str]) -> str:
    """Return the page that says how to load the folders."""
    rows = [("folder", "pages as", "pages", "questions"), ("---", "---", "---:", "---:")]
    for name, each in kept.items():
        pages = f"{len(each.texts or each.pages):,}"
        rows.append((f"`{name}`", "text" if each.texts else "image", pages, f"{len(each.relevant):,}"))
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    missing = "\n".join(f"- {md(said)}" for said in left_out) or "Nothing is left out."
    return PAGE.format(table=table, first=next(iter(kept)), left_out=missing)
