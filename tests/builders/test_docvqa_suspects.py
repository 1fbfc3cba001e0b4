"""`doctor` on document questions: pages past the document, answers on other pages, other numbering, no false alarm."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from tiny import command

import mmlongbench.task as mt
from builders.docvqa.rows import DocumentQuestion
from builders.docvqa.suspects import find_suspects, words
from builders.samples.docvqa import reports

pytestmark = pytest.mark.slow

REAL = Path(__file__).parents[2].parent / "shared/real/mmlongbench-doc"
FILLER = "the committee met again and the minutes were read and approved by all present"
FACTS = ("Maren Holt", "Tern Rock", "Veldersund", "the Ellery lighthouse", "4183 barges", "Stannow Quay")


def opened(pages: tuple[str, ...]) -> mt.Sources:
    sized = tuple(mt.Page(n, f"d/alpha/alpha_page{n}.jpg", 560, 560) for n in range(len(pages)))
    return mt.Sources(
        documents=mt.Documents({"alpha": mt.Document("alpha", "alpha", "sha", sized)}, texts=lambda name: pages)
    )


def asked(number: int, page: int, fact: str, question: str = "What is named?", **more: Any) -> DocumentQuestion:
    return DocumentQuestion(
        id=f"q{number}", doc="alpha", question=question, answer=(fact,), answer_format="String", pages=(page,), **more
    )


PAGES = tuple(f"{FILLER}. What is named is {fact}. {number}" for number, fact in enumerate(FACTS, 101))


def test_right_annotations_raise_no_suspicion() -> None:
    rows = [asked(number, number, fact) for number, fact in enumerate(FACTS)]
    assert list(find_suspects(rows, opened(PAGES))) == []


def test_a_whole_document_that_is_counted_otherwise_is_one_finding_for_each_row() -> None:
    rows = [asked(number, number + 1, fact) for number, fact in enumerate(FACTS)]
    found = list(find_suspects(rows, opened((*PAGES, FILLER))))
    assert {suspect.kind for suspect in found} == {"numbering-off"}
    assert [suspect.correction for suspect in found] == [{"evidence_pages": [n + 1]} for n in range(len(FACTS))]


def test_one_answer_that_stands_on_another_page_only_is_found() -> None:
    pages = (*PAGES[:4], f"{FILLER} lighthouses are described", f"{FILLER} the keeper of the harbour is Maren Holt")
    rows = [asked(0, 4, "Maren Holt", "Who is the keeper of the harbour?")]
    (suspect,) = find_suspects(rows, opened((FILLER, *pages[1:])))
    assert (suspect.kind, suspect.correction) == ("answer-on-another-page", {"evidence_pages": [6]})
    assert suspect.evidence == "'Maren Holt' is not on page 5, but on page 6"


def test_a_number_that_stands_on_another_page_by_chance_is_no_suspect() -> None:
    pages = (f"{FILLER}: the mean depth of the channel", f"{FILLER} 4183")
    assert list(find_suspects([asked(0, 0, "4183", "What is the mean depth of the channel?")], opened(pages))) == []


def test_pages_beyond_the_document_are_moved_to_where_their_numbers_are_printed() -> None:
    (suspect,) = find_suspects([asked(0, 102, "Veldersund")], opened(PAGES))
    assert (suspect.kind, suspect.evidence) == ("page-beyond-the-document", "page 103 of 6")
    assert suspect.correction == {"evidence_pages": [3]}


def test_a_question_that_names_another_page_is_a_suspect() -> None:
    (suspect,) = find_suspects([asked(0, 1, "blue", "Which colour has page 12?")], opened(PAGES))
    assert suspect.kind == "question-names-another-page"
    assert list(find_suspects([asked(0, 1, "blue", "Which colour has page 102?")], opened(PAGES))) == []


def test_words_are_compared_without_case_hyphens_and_commas() -> None:
    assert words("3,927 Barge-loads (p178)") == " 3927 barge loads p 178 "


def test_the_command_writes_a_draft_that_a_build_can_use(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few = reports.read_reports()[:3]
    monkeypatch.setattr(reports, "read_reports", lambda: few)
    source = reports.draw_reports(tmp_path)
    rows = json.loads(source["samples"].read_text())
    for row in rows:
        if row["evidence_pages"] != "[]":
            pages = [page + 40 for page in json.loads(row["evidence_pages"])]
            row["evidence_pages"] = str(pages)  # as if the reports were cut out of a longer volume
    source["samples"].write_text(json.dumps(rows))
    named = {f"source.{name}": str(path) for name, path in source.items()} | {"options.answer_words": "per_element"}
    settings = [item for key, value in named.items() for item in ("--set", f"{key}={value}")]
    ran = command("doctor", "mmlongdoc", *settings, "--out", tmp_path / "errata.yaml")
    assert ran.code == 0, ran.err
    assert "page-beyond-the-document" in ran.out
    draft = yaml.safe_load((tmp_path / "errata.yaml").read_text())
    assert draft
    assert all(erratum["source"].startswith("mmlongbench doctor: ") for erratum in draft.values())
    as_json = command("doctor", "mmlongdoc", *settings, "--json")
    assert [json.loads(line)["id"] for line in as_json.out.splitlines()]
    before = command("build", "mmlongdoc", *settings, "--out", tmp_path / "a", "--lengths", "8K", "--json")
    after = command(
        "build",
        "mmlongdoc",
        *settings,
        "--set",
        f"errata={tmp_path / 'errata.yaml'}",
        "--out",
        tmp_path / "b",
        "--lengths",
        "8K",
        "--json",
    )
    kept = [json.loads(ran.out)["datasets"]["mmlongdoc"]["questions"]["kept"] for ran in (before, after)]
    assert kept[1] == kept[0] + len(draft)


def test_a_manifest_that_cannot_be_examined_says_so() -> None:
    ran = command("doctor", "lexsum", "--set", "source=sample")
    assert ran.code == 2
    assert "no builder of this manifest" in ran.err


@pytest.mark.skipif(not REAL.is_dir(), reason="the real documents are not there")
def test_the_real_subset_has_the_suspects_that_were_looked_at() -> None:
    """Each was checked by eye: the annotation is wrong in all of them."""
    settings = ["--set", f"source.samples={REAL / 'samples.json'}", "--set", f"source.documents={REAL / 'documents'}"]
    for count in ("operators", "painted_pages"):  # what pages cost to draw is counted by tests of its own
        settings += ["--set", f"limits.{count}=1000000000"]
    ran = command("doctor", "mmlongdoc", *settings, "--json")
    found = {suspect["id"]: suspect for suspect in map(json.loads, ran.out.splitlines())}
    assert set(found) == {f"mmlongdoc_{row}" for row in (28, 109, 116, 142, 144, 153, 156, 157, 159)}
    corrections = {id: suspect["correction"] for id, suspect in found.items() if suspect["correction"]}
    assert corrections == {
        "mmlongdoc_28": {"evidence_pages": [24, 25]},
        "mmlongdoc_153": {"evidence_pages": [8, 9]},
        "mmlongdoc_157": {"evidence_pages": [36, 37]},
        "mmlongdoc_159": {"evidence_pages": [29]},
    }
