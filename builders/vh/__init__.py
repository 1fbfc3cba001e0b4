"""Visual Haystacks: a question about a few photographs among many (paper, section 3)."""

from builders.vh.builder import VisualHaystack
from builders.vh.original import VisualHaystacks
from builders.vh.plain import Photographs

__all__ = ["Photographs", "VisualHaystack", "VisualHaystacks"]
