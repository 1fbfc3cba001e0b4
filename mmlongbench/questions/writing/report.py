"""What a run will cost, said before the first call, and the report after it: the funnel stage by stage, what each quota
reached, and what the checks select.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from mmlongbench.documents.pdf import POINTS_PER_INCH
from mmlongbench.questions.table import Line
from mmlongbench.questions.writing import model_stages
from mmlongbench.questions.writing.asking import WritingSettings, family
from mmlongbench.questions.writing.documents import ReadDocument
from mmlongbench.questions.writing.funnel import DRAFT_PASSES, Funnel
from mmlongbench.questions.writing.lines import GOES_ON, Judged, Kind, Slot
from mmlongbench.questions.writing.quotas import MOST, TOLD, WordsAlone, words_alone
from tokenization import vision_rule

RULE = "qwen2.5-vl"  # the model whose rule counts pages, unless another is named
WORDS = 650  # the tokens of an instruction with its schema, of the title, the question and the answer
REPLY, OTHER_REPLY = {"drafts": 220, "checklist": 240, "edits": 160}, 120  # the tokens of a reply by stage
EASY = 0.5  # the share of whole numbers that are easily guessed, and are asked for several times
LISTS_AND_COUNTS = {"List": 1.0, "Integer": 0.3}  # the share of a format that is asked of the whole document
M_LONGDOC = {"automatic": 0.801, "people": 0.809}  # what M-LongDoc's check kept, and people kept of it
FIFTH = (0.12, 0.30)  # the smallest and the largest share of evidence pages in each fifth of the documents
LENIENT = 0.3  # how much higher than the mean of the others a judge's mean grade must be to be named


@dataclass(frozen=True, slots=True)
class Expected:
    stage: str
    calls: float
    input_tokens: float
    output_tokens: float

    def cost(self, prices: tuple[float, float] | None) -> float:
        """Return the cost at the prices of a million tokens of prompt and of answer."""
        return (self.input_tokens * prices[0] + self.output_tokens * prices[1]) / 1e6 if prices else 0.0


def forecast(
    documents: Mapping[str, ReadDocument],
    looks: int,
    slots: Sequence[Slot],
    settings: WritingSettings,
    *,
    is_sure: bool = False,
    rule: str = RULE,
) -> tuple[Expected, ...]:
    """Return what each stage is expected to take; with `is_sure`, as if every question passed every check.

    A question reaches a stage with the probability that it passes those before it (`CHECKS`). Pages cost what the rule
    of a model says for their size; a model looks at `looks` of them before the slots are drawn.
    """
    zoom, counted = settings.dpi / POINTS_PER_INCH, vision_rule(rule)
    per_page = fmean(
        counted.tokens(max(1, round(page.width * zoom)), max(1, round(page.height * zoom)))
        for document in documents.values()
        for page in document.pages
    )
    answerable = [slot for slot in slots if slot.kind != "unanswerable"]
    edited = [slot for slot in slots if slot.kind == "unanswerable"]
    stages: list[Expected] = []

    def add(stage: str, share: float, needs: Sequence[tuple[float, float]]) -> None:
        """Add what a share of questions takes; each needs a number of calls, and of pages in all calls together."""
        calls, pages = share * sum(calls for calls, _ in needs), share * sum(pages for _, pages in needs)
        if calls:
            tokens = calls * WORDS + pages * per_page
            stages.append(Expected(stage, calls, tokens, calls * REPLY.get(stage, OTHER_REPLY)))

    add("kinds", 1.0, [(looks, looks)])
    add("drafts", 1.0, [(1, len(slot.pages) if slot.kind == "cross" else 3) for slot in answerable])
    share = 1.0 if is_sure else DRAFT_PASSES
    needs = [_needs(slot, documents, settings) for slot in answerable]
    for check in model_stages.CHECKS:
        add(check.name, share, [need[check.name] for need in needs if check.name in need])
        share *= 1.0 if is_sure else check.passes
    edits = min(len(edited), share * len(answerable)) / max(1, len(edited))
    add("edits", edits, [(1, 1)] * len(edited))
    blocks = []
    for slot in edited:
        pages = len(documents[slot.doc].pages)
        count = -(-pages // model_stages.BLOCK)
        blocks.append((count, pages) if count < 2 else (count + 1, pages + model_stages.RANKED))
    edits *= 1.0 if is_sure else DRAFT_PASSES * model_stages.CHECKS[0].passes
    add("whole-document of edits", edits, blocks)
    return tuple(stages)


def _needs(
    slot: Slot, documents: Mapping[str, ReadDocument], settings: WritingSettings
) -> dict[str, tuple[float, float]]:
    """Return the calls, and the pages of all calls together, that an answerable question takes at each check."""
    evidence, others = 2 if slot.kind == "cross" else 1, max(1, len(settings.models) - 1)
    judges, readers = min(model_stages.JUDGES, others), min(model_stages.READERS, others)
    pages, about_all = len(documents[slot.doc].pages), LISTS_AND_COUNTS.get(slot.format, 0.0)
    needs = {
        "no-document": (1 + (EASY if slot.format == "Integer" else 0.0) * (model_stages.GUESSES - 1), 0.0),
        "checklist": (1, len(slot.pages) if slot.kind == "cross" else 3),
        "sufficiency": (1, evidence),
        "wrong-document": (1, evidence),
        "necessity": (1, model_stages.OTHER_PAGES),
        "each-page": (evidence, evidence * (evidence - 1)),
        "whole-document": (about_all * -(-pages // model_stages.BLOCK), about_all * pages),
        "round-trip": (readers, readers * model_stages.SHOWN),
        "grades": (judges, judges * evidence),
    }
    if len(documents) == 1:
        del needs["wrong-document"]
    if evidence == 1:
        del needs["each-page"]
    return needs


class StageCount(Line):
    stage: str
    reached: int
    went_on: int
    revised: int
    held: int
    rejected: int
    pending: int
    reasons: dict[str, int]


class Reached(Line):
    doc: str
    kind: Kind
    wanted: int
    least: int  # the minimum of MMLongBench-Doc for the document's type
    reached: int
    why_not: str = ""  # why it was not reached: pages, or reasons with their counts; empty if it was


class Report(Line):
    documents: dict[str, int]  # how many documents are used, and left out by reason
    counts: dict[str, int]  # slots, and what became of them
    stages: tuple[StageCount, ...]
    beside: dict[str, float]  # the share of questions that the checks by models kept, beside those of M-LongDoc
    quotas: tuple[Reached, ...]
    fifths: tuple[float, ...]  # the share of evidence pages in each fifth of the documents
    selection: tuple[dict[str, str | int | float], ...]
    """How many questions of each group models answer in the round trip; groups that they answer less are kept less."""
    words_alone: WordsAlone  # whether the words of a question tell that it has no answer
    calls: dict[str, int]  # calls and tokens of the whole run, by what the models counted
    grades: dict[str, float]  # the mean grade that each judge gave
    notes: tuple[str, ...]


def report_of(funnel: Funnel) -> Report:
    stages = {}
    for name, lines in funnel.stages.items():
        outcomes = Counter(line.outcome for line in lines)
        stages[name] = StageCount(
            stage=name,
            reached=len(lines),
            went_on=sum(outcomes[outcome] for outcome in GOES_ON),
            **{outcome: outcomes[outcome] for outcome in ("revised", "held", "rejected", "pending")},
            reasons=dict(sorted(Counter(line.reason for line in lines if line.reason).items())),
        )
    drafts, last = stages["drafts"].went_on, stages["drafts-grades"].went_on
    pages = {line.doc: line.pages for line in funnel.documents}
    evidence = Counter(
        (page - 1) * 5 // pages[candidate.doc] for candidate in funnel.accepted for page in candidate.pages
    )
    fifths = tuple(round(evidence[fifth] / max(1, evidence.total()), 4) for fifth in range(5))
    words, _ = words_alone(funnel.accepted)
    words = words.model_copy(update={"dropped": stages["words-alone"].reasons.get(TOLD, 0)})
    quotas, calls = _reached(funnel), list(funnel.calls())
    given: dict[str, list[int]] = {}
    for line in funnel.stages["drafts-grades"]:
        said = line.detail.partition(": ")[2].partition(";")[0]  # as `model_stages.grades` writes it
        for part in said.split(", "):
            model, _, grade = part.rpartition(" ")
            if model and grade.isdecimal():
                given.setdefault(model, []).append(int(grade))
    grades = {model: round(fmean(grades), 4) for model, grades in sorted(given.items())}
    return Report(
        documents=dict(sorted(Counter(line.reason or "used" for line in funnel.documents).items())),
        counts=funnel.counts,
        stages=tuple(stages.values()),
        beside={
            "automatic": round(last / drafts, 4) if drafts else 0.0,
            **{f"M-LongDoc, {name}": share for name, share in M_LONGDOC.items()},
        },
        quotas=tuple(quotas),
        fifths=fifths,
        selection=tuple(_selection(funnel.stages["drafts-round-trip"])),
        words_alone=words,
        calls={
            "calls": len(calls),
            "input_tokens": sum(call.input_tokens for call in calls),
            "output_tokens": sum(call.output_tokens for call in calls),
        },
        grades=grades,
        notes=tuple(_notes(funnel.settings, quotas, fifths, grades, words)),
    )


def _reached(funnel: Funnel) -> list[Reached]:
    accepted = Counter((candidate.doc, candidate.kind) for candidate in funnel.accepted)
    held = Counter((candidate.doc, candidate.kind) for candidate in funnel.held)
    reasons: dict[tuple[str, Kind], Counter[str]] = {}
    ended = funnel.ended
    for slot in funnel.slots:
        if slot.id in ended:
            reasons.setdefault((slot.doc, slot.kind), Counter())[ended[slot.id][1].reason] += 1
    lines = []
    for quota in funnel.quotas:
        key, why = (quota.doc, quota.kind), ""
        if accepted[key] < quota.wanted:
            parts = [f"{reason} {count}" for reason, count in sorted(reasons.get(key, {}).items())]
            parts = [quota.why_fewer, *parts, f"held for people {held[key]}" if held[key] else ""]
            why = "; ".join(filter(None, parts)) or "at most two questions a page, one of each kind"
        wanted = {"wanted": quota.wanted, "least": quota.least, "reached": accepted[key]}
        lines.append(Reached(doc=quota.doc, kind=quota.kind, **wanted, why_not=why))
    return lines


def _selection(round_trip: Sequence[Judged]) -> Iterator[dict[str, str | int | float]]:
    groups: dict[str, Counter[str]] = {}
    for line in round_trip:
        if candidate := line.candidate:
            how = "computed" if candidate.is_computed else "read"
            for group in ("all", f"kind: {candidate.kind}", f"format: {candidate.answer_format}", how):
                groups.setdefault(group, Counter())[line.reason] += 1
    for group, reasons in sorted(groups.items()):
        asked, agreed = reasons.total(), reasons["all"] + reasons["some"]
        yield {
            "group": group,
            "asked": asked,
            "all_agree": reasons["all"],
            "some_agree": reasons["some"],
            "none_agrees": asked - agreed,
            "share": round(agreed / asked, 4),  # that at least one model answered; these pass by themselves
        }


def _notes(
    settings: WritingSettings,
    quotas: Sequence[Reached],
    fifths: Sequence[float],
    grades: Mapping[str, float],
    words: WordsAlone,
) -> Iterator[str]:
    families = {family(model) for model in settings.models}
    if len(families) < 4:
        yield f"{len(families)} families of models: the round trip and the committee have fewer members than 2 and 3"
    if missed := [quota for quota in quotas if quota.reached < quota.least]:
        yield f"{len(missed)} minima of MMLongBench-Doc are not reached; report.json says why"
    low, high = FIFTH
    if any(fifths) and not all(low <= share <= high for share in fifths):
        shares = ", ".join(f"{share:.0%}" for share in fifths)
        yield f"evidence pages by fifth of the documents: {shares}; wanted {low:.0%} to {high:.0%}"
    if words.dropped:
        yield f"{words.dropped} unanswerable questions were dropped, because their words tell that they have no answer"
    if words.is_undecided:
        said = words.why if words.area is None else f"area {words.area:.2f}, by chance up to {words.by_chance:.2f}"
        yield f"whether words alone tell unanswerable questions (at most {MOST:.2f} is wanted) is undecided: {said}"
    for model, mean in grades.items():
        others = [grade for other, grade in grades.items() if other != model]
        if others and mean - fmean(others) > LENIENT:
            yield f"{model} grades {mean - fmean(others):.2f} higher than the other judges"
