"""Visual Haystacks (Wu et al. 2024, arXiv:2407.13766): JSON arrays of `pos_image`, `neg_image` and `conversations`.

`questions` is one file `visual_haystack_*.json`, or a folder of such files. `images` is the root
of COCO, which has `train2017/` in it, or this folder itself. `annotations` (optional) is `instances_train2017.json`.
With annotations, distractors also come from all annotated pictures without the anchor object.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar, TypeAlias

from builders.common import picture_below
from builders.visual_haystacks.coco import Annotations, Objects
from builders.visual_haystacks.rows import (
    PhotographQuestion,
    against,
    answer_of,
    asked_objects,
    pictures_in,
    question_of,
    text_in,
)
from mmlongbench.task import (
    Fault,
    RawRow,
    Reader,
    Rejected,
    Row,
    RowFault,
    SourceError,
    SourcePaths,
    load_json,
    raw_row,
    visible_files,
)

PREFIX = "coco/"
"""The prefix that names of pictures have in older files."""
_FILE = re.compile(r"visual_haystack_\w+\.json")
_LAST_NUMBER = re.compile(r"(\d{1,9})\.json")
_Key: TypeAlias = tuple[str, tuple[str, ...]]
"""What makes a question the same in two files: its text, and its needles in alphabetical order."""


def question_rows(source: Path) -> Iterator[RawRow | RowFault]:
    """Yield each question of a file or of a folder of files.

    Its id is `vh_single-<index>` or, with several needles, `vh_multi-<index>`; the index counts the questions of a file
    from 0. If there are several files, the path of the question's file stands before the index.
    """
    files = question_files(source)
    asked: dict[_Key, str] = {}
    for name, file in files.items():
        label, found = f"{name.removesuffix('.json').replace('/', '.')}-" if len(files) > 1 else "", dict[_Key, str]()
        for index, raw in enumerate(_items(file)):
            fields = raw if isinstance(raw, dict) else _no_row(raw)
            needles = fields.get("pos_image") if isinstance(fields, dict) else None
            kind = "multi" if isinstance(needles, list) and len(needles) > 1 else "single"
            id, key = f"vh_{kind}-{label}{index}", _key(fields)
            if key and key in asked:
                fields = _repeated(asked[key])
            elif key:
                found.setdefault(key, f"{name}, item {index}")
            yield raw_row(id, fields, name, f"item {index}")
        asked |= found


def question_files(source: Path) -> dict[str, Path]:
    """Return the files of questions by their path below the source, those with the largest number in their name first.

    In a folder, also in its subfolders, they are the files `visual_haystack_*.json` or, without such files, all that
    end in `.json`.

    Raises:
        SourceError: a folder has no such file.

    """
    if not source.is_dir():
        return {source.name: source}
    found = [file for file in visible_files(source) if file.suffix == ".json"]
    named = {
        file.relative_to(source).as_posix(): file
        for file in [file for file in found if _FILE.fullmatch(file.name)] or found
    }
    if not named:
        todo = "give a file of questions of Visual Haystacks, or the folder that holds it"
        raise SourceError(Fault("missing-questions", "files visual_haystack_*.json", "none", source.name, todo=todo))
    return dict(sorted(named.items(), key=lambda each: (-_size(each[0]), each[0])))


def _size(name: str) -> int:
    """Return the number at the end of a file's name; 0 for the files `oracle`."""
    found = _LAST_NUMBER.search(name)
    return int(found[1]) if found else 0


def _items(path: Path) -> list[object]:
    data = load_json(path, "a JSON array of questions")
    if not isinstance(data, list):
        todo = "give a file of questions of Visual Haystacks"
        fault = Fault("invalid-source", "a JSON array of questions", type(data).__name__, path.name, todo=todo)
        raise SourceError(fault)
    return data


def _no_row(raw: object) -> Fault:
    todo = "correct the row in the source or with errata, or take it out"
    return Fault("not-a-row", "an object", type(raw).__name__, todo=todo)


def _repeated(place: str) -> Fault:
    return Fault(
        "repeated-question",
        "a question that no file before has",
        f"the question of {place}",
        todo="nothing: each question is asked once",
        is_expected=True,
    )


def _key(raw: Mapping[str, object] | Fault) -> _Key | None:
    """Return what a question has in common with its copies in other files; None if the row cannot be read."""
    if isinstance(raw, Fault):
        return None
    needles, turns = raw.get("pos_image"), raw.get("conversations")
    first = turns[0] if isinstance(turns, list) and turns else None
    question = first.get("value") if isinstance(first, dict) else None
    if not isinstance(needles, list) or not isinstance(question, str):
        return None
    names = sorted(name.removeprefix(PREFIX) for name in needles if isinstance(name, str))
    return (" ".join(question.split()), tuple(names)) if names else None


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
