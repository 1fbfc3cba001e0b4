"""A committee of judges: what its members see and reply under each profile, means, spread, and members that fail."""

import base64
import io
import statistics
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pymupdf
import pytest
from asked import document_question
from model_server import QUICK, ModelServer, Request, Said, Script, good, in_turn, pictures_of, serving, text_of
from PIL import Image

from mmlongbench.metrics.judge import Committee
from mmlongbench.metrics.judge import committee as committee_module
from mmlongbench.metrics.judge.committee import PageTexts, excerpt_of
from mmlongbench.metrics.smudge.metric import Library
from mmlongbench.metrics.smudge.reading import Reading
from mmlongbench.task import Score
from mmlongbench.task.metrics import Judge, Profile, ScoringInput, Settings

OWN = [f"doc/rose/rose_page{number}.png" for number in (1, 2, 3)]
PAGES = ["doc/fern/fern_page2.png", *OWN]
TEXTS = ["ferns of page 2", "roses of page 1", "roses of page 2", "roses of page 3"]
MAX_SIDE = 2048
"""Pixels; a larger picture is shrunk."""
NOTHING = "neither the text nor a picture of a page that holds the answer is there: give the PDFs with --documents"


@contextmanager
def committee(
    script: Script, profile: Profile | None = None, models: tuple[str, ...] = ("a", "b", "c"), **changes: Any
) -> Iterator[tuple[Committee, ModelServer]]:
    with serving(script) as server:
        judge = Judge(server.url, models, timeout=30.0, attempts=2, samples=changes.pop("samples", None))
        with closing(Committee(Settings(judge=judge, profile=profile, **changes), QUICK)) as opened:
            yield opened, server


@contextmanager
def ours(
    script: Script, models: tuple[str, ...] = ("m",), samples: int = 1, **changes: Any
) -> Iterator[tuple[Committee, ModelServer]]:
    with committee(script, "ours", models, samples=samples, **changes) as opened:
        yield opened


def graded(score: int = 3) -> Script:
    return lambda _: good(reason="", score=score)


