"""Retrieval: BM25 and dense search over a corpus, and the hard negatives of a question."""
