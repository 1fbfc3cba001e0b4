"""Pages that take days to draw, or much memory: the process that reads them names them, and reads other documents."""

import io
from collections.abc import Callable
from inspect import unwrap
from pathlib import Path
from typing import Any, TypeAlias

import needs
import pymupdf
import pytest
from hostile_pdfs import (
    CATALOGUE,
    annotated,
    blanks,
    content_bomb,
    cut_names,
    form,
    glyphs,
    groups,
    image_bomb,
    masked,
    nested_forms,
    page,
    pdf,
    postscript,
    soft_masks,
    stream,
)
from PIL import Image

from mmlongbench.documents.limits import Limits
from mmlongbench.documents.page_facts import page_facts
from mmlongbench.documents.page_parts import page_parts
from mmlongbench.documents.pdf import page_sizes, page_words, read_pages
from mmlongbench.errors import PageLimitError, SourceError

HURRIED = Limits(seconds_a_page=1)

Draw: TypeAlias = Callable[[], bytes]


def covered(paint: str, times: int = 10_001) -> bytes:
    """A page that something covers again and again."""
    function = "/Function<</FunctionType 2/Domain[0 1]/C0[0 0 0]/C1[1 1 1]/N 1>>"
    shading = f"<</ShadingType 2/ColorSpace/DeviceRGB/Coords[0 0 612 792]/Extend[true true]{function}>>"
    resources = f"/ExtGState<</G<</ca 0.5/BM/Luminosity>>>>/Shading<</S {shading}>>"
    return page(stream(paint * times, packed=1), resources)


def jpeg_2000(side: int) -> bytes:
    """A picture of one colour, of about a thousand bytes, which is decoded to four bytes for each pixel."""
    file = io.BytesIO()
    Image.new("L", (side, side)).save(file, "JPEG2000")
    entries = f"/Type/XObject/Subtype/Image/Width {side}/Height {side}/BitsPerComponent 8/ColorSpace/DeviceGray"
    picture = stream(file.getvalue(), f"{entries}/Filter/JPXDecode")
    return page(stream("612 0 0 792 0 0 cm /I Do"), "/XObject<</I 5 0 R>>", picture)


TOO_LONG: dict[str, Draw] = {
    "nested forms": nested_forms,
    "nested forms of the page's resources": lambda: page(
        stream("/A Do"),
        "/XObject<</A 5 0 R/B 6 0 R/C 7 0 R>>",
        form("/B Do " * 1100),
        form("/C Do " * 1100),
        form("0 0 9 9 re f"),
    ),
    "a PostScript function": lambda: postscript(20_000),
    "soft masks": lambda: soft_masks(20_000),
    "transparent groups": lambda: groups(20_000),
    "a note": lambda: annotated(20),
    "forms that are named in one stream and drawn in the next": cut_names,
    "glyphs that draw forms": lambda: glyphs(1100),
    "fills that are blended": lambda: covered("/G gs 0 0 612 792 re f "),
    "strokes of the whole page in dashes": lambda: covered("[.1 .1] 0 d 0 0 m 612 792 l S "),
}
"""Pages that take many seconds of a processor, or days."""


def written(folder: Path, data: bytes) -> Path:
    path = folder / "x.pdf"
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[pytest.mark.rare] if at else []) for at, kind in enumerate(TOO_LONG)]
)
def test_a_page_that_takes_too_long_is_named_and_others_are_read(kind: str, tmp_path: Path) -> None:
    path = written(tmp_path, TOO_LONG[kind]())
    assert list(page_sizes(path, 144, HURRIED)) == [(1224, 1584)]
    with pytest.raises(PageLimitError) as caught:
        list(read_pages(path, HURRIED))
    fault = caught.value.fault
    assert (fault.reason, fault.file, fault.place) == ("time-of-a-page", "x.pdf", "page 1")
    assert fault.expected == "at most 1 seconds of a processor"
    assert "limits.seconds_a_page" in fault.todo
    assert [read.key for read in read_pages(written(tmp_path, blanks(2)), HURRIED)] == ["", ""]


def deep_tree(levels: int, pages: int) -> bytes:
    """Blank pages below many levels of the tree of pages."""
    nodes = [
        f"<</Type/Pages/Kids[{n + 1} 0 R]/Count {pages}{f'/Parent {n - 1} 0 R' * (n > 2)}>>" for n in range(2, levels)
    ]
    kids = " ".join(f"{levels + 1 + n} 0 R" for n in range(pages))
    nodes.append(f"<</Type/Pages/Parent {levels - 1} 0 R/Kids[{kids}]/Count {pages}>>")
    nodes += [f"<</Type/Page/Parent {levels} 0 R/MediaBox[0 0 612 792]>>"] * pages
    return pdf(dict(enumerate((CATALOGUE, *nodes), 1)))


