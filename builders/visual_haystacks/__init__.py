"""Visual Haystacks: a question about a few photographs among many (paper, section 3)."""

from builders.visual_haystacks.builder import VisualHaystack
from builders.visual_haystacks.readers import Photographs, VisualHaystacks

__all__ = ["Photographs", "VisualHaystack", "VisualHaystacks"]
