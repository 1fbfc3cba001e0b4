"""Drawn pictures of plain shapes: a class is a colour and a shape; the background differs in every picture."""

import colorsys
import math
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO

from PIL import Image, ImageDraw

from mmlongbench.task import Draws

COLOURS = {"red": 0.0, "orange": 0.08, "yellow": 0.15, "green": 0.35, "blue": 0.6, "violet": 0.78}
"""The hue of each colour."""
SHAPES = {"triangle": 3, "square": 4, "pentagon": 5, "hexagon": 6, "disc": 40, "star": 5, "cross": 4, "burst": 9}
"""The number of corners of each shape; the last three shapes also have a notch between any two corners."""
_NOTCHED = {"star": 0.4, "cross": 0.35, "burst": 0.7}
RINGED = {"ring": 40}
DRAWS = Draws(("drawn shapes",))
SIZES = ((420, 420), (420, 420), (420, 392), (392, 420), (448, 392))
Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Shape:
    """A class of pictures."""

    colour: str
    form: str

    @property
    def name(self) -> str:
        """The name, such as `blue star`."""
        return f"{self.colour} {self.form}"


CLASSES = tuple(Shape(colour, form) for colour in COLOURS for form in (*SHAPES, *RINGED))
"""The 54 classes."""


def draw_shape(shape: Shape, name: str) -> bytes:
    """Draw one picture of a class, as JPEG; each name gives a different picture."""
    draws = DRAWS.at(shape.name, name)
    size = draws.choice("size", SIZES)
    picture = _ground(size, draws)
    radius = min(size) * (0.2 + 0.2 * draws.fraction("radius"))
    centre = tuple(radius + (side - 2 * radius) * draws.fraction(f"centre {n}") for n, side in enumerate(size))
    points = list(_outline(shape.form, (centre[0], centre[1]), radius, 2 * math.pi * draws.fraction("turn")))
    red, green, blue = colorsys.hsv_to_rgb(COLOURS[shape.colour], 0.85, 0.75 + 0.2 * draws.fraction("light"))
    fill = (int(255 * red), int(255 * green), int(255 * blue))
    pen = ImageDraw.Draw(picture)
    if shape.form in RINGED:
        pen.line([*points, points[0], points[1]], fill=fill, width=int(radius / 3), joint="curve")
    else:
        pen.polygon(points, fill=fill, outline=(20, 20, 20))
    buffer = BytesIO()
    picture.save(buffer, "JPEG", quality=80)
    return buffer.getvalue()


def _ground(size: tuple[int, int], draws: Draws) -> Image.Image:
    """Draw a cloudy grey background."""
    clouds = bytes(draws.integer(f"cloud {n}", 90, 230) for n in range(64))
    grey = Image.frombytes("L", (8, 8), clouds).resize(size, Image.Resampling.BILINEAR)
    return Image.merge("RGB", (grey, grey, grey))


def _outline(form: str, centre: Point, radius: float, turn: float) -> Iterator[Point]:
    corners = (SHAPES | RINGED)[form]
    notch = _NOTCHED.get(form)
    steps = corners * (2 if notch else 1)
    for step in range(steps):
        long = radius * notch if notch and step % 2 else radius
        angle = turn + 2 * math.pi * step / steps
        yield centre[0] + long * math.cos(angle), centre[1] + long * math.sin(angle)
