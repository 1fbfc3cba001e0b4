"""Reads the annotation rows of MM-NIAH (Wang et al. 2024, arXiv:2406.07230), each as a question and its own web page.

The fields of a row say what it asks; the name of the file is not used. `placed_depth` is not read, because a release
chooses its own depths (those of the rows count from the start of the context).
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, TypeAlias

import mmlongbench.task as mt
from builders.mm_niah.rows import MISTYPED, HaystackQuestion, HiddenNeedle, WebPage, is_made, pictures_named, refuse

CATEGORIES = ("find-text", "find-image", "count-text", "count-image", "infer-choose", "visual-reasoning")
Span: TypeAlias = tuple[int, int]
WEB = "obelics"
"""The name of the folder of pictures from web pages, in the source and in a release."""
MAX_NEEDLE = 10_000
"""The maximum characters of a needle, which is a sentence."""
MAX_COUNT = 10**6
_WHOLE = re.compile(r"[0-9]{1,9}(?:\.0{1,9})?")


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of a row of any category; needles, options and answer are read later, depending on the category."""

    id: int
    context: str
    """The context without page breaks, with a marker for each picture."""
    question: str
    answer: object
    meta: Mapping[str, Any]
    pictures: tuple[str, ...]
    """The pictures of the context, in order."""
    shown: tuple[str, ...]
    """The pictures of the question."""


def read_fields(raw: Mapping[str, object]) -> Fields:
    """Return the fields of a row; raises Rejected."""
    if type(id := raw.get("id")) is not int:
        refuse(MISTYPED, "an integer", repr(id), "id")
    for field in ("context", "question"):
        if not isinstance(text := raw.get(field), str) or not text.strip():
            refuse(MISTYPED, "a text", repr(text)[:80], field)
    context, question, meta = str(raw["context"]), " ".join(str(raw["question"]).split()), raw.get("meta")
    if not isinstance(meta, dict):
        refuse(MISTYPED, "an object", type(meta).__name__, "meta")
    images = _names(raw.get("images_list"), "images_list")
    of_question = question.count(mt.advanced.MARKER)
    markers = context.count(mt.advanced.MARKER) + of_question
    if markers != len(images):
        refuse("markers-and-images", f"{markers} pictures, one a marker", str(len(images)), "images_list")
    # Some of MM-NIAH's own programs put the question's pictures last in `images_list`, others first. So the folder of
    # cartoons is more reliable than the place, unless pictures of the context are in this folder, too.
    cartoons = {place for place, name in enumerate(images) if is_made(name, is_cartoon=True)}
    last = set(range(len(images) - of_question, len(images)))
    if len(cartoons) > of_question and not last <= cartoons:
        expected = f"{of_question} of folder abnormal_pic*, or the last ones of them"
        refuse("pattern-unknown", expected, f"{len(cartoons)} at other places", "images_list")
    shown = cartoons if len(cartoons) == of_question else last
    return Fields(
        id,
        context.replace("</s>", "\n\n"),  # the break between the pages of some contexts
        question,
        raw.get("answer"),
        meta,
        pictures=tuple(name for place, name in enumerate(images) if place not in shown),
        shown=tuple(images[place] for place in sorted(shown)),
    )


def read_question(fields: Fields) -> HaystackQuestion:
    """Return the question of a row; raises Rejected. `meta.category` says what the row asks or, if this is none of
    `CATEGORIES`, the other fields do.
    """
    category = fields.meta.get("category")
    if category not in CATEGORIES:
        category = _category_by_fields(fields)
    if category == "count-text":
        return _counts_statements(fields)
    if category == "count-image":
        return _counts_patterns(fields)
    if category in ("find-image", "visual-reasoning"):
        return _asks_for_picture(fields, category)
    return _asks_for_text(fields)


