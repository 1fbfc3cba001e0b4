"""Counts what a page of a PDF costs to draw, from its content, before anything is drawn.

A few hundred bytes can describe work for days: forms that draw forms, a pattern of a billion cells. The counts are the
same on every machine, so a document over a limit is refused everywhere. Counting ends when one count is over its limit.
The counts are not exact. They miss a path with very many edges or dashes, thousands of large fills that are blended by
colour, each further use of a pattern or a glyph, letters on top of letters, shadings with computed points or very many
parts, and fonts without an object of their own. For these there is the time limit of a page.
"""

import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, astuple, dataclass
from math import ceil
from typing import TYPE_CHECKING

from mmlongbench.documents.limits import Limits
from mmlongbench.errors import Fault

if TYPE_CHECKING:
    from mmlongbench.documents.mupdf import Document, MuPDF

MAX_LEVELS = 100
"""The maximum depth of the tree. If a page is a hundred thousand levels deep, MuPDF takes seconds to find it."""
_REFERENCE_page_tree = re.compile(r"(\d{1,9}) \d+ R")


def tree_fault(document: "Document", most_pages: int) -> Fault | None:
    """Return what is wrong with the tree of an open document, or None. A node that occurs twice counts once."""
    most = 4 * most_pages + MAX_LEVELS
    level = _references(document.xref_get_key(document.pdf_catalog(), "Pages")[1])
    seen, depth = set(level), 0
    while level:
        below = (kid for node in level for kid in _references(_kids(document, node)))
        level = [kid for kid in dict.fromkeys(below) if kid not in seen]
        seen.update(level)
        depth += 1
        if depth > MAX_LEVELS:
            expected = f"at most {MAX_LEVELS} levels in the page tree"
            return Fault("nested-page-tree", expected, "more", todo="print the document to a new file")
        if len(seen) > most:
            return Fault(
                "pages-of-a-document", f"at most {most} nodes in the page tree", "more", todo="raise limits.pages"
            )
    return None


def _references(text: str) -> list[int]:
    return list(map(int, _REFERENCE_page_tree.findall(text)))


def _kids(document: "Document", node: int) -> str:
    """Return the children of a node as they are written in the PDF."""
    if not 0 < node < document.xref_length():
        return ""
    kind, text = document.xref_get_key(node, "Kids")
    return str(document.xref_object(int(text.split()[0]))) if kind == "xref" else str(text)


_TOKENS = re.compile(
    rb"\((?:[^()\\]|\\.)*+\)|<[0-9A-Fa-f\s]*+>|%[^\r\n]*+|(/?[A-Za-z'\"][^\s/\[\]()<>{}%]*+)", re.DOTALL
)
"""Matches strings and comments, which are skipped, or names and operators, which are counted."""
_BLANK = rb"(?:[\s\0]|%[^\r\n]*+[\r\n])"
_USES = re.compile(
    rb"/([^\s\0/\[\]()<>{}%]++)" + _BLANK + rb"++(?:[-+.\d]++" + _BLANK + rb"++)*+(Do|gs|scn|SCN|Tf)"
    rb"(?![^\s\0/\[\]()<>{}%])"
)
"""Matches a name and the operator that uses it; blanks, comments and numbers, such as a font size, may stand between
the two."""
_ENTRY = re.compile(r"/([^\s/\[\]()<>{}%]+)\s*(\d{1,9}) \d+ R")
_REFERENCE = re.compile(r"(\d{1,9}) \d+ R")
_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)")
_ESCAPE = re.compile(r"#([0-9A-Fa-f]{2})")
_PICTURE_FILTERS = ("JBIG2Decode", "DCTDecode", "JPXDecode", "CCITTFaxDecode")
"""Filters of pictures, which the content of a page has no use for."""
_BLOCK = 1 << 20
"""The bytes whose operators are counted at a time."""
_MAX_CHAIN = 100
"""How many parents of a page in the page tree are searched for its resources."""


