"""The funnel: how the stages that a draft passes run, from documents to questions that passed.

    pages → kinds → slots → drafts → `CHECKS` → edits → the same checks → balance → words-alone → table → people

`pages` and `kinds` say what is on each page, `slots` draws a place for each question, `drafts` writes it. Answerable
questions go through the checks first; `edits` then makes unanswerable ones of those that passed, and these go through
the checks, too. Cheap checks stand before costly ones. A question ends at the first check that it fails. A question
whose evidence is revised goes through the checks before it again (`AGAIN`). `balance` takes what the quotas want; the
rest is kept as surplus. `words-alone` drops unanswerable questions that are told by their words.

Slots = accepted + surplus + held + rejected + pending, always; as long as a call is pending, no table is written.

A stage is a function of its inputs and of answered calls. So a run that was stopped computes its stages again and makes
only the calls whose answers are not on file; the number of calls at once changes nothing.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from mmlongbench.draws import Draws
from mmlongbench.io.files import sweep
from mmlongbench.io.pool import threads
from mmlongbench.io.progress import Progress
from mmlongbench.models.client import ModelClient
from mmlongbench.questions.table import write_lines
from mmlongbench.questions.writing import model_stages, text_checks
from mmlongbench.questions.writing.asking import CallFailedError, Desk, WritingError, WritingSettings
from mmlongbench.questions.writing.documents import Library
from mmlongbench.questions.writing.lines import (
    GOES_ON,
    Called,
    Candidate,
    DocumentLine,
    Judged,
    PageLine,
    QuotaLine,
    Slot,
    passed,
)
from mmlongbench.questions.writing.model_stages import CHECKS, Check, For
from mmlongbench.questions.writing.pages import confirm, layer_pages, looked_at, unconfirmed
from mmlongbench.questions.writing.quotas import balanced, quotas, slots, without_told

S = TypeVar("S", Slot, Candidate)
STAGES = "stages"  # the folder of the files between stages
_COUNTS = re.compile(r"\bhow many\b|\bnumber of\b|\bcount\b|\bhow often\b", re.IGNORECASE)
AGAIN = ("static", "no-document", "checklist", "sufficiency", "wrong-document", "necessity", "each-page")
"""The checks that a question goes through again if the last of them revised its evidence."""
DRAFT_PASSES = 0.97  # the share of drafts that have the form; our choice


@dataclass
class Funnel:
    """Runs the stages, several questions at once, writes their files, and holds what came out."""

    library: Library
    settings: WritingSettings
    client: ModelClient
    out: Path
    progress: Progress
    documents: list[DocumentLine] = field(default_factory=list)  # all documents, also those that are left out
    pages: list[PageLine] = field(default_factory=list)
    quotas: list[QuotaLine] = field(default_factory=list)
    slots: list[Slot] = field(default_factory=list)
    stages: dict[str, list[Judged]] = field(default_factory=dict)
    """What each stage from `drafts` on said, in the order in which they ran: a line for each question, by slot."""
    accepted: list[Candidate] = field(default_factory=list)
    surplus: list[Candidate] = field(default_factory=list)
    held: list[Candidate] = field(default_factory=list)  # questions about which people decide

    def run(self) -> None:
        """Run all stages; a call about a page that fails ends the run, because no slot can be drawn."""
        sweep(self.out)
        folder = self.out / STAGES
        used = [document.line for document in self.library.documents.values()]
        self.documents = sorted((*self.library.left_out, *used), key=lambda line: line.doc)
        write_lines(folder / "01-documents.jsonl", self.documents)
        self.pages = self._confirmed()
        write_lines(folder / "02-pages.jsonl", self.pages)
        self.quotas, self.slots = draw(self.library, self.pages, self.settings)
        write_lines(folder / "03-quotas.jsonl", self.quotas)
        write_lines(folder / "04-slots.jsonl", self.slots)
        answerable = [slot for slot in self.slots if slot.kind != "unanswerable"]
        asked = [slot for slot in self.slots if slot.kind == "unanswerable"]
        drafts = self._each("drafts", answerable, model_stages.draft)
        verified = self.checked(self._done("drafts", drafts), "drafts")
        parents = model_stages.parents(asked, verified, self.settings.seed)
        edits = self._each("edits", asked, lambda slot, desk: model_stages.edit(slot, parents.get(slot.id), desk))
        candidates = [*verified, *self.checked(self._done("edits", edits), "edits")]
        unflagged = [candidate for candidate in candidates if not candidate.flags]
        chosen, self.surplus = balanced(unflagged, self.quotas, self.settings.seed)
        self.accepted = self._done("words-alone", without_told(chosen))
        flagged = [candidate for candidate in candidates if candidate.flags]
        self.held = sorted(flagged, key=lambda candidate: candidate.slot)

    @property
    def ended(self) -> dict[str, tuple[str, Judged]]:
        """Return the stage and the line with which questions ended that were rejected or are pending, by slot."""
        lines = ((stage, line) for stage, lines in self.stages.items() for line in lines)
        return {line.slot: (stage, line) for stage, line in lines if line.outcome not in GOES_ON}

    @property
    def counts(self) -> dict[str, int]:
        """Return how many slots ended in which way; the numbers after the first add up to it."""
        ended = Counter(line.outcome for _, line in self.ended.values())
        return {
            "slots": len(self.slots),
            "accepted": len(self.accepted),
            "surplus": len(self.surplus),
            "held": len(self.held),
            "rejected": ended["rejected"],
            "pending": ended["pending"],
        }

    def calls(self) -> Iterator[Called]:
        for page in self.pages:
            yield from page.calls
        for lines in self.stages.values():
            for line in lines:
                yield from line.calls

    def checked(self, candidates: list[Candidate], of: str) -> list[Candidate]:
        for check in CHECKS:
            if of == "edits" and check.is_for not in ("all", "about all"):
                continue
            before = {candidate.slot: candidate.pages for candidate in candidates}
            candidates = self._judged(f"{of}-{check.name}", check, candidates)
            rounds = 0
            # Questions whose evidence was revised go through the checks again. Each round takes at least one page of a
            # question away, so there are few rounds.
            while check.name == AGAIN[-1] and (
                changed := [candidate for candidate in candidates if candidate.pages != before[candidate.slot]]
            ):
                rounds += 1
                before |= {candidate.slot: candidate.pages for candidate in changed}
                passing = changed
                for again in (check for check in CHECKS if check.name in AGAIN):
                    passing = self._judged(f"{of}-again-{rounds}-{again.name}", again, passing)
                after = {candidate.slot: candidate for candidate in passing}
                ended = {candidate.slot for candidate in changed} - after.keys()
                candidates = [after.get(each.slot, each) for each in candidates if each.slot not in ended]
        return candidates

    def _judged(self, stage: str, check: Check, candidates: list[Candidate]) -> list[Candidate]:
        if (judge := check.judge) is None:
            return self._done(stage, text_checks.duplicates(candidates))

        def judged(candidate: Candidate, desk: Desk) -> Judged:
            is_counted = candidate.answer_format == "Integer" and candidate.is_computed
            applies: dict[For, bool] = {
                "all": True,
                "answerable": candidate.is_answerable,
                "several pages": len(candidate.pages) > 1,
                "about all": candidate.answer_format in ("None", "List")
                or (is_counted and bool(_COUNTS.search(candidate.question))),
            }
            return judge(candidate, desk) if applies[check.is_for] else passed(candidate)

        return self._done(stage, self._each(check.name, candidates, judged))

    def _each(self, name: str, items: Sequence[S], do: Callable[[S, Desk], Judged]) -> list[Judged]:

        def one(item: S) -> Judged:
            desk = Desk(self.library, self.settings, self.client)
            try:
                line = do(item, desk)
            except CallFailedError as error:
                slot = item.id if isinstance(item, Slot) else item.slot
                line = Judged(slot=slot, outcome="pending", reason="call-failed", detail=str(error)[:300])
            return line.model_copy(update={"calls": tuple(desk.calls)})

        lines: list[Judged] = []
        with (
            threads(self.client.settings.concurrency, [self.client.stop]) as pool,
            self.progress.bar(name, len(items)) as advance,
        ):
            for line in pool.map(one, items):
                lines.append(line)
                advance()
        return lines

    def _done(self, name: str, lines: list[Judged]) -> list[Candidate]:
        self.stages[name] = lines
        write_lines(self.out / STAGES / f"{len(self.stages) + 4:02}-{name}.jsonl", lines)
        return [line.candidate for line in lines if line.candidate is not None]

    def _confirmed(self) -> list[PageLine]:
        pages = layer_pages(self.library.documents)
        looked, failures = looked_at(self.library, pages, self.settings), list[str]()

        def one(page: PageLine) -> PageLine:
            if (page.doc, page.page) not in looked:
                return unconfirmed(page)
            desk = Desk(self.library, self.settings, self.client)
            draws = Draws((self.settings.seed, page.doc, "kinds", page.page))
            try:
                page = confirm(page, draws.choice("model", self.settings.models), desk)
            except CallFailedError as error:
                failures.append(str(error))
            return page.model_copy(update={"calls": tuple(desk.calls)})

        with threads(self.client.settings.concurrency, [self.client.stop]) as pool:
            pages = list(pool.map(one, pages))
        if failures:
            raise WritingError(
                f"{len(failures)} calls about pages failed ({min(failures)}); run the same command to continue"
            )
        return pages


def draw(library: Library, pages: Sequence[PageLine], settings: WritingSettings) -> tuple[list[QuotaLine], list[Slot]]:
    wanted: list[QuotaLine] = []
    drawn: list[Slot] = []
    for name, document in sorted(library.documents.items()):
        own = [page for page in pages if page.doc == name]
        lines = quotas(document, own, settings)
        wanted += lines
        drawn += slots(document, own, lines, settings)
    return wanted, sorted(drawn, key=lambda slot: slot.id)
