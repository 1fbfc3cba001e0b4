"""Reviews: what stands beside each other, what is written, that others' decisions stay, and who may write."""

import asyncio
import csv
import io
import json
import stat
import threading
from pathlib import Path
from typing import Any

import pytest
from reviewed import Deciding, question_folder, suspect_lines
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message
from tiny import command
from viewing import HOST, viewer

from mmlongbench.errors import ManifestError
from mmlongbench.io.files import folder_lock
from mmlongbench.io.yaml_text import MAX_BYTES
from mmlongbench.manifest.errata import corrected, edited, kept_ids, load_errata
from mmlongbench.questions.reviewing.merging import merge, read_folder
from mmlongbench.questions.reviewing.sheet import plain_cell, safe_cell
from mmlongbench.web.viewer import posting
from mmlongbench.web.viewer.posting import MAX_BODY


@pytest.fixture
def errata(tmp_path: Path) -> Path:
    return tmp_path / "errata.yaml"


@pytest.fixture
def sheet(tmp_path: Path) -> Path:
    return tmp_path / "anna.csv"


def deciding(release: Path, write: Path, *suspects: dict[str, Any]) -> Deciding:
    """A review of questions, written into a sheet, or of suspects and some more."""
    folder = write.parent
    if write.suffix == ".csv":
        out = folder / "questions"
        return Deciding(release, "--review", out if out.exists() else question_folder(folder), write=write)
    return Deciding(release, "--suspects", suspect_lines(folder, *suspects), write=write)


@pytest.fixture
def asked(finished: Path, errata: Path) -> Deciding:
    return deciding(finished, errata)


@pytest.fixture
def sheeted(finished: Path, sheet: Path) -> Deciding:
    return deciding(finished, sheet)


# Suspects, whose decisions are errata.


def test_the_page_stands_beside_the_claimed_answer(asked: Deciding) -> None:
    listed = asked.client.get("/review").text
    assert "Review of 3 suspects" in listed
    assert "3 are not decided" in listed
    text = asked.page(2)
    for part in ("What is its bark?", "Page 2: claimed", "Page 3: proposed"):
        assert part in asked.page(1), part
    assert 'href="/example/documentQA/mmlongdoc_K1.jsonl/2"' in asked.page(1)
    images = [part.split('"')[0] for part in asked.page(1).split('<img loading="lazy" src="')[1:]]
    assert len(images) == 2
    assert {asked.client.get(image).headers["content-type"] for image in images} == {"image/jpeg"}
    assert "Which two colours?" in text
    assert "No context of the release that was looked at shows this page" in asked.page(3)
    assert asked.client.get("/review/4").status_code == 404


def test_a_page_of_a_document_is_shown_by_the_image_that_joins_it(source: Path, tmp_path: Path) -> None:
    options = ("--set", "options.pages_as=joined", "--set", "options.joined=1", "--lengths", "1K")
    built = command("build", source / "tiny.yaml", "--out", tmp_path / "release", *options)
    assert built.code == 0, built.err
    about = {"dataset": "mmlongdoc", "id": "mmlongdoc_10", "kind": "k", "evidence": "e"}
    said = {**about, "correction": {"pages": [3]}, "fields": {"doc_id": "cedar.pdf", "pages": [2]}}
    unsaid = {**about, "fields": {"doc_id": "cedar.pdf"}}
    texts = []
    for line in (said, unsaid):
        client = viewer(tmp_path / "release", "--suspects", suspect_lines(tmp_path, line))
        texts.append(client.get("/review/4").text)
    assert "Page 2: claimed; the image shows pages 1 to 4" in texts[0]
    assert "Page 3: proposed; the image shows pages 1 to 4" in texts[0]
    text = texts[1]
    assert "Page 2: claimed" in text, "as the record says it, by the document"
    assert text.count("; the image shows pages") == 1


