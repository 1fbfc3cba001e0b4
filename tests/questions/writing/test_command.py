"""The command `questions` with models: what is said before a call, and what is refused."""

from pathlib import Path

import pytest
from planted_questions import benchmark_question
from question_world import Doc
from tiny import Ran, command

pytestmark = pytest.mark.slow

MODELS = ("--model", "gpt-4o", "--check-model", "qwen-2", "--dpi", "36")


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


def test_documents_are_bound_by_their_date(documents: Path, tmp_path: Path) -> None:
    about = tmp_path / "about.csv"
    about.write_text("doc,doc_type,published\nharbours-a.pdf,Brochure,2024-03-01\nharbours-d,,2023-12-31\n", "utf-8")
    done = dry(documents, tmp_path / "out", "--about", about, "--published-after", "2023-12-31")
    assert done.out.startswith("1 document, 2 left out")
    assert "harbours-d is left out, published-too-early: 2023-12-31" in done.out
    assert "broken is left out, no-date-of-publication" in done.out


def test_documents_of_a_named_benchmark_are_left_out(documents: Path, tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "another-name.pdf").write_bytes((documents / "harbours-a.pdf").read_bytes())
    done = dry(documents, tmp_path / "out", "--against", theirs)
    assert "harbours-a is left out, benchmark-document: theirs has another-name" in done.out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--max-cost", 1), "--max-cost needs --prices"),
        (("--max-cost", 0.0001, "--prices", 2.5, 10), "expected cost"),
        (("--published-after", "May 2024"), "expected a date such as 2024-05-31"),
        (("--against", "nothing.csv"), "nothing.csv"),
    ],
)
def test_what_cannot_begin_says_why(documents: Path, tmp_path: Path, options: tuple[object, ...], said: str) -> None:
    done = dry(documents, tmp_path / "out", *options)
    assert done.code == 2
    assert said in done.err


def test_models_that_would_check_themselves_are_refused(documents: Path, tmp_path: Path) -> None:
    done = command("questions", documents, "--out", tmp_path / "out", "--dry-run", "--model", "gpt-4o")
    assert done.code == 2
    assert "no model of another family" in done.err
    asked = command("questions", documents, "--out", tmp_path / "out", *MODELS)
    assert asked.code == 2
    assert "need --url" in asked.err


def test_a_table_without_questions_is_no_benchmark(documents: Path, tmp_path: Path) -> None:
    table = tmp_path / "known.csv"
    table.write_text(f"question\n{benchmark_question(Doc('harbours-a', 2), 1)}\n", "utf-8")
    assert dry(documents, tmp_path / "out", "--against", table).code == 0
    table.write_text("words\nnone\n", "utf-8")
    assert dry(documents, tmp_path / "out", "--against", table).code == 2
