"""MM-NIAH: needles of text or pictures in interleaved web pages (paper, section 3; files `NIAH/<task>-<needle>`).

A text needle is a sentence between two sentences of a passage; an image needle is a separate picture. A single needle
is put at six depths, several needles in three permutations. A counting question has an answer for each permutation,
because the order of its needles differs. An ordinal in a question ("the second picture") is right for the place of the
needle.
"""

import unicodedata
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, count
from typing import Any, ClassVar, Literal, TypeAlias

import mmlongbench.task as mt
from builders.mm_niah.rows import (
    MAX_PLACE,
    HaystackQuestion,
    NamedPicture,
    all_ordinals,
    check_row,
    is_made,
    pictures_named,
    refuse,
    renamed,
    without_ordinal,
)

Task: TypeAlias = Literal["retrieval", "counting", "reasoning"]
Needle: TypeAlias = Literal["text", "image"]
Mode: TypeAlias = Literal["sentences", "words"]
Ordinal: TypeAlias = Literal["rewrite", "neutral", "source"]
Fields: TypeAlias = dict[str, object]

INSTRUCTION = (
    "You are given interleaved text and images. Please answer the question{letter} based on the given text and images. "
    "Write your answer in the following format:\nAnswer: [answer]\n\n"
)
LETTER = " with the option's letter (A, B, etc.)"
FOLDER = "mm-niah/"
"""The folder in which the pictures are released."""
STALE_SOURCE = "ordinal of another picture in the source"
"""The phrase under which the lock counts questions whose ordinal is wrong even in the source's own document."""
_UNKNOWN_NEEDLE = "that cannot be compared: the record does not say which picture is the needle"


# --- the six datasets -------------------------------------------------------------------------------------------------
# An answer takes the data of the question and the ids of the needles and of all pictures, in reading order. It returns
# the fields of the answer, and those of the pictures beside the question, under the names that public readers use.


def _text(data: Mapping[str, Any], needles: Sequence[str], pictures: Sequence[str]) -> tuple[Fields, Fields]:
    return {"answer": data["row"].answers[0]}, {}


def _choice(data: Mapping[str, Any], needles: Sequence[str], pictures: Sequence[str]) -> tuple[Fields, Fields]:
    paths, right = data["paths"], data["right"]
    return {"answer": right}, {"choices_image": paths, "needle_image_list": [paths[right]]}


def _counts(data: Mapping[str, Any], needles: Sequence[str], pictures: Sequence[str]) -> tuple[Fields, Fields]:
    return {"answer": [data["counts"][id] for id in needles]}, {}


def _picture_counts(data: Mapping[str, Any], needles: Sequence[str], pictures: Sequence[str]) -> tuple[Fields, Fields]:
    """Like in MM-NIAH, the answer has one number for each picture of the context, including zeros."""
    counts = data["counts"]
    of_needles = [counts[id] for id in needles]
    answer = [counts.get(id, 0) for id in pictures]
    answers = {"answer": answer, "answer_total": sum(of_needles), "answer_needles": of_needles}
    return answers, {"needle_image_list": data["paths"]}


@dataclass(frozen=True, slots=True)
class Kind:
    """What one of the six datasets asks for."""

    category: str
    """The category in the public files."""
    metric: str
    placements: mt.Placements
    answer: Callable[[Mapping[str, Any], Sequence[str], Sequence[str]], tuple[Fields, Fields]]


_AT_DEPTHS = mt.Placements(mt.Depth, mt.DEPTHS)
_PERMUTED = mt.Placements(mt.Permutation, (0, 1, 2))
KINDS: Mapping[tuple[Task, Needle], Kind] = {
    ("retrieval", "text"): Kind("find-text", "sub_em", _AT_DEPTHS, _text),
    ("retrieval", "image"): Kind("find-image", "mc_acc", _AT_DEPTHS, _choice),
    ("counting", "text"): Kind("count-text", "soft_acc", _PERMUTED, _counts),
    ("counting", "image"): Kind("count-image", "soft_acc", _PERMUTED, _picture_counts),
    ("reasoning", "text"): Kind("infer-choose", "sub_em", _PERMUTED, _text),
    ("reasoning", "image"): Kind("visual-reasoning", "mc_acc", _AT_DEPTHS, _choice),
}


class MMNIAHOptions(mt.Options):
    """The options that a manifest may set."""

    task: Task = "retrieval"
    """What a question asks for. `retrieval`: one needle. `counting`: a number for each needle. `reasoning`: what
    follows from the needles."""
    needle: Needle = "text"
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


