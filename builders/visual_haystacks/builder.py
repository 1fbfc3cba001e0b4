"""Visual Haystacks: answer Yes or No about the photographs that show an object, among others that do not (section 3).

One needle stands at six depths, several stand in three permutations (public files `NIAH/vh_*`). Distractors are the
question's own negatives and then photographs of the pool that do not show the anchor object, each in a drawn order.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import ClassVar, Literal

import mmlongbench as mm
from builders.visual_haystacks.rows import PhotographQuestion

INSTRUCTION = (
    "You are given a set of images. Please answer the question in Yes or No based on the given images. "
    "Write your answer in the following format:\nAnswer: [answer]\n\n"
)
_CLOSING = mm.Closing(last=2, window=2000)
_PAPER_IMAGES = (21.7, 44.7, 90.9, 183.4, 368.2)
"""Table 3."""
_FILES = mm.FilePattern("NIAH/{name}_test_{questions}_K{k}_dep{placements}.jsonl")


class HaystackOptions(mm.Options):
    """What a manifest may set."""

    needles: Literal["single", "several"] = "single"
    """One needle at each depth, or any number of them in permutations."""
    finish: Literal["closing", "none"] = "closing"
    """Exchange the last two photographs so that the budget is filled, or stop at the first misfit (the paper's way)."""
    context: Literal["haystack", "oracle"] = "haystack"
    """With distractors, or the needles alone."""


class VisualHaystack(mm.Builder[PhotographQuestion]):
    """Retrieval of, and reasoning over, photographs."""

    row_type: ClassVar[type[mm.Row]] = PhotographQuestion
    options: HaystackOptions

    options_type: ClassVar[type[mm.Options]] = HaystackOptions

    @property
    def spec(self) -> mm.TaskSpec:
        """A single needle stands at depths, several are permuted."""
        at_depths, permuted = mm.Placements(mm.Depth, mm.DEPTHS), mm.Placements(mm.Permutation, (0, 1, 2))
        is_single = self.options.needles == "single"
        placements = at_depths if is_single else permuted
        return mm.TaskSpec(
            _FILES,
            "binary_acc",
            category="NIAH",
            placements=placements,
            balance="answer",
            paper_images=_PAPER_IMAGES,
        )

    def draft(self, row: PhotographQuestion, sources: mm.Sources, draws: mm.Draws) -> mm.Draft:
        """The needles at their depths; distractors stand in the order in which they are taken, which is drawn."""
        _check(row, self.options)
        paths = [sources.images[name].path for name in row.needles]
        required = tuple(
            mm.Unit(name, "needle", mm.Image(path), None) for name, path in zip(row.needles, paths, strict=True)
        )
        question = mm.Question(row.id, _ask(row.question), {"row": row, "needles": paths})
        others = () if self.options.context == "oracle" else (_Distractors(row, sources.images, draws),)
        closing = _CLOSING if self.options.finish == "closing" else None
        return mm.Draft(row.id, (INSTRUCTION,), (question,), required, mm.Chain(others), "\n", closing)

    def record(self, example: mm.Example) -> mm.Record:
        """One line of the public file."""
        row: PhotographQuestion = example.question.data["row"]
        shown, needles = list(example.prompt.images), list(example.question.data["needles"])
        return {"id": row.id, "question": row.question, "answer": row.answer, "ctxs": shown, "needles": needles}

    def prompt(self, record: mm.Record) -> mm.Prompt:
        """The prompt of a released line."""
        units = [mm.Unit(path, "negative", mm.Image(path), ()) for path in record["ctxs"]]
        return mm.assemble((INSTRUCTION,), units, "\n", _ask(record["question"]))

    def facets(self, record: mm.Record) -> Mapping[str, Sequence[str]]:
        """The answer, and how many photographs it rests on."""
        needles = [str(len(record["needles"]))] if "needles" in record else []
        return {"answer": [record["answer"]], **({"needles": needles} if needles else {})}

    def needles(self, record: mm.Record) -> list[mm.Part]:
        """Return the photographs that the question is about."""
        return [mm.Image(path) for path in record["needles"]]

    def cluster(self, record: mm.Record) -> str:
        """Return the first, by name, of the photographs that the question is about; others' files do not tell them.

        One stands for all: questions that share this photograph are resampled together, also where they have others
        beside it. Questions that share only another one count as independent.
        """
        return min(record.get("needles", ()), default="")


@dataclass(frozen=True, slots=True)
class _Distractors:
    """Photographs that are no needles and lack the anchor object, each once; what cannot be opened is excluded."""

    row: PhotographQuestion
    images: mm.Images
    draws: mm.Draws

    def __call__(self) -> Iterator[mm.Unit]:
        own = dict.fromkeys(self.row.negatives)
        passed = {*own, *self.row.needles}
        others = (name for name in self._pool() if name not in passed)
        for place, name in enumerate(chain(self.draws.order("negatives", own), others)):
            try:
                yield mm.Unit(name, "negative", mm.Image(self.images[name].path), (place,))
            except mm.Rejected as refused:
                yield mm.Unit(name, "negative", "", (place,), excluded=refused.fault.reason)

    def _pool(self) -> Iterator[str]:
        pool = self.images.names if self.row.anchor else ()
        named = (pool[at] for at in self.draws.permutation("pool", len(pool)))
        return (name for name in named if self.row.anchor not in self.images.objects(name))


def _ask(question: str) -> tuple[mm.Part, ...]:
    return (f"\n\nQuestion: {question}\nAnswer:",)


def _check(row: PhotographQuestion, options: HaystackOptions) -> None:
    """Refuse a question with a needle twice, with a needle that is a negative too, or with several instead of one."""
    if twice := next((name for name in row.needles if row.needles.count(name) > 1), ""):
        raise mm.Rejected(mm.Fault("needle-twice", "needles that differ", twice, field="needles"))
    if both := next((name for name in row.needles if name in row.negatives), ""):
        raise mm.Rejected(mm.Fault("needle-among-negatives", "negatives that are no needles", both, field="negatives"))
    if options.needles == "single" and len(row.needles) != 1:
        todo = "set options.needles to several"
        raise mm.Rejected(mm.Fault("several-needles", "one needle", str(len(row.needles)), field="needles", todo=todo))
