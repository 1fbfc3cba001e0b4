"""The releases in which leaks are planted: one that is drawn, and the real subset of MMLongBench-Doc."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from PIL import Image as Pillow
from worlds import draw_reports

from builders.samples.mm_niah.sources import draw_hidden_pictures
from mmlongbench.building.build import build
from mmlongbench.building.executors import LocalExecutor
from mmlongbench.io.progress import Progress
from mmlongbench.manifest.model import Manifest
from mmlongbench.shortcuts.measured import uniforms

REAL = Path(__file__).resolve().parents[2] / "shared/real/mmlongbench-doc"
"""The real subset, which may lie beside the checkout."""
WALKS, OTHERS, EMBLEMS, SIDE = 80, 90, 60, 56
OPTIONS = {"max_answer_words": 5}
AS_TEXT = {**OPTIONS, "pages_as": "text", "text_fill": "budget"}


def build_drawn(folder: Path) -> Path:
    """Build six datasets of drawn sources: pages as images and as texts, passages, photographs, emblems, exemplars."""
    pages = draw_reports(folder / "reports", 1)
    text = {**pages, "name": "text_mmlongdoc", "options": AS_TEXT}
    datasets = [
        {**pages, "options": OPTIONS},
        text,
        {"name": "infoseek", "builder": "vrag", "reader": "infoseek", "source": "sample", "options": {"gold": "lead"}},
        _walks(folder / "walks"),
        _emblems(folder / "emblems"),
        {"name": "shapes", "builder": "many_shot", "reader": "image_tables", "source": "sample"},
    ]
    return _built([{**each, "lengths": ["8K"]} for each in datasets], folder / "drawn")


def build_real(folder: Path, length: str) -> Path:
    """Build the real subset, its pages as images and as texts."""
    source = {"samples": str(REAL / "samples.json"), "documents": str(REAL / "documents")}
    about = {"builder": "docvqa", "reader": "mmlongbench_doc", "source": source, "lengths": [length]}
    pages = {**about, "name": "mmlongdoc", "options": OPTIONS}
    return _built([pages, {**about, "name": "text_mmlongdoc", "options": AS_TEXT}], folder / "real")


def _built(datasets: list[dict[str, Any]], out: Path) -> Path:
    manifest = Manifest.model_validate({"datasets": [{"seed": 42, "licence": "none", **each} for each in datasets]})
    build(manifest, out, LocalExecutor(1, Progress(is_shown=False)))
    return out


def build_clean(folder: Path, number: int) -> Path:
    """Build a release in which nothing tells, a different one for each number."""
    return _built([{**_walks(folder / "source", f"clean {number}"), "lengths": ["8K"]}], folder / "release")


def _walks(folder: Path, key: str = "") -> dict[str, Any]:
    """Yes and no about photographs of noise, one needle each."""
    (folder / "photographs").mkdir(parents=True)
    for number in range(WALKS + OTHERS):
        _noise(folder / "photographs" / _name(number, key), "photograph", number, key)
    with (folder / "questions.jsonl").open("w", encoding="utf-8") as file:
        for row in _asked_about_walks(key):
            file.write(f"{json.dumps(row)}\n")
    source = {"questions": folder / "questions.jsonl", "images": folder / "photographs"}
    return {"name": "walks", "builder": "visual_haystack", "reader": "photographs", "source": source}


def _asked_about_walks(key: str) -> Iterator[dict[str, Any]]:
    seen = ("dog", "heron", "cart", "mill", "barge", "gate", "kite", "goat")
    for number in range(WALKS):
        of = uniforms(3, "walk", number, key)
        others = [_name(other, key) for other in range(WALKS, WALKS + OTHERS)]
        question = f"Was a {seen[int(of[0] * len(seen))]} seen on walk {int(of[1] * 1000)}?"
        answer = "Yes" if of[2] < 0.5 else "No"
        row = {"id": f"q{number}", "question": question, "answer": answer}
        yield {**row, "needles": [_name(number, key)], "negatives": others}


def _emblems(folder: Path) -> dict[str, Any]:
    """Which of four emblems is among the pages; the emblems are noise, too."""
    found = draw_hidden_pictures(folder)
    with found["questions"].open("w", encoding="utf-8") as file:
        for number in range(EMBLEMS):
            names = [f"{int(uniforms(1, 'emblem', number, at)[0] * 1e7):07}{number:02}.jpg" for at in range(4)]
            for at, name in enumerate(names):
                _noise(folder / "pages/pictures" / name, "emblem", number, at)
            right = int(uniforms(1, "right", number)[0] * 4)
            choices = [f"pictures/{name}" for name in names]
            row = {"id": f"e{number}", "question": "Which of the following emblems appears among the pages?"}
            file.write(f"{json.dumps({**row, 'answer': right, 'needles': [choices[right]], 'choices': choices})}\n")
    options = {"task": "retrieval", "needle": "image"}
    return {"name": "emblems", "builder": "mm_niah", "reader": "own_pages", "source": found, "options": options}


def _noise(path: Path, *key: str | int) -> None:
    noise = (255 * uniforms(SIDE * SIDE, *key)).astype("u1").tobytes()
    Pillow.frombytes("L", (SIDE, SIDE), noise).save(path, quality=80, dpi=(72, 72))


def _name(number: int, key: str) -> str:
    """The name of a photograph; its digits are drawn."""
    return f"{int(uniforms(1, 'name', number, key)[0] * 1e8):08}.jpg"
