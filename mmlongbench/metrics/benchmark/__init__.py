"""The benchmark's own metrics: pure functions named as in the public code, and the metrics made of them."""

from mmlongbench.metrics.benchmark.answers import binary_acc, cls_acc, mc_acc, rouge, rouge_scorer, soft_acc, sub_em
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

__all__ = [
    "ClassLabel",
    "DocumentAnswer",
    "OptionLetter",
    "RougeL",
    "SubstringExactMatch",
    "TotalCount",
    "YesNo",
    "binary_acc",
    "cls_acc",
    "doc_qa",
    "mc_acc",
    "rouge",
    "rouge_scorer",
    "soft_acc",
    "sub_em",
]
