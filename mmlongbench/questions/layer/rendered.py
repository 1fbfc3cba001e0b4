"""The last check: OCR reads the words that a question rests on in the picture of the page, where it is installed.

Numbers must have the same digits; other words must be similar. Each box is read as one line of text. Where OCR takes a
letter for another one, it may be a mistake of OCR, or the layer may lie: a font of the PDF says `O` for each `t`. So
further lines of such a page are read: a layer is not believed if OCR always reads the letter as that other one.
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from difflib import SequenceMatcher
from pathlib import Path

from mmlongbench.documents.limits import Limits
from mmlongbench.documents.ocr import find_tesseract, ocr_version, run
from mmlongbench.documents.page_facts import page_crops
from mmlongbench.errors import BuildError, ReaderDiedError
from mmlongbench.io.files import write_whole
from mmlongbench.questions.layer.candidate import Candidate, Mark
from mmlongbench.questions.layer.checks import Failed
from mmlongbench.questions.layer.index import normal
from mmlongbench.questions.layer.page import Line, Page

_LAYOUT = ("caption", "heading", "subsection")
"""How the kinds begin of questions about captions and headings, whose boxes hold more words than the question has."""
_TITLE_WORDS = 0.75
"""The least share of the words of a title that must be read."""
BATCH = 48
"""How many boxes one call of the program reads."""
SIMILAR = 0.7
"""The least similarity of words; OCR takes a letter for another one now and then."""
_LINES = 40
"""How many lines of a page are read, the longest first, if a letter of its layer is doubted."""
_TIMES, _SHARE = 3, 0.8
"""A layer lies if a letter is read as a certain other one so often, and in so large a share of its places."""
_ALIKE = frozenset("IJijl")
"""Letters that OCR cannot tell apart in many fonts."""
_OPTIONS = ("-l", "eng", "--oem", "1", "-c", "page_separator=\f")
_MODES = ("7", "6")
"""How a picture is read: as one line, then, if the words differ, as a block."""


def engine() -> str:
    """Return the name and version of the program; empty if it is not installed."""
    try:
        return ocr_version()
    except BuildError:
        return ""


def differing(
    path: Path, pages: Sequence[Page], candidates: Sequence[Candidate], limits: Limits, kept: Path
) -> dict[int, Failed]:
    """Return, by its number, each candidate whose words OCR reads otherwise. What was read is kept in a file.

    Raises:
        SourceError, ReaderDiedError: as `page_crops`, or `tesseract` fails.

    """
    read = [_read_marks(each, pages) for each in candidates]
    marks = sorted({mark for each in read for mark in each}, key=_order)
    known, seen = _kept(kept), dict[Mark, str]()
    before = len(known)
    for mode in _MODES:
        left = [mark for mark in marks if mark not in seen or not _is_read(mark, seen[mark])]
        known |= _texts(path, [mark for mark in left if _key(mark, mode) not in known], mode, limits)
        for mark in left:
            text = known[_key(mark, mode)]
            if mark not in seen or _is_read(mark, text):
                seen[mark] = text
    doubted = {mark.page for mark, text in seen.items() if any(a != b for a, b in _letters(mark.text, text))}
    lines: dict[Mark, Line] = {}
    for number in sorted(doubted):
        longest = sorted(pages[number - 1].lines, key=lambda line: -sum(map(str.isalpha, line.text)))[:_LINES]
        lines |= {Mark(number, line.text, line.box, "line"): line for line in longest}
    known |= _texts(path, [mark for mark in lines if _key(mark, "7") not in known], "7", limits)
    if len(known) > before:
        write_whole(kept, [json.dumps(known, ensure_ascii=False, sort_keys=True).encode()])
    lies = _lies([(mark.page, line, known[_key(mark, "7")]) for mark, line in lines.items()])
    found = {}
    for number, (candidate, own) in enumerate(zip(candidates, read, strict=True)):
        wrong = next((mark for mark in own if not _is_read(mark, seen[mark])), None)
        # a question without an answer claims something of all pages
        lying = sorted(lies if candidate.absent else lies.keys() & {mark.page for mark in own})
        if wrong:
            what = f"page {wrong.page}: {' '.join(seen[wrong].split())[:80]}"
            found[number] = Failed("rendered", "ocr-differs", what, wrong.text)
        elif lying:
            letter, other = lies[lying[0]]
            what = f"page {lying[0]}: OCR reads “{other}” where the layer has “{letter}”"
            found[number] = Failed("rendered", "ocr-differs", what, "a layer with the letters that are printed")
    return found


def _letters(printed: str, read: str) -> Iterator[tuple[str, str]]:
    """Yield each letter of the layer with the letter that OCR reads in its place, if the texts are similar; but not
    letters that differ only in case, that OCR cannot tell apart, or that English does not have.
    """
    same = SequenceMatcher(None, printed, read, autojunk=False)
    for _, start, end, first, last in same.get_opcodes() if same.ratio() >= SIMILAR else ():
        if end - start != last - first:
            continue
        for one, other in zip(printed[start:end], read[first:last], strict=True):
            is_alike = one.casefold() == other.casefold() or {one, other} <= _ALIKE
            if (one + other).isascii() and (one + other).isalpha() and (one == other or not is_alike):
                yield one, other


def _lies(lines: Sequence[tuple[int, Line, str]]) -> dict[int, tuple[str, str]]:
    """Return the pages whose layer lies, by number, each with a letter of the layer and what OCR always reads for it.

    Lines of one size and weight count together, because they probably have one font.
    """
    fonts: dict[tuple[float, bool], Counter[tuple[str, str]]] = {}
    for _, line, text in lines:
        fonts.setdefault((line.size, line.is_bold), Counter()).update(_letters(line.text, text))
    found = {}
    for page, line, text in lines:
        pairs = fonts[line.size, line.is_bold]
        for one, other in sorted({*_letters(line.text, text)}):
            # a layer with `O` for each `t` may have an honest `O` in other words, but it has no `t`
            rarer = min(sum(n for pair, n in pairs.items() if pair[at] == (one, other)[at]) for at in (0, 1))
            if one != other and pairs[one, other] >= max(_TIMES, _SHARE * rarer):
                found[page] = one, other
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


def _read_marks(candidate: Candidate, pages: Sequence[Page]) -> list[Mark]:
    """Return the words that are read: those of the marks, and all words in the boxes of captions and headings."""
    found = []
    for mark in candidate.marks:
        if candidate.kind.startswith(_LAYOUT) or mark.role in ("caption", "heading"):
            mark = replace(mark, text=pages[mark.page - 1].text_in(mark.box), role="layout")
            letters = list(filter(str.isalpha, mark.text))
            if 2 * sum(map(str.isascii, letters)) <= len(letters):  # OCR reads English
                continue
        found.append(mark)
    return found


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
    for (page, found), (_, _, picture) in zip(batches, page_crops(path, crops, limits), strict=True):
        said = _read(picture, f"{path.name}, page {page}", mode, limits).split("\f")
        if len(said) not in (len(found), len(found) + 1):
            raise ReaderDiedError(f"{path.name}, page {page}: tesseract read {len(said)} of {len(found)} pictures")
        texts |= {key: text.strip() for (key, _), text in zip(found, said, strict=False)}
    return texts


def _read(picture: bytes, page: str, mode: str, limits: Limits) -> str:
    try:
        options = (*_OPTIONS, "--psm", mode)
        return run(find_tesseract(), picture, page, limits.seconds_a_page, options, "--seconds-a-page")
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