def asked(prediction: str = "It is red.", **record: Any) -> ScoringInput:
    about = {"id": "q", "question": "Which colour?", "doc_name": "rose", "page_list": PAGES, "page_text_list": TEXTS}
    full = {**about, "ans_page_list": [2], **record}
    return document_question(full, "Because it is red.", prediction)


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Pages of two documents; the width of a picture is its page's number and 4 more, of ferns 20."""
    root = tmp_path_factory.mktemp("images")
    for path, width in {**{f"doc/rose/rose_page{n}.png": n + 4 for n in range(5)}, PAGES[0]: 20}.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (width, 4)).save(root / path)
    return root


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A PDF of four pages, and one that is none."""
    folder = tmp_path_factory.mktemp("documents")
    with pymupdf.open() as document:
        for number in range(4):
            document.new_page().insert_text((72, 72), f"printed roses of page {number}")
        document.save(folder / "rose.pdf")
    (folder / "broken.pdf").write_bytes(b"%PDF-1.7 no more")
    return folder


def sizes(request: Request) -> list[tuple[int, int]]:
    found = []
    for url in pictures_of(request):
        kind, _, data = url.partition(";base64,")
        assert kind in ("data:image/png", "data:image/jpeg")
        with Image.open(io.BytesIO(base64.b64decode(data))) as picture:
            found.append(picture.size)
    return found


def widths(request: Request) -> list[int]:
    return [width for width, _ in sizes(request)]


def test_under_ours_the_score_is_the_mean_of_all_grades_and_the_spread_is_told() -> None:
    grades = {"a": [5, 4], "b": [2, 2]}
    script: Script = lambda request: good(reason="", score=grades[request["model"]][request["seed"]])  # noqa: E731
    with ours(script, ("a", "b"), 2) as (opened, server):
        found = opened.score(asked())
        assert opened.score(asked()) == found
        assert len(server.requests) == 4
    given = [5, 4, 2, 2]
    assert found.score == pytest.approx((statistics.fmean(given) - 1) / 4)
    expected = {"mean": 3.25, "spread": statistics.pstdev(given), "mean of a": 4.5, "mean of b": 2.0}
    assert found.details == pytest.approx({"pages": 0, "grades": 4, "failed_grades": 0, **expected})
    assert {request["temperature"] for request in server.requests} == {1.0}


def test_one_sample_is_asked_without_randomness_and_an_empty_answer_not_at_all() -> None:
    with ours(graded(1)) as (opened, server):
        assert opened.score(asked()).score == 0.0
        assert [request["temperature"] for request in server.requests] == [0.0]
    for profile in ("ours", None):
        with committee(graded(1), profile) as (opened, server):
            assert opened.score(asked(" ")) == Score(0.0, {"is_empty": True, "mean": 1.0})
            assert opened.absent(asked()) == {"mean": 1.0}
            assert not server.requests


def test_members_that_fail_are_left_out_and_named() -> None:
    script: Script = lambda request: good(reason="", score=5) if request["model"] == "a" else Said("hm")  # noqa: E731
    with ours(script, ("a", "b")) as (opened, _):
        found = opened.score(asked())
    assert (found.score, found.details["grades"], found.details["failed_grades"]) == (1.0, 1, 1)
    assert found.details["failures"].startswith("b: no usable answer in 2 attempts")
    with ours(graded(0), ("a", "b")) as (opened, _):
        found = opened.score(asked())
    assert found.score is None
    assert found.failure.startswith("no judge of the committee gave a grade: a: no usable answer")
    assert "; b: " in found.failure


def test_under_ours_the_gold_pages_are_shown_or_their_texts(images: Path) -> None:
    with ours(graded(), images=images) as (opened, server):
        assert opened.score(asked(ans_page_list=[1, 3])).details["pages"] == 2
    assert widths(server.requests[0]) == [5, 7]
    assert text_of(server.requests[0]).startswith("The pictures are the document's pages 2, 4, in this order.")
    with ours(graded()) as (opened, server):
        opened.score(asked(ans_page_list=[1, 3]))
        opened.score(asked(page_list=None, ans_page_list=None))
    text, without = (text_of(request) for request in server.requests)
    shown = ("\nroses of page 1\n", "\nroses of page 3\n", "ferns", "roses of page 2")
    assert [words in text for words in shown] == [True, True, False, False]
    assert "<page-" not in without


def test_other_pictures_are_another_call_and_odd_ones_are_shrunk_or_left_out(tmp_path: Path) -> None:
    folder = tmp_path / "images" / "doc" / "rose"
    folder.mkdir(parents=True)
    with ours(graded(), images=tmp_path / "images") as (opened, server):
        for colour in ("red", "red", "blue"):
            Image.new("RGB", (4, 4), colour).save(folder / "rose_page2.png")
            opened.score(asked())
        assert len(server.requests) == 2
    Image.new("L", (2 * MAX_SIDE, 64)).save(folder / "rose_page0.png")
    (folder / "rose_page2.png").write_bytes(b"no picture")
    Image.new("RGB", (9, 9)).save(tmp_path / "rose_page1.png")
    odd = ["doc/rose/rose_page0.png", "doc/rose/rose_page2.png", "doc/rose/../../../rose_page1.png", 7]
    with ours(graded(), images=tmp_path / "images") as (opened, server):
        opened.score(asked(page_list=odd, ans_page_list=[0, 1, 2, "x"]))
        opened.score(asked(page_list=odd, ans_page_list=[1], doc_name=".."))
    assert [sizes(request) for request in server.requests] == [[(MAX_SIDE, 32)], []]


def test_official_asks_three_judges_once_without_a_reference_and_the_last_integer_counts(images: Path) -> None:
    grades = {"a": "5", "b": "I give it a 4.", "c": "3 of 5? No, 2"}
    with committee(lambda request: Said(grades[request["model"]]), images=images) as (opened, server):
        assert (opened.profile, opened.follows) == ("official", "chiayewken/multimodal-docs@ce48d6a")
        found = opened.score(asked())
        assert opened.notes == ()
    mean = (5 + 4 + 2) / 3
    assert found.score == pytest.approx((mean - 1) / 4)
    means = {"mean of a": 5.0, "mean of b": 4.0, "mean of c": 2.0}
    expected = {"pages": 1, "page_texts": 3, "mean": mean, "grades": 3, "failed_grades": 0, **means}
    assert {name: found.details[name] for name in expected} == pytest.approx(expected)
    for request in server.requests:
        (message,) = request["messages"]
        assert (message["role"], widths(request)) == ("user", [6])
        assert (request["temperature"], "seed" in request, "response_format" in request) == (0.0, False, False)
        text = text_of(request)
        assert text.startswith("The pictures are the document's pages 3, in this order.\n\nPage 2:\n<page-")
        assert [f"\nroses of page {number}\n" in text for number in range(5)] == [False, True, True, True, False]
        assert [word for word in ("Because", "ferns") if word in text] == []
        assert text.endswith("Reply with the grade alone, a number from 1 to 5.")


def test_the_paper_asks_each_judge_five_times_at_a_stated_temperature(images: Path) -> None:
    def script(request: Request) -> Said:
        return Said(str(1 + request["seed"] if request["model"] == "a" else 3))

    with committee(script, "paper", images=images) as (opened, server):
        assert (opened.profile, opened.follows, opened.notes) == ("paper", "arXiv:2411.06176", ())
        manner = "each asked 5 times at temperature 1"
        assert opened.choices == ("own wording", "judges a, b, c", manner, "no reference")
        found = opened.score(asked())
        assert (found.details["grades"], found.details["mean"], found.score) == (15, 3.0, 0.5)
        assert sorted(request["seed"] for request in server.requests) == sorted([0, 1, 2, 3, 4] * 3)
        assert {request["temperature"] for request in server.requests} == {1.0}


def test_fewer_judges_or_other_samples_are_said_and_recorded_and_no_error(images: Path) -> None:
    said = {
        ("paper", ("a",), 1): "1 judge instead of 3 and 1 sample a judge instead of 5, which paper has",
        ("paper", ("a", "b"), None): "2 judges instead of 3, which paper has",
        ("official", ("a", "b", "c"), 5): "5 samples a judge instead of 1, which official has",
        ("paper", ("a", "b", "c", "d"), 5): "4 judges instead of 3, which paper has",
    }
    for (profile, models, samples), note in said.items():
        with committee(in_turn(Said("4")), profile, models, images=images, samples=samples) as (opened, _):  # type: ignore[arg-type]
            assert opened.notes == (note,)
            assert opened.score(asked()).score == 0.75
            assert opened.choices[1].endswith(", ".join(models))
    with committee(in_turn(Said("4")), "ours", ("a",), samples=7) as (opened, _):
        assert opened.notes == ()


@pytest.mark.parametrize(("profile", "samples", "tries"), [("official", 1, 1), ("paper", 5, 10)])
def test_a_reply_without_a_grade_is_none(profile: Profile, samples: int, tries: int, images: Path) -> None:
    """The paper's judges are asked again."""
    words = {"a": "5", "b": "It is correct.", "c": "10"}
    with committee(lambda request: Said(words[request["model"]]), profile, images=images) as (opened, server):
        found = opened.score(asked())
        assert (found.score, found.details["grades"], found.details["failed_grades"]) == (1.0, samples, 2 * samples)
        failures = ("b: ", "no grade in 'It is correct.'", "the last number is no grade from 1 to 5")
        assert [said for said in failures if said not in found.details["failures"]] == []
        assert [request["model"] for request in server.requests].count("b") == tries
    with committee(in_turn(Said("hm")), profile, images=images) as (opened, _):
        found = opened.score(asked())
        assert found.score is None
        assert found.failure.startswith("no judge of the committee gave a grade: a: ")


