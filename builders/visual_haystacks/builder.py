"""Visual Haystacks: answer Yes or No about the photographs that show an object, among others (paper, section 3).

One needle is put at six depths, several needles in three permutations (public files `NIAH/vh_*`). Distractors are the
question's own negatives, then photographs of the pool (see `Reader.shows`) that do not show the anchor object. Both
are in a drawn order.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import ClassVar, Literal

import mmlongbench.task as mt
from builders.common import refused
from builders.visual_haystacks.readers import PhotographQuestion

INSTRUCTION = (
    "You are given a set of images. Please answer the question in Yes or No based on the given images. "
    "Write your answer in the following format:\nAnswer: [answer]\n\n"
)
_ANSWERS = ("Yes", "No")
_PAPER_IMAGES = {"single": (21.7, 44.7, 90.9, 183.4, 368.2), "several": (21.7, 44.8, 91.0, 183.4, 368.2)}
"""The images per example at 8K, 16K, 32K, 64K and 128K in Table 3 of the paper, by `options.needles`."""


class HaystackOptions(mt.Options):
    """The options that a manifest may set."""

    needles: Literal["single", "several"] = "single"
    """How many needles a question has. `single`: one needle, which is put at depths. `several`: any number of needles,
    which are permuted."""
    finish: Literal["closing", "none"] = "closing"
    """`closing`: the last two photographs are exchanged for others that fill the budget better. `none`: the context
    ends before the first photograph that does not fit, as in the paper."""
    context: Literal["haystack", "oracle"] = "haystack"
    """Whether a context has distractors, or the needles alone."""


class VisualHaystack(mt.advanced.Builder[PhotographQuestion]):
    """Questions about one or several photographs among many."""

    row_type: ClassVar[type[mt.Row]] = PhotographQuestion
    options: HaystackOptions

    options_type: ClassVar[type[mt.Options]] = HaystackOptions
    record_fields: ClassVar[Mapping[str, str]] = {
        "id": "The id of the question, the same at every length and placement.",
        "question": "The question.",
        "answer": "Yes or No.",
        "ctxs": "The paths of all photographs below `mmlb_image/`, in the order of the prompt.",
        "needles": "The paths of the photographs that the question is about, in the order of the source.",
        "needle_count": "How many photographs the question is about; only in datasets of several needles.",
    }

    @property
    def spec(self) -> mt.advanced.TaskSpec:
        at_depths, permuted = mt.Placements(mt.Depth, mt.DEPTHS), mt.Placements(mt.Permutation, (0, 1, 2))
        return mt.advanced.TaskSpec(
            mt.readers.FilePattern("NIAH/{name}_test_{questions}_K{k}_dep{placements}.jsonl"),
            "binary_acc",
            category="NIAH",
            placements=at_depths if self.options.needles == "single" else permuted,
            balance="answer",
            paper_images=_PAPER_IMAGES[self.options.needles],
        )

    def draft(self, row: PhotographQuestion, sources: mt.Sources, draws: mt.Draws) -> mt.advanced.ContextDraft:
        if twice := next((name for name in row.needles if row.needles.count(name) > 1), ""):
            raise refused("needle-twice", "needles that differ", twice, "needles", "name each needle once")
        if both := next((name for name in row.needles if name in row.negatives), ""):
            todo = "take the needle out of the negatives"
            raise refused("needle-among-negatives", "negatives that are no needles", both, "negatives", todo)
        if self.options.needles == "single" and len(row.needles) != 1:
            found, todo = str(len(row.needles)), "set options.needles to several"
            raise refused("several-needles", "one needle", found, "needles", todo)
        paths = {name: sources.images[name].path for name in row.needles}
        data = {"row": row, "needles": [*paths.values()]}
        has_distractors = self.options.context == "haystack"
        return mt.advanced.ContextDraft(
            tuple(mt.Unit(name, mt.Image(path), None, "needle") for name, path in paths.items()),
            mt.Chain((lambda: _distractors(row, sources.images, draws),) if has_distractors else ()),
            id=row.id,
            instruction=(INSTRUCTION,),
            questions=(mt.advanced.Question(row.id, _ask(row.question), data),),
            separator="\n",
            closing=mt.Closing(last=2, window=2000) if self.options.finish == "closing" else None,
        )

    def record(self, example: mt.PackedExample) -> mt.Record:
        row: PhotographQuestion = example.question.data["row"]
        shown, needles = list(example.prompt.images), list(example.question.data["needles"])
        record = {"id": row.id, "question": row.question, "answer": row.answer, "ctxs": shown, "needles": needles}
        return record | ({"needle_count": len(needles)} if self.options.needles == "several" else {})

    def prompt(self, record: mt.Record) -> mt.Prompt:
        units = [mt.Unit(path, mt.Image(path), (), "negative") for path in record["ctxs"]]
        return mt.advanced.assemble((INSTRUCTION,), units, "\n", _ask(record["question"]))

    def facets(self, record: mt.Record) -> Mapping[str, Sequence[str]]:
        """Return the answer, and the number of photographs that it depends on."""
        count = {"needles": [str(len(record["needles"]))]} if "needles" in record else {}
        return {"answer": [record["answer"]], **count}

    def choices(self, record: mt.Record) -> mt.Choices | None:
        """Return yes and no; None for an answer of a file that others made which is neither."""
        return mt.Choices(_ANSWERS, _ANSWERS.index(record["answer"])) if record["answer"] in _ANSWERS else None

    def needles(self, record: mt.Record) -> list[mt.Part]:
        return [mt.Image(path) for path in record["needles"]]

    def cluster(self, record: mt.Record) -> str:
        """Return the photograph that the question is about; if there are several, the first by name: questions that
        share only another photograph count as independent. Files that others made do not name it.
        """
        return min(record.get("needles", ()), default="")


def _distractors(row: PhotographQuestion, images: mt.advanced.Images, draws: mt.Draws) -> Iterator[mt.Unit]:
    own = dict.fromkeys(row.negatives)
    pool = images.names if row.anchor else ()
    drawn = (pool[at] for at in draws.permutation("pool", len(pool)))
    others = (name for name in drawn if row.anchor not in images.objects(name))
    passed = {*own, *row.needles}
    names = chain(draws.order("negatives", own), (name for name in others if name not in passed))
    for place, name in enumerate(names):
        try:
            yield mt.Unit(name, mt.Image(images[name].path), (place,), "negative")
        except mt.Rejected as error:
            yield mt.Unit(name, "", (place,), "negative", excluded=error.fault.reason)


def _ask(question: str) -> tuple[mt.Part, ...]:
    return (f"\n\nQuestion: {question}\nAnswer:",)
