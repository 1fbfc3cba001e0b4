"""Runs the stages of the table in `stages.py`, from documents to the questions that passed.

A stage is a function of its inputs and of answered calls. So a run that was stopped computes its stages again and makes
only the calls whose answers are not on file; the number of calls at once changes nothing.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from mmlongbench.draws import Draws
from mmlongbench.io.files import sweep
from mmlongbench.io.pool import threads
from mmlongbench.io.progress import Progress
from mmlongbench.models.client import ModelClient
from mmlongbench.questions.question import Line
from mmlongbench.questions.table import write_lines
from mmlongbench.questions.writing import drafting
from mmlongbench.questions.writing.asking import CallFailedError, Desk
from mmlongbench.questions.writing.balance import balanced
from mmlongbench.questions.writing.confirming import confirm, layer_pages, nominated, unconfirmed
from mmlongbench.questions.writing.context import Context, Rankings, passed, pending, rejected
from mmlongbench.questions.writing.decontamination import Benchmark, of_document
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
)
from mmlongbench.questions.writing.settings import WritingError, WritingSettings
from mmlongbench.questions.writing.slots import quotas, slots
from mmlongbench.questions.writing.stages import AGAIN, CHECKS, Check, compared
from mmlongbench.questions.writing.words_alone import TOLD, told

T = TypeVar("T")
STAGES = "stages"
"""The folder of the files between stages."""


@dataclass(frozen=True)
class Stage:
    """What one stage said about the questions that reached it."""

    name: str
    lines: tuple[Judged, ...]
    """A line for each question, in the order of their slots."""


@dataclass(frozen=True)
class Drawn:
    """The pages, quotas and slots of a run."""

    pages: tuple[PageLine, ...]
    quotas: tuple[QuotaLine, ...]
    slots: tuple[Slot, ...]
    looks: int
    """How many pages a model looks at."""


@dataclass(frozen=True)
class Funnel:
    """The result of all stages."""

    documents: tuple[DocumentLine, ...]
    """All documents, also those that are left out."""
    drawn: Drawn
    stages: tuple[Stage, ...]
    """The stages from `drafts` on, in the order in which they ran."""
    accepted: tuple[Candidate, ...]
    surplus: tuple[Candidate, ...]
    held: tuple[Candidate, ...]
    """Questions about which people decide."""

    @property
    def ended(self) -> dict[str, tuple[str, Judged]]:
        """Return the stage and the line with which questions ended that were rejected or are pending, by slot."""
        return {
            line.slot: (stage.name, line)
            for stage in self.stages
            for line in stage.lines
            if line.outcome not in GOES_ON
        }

    def count(self, outcome: str) -> int:
        """Return how many slots ended with an outcome."""
        return sum(line.outcome == outcome for _, line in self.ended.values())

    def calls(self) -> Iterator[Called]:
        """Yield every answered call, in the order of the stages and slots."""
        for page in self.drawn.pages:
            yield from page.calls
        for stage in self.stages:
            for line in stage.lines:
                yield from line.calls


@dataclass
class Runner:
    """Runs stages over questions, several at once, and writes their files."""

    library: Library
    settings: WritingSettings
    client: ModelClient
    out: Path
    progress: Progress
    benchmarks: Sequence[Benchmark] = ()
    stages: list[Stage] = field(default_factory=list)
    rankings: Rankings = field(init=False)

    def __post_init__(self) -> None:
        self.rankings = Rankings(self.library)

    def context(self, desk: Desk) -> Context:
        """Return the context of a question whose calls a desk makes."""
        return Context(self.library, self.settings, self.rankings, desk.ask)

    def each(
        self, name: str, items: Sequence[T], do: Callable[[T, Context], Judged], slot: Callable[[T], str]
    ) -> list[Judged]:
        """Return the line of each question, in order. A question whose call fails is pending."""

        def one(item: T) -> Judged:
            desk = Desk(self.client, self.settings.attempts)
            try:
                judged = do(item, self.context(desk))
            except CallFailedError as error:
                judged = pending(slot(item), error)
            return judged.model_copy(update={"calls": tuple(desk.calls)})

        return self.at_once(name, items, one)

    def at_once(self, name: str, items: Sequence[T], do: Callable[[T], Judged]) -> list[Judged]:
        """Return what a function gives for each item, in order; several run at once."""
        found: list[Judged] = []
        with (
            threads(self.client.settings.concurrency, [self.client.stop]) as pool,
            self.progress.bar(name, len(items)) as advance,
        ):
            for each in pool.map(do, items):
                found.append(each)
                advance()
        return found

    def done(self, name: str, lines: Sequence[Judged]) -> list[Candidate]:
        """Keep and write the lines of a stage; return the questions that go on."""
        self.stages.append(Stage(name, tuple(lines)))
        write(self.out, len(self.stages) + 4, name, lines)
        return [line.candidate for line in lines if line.candidate is not None]

    def checks(self, candidates: list[Candidate], of: str) -> list[Candidate]:
        """Return the questions that pass all checks."""
        for check in CHECKS:
            if check.is_for in ("all", "about all") or of != "edits":
                before = candidates
                candidates = self.done(f"{of}-{check.name}", self._checked(check, candidates))
                if check.name == AGAIN[-1]:
                    candidates = self._checked_again(candidates, before, of)
        return candidates

    def _checked_again(self, candidates: list[Candidate], before: Sequence[Candidate], of: str) -> list[Candidate]:
        """Return the questions that pass, after those whose evidence was revised went through the checks again. Each
        round takes at least one page of a question away, so there are few rounds.
        """
        known, number = {each.slot: each.pages for each in before}, 1
        while changed := [each for each in candidates if each.pages != known[each.slot]]:
            known |= {each.slot: each.pages for each in changed}
            passing = changed
            for check in (check for check in CHECKS if check.name in AGAIN):
                passing = self.done(f"{of}-again-{number}-{check.name}", self._checked(check, passing))
            after = {each.slot: each for each in passing}
            ended = {each.slot for each in changed} - after.keys()
            candidates = [after.get(each.slot, each) for each in candidates if each.slot not in ended]
            number += 1
        return candidates

    def _checked(self, check: Check, candidates: list[Candidate]) -> list[Judged]:
        one = check.one
        if one is None:
            desk = Desk(self.client, self.settings.attempts)
            return compared(check, candidates, self.context(desk), self.benchmarks)

        def do(candidate: Candidate, context: Context) -> Judged:
            return one(candidate, context) if check.applies(candidate) else passed(candidate)

        return self.each(check.name, candidates, do, lambda each: each.slot)


def write(out: Path, number: int, name: str, lines: Sequence[Line]) -> None:
    """Write the lines of a stage."""
    write_lines(out / STAGES / f"{number:02}-{name}.jsonl", lines)


def without_benchmarks(library: Library, benchmarks: Sequence[Benchmark]) -> Library:
    """Return the documents of which no named benchmark has a part."""
    left_out = list(library.left_out)
    kept = {}
    for name, document in library.documents.items():
        if found := of_document(document, benchmarks):
            left_out.append(document.line.model_copy(update={"reason": found[0], "detail": found[1]}))
        else:
            kept[name] = document
    return replace(library, documents=kept, left_out=tuple(left_out))


def draw(library: Library, pages: Sequence[PageLine], settings: WritingSettings, looks: int = 0) -> Drawn:
    """Return the quotas and slots of all documents; they need no call."""
    wanted: list[QuotaLine] = []
    drawn: list[Slot] = []
    for name, document in sorted(library.documents.items()):
        own = [page for page in pages if page.doc == name]
        asked = quotas(document, own, settings)
        wanted += asked
        drawn += slots(document, own, asked, settings)
    return Drawn(tuple(pages), tuple(wanted), tuple(sorted(drawn, key=lambda slot: slot.id)), looks)


def planned(library: Library, settings: WritingSettings) -> Drawn:
    """Return what would be drawn if models saw figures wherever they look; nothing is asked."""
    pages = layer_pages(library.documents)
    looked = _looked_at(library, pages, settings)
    assumed = [
        page.model_copy(update={"kinds": (*page.kinds, "figure")})
        if (page.doc, page.page) in looked
        else unconfirmed(page)
        for page in pages
    ]
    return draw(library, assumed, settings, len(looked))


def run(runner: Runner) -> Funnel:
    """Run all stages.

    Raises:
        WritingError: calls about pages failed, so that no slot can be drawn.
        EndpointError: the endpoint cannot be called.

    """
    library, settings, out = runner.library, runner.settings, runner.out
    sweep(out)
    documents = sorted(
        (*library.left_out, *(each.line for each in library.documents.values())), key=lambda line: line.doc
    )
    write(out, 1, "documents", documents)
    pages = _confirmed(runner)
    write(out, 2, "pages", pages)
    drawn = draw(library, pages, settings, sum(bool(page.asked) for page in pages))
    write(out, 3, "quotas", drawn.quotas)
    write(out, 4, "slots", drawn.slots)
    answerable = [slot for slot in drawn.slots if slot.kind != "unanswerable"]
    asked = [slot for slot in drawn.slots if slot.kind == "unanswerable"]
    drafts = runner.each("drafts", answerable, drafting.write, lambda slot: slot.id)
    verified = runner.checks(runner.done("drafts", drafts), "drafts")
    parents = drafting.parents(asked, verified, settings.seed)
    edits = runner.each(
        "edits", asked, lambda slot, context: drafting.edit(slot, parents.get(slot.id), context), lambda slot: slot.id
    )
    unanswerable = runner.checks(runner.done("edits", edits), "edits")
    every = [*verified, *unanswerable]
    chosen, surplus = balanced([each for each in every if not each.flags], drawn.quotas, settings.seed)
    accepted = runner.done("words-alone", _without_told(chosen))
    held = sorted((each for each in every if each.flags), key=lambda each: each.slot)
    return Funnel(tuple(documents), drawn, tuple(runner.stages), tuple(accepted), tuple(surplus), tuple(held))


def _without_told(chosen: Sequence[Candidate]) -> list[Judged]:
    """Return a line for each question; those whose words tell that they have no answer are rejected."""
    dropped = told(chosen)
    return [
        rejected(each.slot, TOLD, f"its words tell it from {dropped[each.slot]:.0%} of the answerable ones")
        if each.slot in dropped
        else passed(each)
        for each in chosen
    ]


def _looked_at(library: Library, pages: Sequence[PageLine], settings: WritingSettings) -> set[tuple[str, int]]:
    by_doc: dict[str, list[PageLine]] = {}
    for page in pages:
        by_doc.setdefault(page.doc, []).append(page)
    return {(name, page) for name, own in by_doc.items() for page in nominated(library.documents[name], own, settings)}


def _confirmed(runner: Runner) -> list[PageLine]:
    """Return all pages, as the layer and, at some of them, a model describes them."""
    library, settings = runner.library, runner.settings
    pages = layer_pages(library.documents)
    looked = _looked_at(library, pages, settings)
    failures: list[str] = []

    def one(page: PageLine) -> PageLine:
        if (page.doc, page.page) not in looked:
            return unconfirmed(page)
        desk = Desk(runner.client, settings.attempts)
        model = Draws((settings.seed, page.doc, "kinds", page.page)).choice("model", settings.models)
        try:
            found = confirm(page, model, library, desk.ask)
        except CallFailedError as error:
            failures.append(str(error))
            return page
        return found.model_copy(update={"calls": tuple(desk.calls)})

    with threads(runner.client.settings.concurrency, [runner.client.stop]) as pool:
        found = list(pool.map(one, pages))
    if failures:
        raise WritingError(
            f"{len(failures)} calls about pages failed ({min(failures)}); run the same command to continue"
        )
    return found


def counts(funnel: Funnel) -> dict[str, int]:
    """Return how many slots ended in which way; the numbers after the first add up to it."""
    ended = Counter(line.outcome for _, line in funnel.ended.values())
    return {
        "slots": len(funnel.drawn.slots),
        "accepted": len(funnel.accepted),
        "surplus": len(funnel.surplus),
        "held": len(funnel.held),
        "rejected": ended["rejected"],
        "pending": ended["pending"],
    }