def test_decisions_about_suspects_are_errata(asked: Deciding, errata: Path) -> None:
    first = asked.send(0, "accept", comment="seen")
    assert (first.json()["act"], first.json()["next"], first.json()["left"]) == ("accept", "/review/2", 2)
    asked.send(1, "revise", values={"answer": "['red']", "weight": "2", "question": "Which two colours?"})
    last = asked.send(2, "keep")
    assert (last.json()["left"], last.json()["next"]) == (0, "")
    found = load_errata(errata)
    assert set(found) == {"mmlongdoc_1", "mmlongdoc_2"}
    assert found["mmlongdoc_1"].set == {"evidence_pages": ["3"]}
    assert found["mmlongdoc_1"].was == {"evidence_pages": "[2]"}
    assert found["mmlongdoc_1"].source == "review by anna: answer-on-another-page: look at it; seen"
    assert found["mmlongdoc_2"].set == {"answer": "['red']", "weight": "2"}
    assert '# anna says that the source is right: "mmlongdoc_7"\n' in errata.read_text("utf-8")
    assert "0 are not decided" in asked.client.get("/review").text
    asked.send(2, "remove")
    assert load_errata(errata)["mmlongdoc_7"].drop
    assert "the source is right" not in errata.read_text("utf-8")
    asked.send(0, "undo")
    assert "mmlongdoc_1" not in load_errata(errata)
    assert asked.send(1, "accept").status_code == 409, "nothing is proposed"


def test_a_build_applies_what_was_decided(asked: Deciding, source: Path, errata: Path, tmp_path: Path) -> None:
    asked.send(0, "remove")
    settings = ("--set", f"errata={errata}", "--lengths", "1K")
    built = command("build", source / "tiny.yaml", "--out", tmp_path / "release", *settings)
    assert built.code == 0, built.err
    lines = (tmp_path / "release/mmlb_data/documentQA/mmlongdoc_K1.jsonl").read_text("utf-8").splitlines()
    assert "mmlongdoc_1" not in {json.loads(line)["id"] for line in lines}


def test_what_was_revised_is_shown_beside_the_source(asked: Deciding) -> None:
    asked.send(0, "revise", values={"answer": "<i>&", "weight": "2"}, comment='by "hand"; twice')
    text = asked.page(1)
    assert 'value="by &#34;hand&#34;; twice"' in text
    assert '<textarea data-field="weight" data-source="1"' in text
    assert ">\n&lt;i&gt;&amp;</textarea>" in text
    assert text.count("data-source=") == text.count("revised; in the source: ") == 2


ODD: dict[str, object] = {
    "question": "Cost: 5\x85 each",
    "n": None,
    "tiny": 1e-07,
    "big": 1234567890123456789,
    "of": [],
    "flag": True,
}


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("question", "It cost 5.", "It cost 5."),
        ("question", "' It\x85cost\u20285", "' It\x85cost\u20285"),
        ("question", "007", "007"),
        ("tiny", "1e-06", 1e-06),
        ("tiny", "0.5", 0.5),
        ("tiny", "1e22", None),
        ("big", "1234567890123456780", None),
        ("n", '"foo"', "foo"),
        ("n", '"5"', None),
        ("n", '"null"', None),
        ("of", '["5"]', None),
        ("of", "[1, 2.5, null]", [1, 2.5, None]),
        ("flag", "false", False),
    ],
)
def test_errata_correct_a_row_as_was_meant_or_are_refused(
    finished: Path, errata: Path, name: str, text: str, value: object
) -> None:
    asked = deciding(
        finished, errata, {"dataset": "mmlongdoc", "id": "odd", "kind": "k", "evidence": "e", "fields": ODD}
    )
    answer = asked.send(3, "revise", values={name: text})
    if value is None:
        assert (answer.status_code, errata.exists()) == (409, False)
        assert "errata cannot say" in answer.text
        return
    assert answer.status_code == 200, answer.text
    got = corrected(ODD, load_errata(errata)["odd"])
    assert json.dumps(got) == json.dumps({**ODD, name: value})


def test_ends_of_lines_that_a_browser_changes_are_no_change(finished: Path, errata: Path) -> None:
    fields = {"one": "a\rb", "two": "a\r\nb\n", "pages": "[4]"}
    line = {"dataset": "mmlongdoc", "id": "odd", "kind": "k", "evidence": "e", "fields": fields}
    values = {"one": "a\nb", "two": "a\nb\n", "pages": "[6]"}
    assert deciding(finished, errata, line).send(3, "revise", values=values).status_code == 200
    assert load_errata(errata)["odd"].set == {"pages": "[6]"}


