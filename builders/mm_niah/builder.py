"""MM-NIAH: needles of text or pictures in interleaved web pages (paper, section 3; files `NIAH/<task>-<needle>`).

A text needle is a sentence between two sentences of a passage; an image needle is a separate picture. A single needle
is put at six depths, several needles in three permutations. A counting question has an answer for each permutation,
because the order of its needles differs. An ordinal in a
question ("the second picture") is right for the place of the needle.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import mmlongbench.task as mt
from builders.mm_niah.haystack import FillerCheck, Haystack, Mode
from builders.mm_niah.ordinals import (
    MAX_PLACE,
    NamedPicture,
    all_ordinals,
    pictures_named,
    renamed,
    without_ordinal,
)
from builders.mm_niah.rows import MARKER, HaystackQuestion, HiddenNeedle, check_pictures, check_row, is_made

Ordinal = Literal["rewrite", "neutral", "source"]


def needle_place(question: str, named: NamedPicture, needle: str, choices: tuple[str, ...]) -> mt.Wording:
    """Return the wording of a question that names the needle, by the id of its unit, by an ordinal: its place among all
    pictures of the context.
    """

    def choose(units: Sequence[mt.Unit]) -> int:
        pictures = [unit.id for unit in units if isinstance(unit.body, mt.Image)]
        if (place := pictures.index(needle)) >= MAX_PLACE:
            todo = "build a shorter length, or set options.ordinal to neutral"
            bound = f"a needle among the first {MAX_PLACE:,} pictures"
            raise mt.Rejected(mt.Fault("more-pictures-than-ordinals", bound, f"place {place + 1:,}", todo=todo))
        return place

    return mt.Wording(
        all_ordinals(), choose, lambda text: ask(renamed(question, named, text), choices, has_choices=True)
    )


@dataclass(frozen=True, slots=True)
class Asked:
    """The question of a draft, and the ordinals that the question has in the source."""

    text: str
    wording: mt.Wording | None = None
    named: tuple[NamedPicture, ...] = ()
    """The ordinals in the source's question."""


def asked(row: HaystackQuestion, ordinal: Ordinal, choices: tuple[str, ...]) -> Asked:
    """Return the question of a row. An ordinal is looked for only if the question has picture options.

    Raises:
        Rejected: the ordinal must be replaced or left out, but the question has several ordinals or needles; or the
            ordinal must be left out, but no other words describe the needle.

    """
    named = pictures_named(row.question) if row.choices else ()
    if not named or ordinal == "source":
        return Asked(row.question, named=named)
    if len(named) > 1 or len(row.needles) > 1:
        expected, found = "one ordinal and one needle", f"{len(named)} ordinals and {len(row.needles)} needles"
        todo = "set options.ordinal to source to keep the question as it is"
        raise mt.Rejected(mt.Fault("several-ordinals", expected, found, field="question", todo=todo))
    if ordinal == "rewrite":
        wording = needle_place(row.question, named[0], row.needles[0].id, choices)
        return Asked(renamed(row.question, named[0], all_ordinals()[0]), wording, named)
    text = without_ordinal(row.question, named[0])
    if text is None:
        expected = "words that describe the image, such as `whose corner is missing`"
        todo = "set options.ordinal to rewrite"
        raise mt.Rejected(mt.Fault("ordinal-without-description", expected, "none", field="question", todo=todo))
    return Asked(text, named=named)


def ask(question: str, paths: Sequence[str], *, has_choices: bool) -> tuple[mt.Part, ...]:
    """Return a question with its pictures. With `has_choices`, the pictures follow the question as lettered choices.
    Without it, they replace the markers in the question.
    """
    shown = iter(paths)
    if has_choices:
        options = [part for n, path in enumerate(shown) for part in (f"\n{chr(ord('A') + n)}. ", mt.Image(path))]
        return (f"\n\nQuestion: {question}", *options, "\nAnswer:")
    return ("\n\nQuestion: ", *_with_pictures(question, shown), "\nAnswer:")