RECORD_FIELDS: Mapping[str, str] = {
    "id": "The id of the question, the same at every length and placement.",
    "question": "The question as it is asked; when counting over pictures, it has one `<image>` for each picture of "
    "needle_image_list.",
    "question_source": "The question of the source; only if it names pictures by ordinals, such as `the second image`.",
    "ordinal": "The place, from 1, that the question names, or null if the ordinal is left out; only with "
    "question_source.",
    "ordinal_source": "The place, from 1, that the question of the source names; a list if it names several; only "
    "with question_source.",
    "answer": "A text; the index of the right choice in choices_image; or counts: one for each needle of text in the "
    "order of the prompt, or one for each picture of the context.",
    "answer_total": "The sum of the counts of the needles; only when counting over pictures.",
    "answer_needles": "The counts of the needles alone, in the order of the prompt; only when counting over pictures.",
    "ctxs": "The units of the context in the order of the prompt: text (`<image>` for a picture), type (text or "
    "image), len (tokens of its text), and has_answer or has_ans (whether it is or contains a needle).",
    "positive_ctxs": "The needles in the order of the prompt, with the keys of ctxs; a picture also has image (its "
    "path below `mmlb_image/mm-niah/`) and nid (the needle's id).",
    "category": "The category in the public files, such as find-text or count-image.",
    "image_list": "The paths of the pictures of the context below `mmlb_image/`, in the order of the prompt.",
    "choices_image": "The paths of the pictures to choose from, in the order of the letters; only with needles that "
    "are pictures, except when counting.",
    "needle_image_list": "The path of the right choice or, when counting, the paths of the pictures beside the "
    "question; only with needles that are pictures.",
}


