"""PDFs are read by another process: with the same results, a time limit for each page, and recovery if it dies."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from inspect import unwrap
from pathlib import Path
from typing import Any

import pymupdf
import pytest
from crash_harness import started, wait_for
from hostile_pdfs import groups

from mmlongbench.documents import confined, ocr, pdf
from mmlongbench.documents.limits import Limits
from mmlongbench.errors import BuildError, ReaderDiedError, SourceError

LIMITS = Limits(bytes=1_000_000, pages=20, side=16_384)
HURRIED = Limits(bytes=1_000_000, pages=20, side=16_384, seconds_a_page=0.01)
ASKING = """
import sys
from pathlib import Path
from mmlongbench.documents import confined, pdf
from mmlongbench.documents.limits import Limits
limits = Limits(bytes=1_000_000, pages=20, side=16_384)
list(pdf.page_sizes(Path(sys.argv[1]), 144, limits))
(reader,) = confined._free(__import__("os").getpid())
print(reader._process.pid, flush=True)
list(pdf.render_pages(Path(sys.argv[1]), [0], 144, 90, limits))
"""


RECOGNISING = """
import os, sys
from pathlib import Path
from mmlongbench.documents import confined, pdf
from mmlongbench.documents.limits import Limits
limits = Limits(bytes=1_000_000, pages=20, side=16_384)
list(pdf.page_sizes(Path(sys.argv[1]), 144, limits))
(reader,) = confined._free(os.getpid())
print(reader._process.pid, flush=True)
list(pdf.read_pages(Path(sys.argv[1]), limits, ocr=True))
"""
SLOW_TESSERACT = """#!/bin/sh
echo $$ > "$0.pid.part"
mv "$0.pid.part" "$0.pid"
exec sleep 300
"""


@pytest.fixture
def drawn(tmp_path: Path) -> Path:
    with pymupdf.open() as document:
        for number in range(3):
            document.new_page(width=200, height=100).insert_text(
                (20, 40), f"This is page {number} of the document. " * 2
            )
        document.new_page(width=200, height=100)
        document.save(tmp_path / "drawn.pdf")
    return tmp_path / "drawn.pdf"


@pytest.fixture
def slow(tmp_path: Path) -> Path:
    """A page that takes a minute, and more than two seconds in the resolution in which it is read."""
    (tmp_path / "slow.pdf").write_bytes(groups(9000))
    return tmp_path / "slow.pdf"


def test_the_answers_are_those_of_this_process(drawn: Path) -> None:
    calls: list[tuple[Callable[..., Iterator[Any]], tuple[Any, ...]]] = [
        (pdf.page_sizes, (drawn, 144, LIMITS)),
        (pdf.read_pages, (drawn, LIMITS)),
        (pdf.render_pages, (drawn, [2, 0], 72, 50, LIMITS)),
    ]
    answers = [[*function(*arguments)] for function, arguments in calls]
    assert answers == [[*unwrap(function)(*arguments)] for function, arguments in calls]
    assert answers[0] == [(400, 200)] * 4
    assert [len(each) for each in answers] == [4, 4, 2]
    found = (pdf.page_words(drawn, LIMITS), unwrap(pdf.page_words)(drawn, LIMITS))
    there, here = ([list(word) for page in pages for word in page] for pages in found)
    assert there == here
    assert [word[4] for word in there[:5]] == ["This", "is", "page", "0", "of"]


def test_a_fault_of_a_document_is_that_of_this_process(tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"caf\xe9.pdf")
    path.write_bytes(b"no PDF")
    faults = []
    for function in (pdf.page_sizes, unwrap(pdf.page_sizes)):
        with pytest.raises(SourceError) as caught:
            next(function(path, 144, LIMITS))
        faults.append(caught.value.fault)
    assert faults[0] == faults[1]


@pytest.fixture(autouse=True)
def no_readers_of_other_tests() -> None:
    """The tests below count the processes that are free."""
    confined.end_readers()


def test_a_page_that_takes_too_long_to_render_ends_a_build_by_name_and_its_process_too(slow: Path, drawn: Path) -> None:
    assert [*pdf.page_sizes(slow, 144, LIMITS)] == [(1224, 1584)]
    (reader,) = confined._free(os.getpid())
    with pytest.raises(BuildError, match=r"^slow\.pdf, page 1: time-of-a-page: expected at most 1 seconds of a"):
        [*pdf.render_pages(slow, [0], 144, 90, HURRIED)]
    assert not reader.is_alive()
    assert not confined._free(os.getpid())
    assert len([*pdf.page_sizes(drawn, 144, LIMITS)]) == 4


def test_a_process_that_is_not_waited_for_is_ended(drawn: Path) -> None:
    words = pdf.page_words(drawn, LIMITS)
    next(words)
    words.close()  # type: ignore[attr-defined]
    assert not confined._free(os.getpid())
    assert len([*pdf.page_sizes(drawn, 144, LIMITS)]) == 4


def test_two_documents_may_be_read_at_once(drawn: Path) -> None:
    texts = zip(pdf.read_pages(drawn, LIMITS), pdf.read_pages(drawn, LIMITS), strict=True)
    assert all(one == other for one, other in texts)


@pytest.fixture
def dying(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Start processes that die at their first request, one for each entry of the list."""
    left: list[int] = []
    take = confined._free_reader

    def taken() -> Any:
        reader = take()
        if left:
            left.pop()
            reader._process.kill()
            reader._process.wait()
        return reader

    monkeypatch.setattr(confined, "_free_reader", taken)
    return left


