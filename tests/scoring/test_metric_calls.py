"""How metrics are called: which examples and answers they see, in threads, one at a time, and what breaks in them."""

import json
import re
import runpy
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path
from threading import Barrier, Event
from typing import Any, ClassVar

import pytest
from once import once
from score_lines import Line, score, scored, told, write
from tiny import command, draw_pdf

import mmlongbench as mm
import mmlongbench.task as mt
from builders.docvqa import DocVQA
from mmlongbench.metrics.benchmark import DocumentAnswer, SubstringExactMatch

PAGE = Path(__file__).parents[2] / "mmlongbench/scoring/README.md"
DOCS = "documentQA/mmlongdoc_K8.jsonl"
UNTOLD = "NIAH/counting-text_test_K8_dep3.jsonl"
"""A file of other origin, whose rows differ only by their order."""
WHO = "error: metric 'doc_qa' (mmlongbench.metrics.benchmark:DocumentAnswer of mmlongbench): "
OF = "example 'mmlongdoc_0' of documentQA/mmlongdoc_K8.jsonl: "
WHY = "the answer has more than five words, for which token F1 says little; `--metrics judge` scores it"


def boo(*given: object) -> object:
    raise KeyError("boo")


BOO = f"KeyError: 'boo' (test_metric_calls.py, line {boo.__code__.co_firstlineno + 1})"
PER_EXAMPLE = ("score", "out_of_scope", "absent", "compared_answer")


BROKEN: dict[str, tuple[str, object, str]] = {
    **{f"{name} raises": (name, boo, f"{name}(), {OF}{BOO}") for name in PER_EXAMPLE},
    **{f"{name} raises": (name, boo, f"{name}(): {BOO}") for name in ("usage", "close")},
    "no profile": ("offered", boo, f"__init__(): {BOO}"),
    **{
        f"{name} returns a {kind}": (name, given, f"{name}(), {OF}it returned a {kind}, expected a {expected}")
        for name, given, kind, expected in (
            ("score", None, "NoneType", "Score"),
            ("score", 1.0, "float", "Score"),
            ("score", (1, {}), "tuple", "Score"),
            ("out_of_scope", None, "NoneType", "str"),
            ("absent", "", "str", "Mapping"),
            ("compared_answer", 5, "int", "str"),
        )
    },
}
"""A method of a metric, what it is or returns, and what is said of it."""


