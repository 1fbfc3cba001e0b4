"""The contents of a corpus: its passages, and `corpus.json`, which says what they were made from."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from mmlongbench.corpus.cutting import Mode
from mmlongbench.errors import MMLongBenchError

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
