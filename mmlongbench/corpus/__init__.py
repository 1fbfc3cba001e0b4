"""Corpora: articles are read from any source, cut into passages, and stored so that a corpus opens without being
loaded.
"""

from mmlongbench.corpus.articles import Article
from mmlongbench.corpus.corpus import Corpus, build_corpus
from mmlongbench.corpus.info import CorpusError, CorpusInfo, Passage
from mmlongbench.sentences import sentences

__all__ = ["Article", "Corpus", "CorpusError", "CorpusInfo", "Passage", "build_corpus", "sentences"]
