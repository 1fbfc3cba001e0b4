"""Small versions of both kinds of source, MM-NIAH's own files and your own pages: drawn web pages about invented
places, with sentences or pictures to hide.

`draw_hidden_sentences` writes MM-NIAH's annotation rows and an OBELICS file, `draw_hidden_pictures` writes Markdown
pages and a file of questions.
"""

import json
from collections.abc import Iterator
from pathlib import Path

from mmlongbench.task import Draws
from tests.drawing.mm_niah.pages import OFFERED, draw_view, emblem, opening_of, page_of

ROWS = 12
PAGES = 64
"""The number of pages, enough for a context of 32K tokens."""
CODES = ("gannet", "quince", "mortar", "sextant", "bellows", "trellis", "ferrule", "capstan", "thimble", "gimlet")
PLACES = ("north pier", "salt mill", "upper lock", "signal house", "old kiln", "rope walk", "glass tower", "west weir")


def draw_hidden_sentences(folder: Path, pages: int = PAGES, questions: int = ROWS) -> dict[str, Path]:
    """Draw web pages, and questions about sentences hidden in them: `questions.jsonl`, `images/`, `obelics.jsonl`.

    The first pages are the same for any number of `pages`.
    """
    draws, images = Draws(("hidden sentences",)), folder / "images"
    images.mkdir(parents=True, exist_ok=True)
    with (folder / "obelics.jsonl").open("w", encoding="utf-8", newline="\n") as file:
        for number in range(pages):
            file.write(json.dumps(_obelics(draws, number, images)) + "\n")
    rows = (_row(draws, number, images) for number in range(questions))
    (folder / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return {"questions": folder / "questions.jsonl", "images": images, "obelics": folder / "obelics.jsonl"}


def draw_hidden_pictures(folder: Path) -> dict[str, Path]:
    """Draw pages with pictures, and questions about pictures hidden in them: `questions.jsonl`, `pages/`.

    Every picture of a context is a view with a sign on it, drawn, encoded and named in one way, so that only the sign
    tells which one a question is about.
    """
    draws, pages = Draws(("hidden pictures",)), folder / "pages"
    (pages / "pictures").mkdir(parents=True, exist_ok=True)
    for number in range(PAGES):
        parts = list(_with_views(draws, number, pages / "pictures", every=3, has_signs=True))
        lines = (part if kind == "text" else f"![a view](pictures/{part})" for kind, part in parts)
        (pages / f"page{number:02d}.md").write_text("\n\n".join(lines) + "\n", "utf-8")
    rows = (_choice(draws, number, pages / "pictures") for number in range(ROWS))
    (folder / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return {"questions": folder / "questions.jsonl", "documents": pages}


def _with_views(
    draws: Draws, number: int, images: Path, every: int, *, has_signs: bool = False
) -> Iterator[tuple[str, str]]:
    """Yield (`text`, paragraph) for each paragraph of a page and, on every `every`-th page, (`image`, file name) of a
    view after the second paragraph. With `has_signs`, the view has a sign that no question offers.
    """
    for at, paragraph in enumerate(page_of(draws.at("page", number))):
        yield "text", paragraph
        if at == 1 and number % every == 0:
            name = _view_name(draws, f"page {number}") if has_signs else f"view{number:02d}.jpg"
            sign = emblem(draws.at("other emblem", number), OFFERED + number // every % OFFERED) if has_signs else None
            draw_view(draws.at("view", number), images / name, is_large=number % (4 * every) == 0, sign=sign)
            yield "image", name


def _obelics(draws: Draws, number: int, images: Path) -> dict[str, object]:
    """Return one page in OBELICS' form: parallel lists, with the metadata as a string."""
    parts = list(_with_views(draws, number, images, every=2))
    urls = [f"https://pages.invalid/{part}" if kind == "image" else None for kind, part in parts]
    texts = [part if kind == "text" else None for kind, part in parts]
    metadata = json.dumps([{"src": url} if url else None for url in urls])
    general = json.dumps({"url": f"https://pages.invalid/{number}"})
    return {"images": urls, "metadata": metadata, "general_metadata": general, "texts": texts}


def _row(draws: Draws, number: int, images: Path) -> dict[str, object]:
    """Return a question about a pass phrase, and a short context with the phrase and a view."""
    place, code = PLACES[number % len(PLACES)], f"{CODES[number % len(CODES)]} {410 + 7 * number}"
    needle = f"The pass phrase of the {place} is {code}."
    name = f"own{number:02d}.jpg"
    draw_view(draws.at("own", number), images / name, is_large=False)
    context = f"{opening_of(draws.at('row', number))} {needle}\n<image>\n{opening_of(draws.at('end', number))}"
    return {
        "id": number,
        "images_list": [name],
        "context": context,
        "question": f"What is the pass phrase of the {place}?",
        "answer": code,
        "meta": {"placed_depth": [0.5], "needles": [needle], "choices": None, "choices_image_path": None},
    }


def _choice(draws: Draws, number: int, images: Path) -> dict[str, object]:
    """Return a question that asks which of four emblems is on a picture among the pages."""
    signs = [emblem(draws.at("emblem", number), variant) for variant in range(OFFERED)]
    names = [f"emblem{number:02d}{letter}.png" for letter in "abcd"]
    for name, sign in zip(names, signs, strict=True):
        sign.save(images / name, "PNG")
    right, view = number % len(names), _view_name(draws, f"question {number}")
    draw_view(draws.at("hidden view", number), images / view, is_large=number % 4 == 0, sign=signs[right])
    return {
        "id": f"mm-niah-{number}",
        "question": "Which of the following emblems appears among the pages?",
        "answer": right,
        "needles": [f"pictures/{view}"],
        "choices": [f"pictures/{name}" for name in names],
    }


def _view_name(draws: Draws, of: str) -> str:
    """Return the name of a view's file: a drawn number, so that it does not say what the view is for."""
    return f"view{draws.rank('name', of) % 10**8:08d}.jpg"
