"""Reviews: the pages of a document stand beside the claimed answer, and nothing is written."""

import re
from pathlib import Path

import pytest
from reviewed import question_folder, suspect_lines
from tiny import command
from viewing import viewer


def test_the_page_stands_beside_the_claimed_answer(finished: Path, tmp_path: Path) -> None:
    client = viewer(finished, "--suspects", suspect_lines(tmp_path))
    assert "Review of 3 suspects" in client.get("/review.html").text
    first, second, third = (client.get(f"/review-{number}.html").text for number in (1, 2, 3))
    for part in ("What is its bark?", "Page 2: claimed", "Page 3: proposed"):
        assert part in first, part
    assert 'href="example-0-2.html"' in first
    images = [part.split('"')[0] for part in first.split('<img loading="lazy" src="')[1:]]
    assert len(images) == 2
    assert {client.get(f"/{image}").headers["content-type"] for image in images} == {"image/jpeg"}
    assert "Which two colours?" in second
    assert "No context of the release that was looked at shows this page" in third
    assert client.get("/review-4.html").status_code == 404


def test_the_row_of_a_suspect_stands_beside_what_is_proposed(finished: Path, tmp_path: Path) -> None:
    text = viewer(finished, "--suspects", suspect_lines(tmp_path)).get("/review-1.html").text
    row = text.partition('<th scope="row">evidence_pages</th>')[2].partition("</tr>")[0]
    assert re.findall("<td[^>]*>(.*?)</td>", row) == ["[2]", "[3]"]


def test_questions_are_shown_in_the_order_of_their_sheet(finished: Path, tmp_path: Path) -> None:
    client = viewer(finished, "--review", question_folder(tmp_path))
    assert "Review of 2 questions" in client.get("/review.html").text
    assert "What is the bark of the birch?" in client.get("/review-1.html").text
    second = client.get("/review-2.html").text
    assert "How tall is it?" in second
    assert "Page 2: claimed" in second


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
        texts.append(client.get("/review-4.html").text)
    assert "Page 2: claimed; the image shows pages 1 to 4" in texts[0]
    assert "Page 3: proposed; the image shows pages 1 to 4" in texts[0]
    text = texts[1]
    assert "Page 2: claimed" in text, "as the record says it, by the document"
    assert text.count("; the image shows pages") == 1


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--suspects", "s", "--review", "q"), "give one"),
        (("--suspects", "bad"), "line 1"),
        (("--suspects", "none"), "has no suspect"),
        (("--review", "none"), "none"),
    ],
)
def test_options_that_do_not_fit_are_named(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...], said: str
) -> None:
    monkeypatch.chdir(tmp_path)
    suspect_lines(tmp_path).rename("s")
    Path("bad").write_text('{"id": 1}\n', "utf-8")
    Path("none").write_text("\n", "utf-8")
    question_folder(tmp_path).rename("q")
    ran = command("view", finished, *options)
    assert ran.code == 2
    assert said in ran.err
    assert "http" not in ran.out
