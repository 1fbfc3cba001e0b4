"""Visual RAG: answer a question about the entity in a picture from passages (paper, section 3; public files `vrag/`).

The hardest negatives are taken first, but all stand in a drawn order, so that rank and place are independent. InfoSeek:
the lead section of the entity's article is gold (several passages, 3 permutations). ViQuAE: the passage over the first
provenance span that holds an answer is gold (6 depths).
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import mmlongbench as mm
from builders.vrag.rows import EntityQuestion

_WRITE = "Write your answer in the following format:\nAnswer: [answer]\n\n"
_USE = "Use the given documents to write a concise and short answer to the question about "
INSTRUCTION = f"{_USE}the entity shown in the image. {_WRITE}"
NAMED_INSTRUCTION = f"{_USE}a named entity. {_WRITE}"
Gold = Literal["lead", "span"]


class VRAGOptions(mm.Options):
    """What a manifest may set."""

    gold: Gold = "lead"
    """Which passages are gold: the lead section of the entity's article, or the first span that holds an answer."""
    lead_fallback: Literal["none", "summary"] = "none"
    """Where the corpus has no article: reject, or take the knowledge base's summary, which is of another year."""


_PERMUTED = mm.Placements(mm.Permutation, (0, 1, 2))
_AT_DEPTHS = mm.Placements(mm.Depth, mm.DEPTHS)
_FILES = mm.FilePattern("vrag/{name}_K{k}_dep{placements}.jsonl")


class VRAG(mm.Builder[EntityQuestion]):
    """Visual retrieval-augmented generation with hard negatives."""

    row_type: ClassVar[type[mm.Row]] = EntityQuestion
    options: VRAGOptions

    options_type: ClassVar[type[mm.Options]] = VRAGOptions
    variants: ClassVar[tuple[str, ...]] = ("with_name", "occluded", "oracle")

    @property
    def spec(self) -> mm.TaskSpec:
        """Several gold passages are permuted, a single one stands at depths."""
        placements = _PERMUTED if self.options.gold == "lead" else _AT_DEPTHS
        return mm.TaskSpec(_FILES, "sub_em", category="VRAG", placements=placements)

    def draft(self, row: EntityQuestion, sources: mm.Sources, draws: mm.Draws) -> mm.Draft:
        """Gold at its depths; hard negatives in rank, then random ones where the manifest allows these.

        Raises:
            Rejected: the question cannot be asked; also then it is noted how its article was found.

        """
        lead = self._lead(row, sources.corpus) if self.options.gold == "lead" else None
        try:
            return self._draft(row, lead, sources, draws)
        except mm.Rejected as refused:
            raise mm.Rejected(refused.fault, lead.noted if lead else ()) from refused

    def _draft(self, row: EntityQuestion, lead: "_Gold | None", sources: mm.Sources, draws: mm.Draws) -> mm.Draft:
        """The draft of a question whose article has been looked for."""
        picture, corpus = sources.images[row.image], sources.corpus
        corpus.check(mm.Facts(_kept_out(row), _names(row), within=row.answer_range))
        found = self._span(row, corpus) if lead is None else _checked(lead, row)
        question = mm.Question(row.id, _ask(picture.path, row.question), {"row": row, "picture": picture})
        required = tuple(_unit(passage, "gold", None) for passage in found.gold)
        take_order = mm.Chain((_Negatives(corpus, _query(row, found), draws),))
        closing, noted = mm.Closing(), found.noted
        return mm.Draft(row.id, (INSTRUCTION,), (question,), required, take_order, closing=closing, noted=noted)

    def queries(self, row: EntityQuestion, sources: mm.Sources) -> list[mm.Query]:
        """The question with the entity's name, kept free of its answers and of its gold passages."""
        is_lead, corpus = self.options.gold == "lead", sources.corpus
        return [_query(row, self._lead(row, corpus) if is_lead else self._span(row, corpus))]

    def record(self, example: mm.Example) -> mm.Record:
        """One line of the public file."""
        row: EntityQuestion = example.question.data["row"]
        passages = [(unit.role, _released(unit)) for unit in example.units]
        picture: mm.Picture = example.question.data["picture"]
        return {
            "id": row.id,
            "question": row.question,
            "original_question": row.original_question,
            "image": picture.path,
            "answer": list(row.answer),
            "ctxs": [passage for _, passage in passages],
            "positive_ctxs": [passage for role, passage in passages if role == "gold"],
            "entity_id": row.entity_id,
            "entity_text": row.entity,
            "answer_range": " to ".join(map(str, row.answer_range or ())),
            "image_renamed": picture.is_renamed,
            "random_passages": sum(unit.data["is_random"] for unit in example.units),
        }

    def prompt(self, record: mm.Record) -> mm.Prompt:
        """The prompt of a released line."""
        return mm.assemble((INSTRUCTION,), _units(record["ctxs"]), "\n\n", _ask(record["image"], record["question"]))

    def render_variant(self, record: mm.Record, variant: str) -> mm.Prompt:
        """Return the prompt of a released line in another rendering.

        with_name: the question that names the entity, without a picture; occluded: without the gold passages; oracle:
        with the gold passages alone.
        """
        if variant == "with_name":
            named = (f"\n\nQuestion: {record['original_question']}\nAnswer:",)
            return mm.assemble((NAMED_INSTRUCTION,), _units(record["ctxs"]), "\n\n", named)
        if variant not in ("occluded", "oracle"):
            return super().render_variant(record, variant)
        gold = {passage["doc_id"] for passage in record["positive_ctxs"]}
        shown = [passage for passage in record["ctxs"] if (passage["doc_id"] in gold) == (variant == "oracle")]
        return self.prompt({**record, "ctxs": shown})

    def needles(self, record: mm.Record) -> list[mm.Part]:
        """Return the gold passages, with the titles that stand before them."""
        return [f"{_head(passage['title'])}{passage['text']}" for passage in record["positive_ctxs"]]

    def cluster(self, record: mm.Record) -> str:
        """Return the entity in the picture: its id, or the title of its article where the record has no id."""
        gold = record.get("positive_ctxs") or [{}]
        return str(record.get("entity_id") or gold[0].get("title", ""))

    def _lead(self, row: EntityQuestion, corpus: mm.SearchedCorpus) -> "_Gold":
        """The lead section of the entity's article, or the summary that stands in for it; no passage without either."""
        lead = corpus.lead(row.entity_id, row.entity)
        if lead.passages or not row.summary or self.options.lead_fallback == "none":
            return _Gold(lead.passages, noted=lead.noted)
        summary = mm.Passage(f"{row.entity_id}#summary", row.entity_id, row.entity, row.summary, 0)
        return _Gold((summary,), noted=("not joined but by its summary",))

    def _span(self, row: EntityQuestion, corpus: mm.SearchedCorpus) -> "_Gold":
        """The first passage over a provenance span that holds an answer."""
        over = [passage for span in row.spans for passage in corpus.paragraphs(*span)]
        if not over:
            expected = "an article of the provenance in the corpus, with its paragraphs"
            raise mm.Rejected(mm.Fault("no-article", expected, "none", field="output.provenance"))
        found = next((passage for passage in over if _holds(passage, row)), None)
        _require_answer(found is not None, "a provenance span")
        return _Gold(tuple(p for p in (found,) if p), tuple(p for p in over if p != found))


