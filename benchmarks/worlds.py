"""Sources that suffice for examples of 1M, for every builder: many units, drawn as cheaply as possible.

What is measured over them is arithmetic, which looks at sizes and texts only: pictures are of one colour where nobody
looks at them, pages are empty, pages of one deck are one file.
"""

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pymupdf
from haystacks import draw_photographs
from many_shot import draw_table
from PIL import Image
from vrag import write_sources
from zipf import rows as zipf_rows

from builders.samples.mm_niah.sources import draw_hidden_sentences

QUESTIONS = 32
"""One block of a cell."""
Source = dict[str, Any]
"""Keys of a dataset in a manifest besides its builder and lengths."""


def decks(root: Path) -> Source:
    """Document questions over 1,200 slides."""
    lines = []
    for deck in range(60):
        name = f"{deck:03}_deck_of_slides"
        (root / "decks" / name).mkdir(parents=True)
        slides = [root / "decks" / name / f"deck-{deck}-{number}-1024.jpg" for number in range(1, 21)]
        Image.new("RGB", (1024, 768), (deck * 4, 90, 120)).save(slides[0], quality=60)
        for slide in slides[1:]:
            os.link(slides[0], slide)
        lines.append({"deck_name": name, "question": "Which deck?", "answer": f"deck {deck}", "evidence_pages": [4]})
    source = {"questions": _write(root / "test.jsonl", lines[:QUESTIONS]), "decks": root / "decks"}
    return {"reader": "slidevqa", "source": _paths(source)}


def cases(root: Path) -> Source:
    """Lawsuits of six documents, which are the same in every one, with 420 letter-size pages in all."""
    (root / "pdf").mkdir(parents=True)
    for number in range(6):
        with pymupdf.open() as pdf:
            for _ in range(65 + 2 * number):
                pdf.new_page(width=612, height=792)
            pdf.save(root / "pdf" / f"{100 + number}.pdf")
    ids = [str(100 + number) for number in range(6)]
    lines = [{"case_id": f"{n}", "case_documents": ids, "summary/short": "It was settled."} for n in range(QUESTIONS)]
    source = {"cases": _write(root / "cases.json", lines), "documents": root / "pdf"}
    return {
        "reader": "multi_lexsum",
        "source": _paths(source),
        "options": {"kind": "case"},
        "reference_length": "1M",
    }


def web_pages(root: Path) -> Source:
    """Sentences hidden in web pages of prose, with a view on every other page."""
    source = draw_hidden_sentences(root, pages=2400, questions=QUESTIONS)
    return {"reader": "mm_niah", "source": _paths(source)}


def photographs(root: Path) -> Source:
    """One photograph among 6,500 of COCO's sizes."""
    sources = draw_photographs(root, 6500, QUESTIONS)
    return {"reader": "visual_haystacks", "source": _paths({**sources, "questions": root / "single.json"})}


def classes(root: Path) -> Source:
    """Fifty classes of seventy pictures, and four to be asked about: contexts are shared by up to 200 questions."""
    return {"reader": "image_tables", "source": draw_table(root / "table", 50, 70, 4), "sample": {"stratify": "kind"}}


def passages(root: Path) -> Source:
    """Questions about single passages of a corpus of 12,000."""
    pieces = [words[: 60 + number * 37 % 41] for number, words in enumerate(zipf_rows(0, 12_000))]
    write_sources(root, pieces, QUESTIONS)
    source = {"questions": root / "viquae.jsonl", "images": root / "images"}
    retrieval = {"k": 10_000}
    return {
        "reader": "viquae",
        "source": _paths(source),
        "corpus": str(root / "corpus.json"),
        "options": {"gold": "span"},
        "retrieval": retrieval,
    }


WORLDS: Mapping[str, Callable[[Path], Source]] = {
    "docvqa": decks,
    "many_shot": classes,
    "summary": cases,
    "mm_niah": web_pages,
    "visual_haystack": photographs,
    "vrag": passages,
}
"""For each builder, a function that draws its source into an existing folder and returns the keys of a manifest."""


def _write(path: Path, lines: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def _paths(source: Mapping[str, Path]) -> dict[str, str]:
    return {name: str(path) for name, path in source.items()}
