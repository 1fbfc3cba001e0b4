"""Makes `ScoringInput` from records of document questions, with any fields that a test sets."""

from builders.docvqa.builder import DocVQA
from builders.docvqa.rows import DocVQAOptions
from mmlongbench.task import Record
from mmlongbench.task.metrics import ScoringInput


def document_question(
    record: Record, gold: object, prediction: str, *, dataset: str = "roses", lead: str = ""
) -> ScoringInput:
    """Return the `ScoringInput` of a record of the public files `documentQA/`, as their builder makes it."""
    builder = DocVQA(dataset, DocVQAOptions())
    return ScoringInput(
        f"documentQA/{dataset}_K8.jsonl",
        dataset,
        str(record.get("id", "")),
        gold,
        prediction,
        lead,
        question=builder.question_of(record),
        answer_format=builder.answer_format(record),
        evidence=builder.evidence(record),
    )
