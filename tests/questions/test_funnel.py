"""Questions by models at a scripted server: planted defects, the same bytes, what is on the wire, what is refused."""

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pymupdf
import pytest
from model_server import Request, Said, serving
from planted_questions import DEFECTS, EDIT_DEFECTS, benchmark_question
from question_models import fenced, script_of, shown, text_of
from question_runs import calls_at_most, made, results, settings_of
from question_world import Doc, World, plain_words
from tiny import Ran, command

from mmlongbench.questions.writing.lines import Slot
from mmlongbench.questions.writing.make import Made

SETTINGS = settings_of(per_document=14, over=4.0)
KEY = "sk-a-key-that-is-written-nowhere"
MODELS = ("--model", "gpt-4o", "--check-model", "qwen-2", "--dpi", "36")


@dataclass
class Run:
    """A run with planted defects."""

    world: World
    out: Path
    made: Made
    requests: list[Request]
    against: Path


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    folder = tmp_path_factory.mktemp("planted")
    out, against = folder / "out", folder / "benchmark.jsonl"
    world = World.drawn(folder / "docs", [Doc("harbours-a", 4), Doc("harbours-d", 4)], out, defects=tuple(DEFECTS))
    rows = [{"question": benchmark_question(doc, page)} for doc in world.docs for page in range(1, doc.pages + 1)]
    against.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    with pytest.MonkeyPatch.context() as patch, serving(script_of(world)) as server:
        patch.setenv("OPENAI_API_KEY", KEY)
        done = made(world, out, server.url, SETTINGS, against=[against])
        yield Run(world, out, done, list(server.requests), against)


def form_of(request: Request) -> str:
    return str(request["response_format"]["json_schema"]["name"])


def defect_of(run: Run, slot: Slot) -> str:
    return run.world.drafts[slot.doc, slot.pages[0], slot.kind, slot.number]


def test_every_planted_defect_is_caught_for_its_reason(planted: Run) -> None:
    reasons: dict[str, set[str]] = {}
    for line in (line for lines in planted.made.funnel.stages.values() for line in lines):
        reasons.setdefault(line.slot, set()).add(line.reason)
    caught = set()
    for slot in planted.made.funnel.slots:
        if slot.pages and (defect := defect_of(planted, slot)):
            assert reasons[slot.id] & {*DEFECTS[defect].caught, "duplicate", "near-duplicate"}, defect
            caught.add(defect)
    assert len(caught) >= 22, sorted({*DEFECTS} - caught)


def test_no_clean_draft_is_lost_and_every_slot_is_counted_once(planted: Run) -> None:
    drawn, ended = planted.made.funnel.slots, planted.made.funnel.ended
    clean = [slot for slot in drawn if slot.pages and not defect_of(planted, slot)]
    assert len(clean) >= 12
    assert not [ended[slot.id] for slot in clean if slot.id in ended]
    counts = dict(planted.made.report.counts)
    assert counts.pop("slots") == sum(counts.values()) == len(drawn)
    assert counts["accepted"] > 0 < counts["held"]
    assert counts["pending"] == 0
    lock = json.loads((planted.out / "questions.lock.json").read_text("utf-8"))
    assert sum(sum(found.values()) for found in lock["rejected"].values()) == counts["rejected"]


def test_planted_edits_are_caught(planted: Run) -> None:
    edits = [line.candidate for line in planted.made.funnel.stages["edits"] if line.candidate]
    defects = {edit.slot: planted.world.asked[plain_words(edit.question)].defect for edit in edits}
    for slot, defect in defects.items():
        if defect in EDIT_DEFECTS:
            reason = planted.made.funnel.ended[slot][1].reason
            assert reason in (EDIT_DEFECTS[defect], "qualifier-in-document", "duplicate"), defect
    assert {*defects.values()} >= {"edit", "answered after all"}


def test_the_same_answers_give_the_same_bytes_with_one_call_at_once_and_none_is_asked_again(planted: Run) -> None:
    before = results(planted.out)
    with serving(script_of(planted.world)) as server:
        again = made(planted.world, planted.out, server.url, SETTINGS, 1, against=[planted.against])
        assert not server.requests
    assert results(planted.out) == before
    assert again.usage["from_cache"] > 100


