"""The row that every reader of entity questions makes for the builder, and the checks of fields that they share."""

from collections.abc import Mapping, Sequence

from builders.common import not_text
from mmlongbench.task import Fault, Row

MAX_CHARACTERS = 10_000
"""The maximum characters of a text field; a question has about a hundred."""


def texts_of(raw: Mapping[str, object], fields: Sequence[str]) -> dict[str, str] | Fault:
    """Return fields that must hold text, or the fault of the first one that is not valid."""
    texts = {field: value for field in fields if isinstance(value := raw.get(field), str)}
    for field in fields:
        if fault := not_text(raw, field):
            return fault
        if (length := len(texts[field])) > MAX_CHARACTERS:
            return Fault(
                "field-too-long",
                f"at most {MAX_CHARACTERS} characters",
                str(length),
                field=field,
                todo="shorten the field, or take the row out",
            )
    return texts


class EntityQuestion(Row):
    """One question about the entity that a picture shows."""

    question: str
    """The question as it is asked beside the picture."""
    original_question: str
    """The question with the entity's name instead of the picture; it is also the query of the retrieval."""
    image: str
    """The name of the picture in the source."""
    answer: tuple[str, ...]
    """The released answers; a match with any of them counts."""
    answer_range: tuple[float, float] | None = None
    """The range of a numerical answer; no negative may have a number within this range. None for other answers."""
    entity: str
    """The name of the entity."""
    names: tuple[str, ...] = ()
    """Other names of the entity, which no negative may contain."""
    entity_id: str
    """The Wikidata id of the entity; empty if unknown."""
    summary: str = ""
    """The knowledge base's own summary of the entity, from another year than the corpus."""
    spans: tuple[tuple[str, int, int], ...] = ()
    """The provenance: (document, first paragraph, last paragraph); empty if the lead section is gold."""
