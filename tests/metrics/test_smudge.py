"""SMuDGE over drawn documents: where words come from, places, scores, and what cannot be scored."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pymupdf
import pytest
from asked import document_question
from hypothesis import given, settings
from hypothesis import strategies as st

from mmlongbench.errors import Fault, PageLimitError, ScoringError, SourceError
from mmlongbench.metrics.judge import committee
from mmlongbench.metrics.smudge import SMuDGE, words
from mmlongbench.metrics.smudge.metric import Compared, Library
from mmlongbench.metrics.smudge.reading import MAX_PLACES, Found, Place, Reading, found_at
from mmlongbench.metrics.smudge.words import WordList
from mmlongbench.task.metrics import ScoringInput, Settings

Page = list[tuple[int, int, str]]
LEAFLET: tuple[Page, ...] = (
    [(60, 100, "Take up to 12 milligrams"), (300, 100, "Chapel Hill"), (60, 700, "26 tablets, batch 77")],
    [(60, 100, "Store below 25 degrees"), (60, 400, "Made in Georgia"), (300, 700, "Chapel Hall")],
    [],
)


def draw(path: Path, pages: tuple[Page, ...] = LEAFLET, scale: float = 1.0, rotation: int = 0) -> Path:
    """A PDF whose words are the lines' words."""
    document = pymupdf.open()
    for lines in pages:
        page = document.new_page(width=600 * scale, height=800 * scale)
        for x, y, text in lines:
            page.insert_text((x * scale, y * scale), text, fontsize=12 * scale)
        page.set_rotation(rotation)
    document.save(path)
    return path


