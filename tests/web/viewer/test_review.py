"""Reviews: what stands beside each other, what is written, that it can be read afterwards, and who may write."""

import asyncio
import csv
import io
import json
import stat
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from reviewed import Deciding, question_folder, reviewing, suspect_lines
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Message
from tiny import command
from viewing import HOST, client, site_of

from mmlongbench.errors import ManifestError, MMLongBenchError
from mmlongbench.manifest.errata import corrected, load_errata
from mmlongbench.manifest.errata_edit import edited
from mmlongbench.questions.reviewing.merging import merge, read_folder
from mmlongbench.web.viewer import posting
from mmlongbench.web.viewer.posting import MAX_BODY
from mmlongbench.web.viewer.reviewing.beside import beside
from mmlongbench.web.viewer.reviewing.decisions import Choice
from mmlongbench.web.viewer.reviewing.sheet_file import SheetFile
from mmlongbench.web.viewer.reviewing.subjects import Field


@pytest.fixture
def errata(tmp_path: Path) -> Path:
    return tmp_path / "errata.yaml"


@pytest.fixture
def asked(finished: Path, tmp_path: Path, errata: Path) -> Deciding:
    return Deciding(reviewing(finished, suspect_lines(tmp_path), write=errata))


def test_the_page_stands_beside_the_claimed_answer(asked: Deciding) -> None:
    listed = asked.client.get("/review").text
    assert "Review of 3 suspects" in listed
    assert "3 are not decided" in listed
    text = asked.client.get("/review/1").text
    assert "What is its bark?" in text
    assert "Page 2: claimed" in text
    assert "Page 3: proposed" in text
    images = [part.split('"')[0] for part in text.split('<img loading="lazy" src="')[1:]]
    assert len(images) == 2
    assert {asked.client.get(image).headers["content-type"] for image in images} == {"image/jpeg"}
    assert 'href="/example/documentQA/mmlongdoc_K1.jsonl/2"' in text
    assert "No context of the release that was looked at shows this page" in asked.client.get("/review/3").text
    assert asked.client.get("/review/4").status_code == 404


def test_a_page_of_a_document_is_shown_by_the_image_that_joins_it(source: Path, tmp_path: Path) -> None:
    options = ("--set", "options.pages_as=joined", "--set", "options.joined=1")
    built = command("build", source / "tiny.yaml", "--out", tmp_path / "release", *options)
    assert built.code == 0, built.err
    line = {"dataset": "mmlongdoc", "id": "mmlongdoc_10", "kind": "k", "evidence": "e", "correction": {"pages": [3]}}
    about = {**line, "fields": {"doc_id": "cedar.pdf", "pages": [2]}}
    site = reviewing(tmp_path / "release", suspect_lines(tmp_path, about))
    assert site.review
    subject = site.review.subject(3)
    pages = beside(site, subject).pages
    assert [(page.number, page.is_claimed, page.is_proposed, page.joined) for page in pages] == [
        (2, True, False, (1, 4)),
        (3, False, True, (1, 4)),
    ]
    assert all("cedar_joined1" in page.path for page in pages)
    assert "Page 2: claimed; the image shows pages 1 to 4" in client(site).get("/review/4").text
    unsaid = replace(subject, pages=(), proposed=())
    assert [page.number for page in beside(site, unsaid).pages] == [2], "as the record says it, by the document"


