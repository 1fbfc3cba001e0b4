"""Writes drawn sources in the forms in which the hub has them."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

PAGE = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
SLIDE_COLUMNS = ("deck_name", "deck_url", "qa_id", "question", "answer", "arithmetic_expression", "evidence_pages")


def json_lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def slide_rows(github: Mapping[str, Path]) -> list[dict[str, Any]]:
    """Rows as in `NTT-hil-insight/SlideVQA`, made from the form of the authors' repository: each row repeats the pages
    of its deck; there is neither `image_urls` nor `reasoning_type`.
    """
    rows = []
    for row in json_lines_of(github["questions"]):
        names = [url.rpartition("/")[2] for url in row["image_urls"]]
        files = [github["decks"] / row["deck_name"] / name for name in names]
        cells = [{"bytes": file.read_bytes(), "path": file.name} if file.is_file() else None for file in files]
        cells += [None] * (20 - len(cells))
        rows.append({key: row[key] for key in SLIDE_COLUMNS} | {f"page_{n}": cell for n, cell in enumerate(cells, 1)})
    return rows


def write_slides(
    rows: Sequence[Mapping[str, Any]], path: Path, types: Mapping[str, pa.DataType] | None = None, *, groups: int = 2
) -> Path:
    """Write a Parquet file; `types` has the types of columns that differ from the published ones."""
    kinds: dict[str, pa.DataType] = {name: pa.string() for name in SLIDE_COLUMNS}
    kinds |= {"qa_id": pa.int64(), "evidence_pages": pa.list_(pa.int64())}
    kinds |= {f"page_{number}": PAGE for number in range(1, 21)} | dict(types or {})
    path.parent.mkdir(parents=True, exist_ok=True)
    schema = pa.schema([(name, kind) for name, kind in kinds.items() if not rows or name in rows[0]])
    pq.write_table(pa.Table.from_pylist([dict(row) for row in rows], schema), path, row_group_size=groups)
    return path


def haystack_item(question: Mapping[str, Any], negatives: int, prefix: str = "") -> dict[str, Any]:
    """Return a question of the drawn several needles in the original format, with so many negatives."""
    return {
        "pos_image": [f"{prefix}{name}" for name in question["needles"]],
        "neg_image": [f"{prefix}{name}" for name in question["negatives"][:negatives]],
        "conversations": [
            {"from": "human", "value": question["question"]},
            {"from": "gpt", "value": question["answer"]},
        ],
    }


def write_haystacks(several: Path, folder: Path, sizes: Sequence[int] = (5, 10)) -> Path:
    """Write the drawn questions with several needles as `multi_needle_2/` and `multi_needle_3/`, with a file for each
    size, as the hub had them in October 2024.
    """
    for question in json_lines_of(several):
        count = len(question["needles"])
        for size in sizes:
            path = folder / f"multi_needle_{count}/visual_haystack_{size}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            items = json.loads(path.read_text("utf-8")) if path.is_file() else []
            path.write_text(json.dumps([*items, haystack_item(question, size - count, "coco/")]), "utf-8")
    return folder


def structure_row(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return a report of the archive as a row of `launch/gov_report`, configuration `structure`."""
    parts = raw.get("highlight") or [{"section_title": "", "paragraphs": raw["summary"]}]
    id = raw["id"] if raw["id"].startswith("CRS_") else f"GAO_{raw['id']}"
    titles, texts = [part["section_title"] for part in parts], ["\n".join(part["paragraphs"]) for part in parts]
    document = {"title": ["Letter"], "paragraphs": ["A report."], "depth": [1]}
    return {"id": id, "document_sections": document, "summary_sections": {"title": titles, "paragraphs": texts}}


def archive_reports(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(file.read_text("utf-8")) for file in sorted(folder.rglob("*.json"))]


def write_table(rows: Sequence[Mapping[str, Any]], path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist([dict(row) for row in rows]), path)
    return path


def write_structure(reports: Path, folder: Path) -> Path:
    """Write the reports of an archive as the hub's branch `refs/convert/parquet` has them, and beside them as texts."""
    rows = [structure_row(raw) for raw in archive_reports(reports)]
    for place, split in enumerate(("train", "validation", "test")):
        part = rows[place::3]
        plain = [
            {"id": row["id"], "document": "A report.", "summary": "\n".join(row["summary_sections"]["paragraphs"])}
            for row in part
        ]
        write_table(part, folder / f"structure/{split}/0000.parquet")
        write_table(plain, folder / f"plain_text/{split}/0000.parquet")
    return folder


def loaded_case(raw: Mapping[str, Any]) -> dict[str, Any]:
    """Return a case of `allenai/multi_lexsum` in the form in which `datasets` loads it."""
    ids = [str(id) for id in raw["case_documents"]]
    metadata = {
        "doc_id": ids,
        "doc_type": ["Complaint"] * len(ids),
        "doc_title": [f"Document {id}" for id in ids],
        "url": [f"https://clearinghouse.net/doc/{id}" for id in ids],
    }
    summaries = {key: value for key, value in raw.items() if key.startswith("summary/")}
    texts = ["A text."] * len(ids)
    about = {"case_name": "A v. B", "case_type": "Jail Conditions"}
    return {"id": raw["case_id"], "sources": texts, "sources_metadata": metadata, **summaries, "case_metadata": about}
