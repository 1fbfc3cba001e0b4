"""Passages: articles read from any source, cut, and kept as a corpus that is opened without being loaded."""

from mmlongbench.passages.articles import Article
from mmlongbench.passages.corpus import Corpus, build_corpus
from mmlongbench.passages.info import CorpusError, CorpusInfo, Passage
from mmlongbench.passages.splitting import sentences

__all__ = ["Article", "Corpus", "CorpusError", "CorpusInfo", "Passage", "build_corpus", "sentences"]
