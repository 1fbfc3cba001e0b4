"""The funnel in one table: the stages that a draft passes, in their order, and why each may end a question.

    pages → kinds → slots → drafts → the checks below → edits → the same checks → balance → words-alone → table → people

`pages` and `kinds` say what is on each page, `slots` draws a place for each question, `drafts` writes it. Answerable
questions go through the checks first; `edits` then makes unanswerable ones of those that passed, and these go through
the checks, too. Cheap checks stand before costly ones. A question ends at the first check that it fails. A question
whose evidence is revised goes through the checks before it again (`AGAIN`). `balance` takes what the quotas want; the
rest is kept as surplus. `words-alone` drops unanswerable questions that are told by their words.

Slots = accepted + surplus + held + rejected + pending, always; as long as a call is pending, no table is written.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from mmlongbench.questions.writing import agreement, checklist, decontamination, near, probes, statics, whole
from mmlongbench.questions.writing.context import Context
from mmlongbench.questions.writing.lines import Candidate, Judged
from mmlongbench.questions.writing.words_alone import TOLD

CheckOne: TypeAlias = Callable[[Candidate, Context], Judged]
"""Says something about one question."""
For: TypeAlias = Literal["all", "answerable", "several pages", "about all"]
"""Which questions a check is for: all; those with an answer; those with several evidence pages; those that are about
the whole document (no answer, counts, lists). Other questions pass it."""


@dataclass(frozen=True, slots=True)
class Check:
    """A stage that checks questions one by one, or all together."""

    name: str
    what: str
    """What it finds out."""
    is_for: For
    reasons: tuple[str, ...]
    """Why it rejects, holds or revises a question."""
    passes: float
    """The share of questions that is expected to go on, to estimate calls before they are made."""
    source: str
    """Where this share, or the check, comes from."""
    one: CheckOne | None = None
    """Checks one question; None for checks that compare questions with each other or with benchmarks."""

    def applies(self, candidate: Candidate) -> bool:
        """Return whether the check is for a question."""
        if self.is_for == "answerable":
            return candidate.is_answerable
        if self.is_for == "several pages":
            return len(candidate.pages) > 1
        return self.is_for == "all" or whole.is_about_all(candidate)


CHECKS: Sequence[Check] = (
    Check(
        "static",
        "form, pages, format, wording, and where the answer stands in the text; no model",
        "all",
        (
            *("page-not-shown", "page-out-of-range", "too-many-pages", "long-form-answer", "empty-answer"),
            *("unknown-answer-format", "answer-of-format-none", "preamble", "several-questions", "answer-in-question"),
            *("deictic", "document-meta", "length", "qualifier-missing", "ungrounded", "evidence-page-elsewhere"),
            *("not-a-minimal-edit", "qualifier-in-document"),
        ),
        0.90,
        "our choice",
        statics.check,
    ),
    Check(
        "duplicates",
        "whether a smaller slot of the document asks the same; no model",
        "all",
        ("duplicate", "near-duplicate"),
        0.98,
        "M-LongDoc's release: 40 of 2,520 are near-duplicates",
    ),
    Check(
        "decontamination",
        "whether a named benchmark has the question or its page; no model",
        "all",
        ("benchmark-question", "benchmark-page"),
        1.0,
        "our choice",
    ),
    Check(
        "no-document",
        "whether a model knows the answer without the document",
        "answerable",
        ("answerable-without-document", "unchecked-without-document"),
        0.92,
        "MMLongBench-Doc, section 3.3",
        probes.without_document,
    ),
    Check(
        "checklist",
        "M-LongDoc's four items, by a model of another family than the author's",
        "answerable",
        ("checklist-type", "checklist-need", "checklist-clear", "checklist-difficulty", "invalid-reply", "refusal"),
        0.801,
        "M-LongDoc, section 2.2",
        checklist.check,
    ),
    Check(
        "sufficiency",
        "whether the evidence pages alone give the answer",
        "answerable",
        ("evidence-insufficient",),
        0.90,
        "MMLongBench-Doc, section 5.1",
        probes.sufficiency,
    ),
    Check(
        "wrong-document",
        "whether another document gives the answer",
        "answerable",
        ("document-independent", "anchor-weak"),
        0.98,
        "MMLongBench, B.5",
        probes.wrong_document,
    ),
    Check(
        "necessity",
        "whether other pages give the answer, too; the evidence is revised",
        "answerable",
        ("evidence-elsewhere",),
        1.0,
        "M-LongDoc, section 4.1",
        probes.necessity,
    ),
    Check(
        "each-page",
        "whether each of several evidence pages is needed; the evidence is revised",
        "several pages",
        ("shortcut",),
        1.0,
        "MMLongBench-Doc, A.4",
        probes.each_page,
    ),
    Check(
        "whole-document",
        "whether any page answers an unanswerable question, or adds to a count or a list",
        "about all",
        ("answerable-after-all", "incomplete-answer", "unchecked-whole-document"),
        0.95,
        "two corrections of MMLongBench-Doc",
        whole.check,
    ),
    Check(
        "round-trip",
        "whether two models agree with the answer among other pages",
        "answerable",
        ("answers-disagree", "ambiguous"),
        1.0,
        "MMLongBench-Doc, section 3.3",
        agreement.round_trip,
    ),
    Check(
        "grades",
        "what a committee of three other families grades",
        "answerable",
        ("low-grade", "judges-contradict", "invalid-reply"),
        0.95,
        "M-LongDoc, section 2.3",
        agreement.grades,
    ),
)
"""The checks, in their order."""
AGAIN = ("static", "no-document", "checklist", "sufficiency", "wrong-document", "necessity", "each-page")
"""The checks that a question goes through again if the last of them revised its evidence."""
DRAFT_PASSES = 0.97
"""The share of drafts that have the form; our choice."""
OF_DRAFTS = ("invalid-reply", "refusal", "no-verified-question")
"""Why a slot gets no draft."""
REASONS = frozenset((*OF_DRAFTS, TOLD, *(reason for check in CHECKS for reason in check.reasons)))
"""Every reason of a stage; people have their own (see `mmlongbench.questions.reviewing`)."""


def compared(
    check: Check, candidates: Sequence[Candidate], context: Context, benchmarks: Sequence[decontamination.Benchmark]
) -> list[Judged]:
    """Run a check that compares questions with each other or with benchmarks."""
    if check.name == "duplicates":
        return near.without_duplicates(candidates)
    return [decontamination.of_question(candidate, context, benchmarks) for candidate in candidates]
