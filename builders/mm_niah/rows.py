"""The row that every reader of MM-NIAH makes for the builder; the forms of its fields, what must hold for its needles
and choices, and its web pages, which are read when needed.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path, PurePosixPath
from typing import Annotated, NoReturn, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict

import mmlongbench.task as mt
from mmlongbench.task import Fault, Image, Rejected, Row, SourceError, escape_markers

WebPage: TypeAlias = Sequence[str | Image]
WEB = "obelics"
"""The name of the folder of pictures from web pages."""
_CARTOONS = "abnormal_pic*"
_MADE = ("*paste*", _CARTOONS)
"""The names, as patterns, of folders with pictures that MM-NIAH made: page pictures with a pasted cartoon, and
cartoons."""
_MAX_LEVELS = 2
"""The folder of pictures is searched for in at most so many levels below the folder in the manifest."""


class Pages(Mapping[str, WebPage]):
    """Interleaved pages by id, in the source's order; only the functions that read them are kept in memory."""

    def __init__(self, found: Mapping[str, Callable[[], WebPage]]) -> None:
        """`found` has for each id a function that reads the page."""
        self._found = found

    def __getitem__(self, id: str) -> WebPage:
        return self._found[id]()

    def __iter__(self) -> Iterator[str]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)


def folders_of(name: str) -> tuple[str, ...]:
    """Return the folders in a picture's name."""
    return PurePosixPath(name).parts[:-1]


def is_made(name: str) -> bool:
    """Return whether a picture is in a folder of pasted page pictures or cartoons, which no haystack may show.

    >>> is_made("obelics_paste/find-image/b2.jpg"), is_made("abnormal_pic_val/kite.jpg"), is_made("obelics/paste.jpg")
    (True, True, False)
    """
    return any(fnmatch(folder.lower(), pattern) for folder in folders_of(name) for pattern in _MADE)


def is_cartoon(name: str) -> bool:
    """Return whether a picture is in a folder of cartoons."""
    return any(fnmatch(folder.lower(), _CARTOONS) for folder in folders_of(name))


def is_web(name: str) -> bool:
    """Return whether a picture is in the folder of pictures from web pages."""
    return WEB in folders_of(name)


def picture_root(folder: Path) -> Path:
    """Return the folder to which the names of pictures are relative: the folder that holds `obelics/`. It is `folder`,
    or at most two levels below it.

    The archive of the validation split unpacks to `mm_niah_dev/images/`, so a manifest may name that folder, the one
    above it, or the one that the archive was unpacked in. If no folder holds `obelics/`, the result is `folder`. A link
    to a folder of the same level does not count as a second folder.

    Raises:
        SourceError: several folders of one level have an `obelics/`.

    """
    level = [folder]
    for _ in range(_MAX_LEVELS + 1):
        found_by_place = {each.resolve(): each for each in reversed(level) if (each / WEB).is_dir()}
        roots = sorted(found_by_place.values())
        if len(roots) > 1:
            found = " and ".join(each.relative_to(folder).as_posix() for each in roots[:3])
            expected = f"one folder that holds {WEB}/"
            raise SourceError(Fault("several-picture-folders", expected, found, folder.name, todo="name one of them"))
        if roots:
            return roots[0]
        level = [below for each in level for below in _folders(each)]
    return folder


