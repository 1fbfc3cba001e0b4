"""The folder of questions and its review: files, sheets of annotators, what is settled, and what becomes errata."""

import csv
import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from tiny import command, lock, records

from builders.docvqa import DocVQA, OwnDocuments
from builders.docvqa.rows import DocumentQuestion, DocVQAOptions
from mmlongbench.answers import format_of
from mmlongbench.building.stages.rows import read_rows
from mmlongbench.errors import SourceError
from mmlongbench.manifest.errata import load_errata
from mmlongbench.questions import table
from mmlongbench.questions.review import HELD, agreement, merge, read_folder, write_review, write_sheet
from mmlongbench.questions.table import Grounding, Question, Reject, question_id
from mmlongbench.statistics import ac1, kappa

ASKED = (
    ("Who keeps the lamp of Quarl Bay?", "Anna Tolm", (2,)),
    ("How much rope was bought in all?", "=4,120", (3,)),
    ("Which boats were lost in the storm?", ("Tern", "Gull"), (2, 3)),
    ("Who keeps the lamp of Nevin Sound?", "Bert Osk", (4,)),
    ("Which year is missing in the books?", "Not answerable", ()),
)


def question(number: int, **changes: object) -> Question:
    asked, answer, pages = ASKED[number]
    given = {
        "id": question_id("ab", number),
        "document": f"board-{number % 2}",
        "document_sha256": "ab",
        "question": asked,
        "answer": answer,
        "answer_format": "List" if isinstance(answer, tuple) else "None" if answer == "Not answerable" else "String",
        "pages": pages,
        "kind": "text",
        "synthetic": "model",
        "notes": {"slot": f"s{number}"},
    }
    return Question.model_validate({**given, **changes})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    out = tmp_path / "questions"
    table.write_folder(out, tmp_path / "docs", "model", [question(n) for n in (0, 1, 2, 4)], [])
    table.write_lines(out / HELD, [question(3, notes={"flags": "ambiguous"})])
    return out


def filled(folder: Path, name: str, decisions: dict[int, dict[str, str]], delimiter: str = ",") -> Path:
    """A sheet that an annotator filled and saved with a spreadsheet."""
    sheet = folder.parent / f"{name}.csv"
    write_sheet(sheet, read_folder(folder).values(), 1.0)
    rows = list(csv.DictReader(io.StringIO(sheet.read_text("utf-8-sig"))))
    text = io.StringIO()
    written = csv.DictWriter(text, list(rows[0]), delimiter=delimiter, lineterminator="\r\n")
    written.writeheader()
    ids = {question_id("ab", number): decision for number, decision in decisions.items()}
    for row in rows:
        written.writerow({**row, **({"annotator": name, **ids[row["id"]]} if row["id"] in ids else {})})
    sheet.write_bytes(text.getvalue().encode("utf-8-sig"))
    return sheet


RETAIN = {"decision": "retain"}
REMOVE = {"decision": "Remove", "problem": "repetitive"}
REVISE = {"decision": "Revise", "problem": "wrong-answer-or-pages", "answer_new": "Cora Vint", "comment": "see page 2"}


def test_two_annotators_make_errata_with_who_and_why(folder: Path) -> None:
    one = filled(folder, "ann", {0: REVISE, 1: RETAIN, 2: REMOVE, 3: RETAIN, 4: RETAIN})
    two = filled(folder, "ben", {0: REVISE, 1: RETAIN, 2: REMOVE, 3: RETAIN, 4: REMOVE}, ";")
    merged = merge(read_folder(folder), [one, two], 1.0)
    assert not merged.faults
    assert [each.question.id for each in merged.needing("third")] == [question_id("ab", 4)]
    assert merged.agreement.questions == 5
    assert merged.agreement.equal == 0.8
    reviewed = write_review(folder, merged, 1.0)
    errata = load_errata(reviewed / "errata.yaml")
    changed = errata[question_id("ab", 0)]
    assert changed.source == "review by ann, ben: wrong-answer-or-pages: see page 2"
    assert (changed.set, changed.was) == ({"answer": "Cora Vint"}, {"answer": "Anna Tolm"})
    assert errata[question_id("ab", 2)].drop
    assert len(errata) == 2
    rows = [each.id for each in table.read_questions(reviewed / table.QUESTIONS)]
    assert question_id("ab", 3) in rows, "a held question that people retain"
    manifest = yaml.safe_load((reviewed / table.MANIFEST).read_text("utf-8"))
    assert manifest["datasets"][0]["errata"] == "errata.yaml"
    assert (reviewed / "third.csv").read_text("utf-8-sig").count("\n") == 2


def test_a_third_annotator_decides(folder: Path) -> None:
    decisions = {"ann": RETAIN, "ben": REMOVE, "cleo": REVISE}
    sheets = [filled(folder, name, {0: decision}) for name, decision in decisions.items()]
    merged = merge(read_folder(folder), sheets[:2], 1.0)
    assert len(merged.needing("third")) == 1
    merged = merge(read_folder(folder), sheets, 1.0)
    assert not merged.needing("third")
    assert len(merged.labelled("Revise")) == 1
    assert merged.agreement.matrix == ((0, 0, 1), (0, 0, 0), (0, 0, 0))


