"""Makes a corpus from the name of its source: finds the source, reads it with a progress bar, cuts and stores it."""

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