@dataclass(frozen=True, slots=True)
class PageCost:
    """The cost of a page, a form or a pattern with everything that it draws."""

    content_bytes: int = 0
    operators: int = 0
    forms: int = 0
    groups: int = 0
    nesting: int = 0
    pattern_cells: int = 0
    image_pixels: int = 0

    def plus(self, other: "PageCost", times: int = 1) -> "PageCost":
        """Return this cost plus `times` times the `other` cost; the pattern cells of `other` are added only once."""
        return PageCost(
            self.content_bytes + times * other.content_bytes,
            self.operators + times * other.operators,
            self.forms + times * other.forms,
            self.groups + times * other.groups,
            max(self.nesting, other.nesting),
            self.pattern_cells + other.pattern_cells,
            self.image_pixels + times * other.image_pixels,
        )

    def drawn(self, *, is_group: bool) -> "PageCost":
        """Return the cost of a form whose content has this cost. It has one more form and one more level of nesting; if
        `is_group` is true, also one more group.
        """
        return self.plus(PageCost(forms=1, groups=int(is_group), nesting=self.nesting + 1))


_LIMITED = {
    "content_bytes": ("content-of-a-page", "bytes of content"),
    "operators": ("operators-of-a-page", "operators"),
    "forms": ("forms-of-a-page", "forms drawn"),
    "groups": ("groups-of-a-page", "transparency groups and soft masks drawn"),
    "nesting": ("nested-forms", "forms inside each other"),
    "pattern_cells": ("pattern-of-a-page", "cells of patterns"),
    "image_pixels": ("pictures-of-a-page", "pixels of pictures"),
}


