"""Visual RAG: a question about the entity in a picture, over gold passages and hard negatives (paper, section 3)."""

from builders.vrag.builder import VRAG
from builders.vrag.infoseek import InfoSeek
from builders.vrag.viquae import ViQuAE

__all__ = ["VRAG", "InfoSeek", "ViQuAE"]
