"""Counts of questions and rejects, and distributions beside those of MMLongBench-Doc."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from mmlongbench.questions.question import Line, Question, Reject

MMLONGBENCH_DOC: Mapping[str, Mapping[str, float]] = {
    "answer_format": {"String": 29.1, "Integer": 34.8, "Float": 18.5, "List": 17.6},
    "evidence_pages": {"single-page": 45.7, "cross-page": 33.7, "unanswerable": 20.6},
    "source": {"Text": 35.5, "Layout": 13.9, "Table": 25.4, "Chart": 20.7, "Figure": 35.4},
}
"""The shares in per cent in MMLongBench-Doc (camera-ready, Table 2). Formats and sources are those of its answerable
questions; an answer may have several sources."""


class Share(Line):
    """How often a value occurs."""

    value: str
    """The value."""
    count: int
    """How many questions have it."""
    share: float
    """Their share in per cent."""
    mmlongbench_doc: float | None = None
    """The share in MMLongBench-Doc; None if it does not report it."""


class Summary(Line):
    """What `summary.json` holds."""

    questions: int
    """How many questions there are."""
    rejected: int
    """How many candidates were left out."""
    by_document: dict[str, dict[str, int]]
    """How many questions of each kind each document has."""
    by_kind: dict[str, int]
    """How many questions there are of each kind."""
    rejects: dict[str, dict[str, int]]
    """How many candidates were left out, by stage and reason."""
    distributions: dict[str, tuple[Share, ...]]
    """Shares of answer formats, numbers of evidence pages, and sources, beside those of MMLongBench-Doc."""
    counts: dict[str, int]
    """Further counts by name."""
    made_with: dict[str, str]
    """What else decides the questions, such as the versions of programs."""


def summarise(
    questions: Sequence[Question],
    rejects: Sequence[Reject],
    counts: Mapping[str, int],
    made_with: Mapping[str, str],
) -> Summary:
    """Return the counts of questions and rejects."""
    by_document: dict[str, Counter[str]] = {}
    for each in questions:
        by_document.setdefault(each.document, Counter())[each.kind] += 1
    by_reason: dict[str, Counter[str]] = {}
    for left in rejects:
        by_reason.setdefault(left.stage, Counter())[left.reason] += 1
    return Summary(
        questions=len(questions),
        rejected=len(rejects),
        by_document={name: _sorted(found) for name, found in sorted(by_document.items())},
        by_kind=_sorted(Counter(each.kind for each in questions)),
        rejects={stage: _sorted(found) for stage, found in sorted(by_reason.items())},
        distributions=_distributions(questions),
        counts=dict(sorted(counts.items())),
        made_with=dict(sorted(made_with.items())),
    )


def _distributions(questions: Sequence[Question]) -> dict[str, tuple[Share, ...]]:
    answerable = [each for each in questions if each.answer_format != "None"]
    values: dict[str, tuple[list[str], int]] = {
        "answer_format": ([each.answer_format for each in answerable], len(answerable)),
        "evidence_pages": ([evidence_pages(each) for each in questions], len(questions)),
        "source": ([source for each in answerable for source in each.sources], len(answerable)),
    }
    return {name: tuple(_shares(found, of, MMLONGBENCH_DOC[name])) for name, (found, of) in values.items()}


def evidence_pages(question: Question) -> str:
    """Return the group of a question by its number of pages, as MMLongBench-Doc names it."""
    if question.answer_format == "None":
        return "unanswerable"
    return "single-page" if len(question.pages) == 1 else "cross-page"


def _shares(found: Iterable[str], of: int, public: Mapping[str, float]) -> list[Share]:
    counts = Counter(found)
    names = [*public, *sorted(set(counts) - set(public))]
    return [
        Share(
            value=name,
            count=counts[name],
            share=round(100 * counts[name] / of, 1) if of else 0.0,
            mmlongbench_doc=public.get(name),
        )
        for name in names
    ]


def _sorted(counts: Counter[str]) -> dict[str, int]:
    return dict(sorted(counts.items()))