def test_what_a_file_of_errata_has_besides_stays_in_it(finished: Path, errata: Path) -> None:
    before = (
        "# by hand\nother:   # why\n  source: 'x'\n  set: {a: 14:04}\n# next\nmmlongdoc_1:\n  source: y\n  drop: true\n"
    )
    errata.write_text(before, "utf-8")
    asked = deciding(finished, errata)
    assert "<b>remove</b>" in asked.page(1)
    for number, act in ((0, "accept"), (1, "remove"), (0, "undo"), (1, "undo")):
        assert asked.send(number, act).status_code == 200
    assert errata.read_text("utf-8") == before.partition("mmlongdoc_1")[0]
    marked = b"\xef\xbb\xbf# m\r\nzz:\r\n  source: q\r\n  drop: true\r\n"
    errata.write_bytes(marked)
    assert asked.send(0, "accept").status_code == 200
    assert errata.read_bytes().startswith(marked)
    assert asked.send(0, "undo").status_code == 200
    assert errata.read_bytes() == marked


@pytest.mark.parametrize("said", ['"foo" and "bar"', '"\\q"', "5", '"'])
def test_a_comment_by_hand_that_resembles_ours_is_only_a_comment(finished: Path, errata: Path, said: str) -> None:
    comment = f"# I says that the source is right: {said}\n"
    errata.write_text(comment, "utf-8")
    assert kept_ids(comment) == {}
    asked = deciding(finished, errata)
    assert asked.send(0, "keep").status_code == 200
    assert asked.send(0, "undo").status_code == 200
    assert errata.read_text("utf-8") == comment


def test_a_draft_of_the_doctor_is_not_decided(finished: Path, errata: Path) -> None:
    errata.write_text("mmlongdoc_1: {source: 'mmlongbench doctor: x', set: {evidence_pages: [3]}}\n", "utf-8")
    asked = deciding(finished, errata)
    assert "not decided" in asked.page(1)
    assert asked.send(0, "accept").json()["act"] == "accept"


ALIAS = "b: &x\n  source: s\n  drop: true\n# c\nmmlongdoc_1: *x\n"
ANCHOR = "mmlongdoc_1: &x\n  source: s\n  drop: true\nz: *x\n"
END = "b:\n  source: s\n  drop: true\n...\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        *((text, "without touching other entries; change it by hand") for text in (ALIAS, ANCHOR, END)),
        ("{a: {source: x, drop: true}}\n", "without braces"),
        ("- a\n", None),
        ("a: [\n", None),
        ("a: {source: x}\n", None),
        ("\ufffe", None),
        ("a: {source: x, set: {p: !!set {q, r}}}\n", None),
    ],
)
def test_errata_that_cannot_be_changed_stay_and_those_that_cannot_be_read_are_refused_at_once(
    finished: Path, errata: Path, text: str, said: str | None
) -> None:
    errata.write_text(text, "utf-8")
    if said is None:
        given = ("--suspects", suspect_lines(errata.parent), "--write", errata, "--annotator", "anna")
        ran = command("view", finished, "--port", 0, *given)
        assert ran.code == 2
        assert "errata.yaml" in ran.err
    else:
        answer = deciding(finished, errata).send(0, "accept")
        assert (answer.status_code, said in answer.text) == (409, True), answer.text
    assert errata.read_text("utf-8") == text


@pytest.mark.parametrize("text", ["---\n", "# none yet\n---\n", ""])
def test_an_empty_document_takes_entries(text: str) -> None:
    assert edited(text, "a", {"source": "x", "drop": True}) == f"{text}a:\n  source: x\n  drop: true\n"


def test_a_value_that_is_no_json_is_named(errata: Path) -> None:
    errata.write_text("a: {source: x, set: {p: !!set {q, r}}}\n", "utf-8")
    with pytest.raises(ManifestError, match=r"a\.set\.p: "):
        load_errata(errata)


def test_errata_are_never_larger_than_can_be_read(asked: Deciding, errata: Path) -> None:
    assert asked.send(0, "remove").status_code == 200
    room = MAX_BYTES - errata.stat().st_size
    assert asked.send(0, "undo").status_code == 200
    before = b"\xef\xbb\xbf" + b"#" * (room - 1) + b"\n" + errata.read_bytes()
    errata.write_bytes(before)
    answer = asked.send(0, "remove")
    assert (answer.status_code, errata.read_bytes()) == (409, before)


