"""Plants every defect of drafted questions at a scripted model server: which stage catches it, what gets through, and
how many clean drafts are lost; then kills the command again and again.

    python benchmarks/question_defects.py [--documents 14] [--noise 0.03] [--kills 12] [--cost 100 10]
"""

import argparse
import json
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))

from counting_server import tokens_of
from model_server import Request, Said, Script, serving
from planted_questions import DEFECTS, EDIT_DEFECTS, benchmark_question
from question_models import script_of
from question_runs import Kills, made, recorded, results, settings_of
from question_world import Doc, World, plain_words

from mmlongbench.draws import Draws
from mmlongbench.io.progress import Progress
from mmlongbench.questions.writing.make import Made, prepare

PAGES = 10
WANTED = 60
"""Questions wanted of a document."""
OVER = 4.0
PRICES = (2.5, 10.0)
"""The prices of a million tokens of prompt and of answer."""
LEAST = 20
"""How often each defect should be planted."""


def world_of(folder: Path, documents: int, noise: float) -> World:
    """Return a world whose drafts have every defect."""
    docs = [Doc(f"harbours-{number:02}", PAGES) for number in range(documents)]
    names = tuple(DEFECTS)
    return World.drawn(folder / "docs", docs, folder / "out", defects=names, noise=noise)


@dataclass
class Forgetting:
    """A script that keeps no request, because their pictures would fill the memory."""

    script: Script
    requests: list[Request] = field(default_factory=list)

    def __call__(self, request: Request) -> Said:
        """Answer a request, and forget the earlier ones."""
        self.requests.clear()
        return self.script(request)


