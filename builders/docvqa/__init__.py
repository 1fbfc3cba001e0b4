"""Long-document QA: a question over page images, cut or padded to a length (paper, section 3)."""

from builders.docvqa.builder import DocVQA
from builders.docvqa.own_documents import OwnDocuments
from builders.docvqa.public import LongDocURL, MLongDoc, MMLongBenchDoc
from builders.docvqa.rows import DocVQAOptions
from builders.docvqa.slidevqa import SlideVQA

__all__ = ["DocVQA", "DocVQAOptions", "LongDocURL", "MLongDoc", "MMLongBenchDoc", "OwnDocuments", "SlideVQA"]
