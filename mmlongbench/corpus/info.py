"""What a corpus holds: its passages, and `corpus.json`, which says what they were made of."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from mmlongbench.corpus.cutting import Mode
from mmlongbench.errors import MMLongBenchError

INFO = "corpus.json"
"""What the corpus is made of; written last."""
PASSAGES = "passages.arrow"
"""One table, as `datasets.Dataset.from_file` opens it."""
INDEX = "index"
"""Which rows belong to a document, a title, a ready passage."""
REJECTS = "rejects.jsonl"
"""What was left out, and why."""


class CorpusError(MMLongBenchError):
    """A corpus that cannot be opened, or that has not what it is asked for."""


@dataclass(frozen=True, slots=True)
class Passage:
    """About a hundred consecutive words of one article."""

    id: str
    """`<doc_id>#<n>`, or the source's own id where it was cut already."""
    doc_id: str
    title: str
    text: str
    section: int
    """0 is the lead section, and the whole of an article that marks none."""
    first_paragraph: int = 0
    """Where it begins, as the source numbers paragraphs: in KILT 0 is the title; of a PDF, the page from 0."""
    last_paragraph: int = 0

    @property
    def passage_id(self) -> str:
        """Its id, by the name that the table and retrieval know it by."""
        return self.id


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class SourceInfo(_Model):
    """What a corpus was read from."""

    name: str = ""
    format: str = ""
    sha256: str = ""
    """Of the file; of all names and files of a folder; of a hub's dataset, the commit."""


class CorpusInfo(_Model):
    """What a corpus is made of, and how much there is. No time, no path."""

    format: Literal[1, 2] = 2
    """1 where the corpus was built before Wikidata ids were kept: it is read, and joined by titles alone."""
    mode: Mode
    words: int
    limit: int | None = None
    """At most so many articles were kept."""
    source: SourceInfo
    articles: int
    sectioned: int
    """Articles with more than a lead section; where this is 0, the source marks none."""
    passages: int
    words_in_all: int
    wikidata_ids: int = 0
    """Articles that can be found by a Wikidata id."""
    wikidata_ids_shared: int = 0
    """Of these, the articles whose id an earlier article has too."""
    rejected: dict[str, int]
    fingerprint: str
    """SHA-256 over every passage in order, field by field, and over the Wikidata ids of articles."""
    versions: dict[str, str]

    @property
    def keeps_wikidata_ids(self) -> bool:
        """Whether the Wikidata ids of its source, if there were any, were kept."""
        return self.format >= 2


def read_info(folder: Path) -> CorpusInfo:
    """What a corpus is made of.

    Raises:
        CorpusError: there is no corpus, or it is not of this format.

    """
    path = folder / INFO
    try:
        return CorpusInfo.model_validate_json(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError) as error:
        hint = "build one with `mmlongbench corpus build SOURCE --out DIR`"
        raise CorpusError(f"{folder}: no {INFO}: not a corpus, or one whose build has not ended; {hint}") from error
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(map(str, first["loc"])) or "the file"
        raise CorpusError(f"{path}: {field}: {first['msg']}; build the corpus again into a new folder") from error