def test_pages_below_very_many_levels_have_the_time_of_one_page_together(tmp_path: Path) -> None:
    path = written(tmp_path, deep_tree(40_000, 300))
    with pytest.raises(PageLimitError, match=r"^x\.pdf, page \d+: time-of-a-page: expected at most 0\.1 seconds of a"):
        list(page_sizes(path, 144, Limits(seconds_a_page=0.1)))
    assert list(page_sizes(written(tmp_path, deep_tree(1000, 5)), 144, HURRIED)) == [(1224, 1584)] * 5


READS: dict[str, Callable[[Path, Limits], Any]] = {
    "pages": read_pages,
    "facts": page_facts,
    "parts": lambda path, limits: page_parts(path, 144, limits),
    "words": page_words,
}


@pytest.mark.rare
@pytest.mark.parametrize("read", READS)
def test_the_page_that_takes_too_long_is_the_one_that_is_named(read: str, tmp_path: Path) -> None:
    with pymupdf.open(stream=nested_forms()) as document:
        for number in (0, 1):
            document.new_page(number).insert_text((72, 72), "This page is read at once. " * 2)
        document.save(tmp_path / "third.pdf")
    with pytest.raises(PageLimitError, match=r"^third\.pdf, page 3: time-of-a-page"):
        list(READS[read](tmp_path / "third.pdf", HURRIED))


def test_a_page_that_takes_too_much_memory_is_named_and_others_are_read(tmp_path: Path) -> None:
    path = written(tmp_path, jpeg_2000(8000))
    with pytest.raises(PageLimitError) as caught:
        list(read_pages(path, Limits(memory=256 * 1024 * 1024)))
    fault = caught.value.fault
    assert (fault.reason, fault.file, fault.place) == ("memory-of-a-page", "x.pdf", "page 1")
    assert fault.expected == "at most 268,435,456 bytes of memory"
    assert "limits.memory" in fault.todo
    (read,) = read_pages(path, Limits())
    assert not read.lost


@pytest.mark.rare
def test_forms_in_forms_in_forms_are_an_unreadable_page(tmp_path: Path) -> None:
    for levels in (200, 2000):
        with pytest.raises(SourceError, match=r"^x\.pdf, page 1: unreadable-page"):
            list(read_pages(written(tmp_path, nested_forms(levels, 1)), HURRIED))


DRAWN: dict[str, Draw] = {
    "content that unpacks": lambda: content_bomb(70_000_000),
    "content that unpacks twice": lambda: content_bomb(70_000_000, 2),
    "a picture": lambda: image_bomb(32_000),
    "a mask of a small picture": lambda: masked(32_000),
    "content with a filter of pictures": lambda: page(stream(b"\x97JB2", "/Filter[/FlateDecode/JBIG2Decode]")),
    "one picture again and again": lambda: image_bomb(4000, 63),
}
"""Pages of a few kilobytes that unpack to many megabytes."""


@pytest.mark.rare
@pytest.mark.parametrize("kind", DRAWN)
def test_a_page_that_unpacks_to_much_is_read_within_the_limits(kind: str, tmp_path: Path) -> None:
    limits = Limits(memory=512 * 1024 * 1024)
    assert len(list(read_pages(written(tmp_path, DRAWN[kind]()), limits))) == 1


def test_blank_pages_are_told_without_a_function_that_takes_a_third_of_a_second_for_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: object) -> bool:
        raise AssertionError("is_unicolor")

    monkeypatch.setattr(pymupdf.Pixmap, "is_unicolor", property(fail))
    path = written(tmp_path, blanks(40))
    assert list(page_sizes(path, 144, HURRIED)) == [(1224, 1584)] * 40
    assert [page.key for page in unwrap(read_pages)(path, HURRIED)] == [""] * 40


@pytest.mark.rare
def test_real_documents_are_far_below_the_limits() -> None:
    folder = needs.shared("real", "mmlongbench-doc", "documents")
    for path in sorted(folder.glob("*.pdf"))[::4]:
        assert list(read_pages(path, Limits(seconds_a_page=3, memory=1024 * 1024 * 1024)))