class MMNIAH(mt.advanced.Builder[HaystackQuestion]):
    """Needles among interleaved text and images."""

    row_type: ClassVar[type[mt.Row]] = HaystackQuestion
    options: MMNIAHOptions

    options_type: ClassVar[type[mt.Options]] = MMNIAHOptions
    record_fields: ClassVar[Mapping[str, str]] = RECORD_FIELDS

    @property
    def kind(self) -> Kind:
        return KINDS[self.options.task, self.options.needle]

    @property
    def spec(self) -> mt.advanced.TaskSpec:
        is_count = self.options.task == "counting"
        return mt.advanced.TaskSpec(
            mt.readers.FilePattern("NIAH/{name}_test_K{k}_dep{placements}.jsonl"),
            self.kind.metric,
            further_metrics=("mm-niah-count",) if is_count else (),
            category="NIAH",
            counted_with=f"MM-NIAH {self.options.task}",
            placements=self.kind.placements,
            balance="answer" if self.kind.metric == "mc_acc" else "",
            longest_side=1024,
            is_answer_of_context=is_count,
        )

    def draft(self, row: HaystackQuestion, sources: mt.Sources, draws: mt.Draws) -> mt.advanced.ContextDraft:
        check_row(row, self.options.task, self.options.needle)
        names, right = row.shown, -1
        if row.choices:
            others = draws.order("choices", (name for name in row.choices if name != row.choices[row.right]))
            right = draws.integer("right choice", 0, len(others))
            names = (*others[:right], row.choices[row.right], *others[right:])
        beside = [sources.images[name] for name in names]
        needles = {needle.id: sources.images[needle.image] for needle in row.needles if needle.image}
        for field, found in (("choices" if row.choices else "shown", beside), ("needles", [*needles.values()])):
            if any(
                picture.source in mt.readers.PictureBytes(e.source for e in found[:n])
                for n, picture in enumerate(found)
            ):
                refuse(f"identical-{field}", "pictures that differ", "the same bytes twice", field)
        for picture in needles.values():
            if picture.scale < self.options.least_scale:  # so small that what is asked about may be invisible
                expected, name = f"a scale of at least {self.options.least_scale}", picture.source.name
                refuse("needle-too-small", expected, f"{picture.scale:.3f}", name, "raise pictures.longest_side")
        paths = [picture.path for picture in beside]
        named = pictures_named(row.question) if row.choices else ()
        text, wording = worded(row, named, self.options.ordinal, paths)
        asked_about = (*beside, *needles.values())
        counts = dict(zip((needle.id for needle in row.needles), row.counts, strict=False))
        data = {"row": row, "text": text, "named": named, "paths": paths, "right": right, "counts": counts}
        data |= {"images": sources.images, "asked_about": asked_about}
        question = mt.advanced.Question(row.id, ask(text, paths, has_choices=bool(row.choices)), data, wording=wording)
        required = (
            mt.Unit(needle.id, mt.Image(needles[needle.id].path))
            if needle.image
            else mt.Unit(needle.id, needle.text, between_sentences=True)
            for needle in row.needles
        )
        return mt.advanced.ContextDraft(
            tuple(required),
            mt.Chain((partial(haystack, row, sources, draws, self.options.mode, asked_about),)),
            id=row.id,
            instruction=(_instruction(bool(row.choices)),),
            questions=(question,),
            closing=mt.Closing(),
            noted=(STALE_SOURCE,) if row.is_ordinal_stale else (),
        )

    def record(self, example: mt.PackedExample) -> mt.Record:
        data, units = example.question.data, example.units
        check_fillers(example.id, units, data["images"], data["asked_about"])
        tokens = {needle.unit.id: needle.tokens.text for needle in example.needles}
        hosts = (unit for unit in units if unit.needles or unit.id in tokens)
        needles = [needle for unit in hosts for needle in (unit, *unit.needles) if needle.id in tokens]
        pictures = [(unit.id, unit.body.path) for unit in units if isinstance(unit.body, mt.Image)]
        alone = [tokens[needle.id] for needle in needles]
        answer, beside = self.kind.answer(data, [needle.id for needle in needles], [id for id, _ in pictures])
        return {
            "id": example.id,
            **self._question(example),
            **answer,
            "ctxs": self._contexts(units, [count.text for count in example.counts]),
            "positive_ctxs": [
                {**context, **_picture_of(needle)}
                for needle, context in zip(needles, self._contexts(needles, alone), strict=True)
            ],
            "category": self.kind.category,
            "image_list": [path for _, path in pictures],
            **beside,
        }

    def _question(self, example: mt.PackedExample) -> Fields:
        """Return the question as it is asked; if it names pictures by ordinals, also the source's question, and the
        place that each of the two questions names.

        A place is a number, or a list of numbers if a question names several pictures; None if the ordinal is left out.
        """
        row, text, named = (example.question.data[key] for key in ("row", "text", "named"))
        if not named:
            return {"question": text}
        places = [each.place for each in named]
        source = places[0] if len(places) == 1 else places
        place = source if self.options.ordinal == "source" else None
        if wording := example.question.wording:
            text = renamed(row.question, named[0], example.question.chosen)
            place = wording.choose(example.units) + 1
        return {"question": text, "question_source": row.question, "ordinal": place, "ordinal_source": source}

    def _contexts(self, units: Sequence[mt.Unit], tokens: Sequence[int]) -> list[Fields]:
        """Return units of the context; all have the same keys, of which the last one says whether the unit is a needle
        or contains one.
        """
        has, image = "has_answer" if self.options.needle == "text" else "has_ans", mt.Image
        return [
            {"text": mt.advanced.MARKER, "type": "image", "len": length, has: unit.role == "needle"}
            if isinstance(unit.body, image)
            else {"text": unit.body, "type": "text", "len": length, has: unit.role == "needle" or bool(unit.needles)}
            for unit, length in zip(units, tokens, strict=True)
        ]

    def prompt(self, record: mt.Record) -> mt.Prompt:
        images = iter(record["image_list"])
        units = [
            [mt.Image(next(images)) if ctx["text"] == mt.advanced.MARKER else ctx["text"]] for ctx in record["ctxs"]
        ]
        choices = record.get("choices_image") or ()
        paths = choices or (mt.advanced.MARKER in record["question"] and record.get("needle_image_list")) or ()
        parts = ask(record["question"], paths, has_choices=bool(choices))
        return mt.Prompt.of_units((_instruction(bool(choices)),), units, "\n\n", parts)

    def needles(self, record: mt.Record) -> list[mt.Part]:
        found = record["positive_ctxs"]
        return [mt.Image(f"{FOLDER}{each['image']}") if "image" in each else each["text"] for each in found]

    def choices(self, record: mt.Record) -> mt.Choices | None:
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

    def remarks(self, record: mt.Record) -> Iterator[mt.advanced.Remark]:
        """Yield up to two remarks. One says whether the ordinals of the question name its needles; this is promised if
        the option `ordinal` is `rewrite`. The other one says whether a filler picture belongs to a question, by the
        names alone; the bytes of pictures are compared when a release is built.
        """
        # Needles are the pictures whose `has_ans` is true or, if there are none, those in `positive_ctxs`.
        pictures, images = (
            [ctx for ctx in record["ctxs"] if ctx["text"] == mt.advanced.MARKER],
            record.get("image_list") or [],
        )
        needles = [place for place, ctx in enumerate(pictures, 1) if ctx.get("has_ans")]
        if not needles:
            paths = {f"{FOLDER}{each['image']}" for each in record.get("positive_ctxs") or () if "image" in each}
            needles = [place for place, path in enumerate(images, 1) if path in paths]
        if named := pictures_named(record["question"]) if record.get("choices_image") else ():
            is_right = sorted({each.place for each in named}) == needles
            fault = "" if is_right else "naming another picture than the needle" if needles else _UNKNOWN_NEEDLE
            yield mt.advanced.Remark("questions with an ordinal", fault, is_promised=self.options.ordinal == "rewrite")
        if not (fillers := [path for place, path in enumerate(images, 1) if place not in needles]):
            return
        fault, beside = "", {*(record.get("choices_image") or ()), *(record.get("needle_image_list") or ())}
        if self.options.needle == "image" and not needles:
            fault = _UNKNOWN_NEEDLE
        elif any(map(is_made, fillers)):
            fault = "filled with a picture that was made for a question"
        elif not beside.isdisjoint(fillers):
            fault = "filled with a picture that is shown beside the question"
        yield mt.advanced.Remark("contexts with other pictures than needles", fault, is_promised=True)


