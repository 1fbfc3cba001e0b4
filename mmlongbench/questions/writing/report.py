"""The report of a run: the funnel stage by stage, what each quota reached, and what the checks select."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from mmlongbench.questions.question import Line
from mmlongbench.questions.writing.balance import Reached, reached
from mmlongbench.questions.writing.families import family
from mmlongbench.questions.writing.funnel import Funnel, Stage, counts
from mmlongbench.questions.writing.lines import GOES_ON, Candidate, Judged
from mmlongbench.questions.writing.quotas import FIFTH
from mmlongbench.questions.writing.settings import WritingSettings
from mmlongbench.questions.writing.words_alone import MOST, TOLD, WordsAlone, words_alone

M_LONGDOC = {"automatic": 0.801, "people": 0.809}
"""The shares of generated questions that M-LongDoc's automatic check kept, and of these that people kept."""
LENIENT = 0.3
"""How much higher than the mean of the others a judge's mean grade must be to be named."""


class StageCount(Line):
    """How many questions reached a stage, and what became of them."""

    stage: str
    reached: int
    went_on: int
    revised: int
    held: int
    rejected: int
    pending: int
    reasons: dict[str, int]


class Group(Line):
    """How many questions of a group agree in the round trip; the groups that models answer less are kept less."""

    group: str
    asked: int
    all_agree: int
    some_agree: int
    none_agrees: int
    share: float
    """The share that at least one model answered; these pass by themselves."""


class Report(Line):
    """What `report.json` holds."""

    documents: dict[str, int]
    """How many documents are used, and left out by reason."""
    counts: dict[str, int]
    """Slots, and what became of them."""
    stages: tuple[StageCount, ...]
    beside: dict[str, float]
    """The share of questions that the checks by models kept, beside those of M-LongDoc."""
    quotas: tuple[Reached, ...]
    fifths: tuple[float, ...]
    """The share of evidence pages in each fifth of the documents."""
    selection: tuple[Group, ...]
    """Which questions the round trip selects."""
    words_alone: WordsAlone
    """Whether the words of a question tell that it has no answer."""
    calls: dict[str, int]
    """Calls and tokens of the whole run, by what the models counted."""
    grades: dict[str, float]
    """The mean grade that each judge gave."""
    notes: tuple[str, ...]


def report_of(funnel: Funnel, settings: WritingSettings) -> Report:
    """Return the report of a run."""
    ended = {slot: line for slot, (_, line) in funnel.ended.items()}
    left_out = Counter(line.reason or "used" for line in funnel.documents)
    stages = [_count(stage) for stage in funnel.stages]
    quotas = reached(funnel.drawn.quotas, funnel.accepted, funnel.drawn.slots, ended, funnel.held)
    fifths, words = _fifths(funnel), words_alone(funnel.accepted)
    words = words.model_copy(update={"dropped": sum(line.reason == TOLD for line in ended.values())})
    grades = _grades(funnel)
    calls = list(funnel.calls())
    totals = {
        "calls": len(calls),
        "input_tokens": sum(call.input_tokens for call in calls),
        "output_tokens": sum(call.output_tokens for call in calls),
    }
    return Report(
        documents=dict(sorted(left_out.items())),
        counts=counts(funnel),
        stages=tuple(stages),
        beside={"automatic": _automatic(stages), **{f"M-LongDoc, {name}": share for name, share in M_LONGDOC.items()}},
        quotas=tuple(quotas),
        fifths=fifths,
        selection=tuple(_selection(funnel)),
        words_alone=words,
        calls=totals,
        grades=grades,
        notes=tuple(_notes(settings, quotas, fifths, grades, words)),
    )


def _count(stage: Stage) -> StageCount:
    outcomes = Counter(line.outcome for line in stage.lines)
    reasons = Counter(line.reason for line in stage.lines if line.reason)
    return StageCount(
        stage=stage.name,
        reached=len(stage.lines),
        went_on=sum(line.outcome in GOES_ON for line in stage.lines),
        revised=outcomes["revised"],
        held=outcomes["held"],
        rejected=outcomes["rejected"],
        pending=outcomes["pending"],
        reasons=dict(sorted(reasons.items())),
    )


def _automatic(stages: Sequence[StageCount]) -> float:
    """Return the share of written questions that went through all checks, held ones included."""
    drafts = next((stage for stage in stages if stage.stage == "drafts"), None)
    last = next((stage for stage in stages if stage.stage == "drafts-grades"), None)
    return round(last.went_on / drafts.went_on, 4) if drafts and last and drafts.went_on else 0.0


def _fifths(funnel: Funnel) -> tuple[float, ...]:
    pages = {line.doc: line.pages for line in funnel.documents}
    found = Counter((page - 1) * 5 // pages[each.doc] for each in funnel.accepted for page in each.pages)
    total = sum(found.values())
    return tuple(round(found[fifth] / total, 4) if total else 0.0 for fifth in range(5))


def _selection(funnel: Funnel) -> Iterator[Group]:
    stage = next((stage for stage in funnel.stages if stage.name == "drafts-round-trip"), None)
    groups: dict[str, list[Judged]] = {}
    for line in stage.lines if stage else ():
        for group in _groups(line.candidate) if line.candidate else ():
            groups.setdefault(group, []).append(line)
    for group, lines in sorted(groups.items()):
        reasons = Counter(line.reason for line in lines)
        agreed = reasons["all"] + reasons["some"]
        yield Group(
            group=group,
            asked=len(lines),
            all_agree=reasons["all"],
            some_agree=reasons["some"],
            none_agrees=len(lines) - agreed,
            share=round(agreed / len(lines), 4),
        )


def _groups(candidate: Candidate) -> Iterator[str]:
    yield "all"
    yield f"kind: {candidate.kind}"
    yield f"format: {candidate.answer_format}"
    yield "computed" if candidate.is_computed else "read"


def _grades(funnel: Funnel) -> dict[str, float]:
    stage = next((stage for stage in funnel.stages if stage.name == "drafts-grades"), None)
    given: dict[str, list[int]] = {}
    for line in stage.lines if stage else ():
        said = line.detail.partition(": ")[2].partition(";")[0]
        for part in said.split(", "):
            model, _, grade = part.rpartition(" ")
            if model and grade.isdecimal():
                given.setdefault(model, []).append(int(grade))
    return {model: round(sum(found) / len(found), 4) for model, found in sorted(given.items())}


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
        if others and mean - sum(others) / len(others) > LENIENT:
            yield f"{model} grades {mean - sum(others) / len(others):.2f} higher than the other judges"
