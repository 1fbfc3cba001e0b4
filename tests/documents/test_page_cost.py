"""What pages cost to draw: hostile ones are refused by a count, before they are drawn; real ones are far below it."""

from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeAlias

import needs
import pymupdf
import pytest
from hostile_pdfs import (
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
    paths,
    postscript,
    soft_masks,
    stream,
    tiling,
)

from mmlongbench.documents.limits import Limits
from mmlongbench.documents.page_cost import Costs
from mmlongbench.documents.painted import painted_pages
from mmlongbench.documents.pdf import page_keys, page_sizes, page_text, page_words, render_pages
from mmlongbench.errors import SourceError

LIMITS = Limits(bytes=64_000_000, pages=5000, side=16_384)

Draw: TypeAlias = Callable[[], bytes]
REFUSED: dict[str, tuple[Draw, str]] = {
    "nested forms": (nested_forms, "forms-of-a-page"),
    "nested forms of the page's resources": (
        lambda: page(
            stream("/A Do"),
            "/XObject<</A 5 0 R/B 6 0 R/C 7 0 R>>",
            form("/B Do " * 1100),
            form("/C Do " * 1100),
            form("0 0 9 9 re f"),
        ),
        "forms-of-a-page",
    ),
    "deep forms": (lambda: nested_forms(200, 1), "nested-forms"),
    "deeper forms": (lambda: nested_forms(2000, 1), "nested-forms"),
    "a tiling pattern": (lambda: tiling(0.001), "pattern-of-a-page"),
    "a tiling pattern that is scaled": (lambda: tiling(1, "/Matrix[.001 0 0 .001 0 0]"), "pattern-of-a-page"),
    "a tiling pattern by another spelling": (lambda: tiling(0.001, named="#50"), "pattern-of-a-page"),
    "a PostScript function": (lambda: postscript(20_000), "function-of-a-document"),
    "content that unpacks": (lambda: content_bomb(70_000_000), "content-of-a-page"),
    "content that unpacks twice": (lambda: content_bomb(70_000_000, 2), "content-of-a-page"),
    "a picture": (lambda: image_bomb(32_000), "pictures-of-a-page"),
    "a mask of a small picture": (lambda: masked(32_000), "pictures-of-a-page"),
    "content with a filter of pictures": (
        lambda: page(stream(b"\x97JB2", "/Filter[/FlateDecode/JBIG2Decode]")),
        "content-of-a-page",
    ),
    "soft masks": (lambda: soft_masks(20_000), "groups-of-a-page"),
    "transparent groups": (lambda: groups(20_000), "groups-of-a-page"),
    "a note": (lambda: annotated(20), "forms-of-a-page"),
    "forms that are named in one stream and drawn in the next": (cut_names, "groups-of-a-page"),
    "forms behind comments": (lambda: groups(20_000, b"/A%x\nDo "), "groups-of-a-page"),
    "forms behind a comment and a number": (lambda: groups(20_000, b"/A 1%x\r7 Do "), "groups-of-a-page"),
    "forms of an escaped name": (lambda: groups(20_000, b"/B#2FB Do "), "groups-of-a-page"),
    "a soft mask of an escaped name": (lambda: soft_masks(20_000, "/B#2FB gs "), "groups-of-a-page"),
    "glyphs that draw forms": (lambda: glyphs(1100), "forms-of-a-page"),
    "fills of the whole page": (lambda: covered("0 0 612 792 re f "), "painted-area-of-a-page"),
    "fills that are blended": (lambda: covered("/G gs 0 0 612 792 re f "), "painted-area-of-a-page"),
    "strokes of the whole page in dashes": (
        lambda: covered("[.1 .1] 0 d 0 0 m 612 792 l S "),
        "painted-area-of-a-page",
    ),
    "shadings": (lambda: covered("/S sh "), "painted-area-of-a-page"),
    "small pictures of the size of the page": (
        lambda: covered("q 612 0 0 792 0 0 cm BI /W 1 /H 1 /BPC 8 /CS /G ID 0 EI Q "),
        "painted-area-of-a-page",
    ),
    "one picture again and again": (lambda: image_bomb(4000, 63), "pictures-of-a-page"),
}


SLOW = {
    *("content that unpacks", "content that unpacks twice", "small pictures of the size of the page", "a picture"),
    *("fills that are blended", "strokes of the whole page in dashes", "deeper forms"),
    *("paths", "groups", "a function", "markers", "a mesh of 500 × 500"),
}
"""Pages that take a quarter of a second and more; each is like a faster one."""


def kinds(table: Mapping[str, object]) -> list[Any]:
    return [pytest.param(kind, marks=[pytest.mark.rare] if kind in SLOW else []) for kind in table]