def _category_by_fields(fields: Fields) -> str:
    is_count = counts_of(fields.answer) is not None
    if fields.shown and is_count:
        return "count-image"
    if fields.meta.get("choices_image_path"):
        is_pasted = any(map(is_made, fields.pictures))
        return "find-image" if is_pasted or not pictures_named(fields.question) else "visual-reasoning"
    if fields.meta.get("choices"):
        try:
            texts = _sentences(fields)
        except mt.Rejected:
            return "visual-reasoning"
        if {*texts} != {text for _, text in find_sentences(fields.context, texts)}:
            return "visual-reasoning"
    return "count-text" if is_count else "find-text"


def _asks_for_text(fields: Fields) -> HaystackQuestion:
    texts = _sentences(fields)
    _positions(fields, texts)
    options = _names(fields.meta.get("choices") or [], "meta.choices")
    if fields.meta.get("choices_image_path"):
        todo = "the public format shows picture options with needles that are pictures, nowhere else"
        refuse("picture-options", "options that are texts", "pictures", "meta.choices_image_path", todo)
    question = "\n".join((fields.question, *(f"{chr(65 + n)}. {option}" for n, option in enumerate(options))))
    answer = fields.answer
    if type(answer) is int and 0 <= answer < len(options):
        answer = options[answer]
    if isinstance(answer, bool) or not isinstance(answer, str | int) or not str(answer).strip():
        refuse(MISTYPED, "a text, or the index of an option", repr(answer)[:80], "answer")
    return _question(fields, "text", texts, question=question, answers=(str(answer),))


def _counts_statements(fields: Fields) -> HaystackQuestion:
    texts, counts = _sentences(fields), _counts(fields)
    in_order = [text for _, text in _positions(fields, texts)]
    if not len(texts) == len(counts) == len(in_order):
        expected = f"{len(counts)} statements in meta.needles and in the context, one for each number"
        refuse("counts-and-needles", expected, f"{len(texts)} and {len(in_order)}", "answer")

    def are_said(pairs: Iterable[tuple[str, int]]) -> bool:
        return all(count in map(int, re.findall(r"\d{1,9}", text)) for text, count in pairs)

    # Usually the numbers of the answer are in the order of the document. If the statements say other numbers, the order
    # of `meta.needles` is tried.
    pairs = list(zip(in_order, counts, strict=True))
    if any(re.search(r"\d", text) for text in in_order) and not are_said(pairs):
        pairs = sorted(zip(texts, counts, strict=True), key=lambda pair: in_order.index(pair[0]))
        if not are_said(pairs):
            refuse("counts-and-needles", "the numbers that the statements give", repr(list(counts))[:80], "answer")
    return _question(fields, "text", (text for text, _ in pairs), counts=tuple(count for _, count in pairs))


def _counts_patterns(fields: Fields) -> HaystackQuestion:
    # one number for each picture of the document; the needles are the pictures whose number is above 0
    counts = _counts(fields)
    if len(counts) != len(fields.pictures):
        expected = f"{len(fields.pictures)} numbers, one for each picture of the context"
        refuse("counts-and-pictures", expected, str(len(counts)), "answer")
    pairs = [(name, count) for name, count in zip(fields.pictures, counts, strict=True) if count]
    if not pairs:
        refuse("no-needles", "a number above 0", "zeros", "answer")
    return _question(fields, "image", (name for name, _ in pairs), counts=tuple(count for _, count in pairs))


