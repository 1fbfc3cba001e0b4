"""Samples of visual RAG: a drawn encyclopedia, pictures of its entities, and questions about them."""

from tests.drawing.vrag.sources import draw_infoseek, draw_viquae

__all__ = ["draw_infoseek", "draw_viquae"]
