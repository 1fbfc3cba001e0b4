"""The sources that a corpus can be made from: finds the format of each, and reads its articles one by one.

Formats are KILT's knowledge source, other JSON lines, a DPR-style TSV (each plain or gzipped), Parquet, a dataset that
`datasets` saved or that is on the Hugging Face hub, and a folder of texts and PDFs.
"""

import csv
import gzip
import json
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from mmlongbench.corpus.articles import (
    FIELDS,
    IDS,
    MAX_CHARACTERS,
    TEXTS,
    TITLES,
    Article,
    article_of,
    paragraphs_of,
)
from mmlongbench.corpus.corpus import SourceInfo
from mmlongbench.documents.limits import Limits
from mmlongbench.documents.pdf import read_pages
from mmlongbench.draws import digest
from mmlongbench.errors import Fault, SourceError
from mmlongbench.io.files import bounded_lines, file_inside, sha256_of
from mmlongbench.io.tables import parquet_file

if TYPE_CHECKING:
    from datasets import Dataset
    from pyarrow import RecordBatch

PDF_LIMITS = Limits()
MAX_BYTES = 32 * 1024 * 1024  # the maximum length of a line in bytes
_MAX_TEXT = 4 * MAX_CHARACTERS  # the maximum size of a text file in bytes
_STEP = 1024 * 1024
"""The number of bytes of a file of lines that one step of the progress bar stands for."""
_ROWS = 256  # how many rows of a Parquet file are in memory at a time
_LINES = 10
"""How many lines of a file are read to find its format. Several are read, because some lines may be broken."""
_SAVED = ("state.json", "dataset_dict.json")
"""The files that `datasets` writes into a folder when it saves a dataset."""
_ENDINGS = {".jsonl", ".json", ".tsv", ".csv", ".parquet", ".gz", ".txt", ".pdf", ".zip", ".bz2", ".xz", ".arrow"}
"""A name with one of these endings is a path, and no dataset of the hub."""
_HUB = re.compile(
    r"(?P<name>[\w.-]+/[\w.-]+)(?::(?P<config>[\w.-]+))?(?::(?P<split>[\w.-]+))?(?:@(?P<revision>[\w./-]+))?"
)
"""The name of a dataset of the hub: owner/name[:config[:split]][@revision]."""
Advance: TypeAlias = Callable[[], None]
"""Moves the progress bar by one step."""
_Articles: TypeAlias = Iterator[Article | Fault]


@dataclass(frozen=True, slots=True)
class Source:
    """A source that was found, with its format."""

    at: Path | str
    """The path, or the name on the hub."""
    info: SourceInfo
    steps: int
    """How often reading the source advances the progress bar."""

    def articles(self, advance: Advance = lambda: None) -> _Articles:
        """Yield the articles of the source, one in memory at a time, with a fault in place of each that cannot be
        read.
        """
        return _KINDS[self.info.format].read(self.at, advance)


def find_source(source: str, format: str | None = None) -> Source:
    """Find a source by its path or its name on the hub; its content decides the format unless one is given.

    Raises:
        SourceError: the source does not exist, or its format is unknown.

    """
    chosen = format or detect(source)
    if chosen not in _KINDS:
        expected, todo = f"one of {', '.join(FORMATS)}", "name one of these formats"
        raise SourceError(Fault("unknown-format", expected, repr(chosen), field="--format", todo=todo))
    at: Path | str = source
    name = source
    if chosen != "hub":
        path = at = Path(source)
        name = path.resolve().name
        kind = "folder" if chosen in ("folder", "dataset") else "file"
        found = "no such path" if not path.exists() else "a folder" if path.is_dir() else "a file"
        if found != f"a {kind}":
            expected = f"a {kind} for the format {chosen}"
            raise SourceError(Fault("missing-source", expected, found, str(path), todo="correct the path"))
    info = SourceInfo(name=name, format=chosen, sha256=_KINDS[chosen].fingerprint(at))
    return Source(at, info, _KINDS[chosen].steps(at))


