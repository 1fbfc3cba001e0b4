"""MM-NIAH: needles of text or pictures in interleaved web pages (paper, section 3; files `NIAH/<task>-<needle>`).

A text needle is a sentence between two sentences of a passage; an image needle is a picture of its own. A single needle
stands at six depths, several in three permutations; a counting answer is permuted with its needles.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import mmlongbench as mm
from builders.mm_niah.checks import MARKER, check_pictures, check_row
from builders.mm_niah.haystack import Haystack, Mode
from builders.mm_niah.rows import HaystackQuestion, HiddenNeedle

INSTRUCTION = (
    "You are given interleaved text and images. Please answer the question{letter} based on the given text and images. "
    "Write your answer in the following format:\nAnswer: [answer]\n\n"
)
LETTER = " with the option's letter (A, B, etc.)"
FOLDER = "mm-niah/"
_AT_DEPTHS = mm.Placements(mm.Depth, mm.DEPTHS)
_PERMUTED = mm.Placements(mm.Permutation, (0, 1, 2))
_FILES = mm.FilePattern("NIAH/{name}_test_K{k}_dep{placements}.jsonl")
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
"""The vocabulary of the public files."""


class MMNIAHOptions(mm.Options):
    """What a manifest may set."""

    task: Task = "retrieval"
    needle: Kind = "text"
    mode: Mode = "sentences"
    """How texts are cut into passages: whole sentences below 100 words, or exactly 100 words."""
    least_scale: float = 0.25
    """A picture with a needle that the release shrinks below this share of its side is rejected."""


@dataclass(frozen=True, slots=True)
class MMNIAH:
    """Needles among interleaved text and images."""

    dataset: str
    options: MMNIAHOptions

    options_type: ClassVar[type[mm.Options]] = MMNIAHOptions

    @property
    def spec(self) -> mm.TaskSpec:
        """Counting, and reasoning over text, have several needles; choices and counts have metrics of their own."""
        task, is_text = self.options.task, self.options.needle == "text"
        is_several = task == "counting" or (task == "reasoning" and is_text)
        metric = "soft_acc" if task == "counting" else "sub_em" if is_text else "mc_acc"
        balance = "answer" if metric == "mc_acc" else ""
        return mm.TaskSpec(
            _FILES,
            metric,
            category="NIAH",
            counted_with=f"MM-NIAH {task}",
            placements=_PERMUTED if is_several else _AT_DEPTHS,
            balance=balance,
            longest_side=1024,
        )

    def draft(self, row: HaystackQuestion, world: mm.World, draws: mm.Draws) -> mm.Draft:
        """Needles at their depths in the question's own pages and then others."""
        check_row(row, self.options.task, self.options.needle)
        names = row.shown if self.options.task == "counting" else _shuffled(row, draws)
        asked = [world.image(name) for name in names]
        carriers = {needle.id: world.image(needle.image) for needle in row.needles if needle.image}
        check_pictures(asked, "choices" if row.choices else "shown")
        check_pictures(list(carriers.values()), "needles", self.options.least_scale)
        paths = [picture.path for picture in asked]
        right = names.index(row.choices[row.right]) if row.choices else -1
        data = {"row": row, "paths": paths, "right": right}
        required = tuple(_unit(needle, carriers.get(needle.id)) for needle in row.needles)
        haystack = Haystack(row, world, draws, self.options.mode, (*asked, *carriers.values()))
        question = mm.Question(row.id, _ask(row.question, paths, bool(row.choices)), data)
        opening = (_instruction(bool(row.choices)),)
        return mm.Draft(row.id, opening, (question,), required, mm.Chain((haystack,)), finish=mm.Closing())

    def record(self, example: mm.Example) -> mm.Record:
        """One line of the public file."""
        row: HaystackQuestion = example.question.data["row"]
        tokens = {needle.unit.id: needle.tokens.text for needle in example.needles}
        has = "has_answer" if self.options.needle == "text" else "has_ans"
        found = [needle for unit in example.units for needle in (unit, *unit.needles) if needle.id in tokens]
        return {
            "id": row.id,
            "question": row.question,
            "answer": self._answer(example, [needle.id for needle in found]),
            "ctxs": [_released(item.unit, item.count.text, has) for item in example.items],
            "positive_ctxs": [_positive(needle, tokens[needle.id], has) for needle in found],
            "category": CATEGORIES[self.options.task, self.options.needle],
            "image_list": [unit.body.path for unit in example.units if isinstance(unit.body, mm.Image)],
            **self._shown(example.question.data),
        }

    def prompt(self, record: mm.Record) -> mm.Prompt:
        """The prompt of a released line."""
        images = iter(record["image_list"])
        bodies = [mm.Image(next(images)) if ctx["text"] == MARKER else ctx["text"] for ctx in record["ctxs"]]
        units = [mm.Unit(str(number), "own", body, ()) for number, body in enumerate(bodies)]
        choices = record.get("choices_image") or ()
        paths = choices or (MARKER in record["question"] and record.get("needle_image_list")) or ()
        asked = _ask(record["question"], paths, bool(choices))
        return mm.assemble((_instruction(bool(choices)),), units, "\n\n", asked)

    def _answer(self, example: mm.Example, order: Sequence[str]) -> str | int | list[int]:
        row: HaystackQuestion = example.question.data["row"]
        if self.options.task == "counting":
            counts = dict(zip((needle.id for needle in row.needles), row.counts, strict=True))
            return [counts[id] for id in order]
        return row.answers[0] if self.options.needle == "text" else int(example.question.data["right"])

    def _shown(self, data: Mapping[str, Any]) -> dict[str, list[str]]:
        """The pictures beside the question, under the names that the public readers know."""
        if self.options.needle == "text":
            return {}
        if self.options.task == "counting":
            return {"needle_image_list": data["paths"]}
        return {"choices_image": data["paths"], "needle_image_list": [data["paths"][data["right"]]]}