def _with_pictures(question: str, shown: Iterator[str]) -> Iterator[mt.Part]:
    first, *others = question.split(MARKER)
    yield first
    for text in others:
        yield mt.Image(next(shown))
        yield text


FOLDER = "mm-niah/"
"""The folder in which the pictures are released."""
_UNKNOWN_NEEDLE = "that cannot be compared: the record does not say which picture is the needle"


def ordinal_remarks(record: mt.Record, *, is_promised: bool) -> Iterator[mt.Remark]:
    """Yield a remark that says whether the ordinals of a question name its needles; nothing for a question without an
    ordinal.
    """
    named = pictures_named(record["question"]) if record.get("choices_image") else ()
    if named:
        needles = _needle_places(record)
        is_right = sorted({each.place for each in named}) == needles
        fault = "" if is_right else "naming another picture than the needle" if needles else _UNKNOWN_NEEDLE
        yield mt.Remark("questions with an ordinal", fault, is_promised=is_promised)


def filler_remarks(record: mt.Record, *, has_picture_needles: bool) -> Iterator[mt.Remark]:
    """Yield a remark that says whether a picture that the benchmark made, or a picture of the question, is a filler of
    the context.

    Only names are compared; the bytes of pictures are compared when a release is built.
    """
    needles, images = _needle_places(record), record.get("image_list") or []
    fillers = [path for place, path in enumerate(images, 1) if place not in needles]
    if not fillers:
        return
    beside = {*(record.get("choices_image") or ()), *(record.get("needle_image_list") or ())}
    fault = ""
    if has_picture_needles and not needles:
        fault = _UNKNOWN_NEEDLE
    elif any(is_made(path) for path in fillers):
        fault = "filled with a picture that was made for a question"
    elif not beside.isdisjoint(fillers):
        fault = "filled with a picture that is shown beside the question"
    yield mt.Remark("contexts with other pictures than needles", fault, is_promised=True)


def _needle_places(record: mt.Record) -> list[int]:
    """Return the places of the needles among the pictures, from 1. Needles are the pictures whose `has_ans` is true or,
    if there are none, the pictures whose paths are in `positive_ctxs`.
    """
    pictures = [ctx for ctx in record["ctxs"] if ctx["text"] == MARKER]
    if flagged := [place for place, ctx in enumerate(pictures, 1) if ctx.get("has_ans")]:
        return flagged
    needles = {f"{FOLDER}{positive['image']}" for positive in record.get("positive_ctxs") or () if "image" in positive}
    return [place for place, path in enumerate(record["image_list"], 1) if path in needles]


RECORD_FIELDS: Mapping[str, str] = {
    "id": "The id of the question, the same at every length and placement.",
    "question": (
        "The question as it is asked; when counting over pictures, it has one `<image>` for each picture "
        "of needle_image_list."
    ),
    "question_source": "The question of the source; only if it names pictures by ordinals, such as `the second image`.",
    "ordinal": (
        "The place, from 1, that the question names, or null if the ordinal is left out; only with question_source."
    ),
    "ordinal_source": (
        "The place, from 1, that the question of the source names; a list if it names several; only with "
        "question_source."
    ),
    "answer": (
        "A text; the index of the right choice in choices_image; or counts: one for each needle of text in "
        "the order of the prompt, or one for each picture of the context."
    ),
    "answer_total": "The sum of the counts of the needles; only when counting over pictures.",
    "answer_needles": "The counts of the needles alone, in the order of the prompt; only when counting over pictures.",
    "ctxs": (
        "The units of the context in the order of the prompt: text (`<image>` for a picture), type (text "
        "or image), len (tokens of its text), and has_answer or has_ans (whether it is or contains a "
        "needle)."
    ),
    "positive_ctxs": (
        "The needles in the order of the prompt, with the keys of ctxs; a picture also has image (its path "
        "below `mmlb_image/mm-niah/`) and nid (the needle's id)."
    ),
    "category": "The category in the public files, such as find-text or count-image.",
    "image_list": "The paths of the pictures of the context below `mmlb_image/`, in the order of the prompt.",
    "choices_image": (
        "The paths of the pictures to choose from, in the order of the letters; only with needles that are "
        "pictures, except when counting."
    ),
    "needle_image_list": (
        "The path of the right choice or, when counting, the paths of the pictures beside the question; "
        "only with needles that are pictures."
    ),
}


