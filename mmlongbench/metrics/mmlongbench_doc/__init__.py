"""MMLongBench-Doc's protocol: rules extract a concise answer and score it. ANLS, and accuracy and F1 over many
answers, are here, too.
"""

from mmlongbench.metrics.mmlongbench_doc.extraction import FAIL_TO_ANSWER, extract_answer
from mmlongbench.metrics.mmlongbench_doc.metrics import (
    ANLS,
    LenientRules,
    Rules,
    absent_details,
    accuracy_and_f1,
    score_extracted,
    scored_extracted,
    totals_of_extracted,
)

__all__ = [
    "ANLS",
    "FAIL_TO_ANSWER",
    "LenientRules",
    "Rules",
    "absent_details",
    "accuracy_and_f1",
    "extract_answer",
    "score_extracted",
    "scored_extracted",
    "totals_of_extracted",
]