def _units(passages: Sequence[Mapping[str, str]]) -> list[mm.Unit]:
    """Passages of a record as units."""
    return [_unit(mm.Passage(str(n), "", p["title"], p["text"], 0), "negative", ()) for n, p in enumerate(passages)]


@dataclass(frozen=True, slots=True)
class _Gold:
    """The passages that answer a question."""

    gold: tuple[mm.Passage, ...]
    others: tuple[mm.Passage, ...] = ()
    """Passages that are neither gold nor allowed as negatives."""
    noted: tuple[str, ...] = ()
    """How the article was found, for the lock to count."""


@dataclass(frozen=True, slots=True)
class _Negatives:
    """Clean passages, the hardest first and random ones last, each standing at a drawn place."""

    corpus: mm.SearchedCorpus
    query: mm.Query
    draws: mm.Draws

    def __call__(self) -> Iterator[mm.Unit]:
        for passage in self.corpus.negatives(self.query):
            yield self._unit(passage, is_random=False)
        for passage in self.corpus.random_negatives(self.query):
            yield self._unit(passage, is_random=True)

    def _unit(self, passage: mm.Passage, *, is_random: bool) -> mm.Unit:
        return _unit(passage, "negative", (self.draws.rank("place", passage.id),), is_random=is_random)


def _unit(passage: mm.Passage, role: mm.Role, place: tuple[int, ...] | None, *, is_random: bool = False) -> mm.Unit:
    head = _head(passage.title)
    return mm.Unit(passage.id, role, passage.text, place, head, data={"title": passage.title, "is_random": is_random})


def _head(title: str) -> str:
    return f"Document (Title: {title}): "


def _released(unit: mm.Unit) -> dict[str, str]:
    return {"doc_id": unit.id, "title": unit.data["title"], "text": str(unit.body)}


def _ask(image: str, question: str) -> tuple[mm.Part, ...]:
    return ("\n\nQuestion: ", mm.Image(image), f"{question}\nAnswer:")


def _query(row: EntityQuestion, found: _Gold) -> mm.Query:
    """The search for hard negatives of a question whose gold passages are known."""
    names = (*_names(row), *(passage.title for passage in found.gold))
    excluded = frozenset(passage.id for passage in found.others)
    facts = mm.Facts(_kept_out(row), names, found.gold, excluded, row.answer_range)
    return mm.Query(row.id, row.original_question, facts)


def _kept_out(row: EntityQuestion) -> tuple[str, ...]:
    """The answers that no negative may hold; a range keeps every spelling of its numbers out by itself."""
    return () if row.answer_range else row.answer


def _names(row: EntityQuestion) -> tuple[str, ...]:
    """The entity's names, also without what tells it apart from others: "Merlin (bird)", "Jackson, Mississippi"."""
    given = [name for name in (row.entity, *row.names) if name]
    return tuple(dict.fromkeys([*given, *(re.sub(r"\s*\(.*\)$|,.*$", "", name) or name for name in given)]))


def _holds(passage: mm.Passage, row: EntityQuestion) -> bool:
    if row.answer_range:
        low, high = row.answer_range
        return any(low <= number <= high for number in mm.numbers_in(passage.text))
    return any(mm.contains(passage.text, answer) for answer in row.answer)


def _checked(lead: _Gold, row: EntityQuestion) -> _Gold:
    """Return the lead section of an article; refuse none, and one that does not hold the answer (Rejected)."""
    if not lead.gold:
        expected, todo = "the entity's article in the corpus", "check that the corpus has its Wikidata id or title"
        field = f"{row.entity_id} {row.entity}".strip()
        raise mm.Rejected(mm.Fault("no-article", expected, "none", field=field, todo=todo))
    _require_answer(any(_holds(passage, row) for passage in lead.gold), "its article's lead section")
    return lead


def _require_answer(is_held: bool, where: str) -> None:
    if not is_held:
        raise mm.Rejected(mm.Fault("gold-without-answer", f"an answer in {where}", "none", field="answer"))
