"""The contents of a corpus: its passages, and `corpus.json`, which says what they were made from."""

import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from mmlongbench.corpus.cutting import Mode
from mmlongbench.errors import BuildError, MMLongBenchError

INFO = "corpus.json"
"""The file that says what the corpus was made from; it is written last."""
PASSAGES = "passages.arrow"
"""The file with the table of passages, which `datasets.Dataset.from_file` can open."""
INDEX = "index"
"""The folder of the index, which finds the rows of a document, a title, a passage's own id or a Wikidata id."""
REJECTS = "rejects.jsonl"
"""The file of the articles that were left out, with the reasons."""


class CorpusError(MMLongBenchError):
    """A corpus cannot be opened, or does not have what is looked up."""


@dataclass(frozen=True, slots=True)
class Passage:
    """About a hundred consecutive words of one article."""

    id: str
    """`<doc_id>#<n>`, or the source's own id if the source is already cut."""
    doc_id: str
    """The id of the passage's article."""
    title: str
    """The title of the passage's article."""
    text: str
    """The words of the passage."""
    section: int
    """The number of the section; 0 is the lead section. An article without sections has only the number 0."""
    first_paragraph: int = 0
    """The number of the paragraph where the passage begins. Paragraphs have the numbers of the source: in KILT,
    paragraph 0 is the title; in a PDF, each page is a paragraph, from 0."""
    last_paragraph: int = 0
    """The number of the paragraph where the passage ends, counted in the same way."""

    @property
    def passage_id(self) -> str:
        """The id, under the name that the table of passages uses."""
        return self.id


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class SourceInfo(_Model):
    """A source that a corpus was made from."""

    name: str = ""
    format: str = ""
    sha256: str = ""
    """SHA-256 of the file, or of the names and contents of all files in the folder; for a dataset of the hub, the
    commit."""


class CorpusInfo(_Model):
    """What a corpus was made from, and how much it contains. It holds no time and no path."""

    format: Literal[1, 2] = 2
    """The format version. A corpus of version 1 has no Wikidata ids: it can be used, but no article is found by such an
    id."""
    mode: Mode
    words: int
    limit: int | None = None
    """The maximum number of articles; if it is None, all were kept."""
    source: SourceInfo
    articles: int
    sectioned: int
    """How many articles have more than a lead section; if none has, the source marks no sections."""
    passages: int
    words_in_all: int
    wikidata_ids: int = 0
    """How many articles can be found by a Wikidata id."""
    wikidata_ids_shared: int = 0
    """How many of these articles have the same Wikidata id as an earlier article."""
    rejected: dict[str, int]
    fingerprint: str
    """SHA-256 over every passage in order, field by field, and over the Wikidata ids of articles."""
    versions: dict[str, str]

    @property
    def keeps_wikidata_ids(self) -> bool:
        """Whether the Wikidata ids of the source, if it has any, were kept."""
        return self.format >= 2


def read_info(folder: Path) -> CorpusInfo:
    """Return the contents of `corpus.json`.

    Raises:
        CorpusError: there is no corpus, or it has an unknown format.

    """
    path = folder / INFO
    try:
        return CorpusInfo.model_validate_json(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError) as error:
        hint = "build one with `mmlongbench corpus build SOURCE --out DIR`"
        raise CorpusError(f"{folder}: no {INFO}: this is no corpus, or its build has not finished; {hint}") from error
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"])) or "the file"
        raise CorpusError(f"{path}: {field}: {first['msg']}; build the corpus again into a new folder") from error


CLAIM = "claim"
"""The file in the working folder that a writer locks."""
_WORK = ".build"
_IDENTITY = ("mode", "words", "limit", "source")


class OtherCorpusError(BuildError):
    """A folder holds another corpus than the wanted one."""


def existing(out: Path, wanted: Mapping[str, object]) -> CorpusInfo | None:
    """Return the description of the corpus in a folder if it is the wanted corpus; None if there is no corpus.

    Raises:
        OtherCorpusError: the folder holds another corpus.

    """
    if not (out / INFO).is_file():
        return None
    info = read_info(out)
    for name in _IDENTITY:
        found: object = getattr(info, name)
        asked = wanted[name]
        if not _is_same(found, asked):
            message = f"holds a corpus whose {name} is {_words(found)}, not {_words(asked)}"
            raise OtherCorpusError(f"--out {out}: {message}; give another folder, or remove this one")
    return info


def _is_same(found: object, asked: object) -> bool:
    """Return whether two values are the same; sources are the same if they have the same bytes, whatever their names.

    Sources without a hash cannot be compared and count as different.
    """
    if not isinstance(found, SourceInfo) or not isinstance(asked, SourceInfo):
        return found == asked
    return bool(found.sha256) and (found.format, found.sha256) == (asked.format, asked.sha256)


def _words(value: object) -> str:
    """Return a value of `corpus.json` as a message shows it."""
    if not isinstance(value, SourceInfo):
        return str(value)
    return f"{value.name} ({value.format}, sha256 {value.sha256[:12]}…)" if value.sha256 else "one without a hash"


def check_place(out: Path) -> None:
    """Refuse a folder whose content is neither a corpus nor an interrupted build of one."""
    if out.exists() and not out.is_dir():
        raise BuildError(f"--out {out}: is a file; give a folder instead")
    if out.is_dir() and not ((out / INFO).is_file() or (out / _WORK).is_dir()) and any(out.iterdir()):
        raise BuildError(f"--out {out}: is not empty and holds no corpus; give an empty or a new folder")


def open_place(out: Path) -> Path:
    """Make the working folder inside the folder of the corpus, and return its path."""
    check_place(out)
    try:
        (out / _WORK).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BuildError(f"--out {out}: cannot be written: {error.strerror}") from error
    return out / _WORK


def clear(out: Path) -> None:
    """Remove the files of an interrupted build; the caller must hold the lock."""
    left = [out / name for name in (PASSAGES, INDEX, REJECTS)]
    for path in [*left, *(path for path in (out / _WORK).iterdir() if path.name != CLAIM)]:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def leave_nothing(out: Path, *, is_new: bool) -> None:
    """Remove the files of a failed build. If the build also made the folder `out` (`is_new`), remove it, too."""
    shutil.rmtree(out / _WORK, ignore_errors=True)
    if is_new:
        with suppress(OSError):
            out.rmdir()
