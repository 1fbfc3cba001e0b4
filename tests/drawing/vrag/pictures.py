"""The sample's pictures as files: what is drawn, at which size, as JPEG."""

from collections.abc import Callable, Mapping
from io import BytesIO

from PIL import Image

from mmlongbench.task import Draws
from tests.drawing.vrag import buildings, nature, things
from tests.drawing.vrag.canvas import Sheet

SIZES = ((512, 384), (480, 640), (640, 427), (500, 500), (600, 400))
TURNED = 7
"""The number of the entity whose picture is stored on its side, as cameras do: its EXIF orientation is 6."""
_ORIENTATION = 0x0112
_DRAWN: Mapping[str, Callable[[tuple[int, int], int, Draws], Sheet]] = {
    "grasshopper": nature.draw_grasshopper,
    "moth": nature.draw_moth,
    "bird": nature.draw_bird,
    "fish": nature.draw_fish,
    "snail": nature.draw_snail,
    "flower": nature.draw_flower,
    "lighthouse": buildings.draw_lighthouse,
    "bridge": buildings.draw_bridge,
    "tower": buildings.draw_tower,
    "flag": things.draw_flag,
    "instrument": things.draw_instrument,
}


def draw_picture(kind: str, number: int, variant: int, draws: Draws) -> bytes:
    """Return the JPEG of an entity; `number` is its position among all entities, and `variant` its position among the
    entities of its kind.
    """
    picture = _DRAWN[kind](SIZES[number % len(SIZES)], variant, draws).finished()
    exif = Image.Exif()
    if number == TURNED:
        picture = picture.transpose(Image.Transpose.ROTATE_90)
        exif[_ORIENTATION] = 6
    file = BytesIO()
    picture.save(file, "JPEG", quality=90, exif=exif)
    return file.getvalue()
