"""Files of decisions that people and other viewers change as well: nothing of theirs is lost, and nothing breaks."""

import csv
import io
import threading
from pathlib import Path

import pytest
from reviewed import Deciding, question_folder, reviewing, suspect_lines

from mmlongbench.errors import ManifestError, ReleaseError
from mmlongbench.io.atomic import folder_lock
from mmlongbench.io.yaml_text import MAX_BYTES
from mmlongbench.manifest.errata import load_errata
from mmlongbench.manifest.errata_edit import edited, kept_ids
from mmlongbench.questions.reviewing.merging import merge, read_folder
from mmlongbench.questions.reviewing.sheet import plain_cell, safe_cell
from mmlongbench.web.viewer.reviewing import decisions


@pytest.fixture
def errata(tmp_path: Path) -> Path:
    return tmp_path / "errata.yaml"


@pytest.fixture
def sheet(tmp_path: Path) -> Path:
    return tmp_path / "anna.csv"


def deciding(finished: Path, tmp_path: Path, write: Path) -> Deciding:
    is_sheet = write.suffix == ".csv"
    given = {"questions": question_folder(tmp_path)} if is_sheet else {"suspects": suspect_lines(tmp_path)}
    return Deciding(reviewing(finished, **given, write=write))


def seen(asked: Deciding, number: int) -> str:
    """What the page of a subject sends as the decision that it showed."""
    return str(asked.client.get(f"/review/{number + 1}").text.partition('data-seen="')[2].partition('"')[0])


@pytest.mark.parametrize("said", ['"foo" and "bar"', '"\\q"', "5", '"'])
def test_a_comment_by_hand_that_resembles_ours_is_only_a_comment(
    finished: Path, tmp_path: Path, errata: Path, said: str
) -> None:
    comment = f"# I says that the source is right: {said}\n"
    errata.write_text(comment, "utf-8")
    assert kept_ids(comment) == {}
    asked = deciding(finished, tmp_path, errata)
    assert asked.client.get("/review").status_code == 200
    assert asked.send(0, "keep").status_code == 200
    assert asked.send(0, "undo").status_code == 200
    assert errata.read_text("utf-8") == comment


@pytest.mark.parametrize("text", ["---\n", "# none yet\n---\n", ""])
def test_an_empty_document_takes_entries(text: str) -> None:
    assert edited(text, "a", {"source": "x", "drop": True}) == f"{text}a:\n  source: x\n  drop: true\n"


ALIAS = "b: &x\n  source: s\n  drop: true\n# c\nmmlongdoc_1: *x\n"
ANCHOR = "mmlongdoc_1: &x\n  source: s\n  drop: true\nz: *x\n"
END = "b:\n  source: s\n  drop: true\n...\n"


@pytest.mark.parametrize("text", [ALIAS, ANCHOR, END])
def test_errata_that_cannot_be_changed_are_refused_in_words_that_help(
    finished: Path, tmp_path: Path, errata: Path, text: str
) -> None:
    errata.write_text(text, "utf-8")
    answer = deciding(finished, tmp_path, errata).send(0, "accept")
    assert answer.status_code == 409
    assert "cannot be changed here without touching other entries; change it by hand" in answer.text
    assert errata.read_text("utf-8") == text


def test_errata_are_never_larger_than_can_be_read(finished: Path, tmp_path: Path, errata: Path) -> None:
    asked = deciding(finished, tmp_path, errata)
    assert asked.send(0, "remove").status_code == 200
    room = MAX_BYTES - errata.stat().st_size
    assert asked.send(0, "undo").status_code == 200
    mark = b"\xef\xbb\xbf"
    before = mark + b"#" * (room - 1) + b"\n" + errata.read_bytes()
    errata.write_bytes(before)
    answer = asked.send(0, "remove")
    assert (answer.status_code, errata.read_bytes()) == (409, before)


def test_a_value_that_is_no_json_is_named(errata: Path) -> None:
    errata.write_text("a: {source: x, set: {p: !!set {q, r}}}\n", "utf-8")
    with pytest.raises(ManifestError, match=r"a\.set\.p: "):
        load_errata(errata)