def test_a_sheet_that_would_be_written_anew_is_refused_and_undecided_questions_are_counted(folder: Path) -> None:
    sheets = [filled(folder, name, {0: decision}) for name, decision in {"ann": RETAIN, "ben": REMOVE}.items()]
    told = command("questions", "import", folder, *sheets)
    third = folder / "reviewed/third.csv"
    assert "1 need a third annotator" in told.out
    assert "4 of these stay in the table" in told.out
    assert "1 need a third annotator" in command("questions", "import", folder, *sheets).out, "nothing is in it yet"
    for delimiter in ",;":
        filled(folder, "cleo", {0: REVISE}, delimiter).rename(third)
        before = third.read_bytes()
        for given in ([*sheets, third], sheets):
            refused = command("questions", "import", folder, *given)
            assert (refused.code, "third.csv: would be written anew" in refused.err) == (2, True)
            assert third.read_bytes() == before
    third.rename(folder.parent / "cleo.csv")
    assert "Revise 1" in command("questions", "import", folder, *sheets, folder.parent / "cleo.csv").out


def test_held_questions_that_nobody_decided_about_stay_out(folder: Path) -> None:
    reviewed = write_review(folder, merge(read_folder(folder), [filled(folder, "ann", {0: RETAIN})], 0.0), 0.0)
    assert question_id("ab", 3) not in [each.id for each in table.read_questions(reviewed / table.QUESTIONS)]
    assert "not-decided" in (reviewed / table.REJECTS).read_text("utf-8")


@pytest.mark.parametrize("options", ["", "    options:\n", "    options: {page_label: printed}\n"])
def test_a_manifest_whose_options_a_user_removed_is_reviewed(folder: Path, options: str) -> None:
    path = folder / table.MANIFEST
    lines = path.read_text("utf-8").splitlines(keepends=True)
    assert sum(line.startswith("    options:") for line in lines) == 1
    path.write_text("".join(options if line.startswith("    options:") else line for line in lines), "utf-8")
    reviewed = write_review(folder, merge(read_folder(folder), [filled(folder, "ann", {0: RETAIN})], 0.0), 0.0)
    (dataset,) = yaml.safe_load((reviewed / table.MANIFEST).read_text("utf-8"))["datasets"]
    assert (dataset["options"]["synthetic"], dataset["errata"]) == ("model", "errata.yaml")
    assert len(list(table.read_questions(reviewed / table.QUESTIONS))) == 4


@pytest.mark.parametrize(
    ("reason", "cells"),
    [
        ("unknown-decision", {"decision": "perhaps"}),
        ("unknown-problem", {"decision": "Remove"}),
        ("unknown-problem", {"decision": "Retain", "problem": "ambiguous"}),
        ("revised-without-a-change", {"decision": "Revise", "problem": "ambiguous"}),
        ("revised-without-a-change", {**REVISE, "answer_new": "Anna Tolm"}),
        ("wrong-pages", {**REVISE, "pages_new": "two"}),
        ("long-form-answer", {**REVISE, "answer_new": "the man who has kept it for years"}),
        ("deictic", {**REVISE, "question_new": "Who keeps the lamp on this page?"}),
        ("stale-review", {"decision": "Retain", "fingerprint": "0" * 12}),
        ("unknown-id", {"decision": "Retain", "id": "0" * 16}),
        ("no-annotator", {"decision": "Retain", "annotator": ""}),
    ],
)
def test_a_row_that_cannot_be_used_is_named(folder: Path, reason: str, cells: dict[str, str]) -> None:
    merged = merge(read_folder(folder), [filled(folder, "ann", {0: cells, 1: RETAIN})], 0.0)
    assert [fault.reason for fault in merged.faults] == [reason]
    assert merged.faults[0].file == "ann.csv"
    assert len(merged.labelled("Retain")) == 1


def test_cells_that_a_spreadsheet_would_compute_are_unharmed(folder: Path) -> None:
    sheet = filled(folder, "ann", {1: RETAIN})
    assert "'=4,120" in sheet.read_text("utf-8-sig")
    merged = merge(read_folder(folder), [sheet], 0.0)
    assert not merged.faults
    assert merged.labelled("Retain")[0].question.answer == "=4,120"


def test_agreement_has_the_published_values() -> None:
    matrix = np.array([[40, 5, 2], [6, 20, 4], [1, 3, 19.0]])
    found = kappa(matrix)
    assert found is not None
    assert round(found, 5) == 0.67064
    assert round(ac1(matrix), 5) == 0.69177
    skewed = kappa(np.array([[95, 2, 0], [3, 0, 0], [0, 0, 0.0]]))
    assert skewed is not None
    assert round(skewed, 5) == -0.02459
    one_label = agreement([(f"d{n}", "Retain", "Retain") for n in range(10)])
    assert (one_label.kappa, one_label.interval, one_label.ac1) == (None, None, 1.0)