def covered(paint: str, times: int = 10_001) -> bytes:
    """A page that something covers again and again."""
    function = "/Function<</FunctionType 2/Domain[0 1]/C0[0 0 0]/C1[1 1 1]/N 1>>"
    shading = f"<</ShadingType 2/ColorSpace/DeviceRGB/Coords[0 0 612 792]/Extend[true true]{function}>>"
    resources = f"/ExtGState<</G<</ca 0.5/BM/Luminosity>>>>/Shading<</S {shading}>>"
    return page(stream(paint * times, packed=1), resources)


def written(folder: Path, data: bytes) -> Path:
    path = folder / "x.pdf"
    path.write_bytes(data)
    return path


READS: dict[str, Callable[[Path], object]] = {
    "sizes": lambda path: page_sizes(path, 144, LIMITS),
    "texts": lambda path: [*page_text(path, LIMITS)],
    "words": lambda path: [*page_words(path, LIMITS)],
}


@pytest.mark.parametrize("kind", kinds(REFUSED))
def test_a_page_that_costs_too_much_refuses_its_document_before_it_is_drawn(kind: str, tmp_path: Path) -> None:
    draw, reason = REFUSED[kind]
    path = written(tmp_path, draw())
    for read in READS.values():
        with pytest.raises(SourceError) as caught:
            read(path)
        fault = caught.value.fault
        assert (fault.reason, fault.file) == (reason, "x.pdf")
        assert fault.expected.startswith("at most ")
        assert fault.todo.startswith("raise limits.")
        assert fault.todo.endswith(" if the document is meant to be so, or exclude it")


ALLOWED: dict[str, Draw] = {
    "forms": lambda: nested_forms(8),
    "a form that draws itself": lambda: page(stream("/A Do"), "/XObject<</A 5 0 R>>", form("/A Do /A Do")),
    "a pattern": lambda: tiling(3),
    "a pattern without a step": lambda: tiling(0),
    "paths": lambda: paths(2000),
    "a function": lambda: postscript(100),
    "content": lambda: content_bomb(1_000_000, 2),
    "a picture": lambda: image_bomb(4000),
    "soft masks": lambda: soft_masks(20),
    "groups": lambda: groups(20),
    "a note": lambda: annotated(1),
    "names of operators in texts and names": lambda: page(
        stream("BT /Do 1 Tf (/A Do \\) /A Do (S f)) Tj <4142> Tj ET % /A Do\n/MC BMC EMC"),
        "/XObject<</A 5 0 R>>",
        form("/A Do"),
    ),
    "a form that is missing": lambda: page(stream("/A Do /B Do"), "/XObject<</A 99 0 R>>"),
    "a picture some times": lambda: image_bomb(1000, 20),
    "glyphs": lambda: glyphs(2),
    "shadings": lambda: covered("/S sh ", 20),
    "many small fills": lambda: covered("9 9 6 8 re f ", 6000),
    "a fill that is broken": lambda: covered("/X sh 1 m 2 f /Y cs 7 scn ", 3000),
    "no resources": lambda: page(stream("/A Do /P scn /G gs")),
}


@pytest.mark.parametrize("kind", kinds(ALLOWED))
def test_a_page_within_the_limits_is_drawn(kind: str, tmp_path: Path) -> None:
    path = written(tmp_path, ALLOWED[kind]())
    assert page_sizes(path, 72, LIMITS) == [(612, 792)]
    assert len([*render_pages(path, [0], 72, 50, LIMITS)]) == 1


PLOTS: dict[str, Draw] = {
    "markers": lambda: page(
        stream("".join(f"1 0 0 1 {at % 600} {at % 700} cm /M0 Do\n" for at in range(100_000)), packed=1),
        "/XObject<</M0 5 0 R>>",
        form("0 -3 m 1 3 3 1 3 0 c 3 1 2 3 0 3 c -1 3 -3 1 -3 0 c b"),
    ),
    "a mesh of 500 × 500": lambda: page(
        stream("0.3 0.1 0.4 rg 72 72 m 73 72 l 73 73 l 72 73 l h f\n" * 250_000, packed=1)
    ),
    "hatches": lambda: page(
        stream("".join(f"/Pattern cs /H{at % 24} scn 72 72 9 99 re f\n" for at in range(2000))),
        f"/Pattern<<{''.join(f'/H{at} {5 + at} 0 R' for at in range(24))}>>",
        *(stream("0 0 m 1 1 l S", HATCH) for _ in range(24)),
    ),
}
HATCH = "/Type/Pattern/PatternType 1/PaintType 1/TilingType 1/BBox[0 0 1 1]/XStep 1/YStep 1/Resources<<>>"


