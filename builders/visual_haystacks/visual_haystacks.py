"""Visual Haystacks (Wu et al. 2024, arXiv:2407.13766): JSON arrays of `pos_image`, `neg_image` and `conversations`.

`questions` is one file `visual_haystack_*.json`, or a folder of such files (see `question_files`). `images` is the root
of COCO, which has `train2017/` in it, or this folder itself. `annotations` (optional) is `instances_train2017.json`.
With annotations, distractors also come from all annotated pictures without the anchor object.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar

from builders.common.pictures import picture_below
from builders.visual_haystacks.coco import Annotations, Objects
from builders.visual_haystacks.fields import (
    against,
    answer_of,
    asked_objects,
    pictures_in,
    question_of,
    text_in,
)
from builders.visual_haystacks.question_files import PREFIX, question_rows
from builders.visual_haystacks.rows import PhotographQuestion
from mmlongbench.task import (
    Fault,
    RawRow,
    Reader,
    Rejected,
    Row,
    RowFault,
    SourcePaths,
)


class VisualHaystacks(Reader[PhotographQuestion]):
    """Visual Haystacks: questions about photographs of COCO, each with one needle or several."""

    row_type: ClassVar[type[Row]] = PhotographQuestion
    sources: ClassVar[tuple[str, ...]] = ("questions", "images")
    optional_sources: ClassVar[tuple[str, ...]] = ("annotations",)
    source_forms: ClassVar[Mapping[str, str]] = {
        "questions": (
            "A JSON array such as `visual_haystack_*.json`, or a folder of such files, also in subfolders; an item has "
            "pos_image, neg_image and conversations. A question that is in several files is asked once, with the "
            "negatives of the file with the largest number in its name."
        ),
        "images": "The root of COCO, with `train2017/` in it, or the folder `train2017` itself.",
        "annotations": (
            "COCO's instance annotations such as `instances_train2017.json`, with images, annotations and "
            "categories. With them, distractors also come from all annotated pictures without the anchor "
            "object."
        ),
    }
    image_folder: ClassVar[str] = "vh"

    def __init__(self) -> None:
        """Start without annotations."""
        self._annotations = Annotations()

    def raw_rows(self, sources: SourcePaths) -> Iterator[RawRow | RowFault]:
        """Yield each question; its id is `vh_single-<index>` or, with several needles, `vh_multi-<index>`, from 0. If
        there are several files, the path of the file stands before the index.
        """
        self._annotations.read(sources)
        yield from question_rows(sources["questions"])

    def row(self, raw: RawRow, sources: SourcePaths) -> PhotographQuestion:
        """Return one question cleaned, and checked against the annotations; raises Rejected."""
        return _row(raw.id, raw.fields, self._annotations.of(sources))

    def image(self, sources: SourcePaths, name: str) -> Path | None:
        """Return a photograph; None for a name that leads out of the folder."""
        return picture_below(sources["images"], name)

    def shows(self, sources: SourcePaths) -> Mapping[str, frozenset[str]]:
        """Return the annotated photographs with the objects that each shows; empty without annotations."""
        objects = self._annotations.of(sources)
        return objects.shown if objects else {}


def _row(id: str, raw: Mapping[str, object], objects: Objects | None) -> PhotographQuestion:
    if "image" in raw and "pos_image" not in raw:
        expected, todo = "pos_image and neg_image", "give the files of the hub, which tell needles from other pictures"
        raise Rejected(Fault("joint-picture-list", expected, "one list `image`", field="image", todo=todo))
    asked, said = _turns(raw.get("conversations"))
    question = question_of(asked, "conversations[0].value")
    return against(
        objects,
        PhotographQuestion(
            id=id,
            question=question,
            answer=answer_of(said, "conversations[1].value"),
            needles=pictures_in(raw, "pos_image", least=1, prefix=PREFIX),
            negatives=pictures_in(raw, "neg_image", prefix=PREFIX),
            anchor=asked_objects(question)[0],
        ),
    )


def _turns(value: object) -> tuple[str, str]:
    """Return the question and the answer of a conversation."""
    if not isinstance(value, list) or len(value) < 2 or not all(isinstance(turn, dict) for turn in value):
        expected = "a question and an answer, each an object with `value`"
        raise Rejected(
            Fault(
                "missing-or-mistyped-field",
                expected,
                repr(value)[:200],
                field="conversations",
                todo="correct the field in the source or with errata",
            )
        )
    asked, said = (f"conversations[{number}].value" for number in range(2))
    return text_in({asked: value[0].get("value")}, asked), text_in({said: value[1].get("value")}, said)