def test_rows_of_two_datasets_with_one_id_are_both_shown_and_not_written(finished: Path, tmp_path: Path) -> None:
    line = {"dataset": "other", "id": "mmlongdoc_1", "kind": "of-the-other", "evidence": "e"}
    suspects = ("--suspects", suspect_lines(tmp_path, line))
    listed = viewer(finished, *suspects).get("/review").text
    assert "Review of 4 suspects" in listed
    assert "of-the-other" in listed
    refused = command("view", finished, *suspects, "--write", tmp_path / "errata.yaml", "--annotator", "anna")
    assert refused.code == 2
    assert "suspects of 2 datasets (mmlongdoc, other)" in refused.err


def test_ids_and_comments_are_only_text_in_the_file(finished: Path, errata: Path) -> None:
    evil = "x: {}\n# anna says\nmmlongdoc_1: &a !!python/object:os.system"
    line = {"dataset": "mmlongdoc", "id": evil, "kind": "<b>", "evidence": evil, "fields": {evil: "<script>"}}
    asked = deciding(finished, errata, line)
    assert "<script>" not in asked.page(4)
    assert asked.send(3, "keep").status_code == 200
    assert load_errata(errata) == {}
    assert asked.send(3, "revise", values={evil: evil}, comment=f"{evil}\r\n- '\"\u2028").status_code == 200
    found = load_errata(errata)
    assert set(found) == {evil}
    assert found[evil].set == {evil: evil}


def test_many_decisions_at_once_are_all_written(asked: Deciding, errata: Path) -> None:
    threads = [threading.Thread(target=asked.send, args=(number, "remove")) for number in (0, 1, 2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(load_errata(errata)) == 3


# Questions, whose decisions are a sheet.


def rows_of(sheet: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(sheet.read_text("utf-8-sig"), newline="")))


def write_rows(sheet: Path, rows: list[dict[str, str]]) -> None:
    with sheet.open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, list(rows[0]))
        table.writeheader()
        table.writerows(rows)


def test_decisions_about_questions_are_a_sheet_that_is_imported(sheeted: Deciding, sheet: Path) -> None:
    folder = sheet.parent / "questions"
    assert "Page 2: claimed" in sheeted.page(2)
    assert '<img loading="lazy"' in sheeted.page(2)
    assert sheeted.send(0, "accept").json()["act"] == "accept"
    assert sheeted.send(1, "remove").status_code == 409, "a problem must be named"
    assert sheeted.send(1, "revise", problem="ambiguous").status_code == 409, "nothing is revised"
    new = {"question_new": "How tall is it?", "answer_new": "31 m", "pages_new": "2; 3"}
    answer = sheeted.send(1, "revise", problem="wrong-answer-or-pages", comment='=1 "x"', values=new)
    assert answer.json()["left"] == 0, answer.text
    text = sheeted.page(2)
    for part in (
        'value="=1 &#34;x&#34;"',
        '<option value="wrong-answer-or-pages" selected>',
        'data-field="pages_new" data-source="2"',
        ">\n2; 3</textarea>",
    ):
        assert part in text, part
    questions = read_folder(folder)
    merged = merge(questions, [sheet], 0.0)
    assert not merged.faults
    labels = [(each.final.label, each.final.annotator) for each in merged.settled if each.final]
    assert sorted(labels) == [("Retain", "anna"), ("Revise", "anna")]
    revised = merged.labelled("Revise")[0].final
    assert revised
    assert revised.revision
    assert (revised.revision.question, revised.revision.answer, revised.revision.pages) == (None, ("31 m",), (2, 3))
    assert revised.comment == '=1 "x"'
    sheeted.send(1, "undo")
    assert len(merge(questions, [sheet], 0.0).needing("more")) == 1


def test_a_sheet_that_was_exported_is_filled_and_others_decisions_stay(finished: Path, tmp_path: Path) -> None:
    folder, sheet = question_folder(tmp_path), tmp_path / "sheet.csv"
    assert command("questions", "export", folder, "--review", sheet).code == 0
    asked = deciding(finished, sheet)
    assert asked.send(0, "accept").status_code == 200
    sheet.write_text(sheet.read_text("utf-8").replace("anna", "bert"), "utf-8")
    before = sheet.read_bytes()
    answer = asked.send(0, "remove", problem="ambiguous")
    assert (answer.status_code, sheet.read_bytes()) == (409, before)
    assert "bert has decided this" in answer.text


