"""Code that several task families share: checks of raw fields, pages as units, files of pictures and of splits."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

import mmlongbench.task as mt
from mmlongbench.task import Fault, Rejected
from mmlongbench.task.readers import SourceError, file_inside, json_lines, table_rows, visible_files

if TYPE_CHECKING:
    from pyarrow.parquet import ParquetFile

_SURROGATE = re.compile(r"[\ud800-\udfff]")


def is_unicode(text: str) -> bool:
    """Return whether a text can be encoded in UTF-8; file names and JSON may have half a surrogate pair."""
    return not _SURROGATE.search(text)


CORRECT = "correct the field in the source or with errata"


def refused(reason: str, expected: str, found: str, field: str, todo: str = CORRECT) -> Rejected:
    """Return the error of a row that is refused for one of its fields."""
    return Rejected(Fault(reason, expected, found, field=field, todo=todo))


def source_error(reason: str, expected: str, found: str, file: str, todo: str, field: str = "") -> SourceError:
    """Return the error of a source that cannot be read."""
    return SourceError(Fault(reason, expected, found, file, field=field, todo=todo))


def not_unicode(text: str, field: str) -> Fault | None:
    """Return the fault of a field whose text cannot be encoded; None if the text can be encoded."""
    if is_unicode(text):
        return None
    todo = "write the text in valid Unicode"
    return Fault("invalid-unicode", "valid Unicode", "a lone surrogate", field=field, todo=todo)


def mistyped(raw: Mapping[str, object], field: str, expected: str, most: int = 80) -> Fault:
    """Return the fault of a field that is missing or mistyped. It shows at most `most` characters of the value."""
    found = repr(raw[field])[:most] if field in raw else "nothing"
    return Fault("missing-or-mistyped-field", expected, found, field=field, todo=CORRECT)


def not_text(raw: Mapping[str, object], field: str, most: int = 80) -> Fault | None:
    """Return the fault of a field that holds no text or only blanks; None if the field holds other text."""
    value = raw.get(field)
    return None if isinstance(value, str) and value.strip() else mistyped(raw, field, "a text", most)


PAGE_NUMBER = re.compile(r"(?:page(?P<page>\d{1,6})|-(?P<slide>\d{1,6})-\d+)\.\w+$")
"""Matches the end of the path of a page's image: `page<N>` counts from 0, a slide's `-<N>-1024` from 1."""


def page_number(path: str) -> int:
    """Return the number of a page, from 0, by the name of its image.

    >>> page_number("mmlongbench-doc/ab/ab_page12.jpg"), page_number("slideVQA/deck/a-deck-4-1024.jpg")
    (12, 3)
    """
    if (number := find_page_number(path)) is None:
        raise ValueError(f"{path}: expected a name that ends in page<N> or -<N>-1024")
    return number


def find_page_number(path: str) -> int | None:
    """Return the number of a page like `page_number`; None if the name has none."""
    match = PAGE_NUMBER.search(path)
    return (int(match["page"]) if match["page"] else int(match["slide"]) - 1) if match else None


def page_unit(
    path: str, index: int, role: mt.advanced.Role, place: tuple[int, ...], label: str, document: str | None = None
) -> mt.Unit:
    """Return a page, by its number from 0, as an image after a line that names its document.

    The line calls the document `document`, by default the first characters of its name (`mt.advanced.label`); `label`
    is the text after that, such as ` (page 3)`. For `role` and `place` see `mt.Unit`.
    """
    folder = path.split("/")[-2]
    called = mt.advanced.label(folder) if document is None else document
    data = {"index": index, "label": called}
    head = f"Document {called}{label}: "
    return mt.Unit(path, mt.Image(path), place, role, head, group=folder, data=data)


def text_unit(page: mt.Unit, text: str) -> mt.Unit:
    """Return a page as a text unit, with the number of the page before the text."""
    head = f"Document {page.data['label']} (page {page.data['index']}): "
    return replace(page, body=f"\n{text}", head=head, data={**page.data, "text": text})


def parted_unit(page: mt.Unit, text: str, images: Sequence[str], **data: object) -> mt.Unit:
    """Return a page as a text with images in it, in place of the markers of the text; `data` is added to the unit's."""
    unit, pieces = text_unit(page, text), text.split(mt.advanced.MARKER)
    parts: list[mt.Part] = []
    for path, piece in zip(images, pieces[1:], strict=True):
        parts += [mt.Image(path), *([piece] if piece else [])]
    return replace(unit, body=f"\n{pieces[0]}", further=tuple(parts), data={**unit.data, **data})


def with_text(documents: mt.advanced.Documents, page: mt.Unit) -> mt.Unit:
    """Return a page as the text that its PDF has; `page.data["document"]` must be the id of its document."""
    return text_unit(page, documents.page_text(page.data["document"], page.data["index"]))


