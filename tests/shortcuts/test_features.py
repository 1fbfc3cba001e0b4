"""The headers of odd images are read as numbers, never as an error of the engine."""

from pathlib import Path
from typing import Any

from PIL import Image
from PIL.PngImagePlugin import PngInfo
from PIL.TiffImagePlugin import IFDRational, ImageFileDirectory_v2

from mmlongbench.shortcuts.features import META, ImageFacts


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
