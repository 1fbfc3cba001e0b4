"""The numbers of a unit: the headers of odd images are read as numbers, and the ends of a context have neighbours."""

from pathlib import Path
from typing import Any

from PIL import Image
from PIL.PngImagePlugin import PngInfo
from PIL.TiffImagePlugin import IFDRational, ImageFileDirectory_v2

from mmlongbench.shortcuts.features import META, ImageFacts, of_neighbours
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
    assert [of_neighbours(units, place)[:2] for place in range(4)] == [(0, 0), (1, 1), (0, 1), (1, 1)]
    assert of_neighbours([image], 0)[:2] == (1, 1)