def test_ends_of_lines_in_a_question_are_no_change(finished: Path, tmp_path: Path) -> None:
    path = question_folder(tmp_path) / "questions.jsonl"
    path.write_text(
        path.read_text("utf-8").replace("the bark of the birch?", "the\\rbark of the birch? \\r\\n"), "utf-8"
    )
    sheet = tmp_path / "sheet.csv"
    asked = deciding(finished, sheet)
    values = {"question_new": "What is the\nbark of the birch? \n", "answer_new": "white", "pages_new": "3"}
    answer = asked.send(0, "revise", problem="ambiguous", values=values)
    assert answer.status_code == 200, answer.text
    (row,) = [each for each in rows_of(sheet) if each["decision"]]
    assert [row[name] for name in values] == ["", "", "3"]


def test_semicolons_of_a_sheet_stay_and_cells_without_a_name_are_not_lost(sheeted: Deciding, sheet: Path) -> None:
    sheeted.send(0, "accept")
    rows = list(csv.reader(io.StringIO(sheet.read_text("utf-8-sig"))))

    def write(name: str) -> None:
        with sheet.open("w", encoding="utf-8", newline="") as file:
            table = csv.writer(file, delimiter=";")
            table.writerows([*row, "a; note" if at else name] for at, row in enumerate(rows))

    write("mine")
    assert sheeted.send(1, "accept").json()["left"] == 0
    found = list(csv.reader(io.StringIO(sheet.read_text("utf-8-sig")), delimiter=";"))
    assert [row[-1] for row in found] == ["mine", "a; note", "a; note"]
    write("")
    before = sheet.read_bytes()
    answer = sheeted.send(1, "accept")
    assert (answer.status_code, sheet.read_bytes()) == (409, before)
    assert "has no name" in answer.text


@pytest.mark.parametrize("is_first", [True, False])
def test_of_two_rows_of_a_question_the_own_one_is_shown_and_filled(
    sheeted: Deciding, sheet: Path, is_first: bool
) -> None:
    sheeted.send(0, "accept", comment="of anna")
    own, *others = rows_of(sheet)
    bert = {**own, "annotator": "bert", "comment": "of bert"}
    both = [bert, own, *others] if is_first else [own, *others, bert]
    write_rows(sheet, both)
    text = sheeted.page(1)
    assert "of anna; by anna" in text
    assert 'value="of anna"' in text
    write_rows(sheet, [bert, *others])
    text = sheeted.page(1)
    assert "of bert; by bert" in text
    assert 'value="of bert"' not in text
    write_rows(sheet, both)
    assert sheeted.send(0, "remove", problem="ambiguous").status_code == 200
    found = [(row["annotator"], row["decision"], row["comment"]) for row in rows_of(sheet) if row["id"] == own["id"]]
    assert sorted(found) == [("anna", "Remove", ""), ("bert", "Retain", "of bert")]


def test_what_another_has_begun_in_a_row_is_not_lost(sheeted: Deciding, sheet: Path) -> None:
    sheeted.send(1, "accept")
    rows = rows_of(sheet)
    rows[0] |= {"annotator": "bert", "comment": "look again"}
    write_rows(sheet, rows)
    before = sheet.read_bytes()
    answer = sheeted.send(0, "accept")
    assert (answer.status_code, sheet.read_bytes()) == (409, before)
    assert "bert has begun this" in answer.text
    write_rows(sheet, [{**rows[0], "annotator": "anna"}, *rows[1:]])
    assert sheeted.send(0, "accept").status_code == 200
    assert rows_of(sheet)[0]["comment"] == "look again"


@pytest.mark.parametrize("text", ["'=x", "''=x", "=x", "'-5", "'", "'s", "''"])
def test_cells_are_read_as_they_were_written(text: str) -> None:
    assert plain_cell(safe_cell(text)) == text


