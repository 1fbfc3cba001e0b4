"""Sources for needles in haystacks: photographs of COCO's sizes, and the pages of PDFs as interleaved web pages.

Both in the raw formats that the readers take: Visual Haystacks' JSON arrays with COCO's annotations, MM-NIAH's
annotation rows with an OBELICS file. Everything is drawn by name, so the same arguments give the same sources.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pymupdf
from PIL import Image

import mmlongbench.task as mt

OBJECTS = ("dog", "kite", "boat", "chair", "clock", "umbrella", "truck", "bench")
DRAWS = mt.Draws(("haystacks",))
TASKS = tuple(f"{task}-{needle}" for task in ("retrieval", "counting", "reasoning") for needle in ("text", "image"))


def coco_size(draws: mt.Draws, name: str) -> tuple[int, int]:
    """A size such as COCO's: 23 % 640 x 480, 28 % 640 x 427, 17 % portrait, the rest 400 to 640; mean 577 x 486."""
    at = draws.integer(f"kind {name}", 0, 99)
    if at < 23:
        return 640, 480
    if at < 51:
        return 640, 427
    if at < 68:
        return (480, 640) if at % 2 else (427, 640)
    return draws.integer(f"width {name}", 446, 640), draws.integer(f"height {name}", 400, 518)


def draw_photographs(folder: Path, photographs: int, questions: int) -> dict[str, Path]:
    """Photographs with their objects, and `questions` of each kind: one needle, and two or three."""
    images = folder / "images" / "train2017"
    images.mkdir(parents=True)
    known: list[dict[str, Any]] = []
    annotations: list[dict[str, int]] = []
    for number in range(photographs):
        name = f"{number:012d}.jpg"
        size = coco_size(DRAWS, name)
        Image.new("RGB", size, tuple(DRAWS.integer(f"{name} {c}", 0, 255) for c in "rgb")).save(
            images / name, quality=30
        )
        known.append({"id": number, "file_name": name, "width": size[0], "height": size[1]})
        for category in {DRAWS.integer(f"{name} object {n}", 0, len(OBJECTS) - 1) for n in range(2)}:
            annotations.append({"id": len(annotations), "image_id": number, "category_id": category})
    categories = [{"id": number, "name": name} for number, name in enumerate(OBJECTS)]
    instances = {"images": known, "annotations": annotations, "categories": categories}
    (folder / "instances_train2017.json").write_text(json.dumps(instances))
    shown = {
        k["file_name"]: {OBJECTS[a["category_id"]] for a in annotations if a["image_id"] == k["id"]} for k in known
    }
    for kind, least in (("single", 1), ("multi", 2)):
        (folder / f"{kind}.json").write_text(json.dumps([_asked(n, least, shown) for n in range(questions)]))
    return {"images": folder / "images", "annotations": folder / "instances_train2017.json"}


def _asked(number: int, least: int, shown: dict[str, set[str]]) -> dict[str, object]:
    """A question about a drawn anchor; the answers alternate, the target is not looked at."""
    anchor, target = DRAWS.order(f"objects {least} {number}", OBJECTS)[:2]
    having = DRAWS.order(f"needles {least} {number}", (name for name in shown if anchor in shown[name]))
    lacking = DRAWS.order(f"negatives {least} {number}", (name for name in shown if anchor not in shown[name]))
    needles = having[: least + (number % 2 if least > 1 else 0)]
    form = (
        "For the image with a {}, is there a {}?"
        if least == 1
        else "For all images with a {}, do all of them contain a {}?"
    )
    said = [
        {"from": "human", "value": form.format(anchor, target)},
        {"from": "gpt", "value": ("Yes", "No")[number % 2]},
    ]
    images = {"pos_image": needles, "neg_image": lacking[:9]}
    return {key: [f"train2017/{n}" for n in names] for key, names in images.items()} | {"conversations": said}


