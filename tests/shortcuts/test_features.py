"""The numbers of a unit: the headers of odd images are read as numbers, and the ends of a context have neighbours."""

import math
from pathlib import Path
from typing import Any

from asked_questions import judged, unit
from PIL import Image
from PIL.PngImagePlugin import PngInfo
from PIL.TiffImagePlugin import IFDRational, ImageFileDirectory_v2

from mmlongbench.draws import Draws
from mmlongbench.shortcuts.features import META, NEIGHBOURS, ImageFacts, of_neighbours, table, written
from mmlongbench.shortcuts.golds import Group, find_golds
from mmlongbench.shortcuts.offers import of_offers
from mmlongbench.shortcuts.reading import ShownUnit


def dots(folder: Path, name: str, **options: Any) -> float:
    Image.new("RGB", (20, 20), "red").save(folder / name, **options)
    return ImageFacts(folder).of(name)["meta"][META.index("dots per inch")]


def test_dots_per_inch_are_read(tmp_path: Path) -> None:
    assert dots(tmp_path, "a.jpg", dpi=(300, 300)) == 300
    assert dots(tmp_path, "b.jpg") == 0


def test_dots_that_are_no_number_count_as_none(tmp_path: Path) -> None:
    text = PngInfo()
    text.add_text("dpi", "many")
    assert dots(tmp_path, "text.png", pnginfo=text) == 0
    tags = ImageFileDirectory_v2()
    tags[282] = tags[283] = IFDRational(0, 0)
    assert dots(tmp_path, "none.tif", tiffinfo=tags) == 0


def test_a_unit_at_an_end_has_its_one_neighbour_on_both_sides() -> None:
    image = ShownUnit("", "", (), ("a.png",), is_gold=False)
    text = ShownUnit("", "", ("A text.",), (), is_gold=False)
    units = [image, text, image, image]
    assert [row[:2] for row in of_neighbours(units, range(4))] == [(0, 0), (1, 1), (0, 1), (1, 1)]
    assert of_neighbours([image], [0])[0][:2] == (1, 1)


def context_of_pages(question: int) -> Group:
    """A context of four own pages between padding; any of them may hold the answer."""
    gold = 3 + Draws(("pages", question)).integer("gold", 0, 3)
    roles = ["padding"] * 3 + ["own"] * 4 + ["padding"] * 3
    units = [ShownUnit("", role, ("A page.",), (), at == gold, at == gold) for at, role in enumerate(roles)]
    is_gold = tuple(at == gold for at in range(3, 7))
    return Group(f"{question}", f"{question}", (f"{question}",), table(of_neighbours(units, range(3, 7))), is_gold)


def test_pages_at_an_edge_do_not_look_like_gold() -> None:
    measured = find_golds("gold from its neighbours", NEIGHBOURS, [context_of_pages(n) for n in range(120)])
    finding = judged(measured)
    assert finding.verdict != "leak"
    assert abs(finding.excess) < 0.06


def context_of_roles(question: int) -> Group:
    """A context of negatives and padding in a drawn order, with a needle at a drawn place."""
    draws = Draws(("roles", question))
    roles, gold = draws.order("roles", ["negative"] * 5 + ["padding"] * 5), draws.integer("gold", 0, 10)
    units = [unit(role, "A text.") for role in (*roles[:gold], "needle", *roles[gold:])]
    is_gold = tuple(each.is_gold for each in units)
    return Group(f"{question}", f"{question}", (f"{question}",), table(of_neighbours(units, range(11))), is_gold)


def test_a_needle_between_units_of_several_roles_is_not_told_by_them() -> None:
    assert find_golds("gold from its neighbours", NEIGHBOURS, [context_of_roles(n) for n in range(120)]) is None


def test_numbers_that_are_infinite_or_none_are_compared() -> None:
    assert table([(math.inf, math.nan, -math.inf, 2.0)]).tolist() == [[1e15, 0.0, -1e15, 2.0]]
    assert of_offers(["inf", "nan", "3"], "")[0] == (0.0, 1.0, 0.0, 0.0)  # no numbers, so in the order of letters
    assert written("bytes", table([(math.inf,)])[0, 0]) == "1,000,000,000,000,000"