def test_no_file_has_the_key_and_provenance_names_every_call(planted: Run) -> None:
    for path in planted.out.rglob("*"):
        assert not path.is_file() or KEY.encode() not in path.read_bytes()
    lines = [json.loads(line) for line in (planted.out / "provenance.jsonl").read_text("utf-8").splitlines()]
    steps = [step for line in lines for step in line["steps"]]
    names = {"drafts", "drafts-checklist", "drafts-round-trip", "edits", "edits-whole-document"}
    assert names <= {step["stage"] for step in steps}
    for call in (call for step in steps for call in step.get("calls", ())):
        assert len(call["key"]) == len(call["reply"]) == 64


def test_the_probe_without_document_shows_nothing_of_it_but_the_title(planted: Run) -> None:
    guesses = [each for each in planted.requests if form_of(each) == "Guessed"]
    texts = []
    for doc in planted.world.docs:
        with pymupdf.open(planted.world.folder / f"{doc.name}.pdf") as document:
            texts += [" ".join(page.get_text().split()) for page in document]
    pages = " ".join(texts)
    assert guesses
    for request in guesses:
        assert not shown(planted.world, request)
        rest = text_of(request).replace(fenced("question", request), "").replace(fenced("title", request), "")
        words = re.findall(r"\w+", rest)
        assert not [at for at in range(len(words) - 5) if " ".join(words[at : at + 6]) in pages]


def test_a_model_never_checks_what_its_own_family_wrote(planted: Run) -> None:
    for stage, lines in planted.made.funnel.stages.items():
        if stage not in ("drafts", "edits"):
            for line in lines:
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
    rows = [json.loads(line) for line in (planted.out / "table.jsonl").read_text("utf-8").splitlines()]
    assert {row["synthetic"] for row in rows} == {"model"}
    held = [json.loads(line) for line in (planted.out / "held.jsonl").read_text("utf-8").splitlines()]
    assert [each for each in held if not each["notes"]["flags"]] == []
    found = command("doctor", planted.out / "manifest.yaml")
    assert found.code == 0
    assert "0 suspects" in found.out, found.out
    built = command("build", planted.out / "manifest.yaml", "--out", tmp_path / "release", "--lengths", "8K", "-q")
    assert built.code == 0, built.err
    lines = list((tmp_path / "release" / "mmlb_data").rglob("*.jsonl"))
    assert sum(len(path.read_text("utf-8").splitlines()) for path in lines) == len(rows)


def test_calls_that_fail_leave_questions_pending_and_no_table(tmp_path: Path) -> None:
    out = tmp_path / "out"
    world = World.drawn(tmp_path / "docs", [Doc("harbours-a", 3)], out)
    answer, broken = script_of(world), {"on": True}

    def script(request: Request) -> Said:
        return Said("no", status=400) if broken["on"] and form_of(request) == "Graded" else answer(request)

    settings = settings_of(over=1.0)
    with serving(script) as server:
        first = made(world, out, server.url, settings)
        assert first.report.counts["pending"] > 0
        assert not first.is_complete
        assert not (out / "table.jsonl").exists()
        broken["on"] = False
        asked = len(server.requests)
        second = made(world, out, server.url, settings)
        assert second.is_complete
        assert (out / "table.jsonl").exists()
        names = Counter(form_of(each) for each in server.requests[asked:])
    assert {*names} <= {"Graded", "Edited", "Answered"}
    replayed = command(
        *("questions", world.folder, "--out", out, "--over", "1", "--dpi", "36", "--replay"),
        *("--model", "gpt-4o", "--model", "claude-3", "--model", "gemini-2", "--check-model", "qwen-2"),
        "--strict-anchor",  # there is no other document, so that nothing more is asked
    )
    assert replayed.code == 0, replayed.err
    assert "0 made" in replayed.out
    assert json.loads((out / "questions.lock.json").read_text("utf-8"))["settings"]["strict_anchor"] is True