def _asks_for_picture(fields: Fields, category: str) -> HaystackQuestion:
    """Read retrieval and reasoning over pictures: one needle, and options that are pictures. Multi-view rows, which the
    benchmark leaves out, are refused. Only these ask about two pictures of their context.
    """
    has_texts, has_pictures = (bool(fields.meta.get(key)) for key in ("choices", "choices_image_path"))
    named, listed = pictures_named(fields.question), fields.meta.get("needles")
    names = {name for name in listed if isinstance(name, str)} if isinstance(listed, list) else set()
    files = {PurePosixPath(name).name for name in names}
    needles = [place for place, name in enumerate(fields.pictures) if name in names]
    needles = needles or [place for place, name in enumerate(fields.pictures) if PurePosixPath(name).name in files]
    if has_texts and has_pictures:
        refuse("two-kinds-of-options", "options that are texts or pictures", "both", "meta.choices")
    has_frames = 2 in (len(needles), len(named))
    if category == "visual-reasoning" and (has_texts or (not has_pictures and has_frames)):
        found = f"two frames whose options are {'texts' if has_texts else 'missing'}"
        todo = "nothing is to be done: the benchmark leaves Multi-view rows out and keeps Jigsaw rows"
        expected = "a needle whose options are pictures"
        raise mt.Rejected(mt.Fault("multi-view", expected, found, field="meta.choices", todo=todo, is_expected=True))
    if has_texts:
        refuse("text-options", "picture choices", "options that are texts", "meta.choices")
    choices = _names(fields.meta.get("choices_image_path") or [], "meta.choices_image_path")
    if type(fields.answer) is not int:
        refuse(MISTYPED, "an index of the choices", repr(fields.answer)[:80], "answer")
    expected = "one picture that meta.needles names"
    if category == "find-image":
        # `meta.needles` names the file of the cartoon that was pasted, which is not a picture of the document.
        needles = [place for place, name in enumerate(fields.pictures) if is_made(name)]
        expected = "one picture with a pasted cartoon, in a folder *paste* or abnormal_pic*"
    needles = needles or [place for place, name in enumerate(fields.pictures) if not is_web(name)]
    if len(needles) != 1:
        refuse("needle-unknown", f"{expected}, or one outside obelics/", str(len(needles)), "images_list")
    return _question(
        fields,
        "image",
        [fields.pictures[needles[0]]],
        choices=tuple(choices),
        right=fields.answer,
        is_ordinal_stale=len(named) == 1 and named[0].place != needles[0] + 1,
    )


def _question(fields: Fields, kind: str, needles: Iterable[str], **others: Any) -> HaystackQuestion:  # noqa: ANN401
    hidden = tuple(HiddenNeedle.model_validate({"id": f"needle-{n}", kind: body}) for n, body in enumerate(needles))
    is_mended = kind == "text" and any("\n" in needle.strip() for needle in fields.meta["needles"])
    repairs = ("needle-on-several-lines",) if is_mended else ()
    about: dict[str, Any] = {"question": fields.question, "shown": fields.shown, **others}
    id, pages = f"mm-niah-{fields.id}", (f"row-{fields.id}",)
    return HaystackQuestion(id=id, pages=pages, needles=hidden, repairs=repairs, **about)


def _sentences(fields: Fields) -> list[str]:
    needles = fields.meta.get("needles")
    if not isinstance(needles, list) or not needles:
        refuse("no-needles", "a list of needles", repr(needles)[:80], "meta.needles")
    if not all(isinstance(needle, str) and needle.strip() for needle in needles):
        refuse(MISTYPED, "a list of sentences", repr(needles)[:80], "meta.needles")
    if (longest := max(map(len, needles))) > MAX_NEEDLE:
        refuse("needle-too-long", f"at most {MAX_NEEDLE} characters", str(longest), "meta.needles")
    if broken := next((needle for needle in needles if mt.advanced.MARKER in needle), ""):
        # Its page would have a picture without a marker.
        refuse("needle-with-marker", f"a sentence without {mt.advanced.MARKER}", repr(broken)[:80], "meta.needles")
    return [" ".join(needle.split()) for needle in needles]


def _positions(fields: Fields, texts: Sequence[str]) -> list[tuple[Span, str]]:
    """Return what `find_sentences` finds; refuse a needle that occurs less often than in the list of needles."""
    found = find_sentences(fields.context, texts)
    counts = Counter(text for _, text in found)
    for text in texts:
        if counts[text] < texts.count(text):
            expected = f"{texts.count(text)} × {text!r:.80} in the context"
            refuse("needle-unknown", expected, str(counts[text]), "meta.needles")
    return found


