"""The sources that a corpus can be made from: finds out the format of each, and how to read, measure and hash it."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from mmlongbench.corpus.articles import MAX_CHARACTERS, Article, paragraphs_of
from mmlongbench.corpus.corpus import build_corpus
from mmlongbench.corpus.cutting import WORDS, Mode
from mmlongbench.corpus.info import CorpusInfo, SourceInfo, check_place, existing
from mmlongbench.corpus.tables import (
    HUB,
    STEP,
    Advance,
    dataset_rows,
    hub_commit,
    numbered_lines,
    parquet_rows,
    read_dataset,
    read_hub,
    read_json_lines,
    read_kilt,
    read_parquet,
    read_tsv,
)
from mmlongbench.documents.limits import Limits
from mmlongbench.documents.pdf_reader import read_pages
from mmlongbench.draws import digest
from mmlongbench.errors import BuildError, Fault, SourceError
from mmlongbench.io.files import sha256_of
from mmlongbench.io.folders import file_inside
from mmlongbench.io.progress import Progress

PDF_LIMITS = Limits()
_MAX_BYTES = 4 * MAX_CHARACTERS


def read_folder(root: Path, advance: Advance) -> Iterator[Article | Fault]:
    """Yield the articles of a folder and its subfolders, sorted by path; the paragraphs of a PDF are its pages.

    A link that leads out of the folder is a fault, because its target is not part of the source.
    """
    for path in files_of(root):
        name = path.relative_to(root).as_posix()
        read = {".txt": _text, ".pdf": _pages}.get(path.suffix.lower())
        if file_inside(root, name) is None:
            yield Fault(
                "path-outside-source",
                "a file that lies in the folder",
                "a link out of it",
                name,
                todo="put the file itself into the folder",
            )
        elif read is None:
            yield Fault(
                "unknown-kind",
                "a .txt or a .pdf",
                path.suffix or "no ending",
                name,
                todo="convert it to one of these formats, or take it out",
            )
        else:
            found = read(path, name)
            yield found if isinstance(found, Fault) else Article(name, path.stem, found, file=name)
        advance()


def files_of(root: Path) -> list[Path]:
    """Return every file of a folder, sorted by path."""
    return sorted((path for path in root.rglob("*") if path.is_file()), key=lambda path: path.relative_to(root).parts)


def _text(path: Path, name: str) -> tuple[str, ...] | Fault:
    if (size := path.stat().st_size) > _MAX_BYTES:
        return Fault(
            "text-too-long", f"at most {_MAX_BYTES:,} bytes", f"{size:,}", name, todo="cut the text into several files"
        )
    try:
        return paragraphs_of(path.read_text("utf-8-sig"))
    except UnicodeDecodeError as error:
        found = f"byte 0x{error.object[error.start]:02X} at byte {error.start}"
        return Fault("invalid-utf-8", "UTF-8", found, name, todo="save the file in UTF-8")


def _pages(path: Path, name: str) -> tuple[str, ...] | Fault:
    from dataclasses import replace

    try:
        return tuple(page.text for page in read_pages(path, PDF_LIMITS))
    except SourceError as error:
        return replace(error.fault, file=name)


Format: TypeAlias = Literal["kilt", "jsonl", "tsv", "parquet", "dataset", "hub", "folder"]
FORMATS: tuple[Format, ...] = get_args(Format)
_ENDINGS = {".jsonl", ".json", ".tsv", ".csv", ".parquet", ".gz", ".txt", ".pdf", ".zip", ".bz2", ".xz", ".arrow"}


@dataclass(frozen=True, slots=True)
class Kind:
    """The functions for one format; each takes the path of a source, or its name on the hub."""

    read: Callable[[Any, Advance], Iterator[Article | Fault]]
    steps: Callable[[Any], int]
    """Returns how often reading a source advances the progress bar."""
    fingerprint: Callable[[Any], str]


@dataclass(frozen=True, slots=True)
class Source:
    """A source that was found, with its format."""

    at: Path | str
    info: SourceInfo
    steps: int

    def articles(self, advance: Advance = lambda: None) -> Iterator[Article | Fault]:
        """Yield the articles of the source, one in memory at a time, with a fault in place of each that cannot be
        read.
        """
        return _KINDS[_format(self.info.format)].read(self.at, advance)


def find_source(source: str, format: str | None = None) -> Source:
    """Find a source by its path or its name on the hub; its content decides the format unless one is given.

    Raises:
        SourceError: the source does not exist, or its format is unknown.

    """
    chosen = _format(format) if format else detect(source)
    at = source if chosen == "hub" else Path(source)
    name = source if isinstance(at, str) else at.resolve().name
    if isinstance(at, Path):
        _check_kind(at, chosen)
    kind = _KINDS[chosen]
    return Source(at, SourceInfo(name=name, format=chosen, sha256=kind.fingerprint(at)), kind.steps(at))


def detect(source: str) -> Format:
    """Return the format of a source, from its content."""
    path = Path(source)
    if path.is_dir():
        return "dataset" if any((path / name).is_file() for name in _SAVED) else "folder"
    if path.is_file():
        return _detect_file(path)
    is_local = path.suffix.lower() in _ENDINGS or path.is_absolute() or path.parent.is_dir()
    if HUB.fullmatch(source) and not is_local:
        return "hub"
    todo = "check the path; for a dataset of the hub, give --format hub"
    raise SourceError(Fault("missing-source", "a file, a folder, or owner/name on the hub", "none", source, todo=todo))


_LINES = 10
"""How many lines of a file are read to find its format. Several are read, because some lines may be broken."""
_SAVED = ("state.json", "dataset_dict.json")
"""The files that `datasets` writes into a folder when it saves a dataset."""


def _detect_file(path: Path) -> Format:
    with path.open("rb") as file:
        if file.read(4) == b"PAR1":
            return "parquet"
    begin = islice(numbered_lines(path, lambda: None), _LINES)
    lines = [line for _, line in begin if isinstance(line, str)]
    for line in lines:
        if line.lstrip().startswith("{"):
            return "kilt" if _is_kilt(line) else "jsonl"
    if any("\t" in line for line in lines):
        return "tsv"
    found = f"{lines[0][:20]!r} at its beginning" if lines else "no line of text at its beginning"
    expected = "a file of JSON objects, one a line, a TSV of id, text and title, or a Parquet file"
    todo = f"name the format with --format ({', '.join(FORMATS)})"
    raise SourceError(Fault("unknown-format", expected, found, path.name, todo=todo))


def _is_kilt(line: str) -> bool:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return "wikipedia_title" in row and isinstance(row.get("text"), list)


def _format(name: str) -> Format:
    for format in FORMATS:
        if name == format:
            return format
    raise SourceError(
        Fault(
            "unknown-format",
            f"one of {', '.join(FORMATS)}",
            repr(name),
            field="--format",
            todo="name one of these formats",
        )
    )


def _check_kind(path: Path, format: Format) -> None:
    wants_folder = format in ("folder", "dataset")
    if not path.exists() or path.is_dir() != wants_folder:
        found = "no such path" if not path.exists() else "a folder" if path.is_dir() else "a file"
        expected = f"a {'folder' if wants_folder else 'file'} for the format {format}"
        raise SourceError(Fault("missing-source", expected, found, str(path), todo="correct the path"))


def _bytes(path: Path) -> int:
    return path.stat().st_size // STEP


def _folder_hash(root: Path) -> str:
    parts = ((path.relative_to(root).as_posix(), sha256_of(path)) for path in files_of(root))
    return digest(*(text for part in parts for text in part)).hex()


_KINDS: dict[Format, Kind] = {
    "kilt": Kind(read_kilt, _bytes, sha256_of),
    "jsonl": Kind(read_json_lines, _bytes, sha256_of),
    "tsv": Kind(read_tsv, _bytes, sha256_of),
    "parquet": Kind(read_parquet, parquet_rows, sha256_of),
    "dataset": Kind(read_dataset, dataset_rows, _folder_hash),
    "hub": Kind(read_hub, lambda _: 0, hub_commit),
    "folder": Kind(read_folder, lambda root: len(files_of(root)), _folder_hash),
}


@dataclass(frozen=True, slots=True)
class MadeCorpus:
    """The result of making a corpus."""

    info: CorpusInfo
    was_complete: bool
    """Whether the folder already held this corpus, so that nothing was built."""


def make_corpus(
    source: str,
    out: Path,
    mode: str = "sentences",
    format: str | None = None,
    limit: int | None = None,
    progress: Progress | None = None,
) -> MadeCorpus:
    """Build the corpus of a source, unless it is there already.

    Raises:
        SourceError: the source does not exist, or part of it cannot be read.
        BuildError: the folder cannot be used, or no article is usable.

    """
    chosen = _mode(mode)
    check_place(out)
    found = find_source(source, format)
    wanted = {"mode": chosen, "words": WORDS, "limit": limit, "source": found.info}
    if (info := existing(out, wanted)) is not None:
        return MadeCorpus(info, was_complete=True)
    with (progress or Progress(False)).bar("cutting", found.steps) as advance:
        articles = found.articles(advance)
        info = build_corpus(articles, out, chosen, source=found.info, limit=limit)
    return MadeCorpus(info, was_complete=False)


def _mode(name: str) -> Mode:
    modes: dict[str, Mode] = {"sentences": "sentences", "words": "words"}
    if name not in modes:
        raise BuildError(f"--mode {name}: unknown mode; the modes are {', '.join(modes)}")
    return modes[name]