def test_another_document_changes_no_question_of_the_others_and_the_forecast_holds(tmp_path: Path) -> None:
    docs = [Doc("harbours-a", 3), Doc("harbours-d", 3), Doc("plains", 2, has_tables=False)]
    settings = settings_of(over=1.0)
    tables = []
    for count in (2, 3):
        out = tmp_path / f"out{count}"
        world = World.drawn(tmp_path / f"docs{count}", docs[:count], out)
        expected = calls_at_most(world, out, settings)
        with serving(script_of(world)) as server:
            done = made(world, out, server.url, settings)
        tables.append((out / "table.jsonl").read_text("utf-8").splitlines())
        assert 0.85 <= expected / done.report.calls["calls"] <= 1.15
    assert {*tables[0]} < {*tables[1]}
    short = [each for each in done.report.quotas if each.doc == "plains" and each.reached < each.wanted]
    assert {each.kind for each in short} >= {"table"}
    assert all(each.why_not for each in short)


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("documents")
    for doc in (Doc("harbours-a", 2), Doc("harbours-d", 2)):
        doc.draw(folder / f"{doc.name}.pdf")
    (folder / "broken.pdf").write_bytes(b"%PDF-1.7 and no more")
    return folder


def dry(documents: Path, out: Path, *options: object) -> Ran:
    return command("questions", documents, "--out", out, "--dry-run", *MODELS, *options)


def test_the_plan_needs_no_endpoint_and_names_what_is_left_out(documents: Path, tmp_path: Path) -> None:
    done = dry(documents, tmp_path / "out", "--prices", 2.5, 10)
    assert done.code == 0, done.err
    assert done.out.startswith("2 documents, 1 left out: 14 questions wanted, ")
    assert "  broken is left out, broken-document: expected a PDF that can be opened, found " in done.out
    assert "if every draft passes every check: " in done.out
    assert "cost " in done.out
    assert not (tmp_path / "out" / "table.jsonl").exists()


def test_documents_are_bound_by_their_date_and_those_of_a_named_benchmark_are_left_out(
    documents: Path, tmp_path: Path
) -> None:
    about = tmp_path / "about.csv"
    about.write_text("doc,doc_type,published\nharbours-a.pdf,Brochure,2024-03-01\nharbours-d,,2023-12-31\n", "utf-8")
    done = dry(documents, tmp_path / "out", "--about", about, "--published-after", "2023-12-31")
    assert done.out.startswith("1 document, 2 left out")
    assert "harbours-d is left out, published-too-early: 2023-12-31" in done.out
    assert "broken is left out, no-date-of-publication" in done.out
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "another-name.pdf").write_bytes((documents / "harbours-a.pdf").read_bytes())
    done = dry(documents, tmp_path / "other", "--against", theirs)
    assert "harbours-a is left out, benchmark-document: theirs has another-name" in done.out


def test_what_cannot_begin_says_why(documents: Path, tmp_path: Path) -> None:
    known, none = tmp_path / "known.csv", tmp_path / "none.csv"
    known.write_text(f"question\n{benchmark_question(Doc('harbours-a', 2), 1)}\n", "utf-8")
    none.write_text("words\nnone\n", "utf-8")
    assert dry(documents, tmp_path / "out", "--against", known).code == 0
    refused: dict[tuple[object, ...], str] = {
        ("--dry-run", *MODELS, "--max-cost", 1): "--max-cost needs --prices",
        ("--dry-run", *MODELS, "--max-cost", 0.0001, "--prices", 2.5, 10): "expected cost",
        ("--dry-run", *MODELS, "--published-after", "May 2024"): "expected a date such as 2024-05-31",
        ("--dry-run", *MODELS, "--against", "nothing.csv"): "nothing.csv",
        ("--dry-run", *MODELS, "--against", none): "none.csv",
        ("--dry-run", "--model", "gpt-4o"): "no model of another family",
        MODELS: "need --url",
        (): "--from layer",
    }
    for options, said in refused.items():
        done = command("questions", documents, "--out", tmp_path / "out", *options)
        assert (done.code, said in done.err) == (2, True), done.err