def find_sentences(context: str, texts: Sequence[str]) -> list[tuple[Span, str]]:
    """Return (position, text) of each text in a context, in the order of the context, with any white space between
    words. A text that is part of a longer text is not found inside the longer one.

    >>> find_sentences("It is 4. So it is 4. It is 4.", ["So it is 4.", "it is 4.", "It is 4."])
    [((0, 8), 'It is 4.'), ((9, 20), 'So it is 4.'), ((21, 29), 'It is 4.')]
    """
    found: list[tuple[Span, str]] = []
    for text in sorted(dict.fromkeys(texts), key=len, reverse=True):
        spans = [match.span() for match in re.finditer(r"\s+".join(map(re.escape, text.split())), context)]
        found += [
            (span, text) for span in spans if not any(span[0] < end and start < span[1] for (start, end), _ in found)
        ]
    return sorted(found)


def _counts(fields: Fields) -> tuple[int, ...]:
    if (counts := counts_of(fields.answer)) is None:
        expected = "a list of whole numbers, or a text that spells one"
        refuse(MISTYPED, expected, repr(fields.answer)[:80], "answer")
    return counts


def counts_of(answer: object) -> tuple[int, ...] | None:
    """Return the numbers of a counting answer, given as a list or as JSON text; None for anything else. A number is
    whole, from 0 to `MAX_COUNT`, and may be written as text or as `2.0`.

    >>> counts_of("[1, 2.0]"), counts_of(["1", "2"]), counts_of("[1.5]")
    ((1, 2), (1, 2), None)
    """
    if isinstance(answer, str):
        try:
            answer = json.loads(answer)
        except (ValueError, RecursionError):
            return None
    counts = []
    for value in answer if isinstance(answer, list) else ():
        if isinstance(value, str) and _WHOLE.fullmatch(value.strip()):
            value = float(value)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if type(value) is not int or not 0 <= value <= MAX_COUNT:
            return None
        counts.append(value)
    return tuple(counts) or None


def _names(value: object, field: str) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(name, str) and name for name in value):
        refuse(MISTYPED, "a list of names", repr(value)[:80], field)
    return value


def is_web(name: str) -> bool:
    return WEB in PurePosixPath(name).parts[:-1]


def _asked(question: HaystackQuestion) -> list[str]:
    return [*(needle.image for needle in question.needles if needle.image), *question.shown, *question.choices]


def pictures_asked(raw: Mapping[str, object]) -> list[str]:
    """Return the pictures that a row asks about or shows beside its question. If the row cannot be read, these may be
    its options, and all its pictures that are not from web pages.
    """
    try:
        return _asked(read_question(read_fields(raw)))
    except mt.Rejected:
        meta, images = raw.get("meta"), raw.get("images_list")
        options = meta.get("choices_image_path") if isinstance(meta, dict) else None
        options, names = (listed if isinstance(listed, list) else [] for listed in (options, images))
        named = [name for name in (*options, *names) if isinstance(name, str) and name]
        return [name for name in named if name in options or not is_web(name)]


def own_page(raw: Mapping[str, object]) -> WebPage:
    """Return the context of a row, without the needles and the pictures that are shown beside the question; it is empty
    if the row cannot be read. The context of a row that the benchmark leaves out has only pictures from web pages.
    """
    needles: list[tuple[Span, str]] = []
    try:
        fields = read_fields(raw)
        question = read_question(fields)
    except mt.Rejected as error:
        if not error.fault.is_expected:
            return []
        hidden = {name for name in fields.pictures if not is_web(name)}
    else:
        hidden = set(_asked(question))
        if question.needles[0].text:
            needles = _positions(fields, _sentences(fields))
    context = fields.context
    for (start, end), _ in reversed(needles):
        context = f"{context[:start]} {context[end:]}"
    first, *others = context.split(mt.advanced.MARKER)
    parts: list[str | mt.Image] = [first]
    for name, text in zip(fields.pictures, others, strict=True):
        parts += [text] if name in hidden else [mt.Image(name), text]
    return parts