def test_decisions_about_suspects_are_errata(asked: Deciding, errata: Path) -> None:
    first = asked.send(0, "accept", comment="seen")
    assert first.json()["next"] == "/review/2"
    assert first.json()["act"] == "accept"
    asked.send(1, "revise", values={"answer": "['red']", "weight": "2", "question": "Which two colours?"})
    last = asked.send(2, "keep")
    assert (last.json()["left"], last.json()["next"]) == (0, "")
    found = load_errata(errata)
    assert found["mmlongdoc_1"].set == {"evidence_pages": ["3"]}
    assert found["mmlongdoc_1"].was == {"evidence_pages": "[2]"}
    assert found["mmlongdoc_1"].source == "review by anna: answer-on-another-page: look at it; seen"
    assert found["mmlongdoc_2"].set == {"answer": "['red']", "weight": "2"}
    assert set(found) == {"mmlongdoc_1", "mmlongdoc_2"}
    assert '# anna says that the source is right: "mmlongdoc_7"\n' in errata.read_text("utf-8")
    listed = asked.client.get("/review").text
    assert "0 are not decided" in listed
    asked.send(2, "remove")
    assert load_errata(errata)["mmlongdoc_7"].drop
    assert "the source is right" not in errata.read_text("utf-8")
    asked.send(0, "undo")
    assert "mmlongdoc_1" not in load_errata(errata)
    assert asked.send(1, "accept").status_code == 409, "nothing is proposed"


def test_a_build_applies_what_was_decided(asked: Deciding, source: Path, errata: Path, tmp_path: Path) -> None:
    asked.send(0, "remove")
    settings = ("--set", f"errata={errata}", "--lengths", "1K", "--json")
    built = command("build", source / "tiny.yaml", "--out", tmp_path / "release", *settings)
    assert built.code == 0, built.err
    lines = (tmp_path / "release/mmlb_data/documentQA/mmlongdoc_K1.jsonl").read_text("utf-8").splitlines()
    assert "mmlongdoc_1" not in {json.loads(line)["id"] for line in lines}


def test_what_a_file_of_errata_has_besides_stays_in_it(finished: Path, tmp_path: Path, errata: Path) -> None:
    before = (
        "# by hand\nother:   # why\n  source: 'x'\n  set: {a: 14:04}\n# next\nmmlongdoc_1:\n  source: y\n  drop: true\n"
    )
    errata.write_text(before, "utf-8")
    asked = Deciding(reviewing(finished, suspect_lines(tmp_path), write=errata))
    assert "<b>remove</b>" in asked.client.get("/review/1").text
    asked.send(0, "accept")
    asked.send(1, "remove")
    asked.send(0, "undo")
    asked.send(1, "undo")
    assert errata.read_text("utf-8") == before.partition("mmlongdoc_1")[0]


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
    finished: Path, tmp_path: Path, errata: Path, name: str, text: str, value: object
) -> None:
    line = {"dataset": "mmlongdoc", "id": "odd", "kind": "k", "evidence": "e", "fields": ODD}
    asked = Deciding(reviewing(finished, suspect_lines(tmp_path, line), write=errata))
    answer = asked.send(3, "revise", values={name: text})
    if value is None:
        assert (answer.status_code, errata.exists()) == (409, False)
        assert "errata cannot say" in answer.text
        return
    assert answer.status_code == 200, answer.text
    got = corrected(ODD, load_errata(errata)["odd"])
    assert isinstance(got, dict)
    assert json.dumps(got) == json.dumps({**ODD, name: value})


def test_ends_of_lines_that_a_browser_changes_are_no_change(finished: Path, tmp_path: Path, errata: Path) -> None:
    fields = {"one": "a\rb", "two": "a\r\nb\n", "pages": "[4]"}
    line = {"dataset": "mmlongdoc", "id": "odd", "kind": "k", "evidence": "e", "fields": fields}
    asked = Deciding(reviewing(finished, suspect_lines(tmp_path, line), write=errata))
    values = {"one": "a\nb", "two": "a\nb\n", "pages": "[6]"}
    assert asked.send(3, "revise", values=values).status_code == 200
    assert load_errata(errata)["odd"].set == {"pages": "[6]"}


