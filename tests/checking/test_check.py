"""The command `check` and the function `mm.check`."""

import json
import shutil
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from tiny import ROWS, Ran, command, draw_source, write_rows

import mmlongbench as mm
from mmlongbench.building.build_dir import questions_shard
from mmlongbench.building.executors import Executor
from mmlongbench.building.finish import finish
from mmlongbench.building.session import Session
from mmlongbench.building.stages.records import pack_row
from mmlongbench.checking.check import check
from mmlongbench.checking.rules import BUILT, RULES
from mmlongbench.lengths import K

CHECK = "mmlongbench.checking.check.check"
KEPT = "questions are kept"
EXAMPLES, OLD = Path(__file__).parents[2] / "examples", "do not count on the weather"


@pytest.fixture
def source(tmp_path: Path) -> Path:
    draw_source(tmp_path / "source", ROWS[:4])
    return tmp_path / "source"


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Ran, mm.Checked]:
    """(a source that keeps all rules, what the command says of it, what it has found)."""
    folder, found = tmp_path_factory.mktemp("kept"), list[mm.Checked]()
    draw_source(folder / "source", ROWS[:4])

    def remembered(*given: Any, **named: Any) -> mm.Checked:
        found.append(check(*given, **named))
        return found[0]

    with mock.patch(CHECK, remembered):
        ran = command("check", folder / "source/tiny.yaml", "--limit", 2)
    return folder, ran, found[0]


def test_a_manifest_that_keeps_all_rules_exits_with_0_and_prints_a_table(kept: tuple[Path, Ran, mm.Checked]) -> None:
    folder, ran, _ = kept
    assert (ran.code, ran.err) == (0, "")
    about, (head, *table), read, last = (part.splitlines() for part in ran.out.split("\n\n"))
    said = " ".join(map(str.strip, about))
    assert said.startswith("mmlongdoc: 2 questions at 1K, 2K; runs builder 'docvqa' (builders.docvqa:DocVQA of ")
    assert "metric 'doc_qa' (mmlongbench.metrics." in said
    assert head.split() == ["rule", "result"]
    assert max(len(line.rstrip()) for line in ran.out.splitlines()) <= 80
    assert "another process builds the same bytes        holds" in [line.rstrip() for line in table]
    assert read[0] == "mmlongdoc: read one: does the context give this answer?"
    assert [line.partition(":")[0] for line in read[1:]] == ["  row", "  question", "  answer", "  evidence"]
    assert last == ["all holds for mmlongdoc (2 questions); 8 of 32 rules do not apply"]
    assert sorted(path.name for path in folder.iterdir()) == ["source"]  # nothing is kept