INSTRUCTION = (
    "You are given interleaved text and images. Please answer the question{letter} based on the given text and images. "
    "Write your answer in the following format:\nAnswer: [answer]\n\n"
)
LETTER = " with the option's letter (A, B, etc.)"
_AT_DEPTHS = mt.Placements(mt.Depth, mt.DEPTHS)
_PERMUTED = mt.Placements(mt.Permutation, (0, 1, 2))
_FILES = mt.FilePattern("NIAH/{name}_test_K{k}_dep{placements}.jsonl")
Task = Literal["retrieval", "counting", "reasoning"]
Kind = Literal["text", "image"]
CATEGORIES: dict[tuple[Task, Kind], str] = {
    ("retrieval", "text"): "find-text",
    ("retrieval", "image"): "find-image",
    ("counting", "text"): "count-text",
    ("counting", "image"): "count-image",
    ("reasoning", "text"): "infer-choose",
    ("reasoning", "image"): "visual-reasoning",
}
"""The category in the public files, by task and kind of needle."""
STALE_SOURCE = "ordinal of another picture in the source"
"""The phrase under which the lock counts questions whose ordinal is wrong even in the source's own document."""


class MMNIAHOptions(mt.Options):
    """The options that a manifest may set."""

    task: Task = "retrieval"
    """What a question asks for. `retrieval`: one needle. `counting`: a number for each needle. `reasoning`: what
    follows from the needles."""
    needle: Kind = "text"
    """Whether needles are sentences (`text`) or pictures (`image`)."""
    mode: Mode = "sentences"
    """How texts are cut into passages. `sentences`: each passage has whole sentences, and fewer than 100 words
    unless a single sentence has more. `words`: each passage has exactly 100 words, except the last one of a text."""
    least_scale: float = 0.25
    """The minimum scale of a needle picture. A question is rejected if the release shrinks the sides of this picture to
    less than this share of their length."""
    ordinal: Ordinal = "rewrite"
    """How a question is asked that names its needle by an ordinal ("the second image"). `rewrite`: the ordinal is the
    needle's place in each context. `neutral`: the ordinal is left out, and the description stays. `source`: the ordinal
    of the source stays."""