def test_ends_of_lines_in_a_question_are_no_change(finished: Path, tmp_path: Path) -> None:
    folder = question_folder(tmp_path)
    site = reviewing(finished, questions=folder, write=tmp_path / "anna.csv")
    assert site.review
    file, subject = site.review.file, site.review.subjects[0]
    assert isinstance(file, SheetFile)
    odd = replace(subject, fields=(Field("question_new", "a\rb \r\n"), *subject.fields[1:]))
    values = {**{field.name: field.text for field in odd.fields}, "question_new": "a\nb \n", "pages_new": "3"}
    cells = file._cells(odd, Choice(act="revise", values=values))
    assert [cells[name] for name in ("question_new", "answer_new", "pages_new")] == ["", "", "3"]


def test_a_draft_of_the_doctor_is_not_decided(finished: Path, tmp_path: Path, errata: Path) -> None:
    errata.write_text("mmlongdoc_1: {source: 'mmlongbench doctor: x', set: {evidence_pages: [3]}}\n", "utf-8")
    asked = Deciding(reviewing(finished, suspect_lines(tmp_path), write=errata))
    assert "not decided" in asked.client.get("/review/1").text
    assert asked.send(0, "accept").json()["act"] == "accept"


@pytest.mark.parametrize("text", ["{a: {source: x, drop: true}}\n", "- a\n", "a: [\n", "a: {source: x}\n", "\ufffe"])
def test_errata_that_cannot_be_changed_stay_as_they_are(
    finished: Path, tmp_path: Path, errata: Path, text: str
) -> None:
    errata.write_text(text, "utf-8")
    try:
        asked = Deciding(reviewing(finished, suspect_lines(tmp_path), write=errata))
    except MMLongBenchError:
        pass
    else:
        assert asked.send(0, "accept").status_code == 409
    assert errata.read_text("utf-8") == text


def test_braces_around_all_errata_are_refused() -> None:
    with pytest.raises(ManifestError, match="without braces"):
        edited("{a: {source: x, drop: true}}", "b")


def test_decisions_about_questions_are_a_sheet_that_is_imported(finished: Path, tmp_path: Path) -> None:
    folder, sheet = question_folder(tmp_path), tmp_path / "anna.csv"
    asked = Deciding(reviewing(finished, questions=folder, write=sheet))
    assert "Page 2: claimed" in asked.client.get("/review/2").text
    assert '<img loading="lazy"' in asked.client.get("/review/2").text
    assert asked.send(0, "accept").json()["act"] == "accept"
    assert asked.send(1, "remove").status_code == 409, "a problem must be named"
    assert asked.send(1, "revise", problem="ambiguous").status_code == 409, "nothing is revised"
    new = {"question_new": "How tall is it?", "answer_new": "31 m", "pages_new": "2; 3"}
    answer = asked.send(1, "revise", problem="wrong-answer-or-pages", comment="=seen", values=new)
    assert answer.json()["left"] == 0, answer.text
    questions = read_folder(folder)
    merged = merge(questions, [sheet], 0.0)
    assert not merged.faults
    assert [(each.final.label, each.final.annotator) for each in merged.settled if each.final] in (
        [("Retain", "anna"), ("Revise", "anna")],
        [("Revise", "anna"), ("Retain", "anna")],
    )
    revised = merged.labelled("Revise")[0].final
    assert revised
    assert revised.revision
    assert (revised.revision.question, revised.revision.answer, revised.revision.pages) == (None, ("31 m",), (2, 3))
    assert revised.comment == "=seen"
    asked.send(1, "undo")
    assert len(merge(questions, [sheet], 0.0).needing("more")) == 1
    ran = command("questions", "import", folder, sheet, "--share", "0")
    assert ran.code == 0, ran.err