def against(world: World, folder: Path) -> Path:
    """A benchmark that has a question about every page."""
    path = folder / "benchmark.jsonl"
    rows = [{"question": benchmark_question(doc, page)} for doc in world.docs for page in range(1, doc.pages + 1)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def plant(documents: int, noise: float) -> None:
    """Print what became of planted and of clean drafts."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        world = world_of(folder, documents, noise)
        settings = settings_of(per_document=WANTED, over=OVER)
        begun = time.monotonic()
        answer = Forgetting(script_of(world))
        with serving(answer) as server:
            answer.requests = server.requests
            found = made(world, folder / "out", server.url, settings, against=[against(world, folder)])
        counts = json.dumps(found.report.counts)
        print(f"{documents} documents, noise {noise:.0%}: {time.monotonic() - begun:.0f} s; {counts}")
        _show_defects(world, found)
        for stage in found.report.stages:
            print(f"  {stage.stage:<26} {stage.reached:>6} {stage.went_on:>6}  {stage.reasons}")
        print(f"  kept by models: {found.report.beside}; words alone: {found.report.words_alone}")
        print(f"  calls and tokens: {found.report.calls}")


def _ends(made: Made) -> dict[str, list[tuple[str, str, str]]]:
    """The stages at which each slot did not simply pass: name, outcome, reason."""
    found: dict[str, list[tuple[str, str, str]]] = {}
    for stage, lines in made.funnel.stages.items():
        for line in lines:
            if line.outcome != "passed":
                name = stage.partition("-")[2] or stage
                found.setdefault(line.slot, []).append((name, line.outcome, line.reason))
    return found


def _planted(world: World, made: Made) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Yield the slot, the defect (empty: none) and the reasons by which it counts as caught."""
    for slot in made.funnel.slots:
        if slot.kind != "unanswerable":
            defect = world.drafts.get((slot.doc, slot.pages[0], slot.kind, slot.number), "")
            yield slot.id, defect, DEFECTS[defect].caught if defect else ()
    for line in made.funnel.stages["edits"]:
        if line.candidate:
            defect = world.asked[plain_words(line.candidate.question)].defect
            known = defect if defect in EDIT_DEFECTS else ""
            yield line.slot, known, (EDIT_DEFECTS[known],) if known else ()


def _show_defects(world: World, made: Made) -> None:
    ends = _ends(made)
    counts: dict[str, Counter[str]] = {}
    where: dict[str, Counter[str]] = {}
    for slot, defect, reasons in _planted(world, made):
        ended = ends.get(slot, [])
        is_caught = any(reason in reasons for _, _, reason in ended)
        is_stopped = any(outcome in ("rejected", "held") for _, outcome, _ in ended)
        what = "caught" if is_caught else "stopped" if is_stopped else "through"
        counts.setdefault(defect, Counter()).update(["planted", what])
        where.setdefault(defect, Counter()).update(f"{stage}: {reason}" for stage, _, reason in ended)
    print(f"{'defect':<28} {'planted':>8} {'caught':>7} {'otherwise':>9} {'through':>8}  by")
    for defect in sorted(counts):
        _row(defect or "none (clean)", counts[defect], where[defect])
    few = sorted(defect for defect in (*DEFECTS, *EDIT_DEFECTS) if counts.get(defect, Counter())["planted"] < LEAST)
    print(f"planted less than {LEAST} times: {', '.join(few) or 'none'}")
    clean, planted = counts.pop("", Counter()), sum(counts.values(), Counter())
    print(f"all defects: {dict(planted)}; clean: {clean['planted']}, lost {clean['stopped']}")


def _row(defect: str, count: Mapping[str, int], where: Counter[str]) -> None:
    by = ", ".join(f"{place} {times}" for place, times in where.most_common(4))
    print(f"{defect:<28} {count['planted']:>8} {count['caught']:>7} {count['stopped']:>9} {count['through']:>8}  {by}")


def cost(documents: int, wanted: int) -> None:
    """Print what a run is expected to take, and what it took, with defects in a third of the drafts."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        docs = [Doc(f"harbours-{number:03}", 12) for number in range(documents)]
        names = tuple(each for defect in DEFECTS for each in ("", "", defect))
        world = World.drawn(folder / "docs", docs, folder / "out", defects=names, is_first_clean=False)
        settings = settings_of(per_document=wanted)
        plan = prepare(world.folder, folder / "out", settings, Progress(None))
        answer = Forgetting(script_of(world, tokens_of))
        begun = time.monotonic()
        with serving(answer) as server:
            answer.requests = server.requests
            found = made(world, folder / "out", server.url, settings)
        print(f"{documents} documents × {wanted}: {time.monotonic() - begun:.0f} s; {json.dumps(found.report.counts)}")
        for what, expected in (("expected", plan.expected), ("at most", plan.at_most)):
            calls, taken = sum(each.calls for each in expected), sum(each.input_tokens for each in expected)
            given, paid = sum(each.output_tokens for each in expected), sum(each.cost(PRICES) for each in expected)
            print(
                f"{what}: {calls:,.0f} calls, {taken:,.0f} tokens of prompts, {given:,.0f} of answers, cost {paid:,.2f}"
            )
        made_calls = found.report.calls
        spent = (made_calls["input_tokens"] * PRICES[0] + made_calls["output_tokens"] * PRICES[1]) / 1e6
        print(f"happened: {made_calls}, cost {spent:,.2f}")
        by_stage = {stage: sum(len(line.calls) for line in lines) for stage, lines in found.funnel.stages.items()}
        print(f"calls by stage: {by_stage}")
        print(f"expected by stage: {[(each.stage, round(each.calls)) for each in plan.expected]}")
        print(f"fifths {found.report.fifths}; words alone {found.report.words_alone}; notes {found.report.notes}")
        short = sum(quota.reached < quota.least for quota in found.report.quotas)
        print(f"quotas {len(found.report.quotas)}, minima not reached {short}")


def kill(kills: int) -> None:
    """Kill the command at drawn moments; print whether an answer was asked for twice, and whether bytes differ."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        world = World.drawn(folder / "docs", [Doc(f"harbours-{n}", 5) for n in range(3)], folder / "out")
        with recorded() as known, serving(script_of(world)) as server:
            made(world, folder / "out", server.url, settings_of())
            total = len(server.requests)
        world.pictures = folder / "again" / ".kept" / "pictures"
        killing, draws = Kills(world, folder / "again", known), Draws(("kills",))
        with killing.serving() as server:
            for number in range(kills):
                after = draws.integer(f"after {number}", 2, max(3, 2 * total // (kills + 2)))
                delay = draws.choice(f"delay {number}", (0.0, 0.001, 0.003, 0.01, 0.03))
                killing.run(server, after, delay, 1 + number % 4)
            killing.run(server, 0, at_once=8)
            asked = len(server.requests)
        same = results(folder / "out") == results(folder / "again")
        killed = sum(code == -signal.SIGKILL for code in killing.codes)
        print(
            f"{killed} runs killed of {len(killing.codes)}, the last exit {killing.codes[-1]}: {total} calls, "
            f"{asked} requests; "
            f"stored answers asked again: {killing.repeated}; same bytes: {same}"
        )


def main() -> None:
    """Run both parts."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=int, default=14)
    parser.add_argument("--noise", type=float, default=0.0)
    parser.add_argument("--kills", type=int, default=12)
    parser.add_argument("--cost", nargs=2, type=int, metavar=("DOCUMENTS", "QUESTIONS"))
    given = parser.parse_args()
    if given.documents:
        plant(given.documents, given.noise)
    if given.kills:
        kill(given.kills)
    if given.cost:
        cost(*given.cost)


if __name__ == "__main__":
    main()
