"""Documents of M-LongDoc in the form of its program: JSON Lines with one page a line, whose picture is in base64.

The pictures are written as files, and named by the number of the page. A page's text and its cut-outs are not used: a
release has the text that the PDF or OCR gives, and finds tables and figures in the PDF.
"""

import base64
import binascii
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from mmlongbench.task import Fault, PageImages, Pages, json_lines, visible_files

PAGES = "pages"
"""The name of the source that `write_parsed` makes."""
DPI = 150
"""The resolution at which the program draws pages."""
MAX_PAGES = 10_000
"""The maximum number of a page."""
_LIST = "documents.jsonl"
"""The file with the name of each document, and its pages or its fault."""
_SIGNATURES = {b"\x89PNG\r\n\x1a\n": "png", b"\xff\xd8\xff": "jpg"}


def write_parsed(source: Path, folder: Path, known: frozenset[str]) -> None:
    """Write the pages of each document below `source` that is a JSON Lines file, except the documents in `known`.

    A document with a line that cannot be used is refused as a whole: it would lack a page.
    """
    folder.mkdir(parents=True)
    lines = []
    files = [file for file in visible_files(source) if file.suffix.lower() in (".json", ".jsonl")]
    for number, file in enumerate(file for file in files if file.stem not in known):
        (folder / f"{number:05d}").mkdir()
        found = _written(file, folder / f"{number:05d}")
        about = found.fields() if isinstance(found, Fault) else [f"{number:05d}/{name}" for name in found]
        lines.append(json.dumps({"doc": file.stem, "pages": about}, ensure_ascii=False))
    (folder / _LIST).write_text("".join(f"{line}\n" for line in lines), "utf-8")


def parsed_documents(folder: Path) -> Mapping[str, Pages | Fault]:
    """Return the documents that `write_parsed` wrote, by name. Two files of one name are a fault."""
    found: dict[str, Pages | Fault] = {}
    for _, _, line in json_lines(folder / _LIST):
        if isinstance(line, Fault):
            continue
        doc, pages = str(line["doc"]), line["pages"]
        if doc in found:
            todo = "rename or remove one of them"
            found[doc] = Fault("two-documents-of-one-name", "names that differ", f"{doc} twice", todo=todo)
        elif isinstance(pages, dict):
            found[doc] = Fault(**pages)
        elif isinstance(pages, list):
            found[doc] = PageImages(tuple(folder / str(page) for page in pages), dpi=DPI)
    return found


def _written(file: Path, folder: Path) -> list[str] | Fault:
    """Write the pages of one document into a folder; return the names of their files, or what is wrong with a line."""
    pages: dict[int, str] = {}
    for number, _, raw in json_lines(file):
        found = raw if isinstance(raw, Fault) else _page(raw)
        if not isinstance(found, Fault) and found[0] in pages:
            found = Fault("two-pages-of-one-number", "each page once", f"page {found[0]} twice", todo="remove a line")
        if isinstance(found, Fault):
            return replace(found, file=file.name, place=f"line {number}")
        page, data, ending = found
        pages[page] = f"page_{page}.{ending}"
        (folder / pages[page]).write_bytes(data)
    missing = next((page for page in range(1, len(pages) + 1) if page not in pages), None)
    if missing or not pages:
        expected = f"pages 1 to {len(pages)}" if pages else "at least one page"
        todo = "make the file again from the PDF, or give the PDF"
        return Fault("missing-pages", expected, f"no page {missing or 1}", file.name, todo=todo)
    return [pages[page] for page in sorted(pages)]


def _page(raw: Mapping[str, object]) -> tuple[int, bytes, str] | Fault:
    """Return the number, the bytes and the file ending of a page, or what is wrong with the line."""
    number, text = raw.get("number"), raw.get("image_string")
    if type(number) is not int or not 1 <= number <= MAX_PAGES:
        expected = f"the number of a page, from 1 to {MAX_PAGES}"
        return Fault("page-without-number", expected, repr(number)[:80], field="number", todo="correct the line")
    try:
        data = base64.b64decode(text, validate=True) if isinstance(text, str) else b""
    except (binascii.Error, ValueError):
        data = b""
    ending = next((ending for start, ending in _SIGNATURES.items() if data.startswith(start)), "")
    if not ending:
        expected, found = "a PNG or JPEG in base64", f"{str(text)[:24]!r}" if text else "nothing"
        return Fault("broken-page", expected, found, field="image_string", todo="make the file again from the PDF")
    return number, data, ending
