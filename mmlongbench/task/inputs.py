"""Fills what a metric is given of an example, by asking the builder. The only way from a record to a metric."""

from mmlongbench.errors import DraftError
from mmlongbench.task.builder import Builder
from mmlongbench.task.evidence import Evidence
from mmlongbench.task.metric import ScoringInput
from mmlongbench.task.rows import Record, Row


def scoring_input(
    builder: Builder[Row], record: Record, file: str, prediction: str = "", *, lead: str = "", place: int = 0
) -> ScoringInput:
    """Return what a metric is given of one record; each method of the builder is called once.

    Args:
        builder: bound to the dataset of the record.
        record: one example in the public format.
        file: the public file of the record, below `mmlb_data/`.
        prediction: see `ScoringInput.prediction`.
        lead: see `ScoringInput.lead`.
        place: see `ScoringInput.place`.

    Raises:
        DraftError: `evidence` gives something that is no `Evidence`.

    """
    evidence = builder.evidence(record)
    if not isinstance(evidence, Evidence | None):
        raise DraftError(f"evidence() gave a {type(evidence).__name__}, expected mm.Evidence or None")
    return ScoringInput(
        file,
        builder.dataset,
        str(record.get("id", "")),
        builder.gold(record),
        prediction,
        lead=lead,
        place=place,
        kind=builder.spec.kind,
        question=builder.question(record),
        answer_format=builder.answer_format(record),
        evidence=evidence,
        source_id=builder.source_id(record),
        cluster=builder.cluster(record),
        facets=builder.facets(record),
    )
