"""The objects of the drawn photographs: plain shapes in a square of 100 × 100, with COCO's names."""

from collections.abc import Mapping
from typing import Literal, TypeAlias

Tone: TypeAlias = Literal["main", "other", "dark", "light"]
Shape: TypeAlias = tuple[Literal["oval", "shape"], Tone, tuple[int, ...]]
"""An ellipse given by its box, or a polygon given by its corners: x, y, x, y …"""

THINGS: Mapping[str, tuple[Shape, ...]] = {
    "kite": (
        ("shape", "dark", (48, 60, 52, 60, 60, 80, 46, 98, 42, 96, 55, 80)),
        ("shape", "main", (50, 0, 80, 28, 50, 66, 20, 28)),
        ("shape", "other", (50, 0, 80, 28, 50, 28)),
        ("shape", "other", (50, 66, 20, 28, 50, 28)),
    ),
    "sports ball": (
        ("oval", "dark", (4, 4, 96, 96)),
        ("oval", "main", (8, 8, 92, 92)),
        ("shape", "other", (10, 42, 90, 42, 90, 58, 10, 58)),
        ("shape", "other", (42, 10, 58, 10, 58, 90, 42, 90)),
        ("oval", "light", (40, 40, 60, 60)),
    ),
    "umbrella": (
        ("shape", "dark", (48, 30, 52, 30, 52, 90, 62, 90, 62, 96, 48, 96)),
        ("shape", "main", (2, 48, 12, 24, 32, 8, 50, 4, 68, 8, 88, 24, 98, 48)),
        ("shape", "other", (34, 48, 40, 20, 50, 4, 60, 20, 66, 48)),
    ),
    "boat": (
        ("shape", "dark", (48, 4, 52, 4, 52, 70, 48, 70)),
        ("shape", "light", (54, 8, 90, 62, 54, 62)),
        ("shape", "other", (46, 18, 46, 62, 16, 62)),
        ("shape", "main", (2, 68, 98, 68, 82, 94, 18, 94)),
    ),
    "chair": (
        ("shape", "dark", (20, 60, 28, 60, 28, 98, 20, 98)),
        ("shape", "dark", (74, 60, 82, 60, 82, 98, 74, 98)),
        ("shape", "main", (20, 2, 82, 2, 82, 12, 20, 12)),
        ("shape", "other", (20, 20, 82, 20, 82, 40, 20, 40)),
        ("shape", "dark", (20, 2, 28, 2, 28, 60, 20, 60)),
        ("shape", "dark", (74, 2, 82, 2, 82, 60, 74, 60)),
        ("shape", "main", (12, 52, 90, 52, 90, 66, 12, 66)),
    ),
    "clock": (
        ("oval", "dark", (4, 4, 96, 96)),
        ("oval", "main", (8, 8, 92, 92)),
        ("oval", "light", (16, 16, 84, 84)),
        ("shape", "dark", (48, 24, 52, 24, 52, 52, 48, 52)),
        ("shape", "dark", (48, 48, 72, 60, 70, 64, 48, 53)),
        ("oval", "other", (45, 45, 55, 55)),
    ),
    "cup": (
        ("oval", "dark", (62, 28, 98, 74)),
        ("oval", "light", (70, 38, 90, 64)),
        ("shape", "main", (10, 18, 76, 18, 68, 92, 18, 92)),
        ("oval", "dark", (10, 8, 76, 28)),
        ("oval", "other", (16, 11, 70, 25)),
    ),
    "car": (
        ("shape", "other", (22, 50, 34, 26, 68, 26, 82, 50)),
        ("shape", "light", (30, 48, 38, 32, 50, 32, 50, 48)),
        ("shape", "light", (54, 48, 54, 32, 65, 32, 74, 48)),
        ("shape", "main", (2, 50, 98, 50, 98, 76, 2, 76)),
        ("oval", "dark", (12, 62, 36, 86)),
        ("oval", "dark", (64, 62, 88, 86)),
        ("oval", "light", (19, 69, 29, 79)),
        ("oval", "light", (71, 69, 81, 79)),
    ),
    "traffic light": (
        ("shape", "dark", (46, 70, 54, 70, 54, 100, 46, 100)),
        ("shape", "main", (30, 2, 70, 2, 70, 74, 30, 74)),
        ("shape", "dark", (35, 6, 65, 6, 65, 70, 35, 70)),
        ("oval", "other", (41, 8, 59, 26)),
        ("oval", "light", (41, 29, 59, 47)),
        ("oval", "main", (41, 50, 59, 68)),
    ),
    "tv": (
        ("shape", "dark", (42, 70, 58, 70, 66, 92, 34, 92)),
        ("shape", "dark", (2, 10, 98, 10, 98, 74, 2, 74)),
        ("shape", "main", (7, 15, 93, 15, 93, 69, 7, 69)),
        ("shape", "other", (7, 69, 34, 40, 54, 58, 70, 46, 93, 69)),
        ("oval", "light", (70, 20, 84, 34)),
    ),
    "pizza": (
        ("shape", "dark", (6, 18, 24, 8, 50, 4, 76, 8, 94, 18, 50, 98)),
        ("shape", "light", (14, 24, 50, 16, 86, 24, 50, 90)),
        ("oval", "main", (28, 24, 46, 42)),
        ("oval", "main", (54, 28, 72, 46)),
        ("oval", "other", (42, 50, 58, 66)),
    ),
    "apple": (
        ("shape", "dark", (48, 26, 46, 6, 52, 4, 54, 26)),
        ("shape", "other", (54, 18, 70, 4, 86, 8, 74, 20)),
        ("oval", "main", (8, 20, 60, 92)),
        ("oval", "main", (40, 20, 92, 92)),
        ("oval", "main", (24, 40, 76, 98)),
        ("oval", "light", (20, 34, 34, 54)),
    ),
}