@pytest.mark.parametrize("answer", ["[]", "[ ]", "[" * 20_000])
def test_an_answer_that_is_no_answer_is_refused(sheeted: Deciding, sheet: Path, answer: str) -> None:
    sent = sheeted.send(1, "revise", problem="ambiguous", values={"answer_new": answer})
    assert (sent.status_code, sheet.exists()) == (409, False), sent.text
    sheeted.send(1, "accept")
    rows = rows_of(sheet)
    rows[1] |= {"decision": "Revise", "problem": "ambiguous", "answer_new": answer}
    write_rows(sheet, rows)
    merged = merge(read_folder(sheet.parent / "questions"), [sheet], 0.0)
    assert len(merged.faults) == 1
    assert not merged.labelled("Revise")


# Files of decisions, whatever is decided.

FILES = pytest.mark.parametrize("name", ["errata.yaml", "anna.csv"])


@FILES
def test_a_link_stays_a_link_and_permissions_stay(finished: Path, tmp_path: Path, name: str) -> None:
    real, link = tmp_path / "real" / name, tmp_path / name
    real.parent.mkdir()
    link.symlink_to(real)
    asked = deciding(finished, link)
    assert asked.send(0, "accept").status_code == 200
    real.chmod(0o600)
    assert asked.send(0, "undo").status_code == 200
    assert (link.is_symlink(), real.is_symlink(), stat.S_IMODE(real.stat().st_mode)) == (True, False, 0o600)
    real.chmod(0o444)
    before = real.read_bytes()
    answer = asked.send(0, "accept")
    assert (answer.status_code, real.read_bytes(), stat.S_IMODE(real.stat().st_mode)) == (409, before, 0o444)
    assert "is protected against writing" in answer.text
    assert list(real.parent.iterdir()) == [real]