def test_the_interval_of_kappa_is_over_documents() -> None:
    pairs = [(f"d{n % 8}", label, label) for n, label in enumerate(("Retain", "Revise", "Remove") * 8)]
    pairs += [(f"d{n}", "Retain", "Remove") for n in range(4)]
    found = agreement(pairs)  # type: ignore[arg-type]
    assert found.interval is not None
    assert found.kappa is not None
    assert found.interval[0] < found.kappa < found.interval[1]
    assert found == agreement(pairs)  # type: ignore[arg-type]


DOCUMENT = "harbour-dredging-2019"


def made(**changed: Any) -> Question:
    given = {"document": DOCUMENT, "question": "How many?", "answer": "3,927", "pages": (4,), **changed}
    given.setdefault("id", question_id("ab", str(given["question"])))
    given.setdefault("answer_format", format_of(given["answer"]))
    common = {"document_sha256": "ab", "kind": "table-value", "synthetic": "layer", "sources": ("Table",)}
    return Question.model_validate({**common, **given})


MADE = (
    made(grounding=(Grounding(page=4, text="3,927", box=(1, 2, 3, 4)),)),
    made(question="Which?", answer=("Port Ellery", "Stannow Quay"), pages=(4, 9), kind="cross-page"),
    made(question="Where?", answer="Not answerable", pages=(), sources=(), kind="unanswerable"),
)
REJECT = Reject(id="x", document=DOCUMENT, stage="rendered", reason="no-ink", found="0", expected="ink", pages=(3,))


def test_own_documents_reads_every_line_as_it_was_meant(tmp_path: Path) -> None:
    table.write_folder(tmp_path, tmp_path, "layer", MADE, [])
    rows = list(read_rows(OwnDocuments(), {"questions": tmp_path / table.TABLE, "documents": tmp_path}))
    assert len(rows) == 3
    for row, meant in zip(rows, sorted(MADE, key=lambda each: each.pages), strict=True):
        assert isinstance(row, DocumentQuestion)
        answer = (meant.answer,) if isinstance(meant.answer, str) else meant.answer
        assert (row.id, row.answer, row.answer_format) == (meant.id, answer, meant.answer_format)
        assert row.pages == tuple(page - 1 for page in meant.pages)
        assert (row.sources, row.repairs) == (meant.sources, ())
        assert row.columns == {"kind": meant.kind, "synthetic": "layer"}


def test_build_takes_the_manifest_and_synthetic_questions_are_in_no_category(source: Path, tmp_path: Path) -> None:
    found = [made(document="ash", pages=(1,)), made(document="birch", question="Which?", answer="a", pages=(2, 3))]
    table.write_folder(tmp_path / "questions", source / "documents", "layer", found, [])
    changes: tuple[str, ...] = ("--set", "questions_layer.lengths=1K", "--set", "questions_layer.admission_length=1K")
    changes += ("--set", "questions_layer.reserve=64")
    built = command("build", tmp_path / "questions" / table.MANIFEST, *changes, "--out", tmp_path / "release")
    assert built.code == 0, built.err
    assert lock(tmp_path / "release")["datasets"]["questions_layer"]["questions"]["kept"] == 2
    lines = records(tmp_path / "release", "1K", "questions_layer")
    assert {line["facets"]["synthetic"] for line in lines} == {"layer"}
    categories = [DocVQA("own", DocVQAOptions()).spec.category]
    for kind in ("layer", "model"):
        categories.append(DocVQA("own", DocVQAOptions.model_validate({"synthetic": kind})).spec.category)
    assert categories == ["DocVQA", "", ""]


def test_the_order_of_questions_changes_no_byte_and_what_was_written_is_read_again(tmp_path: Path) -> None:
    for name, questions in (("a", MADE), ("b", MADE[::-1])):
        table.write_folder(tmp_path / name, tmp_path, "layer", questions, [REJECT])
    for file in (table.TABLE, table.QUESTIONS, table.REJECTS, table.SUMMARY, table.MANIFEST):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()
    found = table.read_questions(tmp_path / "a" / table.QUESTIONS)
    assert sorted(found, key=lambda each: each.id) == sorted(MADE, key=lambda each: each.id)


def test_a_line_that_is_no_question_is_named(tmp_path: Path) -> None:
    for line in ("{}", '{"id": 3}', "[", "[]"):
        (tmp_path / table.QUESTIONS).write_text(line + "\n", "utf-8")
        with pytest.raises(SourceError, match=r"questions\.jsonl, line 1"):
            list(table.read_questions(tmp_path / table.QUESTIONS))


def test_the_summary_counts_by_stage_and_reason_and_shows_the_public_shares(tmp_path: Path) -> None:
    summary = table.write_folder(tmp_path, tmp_path, "layer", MADE, [REJECT, REJECT])
    assert summary.rejects == {"rendered": {"no-ink": 2}}
    assert summary.by_document == {DOCUMENT: {"cross-page": 1, "table-value": 1, "unanswerable": 1}}
    pages = {share.value: (share.count, share.mmlongbench_doc) for share in summary.distributions["evidence_pages"]}
    assert pages == {"single-page": (1, 45.7), "cross-page": (1, 33.7), "unanswerable": (1, 20.6)}
    assert json.loads((tmp_path / table.SUMMARY).read_bytes()) == summary.model_dump(mode="json")
