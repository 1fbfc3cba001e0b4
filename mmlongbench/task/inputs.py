"""Makes the input of a metric from a record, by calling the builder. All metrics get their input here."""

from mmlongbench.errors import DraftError
from mmlongbench.task.builder import Builder
from mmlongbench.task.evidence import Evidence
from mmlongbench.task.metric import ScoringInput
from mmlongbench.task.rows import Record, Row


def scoring_input(
    builder: Builder[Row], record: Record, file: str, prediction: str = "", *, lead: str = "", place: int = 0
) -> ScoringInput:
    """Return the input of a metric for one record; each method of the builder is called once.

    Args:
        builder: the builder of the record's dataset.
        record: one example in the public format.
        file: the public file of the record, below `mmlb_data/`.
        prediction: see `ScoringInput.prediction`.
        lead: see `ScoringInput.lead`.
        place: see `ScoringInput.place`.

    Raises:
        DraftError: the builder's `evidence` returns something other than an `Evidence` or None.

    """
    evidence = builder.evidence(record)
    if not isinstance(evidence, Evidence | None):
        raise DraftError(f"evidence() returned a {type(evidence).__name__}, expected mt.Evidence or None")
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
        accepted=tuple(builder.accepted(record)),
    )