def _instruction(has_choices: bool) -> str:
    return INSTRUCTION.format(letter=LETTER if has_choices else "")


def _shuffled(row: HaystackQuestion, draws: mm.Draws) -> tuple[str, ...]:
    """The choices by drawn order, the right one at a drawn position, each as likely as any other."""
    if not row.choices:
        return ()
    right = row.choices[row.right]
    others = draws.order("choices", (name for name in row.choices if name != right))
    at = draws.integer("right choice", 0, len(others))
    return (*others[:at], right, *others[at:])


def _unit(needle: HiddenNeedle, picture: mm.Picture | None) -> mm.Unit:
    if picture is None:
        return mm.Unit(needle.id, "needle", needle.text, None, between_sentences=True)
    return mm.Unit(needle.id, "needle", mm.Image(picture.path), None)


def _ask(question: str, paths: Sequence[str], has_choices: bool) -> tuple[mm.Part, ...]:
    """The question with its pictures: at its own markers, or as lettered choices after it."""
    shown = iter(paths)
    if has_choices:
        options = [part for n, path in enumerate(shown) for part in (f"\n{chr(ord('A') + n)}. ", mm.Image(path))]
        return (f"\n\nQuestion: {question}", *options, "\nAnswer:")
    return ("\n\nQuestion: ", *_with_pictures(question, shown), "\nAnswer:")


def _with_pictures(question: str, shown: Iterator[str]) -> Iterator[mm.Part]:
    first, *others = question.split(MARKER)
    yield first
    for text in others:
        yield mm.Image(next(shown))
        yield text


def _released(unit: mm.Unit, tokens: int, has: str) -> dict[str, Any]:
    """A unit of the context; whoever holds or is a needle says so, and has the same keys as the others."""
    is_needle = unit.role == "needle" or bool(unit.needles)
    if isinstance(unit.body, mm.Image):
        return {"text": MARKER, "type": "image", "len": tokens, has: is_needle}
    return {"text": unit.body, "type": "text", "len": tokens, has: is_needle}


def _positive(needle: mm.Unit, tokens: int, has: str) -> dict[str, Any]:
    if isinstance(needle.body, mm.Image):
        path = needle.body.path.removeprefix(FOLDER)
        return {"text": MARKER, "type": "image", "len": tokens, has: True, "image": path, "nid": needle.id}
    return {"text": needle.body, "type": "text", "len": tokens, has: True}