def test_a_page_that_the_record_has_no_text_of_is_read_from_the_pdf(images: Path, documents: Path) -> None:
    with committee(in_turn(Said("4")), images=images, documents=documents) as (opened, server):
        found = opened.score(asked(page_text_list=None))
        assert (found.details["page_texts"], found.details["pages"]) == (3, 1)
        text = text_of(server.requests[0])
    assert [f"printed roses of page {number}" in text for number in range(4)] == [False, True, True, True]


def test_a_neighbour_without_text_is_shown_as_a_picture(images: Path) -> None:
    with committee(in_turn(Said("4")), models=("a",), images=images) as (opened, server):
        assert opened.score(asked(page_text_list=None)).details["page_texts"] == 0
        assert opened.score(asked(page_text_list=TEXTS[:3])).details["page_texts"] == 2
        assert opened.score(asked(page_text_list=None, page_list=OWN[1:2], ans_page_list=[0, 3])).score == 0.75
        opened.score(asked(page_text_list=None, ans_page_list=[4]))
    assert [widths(request) for request in server.requests] == [[5, 6, 7], [6, 7], [4, 5, 6, 7, 8], [7, 8]]


def test_judges_who_would_see_nothing_are_not_asked(documents: Path) -> None:
    with committee(in_turn(Said("4"))) as (opened, server):
        for record in ({"page_text_list": None}, {"page_text_list": ["", " ", "", ""]}, {"doc_name": 7}):
            assert opened.score(asked(**record)).failure.startswith(NOTHING)
        assert not server.requests
        assert opened.out_of_scope(asked()) == ""
        for pages in ([], None, ["x"], [-1]):
            assert opened.out_of_scope(asked(ans_page_list=pages)).startswith("no page holds the answer")
    with ours(in_turn(Said("4"))) as (opened, _):
        assert opened.out_of_scope(asked(ans_page_list=[])) == ""
    with committee(in_turn(Said("4")), documents=documents) as (opened, server):
        assert opened.score(asked(page_text_list=None, doc_name="broken")).failure.startswith(NOTHING)