@pytest.mark.parametrize("name", ["errata.yaml", "anna.csv"])
def test_a_viewer_of_somebody_else_is_waited_for(
    finished: Path, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others have another cache, so the lock is on the folder of the file, in which it leaves nothing."""
    (tmp_path / "shared").mkdir()
    write = tmp_path / "shared" / name
    asked = deciding(finished, tmp_path, write)
    monkeypatch.setattr(decisions, "_PATIENCE", 0.1)
    with folder_lock(write.parent, "a file"):
        answer = asked.send(0, "accept")
    assert (answer.status_code, write.exists()) == (409, False)
    assert "is being written by another process" in answer.text
    monkeypatch.setattr(decisions, "_PATIENCE", 5.0)
    answers: list[int] = []
    with folder_lock(write.parent, "a file"):
        thread = threading.Thread(target=lambda: answers.append(asked.send(0, "accept").status_code))
        thread.start()
        thread.join(0.2)
        assert answers == []
    thread.join()
    assert (answers, list(write.parent.iterdir())) == ([200], [write])


@pytest.mark.parametrize("name", ["errata.yaml", "anna.csv"])
def test_a_page_does_not_replace_a_decision_that_it_did_not_show(finished: Path, tmp_path: Path, name: str) -> None:
    write = tmp_path / name
    asked = deciding(finished, tmp_path, write)
    old = seen(asked, 0)
    assert old == ""
    first = asked.send(0, "accept", seen=old)
    assert first.status_code == 200, first.text
    assert seen(asked, 0) == first.json()["seen"] != ""
    before = write.read_bytes()
    for act in ("remove", "undo"):
        answer = asked.send(0, act, seen=old, problem="ambiguous")
        assert (answer.status_code, write.read_bytes()) == (409, before)
        assert "was decided elsewhere since this page was opened (accept: " in answer.text
    assert asked.send(0, "undo", seen=first.json()["seen"]).json()["seen"] == ""


def test_rows_of_two_datasets_with_one_id_are_both_shown_and_not_written(finished: Path, tmp_path: Path) -> None:
    line = {"dataset": "other", "id": "mmlongdoc_1", "kind": "of-the-other", "evidence": "e"}
    path = suspect_lines(tmp_path, line)
    listed = Deciding(reviewing(finished, path)).client.get("/review").text
    assert "Review of 4 suspects" in listed
    assert "of-the-other" in listed
    with pytest.raises(ReleaseError, match=r"suspects of 2 datasets \(mmlongdoc, other\)"):
        reviewing(finished, path, write=tmp_path / "errata.yaml")


def test_what_was_revised_is_shown_beside_the_source(finished: Path, tmp_path: Path, errata: Path) -> None:
    asked = deciding(finished, tmp_path, errata)
    asked.send(0, "revise", values={"answer": "<i>&", "weight": "2"}, comment='by "hand"; twice')
    text = asked.client.get("/review/1").text
    assert 'value="by &#34;hand&#34;; twice"' in text
    assert '<textarea data-field="weight" data-source="1"' in text
    assert ">\n&lt;i&gt;&amp;</textarea>" in text
    assert text.count("data-source=") == 2
    assert text.count("revised; in the source: ") == 2


def rows_of(sheet: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(sheet.read_text("utf-8-sig"), newline="")))


def write_rows(sheet: Path, rows: list[dict[str, str]]) -> None:
    with sheet.open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, list(rows[0]))
        table.writeheader()
        table.writerows(rows)


@pytest.mark.parametrize("is_first", [True, False])
def test_of_two_rows_of_a_question_the_own_one_is_shown_and_filled(
    finished: Path, tmp_path: Path, sheet: Path, is_first: bool
) -> None:
    asked = deciding(finished, tmp_path, sheet)
    asked.send(0, "accept", comment="of anna")
    own, *others = rows_of(sheet)
    bert = {**own, "annotator": "bert", "comment": "of bert"}
    write_rows(sheet, [bert, own, *others] if is_first else [own, *others, bert])
    text = asked.client.get("/review/1").text
    assert "of anna; by anna" in text
    assert 'value="of anna"' in text
    write_rows(sheet, [bert, *others])
    text = asked.client.get("/review/1").text
    assert "of bert; by bert" in text
    assert 'value="of bert"' not in text
    write_rows(sheet, [bert, own, *others] if is_first else [own, *others, bert])
    assert asked.send(0, "remove", problem="ambiguous").status_code == 200
    assert {
        (row["annotator"], row["decision"], row["comment"]) for row in rows_of(sheet) if row["id"] == own["id"]
    } == {
        ("bert", "Retain", "of bert"),
        ("anna", "Remove", ""),
    }


def test_what_another_has_begun_in_a_row_is_not_lost(finished: Path, tmp_path: Path, sheet: Path) -> None:
    asked = deciding(finished, tmp_path, sheet)
    asked.send(1, "accept")
    rows = rows_of(sheet)
    rows[0] |= {"annotator": "bert", "comment": "look again"}
    write_rows(sheet, rows)
    before = sheet.read_bytes()
    answer = asked.send(0, "accept")
    assert (answer.status_code, sheet.read_bytes()) == (409, before)
    assert "bert has begun this" in answer.text
    write_rows(sheet, [{**rows[0], "annotator": "anna"}, *rows[1:]])
    assert asked.send(0, "accept").status_code == 200
    assert rows_of(sheet)[0]["comment"] == "look again"


def test_a_comment_and_a_problem_are_shown_again(finished: Path, tmp_path: Path, sheet: Path) -> None:
    asked = deciding(finished, tmp_path, sheet)
    values = {"answer_new": "31 m", "pages_new": "2; 3"}
    answer = asked.send(1, "revise", problem="wrong-answer-or-pages", comment='=1 "x"', values=values)
    assert answer.status_code == 200, answer.text
    text = asked.client.get("/review/2").text
    assert 'value="=1 &#34;x&#34;"' in text
    assert '<option value="wrong-answer-or-pages" selected>' in text
    assert 'data-field="pages_new" data-source="2"' in text
    assert ">\n2; 3</textarea>" in text


@pytest.mark.parametrize("text", ["'=x", "''=x", "=x", "'-5", "'", "'s", "''"])
def test_cells_are_read_as_they_were_written(text: str) -> None:
    assert plain_cell(safe_cell(text)) == text


@pytest.mark.parametrize("answer", ["[]", "[ ]", "[" * 20_000])
def test_an_answer_that_is_no_answer_is_refused(finished: Path, tmp_path: Path, sheet: Path, answer: str) -> None:
    asked = deciding(finished, tmp_path, sheet)
    sent = asked.send(1, "revise", problem="ambiguous", values={"answer_new": answer})
    assert (sent.status_code, sheet.exists()) == (409, False), sent.text
    asked.send(1, "accept")
    rows = rows_of(sheet)
    rows[1] |= {"decision": "Revise", "problem": "ambiguous", "answer_new": answer}
    write_rows(sheet, rows)
    merged = merge(read_folder(tmp_path / "questions"), [sheet], 0.0)
    assert len(merged.faults) == 1
    assert not merged.labelled("Revise")
