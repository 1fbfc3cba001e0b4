"""Says before the first call what a run will cost: calls and tokens of each stage, from the documents and the slots.

A question reaches a stage with the probability that it passes those before it (`stages.CHECKS`). Pages cost what the
rule of a model says for their size.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from mmlongbench.documents.pdf import POINTS_PER_INCH
from mmlongbench.questions.writing.agreement import JUDGES, READERS, SHOWN
from mmlongbench.questions.writing.documents import ReadDocument
from mmlongbench.questions.writing.lines import Slot
from mmlongbench.questions.writing.probes import GUESSES, OTHER_PAGES
from mmlongbench.questions.writing.settings import WritingSettings
from mmlongbench.questions.writing.stages import CHECKS, DRAFT_PASSES
from mmlongbench.questions.writing.whole import BLOCK, RANKED
from tokenization import vision_rule

RULE = "qwen2.5-vl"
"""The model whose rule counts pages, unless another is named."""
WORDS = 650
"""The tokens of an instruction with its schema, of the title, the question and the answer."""
REPLY: Mapping[str, int] = {"drafts": 220, "checklist": 240, "edits": 160}
OTHER_REPLY = 120
"""The tokens of a reply by stage."""
SMALL = 0.5
"""The share of whole numbers that are easily guessed, and are asked for several times."""
EVIDENCE = 2
"""The evidence pages of a cross-page question."""
LISTS_AND_COUNTS = 0.3
"""The share of answerable questions that are asked of the whole document."""


@dataclass(frozen=True, slots=True)
class Expected:
    """What a stage is expected to take."""

    stage: str
    questions: float
    """How many questions, or pages, reach it."""
    calls: float
    input_tokens: float
    output_tokens: float

    def cost(self, prices: tuple[float, float] | None) -> float:
        """Return the cost at the prices of a million tokens of prompt and of answer."""
        return (self.input_tokens * prices[0] + self.output_tokens * prices[1]) / 1e6 if prices else 0.0


@dataclass(frozen=True, slots=True)
class _Need:
    """What one question takes at a stage."""

    calls: float
    pages: float
    """The pages of all calls together."""


def page_tokens(documents: Mapping[str, ReadDocument], dpi: int, rule: str = RULE) -> float:
    """Return the mean tokens of a page at a resolution."""
    zoom, counted = dpi / POINTS_PER_INCH, vision_rule(rule)
    sizes = [(page.width, page.height) for document in documents.values() for page in document.pages]
    return fmean(counted.tokens(max(1, round(w * zoom)), max(1, round(h * zoom))) for w, h in sizes)


def forecast(
    documents: Mapping[str, ReadDocument],
    looks: int,
    slots: Sequence[Slot],
    settings: WritingSettings,
    *,
    is_sure: bool = False,
    rule: str = RULE,
) -> list[Expected]:
    """Return what each stage is expected to take; with `is_sure`, as if every question passed every check.

    Args:
        documents: the documents.
        looks: how many pages a model looks at.
        slots: the slots, as if a model saw figures wherever it looks.
        settings: the settings.
        is_sure: whether everything passes.
        rule: the model whose rule counts pages.

    """
    per_page = page_tokens(documents, settings.dpi, rule)
    found = [_expected("kinds", looks, _Need(looks, looks), per_page)]
    answerable = [slot for slot in slots if slot.kind != "unanswerable"]
    asked = [slot for slot in slots if slot.kind == "unanswerable"]
    drafted = [_Need(1, len(slot.pages) if slot.kind == "cross" else 3) for slot in answerable]
    found.append(_sum("drafts", 1.0, drafted, per_page))
    share = 1.0 if is_sure else DRAFT_PASSES
    reached: list[tuple[str, float]] = []
    for check in CHECKS:
        reached.append((check.name, share))
        needs = [_need(check.name, slot, documents, settings) for slot in answerable]
        found.append(_sum(check.name, share, needs, per_page))
        share *= 1.0 if is_sure else check.passes
    edits = min(len(asked), share * len(answerable)) / max(1, len(asked))
    found.append(_sum("edits", edits, [_Need(1, 1)] * len(asked), per_page))
    share_static = 1.0 if is_sure else DRAFT_PASSES * CHECKS[0].passes
    blocks = [_whole(slot, documents, is_answerable=False) for slot in asked]
    found.append(_sum("whole-document of edits", edits * share_static, blocks, per_page))
    return [each for each in found if each.calls]


def _need(stage: str, slot: Slot, documents: Mapping[str, ReadDocument], settings: WritingSettings) -> _Need:
    """Return what an answerable question takes at a stage."""
    evidence = EVIDENCE if slot.kind == "cross" else 1
    others = len(documents) > 1
    judges = min(JUDGES, max(1, len(settings.models) - 1))
    readers = min(READERS, max(1, len(settings.models) - 1))
    small = SMALL if slot.format == "Integer" else 0.0
    block = _whole(slot, documents, is_answerable=True)
    has_blocks = 1.0 if slot.format == "List" else LISTS_AND_COUNTS if slot.format == "Integer" else 0.0
    needs = {
        "no-document": _Need(1 + small * (GUESSES - 1), 0),
        "checklist": _Need(1, len(slot.pages) if slot.kind == "cross" else 3),
        "sufficiency": _Need(1, evidence),
        "wrong-document": _Need(1, evidence) if others else _Need(0, 0),
        "necessity": _Need(1, OTHER_PAGES),
        "each-page": _Need(evidence, evidence * (evidence - 1)) if evidence > 1 else _Need(0, 0),
        "whole-document": _Need(has_blocks * block.calls, has_blocks * block.pages),
        "round-trip": _Need(readers, readers * SHOWN),
        "grades": _Need(judges, judges * evidence),
    }
    return needs.get(stage, _Need(0, 0))


def _whole(slot: Slot, documents: Mapping[str, ReadDocument], *, is_answerable: bool) -> _Need:
    pages = len(documents[slot.doc].pages)
    count = -(-pages // BLOCK)
    ranked = 0 if count == 1 or is_answerable else 1
    return _Need(count + ranked, pages + ranked * RANKED)


def _sum(stage: str, share: float, needs: Sequence[_Need], per_page: float) -> Expected:
    calls, pages = sum(need.calls for need in needs), sum(need.pages for need in needs)
    return _expected(stage, share * len(needs), _Need(share * calls, share * pages), per_page)


def _expected(stage: str, questions: float, need: _Need, per_page: float) -> Expected:
    tokens = need.calls * WORDS + need.pages * per_page
    return Expected(stage, questions, need.calls, tokens, need.calls * REPLY.get(stage, OTHER_REPLY))