def test_texts_of_documents_are_kept_within_a_bound_and_read_once(
    documents: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = PageTexts(documents)
    assert [text.strip() for text in texts.of("rose")] == [f"printed roses of page {number}" for number in range(4)]
    assert texts.of("rose") is texts.of("rose")
    assert texts.of("rose.pdf") == texts.of("rose")
    assert texts.of("broken") == texts.of("../rose") == texts.of("none") == PageTexts(None).of("rose") == ()
    monkeypatch.setattr(committee_module, "MAX_KEPT", 1)
    before = texts.of("rose")
    texts.of("another")
    assert texts.of("rose") == before
    assert texts.of("rose") is not before


def test_a_committee_and_smudge_may_read_a_pdf_at_once(documents: Path) -> None:
    with ThreadPoolExecutor(4) as pool:
        texts = [pool.submit(PageTexts(documents).of, "rose") for _ in range(2)]
        words = [pool.submit(Library(documents, None).open, "rose") for _ in range(2)]
    assert texts[0].result() == texts[1].result() != ()
    assert all(isinstance(found.result(), Reading) for found in words)


def test_many_answer_pages_are_bounded() -> None:
    paths = [f"doc/rose/rose_page{number}.png" for number in range(100)]
    evidence = asked(page_list=paths, page_text_list=["x"] * 100, ans_page_list=list(range(100))).evidence
    assert evidence is not None
    assert list(excerpt_of(evidence, None, PageTexts(None))[0]) == list(range(21))
