"""MM-NIAH (Wang et al. 2024, arXiv:2406.07230): annotation rows whose contexts hold their needles already.

`questions` is one of the six annotation files, `images` the folder of their pictures, `obelics` (optional) more web
pages. What a row asks is told from the row itself, never from the file's name; its `placed_depth` is not looked at. The
needles are taken out of a row's own context, which is then the first page of its haystack.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, ClassVar, NoReturn

from builders.mm_niah.obelics import obelics_faults, obelics_pages
from builders.mm_niah.pages import Pages, WebPage, picture_file
from builders.mm_niah.rows import HaystackQuestion, HiddenNeedle
from mmlongbench import Fault, Image, Rejected, Row, RowFault, Sources, at_place, json_line_at, json_lines

MARKER = "<image>"
_MOST_OF_A_NEEDLE = 10_000
"""Characters; a needle is a sentence."""


class MMNIAHRows:
    """MM-NIAH: questions about needles in interleaved web pages, each with a context of its own."""

    row_type: ClassVar[type[Row]] = HaystackQuestion
    sources: ClassVar[tuple[str, ...]] = ("questions", "images")
    optional_sources: ClassVar[tuple[str, ...]] = ("obelics",)
    image_folder: ClassVar[str] = "mm-niah"

    def rows(self, sources: Sources) -> Iterator[Row | RowFault]:
        """Each question, `mm-niah-<id>`; then the pages of `obelics` that cannot be read."""
        path = sources["questions"]
        for number, _, raw in json_lines(path):
            yield at_place(f"mm-niah-{_id(raw, number)}", _row(raw), path.name, f"line {number}")
        for id, fault in obelics_faults(sources["obelics"]) if "obelics" in sources else ():
            yield at_place(id, fault, sources["obelics"].name, id)

    def documents(self, sources: Sources) -> Mapping[str, Path]:
        """No PDFs."""
        return {}

    def image(self, sources: Sources, name: str) -> Path | None:
        """A picture of a context, a question or a web page."""
        return picture_file(sources["images"], name)

    def web_pages(self, sources: Sources) -> Mapping[str, WebPage]:
        """The rows' own contexts without their needles, `row-<id>`, then the pages of `obelics`."""
        path, found = sources["questions"], dict[str, Callable[[], WebPage]]()
        for number, offset, raw in json_lines(path):
            if not isinstance(raw, Fault):
                found.setdefault(f"row-{_id(raw, number)}", partial(_own_page, path, offset))
        return Pages(found | (obelics_pages(sources["obelics"]) if "obelics" in sources else {}))

    def draw_sample(self, folder: Path) -> dict[str, Path]:
        """Drawn web pages, and questions about sentences hidden in them."""
        from builders.mm_niah.sample import draw_hidden_sentences

        return draw_hidden_sentences(folder)


def _id(raw: Mapping[str, Any] | Fault, number: int) -> str:
    id = None if isinstance(raw, Fault) else raw.get("id")
    return str(id) if isinstance(id, int) and not isinstance(id, bool) else f"line-{number}"


def _row(raw: Mapping[str, Any] | Fault) -> HaystackQuestion | Fault:
    if isinstance(raw, Fault):
        return raw
    try:
        return _read(raw)
    except Rejected as refused:
        return refused.fault


def _read(raw: Mapping[str, Any]) -> HaystackQuestion:
    if type(raw.get("id")) is not int:
        _refuse("missing-or-mistyped-field", "an integer", repr(raw.get("id")), "id")
    context, question, meta = _text(raw, "context"), " ".join(_text(raw, "question").split()), raw.get("meta")
    if not isinstance(meta, dict):
        _refuse("missing-or-mistyped-field", "an object", type(meta).__name__, "meta")
    images = _names(raw.get("images_list"), "images_list")
    markers = context.count(MARKER) + question.count(MARKER)
    if markers != len(images):
        _refuse("markers-and-images", f"{markers} pictures, one a marker", str(len(images)), "images_list")
    shown = images[len(images) - question.count(MARKER) :]
    about: dict[str, Any] = {"id": f"mm-niah-{raw['id']}", "question": question, "pages": (f"row-{raw['id']}",)}
    needles = _needles(raw, context, images)
    options = _names(meta.get("choices") or [], "meta.choices")
    if any("\n" in str(needle).strip() for needle in meta["needles"]):
        about["repairs"] = ("needle-on-several-lines",)
    if needles[0].text and options:
        question = "\n".join((question, *(f"{chr(65 + n)}. {option}" for n, option in enumerate(options))))
        about["question"] = question
    elif options:
        _refuse("text-options", "picture choices", "options that are texts", "meta.choices")
    choices = _names(meta.get("choices_image_path") or [], "meta.choices_image_path")
    answer = _answer(raw.get("answer"), choices, options)
    return HaystackQuestion(needles=needles, shown=tuple(shown), choices=tuple(choices), **about, **answer)