def text_fields(pages: Sequence[mt.Unit]) -> dict[str, object]:
    """Return two fields of a record: the texts of the pages, as a list; and the positions in this list, from 0, of the
    pages without text, as one string such as `0, 3`.
    """
    texts = [str(page.data["text"]) for page in pages]
    without = ", ".join(str(place) for place, text in enumerate(texts) if not text)
    return {"page_text_list": texts, "pages_without_text": without}


def picture_below(folder: Path, name: str, root: Path | None = None) -> Path | None:
    """Return the file of a picture below a folder; None if there is no such file or it is outside the folder.

    Names are relative to `root`, which is `folder` or a folder below it; by default, it is `folder`. If no file has the
    name, the first folder of the name is left out, because a user may give this folder itself: the picture
    `train_mini/a/1.jpg` is the file `a/1.jpg` below `train_mini`.
    """
    parts, root = PurePosixPath(name).parts, root or folder
    for tried in (parts, parts[1:]):
        if tried and (path := file_inside(root, PurePosixPath(*tried))):
            return path if root == folder or file_inside(folder, path.absolute()) else None
    return None


PARQUET = ".parquet"
_SPLITS = {"train": "train", "test": "test"} | dict.fromkeys(("val", "valid", "validation", "dev"), "validation")
_PART = re.compile(r".+-\d{5}-of-(?P<count>\d{5})(?:-[0-9a-f]+)?\.parquet")  # one of the files of a split


def is_table(source: Path) -> bool:
    """Return whether a source is a Parquet file, or a folder of them."""
    return source.is_dir() or source.suffix.lower() == PARQUET


def source_rows(source: Path, unread: tuple[str, ...] = ()) -> Iterator[tuple[str, str, dict[str, Any] | Fault]]:
    """Yield (file, place, fields) of each row of a source: JSON Lines, or the Parquet files of one split (see
    `split_files`) without the columns `unread`.
    """
    if not is_table(source):
        yield from ((source.name, f"line {line}", raw) for line, _, raw in json_lines(source))
        return
    for file in split_files(source)[0]:
        yield from ((file.name, place, raw) for place, raw in table_rows(file, mt.readers.Columns(unread=unread)))


def split_of(name: str) -> str:
    """Return the split that the path of a file names, in the benchmark's words; empty if it names none.

    >>> split_of("data/val-00000-of-00003.parquet"), split_of("plain_text/test/0000.parquet"), split_of("0000.parquet")
    ('validation', 'test', '')
    """
    words = re.findall(r"[a-z]+", name.lower())
    return next((_SPLITS[word] for word in reversed(words) if word in _SPLITS), "")


def split_files(source: Path) -> tuple[list[Path], list[str]]:
    """Return (the Parquet files of one split in the order of their names, what a user must know about this choice).

    They are the file that the source is, or all files of a folder that has one split. If a folder has several splits,
    it is `test`. Raises SourceError if there is no file, no split `test` among several, or a file name twice.
    """
    if not source.is_dir():
        return [source], missing_parts(split_of(source.name), [source])
    splits: dict[str, list[Path]] = {}
    for file in visible_files(source):
        if file.suffix.lower() == PARQUET:
            splits.setdefault(split_of(file.relative_to(source).as_posix()), []).append(file)
    if not splits:
        expected, todo = "Parquet files of one split", "give the folder that has them, or a file"
        raise source_error("missing-split", expected, "none", source.name, todo)
    if len(splits) > 1 and "test" not in splits:
        names = ", ".join(sorted(name or "no split" for name in splits))
        expected, todo = "files of one split", "give a folder with the files of one split"
        raise source_error("several-splits", expected, f"files of {names}", source.name, todo)
    split = "test" if len(splits) > 1 else next(iter(splits))
    files = sorted(splits[split], key=lambda file: file.name)
    for file in files:
        if len(copies := [copy.relative_to(source).as_posix() for copy in files if copy.name == file.name]) > 1:
            expected, todo = "each file of a split once", "take one of the copies out"  # they may be the same rows
            raise source_error("several-splits", expected, " and ".join(copies[:2]), source.name, todo)
    notes = []
    if others := {*splits} - {split, ""}:
        notes.append(
            f"of the splits {', '.join(sorted((split, *others)))}, only {split} is read; to read another one, name its "
            "files alone, as in data/train-*.parquet"
        )
    return files, notes + missing_parts(split, files)


def missing_parts(split: str, files: Sequence[Path]) -> list[str]:
    """Return a sentence if the names of the files of a split say that there are more; otherwise an empty list."""
    counts = {int(part["count"]) for file in files if (part := _PART.fullmatch(file.name))}
    if len(counts) != 1 or (count := counts.pop()) <= len(files):
        return []
    named = f"the split {split}" if split else "the split"
    return [f"only {len(files)} of the {count} files of {named} are there; rows are numbered in these"]


def open_parquet(file: Path) -> "ParquetFile":
    """Open a Parquet file, to be read in parts; a `SourceError` if it is none."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.ParquetFile(file)
    except (pa.ArrowException, OSError) as error:
        found, todo = str(error)[:200], "download the file again"
        raise source_error("unreadable-source", "a Parquet file", found, file.name, todo) from error