def detect(source: str) -> str:
    """Return the format of a source, from its content."""
    path = Path(source)
    if path.is_dir():
        return "dataset" if any((path / name).is_file() for name in _SAVED) else "folder"
    if not path.is_file():
        is_local = path.suffix.lower() in _ENDINGS or path.is_absolute() or path.parent.is_dir()
        if _HUB.fullmatch(source) and not is_local:
            return "hub"
        expected = "a file, a folder, or owner/name on the hub"
        todo = "check the path; for a dataset of the hub, give --format hub"
        raise SourceError(Fault("missing-source", expected, "none", source, todo=todo))
    with path.open("rb") as file:
        if file.read(4) == b"PAR1":
            return "parquet"
    lines = [line for _, line in islice(_numbered_lines(path, lambda: None), _LINES) if isinstance(line, str)]
    for line in lines:
        if line.lstrip().startswith("{"):
            with suppress(ValueError, RecursionError):  # no JSON
                row = json.loads(line)
                return "kilt" if "wikipedia_title" in row and isinstance(row.get("text"), list) else "jsonl"
            return "jsonl"
    if any("\t" in line for line in lines):
        return "tsv"
    expected = "a file of JSON objects, one a line, a TSV of id, text and title, or a Parquet file"
    found = f"{lines[0][:20]!r} at its beginning" if lines else "no line of text at its beginning"
    todo = f"name the format with --format ({', '.join(FORMATS)})"
    raise SourceError(Fault("unknown-format", expected, found, path.name, todo=todo))


# Files of lines


def _numbered_lines(path: Path, advance: Advance) -> Iterator[tuple[int, str | Fault]]:
    """Yield (number, line) for a file, counted from 1. Blank lines are left out; an unreadable line becomes a fault."""
    with path.open("rb") as raw:
        is_packed = raw.read(2) == b"\x1f\x8b"
        raw.seek(0)
        file = gzip.GzipFile(fileobj=raw) if is_packed else raw
        number, steps = 0, 0
        try:
            for number, _, line in bounded_lines(file, MAX_BYTES):
                place = f"line {number}"
                if line is None:
                    expected, todo = f"at most {MAX_BYTES:,} bytes a line", "cut the article into several lines"
                    yield number, Fault("line-too-long", expected, "more", path.name, place, todo=todo)
                elif line.strip():
                    try:
                        yield number, line.removeprefix(b"\xef\xbb\xbf" if number == 1 else b"").decode().rstrip("\r\n")
                    except UnicodeDecodeError as error:
                        yield number, _not_utf8(error, path.name, place)
                while steps < raw.tell() // _STEP:
                    steps += 1
                    advance()
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            place, todo = f"line {number + 1}", "fetch it anew"
            fault = Fault("broken-gzip", "a whole gzip stream", str(error), path.name, place, todo=todo)
            raise SourceError(fault) from error


def _not_utf8(error: UnicodeDecodeError, file: str, place: str = "", todo: str = "save the file in UTF-8") -> Fault:
    found = f"byte 0x{error.object[error.start]:02X} at byte {error.start}"
    return Fault("invalid-utf-8", "UTF-8", found, file, place, todo=todo)


def _read_json(path: Path, advance: Advance, *, is_kilt: bool = False) -> _Articles:
    """Yield the articles of a file with one JSON object a line. With `is_kilt`, it is KILT's knowledge source, whose
    paragraph 0 is the title.
    """
    fault = partial(Fault, expected="one JSON object a line", file=path.name, todo="correct the line, or take it out")
    for number, line in _numbered_lines(path, advance):
        place = f"line {number}"
        if isinstance(line, Fault):
            yield line
            continue
        try:
            row: object = json.loads(line)
        except (ValueError, RecursionError) as error:
            found = f"{error.msg} at character {error.pos}" if isinstance(error, json.JSONDecodeError) else str(error)
            yield fault("invalid-json", found=found, place=place)
            continue
        if isinstance(row, dict):
            yield article_of(row, path.name, place, is_kilt=is_kilt)
        else:
            yield fault("not-an-object", found=type(row).__name__, place=place)


