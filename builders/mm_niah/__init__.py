"""Needles in interleaved web pages: MM-NIAH's six datasets, from its own rows or your own pages (paper, section 3)."""

from builders.mm_niah.builder import MMNIAH
from builders.mm_niah.readers import MMNIAHRows, OwnPages

__all__ = ["MMNIAH", "MMNIAHRows", "OwnPages"]