def draw_web_pages(documents: list[Path], folder: Path, questions: int) -> dict[str, Path]:
    """The PDFs' pages as an OBELICS file with pictures, and rows of all six tasks, `questions` of each."""
    images = folder / "images"
    images.mkdir(parents=True)
    with (folder / "obelics.jsonl").open("w", encoding="utf-8") as file:
        for path in documents:
            for page in _web_pages(path, images):
                file.write(json.dumps(page) + "\n")
    for number in range(4 * questions + 4):
        size = (DRAWS.integer(f"needle w {number}", 120, 400), DRAWS.integer(f"needle h {number}", 120, 400))
        tone = (number % 251, number // 251 * 40 % 256, 90)
        Image.new("RGB", size, tone).save(images / f"needle{number}.png")
    for task in TASKS:
        rows = (_row(task, number, questions) for number in range(questions))
        (folder / f"{task}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return {"images": images, "obelics": folder / "obelics.jsonl"}


def _web_pages(path: Path, images: Path) -> Iterator[dict[str, object]]:
    """Five PDF pages a web page; after every second one its picture, some larger than 1024 pixels."""
    with pymupdf.open(path) as pdf:
        for first in range(0, len(pdf), 5):
            texts: list[str | None] = []
            urls: list[str | None] = []
            for number in range(first, min(first + 5, len(pdf))):
                texts.append(" ".join(pdf[number].get_text().split()))
                urls.append(None)
                if number % 2:
                    name = f"{len(path.stem)}{path.stem[:8]}-{number}.jpg".replace(" ", "_")
                    dpi = 110 if number % 20 == 1 else 40
                    pdf[number].get_pixmap(dpi=dpi).pil_save(images / name, quality=60)
                    texts.append(None)
                    urls.append(f"https://example.org/{name}")
            metadata = json.dumps([None if url is None else {"src": url} for url in urls])
            general = json.dumps({"url": f"https://example.org/{path.stem}/{first}"})
            yield {"images": urls, "texts": texts, "metadata": metadata, "general_metadata": general}


def _row(task: str, number: int, questions: int) -> dict[str, object]:
    """A row in MM-NIAH's form: a short context of its own that holds its needles."""
    kind, needle = task.split("-")
    several = 3 if kind == "counting" or task == "reasoning-text" else 1
    names = [f"images/needle{(number * 4 + n) % (4 * questions + 4)}.png" for n in range(4)]
    opening = f"These notes belong to row {number} of {task}. They say little."
    closing = f"Here end the notes of row {number} of {task}. Nothing follows."
    code = f"zq{number:04d}{kind[:2]}"
    if needle == "text":
        parts = [f"The pass phrase part {n} of {kind} row {number} is {code}{n}." for n in range(several)]
        if kind == "counting":
            parts = [f"The little penguin of row {number} counted {n + 2} boats on day {n}." for n in range(several)]
        answer: object = json.dumps([n + 2 for n in range(several)]) if kind == "counting" else f"{code}0"
        meta: dict[str, object] = {"needles": parts, "choices": None, "choices_image_path": None}
        context = " ".join((opening, *parts, closing))
        return _as_row(number, context, f"What is said in row {number}?", answer, [], meta)
    hidden = names[:several]
    context = "\n".join((opening, *("<image>" for _ in hidden), closing))
    if kind == "counting":
        meta = {"needles": hidden, "choices": None, "choices_image_path": None}
        question = "How often is <image> seen in each picture?"
        return _as_row(number, context, question, "[1, 2, 1]", [*hidden, names[3]], meta)
    meta = {"needles": hidden, "choices": None, "choices_image_path": names}
    asked = (
        "Which picture stands" if kind == "retrieval" else "Which picture is the first image, whose corner is missing,"
    )
    return _as_row(number, context, f"{asked} in row {number}?", 0, hidden, meta)


def _as_row(
    number: int, context: str, question: str, answer: object, images: list[str], meta: dict[str, object]
) -> dict[str, object]:
    about = {"id": number, "images_list": images, "context": context, "question": question, "answer": answer}
    return {**about, "meta": {**meta, "placed_depth": [0.5]}}
