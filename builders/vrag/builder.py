"""Visual RAG: answer a question about the entity in a picture from passages (paper, section 3; public files `vrag/`).

The hardest negatives are taken first, but all stand in a drawn order, so the place of a negative does not depend on its
rank. For InfoSeek, the lead section of the entity's article is gold: several passages, in three permutations. For
ViQuAE, one passage is gold, at six depths: the first passage of the provenance spans that holds an answer.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import ClassVar, Literal

import mmlongbench.task as mt
from builders.common import refused
from builders.vrag.readers import EntityQuestion

_WRITE = "Write your answer in the following format:\nAnswer: [answer]\n\n"
_USE = "Use the given documents to write a concise and short answer to the question about "
INSTRUCTION = f"{_USE}the entity shown in the image. {_WRITE}"
_HEAD = "Document (Title: {}): "
NAMED_INSTRUCTION = f"{_USE}a named entity. {_WRITE}"


class VRAGOptions(mt.Options):
    """The options that a manifest may set."""

    gold: Literal["lead", "span"] = "lead"
    """Which passages are gold. `lead`: the lead section of the entity's article. `span`: the first passage of
    the provenance spans (`EntityQuestion.spans`) that holds an answer."""
    lead_fallback: Literal["none", "summary"] = "none"
    """What is done if the corpus has no article of the entity. `none`: the question is rejected. `summary`: the summary
    of the knowledge base is used, which is of another year than the corpus."""


class VRAG(mt.advanced.Builder[EntityQuestion]):
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
    def spec(self) -> mt.advanced.TaskSpec:
        # several gold passages are permuted, a single one is put at depths
        permuted, at_depths = mt.Placements(mt.Permutation, (0, 1, 2)), mt.Placements(mt.Depth, mt.DEPTHS)
        return mt.advanced.TaskSpec(
            files=mt.readers.FilePattern("vrag/{name}_K{k}_dep{placements}.jsonl"),
            metric="sub_em",
            category="VRAG",
            placements=permuted if self.options.gold == "lead" else at_depths,
            # the public program that prints Table 3 counts the one picture of the entity at every length
            paper_images=(1.0,) * 5,
        )

    def draft(self, row: EntityQuestion, sources: mt.Sources, draws: mt.Draws) -> mt.advanced.ContextDraft:
        """Return a draft. Gold passages have no place, because a depth or a permutation places them. Hard negatives are
        taken by rank. Random negatives follow if the manifest allows them. A reject also notes how the question's
        article was found.
        """
        corpus = sources.corpus
        query, noted = self._search(row, corpus)
        try:
            picture = sources.images[row.image]
            corpus.check(mt.advanced.Facts(query.facts.answers, _names(row), within=row.answer_range))
            self._check_gold(row, query.facts)
        except mt.Rejected as reject:
            raise mt.Rejected(reject.fault, noted) from reject

        def negatives() -> Iterator[mt.Unit]:
            for find, is_random in ((corpus.negatives, False), (corpus.random_negatives, True)):
                for passage in find(query):
                    yield _unit(passage, "negative", (draws.rank("place", passage.id),), is_random=is_random)

        question = mt.advanced.Question(row.id, _ask(picture.path, row.question), {"row": row, "picture": picture})
        return mt.advanced.ContextDraft(
            required=tuple(_unit(passage, "gold", None) for passage in query.facts.gold),
            take_order=mt.Chain((negatives,)),
            id=row.id,
            instruction=(INSTRUCTION,),
            questions=(question,),
            closing=mt.Closing(),
            noted=noted,
        )

    def queries(self, row: EntityQuestion, sources: mt.Sources) -> list[mt.advanced.Query]:
        return [self._search(row, sources.corpus)[0]]

    def _search(
        self, row: EntityQuestion, corpus: mt.advanced.SearchedCorpus
    ) -> tuple[mt.advanced.Query, tuple[str, ...]]:
        """Return (the search for hard negatives, by the question with the entity's name; phrases that the lock counts,
        which say how the article was found). Without an article of the entity, the search has no gold passages and
        excludes none.
        """
        noted: tuple[str, ...] = ()
        others: list[mt.advanced.Passage] = []  # neither gold nor usable as negatives
        if self.options.gold == "span":
            passages = [passage for span in row.spans for passage in corpus.paragraphs(*span)]
            gold = tuple([passage for passage in passages if _holds_answer(passage, row)][:1])
            others = [passage for passage in passages if passage not in gold]
        else:
            lead = corpus.lead(row.entity_id, row.entity)
            gold, noted = tuple(lead.passages), lead.noted
            if not gold and row.summary and self.options.lead_fallback == "summary":
                gold = (mt.advanced.Passage(f"{row.entity_id}#summary", row.entity_id, row.entity, row.summary, 0),)
                noted = ("not joined but by its summary",)
        # `Facts.within` keeps out passages with a number of the range in any spelling
        answers = () if row.answer_range else row.answer
        names, excluded = (*_names(row), *(passage.title for passage in gold)), frozenset(each.id for each in others)
        facts = mt.advanced.Facts(answers, names, gold, excluded, row.answer_range)
        return mt.advanced.Query(row.id, row.original_question, facts), noted

    def _check_gold(self, row: EntityQuestion, facts: mt.advanced.Facts) -> None:
        where, article = "a provenance span", "an article of the provenance in the corpus, with its paragraphs"
        field, todo = "output.provenance", "add the article to the corpus, or take the row out"
        if self.options.gold == "lead":
            where, article = "its article's lead section", "the entity's article in the corpus"
            field, todo = f"{row.entity_id} {row.entity}".strip(), "check that the corpus has its Wikidata id or title"
        if not facts.gold and not facts.excluded:
            raise refused("no-article", article, "none", field, todo)
        if not any(_holds_answer(passage, row) for passage in facts.gold):
            todo = "correct the answer or the passage, or take the row out"
            raise refused("gold-without-answer", f"an answer in {where}", "none", "answer", todo)

    def record(self, example: mt.PackedExample) -> mt.Record:
        row: EntityQuestion = example.question.data["row"]
        picture: mt.advanced.Picture = example.question.data["picture"]
        passages = [{"doc_id": unit.id, "title": unit.data["title"], "text": str(unit.body)} for unit in example.units]
        return {
            "id": row.id,
            "question": row.question,
            "original_question": row.original_question,
            "image": picture.path,
            "answer": list(row.answer),
            "ctxs": passages,
            "positive_ctxs": [
                passage for passage, unit in zip(passages, example.units, strict=True) if unit.role == "gold"
            ],
            "entity_id": row.entity_id,
            "entity_text": row.entity,
            "answer_range": " to ".join(map(str, row.answer_range or ())),
            "image_renamed": picture.is_renamed,
            "random_passages": sum(unit.data["is_random"] for unit in example.units),
        }

    def prompt(self, record: mt.Record) -> mt.Prompt:
        question = _ask(record["image"], record["question"])
        return mt.Prompt.of_units((INSTRUCTION,), _shown(record["ctxs"]), "\n\n", question)

    def render_variant(self, record: mt.Record, variant: str) -> mt.Prompt:
        """Return a prompt in which the question names the entity and has no picture (`with_name`), without the gold
        passages (`occluded`), or with these alone (`oracle`).
        """
        if variant == "with_name":
            question = f"\n\nQuestion: {record['original_question']}\nAnswer:"
            return mt.Prompt.of_units((NAMED_INSTRUCTION,), _shown(record["ctxs"]), "\n\n", (question,))
        if variant not in ("occluded", "oracle"):
            return super().render_variant(record, variant)
        gold = {passage["doc_id"] for passage in record["positive_ctxs"]}
        shown = [passage for passage in record["ctxs"] if (passage["doc_id"] in gold) == (variant == "oracle")]
        return self.prompt({**record, "ctxs": shown})

    def needles(self, record: mt.Record) -> list[mt.Part]:
        return ["".join(parts) for parts in _shown(record["positive_ctxs"])]

    def cluster(self, record: mt.Record) -> str:
        """Return the entity in the picture: its id, or the title of its article if the record has no id."""
        gold = record.get("positive_ctxs") or [{}]
        return str(record.get("entity_id") or gold[0].get("title", ""))


def _unit(
    passage: mt.advanced.Passage, role: mt.advanced.Role, place: tuple[int, ...] | None, *, is_random: bool = False
) -> mt.Unit:
    data = {"title": passage.title, "is_random": is_random}
    return mt.Unit(passage.id, passage.text, place, role, _HEAD.format(passage.title), data=data)


def _shown(passages: Sequence[Mapping[str, str]]) -> list[tuple[str, str]]:
    return [(_HEAD.format(passage["title"]), passage["text"]) for passage in passages]


def _ask(image: str, question: str) -> tuple[mt.Part, ...]:
    return ("\n\nQuestion: ", mt.Image(image), f"{question}\nAnswer:")


def _names(row: EntityQuestion) -> tuple[str, ...]:
    """Return the entity's names, such as "Merlin (bird)" or "Jackson, Mississippi", and the same names without the
    qualifier in brackets or after the comma.
    """
    given = [name for name in (row.entity, *row.names) if name]
    return tuple(dict.fromkeys([*given, *(re.sub(r"\s*\(.*\)$|,.*$", "", name) or name for name in given)]))


def _holds_answer(passage: mt.advanced.Passage, row: EntityQuestion) -> bool:
    if row.answer_range:
        low, high = row.answer_range
        return any(low <= number <= high for number in mt.advanced.numbers_in(passage.text))
    return any(mt.contains(passage.text, answer) for answer in row.answer)
