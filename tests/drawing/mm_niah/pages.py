"""Drawn prose and pictures for the sample: no sentence answers a question, and no paragraph is repeated."""

from pathlib import Path
from typing import TYPE_CHECKING

from mmlongbench.task import Draws

if TYPE_CHECKING:
    from PIL import Image

TOWNS = ("Ossery", "Calder", "Wraxholm", "Peldon", "Ardle", "Thornmere", "Lissow", "Fenwick", "Marrowby", "Ketley")
THINGS = ("canal", "orchard", "foundry", "observatory", "ferry", "tannery", "aqueduct", "library", "market", "quarry")
FOLK = ("joiners", "weavers", "pilots", "surveyors", "gardeners", "masons", "printers", "carters", "clerks", "divers")
GOODS = ("barley", "slate", "wool", "copper", "cider", "timber", "paper", "lime", "honey", "rope")
WHEN = ("in a dry spring", "after the second flood", "under the new wardens", "before the frost", "late in the year")
HOW = ("slowly", "without much noise", "at great cost", "with borrowed tools", "to everyone's surprise", "by lantern")
FORMS = (
    "The {thing} of {town} was rebuilt {when} by {number} {folk}, who worked {how}.",
    "Most of the {goods} that left {town} in {year} went by way of the {thing}.",
    "Letters of {year} complain that the {folk} of {town} were paid in {goods}.",
    "A plan for a {thing} beside the river failed {when}, and {number} shares were returned.",
    "Visitors to {town} are shown the {thing}, although little of it is older than {year}.",
    "{When}, some {number} carts of {goods} crossed the bridge at {town} in a single week.",
    "The {folk} kept a ledger from {year} onwards, in which {goods} and the {thing} are named side by side.",
    "What remains of the {thing} stands {number} paces from the square of {town}.",
)
PARAGRAPHS = 8
SMALL, LARGE = (448, 336), (1400, 900)
OFFERED = 4
"""How many variants of a sign a question offers; as many others are on the pictures that no question is about."""


def sentence(draws: Draws, name: str) -> str:
    """Return one sentence about an invented place."""
    form = draws.choice(f"{name} form", FORMS)
    when = draws.choice(f"{name} when", WHEN)
    return form.format(
        town=draws.choice(f"{name} town", TOWNS),
        thing=draws.choice(f"{name} thing", THINGS),
        folk=draws.choice(f"{name} folk", FOLK),
        goods=draws.choice(f"{name} goods", GOODS),
        how=draws.choice(f"{name} how", HOW),
        when=when,
        When=when[0].upper() + when[1:],
        number=draws.integer(f"{name} number", 12, 399),
        year=draws.integer(f"{name} year", 1702, 1899),
    )


def opening_of(draws: Draws) -> str:
    """Return a few sentences."""
    return " ".join(sentence(draws, str(number)) for number in range(3))


def page_of(draws: Draws) -> list[str]:
    """Return the paragraphs of a page, each with four to seven sentences."""
    counts = [draws.integer(f"length {number}", 4, 7) for number in range(PARAGRAPHS)]
    return [" ".join(sentence(draws, f"{at} {n}") for n in range(count)) for at, count in enumerate(counts)]


def draw_view(draws: Draws, path: Path, *, is_large: bool, sign: "Image.Image | None" = None) -> None:
    """Draw hills under a sky with a sun or a moon, as a picture of a web page, and with a sign on it if there is one. A
    release shrinks large pictures.
    """
    from PIL import Image, ImageDraw

    width, height = LARGE if is_large else SMALL
    tone = [draws.integer(f"sky {channel}", 120, 235) for channel in range(3)]
    picture = Image.new("RGB", (width, height), tuple(tone))
    pen = ImageDraw.Draw(picture)
    x, y = (int(draws.fraction(side) * most) for side, most in (("x", width), ("y", height // 3)))
    pen.ellipse((x, y, x + height // 6, y + height // 6), fill=(250, 240, 190))
    for hill in range(4):
        top = height // 2 + hill * height // 10
        left = int(draws.fraction(f"hill {hill}") * width) - width // 2
        shade = tuple(value * (5 - hill) // 8 for value in reversed(tone))
        pen.ellipse((left, top, left + width, top + height), fill=shade)
    if sign:
        shown = sign.resize((height // 3, height // 3))
        at = [int(draws.fraction(f"sign {side}") * most) for side, most in (("x", width), ("y", height))]
        picture.paste(shown, (at[0] * 2 // 3, at[1] * 2 // 3))
    picture.save(path, "JPEG", quality=60)


def emblem(draws: Draws, variant: int) -> "Image.Image":
    """Return a sign on a plain background. The variants differ in form and colour: a question offers four of them (0 to
    3); the other four have similar forms and are on all other pictures.
    """
    from PIL import Image, ImageDraw

    ground = tuple(draws.integer(f"ground {channel}", 180, 250) for channel in range(3))
    ink = tuple(draws.integer(f"ink {variant} {channel}", 0, 140) for channel in range(3))
    picture = Image.new("RGB", (224, 224), ground)
    pen = ImageDraw.Draw(picture)
    box, turned = (40, 40, 184, 184), variant >= OFFERED
    if variant % OFFERED == 0:
        pen.ellipse((40, 72, 184, 152) if turned else box, outline=ink, width=16)
    elif variant % OFFERED == 1 and not turned:
        pen.rectangle(box, outline=ink, width=16)
    elif variant % OFFERED == 1:
        pen.polygon(((112, 24), (200, 112), (112, 200), (24, 112)), outline=ink, width=16)
    elif variant % OFFERED == 2:
        pen.polygon(((112, 184), (188, 36), (36, 36)) if turned else ((112, 36), (188, 184), (36, 184)), fill=ink)
    else:
        pen.line((112, 24, 112, 200) if turned else (40, 40, 184, 184), fill=ink, width=20)
        pen.line((24, 112, 200, 112) if turned else (184, 40, 40, 184), fill=ink, width=20)
    return picture