# --- the question -----------------------------------------------------------------------------------------------------


def worded(
    row: HaystackQuestion, named: Sequence[NamedPicture], ordinal: Ordinal, choices: Sequence[str]
) -> tuple[str, mt.Wording | None]:
    """Return the question of a row that names pictures by ordinals; and, if its ordinal is rewritten, its wording: the
    ordinals of all places, of which one is the place of the needle among all pictures of the context.

    Raises:
        Rejected: the ordinal must be replaced or left out, but the question has several ordinals or needles; or the
            ordinal must be left out, but no other words describe the needle.

    """
    if not named or ordinal == "source":
        return row.question, None
    if len(named) > 1 or len(row.needles) > 1:
        expected, found = "one ordinal and one needle", f"{len(named)} ordinals and {len(row.needles)} needles"
        todo = "set options.ordinal to source to keep the question as it is"
        refuse("several-ordinals", expected, found, "question", todo)
    if ordinal == "neutral":
        if (text := without_ordinal(row.question, named[0])) is None:
            expected = "words that describe the image, such as `whose corner is missing`"
            refuse("ordinal-without-description", expected, "none", "question", "set options.ordinal to rewrite")
        return text, None

    def choose(units: Sequence[mt.Unit]) -> int:
        pictures = [unit.id for unit in units if isinstance(unit.body, mt.Image)]
        if (place := pictures.index(row.needles[0].id)) >= MAX_PLACE:
            todo = "build a shorter length, or set options.ordinal to neutral"
            bound = f"a needle among the first {MAX_PLACE:,} pictures"
            refuse("more-pictures-than-ordinals", bound, f"place {place + 1:,}", "", todo)
        return place

    def parts(words: str) -> tuple[mt.Part, ...]:
        return ask(renamed(row.question, named[0], words), choices, has_choices=True)

    return renamed(row.question, named[0], all_ordinals()[0]), mt.Wording(all_ordinals(), choose, parts)


def ask(question: str, paths: Sequence[str], *, has_choices: bool) -> tuple[mt.Part, ...]:
    """Return a question with its pictures. With `has_choices`, the pictures follow the question as lettered choices.
    Without it, they replace the markers in the question.
    """
    if has_choices:
        options = [part for n, path in enumerate(paths) for part in (f"\n{chr(ord('A') + n)}. ", mt.Image(path))]
        return (f"\n\nQuestion: {question}", *options, "\nAnswer:")
    first, *others = question.split(mt.advanced.MARKER)
    shown = zip(paths[: len(others)], others, strict=True)
    return ("\n\nQuestion: ", first, *(part for path, text in shown for part in (mt.Image(path), text)), "\nAnswer:")


def _picture_of(needle: mt.Unit) -> Fields:
    is_image = isinstance(needle.body, mt.Image)
    return {"image": needle.images[0].removeprefix(FOLDER), "nid": needle.id} if is_image else {}


