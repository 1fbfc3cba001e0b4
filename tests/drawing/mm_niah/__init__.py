"""Samples of MM-NIAH: drawn web pages, and questions about needles that are hidden in them."""

from tests.drawing.mm_niah.sources import draw_hidden_pictures, draw_hidden_sentences

__all__ = ["draw_hidden_pictures", "draw_hidden_sentences"]
