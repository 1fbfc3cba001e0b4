"""Joined pages: how they are divided, where they stand, and that the image is as planned."""

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from mmlongbench.documents.joined_pages import MAX_JOINED_SIDE, JoinPages, join, layout

sides = st.integers(1, 3000)


@given(pages=st.integers(1, 400), images=st.sampled_from([1, 5, 20]))
def test_every_page_is_in_one_image_in_order_and_images_are_equal_but_the_last(pages: int, images: int) -> None:
    groups = JoinPages(images).groups(pages)
    assert [place for group in groups for place in group] == list(range(pages))
    assert len(groups) <= images
    assert len({len(group) for group in groups[:-1]}) <= 1
    assert len(groups[-1]) <= len(groups[0])


@given(sizes=st.lists(st.tuples(sides, sides), min_size=1, max_size=60), most=st.integers(100_000, 20_000_000))
def test_pages_stand_inside_the_image_without_overlap_and_the_image_is_within_its_bounds(
    sizes: list[tuple[int, int]], most: int
) -> None:
    found = layout(sizes, most)
    assert found.size[0] * found.size[1] <= most
    assert max(found.size) <= MAX_JOINED_SIDE
    assert all(x + width <= found.size[0] and y + height <= found.size[1] for x, y, width, height in found.boxes)
    for at, (x, y, width, height) in enumerate(found.boxes):
        later = found.boxes[at + 1 :]
        assert all(left >= x + width or top >= y + height or left + w <= x for left, top, w, _ in later)


def test_pages_are_read_from_left_to_right_and_a_smaller_one_leaves_white() -> None:
    pages = []
    for colour, size in (("red", (40, 60)), ("green", (40, 60)), ("blue", (20, 30))):
        buffer = io.BytesIO()
        Image.new("RGB", size, colour).save(buffer, "PNG")
        pages.append(buffer.getvalue())
    size, data = join(iter(pages), [(40, 60), (40, 60), (20, 30)], 10_000_000, 90)
    assert size == (80, 120)
    with Image.open(io.BytesIO(data)) as shown:
        assert shown.size == size
        at = [shown.getpixel(point) for point in ((20, 30), (60, 30), (10, 75), (60, 90))]
    expected = [(254, 0, 0), (0, 128, 0), (0, 0, 254), (255, 255, 255)]
    assert at == [pytest.approx(colour, abs=4) for colour in expected]
    assert join(iter(pages), [(40, 60), (40, 60), (20, 30)], 10_000_000, 90)[1] == data
