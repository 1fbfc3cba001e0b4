"""The checks of a candidate: the form of its words, ink where they are, a second path to its answer, what OCR reads.

The second path knows the places of the words that a question rests on and how the answer follows from them, and nothing
of tables: it reads the lines of the page instead of its words, and computes with fractions instead of decimals.
"""

import json
import re
import unicodedata
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

from mmlongbench.documents.limits import Limits
from mmlongbench.documents.ocr import ocr_version, run
from mmlongbench.documents.page_facts import page_crops
from mmlongbench.errors import BuildError, ReaderDiedError
from mmlongbench.io.files import write_whole
from mmlongbench.questions.layer.facts import answer_of, normal
from mmlongbench.questions.layer.kinds import Candidate, Mark
from mmlongbench.questions.layer.page import Box, Page

MAX_QUESTION_WORDS, MAX_ANSWER_WORDS = 75, 5  # MMLongBench-Doc's longest question has 60 words
BATCH = 48  # how many boxes one call of the program reads
_DIGITS = re.compile(r"\d[\d,]*(?:\.\d+)?|\.\d+")
_MODES = ("7", "6")  # how tesseract reads a picture: as one line, then, if the words differ, as a block
_OPTIONS = ("-l", "eng", "--oem", "1", "-c", "page_separator=\f")
_ALIKE = str.maketrans("0il1j|", "o" + "l" * 5)  # letters that OCR cannot tell apart in many fonts


class Failed(NamedTuple):
    """Why a candidate failed: the check, a slug by which rejects are counted, what was found and expected."""

    stage: str
    reason: str
    found: str
    expected: str


def first_failed(pages: Sequence[Page], candidate: Candidate) -> Failed | None:
    """Return the first check that a candidate fails; None if it passes all that need no picture."""
    answers = [candidate.answer] if isinstance(candidate.answer, str) else candidate.answer
    count = len(candidate.question.split())
    if count > MAX_QUESTION_WORDS:
        return Failed("words", "question-too-long", f"{count} words", f"at most {MAX_QUESTION_WORDS}")
    if longest := next((answer for answer in answers if len(answer.split()) > MAX_ANSWER_WORDS), ""):
        return Failed("words", "long-form-answer", longest, f"at most {MAX_ANSWER_WORDS} words")
    number = normal(answers[-1])
    if len(number) >= 3 and f" {number} " in f" {normal(candidate.question)} ":
        return Failed("words", "answer-in-question", answers[-1], "a question without its answer")
    if dry := next((fact for fact in candidate.facts if not fact.has_ink), None):
        found = f"page {dry.page}: {dry.label}, {dry.leaf}, {dry.value}"
        return Failed("ink", "words-not-rendered", found, "ink where the words are")
    again = answer_again(pages, candidate)
    if again != candidate.answer:
        return Failed("again", "second-path-differs", repr(again), repr(candidate.answer))
    return None


def answer_again(pages: Sequence[Page], candidate: Candidate) -> str | tuple[str, ...] | None:
    """Return the answer by the second path; None if the lines have other words than the marks say."""
    for mark in candidate.marks:
        box, lines = mark.box, ((line.box, line.text) for line in pages[mark.page - 1].lines)
        touching = (
            text
            for at, text in lines
            if at.x0 < box.x1 and at.x1 > box.x0 and at.y0 < box.y1 - 1 and at.y1 > box.y0 + 1
        )
        letters = "".join(filter(str.isalnum, " ".join(touching).casefold()))
        words = ("".join(filter(str.isalnum, word.casefold())) for word in mark.text.split())
        if not all(word in letters for word in words):
            return None
    values = [fact.value for fact in candidate.facts]
    numbers = [_fraction(value) for value in values]
    match candidate.derived, [number for number in numbers if number is not None]:
        case "", [_]:
            return answer_of(values[0])
        case "sum", found if len(found) == len(values):
            return _written(sum(found, Fraction(0)), values)
        case "absolute difference", [one, two]:
            return _written(abs(one - two), values)
        case "larger row", [one, two] if one != two:
            return candidate.facts[one < two].label, _written(abs(one - two), values)
        case "join", [one, two, _] if one != two and normal(candidate.facts[one < two].label) == normal(
            candidate.facts[2].label
        ):
            return answer_of(values[2])
    return None


