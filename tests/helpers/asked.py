"""What metrics are given of records of document questions, whatever the fields hold that a test writes into them."""

from builders.docvqa.builder import DocVQA
from builders.docvqa.options import DocVQAOptions
from mmlongbench.task.metric import ScoringInput
from mmlongbench.task.rows import Record


def document_question(
    record: Record, gold: object, prediction: str, *, dataset: str = "roses", lead: str = ""
) -> ScoringInput:
    """Return what a metric reads of a record of the public files `documentQA/`, told by their builder."""
    builder = DocVQA(dataset, DocVQAOptions())
    return ScoringInput(
        f"documentQA/{dataset}_K8.jsonl",
        dataset,
        str(record.get("id", "")),
        gold,
        prediction,
        lead,
        question=builder.question(record),
        answer_format=builder.answer_format(record),
        evidence=builder.evidence(record),
    )
