"""Visual Haystacks: a question about a few photographs among many (paper, section 3)."""

from builders.visual_haystacks.builder import VisualHaystack
from builders.visual_haystacks.own_photographs import Photographs
from builders.visual_haystacks.visual_haystacks import VisualHaystacks

__all__ = ["Photographs", "VisualHaystack", "VisualHaystacks"]
