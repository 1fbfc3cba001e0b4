"""Tables of images whose bytes the Hub can store once, whatever else is in the table."""

from collections.abc import Iterable
from hashlib import shake_256
from pathlib import Path

from mmlongbench.exports.row_groups import picture_of, picture_schema, write_rows

SIZE = 100_000
HEADER = 20
"""The bytes before an image that are compared: its length, and the end of the header of its chunk."""


def image(number: int) -> bytes:
    return shake_256(b"image %d" % number).digest(SIZE)


def written(path: Path, numbers: Iterable[int]) -> bytes:
    cells = ((str(n), image(n)) for n in numbers)
    rows = (({"sha256": name, "image": picture_of(data, name, "a.jpg"), "path": name}, SIZE) for name, data in cells)
    write_rows(path, picture_schema("sha256", "path"), rows, is_packed=True)
    return path.read_bytes()


def test_an_image_has_the_same_bytes_around_it_wherever_it_is(tmp_path: Path) -> None:
    before = written(tmp_path / "before.parquet", range(30))
    after = written(tmp_path / "after.parquet", (30, *range(0, 30, 2), 31, *range(1, 30, 2)))
    for number in range(30):
        first, second = (data.index(image(number)) for data in (before, after))
        assert before[first - HEADER : first] == after[second - HEADER : second]