@pytest.mark.parametrize("case", BROKEN)
def test_what_is_broken_in_a_metric_is_one_line(
    case: str, public: Path, docs: list[Line], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    method, given, said = BROKEN[case]
    monkeypatch.setattr(DocumentAnswer, method, given if given is boo else lambda *asked: given)
    first = [] if method == "absent" else [{**docs[0], "sample": n} for n in (0, 1)]
    ran = score(public / DOCS, [*first, *docs[1:]], tmp_path)
    assert (ran.code, ran.out, ran.err) == (2, "", f"{WHO}{said}\n")


@pytest.mark.parametrize(
    "words", [("audit",), ("stats",), ("show",), ("export", "--to", "openai", "--out", "exported")]
)
def test_an_exception_in_the_spec_of_a_builder_is_one_line_for_every_command_with_a_release(
    words: tuple[str, ...], finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(DocVQA, "spec", property(boo))
    ran = command(words[0], finished, *words[1:])
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "builder 'docvqa' (builders.docvqa:DocVQA of mmlongbench): spec, dataset 'mmlongdoc': KeyError" in ran.err


def test_a_metric_may_score_in_threads_and_fail_and_lines_keep_their_order(
    public: Path, docs: list[Line], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    barrier, closed = Barrier(3, timeout=60), list[object]()

    def scores(metric: mt.metrics.Metric, asked: mt.metrics.ScoringInput) -> mt.Score:
        if asked.id == "mmlongdoc_4":
            return mt.Score(None, {}, "it was asked too much")
        if asked.id != "mmlongdoc_3":
            barrier.wait()  # until three threads score
        return mt.Score(0.5, {"said": asked.prediction})

    monkeypatch.setattr(DocumentAnswer, "concurrency", 3)
    monkeypatch.setattr(DocumentAnswer, "score", scores)
    monkeypatch.setattr(DocumentAnswer, "usage", lambda metric: {"calls": 3})
    monkeypatch.setattr(DocumentAnswer, "close", lambda metric: closed.append(metric))
    said = write(tmp_path / "said", docs, "m.jsonl") / "m.jsonl"
    found = mm.score(public / DOCS, said, out=tmp_path / "scores")
    lines = scored(tmp_path / "scores")
    assert [line.id for line in lines] == [f"mmlongdoc_{n}" for n in range(5)]
    assert (lines[4].status, lines[4].score, lines[4].failure) == ("failed", None, "it was asked too much")
    (cell,) = found.cells
    assert (cell.score, cell.failed, found.usage) == (0.5, 1, {"doc_qa": {"calls": 3}})
    assert (len(closed), found.problems) == (1, ())


def test_a_metric_is_stopped_before_its_threads_are_waited_for(
    public: Path, docs: list[Line], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_waiting, stopped, ends = Event(), Event(), list[bool]()

    def scores(metric: mt.metrics.Metric, asked: mt.metrics.ScoringInput) -> mt.Score:
        if asked.id == "mmlongdoc_0":
            is_waiting.wait(60)
            raise ValueError("broken")
        is_waiting.set()
        ends.append(stopped.wait(60))
        return mt.Score(0.0)

    monkeypatch.setattr(DocumentAnswer, "concurrency", 2)
    monkeypatch.setattr(DocumentAnswer, "score", scores)
    monkeypatch.setattr(DocumentAnswer, "stop", lambda metric: stopped.set())
    assert "ValueError: broken" in score(public / DOCS, docs, tmp_path).err
    assert ends
    assert all(ends)


class Counting(mt.metrics.Metric):
    """A metric of its own."""

    name: ClassVar[str] = "counting"

    def score(self, asked: mt.metrics.ScoringInput) -> mt.Score:
        return mt.Score(0.5)


def test_a_metric_that_says_no_profile_is_ours_and_neither_stops_nor_uses_anything() -> None:
    metric = Counting(mt.metrics.Settings())
    assert (metric.profile, metric.follows, dict(metric.usage())) == ("ours", "", {})
    asked = mt.metrics.ScoringInput(DOCS, "d", "q", "a", "b")
    assert (metric.out_of_scope(asked), dict(metric.absent(asked))) == ("", {})
    with pytest.raises(mm.ScoringError, match="'counting' does not offer it; it offers ours"):
        Counting(mt.metrics.Settings(profile="official"))


def test_the_metric_of_the_page_reads_the_evidence_of_any_task(tmp_path: Path) -> None:
    (code,) = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    (tmp_path / "own.py").write_text(code, "utf-8")
    metric = runpy.run_path(str(tmp_path / "own.py"))["NamesItsPage"](mt.metrics.Settings())
    assert isinstance(metric, mt.metrics.Metric)
    asked = mt.metrics.ScoringInput("f.jsonl", "d", "q", "red", "Red, see page 4.", evidence=mt.Evidence("rose", (3,)))
    assert (metric.out_of_scope(asked), metric.score(asked).score) == ("", 1.0)
    for evidence in (None, mt.Evidence("rose")):
        without = mt.metrics.ScoringInput("f.jsonl", "d", "q", "red", "Red, see page 4.", evidence=evidence)
        assert (metric.out_of_scope(without), metric.score(without).score) == ("no page holds the answer", 0.0)


OWN = "documentQA/reports_K1.jsonl"


@pytest.fixture(scope="session")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release of two own questions: one has a long answer, the other has several; not to be changed."""

    def make(folder: Path) -> None:
        (folder / "documents").mkdir()
        draw_pdf(folder / "documents/ash.pdf", 2)
        rows = "ash.pdf,Why?,for it has always been so,1,\nash.pdf,Who?,Tern Rock Ltd,1,TRL; Tern Rock Limited\n"
        (folder / "questions.csv").write_text(f"doc,question,answer,pages,accepted\n{rows}", "utf-8")
        source = {"questions": str(folder / "questions.csv"), "documents": str(folder / "documents")}
        about: Line = {"name": "reports", "builder": "docvqa", "reader": "own_documents", "source": source}
        about |= {"lengths": ["1K"], "reserve": 64}
        (folder / "m.yaml").write_text(json.dumps({"datasets": [about]}), "utf-8")
        mm.build(folder / "m.yaml", folder / "release")

    return once(tmp_path_factory, "own-questions", make) / "release"


@pytest.mark.parametrize(("said", "points"), [("TRL", 1.0), ("Tern Rock Limited", 1.0), ("Tern Rock", 0.8), ("x", 0.0)])
def test_the_best_of_the_accepted_answers_counts_and_a_long_one_is_in_no_mean(
    said: str, points: float, own: Path, tmp_path: Path
) -> None:
    lines = [{"file": OWN, "id": f"own_{n}", "prediction": text} for n, text in enumerate(("something else", said))]
    found = mm.score(own, write(tmp_path, lines, "m.jsonl") / "m.jsonl", out=tmp_path / "scores")
    (cell,) = found.cells
    assert cell.examples == 1
    assert cell.score == pytest.approx(points)
    assert f"doc_qa: 1 examples left out: {WHY}" in found.notes
    kept = [(line.id, line.status, line.failure) for line in scored(tmp_path / "scores")]
    assert kept == [("own_0", "outside", WHY), ("own_1", "scored", "")]
    note = f"doc_qa: 1 examples are left out of every mean of this metric: {WHY}"
    assert note in told(tmp_path / "scores")["notes"]
    scorer = mm.scorer(own)
    assert scorer.score({"file": OWN, "id": "own_1"}, said).score == pytest.approx(points)
    assert scorer.score({"file": OWN, "id": "own_0"}, said) == mt.Score(None, failure=WHY)


def test_only_a_group_of_this_name_is_left_out() -> None:
    metric = DocumentAnswer(mt.metrics.Settings())
    long: dict[str, Any] = {"answer": "one two three four five six", "prediction": "", "answer_format": "String"}
    for groups, why in ((None, ""), (["short"], ""), (["long"], WHY)):
        facets = {"answer length": groups} if groups else {}
        assert metric.out_of_scope(mt.metrics.ScoringInput(OWN, "d", "q", **long, facets=facets)) == why


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The gold answers that the metric of own questions is called with; the first of its scores fails."""
    golds = list[object]()

    def scores(metric: mt.metrics.Metric, asked: mt.metrics.ScoringInput) -> mt.Score:
        golds.append(asked.answer)
        if asked.answer == "TRL":
            return mt.Score(None, failure="broken")
        return mt.Score(float(asked.answer == asked.prediction))

    monkeypatch.setattr(DocumentAnswer, "score", scores)
    return golds


@pytest.mark.parametrize(
    ("said", "calls", "points"), [("Tern Rock Ltd", 1, 1), ("Tern Rock Limited", 3, 1), ("x", 3, 0)]
)
def test_a_metric_is_called_until_one_answer_has_the_full_score(
    said: str, calls: int, points: float, called: list[object], own: Path
) -> None:
    assert mm.scorer(own).score({"file": OWN, "id": "own_1"}, said).score == points
    assert called == ["Tern Rock Ltd", "TRL", "Tern Rock Limited"][:calls]


def told_apart(golds: list[Line]) -> list[Line]:
    return [line for line in golds if line["file"] != UNTOLD]


@pytest.mark.parametrize(
    ("said", "keep_reasoning"),
    [
        *((said, False) for said in (None, "", "no idea", "Answer: Yes")),
        *product(("<think>It is Yes.</think>Answer: No", "<think>It is 12, I th"), (False, True)),
    ],
)
def test_a_score_of_a_single_example_is_that_of_all_predictions_together(
    public: Path, golds: list[Line], said: str | None, keep_reasoning: bool, tmp_path: Path
) -> None:
    lines = [line if said is None else {**line, "prediction": said} for line in told_apart(golds)]
    score(public, lines, tmp_path, "--partial", "-q", *(("--reasoning", "keep") if keep_reasoning else ()))
    key = ("file", "id", "depth", "permutation")
    together = {tuple(getattr(line, name) for name in key): line.score for line in scored(tmp_path / "scores")}
    scorer = mm.scorer(public, keep_reasoning=keep_reasoning)
    expected = [together[tuple(line.get(name) for name in key)] for line in lines]
    assert [scorer.score(line, line["prediction"]).score for line in lines] == expected
    if said is None:
        assert set(expected) == {1.0}


def test_a_refused_answer_counts_by_its_place_among_those_that_were_asked(
    public: Path, golds: list[Line], tmp_path: Path
) -> None:
    lines = [{**line, "prediction": "I cannot see."} for line in golds if "vh_multi" in line["file"]][2:]
    score(public, lines, tmp_path, "--partial", "-q")
    together = [line.score for line in scored(tmp_path / "scores") if line.status == "scored"]
    scorer = mm.scorer(public)
    placed = [scorer.score(line, line["prediction"], place).score for place, line in enumerate(lines)]
    assert placed == together == [0.0, 0.0, 0.0, 1.0]
    assert [scorer.score(line, line["prediction"]).score for line in lines] == [1.0, 1.0, 1.0, 0.0]


def test_threads_share_a_scorer_which_closes_its_metrics(
    public: Path, golds: list[Line], monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = list[object]()
    monkeypatch.setattr(SubstringExactMatch, "close", lambda metric: closed.append(metric))
    scorer = mm.scorer(public)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda line: scorer.score(line, line["prediction"]).score, told_apart(golds) * 3))
    assert set(found) == {1.0}
    scorer.close()
    assert len(closed) == 1


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ({"file": "vrag/viqae_K8_dep6.jsonl", "id": "q"}, r"no public file 'vrag/viqae_K8.*did you mean 'vrag/viquae"),
        ({"id": "viquae-1"}, "no public file None"),
        ({"file": "vrag/viquae_K8_dep6.jsonl", "id": "viquae-1", "depth": 0.3}, "no example 'viquae-1' at depth 0.3"),
        ({"file": "vrag/viquae_K8_dep6.jsonl"}, "id is None, expected a text"),
        ({"file": UNTOLD, "id": "mm-niah-1"}, "'mm-niah-1' is the id of several examples that nothing tells apart"),
    ],
)
def test_what_the_release_does_not_have_is_named(key: Line, said: str, public: Path) -> None:
    with pytest.raises(mm.ScoringError, match=said):
        mm.scorer(public).score(key, "x")
    with pytest.raises(mm.ReleaseError):
        mm.scorer(public / "nothing")
