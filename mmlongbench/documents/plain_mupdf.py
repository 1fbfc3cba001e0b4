"""PyMuPDF without two packages that it imports on its own, `pymupdf.layout` and `pymupdf4llm`.

They load a runtime for networks, which takes half a second and writes into the home folder; without one it prints a
warning. Who needs the layout imports it (`page_layer.load_layout`).
"""

import sys

_absent = [name for name in ("pymupdf.layout", "pymupdf4llm") if name not in sys.modules]
sys.modules.update(dict.fromkeys(_absent))  # type: ignore[arg-type]  # None marks a module that cannot be imported
try:
    import pymupdf
finally:
    for _name in _absent:
        del sys.modules[_name]

__all__ = ["pymupdf"]