class MMNIAH(mt.Builder[HaystackQuestion]):
    """Needles among interleaved text and images."""

    row_type: ClassVar[type[mt.Row]] = HaystackQuestion
    options: MMNIAHOptions

    options_type: ClassVar[type[mt.Options]] = MMNIAHOptions
    record_fields: ClassVar[Mapping[str, str]] = RECORD_FIELDS

    @property
    def spec(self) -> mt.TaskSpec:
        """Return the declarations. The tasks of counting and of reasoning over text have several needles, which are
        permuted. The metric depends on the task: `soft_acc` for counts, `mc_acc` for choices between pictures, `sub_em`
        for short texts.
        """
        task, is_text = self.options.task, self.options.needle == "text"
        is_several = task == "counting" or (task == "reasoning" and is_text)
        metric = "soft_acc" if task == "counting" else "sub_em" if is_text else "mc_acc"
        balance = "answer" if metric == "mc_acc" else ""
        return mt.TaskSpec(
            _FILES,
            metric,
            further_metrics=("mm-niah-count",) if task == "counting" else (),
            category="NIAH",
            counted_with=f"MM-NIAH {task}",
            placements=_PERMUTED if is_several else _AT_DEPTHS,
            balance=balance,
            longest_side=1024,
            is_answer_of_context=task == "counting",
        )

    def draft(self, row: HaystackQuestion, sources: mt.Sources, draws: mt.Draws) -> mt.Draft:
        """Return a draft with the needles and the haystack. The haystack has the question's own pages first, then
        others.
        """
        check_row(row, self.options.task, self.options.needle)
        names = row.shown if self.options.task == "counting" else _shuffled(row, draws)
        beside = [sources.images[name] for name in names]
        carriers = {needle.id: sources.images[needle.image] for needle in row.needles if needle.image}
        check_pictures(beside, "choices" if row.choices else "shown")
        check_pictures(list(carriers.values()), "needles", self.options.least_scale)
        paths = tuple(picture.path for picture in beside)
        right = names.index(row.choices[row.right]) if row.choices else -1
        how = asked(row, self.options.ordinal, paths)
        asked_of = (*beside, *carriers.values())
        fillers = FillerCheck(sources.images, asked_of)
        data = {"row": row, "paths": list(paths), "right": right, "asked": how, "fillers": fillers}
        required = tuple(_unit(needle, carriers.get(needle.id)) for needle in row.needles)
        haystack = Haystack(row, sources, draws, self.options.mode, asked_of)
        parts = ask(how.text, paths, has_choices=bool(row.choices))
        question = mt.Question(row.id, parts, data, wording=how.wording)
        opening = (_instruction(bool(row.choices)),)
        take_order, closing = mt.Chain((haystack,)), mt.Closing()
        noted = (STALE_SOURCE,) if row.is_ordinal_stale else ()
        return mt.Draft(
            required, take_order, id=row.id, instruction=opening, questions=(question,), closing=closing, noted=noted
        )

    def record(self, example: mt.PackedExample) -> mt.Record:
        """Return one line of the public file.

        Raises:
            DraftError: a filler picture of the context is one that a question asks about.

        """
        row: HaystackQuestion = example.question.data["row"]
        example.question.data["fillers"].check(example.id, example.units)
        tokens = {needle.unit.id: needle.tokens.text for needle in example.needles}
        has = "has_answer" if self.options.needle == "text" else "has_ans"
        found = [needle for unit in example.units for needle in (unit, *unit.needles) if needle.id in tokens]
        images = [unit for unit in example.units if isinstance(unit.body, mt.Image)]
        return {
            "id": row.id,
            **self._question(example),
            **self._answer(example.question.data, [needle.id for needle in found], [unit.id for unit in images]),
            "ctxs": [_released(item.unit, item.count.text, has) for item in example.items],
            "positive_ctxs": [_positive(needle, tokens[needle.id], has) for needle in found],
            "category": CATEGORIES[self.options.task, self.options.needle],
            "image_list": [unit.body.path for unit in images if isinstance(unit.body, mt.Image)],
            **self._shown(example.question.data),
        }

    def prompt(self, record: mt.Record) -> mt.Prompt:
        """Return the prompt of a released line."""
        images = iter(record["image_list"])
        units = [[mt.Image(next(images)) if ctx["text"] == MARKER else ctx["text"]] for ctx in record["ctxs"]]
        choices = record.get("choices_image") or ()
        paths = choices or (MARKER in record["question"] and record.get("needle_image_list")) or ()
        parts = ask(record["question"], paths, has_choices=bool(choices))
        return mt.Prompt.of_units((_instruction(bool(choices)),), units, "\n\n", parts)

    def needles(self, record: mt.Record) -> list[mt.Part]:
        """Return the statements, or the pictures, that the question is about."""
        found = record["positive_ctxs"]
        return [mt.Image(f"{FOLDER}{each['image']}") if "image" in each else each["text"] for each in found]

    def choices(self, record: mt.Record) -> mt.Choices | None:
        """Return the pictures that a question offers to choose from; None if it asks for a text or for counts."""
        offered = record.get("choices_image")
        return mt.Choices(tuple(mt.Image(path) for path in offered), record["answer"]) if offered else None

    def cluster(self, record: mt.Record) -> str:
        """Return the picture that is a needle or contains one; if there are several such pictures, the first by name;
        empty if needles are texts.

        Rows that share this picture are resampled together, even if they have other pictures too. A needle of text
        belongs to its row alone.
        """
        images = (needle["image"] for needle in record.get("positive_ctxs") or () if needle.get("image"))
        return min(images, default="")

    def remarks(self, record: mt.Record) -> Iterator[mt.Remark]:
        """Yield up to two remarks. One says whether the ordinals of the question name its needles; this is promised if
        the option `ordinal` is `rewrite`. The other one says whether a filler picture belongs to a question.
        """
        yield from ordinal_remarks(record, is_promised=self.options.ordinal == "rewrite")
        yield from filler_remarks(record, has_picture_needles=self.options.needle == "image")

    def _question(self, example: mt.PackedExample) -> dict[str, object]:
        """Return the question as it is asked; if it names pictures by ordinals, also the source's question, and the
        place that each of the two questions names.

        A place is a number, or a list of numbers if a question names several pictures; None if the ordinal is left out.
        """
        how: Asked = example.question.data["asked"]
        if not how.named:
            return {"question": how.text}
        row: HaystackQuestion = example.question.data["row"]
        places = [each.place for each in how.named]
        source = places[0] if len(places) == 1 else places
        question, place = how.text, source if self.options.ordinal == "source" else None
        if how.wording:
            question = renamed(row.question, how.named[0], example.question.chosen)
            place = how.wording.choose(example.units) + 1
        return {
            "question": question,
            "question_source": row.question,
            "ordinal": place,
            "ordinal_source": source,
        }

    def _answer(self, data: Mapping[str, Any], needles: list[str], images: list[str]) -> dict[str, object]:
        """Return the answer; `needles` and `images` are the ids of the needles and of all pictures, in reading order.

        Like in MM-NIAH, a counting answer over pictures has one number for each picture of the context, including
        zeros; further fields have the numbers of the needles alone and their sum.
        """
        row: HaystackQuestion = data["row"]
        if self.options.task != "counting":
            return {"answer": row.answers[0] if self.options.needle == "text" else int(data["right"])}
        counts = dict(zip((needle.id for needle in row.needles), row.counts, strict=True))
        of_needles = [counts[id] for id in needles]
        if self.options.needle == "text":
            return {"answer": of_needles}
        return {
            "answer": [counts.get(id, 0) for id in images],
            "answer_total": sum(of_needles),
            "answer_needles": of_needles,
        }

    def _shown(self, data: Mapping[str, Any]) -> dict[str, list[str]]:
        """Return the pictures beside the question, under the names that public readers use."""
        if self.options.needle == "text":
            return {}
        if self.options.task == "counting":
            return {"needle_image_list": data["paths"]}
        return {"choices_image": data["paths"], "needle_image_list": [data["paths"][data["right"]]]}


