"""A corpus from the name of its source: find it, read it with a progress bar, cut it, keep it."""

from dataclasses import dataclass
from pathlib import Path

from mmlongbench.corpus.cutting import WORDS, Mode
from mmlongbench.corpus.info import CorpusInfo
from mmlongbench.corpus.place import check_place, existing
from mmlongbench.corpus.sources import find_source
from mmlongbench.corpus.writing import build_corpus
from mmlongbench.errors import BuildError
from mmlongbench.io.progress import Progress


@dataclass(frozen=True, slots=True)
class MadeCorpus:
    """What making a corpus left."""

    info: CorpusInfo
    was_complete: bool
    """The corpus was there already, of the same source."""


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
        SourceError: the source is not there, or cannot be read on.
        BuildError: the folder cannot be used, or no article can.

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
        raise BuildError(f"--mode {name}: there are {', '.join(modes)}")
    return modes[name]
