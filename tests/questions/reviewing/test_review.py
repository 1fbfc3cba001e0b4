"""Sheets of annotators: what is written, what is read, what is settled, and what becomes errata."""

import csv
import io
from pathlib import Path

import numpy as np
import pytest
import yaml

from mmlongbench.manifest.errata import load_errata
from mmlongbench.questions import table
from mmlongbench.questions.question import Question, question_id
from mmlongbench.questions.reviewing.kappa import ac1, agreement, kappa
from mmlongbench.questions.reviewing.merging import HELD, merge, read_folder, write_review
from mmlongbench.questions.reviewing.sheet import write_sheet

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
    sheets = [
        filled(folder, "ann", {0: RETAIN}),
        filled(folder, "ben", {0: REMOVE}),
        filled(folder, "cleo", {0: REVISE}),
    ]
    merged = merge(read_folder(folder), sheets[:2], 1.0)
    assert len(merged.needing("third")) == 1
    merged = merge(read_folder(folder), sheets, 1.0)
    assert not merged.needing("third")
    assert len(merged.labelled("Revise")) == 1
    assert merged.agreement.matrix == ((0, 0, 1), (0, 0, 0), (0, 0, 0))


def test_held_questions_that_nobody_decided_about_stay_out(folder: Path) -> None:
    reviewed = write_review(folder, merge(read_folder(folder), [filled(folder, "ann", {0: RETAIN})], 0.0), 0.0)
    assert question_id("ab", 3) not in [each.id for each in table.read_questions(reviewed / table.QUESTIONS)]
    assert "not-decided" in (reviewed / table.REJECTS).read_text("utf-8")


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
