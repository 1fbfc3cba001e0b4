"""PyMuPDF without its networks, which it would load when it is imported (see `page_facts.load_layout`)."""

import sys
from typing import Any, TypeAlias

_absent = [name for name in ("pymupdf.layout", "pymupdf4llm") if name not in sys.modules]
sys.modules.update(dict.fromkeys(_absent))  # type: ignore[arg-type]  # None marks a module that cannot be imported
try:
    import pymupdf
finally:
    for _name in _absent:
        del sys.modules[_name]

__all__ = ["Document", "Matrix", "Page", "Pixmap", "Stroke", "pymupdf"]

# PyMuPDF has no types, so these names are for readers alone
Document: TypeAlias = Any
Matrix: TypeAlias = Any
Page: TypeAlias = Any
Pixmap: TypeAlias = Any
Stroke: TypeAlias = Any