def _read_tsv(path: Path, advance: Advance) -> _Articles:
    """Yield each row of a quoted TSV as an article that is already a passage. The columns are id, text and title,
    unless the first line gives them in another order.

    DPR has no ids of articles, so the title is the id of the document. Each row is one line.
    """
    columns = ["id", "text", "title"]
    fault = partial(Fault, file=path.name, todo="correct the line, or take it out")
    for number, line in _numbered_lines(path, advance):
        place = f"line {number}"
        if isinstance(line, Fault):
            yield line
            continue
        try:
            cells = next(csv.reader([line], delimiter="\t", strict=True))
        except csv.Error as error:
            yield fault("invalid-tsv", "one row of quoted TSV a line", str(error), place=place)
            continue
        if len(cells) != len(columns):
            expected = f"{len(columns)} columns ({', '.join(columns)})"
            yield fault("wrong-columns", expected, str(len(cells)), place=place)
        elif number == 1 and set(cells) >= {"id", "text", "title"}:
            columns = cells
        else:
            row = dict(zip(columns, cells, strict=True))
            id, title = row["id"].strip(), row["title"]
            doc_id = " ".join(title.split()) if id else ""
            yield Article(doc_id, title, (row["text"],), passage_id=id, file=path.name, place=place)


# Tables of rows; only known columns are read


def _read_parquet(path: Path, advance: Advance) -> _Articles:
    with parquet_file(path, FIELDS) as file:
        batches = file.iter_batches(_ROWS, columns=_known_columns(file.schema_arrow.names, path.name))
        yield from _articles(_rows_of(batches, path.name), path.name, advance)


def _rows_of(batches: "Iterable[RecordBatch]", name: str) -> Iterator[Mapping[str, object] | Fault]:
    for batch in batches:
        for at in range(batch.num_rows):
            try:
                yield {field: batch.column(field)[at].as_py() for field in batch.schema.names}
            except UnicodeDecodeError as error:
                yield _not_utf8(error, name, todo="write the text in UTF-8, or take the row out")


