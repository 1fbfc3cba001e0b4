"""Reads the annotation rows of MM-NIAH (Wang et al. 2024, arXiv:2406.07230), each as a question and its own web page.

The field `meta.category` says what a row asks; in a row without this field, the other fields say it. `placed_depth` is
not read, because a release chooses its own depths (those of the rows count from the start of the context).
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Literal, TypeAlias, get_args

from builders.mm_niah.ordinals import pictures_named
from builders.mm_niah.rows import (
    MARKER,
    Fields,
    HaystackQuestion,
    HiddenNeedle,
    Span,
    WebPage,
    are_in_context,
    counts_of,
    find_sentences,
    is_made,
    is_web,
    names_of,
    numbers_of,
    read_fields,
    refuse,
    sentences_of,
)
from mmlongbench.task import Fault, Image, Rejected

Category: TypeAlias = Literal[
    "find-text", "find-image", "count-text", "count-image", "infer-choose", "visual-reasoning"
]
CATEGORIES: tuple[Category, ...] = get_args(Category)


@dataclass(frozen=True, slots=True)
class Annotation:
    """One row: its question, and the context that becomes its own web page."""

    question: HaystackQuestion
    context: str
    """The context without page breaks, with a marker for each picture."""
    pictures: tuple[str, ...]
    """The pictures of the context, in order."""
    sentences: tuple[Span, ...] = ()
    """The positions of needle sentences in the context."""


def read_annotation(raw: Mapping[str, object] | Fault) -> Annotation | Fault:
    """Return the question and the page of a row, or what is wrong with the row."""
    if isinstance(raw, Fault):
        return raw
    try:
        return _read(raw)
    except Rejected as refused:
        return refused.fault


def own_page(found: Annotation) -> WebPage:
    """Return the context of a row, without the needles and the pictures that are shown beside the question. It is the
    first page of the row's haystack.
    """
    context, asked = found.context, set(asked_by(found))
    for start, end in sorted(found.sentences, reverse=True):
        context = f"{context[:start]} {context[end:]}"
    return _page(context, found.pictures, lambda name: name not in asked)


def page_of_skipped(raw: Mapping[str, object]) -> WebPage:
    """Return the context of a row that the benchmark leaves out, with only those pictures that are from web pages. The
    result is empty if the fields of the row cannot be read.
    """
    try:
        fields = read_fields(raw)
    except Rejected:
        return []
    return _page(fields.context, fields.pictures, is_web)


def _page(context: str, pictures: Sequence[str], is_shown: Callable[[str], bool]) -> WebPage:
    first, *others = context.split(MARKER)
    parts: list[str | Image] = [first]
    for name, text in zip(pictures, others, strict=True):
        parts += [Image(name), text] if is_shown(name) else [text]
    return parts


def asked_by(found: Annotation) -> tuple[str, ...]:
    """Return the pictures that a row asks about or shows beside its question."""
    question = found.question
    return (*(needle.image for needle in question.needles if needle.image), *question.shown, *question.choices)


def asked_by_refused(raw: Mapping[str, object] | Fault) -> list[str]:
    """Return the pictures that an unreadable row may ask about: its options, and all its pictures that are not from web
    pages.
    """
    if isinstance(raw, Fault):
        return []
    meta, images = raw.get("meta"), raw.get("images_list")
    options = meta.get("choices_image_path") if isinstance(meta, dict) else None
    options, names = (listed if isinstance(listed, list) else [] for listed in (options, images))
    named = [name for name in (*options, *names) if isinstance(name, str) and name]
    return [name for name in named if name in options or not is_web(name)]


def _read(raw: Mapping[str, object]) -> Annotation:
    fields = read_fields(raw)
    category = _category(fields)
    if category in ("find-text", "infer-choose"):
        return _asks_for_text(fields)
    if category == "count-text":
        return _counts_statements(fields)
    return _counts_patterns(fields) if category == "count-image" else _asks_for_picture(fields, category)


def _category(fields: Fields) -> Category:
    """Return the category of a row: the category that `meta.category` names or, if this is none of `CATEGORIES`, the
    category that the other fields suggest.
    """
    given = fields.meta.get("category")
    if known := next((name for name in CATEGORIES if name == given), None):
        return known
    if fields.shown and counts_of(fields.answer) is not None:
        return "count-image"
    if fields.meta.get("choices_image_path"):
        is_pasted = any(map(is_made, fields.pictures))
        return "find-image" if is_pasted or not pictures_named(fields.question) else "visual-reasoning"
    if fields.meta.get("choices") and not are_in_context(fields):
        return "visual-reasoning"
    return "count-text" if counts_of(fields.answer) is not None else "find-text"


def _asks_for_text(fields: Fields) -> Annotation:
    """Read retrieval and reasoning over text: needle sentences, and an answer that is a text or one of the options."""
    texts = sentences_of(fields)
    found = find_sentences(fields.context, texts)
    _refuse_absent(texts, found)
    options = names_of(fields.meta.get("choices") or [], "meta.choices")
    if fields.meta.get("choices_image_path"):
        todo = "the public format shows picture options with needles that are pictures, nowhere else"
        refuse("picture-options", "options that are texts", "pictures", "meta.choices_image_path", todo)
    question = "\n".join((fields.question, *(f"{chr(65 + n)}. {option}" for n, option in enumerate(options))))
    answer = fields.answer
    if type(answer) is int and 0 <= answer < len(options):
        answer = options[answer]
    if isinstance(answer, bool) or not isinstance(answer, str | int) or not str(answer).strip():
        refuse("missing-or-mistyped-field", "a text, or the index of an option", repr(answer)[:80], "answer")
    needles = tuple(HiddenNeedle(id=f"needle-{n}", text=text) for n, text in enumerate(texts))
    row = _row(fields, needles, question=question, answers=(str(answer),))
    return Annotation(row, fields.context, fields.pictures, tuple(span for spans in found.values() for span in spans))


def _counts_statements(fields: Fields) -> Annotation:
    """Read counting over text: each needle is a statement with a number, so equal numbers make equal statements."""
    texts, counts = sentences_of(fields), numbers_of(fields.answer)
    found = find_sentences(fields.context, texts)
    _refuse_absent(texts, found)
    stated = sum(map(len, found.values()))
    if not len(texts) == len(counts) == stated:
        expected = f"{len(counts)} statements in meta.needles and in the context, one for each number"
        refuse("counts-and-needles", expected, f"{len(texts)} and {stated}", "answer")
    starts = {text: iter(sorted(spans)) for text, spans in found.items()}
    placed = sorted((next(starts[text]), text) for text in texts)
    in_order = [text for _, text in placed]
    pairs = _paired(in_order, texts, counts)
    needles = tuple(HiddenNeedle(id=f"needle-{n}", text=text) for n, (text, _) in enumerate(pairs))
    row = _row(fields, needles, counts=tuple(count for _, count in pairs))
    return Annotation(row, fields.context, fields.pictures, tuple(span for span, _ in placed))


def _paired(in_order: Sequence[str], listed: Sequence[str], counts: Sequence[int]) -> list[tuple[str, int]]:
    """Return each statement with its number, in the order of the document.

    Usually the numbers of the answer are in the order of the document. If this order contradicts the numbers in the
    statements, the order of `meta.needles` is tried. If both orders contradict the statements, the row is refused.
    """
    by_document, as_listed = (list(zip(texts, counts, strict=True)) for texts in (in_order, listed))
    if _states(by_document) or not any(re.search(r"\d", text) for text in in_order):
        return by_document
    if _states(as_listed):
        return sorted(as_listed, key=lambda pair: in_order.index(pair[0]))
    refuse("counts-and-needles", "the numbers that the statements give", repr(list(counts))[:80], "answer")


def _states(pairs: Sequence[tuple[str, int]]) -> bool:
    """Return whether each number occurs in its statement."""
    return all(count in map(int, re.findall(r"\d{1,9}", text)) for text, count in pairs)


def _counts_patterns(fields: Fields) -> Annotation:
    """Read counting over pictures: the answer has one number for each picture of the document; the needles are the
    pictures whose number is above 0.
    """
    counts = numbers_of(fields.answer)
    if len(counts) != len(fields.pictures):
        expected = f"{len(fields.pictures)} numbers, one for each picture of the context"
        refuse("counts-and-pictures", expected, str(len(counts)), "answer")
    pairs = [(name, count) for name, count in zip(fields.pictures, counts, strict=True) if count]
    if not pairs:
        refuse("no-needles", "a number above 0", "zeros", "answer")
    needles = tuple(HiddenNeedle(id=f"needle-{n}", image=name) for n, (name, _) in enumerate(pairs))
    row = _row(fields, needles, counts=tuple(count for _, count in pairs), shown=fields.shown)
    return Annotation(row, fields.context, fields.pictures)


def _asks_for_picture(fields: Fields, category: Category) -> Annotation:
    """Read retrieval and reasoning over pictures: one needle, and options that are pictures."""
    _refuse_options(fields, category)
    choices = names_of(fields.meta.get("choices_image_path") or [], "meta.choices_image_path")
    if type(fields.answer) is not int:
        refuse("missing-or-mistyped-field", "an index of the choices", repr(fields.answer)[:80], "answer")
    at = _pasted(fields) if category == "find-image" else _jigsaw(fields)
    named = pictures_named(fields.question)
    is_stale = len(named) == 1 and named[0].place != at + 1
    needle = HiddenNeedle(id="needle-0", image=fields.pictures[at])
    options = {"choices": tuple(choices), "right": fields.answer, "shown": fields.shown}
    row = _row(fields, (needle,), **options, is_ordinal_stale=is_stale)
    return Annotation(row, fields.context, fields.pictures)


def _refuse_options(fields: Fields, category: Category) -> None:
    """Refuse options that are texts, and Multi-view rows, which the benchmark leaves out."""
    has_texts, has_pictures = (bool(fields.meta.get(key)) for key in ("choices", "choices_image_path"))
    if has_texts and has_pictures:
        refuse("two-kinds-of-options", "options that are texts or pictures", "both", "meta.choices")
    if category == "visual-reasoning" and (has_texts or (not has_pictures and _has_frames(fields))):
        found = f"two frames whose options are {'texts' if has_texts else 'missing'}"
        todo = "nothing is to be done: the benchmark leaves Multi-view rows out and keeps Jigsaw rows"
        expected = "a needle whose options are pictures"
        raise Rejected(Fault("multi-view", expected, found, field="meta.choices", todo=todo, is_expected=True))
    if has_texts:
        refuse("text-options", "picture choices", "options that are texts", "meta.choices")


def _has_frames(fields: Fields) -> bool:
    """Return whether a row asks about two pictures of its context, as only Multi-view rows do."""
    return len(_listed_pictures(fields)) == 2 or len(pictures_named(fields.question)) == 2


def _pasted(fields: Fields) -> int:
    """Return the place of the page picture with a pasted cartoon: the one in a folder of such pictures or, if there is
    none, the one outside the folder of pictures from web pages.

    `meta.needles` is not used, because it names the file of the cartoon, which is not a picture of the document.
    """
    made = [at for at, name in enumerate(fields.pictures) if is_made(name)]
    return _only(made or _outside(fields), "one picture with a pasted cartoon, in a folder *paste* or abnormal_pic*")


def _jigsaw(fields: Fields) -> int:
    """Return the place of the picture with a missing corner: the one that `meta.needles` names or, if it names none,
    the one outside the folder of pictures from web pages.
    """
    return _only(_listed_pictures(fields) or _outside(fields), "one picture that meta.needles names")


def _listed_pictures(fields: Fields) -> list[int]:
    """Return the places of the pictures whose paths `meta.needles` has. If it has no such path, return the places of
    the pictures whose file names it has.
    """
    listed = fields.meta.get("needles")
    needles = {name for name in listed if isinstance(name, str)} if isinstance(listed, list) else set()
    bases = {PurePosixPath(name).name for name in needles}
    found = [at for at, name in enumerate(fields.pictures) if name in needles]
    return found or [at for at, name in enumerate(fields.pictures) if PurePosixPath(name).name in bases]


def _outside(fields: Fields) -> list[int]:
    return [at for at, name in enumerate(fields.pictures) if not is_web(name)]


def _only(found: Sequence[int], expected: str) -> int:
    if len(found) != 1:
        refuse("needle-unknown", f"{expected}, or one outside obelics/", str(len(found)), "images_list")
    return found[0]


def _refuse_absent(texts: Sequence[str], found: Mapping[str, Sequence[Span]]) -> None:
    """Refuse a needle that occurs in the context less often than in the list of needles."""
    for text in texts:
        if len(found[text]) < texts.count(text):
            expected = f"{texts.count(text)} × {text!r:.80} in the context"
            refuse("needle-unknown", expected, str(len(found[text])), "meta.needles")


def _row(fields: Fields, needles: tuple[HiddenNeedle, ...], **others: Any) -> HaystackQuestion:  # noqa: ANN401
    listed = fields.meta.get("needles")
    is_mended = needles[0].text and isinstance(listed, list) and any("\n" in str(each).strip() for each in listed)
    repairs = ("needle-on-several-lines",) if is_mended else ()
    about: dict[str, Any] = {"question": fields.question, "shown": fields.shown, **others}
    page = f"row-{fields.id.removeprefix('mm-niah-')}"
    return HaystackQuestion(id=fields.id, pages=(page,), needles=needles, repairs=repairs, **about)