@FILES
def test_a_viewer_of_somebody_else_is_waited_for(
    finished: Path, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others have another cache, so the lock is on the folder of the file, in which it leaves nothing."""
    patience = "mmlongbench.web.viewer.reviewing.decisions._PATIENCE"
    asked = deciding(finished, tmp_path / name)
    known = {*tmp_path.iterdir()}
    monkeypatch.setattr(patience, 0.05)
    with folder_lock(tmp_path, "a file"):
        answer = asked.send(0, "accept")
    assert (answer.status_code, {*tmp_path.iterdir()} - known) == (409, set())
    assert "is being written by another process" in answer.text
    monkeypatch.setattr(patience, 30.0)
    answers: list[int] = []
    with folder_lock(tmp_path, "a file"):
        thread = threading.Thread(target=lambda: answers.append(asked.send(0, "accept").status_code))
        thread.start()
        thread.join(0.2)
        assert answers == []
    thread.join()
    assert (answers, {*tmp_path.iterdir()} - known) == ([200], {tmp_path / name})


@FILES
def test_a_page_does_not_replace_a_decision_that_it_did_not_show(finished: Path, tmp_path: Path, name: str) -> None:
    asked = deciding(finished, tmp_path / name)

    def seen() -> str:
        """What the page of a subject sends as the decision that it showed."""
        return asked.page(1).partition('data-seen="')[2].partition('"')[0]

    assert seen() == ""
    first = asked.send(0, "accept", seen="")
    assert first.status_code == 200, first.text
    assert seen() == first.json()["seen"] != ""
    before = (tmp_path / name).read_bytes()
    for act in ("remove", "undo"):
        answer = asked.send(0, act, seen="", problem="ambiguous")
        assert (answer.status_code, (tmp_path / name).read_bytes()) == (409, before)
        assert "was decided elsewhere since this page was opened (accept: " in answer.text
    assert asked.send(0, "undo", seen=first.json()["seen"]).json()["seen"] == ""


# Who may write.

BODY = json.dumps({"act": "remove"}).encode()


def test_without_a_file_nothing_is_written(finished: Path, tmp_path: Path) -> None:
    client = viewer(finished, "--suspects", suspect_lines(tmp_path))
    text = client.get("/review/1").text
    assert "Read only" in text
    assert 'data-token=""' in text
    headers = {"origin": HOST, "x-review-token": "", "content-type": "application/json"}
    assert client.post("/data/review/0", content=BODY, headers=headers).status_code == 405


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        *(({"x-review-token": token}, 403) for token in ("", "wrong", None)),
        *(({"origin": origin}, 403) for origin in (None, "null", "http://evil.example", "http://127.0.0.1:9999")),
        ({"host": "evil.example", "origin": "http://evil.example"}, 421),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}, 403),
        ({"sec-fetch-site": "none"}, 403),
        *(({"content-type": kind}, 415) for kind in ("text/plain", "application/x-www-form-urlencoded", None)),
        ({"content-encoding": "gzip"}, 415),
    ],
)
def test_only_a_page_of_this_viewer_writes(
    asked: Deciding, errata: Path, changes: dict[str, str | None], status: int
) -> None:
    headers = {name: value for name, value in {**asked.headers, **changes}.items() if value is not None}
    answer = asked.post(0, BODY, **headers)
    assert (answer.status_code, errata.exists()) == (status, False)
    assert asked.headers["x-review-token"] not in answer.text


def test_hostile_bodies_write_nothing(asked: Deciding, errata: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    comments = (b"7", b'"\\u0000"', b'"\\ud800"', b'"\xff"', b'"' + b"x" * 2001 + b'"')
    values = (b'{"nothing":"x"}', b'{"weight":"NaN"}', b'{"weight":"' + b"[" * 9000 + b'"}')
    bodies: dict[int, list[Any]] = {
        400: [
            *(b"", b"[]", b"null", b'{"act":"remove"', b'{"act":"drop"}', b'{"act":"remove","path":"/etc/passwd"}'),
            *(b'{"act":"remove","comment":%s}' % comment for comment in comments),
            b'{"values":' + b"[" * 30_000,
        ],
        409: [b'{"act":"revise","values":%s}' % each for each in values],
        413: [b"x" * (MAX_BODY + 1), (b" " * 1000 for _ in range(1000))],  # the last one says no length
    }
    for status, each in bodies.items():
        for body in each:
            answer = asked.post(0, body, **asked.headers)
            assert (answer.status_code, errata.exists()) == (status, False), (body, answer.text)
            assert "Traceback" not in answer.text
    assert asked.post(0, b'{"act":"remove","comment":"' + b"x" * 2000 + b'"}', **asked.headers).status_code == 200
    monkeypatch.setattr(posting, "SECONDS", 0.01)

    async def never() -> Message:
        await asyncio.sleep(3600)
        raise AssertionError

    slow = asyncio.run(posting.read_choice(Request({"type": "http", "method": "POST", "headers": []}, never)))
    assert isinstance(slow, Response)
    assert slow.status_code == 408


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        *(("POST", path, 405) for path in ("/", "/review/1", "/data/dataset/0/rows", "/data/reviewx/0")),
        *((method, "/data/review/0", 405) for method in ("PUT", "DELETE", "PATCH")),
        *(("POST", f"/data/review/{number}", 404) for number in ("-1", "3", "9" * 23, "x", "%2e%2e/0")),
    ],
)
def test_nothing_else_is_written(asked: Deciding, errata: Path, method: str, path: str, status: int) -> None:
    answer = asked.client.request(method, path, content=BODY, headers=asked.headers)
    assert (answer.status_code, errata.exists()) == (status, False)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--suspects", "s", "--review", "q"), "give one"),
        (("--write", "e.yaml", "--annotator", "a"), "--write is for decisions"),
        (("--annotator", "a"), "--annotator is for --write"),
        (("--suspects", "s", "--write", "e.yaml"), "say who decides"),
        (("--suspects", "s", "--write", "e.yaml", "--annotator", "a b"), "in one word"),
        (("--suspects", "s", "--write", "e.yaml", "--annotator", "a", "--static", "site"), "leave out --static"),
        (("--suspects", "bad"), "line 1"),
        (("--suspects", "none"), "has no suspect"),
        (("--suspects", "two", "--write", "e.yaml", "--annotator", "a"), "errata are for one"),
        (("--review", "q", "--write", "e.yaml", "--annotator", "a"), "ends in .csv"),
    ],
)
def test_options_that_do_not_fit_are_named(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    suspect_lines(tmp_path, {"dataset": "other", "id": "y", "kind": "k", "evidence": "e"}).rename("two")
    suspect_lines(tmp_path).rename("s")
    Path("bad").write_text('{"id": 1}\n', "utf-8")
    Path("none").write_text("\n", "utf-8")
    question_folder(tmp_path).rename("q")
    ran = command("view", finished, *options)
    assert ran.code == 2
    assert said in ran.err
    assert HOST not in ran.out
