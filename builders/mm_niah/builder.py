"""MM-NIAH: needles of text or pictures in interleaved web pages (paper, section 3; files `NIAH/<task>-<needle>`).

A text needle is a sentence between two sentences of a passage; an image needle is a separate picture. A single needle
is put at six depths, several needles in three permutations. A counting question has an answer for each permutation,
because the order of its needles differs. An ordinal in a question ("the second picture") is right for the place of the
needle.
"""

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, count
from typing import ClassVar, Literal, TypeAlias

import mmlongbench.task as mt
from builders.mm_niah.rows import HaystackQuestion, ask, check_row, is_made, pictures_named, refuse, renamed, worded

Mode: TypeAlias = Literal["sentences", "words"]
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
_AT_DEPTHS = mt.Placements(mt.Depth, mt.DEPTHS)
_PERMUTED = mt.Placements(mt.Permutation, (0, 1, 2))
KINDS: Mapping[tuple[str, str], tuple[str, str, mt.Placements]] = {
    ("retrieval", "text"): ("find-text", "sub_em", _AT_DEPTHS),
    ("retrieval", "image"): ("find-image", "mc_acc", _AT_DEPTHS),
    ("counting", "text"): ("count-text", "soft_acc", _PERMUTED),
    ("counting", "image"): ("count-image", "soft_acc", _PERMUTED),
    ("reasoning", "text"): ("infer-choose", "sub_em", _PERMUTED),
    ("reasoning", "image"): ("visual-reasoning", "mc_acc", _AT_DEPTHS),
}
"""(category in the public files, metric, placements) of the six datasets, by `options.task` and `options.needle`."""


class MMNIAHOptions(mt.Options):
    """The options that a manifest may set."""

    task: Literal["retrieval", "counting", "reasoning"] = "retrieval"
    """What a question asks for. `retrieval`: one needle. `counting`: a number for each needle. `reasoning`: what
    follows from the needles."""
    needle: Literal["text", "image"] = "text"
    """Whether needles are sentences (`text`) or pictures (`image`)."""
    mode: Mode = "sentences"
    """How texts are cut into passages. `sentences`: each passage has whole sentences, and fewer than 100 words
    unless a single sentence has more. `words`: each passage has exactly 100 words, except the last one of a text."""
    least_scale: float = 0.25
    """The minimum scale of a needle picture. A question is rejected if the release shrinks the sides of this picture to
    less than this share of their length."""
    ordinal: Literal["rewrite", "neutral", "source"] = "rewrite"
    """How a question is asked that names its needle by an ordinal ("the second image"). `rewrite`: the ordinal is the
    needle's place in each context. `neutral`: the ordinal is left out, and the description stays. `source`: the ordinal
    of the source stays."""


