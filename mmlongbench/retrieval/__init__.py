"""Finding hard negatives: search by words, reranking by meaning, and the filter that keeps answers out."""
