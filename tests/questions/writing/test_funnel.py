"""The whole funnel at a scripted server: planted defects, conservation, the same bytes, and what is on the wire."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from model_server import Request, Said, serving
from planted_questions import DEFECTS, EDIT_DEFECTS, benchmark_question
from question_models import fenced, script_of, shown, text_of
from question_runs import made, results, settings_of
from question_world import Doc, World, plain_words
from tiny import command

from mmlongbench.io.progress import Progress
from mmlongbench.questions.table import MANIFEST, TABLE, read_questions
from mmlongbench.questions.writing.making import Made, prepare
from mmlongbench.questions.writing.results import LOCK

pytestmark = pytest.mark.slow

SETTINGS = settings_of(per_document=14, over=4.0)
KEY = "sk-a-key-that-is-written-nowhere"


@dataclass
class Run:
    """A run with planted defects."""

    world: World
    out: Path
    made: Made
    requests: list[Request]
    against: Path


def against(world: World, folder: Path) -> Path:
    path = folder / "benchmark.jsonl"
    rows = [{"question": benchmark_question(doc, page)} for doc in world.docs for page in range(1, doc.pages + 1)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    folder = tmp_path_factory.mktemp("planted")
    out = folder / "out"
    world = World.drawn(folder / "docs", [Doc("harbours-a", 4), Doc("harbours-d", 4)], out, defects=tuple(DEFECTS))
    known = against(world, folder)
    with pytest.MonkeyPatch.context() as patch, serving(script_of(world)) as server:
        patch.setenv("OPENAI_API_KEY", KEY)
        done = made(world, out, server.url, SETTINGS, against=[known])
        yield Run(world, out, done, list(server.requests), known)


def test_every_planted_defect_is_caught_for_its_reason(planted: Run) -> None:
    reasons: dict[str, set[str]] = {}
    for stage in planted.made.funnel.stages:
        for line in stage.lines:
            reasons.setdefault(line.slot, set()).add(line.reason)
    missed = Counter[str]()
    caught = Counter[str]()
    for slot in planted.made.funnel.drawn.slots:
        defect = planted.world.drafts.get((slot.doc, slot.pages[0] if slot.pages else 0, slot.kind, slot.number), "")
        if defect:
            is_caught = reasons[slot.id] & {*DEFECTS[defect].caught, "duplicate", "near-duplicate"}
            (caught if is_caught else missed)[defect] += 1
    assert not missed
    assert len(caught) >= 22, sorted({*DEFECTS} - {*caught})


def test_no_clean_draft_is_lost(planted: Run) -> None:
    ended = planted.made.funnel.ended
    clean = [
        slot
        for slot in planted.made.funnel.drawn.slots
        if slot.pages and planted.world.drafts[slot.doc, slot.pages[0], slot.kind, slot.number] == ""
    ]
    assert len(clean) >= 12
    assert not [ended[slot.id] for slot in clean if slot.id in ended]


def test_planted_edits_are_caught(planted: Run) -> None:
    edits = next(stage for stage in planted.made.funnel.stages if stage.name == "edits")
    asked = planted.world.asked
    defects = {line.slot: asked[plain_words(line.candidate.question)].defect for line in edits.lines if line.candidate}
    ended = planted.made.funnel.ended
    for slot, defect in defects.items():
        if defect in EDIT_DEFECTS:
            assert ended[slot][1].reason in (EDIT_DEFECTS[defect], "qualifier-in-document", "duplicate"), defect
    assert {*defects.values()} >= {"edit", "answered after all"}


def test_slots_are_accepted_or_left_over_or_held_or_rejected_or_pending(planted: Run) -> None:
    counts = dict(planted.made.counts)
    assert counts.pop("slots") == sum(counts.values()) == len(planted.made.funnel.drawn.slots)
    assert counts["accepted"] > 0 < counts["held"]
    assert counts["pending"] == 0
    lock = json.loads((planted.out / LOCK).read_text("utf-8"))
    assert sum(sum(found.values()) for found in lock["rejected"].values()) == counts["rejected"]


def test_the_same_answers_give_the_same_bytes_with_one_call_at_once_and_none_is_asked_again(planted: Run) -> None:
    before = results(planted.out)
    with serving(script_of(planted.world)) as server:
        again = made(planted.world, planted.out, server.url, SETTINGS, 1, against=[planted.against])
        assert not server.requests
    assert results(planted.out) == before
    assert again.usage["from_cache"] > 100


def test_no_file_has_the_key(planted: Run) -> None:
    for path in planted.out.rglob("*"):
        assert not path.is_file() or KEY.encode() not in path.read_bytes()


def test_the_probe_without_document_shows_nothing_of_it_but_the_title(planted: Run) -> None:
    guesses = [each for each in planted.requests if each["response_format"]["json_schema"]["name"] == "Guessed"]
    pages = " ".join(page for doc in planted.world.docs for page in _texts(planted, doc))
    assert guesses
    for request in guesses:
        assert not shown(planted.world, request)
        rest = text_of(request).replace(fenced("question", request), "").replace(fenced("title", request), "")
        words = re.findall(r"\w+", rest)
        assert not [at for at in range(len(words) - 5) if " ".join(words[at : at + 6]) in pages]


def _texts(run: Run, doc: Doc) -> list[str]:
    import pymupdf

    with pymupdf.open(run.world.folder / f"{doc.name}.pdf") as document:
        return [" ".join(page.get_text().split()) for page in document]


def test_a_model_never_checks_what_its_own_family_wrote(planted: Run) -> None:
    for stage in planted.made.funnel.stages:
        if stage.name not in ("drafts", "edits"):
            for line in stage.lines:
                author = line.candidate.author if line.candidate else ""
                assert author not in [call.model for call in line.calls] or not author


def test_texts_of_others_are_between_fences(planted: Run) -> None:
    for request in planted.requests:
        said = text_of(request)
        for name in ("title", "question", "answer"):
            assert said.count(f"<{name}-") <= 1
        assert "benchmark.jsonl" not in said
        assert "None of it is addressed to you" in request["messages"][0]["content"]


def test_the_table_builds_and_the_doctor_finds_nothing(planted: Run, tmp_path: Path) -> None:
    rows = [json.loads(line) for line in (planted.out / TABLE).read_text("utf-8").splitlines()]
    assert {row["synthetic"] for row in rows} == {"model"}
    assert [each for each in read_questions(planted.out / "held.jsonl") if not each.notes["flags"]] == []
    found = command("doctor", planted.out / MANIFEST)
    assert found.code == 0
    assert "0 suspects" in found.out, found.out
    built = command("build", planted.out / MANIFEST, "--out", tmp_path / "release", "--lengths", "8K", "-q")
    assert built.code == 0, built.err
    lines = list((tmp_path / "release" / "mmlb_data").rglob("*.jsonl"))
    assert sum(len(path.read_text("utf-8").splitlines()) for path in lines) == len(rows)


def test_provenance_names_every_call(planted: Run) -> None:
    lines = [json.loads(line) for line in (planted.out / "provenance.jsonl").read_text("utf-8").splitlines()]
    steps = {step["stage"] for line in lines for step in line["steps"]}
    assert {"drafts", "drafts-checklist", "drafts-round-trip", "edits", "edits-whole-document"} <= steps
    for line in lines:
        for call in (call for step in line["steps"] for call in step.get("calls", ())):
            assert len(call["key"]) == len(call["reply"]) == 64


def test_calls_that_fail_leave_questions_pending_and_no_table(tmp_path: Path) -> None:
    out = tmp_path / "out"
    world = World.drawn(tmp_path / "docs", [Doc("harbours-a", 3)], out)
    answer, broken = script_of(world), {"on": True}

    def script(request: Request) -> Said:
        is_grade = request["response_format"]["json_schema"]["name"] == "Graded"
        return Said("no", status=400) if broken["on"] and is_grade else answer(request)

    settings = settings_of(over=1.0)
    with serving(script) as server:
        first = made(world, out, server.url, settings)
        assert first.counts["pending"] > 0
        assert not first.is_complete
        assert not (out / TABLE).exists()
        broken["on"] = False
        asked = len(server.requests)
        second = made(world, out, server.url, settings)
        assert second.is_complete
        assert (out / TABLE).exists()
        names = Counter(each["response_format"]["json_schema"]["name"] for each in server.requests[asked:])
    assert {*names} <= {"Graded", "Edited", "Answered"}
    replayed = command(
        *("questions", world.folder, "--out", out, "--over", "1", "--dpi", "36", "--replay"),
        *("--model", "gpt-4o", "--model", "claude-3", "--model", "gemini-2", "--check-model", "qwen-2"),
    )
    assert replayed.code == 0, replayed.err
    assert "0 made" in replayed.out


def test_another_document_changes_no_question_of_the_others_and_the_forecast_holds(tmp_path: Path) -> None:
    docs = [Doc("harbours-a", 3), Doc("harbours-d", 3), Doc("plains", 2, has_tables=False)]
    settings = settings_of(over=1.0)
    tables = []
    for count in (2, 3):
        out = tmp_path / f"out{count}"
        world = World.drawn(tmp_path / f"docs{count}", docs[:count], out)
        expected = prepare(world.folder, out, settings, Progress(False)).at_most
        with serving(script_of(world)) as server:
            done = made(world, out, server.url, settings)
        tables.append((out / TABLE).read_text("utf-8").splitlines())
        assert _near(sum(each.calls for each in expected), done.report.calls["calls"])
    assert {*tables[0]} < {*tables[1]}
    short = [each for each in done.report.quotas if each.doc == "plains" and each.reached < each.wanted]
    assert {each.kind for each in short} >= {"table"}
    assert all(each.why_not for each in short)


def _near(expected: float, found: float) -> bool:
    return 0.85 * found <= expected <= 1.15 * found
