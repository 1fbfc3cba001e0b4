"""MMLongBench-Doc's protocol: rules extract a concise answer and score it. ANLS, and accuracy and F1 over many
answers, are here, too.
"""

from mmlongbench.answers import NOT_ANSWERABLE, anls
from mmlongbench.metrics.mmlongbench_doc.extraction import extract_answer
from mmlongbench.metrics.mmlongbench_doc.metrics import (
    ANLS,
    LenientRules,
    Rules,
    absent_details,
    scored_extracted,
    totals_of_extracted,
)
from mmlongbench.metrics.mmlongbench_doc.rules import (
    FAIL_TO_ANSWER,
    Judged,
    accuracy_and_f1,
    score_extracted,
)

__all__ = [
    "ANLS",
    "FAIL_TO_ANSWER",
    "NOT_ANSWERABLE",
    "Judged",
    "LenientRules",
    "Rules",
    "absent_details",
    "accuracy_and_f1",
    "anls",
    "extract_answer",
    "score_extracted",
    "scored_extracted",
    "totals_of_extracted",
]
