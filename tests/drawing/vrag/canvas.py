"""A sheet for drawing the sample's pictures: shapes in hundredths of its shorter side, smooth edges, backgrounds."""

import colorsys
from collections.abc import Sequence
from math import cos, pi, radians, sin

from PIL import Image, ImageDraw, ImageOps

from mmlongbench.task import Draws

Colour = tuple[int, int, int]
Point = tuple[float, float]
FINE = 2
"""How many pixels are drawn for each final pixel, along each side."""


def colour(hue: float, saturation: float, value: float) -> Colour:
    """Return a colour by hue (in turns), saturation and value (0 to 1)."""
    red, green, blue = colorsys.hsv_to_rgb(hue % 1, saturation, value)
    return round(red * 255), round(green * 255), round(blue * 255)


def mix(one: Colour, other: Colour, share: float) -> Colour:
    """Return a mixture of two colours; `share`, from 0 to 1, is the part of the second colour."""
    red, green, blue = (round(a + (b - a) * share) for a, b in zip(one, other, strict=True))
    return red, green, blue


BLACK, WHITE = (30, 28, 34), (250, 248, 240)


class Sheet:
    """A sheet whose middle square goes from (0, 0) at its top left to (100, 100)."""

    def __init__(self, size: tuple[int, int], top: Colour, bottom: Colour) -> None:
        large = (size[0] * FINE, size[1] * FINE)
        fade = ImageOps.colorize(Image.linear_gradient("L"), top, bottom)
        self._image = fade.resize(large, Image.Resampling.BILINEAR)
        self._draw = ImageDraw.Draw(self._image)
        self._unit = min(large) / 100
        self._left, self._top = (large[0] - min(large)) / 2, (large[1] - min(large)) / 2

    @property
    def edges(self) -> tuple[float, float, float, float]:
        """The left, top, right and bottom of the whole sheet."""
        left, top = self._left / self._unit, self._top / self._unit
        return -left, -top, 100 + left, 100 + top

    def shape(self, points: Sequence[Point], fill: Colour) -> None:
        """Draw a filled polygon."""
        self._draw.polygon([self._pixel(point) for point in points], fill=fill)

    def box(self, x: float, y: float, width: float, height: float, fill: Colour) -> None:
        """Draw an upright rectangle by its top left corner."""
        self.shape([(x, y), (x + width, y), (x + width, y + height), (x, y + height)], fill)

    def oval(self, x: float, y: float, rx: float, ry: float, fill: Colour, turn: float = 0) -> None:
        """Draw a filled ellipse around a centre, turned clockwise by a number of degrees."""
        self.shape(oval_points(x, y, rx, ry, turn), fill)

    def line(self, points: Sequence[Point], fill: Colour, width: float = 1.0) -> None:
        """Draw a line with round joints and ends."""
        pixels = [self._pixel(point) for point in points]
        thick = max(1, round(width * self._unit))
        self._draw.line(pixels, fill=fill, width=thick, joint="curve")
        radius = thick / 2
        for x, y in (pixels[0], pixels[-1]) if thick > 2 else ():
            self._draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill=fill)

    def hills(self, level: float, rise: float, fill: Colour, draws: Draws) -> None:
        """Draw ground from a wavy line at about `level` down to the lower edge."""
        left, _, right, bottom = self.edges
        phase, length = draws.fraction("phase") * 2 * pi, 22 + 20 * draws.fraction("length")
        xs = [left + (right - left) * at / 60 for at in range(61)]
        ridge = [(x, level + rise * (sin(x / length + phase) + 0.4 * sin(x / length * 2.7 + 2 * phase))) for x in xs]
        self.shape([*ridge, (right, bottom), (left, bottom)], fill)

    def blades(self, level: float, fill: Colour, draws: Draws, many: int = 60, length: float = 14) -> None:
        """Draw grass that grows from below `level`."""
        left, _, right, bottom = self.edges
        for at in range(many):
            here = draws.at("blade", at)
            x = left + (right - left) * here.fraction("x")
            y = level + (bottom - level) * here.fraction("y")
            lean, tall = 8 * here.fraction("lean") - 4, length * (0.5 + here.fraction("tall"))
            shade = mix(fill, BLACK if here.fraction("tone") < 0.5 else WHITE, 0.18 * here.fraction("amount"))
            self.shape([(x - 0.6, y + tall), (x + lean, y), (x + 0.6, y + tall)], shade)

    def waves(self, level: float, top: Colour, bottom: Colour, draws: Draws) -> None:
        """Draw a sea in bands from `level` down."""
        *_, low = self.edges
        for at in range(6):
            here = draws.at("wave", at)
            self.hills(level + (low - level) * at / 6, 0.5 + at * 0.25, mix(top, bottom, at / 5), here)

    def clouds(self, draws: Draws, fill: Colour = WHITE) -> None:
        """Draw two or three clouds near the upper edge."""
        left, top, right, _ = self.edges
        for at in range(draws.integer("clouds", 2, 3)):
            here = draws.at("cloud", at)
            x, y = left + (right - left) * (at + here.fraction("x")) / 3, top + 8 + 16 * here.fraction("y")
            for dx, dy, r in ((-7, 1, 4), (0, -1.5, 6), (7, 1, 4.5), (2, 2, 5)):
                self.oval(x + dx, y + dy, r * 1.5, r * 0.8, fill)

    def finished(self) -> Image.Image:
        """Return the picture at its final size."""
        return self._image.reduce(FINE)

    def _pixel(self, point: Point) -> Point:
        return self._left + point[0] * self._unit, self._top + point[1] * self._unit


def oval_points(
    x: float, y: float, rx: float, ry: float, turn: float = 0, begin: float = 0, end: float = 360
) -> list[Point]:
    """Return points of an ellipse, or of the arc between two angles (0 is right, 90 is below), turned."""
    right, down = cos(radians(turn)), sin(radians(turn))
    steps = 40
    angles = [radians(begin + (end - begin) * at / steps) for at in range(steps + 1)]
    flat = [(rx * cos(angle), ry * sin(angle)) for angle in angles]
    return [(x + dx * right - dy * down, y + dx * down + dy * right) for dx, dy in flat]


def mirrored(points: Sequence[Point], axis: float = 50) -> list[Point]:
    """Return the points mirrored at a vertical axis."""
    return [(2 * axis - x, y) for x, y in points]
