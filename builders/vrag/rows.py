"""The row that every reader of entity questions makes for the builder."""

from mmlongbench.task import Row


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