def _parquet_rows(path: Path) -> int:
    """Return the number of rows of a Parquet file; 0 if it cannot be read, which `_read_parquet` reports."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        return int(parquet.read_metadata(path).num_rows)
    except (pa.ArrowInvalid, OSError):
        return 0


def _read_dataset(path: Path, advance: Advance) -> _Articles:
    dataset = _saved_dataset(path).with_format(None)
    yield from _articles(dataset.select_columns(_known_columns(dataset.column_names, path.name)), path.name, advance)


def _saved_dataset(path: Path) -> "Dataset":
    from datasets import Dataset, load_from_disk

    try:
        dataset = load_from_disk(str(path))
    except Exception as error:
        found = str(error).splitlines()[0].replace(str(path), path.name)
        todo = "save the dataset again with save_to_disk()"
        fault = Fault("broken-dataset", "a dataset saved by `datasets`", found, path.name, todo=todo)
        raise SourceError(fault) from error
    if not isinstance(dataset, Dataset):
        todo = "give the folder of one of them"
        raise SourceError(Fault("several-splits", "one split", ", ".join(dataset), path.name, todo=todo))
    return dataset


def _read_hub(source: str, advance: Advance) -> _Articles:
    """Yield the articles of a dataset on the hub as they are downloaded; nothing is kept on disk."""
    from datasets import load_dataset

    with _on_hub(source) as parts:
        splits: Mapping[str, Iterable[Mapping[str, object]]] = load_dataset(
            parts["name"], parts["config"], revision=parts["revision"], streaming=True
        )
        chosen = parts["split"] or next(iter(splits))
        if chosen not in splits or (len(splits) > 1 and not parts["split"]):
            expected, found = f"one of the splits {', '.join(splits)}", parts["split"] or "none"
            raise SourceError(Fault("unknown-split", expected, found, source, todo="name one of these splits"))
        yield from _articles(splits[chosen], str(parts["name"]), advance)


def _hub_commit(source: str) -> str:
    from huggingface_hub import HfApi

    with _on_hub(source) as parts:
        return str(HfApi().dataset_info(str(parts["name"]), revision=parts["revision"]).sha)


@contextmanager
def _on_hub(source: str) -> Iterator[dict[str, str | None]]:
    """Yield the parts of a dataset's name, and turn any error of the hub's client into one line; these errors have no
    common base class.
    """
    if (match := _HUB.fullmatch(source)) is None:
        expected = "owner/name[:config[:split]][@revision]"
        raise SourceError(Fault("unknown-source", expected, repr(source), todo="correct the name of the source"))
    try:
        yield match.groupdict()
    except SourceError:
        raise
    except Exception as error:
        found = f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"
        todo = "download it and give its path, or check its name and the network"
        fault = Fault("unreachable-dataset", "a dataset of the hub that can be read", found, source, todo=todo)
        raise SourceError(fault) from error


def _known_columns(names: list[str], file: str) -> list[str]:
    """Return the columns to read. An id, a title and a text are needed; a column `contents` may hold title and text."""
    for kind in (IDS, TITLES, TEXTS):
        if not set(kind) & set(names) and not (kind is TITLES and "contents" in names):
            expected, todo = f"a column {' or '.join(kind)}", "give the column one of these names"
            raise SourceError(Fault("missing-column", expected, ", ".join(names), file, todo=todo))
    return [name for name in names if name in FIELDS]


def _articles(rows: Iterable[Mapping[str, object] | Fault], file: str, advance: Advance) -> _Articles:
    for number, row in enumerate(rows):
        place = f"row {number}"
        yield replace(row, place=place) if isinstance(row, Fault) else article_of(row, file, place)
        advance()


# Folders of texts and PDFs


def _read_folder(root: Path, advance: Advance) -> _Articles:
    for path in _files_of(root):
        yield _article_of_file(path, root)
        advance()


def _article_of_file(path: Path, root: Path) -> Article | Fault:
    """Return the article of a text or a PDF, whose paragraphs are its pages. A link that leads out of the folder is a
    fault, because its target is not part of the source.
    """
    name, kind = path.relative_to(root).as_posix(), path.suffix.lower()
    fault = partial(Fault, file=name)
    if file_inside(root, name) is None:
        todo = "put the file itself into the folder"
        return fault("path-outside-source", "a file that lies in the folder", "a link out of it", todo=todo)
    if kind == ".pdf":
        try:
            return Article(name, path.stem, tuple(page.text for page in read_pages(path, PDF_LIMITS)), file=name)
        except SourceError as error:
            return replace(error.fault, file=name)
    if kind != ".txt":
        todo = "convert it to one of these formats, or take it out"
        return fault("unknown-kind", "a .txt or a .pdf", path.suffix or "no ending", todo=todo)
    if (size := path.stat().st_size) > _MAX_TEXT:
        todo = "cut the text into several files"
        return fault("text-too-long", f"at most {_MAX_TEXT:,} bytes", f"{size:,}", todo=todo)
    try:
        return Article(name, path.stem, paragraphs_of(path.read_text("utf-8-sig")), file=name)
    except UnicodeDecodeError as error:
        return _not_utf8(error, name)


def _files_of(root: Path) -> list[Path]:
    return sorted((path for path in root.rglob("*") if path.is_file()), key=lambda path: path.relative_to(root).parts)


def _folder_hash(root: Path) -> str:
    parts = ((path.relative_to(root).as_posix(), sha256_of(path)) for path in _files_of(root))
    return digest(*(text for part in parts for text in part)).hex()


def _steps_of(path: Path) -> int:
    return path.stat().st_size // _STEP


class _Kind(NamedTuple):
    """The functions for one format; each takes the path of a source, or its name on the hub."""

    read: Callable[[Any, Advance], _Articles]
    steps: Callable[[Any], int]
    fingerprint: Callable[[Any], str]


_KINDS = {
    "kilt": _Kind(partial(_read_json, is_kilt=True), _steps_of, sha256_of),
    "jsonl": _Kind(_read_json, _steps_of, sha256_of),
    "tsv": _Kind(_read_tsv, _steps_of, sha256_of),
    "parquet": _Kind(_read_parquet, _parquet_rows, sha256_of),
    "dataset": _Kind(_read_dataset, lambda path: len(_saved_dataset(path)), _folder_hash),
    "hub": _Kind(_read_hub, lambda _: 0, _hub_commit),
    "folder": _Kind(_read_folder, lambda root: len(_files_of(root)), _folder_hash),
}
FORMATS = tuple(_KINDS)
