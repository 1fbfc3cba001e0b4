"""The last check: OCR reads the words that a question rests on in the picture of the page, where it is installed.

Numbers must have the same digits; other words must be similar. Each box is read as one line of text.
"""

import json
from collections.abc import Sequence
from difflib import SequenceMatcher
from pathlib import Path

from mmlongbench.documents import pdf_reader
from mmlongbench.documents.limits import Limits
from mmlongbench.documents.ocr import find_tesseract, ocr_version, run
from mmlongbench.errors import BuildError, ReaderDiedError
from mmlongbench.io.atomic import write_whole
from mmlongbench.questions.layer.candidate import Candidate, Mark
from mmlongbench.questions.layer.checks import Failed
from mmlongbench.questions.layer.index import normal

ROLES = ("answer", "operand", "row", "column", "title")
"""The roles of the words that are read; a caption may be a whole paragraph."""
_TITLE_WORDS = 0.75
"""The least share of the words of a title that must be read."""
BATCH = 48
"""How many boxes one call of the program reads."""
SIMILAR = 0.7
"""The least similarity of words; OCR takes a letter for another one now and then."""
_OPTIONS = ("-l", "eng", "--oem", "1", "-c", "page_separator=\f")
_MODES = ("7", "6")
"""How a picture is read: as one line, then, if the words differ, as a block."""


def engine() -> str:
    """Return the name and version of the program; empty if it is not installed."""
    try:
        return ocr_version()
    except BuildError:
        return ""


def differing(path: Path, candidates: Sequence[Candidate], limits: Limits, kept: Path) -> dict[int, Failed]:
    """Return, by its number, each candidate whose words OCR reads otherwise. What was read is kept in a file.

    Raises:
        SourceError, TimeLimitError, ReaderDiedError: as `pdf_reader.page_crops`, or `tesseract` fails.

    """
    marks = sorted({mark for each in candidates for mark in _read_marks(each)}, key=_order)
    known, seen = _kept(kept), dict[Mark, str]()
    before = len(known)
    for mode in _MODES:
        left = [mark for mark in marks if mark not in seen or not _is_read(mark, seen[mark])]
        known |= _texts(path, [mark for mark in left if _key(mark, mode) not in known], mode, limits)
        for mark in left:
            text = known[_key(mark, mode)]
            if mark not in seen or _is_read(mark, text):
                seen[mark] = text
    if len(known) > before:
        write_whole(kept, [json.dumps(known, ensure_ascii=False, sort_keys=True).encode()])
    found = {}
    for number, candidate in enumerate(candidates):
        wrong = next((mark for mark in _read_marks(candidate) if not _is_read(mark, seen[mark])), None)
        if wrong:
            what = f"page {wrong.page}: {' '.join(seen[wrong].split())[:80]}"
            found[number] = Failed("rendered", "ocr-differs", what, wrong.text)
    return found


def _key(mark: Mark, mode: str) -> str:
    """Return what decides which text is read, besides the document and the program."""
    return f"{mode} {mark.page} {' '.join(f'{value:g}' for value in mark.box)}"


def _kept(path: Path) -> dict[str, str]:
    """Return what was read before; nothing if the file is not there or damaged."""
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return {str(key): str(text) for key, text in found.items()} if isinstance(found, dict) else {}


def _read_marks(candidate: Candidate) -> list[Mark]:
    is_layout = candidate.kind.startswith(("caption", "heading", "subsection"))
    return [] if is_layout else [mark for mark in candidate.marks if mark.role in ROLES]


def _order(mark: Mark) -> tuple[int, tuple[float, ...], str, str]:
    return mark.page, tuple(mark.box), mark.text, mark.role


def _texts(path: Path, marks: Sequence[Mark], mode: str, limits: Limits) -> dict[str, str]:
    """Return the text in the box of each mark, by its key."""
    by_page: dict[int, dict[str, Mark]] = {}
    for mark in marks:
        by_page.setdefault(mark.page, {})[_key(mark, mode)] = mark
    batches = [
        (page, list(found.items())[start : start + BATCH])
        for page, found in by_page.items()
        for start in range(0, len(found), BATCH)
    ]
    crops = [(page, [list(mark.box) for _, mark in found]) for page, found in batches]
    texts: dict[str, str] = {}
    if not crops:
        return texts
    for (page, found), (_, _, picture) in zip(batches, pdf_reader.page_crops(path, crops, limits), strict=True):
        said = _read(picture, f"{path.name}, page {page}", mode, limits).split("\f")
        if len(said) not in (len(found), len(found) + 1):
            raise ReaderDiedError(f"{path.name}, page {page}: tesseract read {len(said)} of {len(found)} pictures")
        texts |= {key: text.strip() for (key, _), text in zip(found, said, strict=False)}
    return texts


def _read(picture: bytes, page: str, mode: str, limits: Limits) -> str:
    try:
        return run(find_tesseract(), picture, page, limits.seconds_a_page, (*_OPTIONS, "--psm", mode))
    except ValueError as error:
        raise ReaderDiedError(f"{page}: tesseract failed ({error}); leave OCR out with --no-ocr") from error


def _is_read(mark: Mark, text: str) -> bool:
    """Return whether the words of a mark are read. The box of a title may hold more words than the title."""
    if mark.role != "title" or mark.text.split()[0] in ("Table", "Exhibit"):
        return agrees(mark.text, text) or mark.role == "title"
    wanted, read = normal(mark.text).split(), set(normal(text).split())
    return sum(word in read for word in wanted) >= _TITLE_WORDS * len(wanted)


def agrees(printed: str, read: str) -> bool:
    """Return whether a text that was read in a picture is the printed one.

    >>> agrees("$ 9,889", "$9,889"), agrees("9,889", "9,839"), agrees("Net income", "Net incorne")
    (True, False, True)
    """
    digits, other = ("".join(filter(str.isdigit, text)) for text in (printed, read))
    letters = normal(printed)
    if not any(map(str.isalpha, letters)):
        return digits == other and ("." in printed) <= ("." in read or "," in read)
    return SequenceMatcher(None, letters, normal(read), autojunk=False).ratio() >= SIMILAR