def test_a_process_that_died_is_started_once_more(drawn: Path, dying: list[int]) -> None:
    dying.append(1)
    assert [*pdf.read_pages(drawn, LIMITS)] == [*unwrap(pdf.read_pages)(drawn, LIMITS)]


def test_a_process_that_dies_twice_is_an_error_with_the_document(drawn: Path, dying: list[int]) -> None:
    dying.extend([1, 2])
    with pytest.raises(
        ReaderDiedError, match=r"^drawn\.pdf: the process that reads it died twice, the second time by SIGKILL; run"
    ):
        [*pdf.page_sizes(drawn, 144, LIMITS)]


def test_the_last_line_of_a_process_that_dies_is_kept(drawn: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    dying = "import sys; sys.stderr.write('first\\nno such library\\n\\n'); sys.exit(3)"
    monkeypatch.setattr(confined, "_START", dying)
    with pytest.raises(
        ReaderDiedError, match=r"the second time with exit code 3 \(no such library\); run the command again"
    ):
        [*pdf.page_sizes(drawn, 144, LIMITS)]


def test_a_process_that_died_while_it_waited_is_replaced(drawn: Path) -> None:
    [*pdf.page_sizes(drawn, 144, LIMITS)]
    (reader,) = confined._free(os.getpid())
    os.kill(reader._process.pid, signal.SIGKILL)
    reader._process.wait()
    assert len([*pdf.page_sizes(drawn, 144, LIMITS)]) == 4


def test_a_process_that_cannot_start_says_why(drawn: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confined, "_START", confined._START.replace("from", "sys.modules['pymupdf'] = None; from"))
    with pytest.raises(BuildError, match="PyMuPDF cannot be loaded: "):
        [*pdf.page_sizes(drawn, 144, LIMITS)]


@pytest.mark.rare
def test_a_process_ends_with_the_one_that_asks_even_in_the_middle_of_a_page(slow: Path) -> None:
    with started([sys.executable, "-c", ASKING, str(slow)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        reader = Path(f"/proc/{int(process.stdout.readline())}")
        assert reader.exists()
        process.kill()
        process.wait()
        wait_for(lambda: not reader.exists())


@pytest.fixture
def slow_tesseract(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A `tesseract` that takes five minutes; beside it stands its process id once it runs."""
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "tesseract"
    program.write_text(SLOW_TESSERACT)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    return program


@pytest.mark.parametrize("killed", ["reader", pytest.param("asking", marks=pytest.mark.rare)])
def test_tesseract_ends_with_the_process_that_waits_for_it(killed: str, drawn: Path, slow_tesseract: Path) -> None:
    noted = slow_tesseract.with_name("tesseract.pid")
    with started([sys.executable, "-c", RECOGNISING, str(drawn)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        reader = int(process.stdout.readline())
        wait_for(noted.exists)
        recognising = Path(f"/proc/{int(noted.read_text())}")
        assert recognising.exists()
        os.kill(reader if killed == "reader" else process.pid, signal.SIGKILL)
        wait_for(lambda: not recognising.exists())


def test_a_tesseract_that_does_not_say_its_version_is_named(
    slow_tesseract: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ocr, "_ANSWERING", 0.3)
    ocr.ocr_version.cache_clear()
    with pytest.raises(BuildError, match=r"`tesseract --version` does not answer within 0\.3 s"):
        ocr.ocr_version()