def test_a_sheet_that_was_exported_is_filled_and_others_decisions_stay(finished: Path, tmp_path: Path) -> None:
    folder, sheet = question_folder(tmp_path), tmp_path / "sheet.csv"
    assert command("questions", "export", folder, "--review", sheet).code == 0
    Deciding(reviewing(finished, questions=folder, write=sheet)).send(0, "accept")
    sheet.write_text(sheet.read_text("utf-8").replace("anna", "bert"), "utf-8")
    before = sheet.read_bytes()
    asked = Deciding(reviewing(finished, questions=folder, write=sheet))
    answer = asked.send(0, "remove", problem="ambiguous")
    assert answer.status_code == 409
    assert "bert has decided this" in answer.text
    assert sheet.read_bytes() == before


@pytest.mark.parametrize("name", ["errata.yaml", "sheet.csv"])
def test_a_link_stays_a_link_and_permissions_stay(finished: Path, tmp_path: Path, name: str) -> None:
    real, link = tmp_path / "real" / name, tmp_path / name
    real.parent.mkdir()
    link.symlink_to(real)
    is_sheet = name == "sheet.csv"
    given = {"questions": question_folder(tmp_path)} if is_sheet else {"suspects": suspect_lines(tmp_path)}
    asked = Deciding(reviewing(finished, **given, write=link))
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


def test_a_byte_order_mark_of_errata_stays(finished: Path, tmp_path: Path, errata: Path) -> None:
    before = b"\xef\xbb\xbf# m\r\nzz:\r\n  source: q\r\n  drop: true\r\n"
    errata.write_bytes(before)
    asked = Deciding(reviewing(finished, suspect_lines(tmp_path), write=errata))
    assert asked.send(0, "accept").status_code == 200
    assert errata.read_bytes().startswith(before)
    assert asked.send(0, "undo").status_code == 200
    assert errata.read_bytes() == before


def test_semicolons_of_a_sheet_stay_and_cells_without_a_name_are_not_lost(finished: Path, tmp_path: Path) -> None:
    folder, sheet = question_folder(tmp_path), tmp_path / "anna.csv"
    Deciding(reviewing(finished, questions=folder, write=sheet)).send(0, "accept")
    rows = list(csv.reader(io.StringIO(sheet.read_text("utf-8-sig"))))

    def write(name: str) -> None:
        with sheet.open("w", encoding="utf-8", newline="") as file:
            table = csv.writer(file, delimiter=";")
            table.writerows([*row, "a; note" if at else name] for at, row in enumerate(rows))

    write("mine")
    asked = Deciding(reviewing(finished, questions=folder, write=sheet))
    assert asked.send(1, "accept").json()["left"] == 0
    found = list(csv.reader(io.StringIO(sheet.read_text("utf-8-sig")), delimiter=";"))
    assert [row[-1] for row in found] == ["mine", "a; note", "a; note"]
    write("")
    before = sheet.read_bytes()
    answer = asked.send(1, "accept")
    assert (answer.status_code, sheet.read_bytes()) == (409, before)
    assert "has no name" in answer.text