def test_a_result_that_is_damaged_is_a_failed_rule(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def damaging(session: Session, executor: Executor) -> None:
        finish(session, executor)
        result = session.build_dir.result(questions_shard("mmlongdoc"))
        result.write_bytes(result.read_bytes().replace(b'"mmlongdoc_1"', b'"mmlongdoc_2"', 1))

    monkeypatch.setattr("mmlongbench.checking.check.finish", damaging)
    found = {finding.rule: finding for finding in mm.check(source / "tiny.yaml").findings}
    assert (found[KEPT].status, found[BUILT].status) == ("fails", "holds")
    assert "was damaged or changed, and was removed" in found[KEPT].detail
    assert {found[rule].detail for rule in RULES} == {"no questions were chosen"}


def test_json_has_every_finding_and_quiet_prints_nothing_if_all_holds(
    kept: tuple[Path, Ran, mm.Checked], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, _, checked = kept
    monkeypatch.setattr(CHECK, lambda *given, **named: checked)
    ran = command("check", folder / "source/tiny.yaml", "--limit", 2, "--json")
    found = json.loads(ran.out)
    assert (ran.code, found["holds"]) == (0, True)
    assert found["datasets"][0]["lengths"] == [1024, 2048]
    assert [name for name, _ in found["datasets"][0]["example"]] == ["row", "question", "answer", "evidence"]
    assert len(found["findings"]) == 32
    assert {(each["dataset"], each["status"]) for each in found["findings"]} == {
        ("mmlongdoc", "holds"),
        ("mmlongdoc", "skipped"),
    }
    assert command("check", folder / "source/tiny.yaml", "--limit", 2, "-q") == Ran(0, "", "")


def test_a_dataset_that_keeps_no_question_fails_with_the_reasons(source: Path) -> None:
    write_rows(source, (ROWS[5], ROWS[6]))
    ran = command("check", source / "tiny.yaml", "-q")
    assert (ran.code, ran.err) == (1, "")
    lines = [line.strip() for line in ran.out.splitlines() if line]
    assert lines[:2] == [f"mmlongdoc: {KEPT}: fails", "in row 'mmlongdoc_0'"]
    said = " ".join(lines[2:])
    assert said.startswith("none of 2 rows is kept (1 × long-form-answer, 1 × missing-document); the first: ")
    assert max(map(len, ran.out.splitlines())) <= 80
    found = mm.check(source / "tiny.yaml", limit=1, lengths="1K")
    (failure,) = found.failures
    assert (failure.rule, failure.row) == (KEPT, "mmlongdoc_0")
    assert [(each.name, each.questions, each.lengths) for each in found.datasets] == [("mmlongdoc", 0, (1024,))]


def test_rules_that_compare_lengths_are_skipped_at_one_length(source: Path) -> None:
    ran = command("check", source / "tiny.yaml", "--limit", 2, "--lengths", "1K", "--json")
    found = json.loads(ran.out)
    assert (ran.code, found["holds"], found["datasets"][0]["lengths"]) == (0, True, [1024])
    of_lengths = [each for each in found["findings"] if each["detail"] == "there is one length"]
    assert [(each["rule"], each["status"]) for each in of_lengths] == [
        ("shorter contexts are nested in longer ones", "skipped"),
    ]


def test_a_plugin_that_fails_is_a_finding(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(self: object, record: object) -> None:
        raise KeyError("boo")

    monkeypatch.setattr("builders.docvqa.builder.DocVQA.prompt", fails)
    ran = command("check", source / "tiny.yaml", "--limit", 1)
    assert ran.code == 1
    assert "mmlongdoc: a small release can be built: fails\n  in prompt(), row 'mmlongdoc_" in ran.out
    assert "\n  KeyError: 'boo' (test_check.py, line " in ran.out
    assert "Traceback" not in ran.out
    debugged = command("--debug", "check", source / "tiny.yaml", "--limit", 1, "-q")
    assert "Traceback" in debugged.out
    assert 'raise KeyError("boo")' in debugged.out
    said = " ".join(ran.out.split())
    assert "a draft is the same each time it is made holds" in said
    assert "the other rules (26) not run: the small release was not built" in said
    assert ran.out.endswith("1 of 32 rules fail, 26 could not be run\n")


def test_a_person_can_see_that_the_answer_is_the_outdated_value(tmp_path: Path) -> None:
    """No rule can: both values are plausible, and the context has both."""
    task = (EXAMPLES / "fables/fables.py").read_text("utf-8")
    outdated = f'mt.Unit(self.title, "In 1972 it taught: {OLD}. " + self.text, label="the fable of 1990")'
    task = task.replace('mt.Unit(self.title, self.text, head=f"{self.title}: ")', outdated)
    (tmp_path / "fables.py").write_text(task.replace("question, row.moral)", f"question, {OLD!r})"), "utf-8")
    for name in ("fables.yaml", "fables.jsonl"):
        shutil.copy(EXAMPLES / "fables" / name, tmp_path)
    ran = command("check", tmp_path / "fables.yaml", "--limit", 1, "--lengths", "2K")
    read = " ".join(ran.out.partition("read one: does the context give this answer?")[2].split())
    assert f"answer: {OLD} the fable of 1990: In 1972 it taught: {OLD}." in read
    assert "The moral:" not in command("check", tmp_path / "fables.yaml", "--limit", 1, "--lengths", "2K", "-q").out


EVIDENCE = """    def evidence(self, record: mt.Record) -> mt.Evidence:
        return mt.Evidence("doc", {})

    def draft("""


@pytest.mark.parametrize("pages", ['("3",)', "5"])
def test_an_odd_value_of_a_task_leaves_the_other_findings(pages: str, tmp_path: Path) -> None:
    task = (EXAMPLES / "fables/fables.py").read_text("utf-8").replace("    def draft(", EVIDENCE.format(pages))
    (tmp_path / "fables.py").write_text(task, "utf-8")
    for name in ("fables.yaml", "fables.jsonl"):
        shutil.copy(EXAMPLES / "fables" / name, tmp_path)
    ran = command("check", tmp_path / "fables.yaml", "--limit", 1, "--lengths", "2K")
    assert (ran.code, ran.out.count("fables: evidence is in the context: fails")) == (1, 1)
    assert "not shown: question_of(), choices(), needles() or evidence(): TypeError: " in " ".join(ran.out.split())
    assert ran.out.endswith("1 of 32 rules fail, 0 could not be run\n")


def test_an_error_of_the_disk_at_a_length_that_is_packed_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(dataset: Any, row: Any, length: int) -> Any:
        if length == 5 * K:
            raise OSError(5, "Input/output error", "pic.png")
        return pack_row(dataset, row, length)

    monkeypatch.setattr("mmlongbench.checking.world.pack_row", failing)
    checked = mm.check(EXAMPLES / "fables/fables.yaml", limit=1, lengths="2K,3K,4K,5K")
    assert len(checked.findings) == 32
    first = checked.failures[0]
    assert (first.rule, first.length) == ("examples are packed at every length", 5 * K)
    assert "Input/output error: 'pic.png'" in first.detail


def test_an_answer_that_no_unit_has_is_noted(tmp_path: Path) -> None:
    task = (EXAMPLES / "fables/fables.py").read_text("utf-8")
    (tmp_path / "fables.py").write_text(task.replace("question, row.moral)", "question, 'seven sheep')"), "utf-8")
    for name in ("fables.yaml", "fables.jsonl"):
        shutil.copy(EXAMPLES / "fables" / name, tmp_path)
    ran = command("check", tmp_path / "fables.yaml", "--limit", 1, "--lengths", "2K", "--json")
    notes = {each["rule"]: each["detail"] for each in json.loads(ran.out)["findings"]}
    assert notes["answers stand in their contexts"] == "the answer of 1 of 1 questions stands nowhere in the context"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--set", "builder=docvq"), "no builder 'docvq' is installed"),
        (("--set", "source.samples=none.json"), "none.json"),
        (("--lengths", "7x"), "7x"),
        (("--limit", "0"), "limit"),
    ],
)
def test_what_cannot_be_checked_exits_with_2(arguments: tuple[str, ...], said: str, source: Path) -> None:
    ran = command("check", source / "tiny.yaml", *arguments)
    assert (ran.code, ran.out, said in ran.err) == (2, "", True)
    if arguments == ("--limit", "0"):
        with pytest.raises(mm.ManifestError, match="limit 0: expected a whole number of questions"):
            mm.check(source / "tiny.yaml", limit=0)
