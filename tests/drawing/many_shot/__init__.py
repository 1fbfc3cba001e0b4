"""Samples of many-shot learning: drawn shapes; each class is a colour and a shape."""

from tests.drawing.many_shot.sources import draw_folders, draw_inaturalist, draw_tables

__all__ = ["draw_folders", "draw_inaturalist", "draw_tables"]
