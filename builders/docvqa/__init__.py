"""Long-document QA: a question over page images, cut or padded to a length (paper, section 3)."""

from builders.docvqa.builder import DocVQA
from builders.docvqa.mmlongbench_doc import MMLongBenchDoc

__all__ = ["DocVQA", "MMLongBenchDoc"]
