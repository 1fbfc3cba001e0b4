"""Corpora: articles are read from any source, cut into passages, and stored on disk. A corpus is opened without loading
it into memory.
"""

from mmlongbench.corpus.articles import Article
from mmlongbench.corpus.corpus import Corpus, build_corpus
from mmlongbench.corpus.info import CorpusError, CorpusInfo, Passage
from mmlongbench.sentences import sentences

__all__ = ["Article", "Corpus", "CorpusError", "CorpusInfo", "Passage", "build_corpus", "sentences"]