def _fraction(printed: str) -> Fraction | None:
    found = _DIGITS.findall(printed)
    if len(found) != 1:
        return None
    value = Fraction(found[0].replace(",", ""))
    return -value if "(" in printed or re.match(r"\s*[$€£]?\s*[-−–]", printed) else value


def _written(value: Fraction, printed: Sequence[str]) -> str:
    decimals = max(len(_DIGITS.findall(text)[0].partition(".")[2]) for text in printed)
    whole, rest = divmod(value.numerator * 10**decimals // value.denominator, 10**decimals)
    return f"{whole:,}" + (f".{rest:0{decimals}}" if decimals else "")


def ocr_name() -> str:
    try:
        return ocr_version()
    except BuildError:
        return ""


def misread(path: Path, candidates: Sequence[Candidate], limits: Limits, kept: Path) -> dict[int, Failed]:
    """Return, by its number, each candidate whose words OCR reads otherwise. What was read is kept in a file.

    A font may say `O` for each `t`, and something may be painted over a number: so all letters and digits must be the
    same, but for those that OCR cannot tell apart. Each box is read as one line of text, then as a block.
    """
    try:
        texts = dict(json.loads(kept.read_bytes()))
    except (OSError, ValueError, TypeError):  # not there, or damaged
        texts = {}
    marks, before = dict.fromkeys(mark for candidate in candidates for mark in candidate.marks), len(texts)
    ordered = sorted(marks, key=lambda mark: (mark.page, mark.box, mark.text))
    for mode in _MODES:
        left = [mark for mark in ordered if not _is_read(mark, texts) and _key(mark, mode) not in texts]
        texts |= _texts(path, left, mode, limits)
    if len(texts) > before:
        write_whole(kept, [json.dumps(texts, ensure_ascii=False, sort_keys=True).encode()])
    failed = {}
    for number, candidate in enumerate(candidates):
        if wrong := next((mark for mark in candidate.marks if not _is_read(mark, texts)), None):
            read = " ".join(texts[_key(wrong, _MODES[-1])].split())[:80]
            failed[number] = Failed("rendered", "ocr-differs", f"page {wrong.page}: {read}", wrong.text)
    return failed


def _key(mark: Mark, mode: str) -> str:
    return f"{mode} {mark.page} {' '.join(f'{value:g}' for value in mark.box)}"


def _texts(path: Path, marks: Sequence[Mark], mode: str, limits: Limits) -> dict[str, str]:
    boxes: dict[int, dict[str, Box]] = {}
    for mark in marks:
        boxes.setdefault(mark.page, {})[_key(mark, mode)] = mark.box
    batches = [
        (page, list(inside.items())[start : start + BATCH])
        for page, inside in boxes.items()
        for start in range(0, len(inside), BATCH)
    ]
    texts: dict[str, str] = {}
    crops = [(page, [list(box) for _, box in batch]) for page, batch in batches]
    for (page, batch), (_, _, picture) in zip(batches, page_crops(path, crops, limits) if crops else (), strict=True):
        place = f"{path.name}, page {page}"
        try:
            read = run(picture, place, limits.seconds_a_page, (*_OPTIONS, "--psm", mode), "--seconds-a-page").split(
                "\f"
            )
        except ValueError as error:
            raise ReaderDiedError(f"{place}: tesseract failed ({error}); leave OCR out with --no-ocr") from error
        if len(read) not in (len(batch), len(batch) + 1):
            raise ReaderDiedError(f"{place}: tesseract read {len(read)} of {len(batch)} pictures")
        texts |= {key: text.strip() for (key, _), text in zip(batch, read, strict=False)}
    return texts


def _is_read(mark: Mark, texts: dict[str, str]) -> bool:
    return any(agrees(mark.text, texts.get(_key(mark, mode), "")) for mode in _MODES)


def agrees(printed: str, read: str) -> bool:
    """Return whether a text that was read in a picture has the printed words: the same digits and decimal point, and
    the same letters, but for those that OCR cannot tell apart.
    """
    if not any(map(str.isalpha, printed)):
        digits, other = ("".join(filter(str.isdigit, text)) for text in (printed, read))
        return digits == other and ("." in printed) <= ("." in read or "," in read)
    return _letters(printed) in _letters(read)


def _letters(text: str) -> str:
    plain = unicodedata.normalize("NFKD", text).casefold()
    return "".join(filter(str.isalnum, plain.replace("|", "l"))).translate(_ALIKE)
