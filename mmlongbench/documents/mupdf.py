"""Types for the parts of PyMuPDF that are used here; PyMuPDF has no types. This module does not import PyMuPDF."""

import sys
from types import TracebackType
from typing import Literal, Protocol, Self, TypeAlias, TypedDict, overload

_absent = [name for name in ("pymupdf.layout", "pymupdf4llm") if name not in sys.modules]
sys.modules.update(dict.fromkeys(_absent))  # type: ignore[arg-type]  # None marks a module that cannot be imported
try:
    import pymupdf
finally:
    for _name in _absent:
        del sys.modules[_name]

__all__ = ["pymupdf"]


Word: TypeAlias = tuple[float, float, float, float, str, int, int, int]
"""A word of a page in PyMuPDF's form: x0, y0, x1, y1, the text, and three numbers: of its block, of its line, and of
the word in the line."""
PageWord: TypeAlias = tuple[float, float, float, float, str, float, float]
"""A word and its box: x0, y0, x1, y1, the word, and the width and height of its page, in points."""


class Box(Protocol):
    """A box, given by two corners."""

    x0: float
    y0: float
    x1: float
    y1: float


class Rect(Box, Protocol):
    """A rectangle in points; `irect` is the smallest rectangle around it whose corners are whole numbers."""

    width: float
    height: float
    irect: "Rect"

    def __mul__(self, matrix: object, /) -> "Rect": ...


class Matrix(Protocol):
    """A transformation: (x, y) → (a·x + c·y + e, b·x + d·y + f)."""

    a: float
    b: float
    c: float
    d: float
    e: float
    f: float


class Pixmap(Protocol):
    """The pixels of a page."""

    width: int
    height: int
    samples: bytes
    samples_mv: bytes
    """The pixels as a memoryview that is valid only while the pixmap exists; functions that need bytes accept it."""

    def tobytes(self, output: str) -> bytes: ...


class ImageInfo(TypedDict):
    """A picture on a page; PyMuPDF gives more keys."""

    bbox: tuple[float, float, float, float]


class Page(Protocol):
    """A page of an open document."""

    this: object
    """The page in the form that MuPDF's own functions take."""
    rect: Rect
    cropbox: Rect
    xref: int

    def get_contents(self) -> list[int]: ...

    def get_xobjects(self) -> list[tuple[int, str, int, object]]: ...

    def get_image_info(self) -> list[ImageInfo]: ...

    def get_cdrawings(self) -> list[object]: ...

    @overload
    def get_text(self) -> str: ...
    @overload
    def get_text(self, option: Literal["words"]) -> list[Word]: ...

    def get_pixmap(self, *, dpi: int, colorspace: str = ..., alpha: bool) -> Pixmap: ...


class Document(Protocol):
    """An open document; a `with` statement closes it at the end."""

    this: object
    """The document in the form that MuPDF's own functions take."""

    @property
    def page_count(self) -> int: ...

    @property
    def needs_pass(self) -> bool: ...

    @property
    def is_repaired(self) -> bool: ...

    def load_page(self, number: int, /) -> Page: ...

    def pdf_catalog(self) -> int: ...

    def xref_length(self) -> int: ...

    def xref_get_key(self, xref: int, key: str, /) -> tuple[str, str]: ...

    def xref_object(self, xref: int, /, *, compressed: bool = ...) -> str: ...

    def xref_is_stream(self, xref: int, /) -> bool: ...

    def xref_stream(self, xref: int, /) -> bytes | None: ...

    def xref_stream_raw(self, xref: int, /) -> bytes | None: ...

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> object: ...


class _Abort(Protocol):
    abort: int


class Stroke(Protocol):
    linewidth: float


class Cookie(Protocol):
    """Stops a run of MuPDF when `m_internal.abort` is set to 1."""

    m_internal: _Abort


class MuPDF(Protocol):
    """MuPDF's own functions, the module `pymupdf.mupdf`."""

    def FzCookie(self) -> Cookie: ...

    def FzMatrix(self, *values: float) -> object: ...

    def ll_fz_matrix_expansion(self, matrix: Matrix, /) -> float: ...

    def ll_fz_bound_path(self, path: object, stroke: object, ctm: Matrix, /) -> Box: ...

    def ll_fz_bound_text(self, text: object, stroke: object, ctm: Matrix, /) -> Box: ...

    def ll_fz_bound_shade(self, shade: object, ctm: Matrix, /) -> Box: ...

    def fz_run_page(self, page: object, device: object, matrix: object, cookie: Cookie, /) -> object: ...

    def fz_new_draw_device(self, matrix: object, pixels: object, /) -> object: ...

    def fz_close_device(self, device: object, /) -> object: ...

    def fz_skip(self, stream: object, length: int, /) -> int: ...

    def pdf_document_from_fz_document(self, document: object, /) -> object: ...

    def pdf_open_stream_number(self, document: object, xref: int, /) -> object: ...
