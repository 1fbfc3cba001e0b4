"""The benchmark's own metrics: pure functions named as in the public code, and the metrics made of them."""

from mmlongbench.answers import after_prefix
from mmlongbench.metrics.benchmark.answers import binary_acc, cls_acc, mc_acc, soft_acc, sub_em
from mmlongbench.metrics.benchmark.documents import doc_qa
from mmlongbench.metrics.benchmark.metrics import (
    ClassLabel,
    DocumentAnswer,
    OptionLetter,
    RougeL,
    SubstringExactMatch,
    TotalCount,
    YesNo,
)
from mmlongbench.metrics.benchmark.rouge import rouge, rouge_scorer

__all__ = [
    "ClassLabel",
    "DocumentAnswer",
    "OptionLetter",
    "RougeL",
    "SubstringExactMatch",
    "TotalCount",
    "YesNo",
    "after_prefix",
    "binary_acc",
    "cls_acc",
    "doc_qa",
    "mc_acc",
    "rouge",
    "rouge_scorer",
    "soft_acc",
    "sub_em",
]