def _folders(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
    except OSError:
        return []


MARKER = "<image>"
"""The marker that stands for a picture in a question and in a context."""


def defused(text: str) -> str:
    """Return a text in which what a model reads as a command has blanks, but for the markers of pictures that are
    shown.
    """
    return MARKER.join(map(escape_markers, text.split(MARKER)))


Defused: TypeAlias = Annotated[str, AfterValidator(defused)]


class HiddenNeedle(BaseModel):
    """A needle: a sentence or a picture; exactly one of the two is set."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str
    """The id, unique within a question, such as `needle-0`."""
    text: Defused = ""
    """A sentence without a newline and without a marker."""
    image: str = ""
    """The name, in the source, of the picture that is the needle or contains it; empty if the needle is a sentence."""


class HaystackQuestion(Row):
    """One question about interleaved pages in which needles are hidden."""

    question: Defused
    """The question. When counting over pictures, it has one `<image>` marker for each picture in `shown`;
    otherwise it has none."""
    needles: tuple[HiddenNeedle, ...]
    """The needles, in the order of `counts`."""
    answers: tuple[Defused, ...] = ()
    """The accepted answers for retrieval and reasoning over text; the first one is released."""
    counts: tuple[int, ...] = ()
    """The numbers for counting, one for each needle; every other picture of a context has 0."""
    choices: tuple[str, ...] = ()
    """The picture options for retrieval and reasoning over pictures, by their names in the source."""
    right: int = -1
    """The index of the right choice in `choices`."""
    shown: tuple[str, ...] = ()
    """The pictures that are shown with the question, when counting over pictures."""
    is_ordinal_stale: bool = False
    """Whether the question's ordinal ("the second image") is wrong in the source's own document: it names another
    picture than the needle."""
    pages: tuple[str, ...] = ()
    """The ids of the question's own web pages, which are taken before all others."""


PAGE_BREAK = "</s>"
"""The break between the pages of some contexts; it is not part of a page's text."""
MAX_NEEDLE = 10_000
"""The maximum characters of a needle, which is a sentence."""
MAX_COUNT = 10**6
CORRECT = "correct the row in the source or with errata, or take it out"
"""What to do about most rows that cannot be read."""
_WHOLE = re.compile(r"[0-9]{1,9}(?:\.0{1,9})?")
Span: TypeAlias = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Fields:
    """The fields of a row of any category; needles, options and answer are read later, depending on the category."""

    id: str
    context: str
    question: str
    answer: object
    meta: Mapping[str, object]
    pictures: tuple[str, ...]
    """The pictures of the context."""
    shown: tuple[str, ...]
    """The pictures of the question."""


def read_fields(raw: Mapping[str, object]) -> Fields:
    """Return the fields of a row.

    Raises:
        Rejected: a field is missing or has another type, or there are not as many pictures as markers.

    """
    if type(raw.get("id")) is not int:
        refuse("missing-or-mistyped-field", "an integer", repr(raw.get("id")), "id")
    context, question, meta = _text(raw, "context"), " ".join(_text(raw, "question").split()), raw.get("meta")
    if not isinstance(meta, dict):
        refuse("missing-or-mistyped-field", "an object", type(meta).__name__, "meta")
    images = names_of(raw.get("images_list"), "images_list")
    markers = context.count(MARKER) + question.count(MARKER)
    if markers != len(images):
        refuse("markers-and-images", f"{markers} pictures, one a marker", str(len(images)), "images_list")
    at = _shown_at(images, question.count(MARKER))
    pictures = tuple(name for number, name in enumerate(images) if number not in at)
    shown = tuple(images[number] for number in sorted(at))
    context = context.replace(PAGE_BREAK, "\n\n")
    return Fields(f"mm-niah-{raw['id']}", context, question, raw.get("answer"), meta, pictures, shown)


def _shown_at(images: Sequence[str], count: int) -> set[int]:
    """Return the places of the question's `count` pictures in `images_list`: the pictures in a folder of cartoons, if
    there are `count` of these; otherwise the last `count` pictures. If there are more than `count` cartoons, these last
    pictures must be cartoons.

    Some of MM-NIAH's own programs use the last entry of `images_list`, others the first. So the folder is more reliable
    than the place.
    """
    cartoons = {number for number, name in enumerate(images) if is_cartoon(name)}
    last = set(range(len(images) - count, len(images)))
    if len(cartoons) <= count:
        return cartoons if len(cartoons) == count else last
    if not last <= cartoons:
        expected = f"{count} of folder abnormal_pic*, or the last ones of them"
        refuse("pattern-unknown", expected, f"{len(cartoons)} at other places", "images_list")
    return last


def find_sentences(context: str, texts: Sequence[str]) -> dict[str, list[Span]]:
    """Return the positions of each text in a context, with any white space between its words.

    A text that is part of a longer text is not found inside the longer one.

    >>> find_sentences("It is 4. So it is 4. It is 4.", ["So it is 4.", "it is 4.", "It is 4."])
    {'So it is 4.': [(9, 20)], 'it is 4.': [], 'It is 4.': [(0, 8), (21, 29)]}
    """
    taken: list[Span] = []
    found: dict[str, list[Span]] = {}
    for text in sorted(dict.fromkeys(texts), key=len, reverse=True):
        pattern = re.compile(r"\s+".join(map(re.escape, text.split())))
        spans = [each.span() for each in pattern.finditer(context)]
        found[text] = [span for span in spans if not any(span[0] < end and start < span[1] for start, end in taken)]
        taken += found[text]
    return {text: found[text] for text in texts}


def sentences_of(fields: Fields) -> list[str]:
    """Return the needles of a text row with normalised white space; refuse anything but a list of sentences."""
    needles = fields.meta.get("needles")
    if not isinstance(needles, list) or not needles:
        refuse("no-needles", "a list of needles", repr(needles)[:80], "meta.needles")
    if not all(isinstance(needle, str) and needle.strip() for needle in needles):
        refuse("missing-or-mistyped-field", "a list of sentences", repr(needles)[:80], "meta.needles")
    if (longest := max(map(len, needles))) > MAX_NEEDLE:
        refuse("needle-too-long", f"at most {MAX_NEEDLE} characters", str(longest), "meta.needles")
    return [" ".join(needle.split()) for needle in needles]


def are_in_context(fields: Fields) -> bool:
    """Return whether `meta.needles` has needles, and all of them are sentences of the context."""
    needles = fields.meta.get("needles")
    texts = needles if isinstance(needles, list) else []
    if not texts or not all(isinstance(text, str) and text.strip() and len(text) <= MAX_NEEDLE for text in texts):
        return False
    return all(find_sentences(fields.context, [" ".join(text.split()) for text in texts]).values())


def numbers_of(answer: object) -> tuple[int, ...]:
    """Return the numbers of a counting answer; refuse any other answer."""
    counts = counts_of(answer)
    if counts is None:
        expected = "a list of whole numbers, or a text that spells one"
        refuse("missing-or-mistyped-field", expected, repr(answer)[:80], "answer")
    return counts


def counts_of(answer: object) -> tuple[int, ...] | None:
    """Return the numbers of a counting answer, given as a list or as JSON text; None for anything else.

    >>> counts_of("[1, 2.0]"), counts_of(["1", "2"]), counts_of("[1.5]")
    ((1, 2), (1, 2), None)
    """
    if isinstance(answer, str):
        try:
            answer = json.loads(answer)
        except (ValueError, RecursionError):
            return None
    if not isinstance(answer, list) or not answer:
        return None
    counts = [count for each in answer if (count := _count(each)) is not None]
    return tuple(counts) if len(counts) == len(answer) else None


def _count(value: object) -> int | None:
    """Return a whole number from 0 to `MAX_COUNT`, also if it is written as text or as `2.0`; None for other values."""
    if isinstance(value, str) and _WHOLE.fullmatch(value.strip()):
        value = float(value)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if type(value) is int and 0 <= value <= MAX_COUNT else None


def _text(raw: Mapping[str, object], field: str) -> str:
    value = raw.get(field)
    if not isinstance(value, str) or not value.strip():
        refuse("missing-or-mistyped-field", "a text", repr(value)[:80], field)
    return str(value)


def names_of(value: object, field: str) -> list[str]:
    """Return a list of names; refuse any other value."""
    if not isinstance(value, list) or not all(isinstance(name, str) and name for name in value):
        refuse("missing-or-mistyped-field", "a list of names", repr(value)[:80], field)
    return list(value) if isinstance(value, list) else []


def refuse(reason: str, expected: str, found: str, field: str, todo: str = CORRECT) -> NoReturn:
    """Refuse a row; the reject names the field, what was expected and what was found."""
    raise Rejected(Fault(reason, expected, found, field=field, todo=todo))


def check_row(row: HaystackQuestion, task: str, needle: str) -> None:
    """Refuse a row that cannot be a question of this dataset.

    Raises:
        Rejected: the reject names the field, what was expected and what was found.

    """
    _needles(row, needle, may_repeat=(task, needle) == ("counting", "text"))
    if row.shown and (task, needle) != ("counting", "image"):
        todo = "the public format shows pictures in questions that count pictures, nowhere else"
        _refuse("pictures-in-the-question", "no picture", f"{len(row.shown)}", "question", todo)
    if row.question.count(MARKER) != len(row.shown):
        _refuse("markers-and-images", f"{len(row.shown)} markers", str(row.question.count(MARKER)), "question")
    if task == "counting":
        if len(row.counts) != len(row.needles):
            _refuse("counts-and-needles", f"{len(row.needles)} counts", str(len(row.counts)), "answer")
    elif needle == "text":
        if not row.answers or not all(map(mt.normalise, row.answers)):
            _refuse("empty-answer", "an answer of letters or digits", repr(row.answers), "answer")
    else:
        _choices(row)


def _needles(row: HaystackQuestion, kind: str, *, may_repeat: bool) -> None:
    """Refuse needles that cannot be hidden. Equal needles are only accepted with `may_repeat`, because counted
    statements with equal numbers are equal.
    """
    if not row.needles:
        _refuse("no-needles", "at least one needle", "none", "needles")
    bodies = [needle.text if kind == "text" else needle.image for needle in row.needles]
    if not all(bodies):
        _refuse("needles-of-another-kind", f"needles that are {kind}s", "another kind", "needles", "set options.needle")
    distinct = {mt.normalise(body) if kind == "text" else body for body in bodies}
    if len(distinct) < len(bodies) and not may_repeat:
        _refuse("needle-twice", "needles that differ", repr(bodies), "needles")
    for body in bodies if kind == "text" else ():
        if "\n" in body or MARKER in body:
            _refuse("needle-with-marker", f"one line without {MARKER}", repr(body), "needles")
        if not mt.normalise(body):
            _refuse("empty-needle", "a sentence", repr(body), "needles")


def _choices(row: HaystackQuestion) -> None:
    if not row.choices:
        todo = "text options cannot be expressed in the public format"
        _refuse("text-options", "picture choices", "none", "choices", todo)
    if len(set(row.choices)) < max(2, len(row.choices)):
        _refuse("identical-choices", "two or more choices that differ", repr(row.choices), "choices")
    if not 0 <= row.right < len(row.choices):
        _refuse("answer-out-of-range", f"an index below {len(row.choices)}", str(row.right), "answer")


def check_pictures(pictures: Sequence[mt.Picture], field: str, least_scale: float = 0) -> None:
    """Refuse pictures with the same bytes, and a picture that is shrunk so much that its needle may become invisible.

    Raises:
        Rejected: the reject names the field, what was expected and what was found.

    """
    if any(picture.source in mt.PictureBytes(e.source for e in pictures[:n]) for n, picture in enumerate(pictures)):
        _refuse(f"identical-{field}", "pictures that differ", "the same bytes twice", field)
    for picture in pictures:
        if picture.scale < least_scale:
            expected, found = f"a scale of at least {least_scale}", f"{picture.scale:.3f}"
            _refuse("needle-too-small", expected, found, picture.source.name, "raise pictures.longest_side")


def _refuse(reason: str, expected: str, found: str, field: str, todo: str = CORRECT) -> NoReturn:
    raise mt.Rejected(mt.Fault(reason, expected, found, field=field, todo=todo))
