"""Visual RAG: answer a question about the entity in a picture from passages (paper, section 3; public files `vrag/`).

The hardest negatives are taken first, but all stand in a drawn order, so the place of a negative does not depend on its
rank. For InfoSeek, the lead section of the entity's article is gold: several passages, in three permutations. For
ViQuAE, one passage is gold, at six depths: the first passage of the provenance spans that holds an answer.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import mmlongbench.task as mt
from builders.vrag.rows import EntityQuestion

_WRITE = "Write your answer in the following format:\nAnswer: [answer]\n\n"
_USE = "Use the given documents to write a concise and short answer to the question about "
INSTRUCTION = f"{_USE}the entity shown in the image. {_WRITE}"
NAMED_INSTRUCTION = f"{_USE}a named entity. {_WRITE}"
Gold = Literal["lead", "span"]


class VRAGOptions(mt.Options):
    """The options that a manifest may set."""

    gold: Gold = "lead"
    """Which passages are gold. `lead`: the lead section of the entity's article. `span`: the first passage of
    the provenance spans (`EntityQuestion.spans`) that holds an answer."""
    lead_fallback: Literal["none", "summary"] = "none"
    """What is done if the corpus has no article of the entity. `none`: the question is rejected. `summary`: the summary
    of the knowledge base is used, which is of another year than the corpus."""


_PERMUTED = mt.Placements(mt.Permutation, (0, 1, 2))
_AT_DEPTHS = mt.Placements(mt.Depth, mt.DEPTHS)
_FILES = mt.FilePattern("vrag/{name}_K{k}_dep{placements}.jsonl")
_PAPER_IMAGES = (1.0,) * 5
"""The public program that prints Table 3 of the paper counts the one picture of the entity at every length."""


class VRAG(mt.Builder[EntityQuestion]):
    """Visual retrieval-augmented generation with hard negatives."""

    row_type: ClassVar[type[mt.Row]] = EntityQuestion
    options: VRAGOptions

    options_type: ClassVar[type[mt.Options]] = VRAGOptions
    variants: ClassVar[tuple[str, ...]] = ("with_name", "occluded", "oracle")
    record_fields: ClassVar[Mapping[str, str]] = {
        "id": "The id of the question, the same at every length and placement.",
        "question": "The question as it is asked beside the picture.",
        "original_question": "The question with the name of the entity, which the search for hard negatives uses.",
        "image": "The path of the picture below `mmlb_image/`.",
        "answer": "The accepted answers.",
        "ctxs": "The passages in the order of the prompt, each with doc_id, title and text.",
        "positive_ctxs": "The gold passages in the order of the prompt, with the same keys.",
        "entity_id": "The Wikidata id of the entity; empty if the source gives none.",
        "entity_text": "The name of the entity that the picture shows.",
        "answer_range": "The range of a numerical answer, such as `1800.0 to 1820.0`; empty for other answers.",
        "image_renamed": "Whether the picture has another name in the release than in the source.",
        "random_passages": "How many of the passages are random ones, which follow after the last hard negative.",
    }

    @property
    def spec(self) -> mt.TaskSpec:
        """Return the declarations: several gold passages are permuted, a single one is put at depths."""
        placements = _PERMUTED if self.options.gold == "lead" else _AT_DEPTHS
        return mt.TaskSpec(_FILES, "sub_em", category="VRAG", placements=placements, paper_images=_PAPER_IMAGES)

    def draft(self, row: EntityQuestion, sources: mt.Sources, draws: mt.Draws) -> mt.Draft:
        """Return a draft. Gold passages have no place, because a depth or a permutation places them. Hard negatives are
        taken by rank. Random negatives follow if the manifest allows them.

        Raises:
            Rejected: the question cannot be asked; the reject also notes how the question's article was found.

        """
        lead = self._lead(row, sources.corpus) if self.options.gold == "lead" else None
        try:
            return self._draft(row, lead, sources, draws)
        except mt.Rejected as refused:
            raise mt.Rejected(refused.fault, lead.noted if lead else ()) from refused

    def _draft(self, row: EntityQuestion, lead: "_Gold | None", sources: mt.Sources, draws: mt.Draws) -> mt.Draft:
        """Return the draft of a question; `lead` is its gold if the option `gold` is `lead`, otherwise None."""
        picture, corpus = sources.images[row.image], sources.corpus
        corpus.check(mt.Facts(_kept_out(row), _names(row), within=row.answer_range))
        found = self._span(row, corpus) if lead is None else _checked(lead, row)
        question = mt.Question(row.id, _ask(picture.path, row.question), {"row": row, "picture": picture})
        required = tuple(_unit(passage, "gold", None) for passage in found.gold)
        take_order = mt.Chain((_Negatives(corpus, _query(row, found), draws),))
        closing, noted = mt.Closing(), found.noted
        return mt.Draft(
            required,
            take_order,
            id=row.id,
            instruction=(INSTRUCTION,),
            questions=(question,),
            closing=closing,
            noted=noted,
        )

    def queries(self, row: EntityQuestion, sources: mt.Sources) -> list[mt.Query]:
        """Return a list of one search, whose text is the question with the entity's name. Passages that are gold or
        have an answer are excluded.
        """
        is_lead, corpus = self.options.gold == "lead", sources.corpus
        return [_query(row, self._lead(row, corpus) if is_lead else self._span(row, corpus))]

    def record(self, example: mt.PackedExample) -> mt.Record:
        """Return one line of the public file."""
        row: EntityQuestion = example.question.data["row"]
        passages = [(unit.role, _released(unit)) for unit in example.units]
        picture: mt.Picture = example.question.data["picture"]
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

    def prompt(self, record: mt.Record) -> mt.Prompt:
        """Return the prompt of a released line."""
        return mt.assemble((INSTRUCTION,), _units(record["ctxs"]), "\n\n", _ask(record["image"], record["question"]))

    def render_variant(self, record: mt.Record, variant: str) -> mt.Prompt:
        """Return the prompt of a released line in another form.

        `with_name`: the question names the entity, and there is no picture. `occluded`: the prompt lacks the gold
        passages. `oracle`: the prompt has only the gold passages.
        """
        if variant == "with_name":
            named = (f"\n\nQuestion: {record['original_question']}\nAnswer:",)
            return mt.assemble((NAMED_INSTRUCTION,), _units(record["ctxs"]), "\n\n", named)
        if variant not in ("occluded", "oracle"):
            return super().render_variant(record, variant)
        gold = {passage["doc_id"] for passage in record["positive_ctxs"]}
        shown = [passage for passage in record["ctxs"] if (passage["doc_id"] in gold) == (variant == "oracle")]
        return self.prompt({**record, "ctxs": shown})

    def needles(self, record: mt.Record) -> list[mt.Part]:
        """Return the gold passages, each with its title before it."""
        return [f"{_head(passage['title'])}{passage['text']}" for passage in record["positive_ctxs"]]

    def cluster(self, record: mt.Record) -> str:
        """Return the entity in the picture: its id, or the title of its article if the record has no id."""
        gold = record.get("positive_ctxs") or [{}]
        return str(record.get("entity_id") or gold[0].get("title", ""))

    def _lead(self, row: EntityQuestion, corpus: mt.SearchedCorpus) -> "_Gold":
        """Return the lead section of the entity's article. If there is none, return the summary of the
        knowledge base if the option `lead_fallback` allows it. Without either, return no passage.
        """
        lead = corpus.lead(row.entity_id, row.entity)
        if lead.passages or not row.summary or self.options.lead_fallback == "none":
            return _Gold(lead.passages, noted=lead.noted)
        summary = mt.Passage(f"{row.entity_id}#summary", row.entity_id, row.entity, row.summary, 0)
        return _Gold((summary,), noted=("not joined but by its summary",))

    def _span(self, row: EntityQuestion, corpus: mt.SearchedCorpus) -> "_Gold":
        """Return, as gold, the first passage of the provenance spans that holds an answer; raise `Rejected` if
        there is none. The other passages of the spans become `others`.
        """
        over = [passage for span in row.spans for passage in corpus.paragraphs(*span)]
        if not over:
            expected = "an article of the provenance in the corpus, with its paragraphs"
            raise mt.Rejected(
                mt.Fault(
                    "no-article",
                    expected,
                    "none",
                    field="output.provenance",
                    todo="add the article to the corpus, or take the row out",
                )
            )
        found = next((passage for passage in over if _holds(passage, row)), None)
        _require_answer(found is not None, "a provenance span")
        return _Gold(tuple(p for p in (found,) if p), tuple(p for p in over if p != found))


def _units(passages: Sequence[Mapping[str, str]]) -> list[mt.Unit]:
    """Return passages of a record as units."""
    return [_unit(mt.Passage(str(n), "", p["title"], p["text"], 0), "negative", ()) for n, p in enumerate(passages)]


@dataclass(frozen=True, slots=True)
class _Gold:
    """The passages that answer a question."""

    gold: tuple[mt.Passage, ...]
    others: tuple[mt.Passage, ...] = ()
    """Passages that are neither gold nor usable as negatives."""
    noted: tuple[str, ...] = ()
    """Phrases that the lock counts, which say how the article was found."""


@dataclass(frozen=True, slots=True)
class _Negatives:
    """Passages that are neither gold nor excluded, the hardest first and random ones last, each with a drawn place."""

    corpus: mt.SearchedCorpus
    query: mt.Query
    draws: mt.Draws

    def __call__(self) -> Iterator[mt.Unit]:
        for passage in self.corpus.negatives(self.query):
            yield self._unit(passage, is_random=False)
        for passage in self.corpus.random_negatives(self.query):
            yield self._unit(passage, is_random=True)

    def _unit(self, passage: mt.Passage, *, is_random: bool) -> mt.Unit:
        return _unit(passage, "negative", (self.draws.rank("place", passage.id),), is_random=is_random)


def _unit(passage: mt.Passage, role: mt.Role, place: tuple[int, ...] | None, *, is_random: bool = False) -> mt.Unit:
    head = _head(passage.title)
    return mt.Unit(passage.id, passage.text, place, role, head, data={"title": passage.title, "is_random": is_random})


def _head(title: str) -> str:
    return f"Document (Title: {title}): "


def _released(unit: mt.Unit) -> dict[str, str]:
    return {"doc_id": unit.id, "title": unit.data["title"], "text": str(unit.body)}


def _ask(image: str, question: str) -> tuple[mt.Part, ...]:
    return ("\n\nQuestion: ", mt.Image(image), f"{question}\nAnswer:")


def _query(row: EntityQuestion, found: _Gold) -> mt.Query:
    """Return the search for hard negatives of a question whose gold passages are known."""
    names = (*_names(row), *(passage.title for passage in found.gold))
    excluded = frozenset(passage.id for passage in found.others)
    facts = mt.Facts(_kept_out(row), names, found.gold, excluded, row.answer_range)
    return mt.Query(row.id, row.original_question, facts)


def _kept_out(row: EntityQuestion) -> tuple[str, ...]:
    """Return the answers that no negative may hold; empty if the answer is a range of numbers.

    The range itself is `Facts.within`, which keeps out passages with a number of the range in any spelling.
    """
    return () if row.answer_range else row.answer


def _names(row: EntityQuestion) -> tuple[str, ...]:
    """Return the entity's names, such as "Merlin (bird)" or "Jackson, Mississippi", and the same names without the
    qualifier in brackets or after the comma.
    """
    given = [name for name in (row.entity, *row.names) if name]
    return tuple(dict.fromkeys([*given, *(re.sub(r"\s*\(.*\)$|,.*$", "", name) or name for name in given)]))


def _holds(passage: mt.Passage, row: EntityQuestion) -> bool:
    if row.answer_range:
        low, high = row.answer_range
        return any(low <= number <= high for number in mt.numbers_in(passage.text))
    return any(mt.contains(passage.text, answer) for answer in row.answer)


def _checked(lead: _Gold, row: EntityQuestion) -> _Gold:
    """Return the lead section of an article; raise `Rejected` if there is no such section, or if it does not hold the
    answer.
    """
    if not lead.gold:
        expected, todo = "the entity's article in the corpus", "check that the corpus has its Wikidata id or title"
        field = f"{row.entity_id} {row.entity}".strip()
        raise mt.Rejected(mt.Fault("no-article", expected, "none", field=field, todo=todo))
    _require_answer(any(_holds(passage, row) for passage in lead.gold), "its article's lead section")
    return lead


def _require_answer(is_held: bool, where: str) -> None:
    if not is_held:
        raise mt.Rejected(
            mt.Fault(
                "gold-without-answer",
                f"an answer in {where}",
                "none",
                field="answer",
                todo="correct the answer or the passage, or take the row out",
            )
        )
