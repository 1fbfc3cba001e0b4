"""The drawn photographs: their sizes, the objects in them and their places, and their JPEG."""

import colorsys
from dataclasses import dataclass
from io import BytesIO

from PIL import Image, ImageDraw, ImageOps

from mmlongbench.task import Draws
from tests.drawing.visual_haystacks.things import THINGS, Shape

SPLIT = "train2017"
Colour = tuple[int, int, int]
Box = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class Photograph:
    """A photograph before it is drawn."""

    number: int
    size: tuple[int, int]
    things: tuple[tuple[str, Box], ...]
    """(object, its box as left, top, width, height) for each object; no object twice."""

    @property
    def file(self) -> str:
        """The name of its file, in COCO's style."""
        return f"{self.number:012}.jpg"

    @property
    def name(self) -> str:
        """Its name below the root."""
        return f"{SPLIT}/{self.file}"

    @property
    def shows(self) -> frozenset[str]:
        """The objects in it."""
        return frozenset(thing for thing, _ in self.things)


def plan_photographs(count: int, draws: Draws) -> tuple[Photograph, ...]:
    """Return `count` photographs of COCO's sizes, each with one to three objects side by side."""
    return tuple(_photograph(9 + 7 * at, draws.at("photograph", at)) for at in range(count))


def _photograph(number: int, draws: Draws) -> Photograph:
    size = _size(number * 37 % 100, draws)
    things = draws.order("things", THINGS)[: draws.choice("how many", (1, 2, 2, 3))]
    is_wide = size[0] >= size[1]
    slot = max(size) / len(things)
    boxes = []
    for at, thing in enumerate(things):
        here = draws.at(thing)
        side = int(min(0.86 * slot, (0.4 + 0.3 * here.fraction("side")) * min(size)))
        along, across = int(at * slot + (slot - side) * here.fraction("along")), min(size) - side
        aside = int(across * (0.15 + 0.75 * here.fraction("across")))
        boxes.append((thing, (along, aside, side, side) if is_wide else (aside, along, side, side)))
    return Photograph(number, size, tuple(boxes))


def _size(percent: int, draws: Draws) -> tuple[int, int]:
    """Draw a size in pixels with COCO's frequencies: 23 % are 640 × 480, 28 % 640 × 427, 17 % are upright."""
    for bound, size in ((23, (640, 480)), (51, (640, 427)), (60, (427, 640)), (68, (480, 640))):
        if percent < bound:
            return size
    low, high = sorted(draws.integer(side, 400, 640) for side in ("one side", "other side"))
    return high, low


def draw_photograph(photograph: Photograph, draws: Draws) -> bytes:
    """Return the JPEG of a photograph: a sky, a ground, and the objects on them."""
    width, height = photograph.size
    hue = draws.fraction("hue")
    fade = ImageOps.colorize(Image.linear_gradient("L"), _colour(hue, 0.35, 0.8), _colour(hue + 0.06, 0.1, 0.95))
    picture = fade.resize(photograph.size, Image.Resampling.BILINEAR)
    draw = ImageDraw.Draw(picture)
    level = int(height * (0.5 + 0.3 * draws.fraction("level")))
    tilt = draws.integer("tilt", -30, 30)
    ground = _colour(draws.fraction("ground"), 0.3, 0.4 + 0.3 * draws.fraction("light"))
    draw.polygon([(0, level + tilt), (width, level - tilt), (width, height), (0, height)], ground)
    for thing, box in photograph.things:
        here = draws.at(thing)
        main = here.fraction("hue")
        tones = {
            "main": _colour(main, 0.75, 0.8),
            "other": _colour(main + 0.25 + 0.5 * here.fraction("other"), 0.65, 0.7),
            "dark": _colour(main, 0.4, 0.2),
            "light": _colour(main, 0.12, 0.97),
        }
        for shape in THINGS[thing]:
            _draw_shape(draw, shape, box, tones[shape[1]])
    file = BytesIO()
    picture.save(file, "JPEG", quality=60)
    return file.getvalue()


def _draw_shape(draw: ImageDraw.ImageDraw, shape: Shape, box: Box, fill: Colour) -> None:
    form, _, numbers = shape
    left, top, width, height = box
    points = [
        (left + x * width / 100, top + y * height / 100) for x, y in zip(numbers[::2], numbers[1::2], strict=True)
    ]
    if form == "oval":
        draw.ellipse([*points[0], *points[1]], fill)
    else:
        draw.polygon(points, fill)


def _colour(hue: float, saturation: float, value: float) -> Colour:
    red, green, blue = (round(part * 255) for part in colorsys.hsv_to_rgb(hue % 1, saturation, value))
    return red, green, blue
