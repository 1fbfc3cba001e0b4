"""Where SMuDGE takes words from: folders of PDFs, and lists of words that a user brings."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pymupdf
import pytest

from mmlongbench.documents import pdf_reader
from mmlongbench.errors import Fault, SourceError, TimeLimitError
from mmlongbench.metrics.judge.page_texts import PageTexts
from mmlongbench.metrics.smudge import SMuDGE
from mmlongbench.metrics.smudge.library import Library, Text
from mmlongbench.metrics.smudge.word_list import WordList
from mmlongbench.task.evidence import Evidence
from mmlongbench.task import ScoringInput, Settings


def draw(folder: Path, *names: str) -> Path:
    """PDFs of one line each."""
    folder.mkdir()
    for name in names:
        document = pymupdf.open()
        document.new_page().insert_text((72, 72), f"the leaflet of {name}")
        document.save(folder / f"{name}.pdf")
    return folder


def test_documents_are_kept_within_a_bound_and_read_again(tmp_path: Path) -> None:
    library = Library(draw(tmp_path / "pdfs", "a", "b"), None, ignores_reading_order=False, bound=1)
    first = library.open("a")
    assert isinstance(first, Text)
    assert library.open("a") is first
    assert isinstance(library.open("b"), Text)
    assert library.open("a") is not first


def test_documents_go_by_their_own_name_and_by_that_of_a_release(tmp_path: Path) -> None:
    folder = draw(tmp_path / "pdfs", "home page")
    (tmp_path / "outside.pdf").write_bytes((folder / "home page.pdf").read_bytes())
    (folder / "linked.pdf").symlink_to(tmp_path / "outside.pdf")
    library = Library(folder, None, ignores_reading_order=False)
    for name in ("home page", "home page.pdf", "home_pg-900cd0505dda3de0"):
        assert isinstance(library.open(name), Text)
    for name in ("linked", "outside", "../outside", ""):
        assert isinstance(library.open(name), Fault)


def test_a_page_that_takes_too_long_ends_the_scoring_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = draw(tmp_path / "pdfs", "a")

    def late(*_: object, **__: object) -> Iterator[object]:
        raise TimeLimitError("a.pdf, page 0: takes longer than 60 s")
        yield

    monkeypatch.setattr(pdf_reader, "ask", late)
    said = r"^a\.pdf, page 0: takes longer than 60 s; repair or remove the document, and run the same command again$"
    for read in (Library(folder, None, ignores_reading_order=False).open, PageTexts(folder).of):
        with pytest.raises(TimeLimitError, match=said):
            read("a")


def word(**changes: Any) -> dict[str, Any]:
    return {"document": "scan", "page": 0, "text": "12", "box": [10, 10, 20, 20], "size": [100, 200], **changes}


def write(path: Path, *lines: Any) -> Path:
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines))
    return path


def test_a_list_of_words_stands_in_for_a_scan(tmp_path: Path) -> None:
    lines = [word(), word(text="mgs", box=[25, 10, 40, 20]), word(text="26", box=[60, 110, 70, 120]), word(page=3)]
    metric = SMuDGE(Settings(words=write(tmp_path / "words.jsonl", *lines)))
    assert metric.score(asked("12 mgs", gold="12 mgs")).score == 1
    away = metric.score(asked("26", gold="12"))
    assert away.score == pytest.approx(0)  # half a page both ways: a distance of 1
    assert "missing-document" in metric.score(asked("12", gold="12", doc="other")).failure


def asked(prediction: str, gold: str, doc: str = "scan") -> ScoringInput:
    return ScoringInput("d_K8.jsonl", "d", "q", gold, prediction, evidence=Evidence(doc, (0,)))


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("{", "line 2: invalid-json"),
        (word(box=[20, 10, 10, 20]), "line 2: bad-word: .* a box is left, top, right, bottom"),
        (word(size=[0, 10]), "line 2: bad-word: .* a width and a height above 0"),
        (word(size=[1e-300, 10], box=[0, 0, 1e300, 1]), "line 2: bad-word: .* cannot stand"),
        (word(page=-1), "line 2, page: bad-word"),
        (word(colour="red"), "line 2, colour: bad-word"),
        ({"document": "scan"}, "line 2, page: bad-word"),
    ],
)
def test_a_bad_line_of_words_is_named(tmp_path: Path, line: Any, why: str) -> None:
    with pytest.raises(SourceError, match=rf"words\.jsonl, {why}"):
        WordList(write(tmp_path / "words.jsonl", word(), line))
