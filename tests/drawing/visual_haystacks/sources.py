"""A small world that the package draws itself: photographs of plain objects, COCO's annotations of them, questions.

The questions of `draw_single` have one needle and the original format; those of `draw_several` have two or three
needles and the format of your own photographs. Both are about the same photographs. Questions and pictures are made
from the same plan, so they always agree. The bytes are the same every time.
"""

import json
from collections.abc import Iterator, Sequence
from itertools import cycle
from pathlib import Path
from typing import TypeAlias

from mmlongbench.task import Draws
from tests.drawing.visual_haystacks.pictures import SPLIT, Photograph, draw_photograph, plan_photographs
from tests.drawing.visual_haystacks.things import THINGS

COUNT = 330
"""The number of photographs. About 270 of them do not show a given object: three times as many as fit at 32K, so the
packer can choose among many photographs for the closing units."""
QUESTIONS = 12
OWN = 9
"""The number of negatives that each question lists, as in those original files that have ten photographs for each
question."""
DRAWS = Draws(("drawn photographs",))
Row: TypeAlias = dict[str, object]


def draw_single(folder: Path, count: int = COUNT) -> dict[str, Path]:
    """Draw photographs with COCO's annotations, and twelve questions with one needle each, in the original format."""
    photographs = plan_photographs(count, DRAWS)
    questions = folder / "visual_haystack_10.json"
    rows = [
        {"pos_image": needles, "neg_image": negatives, "conversations": _conversation(question, answer)}
        for _, question, answer, needles, negatives in _single(photographs)
    ]
    return {"questions": _write(questions, _json(rows)), **_write_photographs(folder, photographs)}


def draw_several(folder: Path) -> dict[str, Path]:
    """Draw photographs with COCO's annotations, and twelve questions with two or three needles each, in the format of
    your own photographs.
    """
    photographs = plan_photographs(COUNT, DRAWS)
    keys = ("anchor", "question", "answer", "needles", "negatives")
    rows = [
        {"id": f"vh_multi-{number}", **dict(zip(keys, row, strict=True))}
        for number, row in enumerate(_several(photographs))
    ]
    questions = _write(folder / "questions.jsonl", b"".join(map(_json, rows)))
    return {"questions": questions, **_write_photographs(folder, photographs)}


_Asked = tuple[str, str, str, list[str], list[str]]
"""(anchor, question, answer, needles, negatives) of a question."""


def _single(photographs: Sequence[Photograph]) -> Iterator[_Asked]:
    """Yield questions with the answers Yes and No in turn. Each object is the anchor of one question, and no photograph
    is the needle of two questions.
    """
    used: set[str] = set()
    for number, anchor in zip(range(QUESTIONS), THINGS, strict=True):
        draws = DRAWS.at("single", number)
        fit = (p for p in photographs if anchor in p.shows and len(p.shows) > 1 and p.name not in used)
        needle = draws.order("needle", fit, lambda p: p.name)[0]
        used.add(needle.name)
        is_yes = number % 2 == 0
        others = needle.shows - {anchor} if is_yes else THINGS.keys() - needle.shows
        target = draws.order("target", others)[0]
        question = f"For the image with {_a(anchor)}, is there {_a(target)}?"
        yield anchor, question, "Yes" if is_yes else "No", [needle.name], _negatives(photographs, anchor, draws)


def _several(photographs: Sequence[Photograph]) -> Iterator[_Asked]:
    """Yield questions with `all` or `any` about the needles, with the answers Yes and No in turn. If the answer to an
    `all` question is No, or to an `any` question Yes, exactly one needle shows the target.
    """
    turns = cycle((word, is_yes) for word in ("all", "any") for is_yes in (True, False))
    for number, (anchor, (word, is_yes)) in enumerate(zip(THINGS, turns, strict=False)):
        draws = DRAWS.at("several", number)
        count = 2 + number // 4 % 2
        having = {"all": count if is_yes else 1, "any": 1 if is_yes else 0}[word]
        target, needles = _needles(photographs, anchor, having, count, draws)
        question = f"For all images with {_a(anchor)}, do {word} of them contain {_a(target)}?"
        yield anchor, question, "Yes" if is_yes else "No", needles, _negatives(photographs, anchor, draws)


def _needles(
    photographs: Sequence[Photograph], anchor: str, having: int, count: int, draws: Draws
) -> tuple[str, list[str]]:
    """Return a target, and `count` photographs with the anchor; `having` of these photographs show the target."""
    drawn = draws.order("needles", (p for p in photographs if anchor in p.shows), lambda p: p.name)
    for target in draws.order("targets", THINGS.keys() - {anchor}):
        hit = [p.name for p in drawn if target in p.shows][:having]
        missed = [p.name for p in drawn if target not in p.shows][: count - having]
        if len(hit) + len(missed) == count:
            return target, draws.order("order", [*hit, *missed])
    raise ValueError(f"the plan of photographs has too few with {_a(anchor)}")


def _negatives(photographs: Sequence[Photograph], anchor: str, draws: Draws) -> list[str]:
    return draws.order("negatives", (p.name for p in photographs if anchor not in p.shows))[:OWN]


def _conversation(question: str, answer: str) -> list[Row]:
    return [{"from": "human", "value": question}, {"from": "gpt", "value": answer}]


def _a(thing: str) -> str:
    return f"{'an' if thing[0] in 'aeiou' else 'a'} {thing}"


def _write_photographs(folder: Path, photographs: Sequence[Photograph]) -> dict[str, Path]:
    images = folder / "coco"
    (images / SPLIT).mkdir(parents=True, exist_ok=True)
    for photograph in photographs:
        _write(images / photograph.name, draw_photograph(photograph, DRAWS.at("drawing", photograph.number)))
    return {"images": images, "annotations": _write(folder / f"instances_{SPLIT}.json", _json(_instances(photographs)))}


def _instances(photographs: Sequence[Photograph]) -> Row:
    """Return the annotations, with a box for each object."""
    categories = {name: number for number, name in enumerate(THINGS, 1)}
    images = [
        {"id": p.number, "file_name": p.file, "width": width, "height": height}
        for p in photographs
        for width, height in [p.size]
    ]
    boxes = [(p.number, categories[thing], box) for p in photographs for thing, box in p.things]
    annotations = [
        {"id": id, "image_id": image, "category_id": category, "bbox": box, "area": box[2] * box[3], "iscrowd": 0}
        for id, (image, category, box) in enumerate(boxes, 1)
    ]
    listed = [{"id": number, "name": name} for name, number in categories.items()]
    return {"images": images, "annotations": annotations, "categories": listed}


def _json(value: object) -> bytes:
    return (json.dumps(value, ensure_ascii=False) + "\n").encode()


def _write(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path