def _instruction(has_choices: bool) -> str:
    return INSTRUCTION.format(letter=LETTER if has_choices else "")


def _shuffled(row: HaystackQuestion, draws: mt.Draws) -> tuple[str, ...]:
    """Return the choices in a drawn order, with the right one at a drawn position."""
    if not row.choices:
        return ()
    right = row.choices[row.right]
    others = draws.order("choices", (name for name in row.choices if name != right))
    at = draws.integer("right choice", 0, len(others))
    return (*others[:at], right, *others[at:])


def _unit(needle: HiddenNeedle, picture: mt.Picture | None) -> mt.Unit:
    if picture is None:
        return mt.Unit(needle.id, needle.text, None, "needle", between_sentences=True)
    return mt.Unit(needle.id, mt.Image(picture.path), None, "needle")


def _released(unit: mt.Unit, tokens: int, has: str) -> dict[str, object]:
    """Return a unit of the context; all units have the same keys. `has` is the name of the key that says whether
    the unit is a needle or contains one.
    """
    is_needle = unit.role == "needle" or bool(unit.needles)
    if isinstance(unit.body, mt.Image):
        return {"text": MARKER, "type": "image", "len": tokens, has: is_needle}
    return {"text": unit.body, "type": "text", "len": tokens, has: is_needle}


def _positive(needle: mt.Unit, tokens: int, has: str) -> dict[str, object]:
    if isinstance(needle.body, mt.Image):
        path = needle.body.path.removeprefix(FOLDER)
        return {"text": MARKER, "type": "image", "len": tokens, has: True, "image": path, "nid": needle.id}
    return {"text": needle.body, "type": "text", "len": tokens, has: True}