def _answer(answer: object, choices: Sequence[str], options: Sequence[str]) -> dict[str, Any]:
    """Counts, an index among choices, or a text, which may be one of the options of the question."""
    if type(answer) is int and 0 <= answer < len(options):
        return {"answers": (str(options[answer]),)}
    if isinstance(answer, list) and answer and all(type(count) is int for count in answer):
        return {"counts": tuple(answer)}
    if choices and type(answer) is int:
        return {"right": answer}
    if not choices and isinstance(answer, str | int) and str(answer).strip():
        return {"answers": (str(answer),)}
    expected = "an index of the choices" if choices else "a text, or a list of counts"
    raise Rejected(Fault("missing-or-mistyped-field", expected, repr(answer)[:80], field="answer"))


def _needles(raw: Mapping[str, Any], context: str, images: Sequence[str]) -> tuple[HiddenNeedle, ...]:
    """Sentences of the context, or pictures of it: named by path, by file name, or by their place in the list."""
    needles = raw["meta"].get("needles")
    if not isinstance(needles, list) or not needles:
        _refuse("no-needles", "a list of needles", repr(needles)[:80], "meta.needles")
    longest = max((len(needle) for needle in needles if isinstance(needle, str)), default=0)
    if longest > _MOST_OF_A_NEEDLE:
        _refuse("needle-too-long", f"at most {_MOST_OF_A_NEEDLE} characters", str(longest), "meta.needles")
    flat = " ".join(context.split())
    if all(isinstance(needle, str) and " ".join(needle.split()) in flat for needle in needles):
        texts = (" ".join(needle.split()) for needle in needles)
        return tuple(HiddenNeedle(id=f"needle-{n}", text=text) for n, text in enumerate(texts))
    shown = images[: context.count(MARKER)]
    found = [_picture(needle, shown) for needle in needles]
    return tuple(HiddenNeedle(id=f"needle-{n}", image=name) for n, name in enumerate(found))


def _picture(needle: object, images: Sequence[str]) -> str:
    if type(needle) is int and 0 <= needle < len(images):
        return images[needle]
    if isinstance(needle, str):
        for name in images:
            if (needle and needle in (name, PurePosixPath(name).name)) or name == PurePosixPath(str(needle)).name:
                return name
    raise Rejected(
        Fault("needle-not-told", "a sentence or a picture of the context", repr(needle)[:80], field="meta.needles")
    )


def _own_page(path: Path, offset: int) -> WebPage:
    """A row's context without its needles; nothing of a row that cannot be read."""
    raw = json_line_at(path, offset)
    row = _row(raw)
    if isinstance(raw, Fault) or isinstance(row, Fault):
        return []
    context = str(raw["context"])
    for needle in row.needles:
        if needle.text:
            context = re.sub(r"\s+".join(map(re.escape, needle.text.split())), " ", context)
    hidden = {needle.image for needle in row.needles} | set(row.shown) | set(row.choices)
    texts, names = context.split(MARKER), iter(raw["images_list"])
    parts: list[str | Image] = [texts[0]]
    for text in texts[1:]:
        parts += [Image(next(names)), text]
    return [part for part in parts if not (isinstance(part, Image) and part.path in hidden)]


def _text(raw: Mapping[str, Any], field: str) -> str:
    value = raw.get(field)
    if not isinstance(value, str) or not value.strip():
        _refuse("missing-or-mistyped-field", "a text", repr(value)[:80], field)
    return str(value)


def _names(value: object, field: str) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(name, str) and name for name in value):
        _refuse("missing-or-mistyped-field", "a list of names", repr(value)[:80], field)
    return list(value) if isinstance(value, list) else []


def _refuse(reason: str, expected: str, found: str, field: str, todo: str = "") -> NoReturn:
    raise Rejected(Fault(reason, expected, found, field=field, todo=todo))
