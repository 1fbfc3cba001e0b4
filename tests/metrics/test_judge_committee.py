"""A committee of judges under `ours`: means, spread, members that fail, and the pages and reference they see."""

import base64
import io
import statistics
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from asked import document_question
from model_server import QUICK, ModelServer, Request, Said, Script, good, pictures_of, serving, text_of
from PIL import Image

from mmlongbench.metrics.judge import Committee
from mmlongbench.models.pictures import MAX_SIDE
from mmlongbench.task.metric import Judge, Score, ScoringInput, Settings

PAGES = ["doc/fern/fern_page0.png", "doc/rose/rose_page0.png", "doc/rose/rose_page1.png", "doc/rose/rose_page2.png"]


@contextmanager
def committee(
    script: Script, models: tuple[str, ...] = ("m",), samples: int = 1, images: Path | None = None
) -> Iterator[tuple[Committee, ModelServer]]:
    """A committee under `ours`."""
    with serving(script) as server:
        judge = Judge(server.url, models, timeout=30.0, attempts=2, samples=samples)
        with closing(Committee(Settings(judge=judge, images=images, profile="ours"), QUICK)) as opened:
            yield opened, server


def asked(prediction: str = "It is red.", **record: Any) -> ScoringInput:
    full = {"id": "q", "question": "Why?", "doc_name": "rose", "page_list": PAGES, "ans_page_list": [0, 2], **record}
    return document_question(full, "Because it is red.", prediction)


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("images")
    for number, path in enumerate(PAGES):
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (4 + number, 4)).save(root / path)
    return root


def sizes(request: Request) -> list[tuple[int, int]]:
    found = []
    for url in pictures_of(request):
        kind, _, data = url.partition(";base64,")
        assert kind in ("data:image/png", "data:image/jpeg")
        with Image.open(io.BytesIO(base64.b64decode(data))) as picture:
            found.append(picture.size)
    return found


def test_the_score_is_the_mean_of_all_grades_and_the_spread_is_told() -> None:
    grades = {"a": [5, 4], "b": [2, 2]}
    script: Script = lambda request: good(reason="", score=grades[request["model"]][request["seed"]])  # noqa: E731
    with committee(script, ("a", "b"), 2) as (opened, server):
        found = opened.score(asked())
        assert opened.score(asked()) == found
        assert len(server.requests) == 4
    given = [5, 4, 2, 2]
    assert found.score == pytest.approx((statistics.fmean(given) - 1) / 4)
    assert found.details == {
        "pages": 0,
        "mean": 3.25,
        "spread": pytest.approx(statistics.pstdev(given)),
        "grades": 4,
        "failed_grades": 0,
        "mean of a": 4.5,
        "mean of b": 2.0,
    }
    assert {request["temperature"] for request in server.requests} == {1.0}


def test_one_sample_is_asked_without_randomness_and_an_empty_answer_not_at_all() -> None:
    with committee(lambda _: good(reason="", score=1)) as (opened, server):
        assert opened.score(asked()).score == 0.0
        assert opened.score(asked(" ")) == Score(0.0, {"is_empty": True, "mean": 1.0})
        assert [request["temperature"] for request in server.requests] == [0.0]


def test_members_that_fail_are_left_out_and_named() -> None:
    script: Script = lambda request: good(reason="", score=5) if request["model"] == "a" else Said("hm")  # noqa: E731
    with committee(script, ("a", "b")) as (opened, _):
        found = opened.score(asked())
    assert (found.score, found.details["grades"], found.details["failed_grades"]) == (1.0, 1, 1)
    assert found.details["failures"].startswith("b: no usable answer in 2 attempts")


def test_a_committee_that_fails_whole_gives_no_score() -> None:
    with committee(lambda _: good(reason="", score=0), ("a", "b")) as (opened, _):
        found = opened.score(asked())
    assert found.score is None
    assert found.failure.startswith("no judge of the committee gave a grade: a: no usable answer")
    assert "; b: " in found.failure


def test_the_gold_pages_are_shown_by_document_and_number(images: Path) -> None:
    with committee(lambda _: good(reason="", score=3), images=images) as (opened, server):
        found = opened.score(asked())
    assert found.details["pages"] == 2
    assert sizes(server.requests[0]) == [(5, 4), (7, 4)]
    assert text_of(server.requests[0]).startswith("The pictures are the document's pages 1, 3, in this order.")


def test_other_pictures_are_another_call(images: Path, tmp_path: Path) -> None:
    with committee(lambda _: good(reason="", score=3), images=tmp_path) as (opened, server):
        for colour in ("red", "red", "blue"):
            (tmp_path / "doc" / "rose").mkdir(parents=True, exist_ok=True)
            Image.new("RGB", (4, 4), colour).save(tmp_path / PAGES[1])
            opened.score(asked())
        assert len(server.requests) == 2


def test_a_large_picture_is_shrunk_and_what_is_none_is_left_out(tmp_path: Path) -> None:
    folder = tmp_path / "images" / "doc" / "rose"
    folder.mkdir(parents=True)
    Image.new("L", (2 * MAX_SIDE, 64)).save(folder / "rose_page0.png")
    (folder / "rose_page2.png").write_bytes(b"no picture")
    Image.new("RGB", (9, 9)).save(tmp_path / "rose_page1.png")
    outside = ["doc/rose/rose_page0.png", "doc/rose/rose_page2.png", "doc/rose/../../../rose_page1.png", 7]
    with committee(lambda _: good(reason="", score=3), images=tmp_path / "images") as (opened, server):
        opened.score(asked(page_list=outside, ans_page_list=[0, 1, 2, "x"], doc_name="rose"))
        opened.score(asked(page_list=outside, ans_page_list=[1], doc_name=".."))
    assert [sizes(request) for request in server.requests] == [[(MAX_SIDE, 32)], []]


def test_without_pictures_the_texts_of_gold_pages_are_shown() -> None:
    texts = ["ferns", "roses one", "roses two", "roses three"]
    with committee(lambda _: good(reason="", score=3)) as (opened, server):
        opened.score(asked(page_text_list=texts))
        opened.score(asked(page_list=None, ans_page_list=None))
    text = text_of(server.requests[0])
    assert "\nroses one\n" in text
    assert "\nroses three\n" in text
    assert "ferns" not in text
    assert "roses two" not in text
    assert "<page-" not in text_of(server.requests[1])
