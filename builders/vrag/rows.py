"""The row that every reader of entity questions gives to the builder."""

from mmlongbench import Row


class EntityQuestion(Row):
    """One question about the entity that a picture shows."""

    question: str
    """As it is asked beside the picture."""
    original_question: str
    """With the entity's name in place of the picture: also the query of the retrieval."""
    image: str
    """The picture, as the source names it."""
    answer: tuple[str, ...]
    """What is released; any match counts."""
    answer_range: tuple[float, float] | None = None
    """Of a numerical answer: no negative may hold a number within."""
    entity: str
    names: tuple[str, ...] = ()
    """Other names of the entity, which no negative may hold."""
    entity_id: str
    summary: str = ""
    """The knowledge base's own summary of the entity, of another year than the corpus."""
    spans: tuple[tuple[str, int, int], ...] = ()
    """Provenance: (document, first paragraph, last paragraph); none where the lead section is gold."""