class _TooMuchError(Exception):
    """A count is over its limit; the rest of the page is not counted."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class Costs:
    """The costs of the pages of one document; the cost of a form that several pages draw is computed once."""

    def __init__(self, document: "Document", limits: Limits) -> None:
        from pymupdf import mupdf

        self._document = document
        self._mupdf: MuPDF = mupdf
        self._pdf = self._mupdf.pdf_document_from_fz_document(document.this)
        self._objects = int(document.xref_length())
        self._limits = limits
        self._known: dict[tuple[int, int, bool], PageCost] = {}
        bounds = asdict(limits)
        self._bounds = [int(bounds[name]) for name in _LIMITED]
        self._uses: dict[tuple[int, ...], Counter[tuple[str, str]]] = {}
        self._sizes: dict[tuple[int, ...], int] = {}
        self._operators: dict[tuple[int, ...], int] = {}
        self._names: dict[tuple[int, str], dict[str, int]] = {}

    def function_fault(self) -> Fault | None:
        """Return the fault of a PostScript function that is too long to run; None if there is no such function."""
        most = self._limits.function_bytes
        for xref in range(1, self._objects):
            if self._key(xref, "FunctionType") == "4" and self._unpacked(xref, most) > most:
                return _fault("function-of-a-document", "bytes of a PostScript function", most, "function_bytes")
        return None

    def page_fault(self, number: int) -> Fault | None:
        """Return why a page costs too much to draw; None if it does not.

        The operators of a page are counted only if its content is so long that it could have too many of them; an
        operator takes at least two bytes.
        """
        fault = self._fault(number, exact=False)
        is_unsure = fault is not None and fault.reason == _LIMITED["operators"][0]
        fault = self._fault(number, exact=True) if is_unsure else fault
        return fault or self._painted_fault(number)

    def _painted_fault(self, number: int) -> Fault | None:
        """Return why the things that a page paints cover the page too often; None if they do not. If the page has too
        few operators for that, nothing is measured.
        """
        from mmlongbench.documents.painted import painted_pages

        most = self._limits.painted_pages
        if any(operators <= most for operators in self._bounds_of_operators(number)):
            return None
        if painted_pages(self._document.load_page(number), most) <= most:
            return None
        return _fault("painted-area-of-a-page", "times its area painted", most, "painted_pages", number)

    def _bounds_of_operators(self, number: int) -> Iterator[int]:
        """Yield an upper bound of the number of operators of a page, then their exact number."""
        for exact in (False, True):
            with suppress(_TooMuchError):  # the upper bound may be over the limit although the exact number is not
                yield self._page(number, exact=exact).operators

    def _fault(self, number: int, *, exact: bool) -> Fault | None:
        try:
            self._page(number, exact=exact)
        except _TooMuchError as error:
            reason, unit = _LIMITED[error.name]
            return _fault(reason, unit, asdict(self._limits)[error.name], error.name, number)
        return None

    def _bounded(self, cost: PageCost) -> PageCost:
        """Return the same cost if it is within all limits; otherwise raise `_TooMuchError`."""
        for name, found, most in zip(_LIMITED, astuple(cost), self._bounds, strict=True):
            if found > most:
                raise _TooMuchError(name)
        return cost

    def _page(self, number: int, *, exact: bool) -> PageCost:
        page = self._document.load_page(number)
        rectangle = page.rect
        area = max(1.0, abs(rectangle.width * rectangle.height))
        resources = self._resources(page.xref)
        found = self._streams(tuple(page.get_contents()), resources, (), exact=exact, area=area)
        for xref in self._appearances(page.xref):
            found = self._bounded(found.plus(self._form(xref, resources, (), exact=exact, area=area)))
        return found

    def _resources(self, page: int) -> int:
        """Return the number of the node of the page tree that has the resources of a page; the page itself if no node
        has any.
        """
        node = page
        for _ in range(_MAX_CHAIN):
            if self._key(node, "Resources") != "null":
                return node
            above = _REFERENCE.match(self._key(node, "Parent"))
            if above is None:
                break
            node = int(above[1])
        return page

    def _appearances(self, page: int) -> Iterator[int]:
        """Yield the number of each form that draws an annotation of a page."""
        for xref in self._references(page, "Annots"):
            kind, text = self._entry(xref, "AP/N")
            if kind == "dict":  # a dictionary has one form for each state
                kind, text = self._entry(xref, f"AP/N{self._key(xref, 'AS')}")
            if kind == "xref":
                yield int(text.split()[0])

    def _references(self, xref: int, key: str) -> list[int]:
        kind, text = self._entry(xref, key)
        if kind == "xref":
            text = str(self._document.xref_object(int(text.split()[0]), compressed=True))
        return [found for found in map(int, _REFERENCE.findall(text)) if self._is_there(found)]

    def _form(self, xref: int, above: int, path: tuple[int, ...], *, exact: bool, area: float) -> PageCost:
        """Return the cost of a form with everything that it draws. A form inside itself costs 0, because MuPDF does not
        draw it.
        """
        if xref in path or not self._is_there(xref):
            return PageCost()
        if len(path) > self._limits.nesting:
            raise _TooMuchError("nesting")
        resources = xref if self._key(xref, "Resources") != "null" else above
        key = (xref, resources, exact)
        if key not in self._known:
            drawn = self._streams((xref,), resources, (*path, xref), exact=exact, area=area)
            self._known[key] = self._bounded(drawn.drawn(is_group=self._key(xref, "Group/S") == "/Transparency"))
        return self._known[key]

    def _streams(
        self, xrefs: tuple[int, ...], resources: int, path: tuple[int, ...], *, exact: bool, area: float
    ) -> PageCost:
        """Return the cost of content, which may be split into several streams, with everything that it draws."""
        uses = self._used(xrefs)
        size = self._sizes[xrefs]
        operators = self._counted(xrefs) if exact else size // 2
        found = self._bounded(PageCost(content_bytes=size, operators=operators))
        for (operator, name), times in uses.items():
            used = self._use(operator, name, resources, path, exact=exact, area=area)
            found = self._bounded(found.plus(used, 1 if operator == "Tf" else times))
        return found

    def _use(
        self, operator: str, name: str, resources: int, path: tuple[int, ...], *, exact: bool, area: float
    ) -> PageCost:
        """Return the cost of one use of a name by an operator."""
        if operator == "Do":
            xref = self._named(resources, "XObject", name)
            if xref is None or self._key(xref, "Subtype") == "/Form":
                return PageCost() if xref is None else self._form(xref, resources, path, exact=exact, area=area)
            masks = (self._reference(xref, key) for key in ("SMask", "Mask"))  # a mask may be larger than its picture
            pictures = (xref, *(mask for mask in masks if mask is not None))
            return PageCost(
                image_pixels=sum(self._integer(each, "Width") * self._integer(each, "Height") for each in pictures)
            )
        if operator == "Tf":
            return self._glyphs(self._named(resources, "Font", name), resources, path, exact=exact, area=area)
        if operator == "gs":
            mask = self._mask(resources, name)
            drawn = PageCost() if mask is None else self._form(mask, resources, path, exact=exact, area=area)
            return drawn if drawn.groups or mask is None else drawn.plus(PageCost(groups=1))
        pattern = self._named(resources, "Pattern", name)
        if pattern is None or self._key(pattern, "PatternType") != "1":
            return PageCost()
        drawn = self._form(pattern, resources, path, exact=exact, area=area)
        return drawn.plus(PageCost(pattern_cells=self._cells(pattern, area)))

    def _mask(self, resources: int, name: str) -> int | None:
        """Return the number of the form that a graphics state sets as soft mask; None if it sets no soft mask."""
        state = self._named(resources, "ExtGState", name) if "/" in name else None
        where = "SMask/G" if state else f"Resources/ExtGState/{name}/SMask/G"
        kind, text = self._entry(state or resources, where)
        return int(text.split()[0]) if kind == "xref" else None

    def _glyphs(self, font: int | None, resources: int, path: tuple[int, ...], *, exact: bool, area: float) -> PageCost:
        """Return the cost of all glyphs of a font whose glyphs are drawn by content (Type 3)."""
        found = PageCost()
        if font is None or self._key(font, "Subtype") != "/Type3":
            return found
        above = font if self._key(font, "Resources") != "null" else resources
        for xref in self._references_by_name(font, "CharProcs").values():
            found = self._bounded(found.plus(self._form(xref, above, path, exact=exact, area=area)))
        return found

    def _cells(self, pattern: int, area: float) -> int:
        """Return how many cells of a pattern cover a page."""
        steps = [_first(self._key(pattern, key)) for key in ("XStep", "YStep")]
        matrix = [float(each) for each in _NUMBER.findall(self._key(pattern, "Matrix"))]
        scale = matrix[0] * matrix[3] - matrix[1] * matrix[2] if len(matrix) >= 4 else 1.0
        cell = abs(steps[0] * steps[1] * scale)
        return ceil(min(area / cell, 1e18)) if cell else 0

    def _named(self, resources: int, kind: str, name: str) -> int | None:
        """Return the number of the object with a name among the resources of a kind, such as `Font`; None if there is
        no such object.
        """
        if (resources, kind) not in self._names:
            self._names[resources, kind] = self._references_by_name(resources, f"Resources/{kind}")
        return self._names[resources, kind].get(name)

    def _references_by_name(self, xref: int, key: str) -> dict[str, int]:
        kind, text = self._entry(xref, key)
        if kind == "xref":
            text = self._text(int(text.split()[0]))
        return {_plain(name): int(found) for name, found in _ENTRY.findall(text)}

    def _used(self, xrefs: tuple[int, ...]) -> "Counter[tuple[str, str]]":
        """Count how often each operator uses each name in content; the keys of the result are (operator, name)."""
        if xrefs not in self._uses:
            most, size = self._limits.content_bytes, 0
            for xref in xrefs:
                size += self._unpacked(xref, most - size)
                if size > most:
                    raise _TooMuchError("content_bytes")
            found = _USES.finditer(self._data(xrefs)) if size else iter(())
            words = Counter((match[2], match[1]) for match in found)
            self._sizes[xrefs] = size
            self._uses[xrefs] = Counter()
            for (operator, name), times in words.items():
                self._uses[xrefs][operator.decode(), _plain(name.decode("latin-1"))] += times
        return self._uses[xrefs]

    def _counted(self, xrefs: tuple[int, ...]) -> int:
        """Return the number of operators of content; raise `_TooMuchError` as soon as the number is above the limit."""
        if xrefs not in self._operators:
            data, found = self._data(xrefs), 0
            for start in range(0, len(data), _BLOCK):
                words = Counter(_TOKENS.findall(data[start : start + _BLOCK]))
                found += sum(times for word, times in words.items() if word and not word.startswith(b"/"))
                if found > self._limits.operators:
                    raise _TooMuchError("operators")
            self._operators[xrefs] = found
        return self._operators[xrefs]

    def _data(self, xrefs: tuple[int, ...]) -> bytes:
        """Return the unpacked content of streams whose size was checked; no token continues from one stream to the
        next.
        """
        return b"\n".join(map(self._stream, xrefs))

    def _stream(self, xref: int) -> bytes:
        """Return the unpacked content of a stream; empty if it cannot be unpacked."""
        try:
            return bytes(self._document.xref_stream(xref) or b"")
        except Exception as error:
            if _is_out_of_memory(error):
                raise MemoryError from error
            return b""

    def _unpacked(self, xref: int, most: int) -> int:
        """Return the number of bytes that a stream unpacks to, at most `most` + 1; the bytes are not kept."""
        if not self._is_there(xref) or not self._document.xref_is_stream(xref):
            return 0
        if any(each in self._key(xref, "Filter") for each in _PICTURE_FILTERS):
            raise _TooMuchError("content_bytes")  # some kilobytes of it unpack to gigabytes before they can be counted
        try:
            return int(self._mupdf.fz_skip(self._mupdf.pdf_open_stream_number(self._pdf, xref), most + 1))
        except Exception as error:
            if _is_out_of_memory(error):
                raise MemoryError from error
            return 0

    def _reference(self, xref: int, key: str) -> int | None:
        kind, text = self._entry(xref, key)
        return int(text.split()[0]) if kind == "xref" else None

    def _key(self, xref: int, key: str) -> str:
        """Return the value of an object's key as it is written in the PDF; `null` if there is none."""
        return self._entry(xref, key)[1]

    def _entry(self, xref: int, key: str) -> tuple[str, str]:
        if not self._is_there(xref):
            return "null", "null"
        try:
            kind, text = self._document.xref_get_key(xref, key)
        except Exception:  # noqa: BLE001
            return "null", "null"
        return str(kind), str(text)

    def _text(self, xref: int) -> str:
        """Return an object as it is written in the PDF."""
        return str(self._document.xref_object(xref, compressed=True)) if self._is_there(xref) else ""

    def _integer(self, xref: int, key: str) -> int:
        return max(0, int(_first(self._key(xref, key))))

    def _is_there(self, xref: int) -> bool:
        return 0 < xref < self._objects


def _is_out_of_memory(error: Exception) -> bool:
    """Whether MuPDF lacked memory, so that nothing is known about a stream."""
    return isinstance(error, MemoryError) or "malloc" in str(error) or "out of memory" in str(error)


def _first(text: str) -> float:
    """Return the first number of a text; 0 if there is none."""
    found = _NUMBER.search(text)
    return float(found[0]) if found else 0.0


def _plain(name: str) -> str:
    """Return a name without escapes."""
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)), name) if "#" in name else name


def _fault(reason: str, unit: str, most: int, option: str, page: int | None = None) -> Fault:
    place = "" if page is None else f"page {page + 1}"
    todo = f"raise limits.{option} if the document is meant to be so, or exclude it"
    return Fault(reason, f"at most {most:,} {unit}", "more", place=place, todo=todo)