@pytest.mark.parametrize("kind", kinds(PLOTS))
def test_plots_of_scientists_are_within_the_limits(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mmlongbench.documents.painted.MAX_COUNTED", 20_000)  # in a second: all of them are alike
    assert page_sizes(written(tmp_path, PLOTS[kind]()), 72, LIMITS) == [(612, 792)]


def test_counting_ends_at_the_first_form_that_is_too_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    forms = [form(" " * 6000) for _ in range(300)]
    names = [f"F{at}" for at in range(300)]
    drawn = stream(" ".join(f"/{name} Do" for name in names))
    resources = "".join(f"/{name} {5 + at} 0 R" for at, name in enumerate(names))
    path = written(tmp_path, page(drawn, f"/XObject<<{resources}>>", *forms))
    read: list[int] = []

    def unpacked(costs: Costs, xref: int, most: int) -> int:
        read.append(xref)
        return measure(costs, xref, most)

    measure = Costs._unpacked
    monkeypatch.setattr(Costs, "_unpacked", unpacked)
    with pytest.raises(SourceError, match="content-of-a-page"):
        page_sizes(path, 72, bounded(content_bytes=14_000))
    assert len(read) == 3  # the page's own content and two forms


BOUNDS: dict[str, tuple[int, Draw]] = {
    "content_bytes": (1_000_000, lambda: content_bomb(1_000_000)),
    "operators": (3000, lambda: paths(1000)),
    "forms": (255, lambda: nested_forms(8)),
    "groups": (30, lambda: groups(30)),
    "nesting": (8, lambda: nested_forms(8)),
    "pattern_cells": (484_704, lambda: tiling(1)),
    "image_pixels": (3_000_000, lambda: image_bomb(1000, 3)),
    "painted_pages": (30, lambda: covered("0 0 612 792 re f ", 30)),
    "function_bytes": (124, lambda: postscript(10)),
}


@pytest.mark.parametrize("limit", BOUNDS)
def test_a_limit_is_the_last_that_is_allowed(limit: str, tmp_path: Path) -> None:
    most, draw = BOUNDS[limit]
    path = written(tmp_path, draw())
    assert page_sizes(path, 72, bounded(**{limit: most})) == [(612, 792)]
    with pytest.raises(SourceError, match=rf"raise limits\.{limit} if"):
        page_sizes(path, 72, bounded(**{limit: most - 1}))


def bounded(**counts: int) -> Limits:
    return Limits(**{**asdict(LIMITS), **counts})


def test_blank_pages_are_told_without_a_function_that_takes_a_third_of_a_second_for_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: object) -> bool:
        raise AssertionError("is_unicolor")

    monkeypatch.setattr(pymupdf.Pixmap, "is_unicolor", property(fail))
    path = written(tmp_path, blanks(40))
    assert page_sizes(path, 144, LIMITS) == [(1224, 1584)] * 40
    assert [*page_keys(path, LIMITS)] == [""] * 40


@pytest.mark.rare
def test_real_documents_are_far_below_the_limits() -> None:
    folder, limits = needs.shared("real", "mmlongbench-doc", "documents"), asdict(LIMITS)
    tenth = {name: limits[name] // 10 for name in BOUNDS}
    for path in sorted(folder.glob("*.pdf")):
        assert page_sizes(path, 72, bounded(**{**tenth, "painted_pages": 10**9}))
    (path,) = folder.glob("GPL-Graduate-Studies*.pdf")  # the one that paints most
    with pymupdf.open(path) as document:
        painted = [painted_pages(page, LIMITS.painted_pages) for page in document]
    assert 100 < max(painted) < LIMITS.painted_pages / 10


def test_counting_what_is_painted_ends_at_a_number_of_things(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pymupdf.open(written(tmp_path, covered("0 0 612 792 re f ", 50))) as document:
        assert painted_pages(document[0], 100) == pytest.approx(50)
        assert painted_pages(document[0], 7) == pytest.approx(8)
        monkeypatch.setattr("mmlongbench.documents.painted.MAX_COUNTED", 20)
        assert painted_pages(document[0], 100) == pytest.approx(20)


def test_pages_of_few_operators_are_not_looked_at_for_what_they_paint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mmlongbench.documents.painted.painted_pages", lambda page, most: most + 1)
    path = written(tmp_path, covered("9 9 6 8 re f ", 5000))  # two operators each
    assert page_sizes(path, 72, LIMITS) == [(612, 792)]
    path = written(tmp_path, covered("9 9 6 8 re f ", 5001))
    with pytest.raises(SourceError, match="painted-area-of-a-page"):
        page_sizes(path, 72, LIMITS)
