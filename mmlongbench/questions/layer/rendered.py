"""The last check: OCR reads the words that a question rests on in the picture of the page, where it is installed.

Numbers must have the same digits; other words must be similar. Each box is read as one line of text.
"""

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from pathlib import Path

from mmlongbench.documents import pdf_reader
from mmlongbench.documents.limits import Limits
from mmlongbench.documents.ocr import ocr_version, run
from mmlongbench.errors import BuildError
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


def differing(path: Path, candidates: Sequence[Candidate], limits: Limits) -> dict[int, Failed]:
    """Return, by its number, each candidate whose words OCR reads otherwise.

    Raises:
        SourceError, TimeLimitError, ReaderDiedError: as `pdf_reader.page_crops`, or `tesseract` fails.

    """
    marks = sorted({mark for each in candidates for mark in _read_marks(each)}, key=_order)
    seen: dict[Mark, str] = {}
    for mode in _MODES:
        left = [mark for mark in marks if mark not in seen or not _is_read(mark, seen[mark])]
        for mark, text in _texts(path, left, mode, limits):
            if mark not in seen or _is_read(mark, text):
                seen[mark] = text
    found = {}
    for number, candidate in enumerate(candidates):
        wrong = next((mark for mark in _read_marks(candidate) if not _is_read(mark, seen.get(mark, ""))), None)
        if wrong:
            what = f"page {wrong.page}: {' '.join(seen.get(wrong, '').split())[:80]}"
            found[number] = Failed("rendered", "ocr-differs", what, wrong.text)
    return found


def _read_marks(candidate: Candidate) -> list[Mark]:
    is_layout = candidate.kind.startswith(("caption", "heading", "subsection"))
    return [] if is_layout else [mark for mark in candidate.marks if mark.role in ROLES]


def _order(mark: Mark) -> tuple[int, tuple[float, ...], str, str]:
    return mark.page, tuple(mark.box), mark.text, mark.role


def _texts(path: Path, marks: Sequence[Mark], mode: str, limits: Limits) -> Iterator[tuple[Mark, str]]:
    """Yield each mark with the text in its box."""
    by_page: dict[int, list[Mark]] = {}
    for mark in marks:
        by_page.setdefault(mark.page, []).append(mark)
    batches = [
        (page, found[start : start + BATCH]) for page, found in by_page.items() for start in range(0, len(found), BATCH)
    ]
    if not batches:
        return
    crops = [(page, [list(mark.box) for mark in found]) for page, found in batches]
    program = _program()
    for (page, found), (_, _, picture) in zip(batches, pdf_reader.page_crops(path, crops, limits), strict=True):
        said = run(program, picture, f"{path.name}, page {page}", limits.seconds_a_page, (*_OPTIONS, "--psm", mode))
        yield from zip(found, said.split("\f"), strict=False)


def _program() -> str:
    from mmlongbench.documents.ocr import find_tesseract

    return find_tesseract()


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