def test_many_decisions_at_once_are_all_written(asked: Deciding, errata: Path) -> None:
    threads = [threading.Thread(target=asked.send, args=(number, "remove")) for number in (0, 1, 2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert len(load_errata(errata)) == 3


def test_without_a_file_nothing_is_written(finished: Path, tmp_path: Path) -> None:
    asked = Deciding(reviewing(finished, suspect_lines(tmp_path)))
    assert "Read only" in asked.client.get("/review/1").text
    assert 'data-token=""' in asked.client.get("/review/1").text
    assert asked.send(0, "accept").status_code == 405
    assert client(site_of(finished)).get("/review").status_code == 404


BODY = json.dumps({"act": "remove"}).encode()


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"x-review-token": ""}, 403),
        ({"x-review-token": "wrong"}, 403),
        ({"x-review-token": None}, 403),
        ({"origin": None}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "http://127.0.0.1:9999"}, 403),
        ({"host": "evil.example", "origin": "http://evil.example"}, 421),
        ({"sec-fetch-site": "cross-site"}, 403),
        ({"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}, 403),
        ({"sec-fetch-site": "none"}, 403),
        ({"content-type": "text/plain"}, 415),
        ({"content-type": "application/x-www-form-urlencoded"}, 415),
        ({"content-type": None}, 415),
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


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"[]", 400),
        (b"null", 400),
        (b'{"act":"remove"', 400),
        (b'{"act":"drop"}', 400),
        (b'{"act":"remove","path":"/etc/passwd"}', 400),
        (b'{"act":"remove","comment":7}', 400),
        (b'{"act":"remove","comment":"\\u0000"}', 400),
        (b'{"act":"remove","comment":"\\ud800"}', 400),
        (b'{"act":"remove","comment":"\xff"}', 400),
        (b'{"act":"revise","values":{"nothing":"x"}}', 409),
        (b'{"act":"revise","values":{"weight":"NaN"}}', 409),
        (b'{"act":"revise","values":{"weight":"' + b"[" * 9000 + b'"}}', 409),
        (b'{"act":"remove","comment":"' + b"x" * 2001 + b'"}', 400),
        (b'{"values":' + b"[" * 30_000, 400),
        (b"x" * (MAX_BODY + 1), 413),
    ],
)
def test_hostile_bodies_write_nothing(asked: Deciding, errata: Path, body: bytes, status: int) -> None:
    answer = asked.post(0, body, **asked.headers)
    assert (answer.status_code, errata.exists()) == (status, False), answer.text
    assert "Traceback" not in answer.text


def test_a_body_without_a_length_is_bounded_and_a_slow_one_ends(
    asked: Deciding, errata: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pieces = (b" " * 1000 for _ in range(1000))
    answer = asked.client.post("/data/review/0", content=pieces, headers=asked.headers)
    assert (answer.status_code, errata.exists()) == (413, False)
    monkeypatch.setattr(posting, "SECONDS", 0.01)

    async def never() -> Message:
        await asyncio.sleep(3600)
        raise AssertionError

    request = Request({"type": "http", "method": "POST", "headers": []}, never)
    slow = asyncio.run(posting.read_choice(request))
    assert isinstance(slow, Response)
    assert slow.status_code == 408


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/"),
        ("POST", "/review/1"),
        ("POST", "/data/dataset/0/rows"),
        ("POST", "/data/reviewx/0"),
        ("PUT", "/data/review/0"),
        ("DELETE", "/data/review/0"),
        ("PATCH", "/data/review/0"),
    ],
)
def test_nothing_else_is_written(asked: Deciding, errata: Path, method: str, path: str) -> None:
    answer = asked.client.request(method, path, content=BODY, headers=asked.headers)
    assert (answer.status_code, errata.exists()) == (405, False)


@pytest.mark.parametrize("number", ["-1", "3", "99999999999999999999999", "%2e%2e/0", "x"])
def test_what_is_not_reviewed_is_not_written(asked: Deciding, errata: Path, number: str) -> None:
    answer = asked.client.post(f"/data/review/{number}", content=BODY, headers=asked.headers)
    assert answer.status_code in (404, 405)
    assert not errata.exists()


def test_ids_and_comments_are_only_text_in_the_file(finished: Path, tmp_path: Path, errata: Path) -> None:
    evil = "x: {}\n# anna says\nmmlongdoc_1: &a !!python/object:os.system"
    line = {"dataset": "mmlongdoc", "id": evil, "kind": "<b>", "evidence": evil, "fields": {evil: "<script>"}}
    asked = Deciding(reviewing(finished, suspect_lines(tmp_path, line), write=errata))
    assert "<script>" not in asked.client.get("/review/4").text.replace("<script defer", "")
    assert asked.send(3, "keep").status_code == 200
    assert load_errata(errata) == {}
    assert asked.send(3, "revise", values={evil: evil}, comment=f"{evil}\r\n- '\"\u2028").status_code == 200
    assert load_errata(errata)[evil].set == {evil: evil}
    assert set(load_errata(errata)) == {evil}


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
