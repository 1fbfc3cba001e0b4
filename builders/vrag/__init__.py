"""Visual RAG: a question about the entity in a picture, over gold passages and hard negatives (paper, section 3)."""

from builders.vrag.builder import VRAG
from builders.vrag.readers import EntityQuestion, InfoSeek, ViQuAE

__all__ = ["VRAG", "EntityQuestion", "InfoSeek", "ViQuAE"]
