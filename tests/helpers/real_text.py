"""Visual RAG sources over real text: the pages of the real PDFs as an encyclopedia, questions written over them."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pymupdf
from PIL import Image

import mmlongbench.task as mt

LEAD = 130
"""Words of an article's lead section: two passages."""


def draw_real(documents: Path, folder: Path, most: int = 60) -> dict[str, Path]:
    """Write an articles file in KILT's form, InfoSeek's and ViQuAE's question files, and their pictures."""
    articles = list(_articles(documents))
    (folder / "kilt.json").write_text("".join(json.dumps(article) + "\n" for article in articles), "utf-8")
    asked = list(_asked(articles))[:most]
    images = folder / "images"
    images.mkdir(parents=True, exist_ok=True)
    lines: dict[str, list[object]] = {"infoseek": [], "entities": [], "viquae": []}
    for number, (article, answer) in enumerate(asked):
        name = f"oven_{number:08d}"
        Image.new("RGB", (300 + number, 400), (number, 90, 120)).save(images / f"{name}.jpg")
        lines["infoseek"].append(_infoseek(number, name, answer))
        title = str(article["wikipedia_title"])
        entity = {"data_id": f"infoseek_val_{number:08d}", "entity_id": "", "entity_text": title}
        lines["entities"].append(entity)
        lines["viquae"].append(_viquae(f"{name}.jpg", article, answer))
    for name, rows in lines.items():
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return {name: folder / f"{name}.jsonl" for name in lines} | {"images": images, "corpus": folder / "kilt.json"}


def _articles(documents: Path) -> Iterator[dict[str, object]]:
    """Each page of enough words as an article: a lead section, then the rest."""
    for path in sorted(documents.glob("*.pdf")):
        with pymupdf.open(path) as document:
            texts = [page.get_text() for page in document]
        for number, text in enumerate(texts):
            words = text.replace("::::", " ").split()
            if len(words) > LEAD + 40:
                title = f"Sheet {number} of {path.stem[:24]}"
                body = [title, " ".join(words[:LEAD]), "Section::::Rest.", " ".join(words[LEAD:])]
                id = f"{path.stem}-{number}"
                yield {"_id": id, "wikipedia_id": id, "wikipedia_title": title, "text": body}


def _asked(articles: list[dict[str, object]]) -> Iterator[tuple[dict[str, object], str]]:
    """Articles whose lead holds a longer word that few other articles hold, with that word."""
    leads = {str(a["_id"]): set(_longer(str(a["text"][1]))) for a in articles}  # type: ignore[index]
    known = Counter(word for article in articles for word in set(_longer(" ".join(map(str, article["text"])))))  # type: ignore[call-overload]
    for article in mt.Draws(("asked",)).order("articles", articles, lambda a: str(a["_id"])):
        rare = sorted((known[word], word) for word in leads[str(article["_id"])] if 2 <= known[word] <= 30)
        if rare:
            yield article, rare[-1][1]


def _longer(text: str) -> list[str]:
    return [word for word in (w.strip(".,;:()'\"").lower() for w in text.split()) if word.isalpha() and len(word) > 7]


def _infoseek(number: int, image: str, answer: str) -> dict[str, object]:
    data_id = f"infoseek_val_{number:08d}"
    question = "Which of the longer words of its opening is shared by few others?"
    return {"data_id": data_id, "image_id": image, "question": question, "answer": [answer], "answer_eval": [answer]}


def _viquae(image: str, article: dict[str, object], answer: str) -> dict[str, object]:
    title, id = str(article["wikipedia_title"]), str(article["wikipedia_id"])
    span = {"title": [title], "wikipedia_id": [id], "start_paragraph_id": [1], "end_paragraph_id": [1]}
    return {
        "image": image,
        "input": "Which of the longer words of this sheet's opening is shared by few others?",
        "original_question": f"Which of the longer words of the opening of {title} is shared by few others?",
        "output": {"original_answer": answer, "answer": [answer], "provenance": [span]},
        "wikidata_id": "",
    }