@pytest.fixture(scope="module")
def leaflets(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("leaflets")
    draw(folder / "leaflet.pdf")
    draw(folder / "large.pdf", scale=3)
    draw(folder / "turned.pdf", rotation=90)
    draw(folder / "scan.pdf", ([],))
    (folder / "broken.pdf").write_bytes(b"%PDF-1.7 nothing")
    return folder


@pytest.fixture(scope="module")
def smudge(leaflets: Path) -> SMuDGE:
    """By the rules of the paper."""
    return SMuDGE(Settings(documents=leaflets))


def asked(prediction: str, gold: Any = "up to 12 milligrams", doc: Any = "leaflet", **record: Any) -> ScoringInput:
    fields = {"id": "q", "doc_name": doc, "ans_page_list": [0], "answer_format": "String", **record}
    return document_question(fields, gold, prediction, dataset="d")


def score(metric: SMuDGE, *args: Any, **fields: Any) -> float:
    scored = metric.score(asked(*args, **fields))
    assert scored.score is not None, scored.failure
    return scored.score


def test_the_paper_is_followed(smudge: SMuDGE) -> None:
    assert (smudge.profile, smudge.follows) == ("paper", "arXiv:2503.19120")


def test_the_example_of_the_paper_on_a_page(smudge: SMuDGE) -> None:
    gold = "up to 12 milligrams"
    right, wrong = (smudge.score(asked(said, gold)).details for said in ("up to 12 mgs", "up to 1z milligrams"))
    assert (right["match"], wrong["match"]) == (pytest.approx(11 / (10 + 17 / 10)), 0)
    assert right["is_found"]
    assert right["alpha_0.25"] > wrong["alpha_0.25"] + 0.15
    assert score(smudge, "26", gold="12") < 0.25  # at the other end of the page
    assert score(smudge, "99", gold="12") == 0  # nowhere in the document
    assert smudge.score(asked("up to 12 mgs", "12")).details["match"] == 0  # no number as a whole


def test_a_gold_is_located_anywhere_in_the_document(smudge: SMuDGE) -> None:
    elsewhere = asked("Georgia", "Georgia")  # page 1; the evidence is page 0
    assert smudge.out_of_scope(elsewhere) == ""
    assert smudge.score(elsewhere).score == 1
    assert smudge.out_of_scope(asked("zzz", "zzzzz")) == "the gold answer is not in the text of its document"
    assert smudge.out_of_scope(asked("12", "12", ans_page_list=[])) == ""


def test_only_a_prediction_needs_a_similar_text(smudge: SMuDGE) -> None:
    far = asked("1961", "1961")  # a quarter of it is on the page
    assert (smudge.out_of_scope(far), smudge.score(far).score) == ("", 1)
    assert smudge.score(asked("1961", "12")).details["is_found"] is False


@pytest.mark.parametrize("gold", ["Yes", "no.", ["Yes", "No"]])
def test_a_question_of_yes_or_no_is_out_of_scope(gold: Any, smudge: SMuDGE) -> None:
    assert smudge.out_of_scope(asked("12", gold)) == "the gold answer is yes or no"
    assert smudge.out_of_scope(asked("12", ["no", "12"])) == ""


@pytest.mark.parametrize("gold", ["Not answerable", "Fail to answer", ["not answerable", "Unanswerable."]])
def test_a_question_without_an_answer_is_out_of_scope(gold: Any, smudge: SMuDGE) -> None:
    assert smudge.out_of_scope(asked("12", gold, answer_format="None")) == "the document has no answer"


def test_a_refusal_is_looked_for_like_any_other_text(tmp_path: Path) -> None:
    draw(tmp_path / "leaflet.pdf", ([(60, 100, "12 is not answerable here")],))
    said = asked("Not answerable.", "12")
    assert SMuDGE(Settings(documents=tmp_path)).score(said).details["is_found"] is True


@pytest.mark.parametrize("gold", ["12", "Chapel Hill", "up to 12 milligrams", "Take", "26 tablets"])
def test_a_gold_that_is_said_scores_1(smudge: SMuDGE, gold: str) -> None:
    assert score(smudge, gold, gold=gold) == 1
    assert score(smudge, f"Answer: {gold.upper()}", gold=gold) == 1


def test_a_score_is_the_weighted_sum_by_hand(smudge: SMuDGE) -> None:
    compared = Compared(0.5, 0.5, is_found=True)
    assert compared.score(0.25) == pytest.approx(0.125 + 0.75 * 0.36787944)
    scored = smudge.score(asked("Chapel Hill", gold="12"))
    found, gold = (280, 100), (60, 100)  # about: the boxes are the words'
    apart = (found[0] - gold[0]) / 600
    assert scored.details["grounding"] == pytest.approx(2.718281828 ** (-apart / (1 - apart)), abs=0.1)
    assert scored.score == pytest.approx(0.75 * scored.details["grounding"])


def test_every_alpha_is_given_and_the_first_is_the_score(leaflets: Path) -> None:
    metric = SMuDGE(Settings(documents=leaflets, alphas=(1.0, 0.5, 0.0)))
    scored = metric.score(asked("up to 12 mgs"))
    match, grounding = scored.details["match"], scored.details["grounding"]
    assert scored.score == scored.details["alpha_1"] == match
    assert scored.details["alpha_0.5"] == pytest.approx((match + grounding) / 2)
    assert scored.details["alpha_0"] == grounding


def test_what_stands_on_another_page_is_not_grounded(smudge: SMuDGE) -> None:
    there = smudge.score(asked("Chapel Hall", gold="Chapel Hill"))
    assert there.details["grounding"] == 0  # page 1 has it word for word
    assert there.details["is_found"] is False
    assert there.score == pytest.approx(0.25 * 10 / 11)
    near = smudge.score(asked("Chapel Hiil", gold="Chapel Hill"))
    assert near.details["grounding"] == 1  # nothing resembles it more than the gold


def test_the_size_and_the_turn_of_a_page_do_not_matter(smudge: SMuDGE) -> None:
    for said in ("up to 12 mgs", "Chapel Hill", "26 tablets"):
        plain = score(smudge, said)
        assert score(smudge, said, doc="large") == pytest.approx(plain, abs=1e-6)
        assert score(smudge, said, doc="turned") == pytest.approx(plain, abs=1e-6)


@settings(max_examples=40)
@given(st.text("12 acehilprstu", max_size=25), st.sampled_from(["12", "Chapel Hill", "up to 12 milligrams"]))
def test_a_score_is_from_0_to_1(smudge: SMuDGE, said: str, gold: str) -> None:
    assert 0 <= score(smudge, said, gold=gold) <= 1


@given(st.tuples(st.floats(0, 1), st.floats(0, 1)), st.floats(0, 1), st.floats(0, 1))
def test_further_away_scores_no_more(gold: tuple[float, float], x: float, further: float) -> None:
    at = found_at(1.0, [Place(0, *gold)])
    near, far = (found_at(1.0, [Place(0, gold[0] + step, gold[1])]) for step in (x, x + further))
    scores = [Compared(0.0, at.distance(found), is_found=True).score(0.25) for found in (near, far)]
    assert scores[0] >= scores[1]


def test_a_gold_that_its_page_has_in_other_words_is_not_taken_from_another_page(smudge: SMuDGE) -> None:
    assert score(smudge, "Chapel Hall", gold="Chapel Hall") == 1  # page 0 has Chapel Hill


def test_the_closest_of_equal_places_counts() -> None:
    gold = found_at(1.0, [Place(0, 0.1, 0.1), Place(2, 0.5, 0.5)])
    said = found_at(1.0, [Place(0, 0.9, 0.9), Place(1, 0.1, 0.1), Place(2, 0.5, 0.75)])
    assert gold.distance(said) == said.distance(gold) == 0.25
    assert gold.distance(Found()) == Found().distance(gold) == 1


def test_more_places_than_are_compared_are_called_not_exhaustive() -> None:
    places = [Place(number % 3, number / 5000, 0.5) for number in range(MAX_PLACES + 1)]
    whole, cut = found_at(1.0, places[1:]), found_at(1.0, [*places, *places])
    assert (len(whole.places), whole.is_exhaustive) == (MAX_PLACES, True)
    assert (len(cut.places), cut.is_exhaustive) == (MAX_PLACES, False)
    assert cut.distance(found_at(1.0, [Place(0, 0.0, 0.75)])) == 0.25


def test_a_list_is_the_mean_of_its_elements_and_other_golds_are_alternatives(smudge: SMuDGE) -> None:
    both = '["Chapel Hill", "26 tablets"]'
    assert score(smudge, "26 tablets, Chapel Hill", gold=both, answer_format="List") == 1
    assert score(smudge, "Chapel Hill", gold=both, answer_format="List") == 0.5
    assert score(smudge, "Chapel Hill; 26 tablets; x; y", gold=both, answer_format="List") == pytest.approx(0.5)
    assert score(smudge, "Chapel Hill", gold=["12", "Chapel Hill", "not there"]) == 1
    assert score(smudge, "Chapel Hill, " * 100_000, gold=both, answer_format="List") < 0.001


LACKING: dict[str, tuple[dict[str, Any], str]] = {
    "no gold": ({"gold": None}, "has not a gold answer that is text"),
    "claims": ({"gold": {"claims": []}}, "has not a gold answer that is text"),
    "no document": ({"doc": None}, "has not a document"),
    "outside": ({"doc": "../leaflet"}, "missing-document"),
    "elsewhere": ({"doc": "elsewhere"}, "missing-document"),
    "scan": ({"doc": "scan"}, "document-without-words"),
    "broken": ({"doc": "broken"}, "broken.pdf"),
    "not there": ({"gold": "zzzzz"}, "'zzzzz' is not"),
    "an element": ({"gold": '["Chapel Hill", "zzzzz"]', "answer_format": "List"}, "'zzzzz' is not"),
}


@pytest.mark.parametrize("case", LACKING)
def test_what_cannot_be_scored_says_why(case: str, smudge: SMuDGE) -> None:
    fields, why = LACKING[case]
    scored = smudge.score(asked("12", **fields))
    assert (scored.score, why in scored.failure, "\n" in scored.failure) == (None, True, False), scored.failure


@pytest.mark.parametrize("said", ["", " ", "\x00", "\ud800", "(" * 5000, "x" * 10_000_000, "12 " * 200_000, "[" * 9999])
def test_no_prediction_breaks_it(smudge: SMuDGE, said: str) -> None:
    assert 0 <= score(smudge, said) < 0.1
    assert 0 <= score(smudge, said, gold='["12", "26"]', answer_format="List") < 0.6


def test_settings_that_cannot_be_meant_are_refused(leaflets: Path) -> None:
    with pytest.raises(ScoringError, match="no documents: name their folder"):
        SMuDGE(Settings())
    for alphas in ((), (1.5,), (0.25, -0.1)):
        with pytest.raises(ScoringError, match="alphas: expected weights from 0 to 1, found"):
            SMuDGE(Settings(documents=leaflets, alphas=alphas))
    with pytest.raises(ScoringError, match="--profile official: the metric 'smudge' does not offer it"):
        SMuDGE(Settings(documents=leaflets, profile="official"))


def test_the_score_at_a_weight_does_not_depend_on_the_order_of_weights(leaflets: Path) -> None:
    found = [
        SMuDGE(Settings(documents=leaflets, alphas=alphas)).score(asked("1200", ["12", "1201"])).details
        for alphas in ((0.25, 1.0), (1.0, 0.25))
    ]
    for name in ("alpha_0.25", "alpha_1"):
        assert found[0][name] == found[1][name]


def drawn(folder: Path, *names: str) -> Path:
    """PDFs of one line each."""
    folder.mkdir()
    for name in names:
        draw(folder / f"{name}.pdf", ([(72, 72, f"the leaflet of {name}")],))
    return folder


def test_documents_are_kept_within_a_bound_and_read_again(tmp_path: Path) -> None:
    opened = Library(drawn(tmp_path / "pdfs", "a", "b"), None, bound=1)
    first = opened.open("a")
    assert isinstance(first, Reading)
    assert opened.open("a") is first
    assert isinstance(opened.open("b"), Reading)
    assert opened.open("a") is not first


def test_documents_go_by_their_own_name_and_by_that_of_a_release(tmp_path: Path) -> None:
    folder = drawn(tmp_path / "pdfs", "home page")
    (tmp_path / "outside.pdf").write_bytes((folder / "home page.pdf").read_bytes())
    (folder / "linked.pdf").symlink_to(tmp_path / "outside.pdf")
    opened = Library(folder, None)
    for name in ("home page", "home page.pdf", "home_pg-900cd0505dda3de0"):
        assert isinstance(opened.open(name), Reading)
    for name in ("linked", "outside", "../outside", ""):
        assert isinstance(opened.open(name), Fault)


def test_a_page_that_takes_too_long_ends_the_scoring_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = drawn(tmp_path / "pdfs", "a")

    def late(*_: object, **__: object) -> Iterator[object]:
        raise PageLimitError(Fault("time-of-a-page", "at most 60 seconds", "more", "a.pdf", "page 1"))
        yield

    monkeypatch.setattr(words, "pdf_words", late)
    monkeypatch.setattr(committee, "read_pages", late)
    said = r"^a\.pdf, page 1: time-of-a-page: .*; repair or remove the document, and run the same command again$"
    for read in (Library(folder, None).open, committee.PageTexts(folder).of):
        with pytest.raises(PageLimitError, match=said):
            read("a")


def word(**changes: Any) -> dict[str, Any]:
    return {"document": "scan", "page": 0, "text": "12", "box": [10, 10, 20, 20], "size": [100, 200], **changes}


def write(path: Path, *lines: Any) -> Path:
    path.write_text("\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines))
    return path


def test_a_list_of_words_stands_in_for_a_scan(tmp_path: Path) -> None:
    lines = [word(), word(text="mgs", box=[25, 10, 40, 20]), word(text="26", box=[60, 110, 70, 120]), word(page=3)]
    metric = SMuDGE(Settings(words=write(tmp_path / "words.jsonl", *lines)))
    assert metric.score(asked("12 mgs", "12 mgs", "scan")).score == 1
    away = metric.score(asked("26", "12", "scan"))
    assert away.score == pytest.approx(0)  # half a page both ways: a distance of 1
    assert "missing-document" in metric.score(asked("12", "12", "other")).failure


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