class MMNIAH(mt.advanced.Builder[HaystackQuestion]):
    """Needles among interleaved text and images."""

    row_type: ClassVar[type[mt.Row]] = HaystackQuestion
    options: MMNIAHOptions

    options_type: ClassVar[type[mt.Options]] = MMNIAHOptions
    record_fields: ClassVar[Mapping[str, str]] = {
        "id": "The id of the question, the same at every length and placement.",
        "question": "The question as it is asked; when counting over pictures, it has one `<image>` for each picture "
        "of needle_image_list.",
        "question_source": "The question of the source; only if it names pictures by ordinals, such as `the second "
        "image`.",
        "ordinal": "The place, from 1, that the question names, or null if the ordinal is left out; only with "
        "question_source.",
        "ordinal_source": "The place, from 1, that the question of the source names; a list if it names several; only "
        "with question_source.",
        "answer": "A text; the index of the right choice in choices_image; or counts: one for each needle of text in "
        "the order of the prompt, or one for each picture of the context.",
        "answer_total": "The sum of the counts of the needles; only when counting over pictures.",
        "answer_needles": "The counts of the needles alone, in the order of the prompt; only when counting over "
        "pictures.",
        "ctxs": "The units of the context in the order of the prompt: text (`<image>` for a picture), type (text or "
        "image), len (tokens of its text), and has_answer or has_ans (whether it is or contains a needle).",
        "positive_ctxs": "The needles in the order of the prompt, with the keys of ctxs; a picture also has image "
        "(its path below `mmlb_image/mm-niah/`) and nid (the needle's id).",
        "category": "The category in the public files, such as find-text or count-image.",
        "image_list": "The paths of the pictures of the context below `mmlb_image/`, in the order of the prompt.",
        "choices_image": "The paths of the pictures to choose from, in the order of the letters; only with needles "
        "that are pictures, except when counting.",
        "needle_image_list": "The path of the right choice or, when counting, the paths of the pictures beside the "
        "question; only with needles that are pictures.",
    }

    @property
    def spec(self) -> mt.advanced.TaskSpec:
        is_count = self.options.task == "counting"
        _, metric, placements = KINDS[self.options.task, self.options.needle]
        return mt.advanced.TaskSpec(
            mt.readers.FilePattern("NIAH/{name}_test_K{k}_dep{placements}.jsonl"),
            metric,
            further_metrics=("mm-niah-count",) if is_count else (),
            category="NIAH",
            counted_with=f"MM-NIAH {self.options.task}",
            placements=placements,
            balance="answer" if metric == "mc_acc" else "",
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
        for field, pictures in (("choices" if row.choices else "shown", beside), ("needles", [*needles.values()])):
            for index, picture in enumerate(pictures):
                if picture.source in mt.readers.PictureBytes(other.source for other in pictures[:index]):
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
        shown = {id: mt.Image(picture.path) for id, picture in needles.items()}
        required = [
            mt.Unit(needle.id, shown.get(needle.id, needle.text), between_sentences=not needle.image)
            for needle in row.needles
        ]
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
        needles = [needle for unit in units for needle in (unit, *unit.needles) if needle.id in tokens]
        pictures = {unit.id: unit.body.path for unit in units if isinstance(unit.body, mt.Image)}
        counts, paths = data["counts"], data["paths"]
        answer: Fields = {}
        beside: Fields = {}
        if self.options.task == "counting":
            of_needles = [counts[needle.id] for needle in needles]
            answer = {"answer": of_needles}
            if self.options.needle == "image":
                # as in MM-NIAH, one number for each picture of the context, including zeros
                of_pictures = [counts.get(id, 0) for id in pictures]
                answer = {"answer": of_pictures, "answer_total": sum(of_needles), "answer_needles": of_needles}
                beside = {"needle_image_list": paths}
        elif self.options.needle == "image":
            answer = {"answer": data["right"]}
            beside = {"choices_image": paths, "needle_image_list": [paths[data["right"]]]}
        else:
            answer = {"answer": data["row"].answers[0]}
        positive = self._contexts(needles, [tokens[needle.id] for needle in needles])
        for needle, context in zip(needles, positive, strict=True):
            if isinstance(needle.body, mt.Image):
                context |= {"image": needle.body.path.removeprefix(FOLDER), "nid": needle.id}
        return {
            "id": example.id,
            **self._question(example),
            **answer,
            "ctxs": self._contexts(units, [count.text for count in example.counts]),
            "positive_ctxs": positive,
            "category": KINDS[self.options.task, self.options.needle][0],
            "image_list": [*pictures.values()],
            **beside,
        }

    def _question(self, example: mt.PackedExample) -> Fields:
        row, text, named = (example.question.data[key] for key in ("row", "text", "named"))
        if not named:
            return {"question": text}
        places = [picture.place for picture in named]
        source = places[0] if len(places) == 1 else places
        place = source if self.options.ordinal == "source" else None
        if wording := example.question.wording:
            text = renamed(row.question, named[0], example.question.chosen)
            place = wording.choose(example.units) + 1
        return {"question": text, "question_source": row.question, "ordinal": place, "ordinal_source": source}

    def _contexts(self, units: Sequence[mt.Unit], tokens: Sequence[int]) -> list[Fields]:
        contexts = []
        for unit, length in zip(units, tokens, strict=True):
            shown = (mt.advanced.MARKER, "image") if isinstance(unit.body, mt.Image) else (unit.body, "text")
            has = "has_answer" if self.options.needle == "text" else "has_ans"
            is_needle = unit.role == "needle" or bool(unit.needles)
            contexts.append({"text": shown[0], "type": shown[1], "len": length, has: is_needle})
        return contexts

    def prompt(self, record: mt.Record) -> mt.Prompt:
        images = iter(record["image_list"])
        marker, choices = mt.advanced.MARKER, record.get("choices_image") or ()
        units = [[mt.Image(next(images)) if ctx["text"] == marker else ctx["text"]] for ctx in record["ctxs"]]
        paths = choices or (marker in record["question"] and record.get("needle_image_list")) or ()
        parts = ask(record["question"], paths, has_choices=bool(choices))
        return mt.Prompt.of_units((_instruction(bool(choices)),), units, "\n\n", parts)

    def needles(self, record: mt.Record) -> list[mt.Part]:
        contexts = record["positive_ctxs"]
        return [mt.Image(f"{FOLDER}{ctx['image']}") if "image" in ctx else ctx["text"] for ctx in contexts]

    def choices(self, record: mt.Record) -> mt.Choices | None:
        paths = record.get("choices_image")
        return mt.Choices(tuple(map(mt.Image, paths)), record["answer"]) if paths else None

    def cluster(self, record: mt.Record) -> str:
        """Return the picture that is a needle or contains one; if there are several, the first by name: rows that share
        only another picture count as independent. It is empty if needles are texts, which belong to their row alone.
        """
        images = (needle["image"] for needle in record.get("positive_ctxs") or () if needle.get("image"))
        return min(images, default="")

    def remarks(self, record: mt.Record) -> Iterator[mt.advanced.Remark]:
        """Yield whether the ordinals of the question name its needles; and whether a filler picture belongs to a
        question, by the names alone, since the bytes of pictures are compared when a release is built.
        """
        # Needles are the pictures whose `has_ans` is true or, if there are none, those in `positive_ctxs`.
        pictures = [ctx for ctx in record["ctxs"] if ctx["text"] == mt.advanced.MARKER]
        images = record.get("image_list") or []
        needles = [place for place, ctx in enumerate(pictures, 1) if ctx.get("has_ans")]
        if not needles:
            paths = {f"{FOLDER}{ctx['image']}" for ctx in record.get("positive_ctxs") or () if "image" in ctx}
            needles = [place for place, path in enumerate(images, 1) if path in paths]
        if named := pictures_named(record["question"]) if record.get("choices_image") else ():
            is_right = sorted({picture.place for picture in named}) == needles
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


def _instruction(has_choices: bool) -> str:
    return INSTRUCTION.format(letter=LETTER if has_choices else "")


# --- the haystack -----------------------------------------------------------------------------------------------------


def haystack(
    row: HaystackQuestion, sources: mt.Sources, draws: mt.Draws, mode: Mode, asked_about: Sequence[mt.advanced.Picture]
) -> Iterator[mt.Unit]:
    """Yield the passages and pictures of a question's own pages, then of all others in a drawn order, in the order in
    which they are taken and shown. Pictures are optional: a picture that does not fit may be left out.

    Units are excluded that would reveal a needle: passages with a needle, an answer or a counted symbol; and pictures
    that any question of the source is about, such as those in `asked_about`, or that were made for one.
    """
    needles = [needle.text for needle in row.needles if needle.text]
    holds_needle = mt.advanced.holder(needles)
    holds_either = mt.advanced.holder((*needles, *(() if row.counts else row.answers)))
    symbols = counted_symbols(row)
    own = mt.readers.PictureBytes(picture.source for picture in asked_about)
    pool = sources.web_pages.ids
    others = (page for at in draws.permutation("pages", len(pool)) if (page := pool[at]) not in row.pages)
    seen: set[mt.Part] = set()
    place = count()
    for page in chain(row.pages, others):
        role: mt.advanced.Role = "own" if page in row.pages else "padding"
        for number, part in enumerate(sources.web_pages.page(page, mode)):
            body, excluded = part, ""
            if isinstance(part, mt.Image):
                try:
                    picture = sources.images[part.path]
                    body = mt.Image(picture.path)
                    excluded = _picture_fault(part.path, picture, sources.images, own)
                except mt.Rejected as error:  # missing or broken
                    body, excluded = "", error.fault.reason
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
    return frozenset(char for char in common if unicodedata.category(char).startswith("S") and not char.isascii())


def _picture_fault(
    name: str, picture: mt.advanced.Picture, images: mt.advanced.Images, own: mt.readers.PictureBytes
) -> str:
    if picture.source in own:
        return "needle-image"
    if is_made(name):
        return "made-image"
    return "image-of-a-question" if images.is_asked(picture) else ""


def check_fillers(
    id: str, units: Sequence[mt.Unit], images: mt.advanced.Images, asked_about: Sequence[mt.advanced.Picture]
) -> None:
    """Look again at what `haystack` chose: end the build before a context is released in which a filler picture was
    made by the benchmark, or has the bytes of a picture that a question asks about.
    """
    own = mt.readers.PictureBytes(picture.source for picture in asked_about)
    for path in (unit.body.path for unit in units if isinstance(unit.body, mt.Image) and unit.role != "needle"):
        name, fault = images.origin(path) or path, ""
        if is_made(name):
            fault = "is in a folder of pictures that the benchmark made"
        elif images[name].source in own or images.is_asked(images[name]):
            fault = "has the bytes of a picture that a question asks about"
        if fault:
            fills = f"{id}: internal error: the picture {path} fills the haystack, but it {fault}"
            raise mt.advanced.DraftError(f"{fills}; no such picture may be released: please report this with the row")
