"""The question files of Visual Haystacks: one file, or a folder of files with other numbers of pictures or needles.

A question is in each file of its set, with as many negatives as the file's name says. It is asked once: the file with
the largest number in its name counts, because it lists most negatives.
"""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

from mmlongbench.task import Fault, RawRow, RowFault, SourceError, load_json, raw_row, visible_files

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
