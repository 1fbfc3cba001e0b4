"""Corpora: articles are read from any source, cut into passages, and stored on disk. A corpus is opened without loading
it into memory.
"""