def _instruction(has_choices: bool) -> str:
    return INSTRUCTION.format(letter=LETTER if has_choices else "")


# --- the haystack -----------------------------------------------------------------------------------------------------


def haystack(
    row: HaystackQuestion, sources: mt.Sources, draws: mt.Draws, mode: Mode, asked_about: Sequence[mt.advanced.Picture]
) -> Iterator[mt.Unit]:
    """Yield the passages and pictures of a question's own pages, then of all others in a drawn order, in the order in
    which they are taken and shown. Pictures are optional: a picture that does not fit may be left out.

    Units are excluded that would reveal a needle: passages with a needle, an answer or a counted symbol; and pictures
    that any question of the source is about, or that were made for one. `asked_about` has the needles, choices and
    shown pictures of this question.
    """
    needles = [needle.text for needle in row.needles if needle.text]
    holds_needle = mt.advanced.holder(needles)
    holds_either = mt.advanced.holder((*needles, *(() if row.counts else row.answers)))
    symbols = counted_symbols(row)
    paths = {picture.path for picture in asked_about}
    own_bytes = mt.readers.PictureBytes(picture.source for picture in asked_about)
    pool, own = sources.web_pages.ids, frozenset(row.pages)
    others = (page for at in draws.permutation("pages", len(pool)) if (page := pool[at]) not in own)
    seen: set[mt.Part] = set()
    place = count()
    for page in chain(row.pages, others):
        role: mt.advanced.Role = "own" if page in own else "padding"
        for number, part in enumerate(sources.web_pages.page(page, mode)):
            body, excluded = part, ""
            if isinstance(part, mt.Image):
                try:
                    picture = sources.images[part.path]
                    body = mt.Image(picture.path)
                    excluded = _picture_fault(part.path, picture, sources.images, paths, own_bytes)
                except mt.Rejected as refused:  # missing or broken
                    body, excluded = "", refused.fault.reason
            elif holds_either(part):
                excluded = "holds-needle" if holds_needle(part) else "holds-answer"
            elif symbols and not symbols.isdisjoint(part):
                excluded = "holds-symbol"
            excluded = excluded or ("repeated" if body in seen else "")
            seen.add(body)
            is_optional = isinstance(part, mt.Image)
            yield mt.Unit(f"{page}#{number}", body, (next(place),), role, is_optional=is_optional, excluded=excluded)


def counted_symbols(row: HaystackQuestion) -> frozenset[str]:
    """Return the symbols that a question counts in statements, such as ★: they are in the question and in every needle.

    Statements of other questions have the same symbol, so no passage with it may be in the haystack.
    """
    texts = [row.question, *(needle.text for needle in row.needles)] if row.counts else []
    common = set.intersection(*map(set, texts)) if texts else set()
    return frozenset(each for each in common if unicodedata.category(each).startswith("S") and not each.isascii())


def _picture_fault(
    name: str,
    picture: mt.advanced.Picture,
    images: mt.advanced.Images,
    paths: Container[str],
    own: mt.readers.PictureBytes,
) -> str:
    """Return why a picture may not be in the haystack; empty if it may."""
    if picture.path in paths or picture.source in own:
        return "needle-image"
    if is_made(name):
        return "made-image"
    return "image-of-a-question" if images.is_asked(picture) else ""


def check_fillers(
    id: str, units: Sequence[mt.Unit], images: mt.advanced.Images, asked_about: Sequence[mt.advanced.Picture]
) -> None:
    """Refuse to release a context in which a filler picture was made by the benchmark, or has the bytes of a picture
    that a question asks about. It looks again at what `haystack` chose.

    Raises:
        DraftError: there is such a picture. The haystack leaves it out, so this is an error of the engine, and the
            build ends.

    """
    own = mt.readers.PictureBytes(picture.source for picture in asked_about)
    for path in (unit.body.path for unit in units if isinstance(unit.body, mt.Image) and unit.role != "needle"):
        name = images.origin(path) or path
        fault = ""
        if is_made(name):
            fault = "is in a folder of pictures that the benchmark made"
        elif images[name].source in own or images.is_asked(images[name]):
            fault = "has the bytes of a picture that a question asks about"
        if fault:
            raise mt.advanced.DraftError(
                f"{id}: internal error: the picture {path} fills the haystack, but it {fault}; no such "
                "picture may be released: please report this with the row"
            )
