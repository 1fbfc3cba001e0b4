"""Samples of Visual Haystacks: drawn photographs of plain objects, and questions about them."""

from tests.drawing.visual_haystacks.sources import draw_several, draw_single

__all__ = ["draw_several", "draw_single"]
