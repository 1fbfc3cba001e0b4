"""Several answers of a model to one example: an example counts once, with the mean, the best and the majority."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest
from score_lines import Line, absent, cell, line, mean, page, reported, skipped
from tiny import Ran, command

import mmlongbench as mm
from mmlongbench.errors import ReleaseError
from mmlongbench.manifest.registry import metric_type
from mmlongbench.scoring import running
from mmlongbench.scoring.report import report
from mmlongbench.scoring.report.calibration import calibration
from mmlongbench.scoring.samples import Sampled, majority_score, mean_figures
from mmlongbench.scoring.scores import MAX_SAMPLE, ScoreLine, read_scores
from mmlongbench.task.metric import Metric, Score, ScoringInput, Settings

pytestmark = pytest.mark.slow
VH = "NIAH/vh_multi_test_2_K8_dep3.jsonl"
DOCS = "documentQA/mmlongdoc_K8.jsonl"
COUNTS = "NIAH/counting-text_test_K8_dep3.jsonl"
WRONG = "no such thing"


def docs(golds: list[Line]) -> list[Line]:
    """A line with the gold answer for each of the five document questions."""
    return [each for each in golds if each["file"] == DOCS]


def sampled(of: Line, *said: str | None) -> list[Line]:
    """Lines with several answers to an example; None: the gold answer."""
    return [
        {**of, "sample": n, "prediction": of["prediction"] if each is None else each} for n, each in enumerate(said)
    ]


def run(public: Path, lines: Sequence[object], folder: Path, *options: str) -> Ran:
    path = folder / "m.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in lines), "utf-8")
    return command("score", public, path, "--partial", "--out", folder / "scores", *options)


def scored(folder: Path) -> list[ScoreLine]:
    return list(read_scores(folder / "scores"))


def cells(found: Ran, metric: str = "doc_qa") -> dict[str, Any]:
    (of_metric,) = json.loads(found.out)["scores"][metric].values()
    return dict(of_metric["8192"])


def test_each_sample_has_a_line_and_an_example_counts_once(public: Path, golds: list[Line], tmp_path: Path) -> None:
    first, second, *others = docs(golds)
    lines = sampled(first, None, WRONG, WRONG, None) + sampled(second, WRONG, None, None, None)
    lines += [each for other in others for each in sampled(other, None, None, None, None)]
    found = run(public, lines, tmp_path, "--json")
    assert (found.code, set(json.loads(found.out)["problems"])) == (1, {"no-predictions"})
    made = scored(tmp_path)
    assert [(each.id, each.sample, each.score) for each in made[:8]] == [
        *(("mmlongdoc_0", n, score) for n, score in enumerate((1.0, 0.0, 0.0, 1.0))),
        *(("mmlongdoc_1", n, score) for n, score in enumerate((0.0, 1.0, 1.0, 1.0))),
    ]
    assert len({each.answer for each in made[:4]}) == 2
    assert cells(found) == {
        "score": pytest.approx((0.5 + 0.75 + 3) / 5),
        "examples": 5,
        "absent": 0,
        "failed": 0,
        "skipped": 0,
        "samples": 4,
        "best": 1.0,
        "majority": 1.0,
        "failed_samples": 0,
    }
    printed = run(public, lines, tmp_path)
    rows = [text.split() for text in printed.out.splitlines()]
    assert ["mmlongdoc", "doc_qa", "85.0", "(5)"] in rows
    assert ["best", "of", "4", "100.0"] in rows
    assert ["majority", "of", "4", "100.0"] in rows
    assert "fewer samples" not in printed.out
    (of_python,) = mm.score(public, tmp_path / "m.jsonl", partial=True).cells
    assert (of_python.score, of_python.samples, of_python.best, of_python.majority) == (0.85, 4, 1.0, 1.0)


def test_score_and_report_agree_on_every_figure(public: Path, golds: list[Line], tmp_path: Path) -> None:
    first, second, third, *others = docs(golds)
    lines = sampled(first, WRONG, "other", "other", None) + sampled(second, None, None, WRONG) + sampled(third, WRONG)
    found = run(public, [*lines, *others], tmp_path, "--metrics", "doc_qa,mmlongbench-doc", "--json")
    whole = report(tmp_path / "scores")
    for metric in ("doc_qa", "mmlongbench-doc"):
        made = cells(found, metric)
        assert made["score"] == pytest.approx((1 / 4 + 2 / 3 + 0 + 1 + 1) / 5)
        assert made["score"] == pytest.approx(mean(whole.scores, "mmlongdoc", "8K", of=metric))
        assert (made["best"], made["majority"]) == pytest.approx((4 / 5, 3 / 5))
        assert made["best"] == pytest.approx(mean(whole.samples, "best of 4", "8K", of=metric))
        assert made["majority"] == pytest.approx(mean(whole.samples, "majority of 4", "8K", of=metric))
    totals = {row.name: each.mean for (_, row, _), each in whole.totals.cells.items()}
    assert {name: made[name] for name in totals} == pytest.approx(totals)
    assert made["accuracy"] == pytest.approx(made["score"])
    fewer = "examples have fewer samples than others of their file"
    assert f"4 of 5 {fewer}; first {DOCS}: mmlongdoc_1 has 3 of 4" in json.loads(found.out)["notes"]
    assert f"m, doc_qa: 4 of 5 {fewer}" in whole.notes


def test_samples_may_be_in_any_order_and_begin_anywhere(public: Path, golds: list[Line], tmp_path: Path) -> None:
    first, *others = docs(golds)
    lines = [*others, first | {"sample": 7}, first | {"sample": 2, "prediction": WRONG}]
    run(public, lines, tmp_path)
    assert [(each.sample, each.score) for each in scored(tmp_path)[:2]] == [(2, 0.0), (7, 1.0)]


def test_a_line_without_a_sample_is_sample_0_and_gives_the_lines_of_before(
    public: Path, golds: list[Line], tmp_path: Path
) -> None:
    lines = docs(golds)
    plain = run(public, lines, tmp_path).out
    written = (tmp_path / "scores/m.default.jsonl").read_bytes()
    assert b"sample" not in written
    assert b'answer":' not in written
    assert run(public, [each | {"sample": 0} for each in lines], tmp_path).out == plain
    assert (tmp_path / "scores/m.default.jsonl").read_bytes() == written


def test_a_second_line_for_a_sample_is_a_duplicate(public: Path, golds: list[Line], tmp_path: Path) -> None:
    first, *others = docs(golds)
    lines = [first, *sampled(first, WRONG, None), *others, first | {"sample": 1, "prediction": WRONG}]
    found = json.loads(run(public, lines, tmp_path, "--json").out)["problems"]["duplicate"]
    assert found["count"] == 2
    assert found["first"] == [
        f"m.jsonl, line 2: {DOCS}: mmlongdoc_0",
        f"m.jsonl, line {len(lines)}: {DOCS}: mmlongdoc_0, sample 1",
    ]
    assert [each.score for each in scored(tmp_path)[:2]] == [1.0, 1.0]


@pytest.mark.parametrize("sample", [-1, MAX_SAMPLE + 1, 10**400, True, False, 1.0, "1", [0], {}])
def test_a_sample_that_is_no_number_is_a_problem_of_its_line(
    sample: object, public: Path, golds: list[Line], tmp_path: Path
) -> None:
    first, *others = docs(golds)
    problems = json.loads(run(public, [first | {"sample": sample}, *others], tmp_path, "--json").out)["problems"]
    (said,) = problems["mistyped-field"]["first"]
    assert said == f"m.jsonl, line 1: sample is {sample!r:.80}, expected a whole number from 0 to 999,999"
    assert problems["absent"]["count"] == 1


@pytest.mark.parametrize("sample", [-1, MAX_SAMPLE + 1, 10**30, "x", 1.5])
def test_a_score_line_with_such_a_sample_is_refused(sample: object, tmp_path: Path) -> None:
    with pytest.raises(ReleaseError, match=r"m\.default\.jsonl, line 1: sample"):
        reported(tmp_path, [line(1, 1.0, sample=sample)])


def test_an_example_is_skipped_only_if_it_has_no_answer(public: Path, golds: list[Line], tmp_path: Path) -> None:
    first, second, *others = docs(golds)
    skip = {"prediction": None, "skipped": "context-length"}
    partly = [*sampled(first, None, WRONG), first | skip | {"sample": 2}, *sampled(second, None, None), *others]
    found = run(public, partly, tmp_path, "--json")
    assert (cells(found)["score"], cells(found)["skipped"]) == (pytest.approx(0.9), 0)
    assert json.loads(found.out)["skipped"] == {}
    whole = [*(first | skip | {"sample": n} for n in range(3)), *sampled(second, None, None), *others]
    found = run(public, whole, tmp_path, "--json")
    made = cells(found)
    assert (made["score"], made["best"], made["majority"], made["skipped"]) == (None, None, None, 1)
    assert made["score_of_others"] == 1.0
    assert json.loads(found.out)["skipped"] == {"context-length": 1}
    assert [each.status for each in scored(tmp_path) if each.id == "mmlongdoc_0"] == ["skipped"]


def test_an_absent_example_scores_0_once(public: Path, golds: list[Line], tmp_path: Path) -> None:
    _, second, *others = docs(golds)
    found = run(public, [*sampled(second, None, WRONG, WRONG), *others], tmp_path, "--json")
    assert (cells(found)["absent"], cells(found)["examples"]) == (1, 5)
    assert cells(found)["score"] == pytest.approx((1 / 3 + 3) / 5)
    assert cells(found)["best"] == pytest.approx(4 / 5)
    assert (
        "m, doc_qa: 3 of 4 examples have fewer samples than others of their file" in report(tmp_path / "scores").notes
    )


def test_rows_that_only_their_order_tells_apart_take_each_sample_in_order(public: Path, tmp_path: Path) -> None:
    of: Line = {"file": COUNTS, "id": "mm-niah-1"}
    lines = [of | {"sample": n, "prediction": said} for said in ("3", "4", "5") for n in (0, 1)]
    lines[1]["prediction"] = "0"
    run(public, lines, tmp_path)
    assert [(each.permutation, each.sample, each.score) for each in scored(tmp_path)] == [
        (0, 0, 1.0),
        (0, 1, 0.0),
        *((turn, n, 1.0) for turn in (1, 2) for n in (0, 1)),
    ]


def test_samples_share_the_turn_of_the_public_codes_refusals(public: Path, golds: list[Line], tmp_path: Path) -> None:
    vh = [each | {"prediction": "I cannot tell"} for each in golds if each["file"] == VH]
    run(public, [line | {"sample": n} for line in vh for n in (0, 1)], tmp_path, "-q")
    scores = [each.score for each in scored(tmp_path)]
    in_turn = [a == b for a, b in zip((0, 1, 1, 0, 0, 1), (1, 1, 1, 0, 0, 0), strict=True)]
    assert scores == [score for score in in_turn for _ in (0, 1)]


class Flaky(Metric):
    """Fails for the output "fail"."""

    name: ClassVar[str] = "doc_qa"

    def score(self, asked: ScoringInput) -> Score:
        if asked.prediction == "fail":
            return Score(None, failure="the judge was away")
        return Score(float(asked.prediction == "yes"), {"said": len(asked.prediction)})


def test_failed_samples_are_left_out_of_their_example_and_counted(
    public: Path, golds: list[Line], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "metric_type", lambda name: Flaky)
    first, second, *others = docs(golds)
    lines = sampled(first, "fail", "yes", "no") + sampled(second, "fail", "fail", "fail")
    lines += [each for other in others for each in sampled(other, "yes", "yes", "yes")]
    found = run(public, lines, tmp_path, "--json")
    made = cells(found)
    assert found.code == 1
    assert (made["score"], made["failed"], made["failed_samples"]) == (pytest.approx(3.5 / 4), 1, 1)
    said = run(public, lines, tmp_path).err
    assert f"failed: doc_qa: 1 examples have no score, first {DOCS}: mmlongdoc_0: the judge was away\n" in said
    assert "failed: doc_qa: 1 samples of examples with other samples have no score, first" in said
    whole = report(tmp_path / "scores")
    of = cell(whole.scores, "mmlongdoc", "8K")
    assert of is not None
    assert of.mean == pytest.approx(3.5 / 4)
    assert (of.counts.examples, of.counts.failed) == (5, 1)
    assert "1 samples of examples with other samples have failed" in " ".join(whole.notes)
    assert mean(whole.details, "said", "8K") == pytest.approx((2.5 + 3 * 3) / 4)


@pytest.mark.parametrize(
    ("answers", "score"),
    [
        ("ab", 0),  # as frequent as the other: the first one
        ("abb", 1),
        ("aabb", 0),
        ("baab", 1),
        ("abcb", 1),
        ("b", 1),
    ],
)
def test_the_majority_is_the_most_frequent_answer_and_of_several_the_first(answers: str, score: float) -> None:
    assert majority_score([Sampled(answer, float(answer == "b")) for answer in answers]) == score


def test_figures_of_runs_give_each_example_the_same_weight() -> None:
    def figures(run: Sequence[float]) -> dict[str, float]:
        return {"mean": math.fsum(run) / len(run), **({"high": 1.0} if max(run) == 1 else {})}

    found = mean_figures(figures, [[0.0, 0.5, 1.0], [0.25, 0.75], [1.0]])
    assert found == {"mean": pytest.approx((0.5 + 0.5 + 1) / 3), "high": 1.0}
    assert mean_figures(figures, []) == {}


@pytest.mark.parametrize(
    ("metric", "fields", "same", "other"),
    [
        ("sub_em", {}, ("The Peru.", "answer: peru"), "Chile"),
        ("binary_acc", {}, ("Yes, there is", "I say yes"), "No"),
        ("mc_acc", {}, ("Answer: (C)", "C"), "D"),
        ("cls_acc", {}, ("label: 3", "I think 3"), "label: 4"),
        ("soft_acc", {}, ("[1, 2]", "3"), "[1, 1]"),
        ("soft_acc", {}, ("x", "0"), "9" * 4300 + " " + "9" * 4300),
        ("doc_qa", {"answer_format": "String"}, ("Tern  Rock", "the tern rock"), "Rock"),
        ("anls", {}, ("Tern  Rock", "so. Answer: tern rock"), "Rock"),
        ("mmlongbench-doc", {"answer_format": "Integer"}, ("The answer is 12.", "12"), "13"),
        ("mm-niah-count", {}, ("[0, 2]", "Answer: [0,2]"), "[2, 0]"),
        ("smudge", {}, ("Tern  Rock", " tern rock"), "Rock"),
    ],
)
def test_answers_are_compared_as_the_metric_reads_them(
    metric: str, fields: Line, same: tuple[str, str], other: str, tmp_path: Path
) -> None:
    made = metric_type(metric)(Settings(documents=tmp_path))
    one, two, three = (
        made.compared_answer(ScoringInput("f", "d", "1", "x", said, **fields)) for said in (*same, other)
    )
    assert one == two != three


def example(id: object, *scores: float | None, answers: str = "", **fields: Any) -> list[Line]:
    """The score lines of the samples of an example."""
    said = answers or "abcdefgh"
    return [line(id, score, sample=n, answer=said[n], **fields) for n, score in enumerate(scores)]


def test_samples_do_not_make_an_interval_narrower(tmp_path: Path) -> None:
    single = [line(n, float(n % 3 == 0)) for n in range(30)]
    many = [{**each, "sample": n, "answer": "a"} for each in single for n in range(8)]
    one = cell(reported(tmp_path / "a", single).scores, "docs", "8K")
    eight = cell(reported(tmp_path / "b", many).scores, "docs", "8K")
    assert one == eight
    assert one is not None
    assert (one.clusters, one.counts.examples) == (30, 30)


def test_samples_of_few_examples_have_no_interval(tmp_path: Path) -> None:
    lines = [each for n in range(4) for each in example(n, *[float(n % 2)] * 8)]
    found = cell(reported(tmp_path, lines).scores, "docs", "8K")
    assert found is not None
    assert (found.mean, found.low, found.clusters, found.has_few_clusters) == (0.5, None, 4, True)


def test_an_interval_of_means_over_samples_is_that_of_the_means(tmp_path: Path) -> None:
    scores = [(0.0, 1.0), (1.0, 1.0), (0.0, 0.0), (0.0, 1.0), (1.0, 1.0), (0.5, 0.25)]
    lines = [each for n, both in enumerate(scores) for each in example(n, *both)]
    means = [line(n, sum(both) / 2) for n, both in enumerate(scores)]
    one = cell(reported(tmp_path / "a", lines).scores, "docs", "8K")
    assert one == cell(reported(tmp_path / "b", means).scores, "docs", "8K")


def test_the_order_of_files_and_lines_changes_nothing(tmp_path: Path) -> None:
    about: dict[str, Any] = {"facets": {"kind": ["x"]}, "depth": 0.5, "details": {"recall": 0.1}}
    lines = [each for n in range(7) for each in example(n, 0.1, 0.7, 0.2 * (n % 5), None, **about)]
    for number, each in enumerate(lines):
        each["details"] = {"recall": number / 7}
    one = reported(tmp_path / "a", lines).summary()
    assert reported(tmp_path / "b", lines[::-1]).summary() == one


def test_models_with_and_without_samples_are_compared_over_examples(tmp_path: Path) -> None:
    lines = [each for n in range(6) for each in example(n, 0.0, 1.0, 1.0, answers="abb", model="many")]
    lines += [line(n, 0.5, model="one") for n in range(6)]
    found = reported(tmp_path, lines)
    assert found.lines == 12
    assert mean(found.scores, "docs", "8K", "many") == pytest.approx(2 / 3)
    assert cell(found.samples, "best of 3", "8K", "one") is None
    best = cell(found.samples, "best of 3", "8K", "many")
    assert best is not None
    assert (best.mean, best.low, best.high, best.counts.examples) == (1.0, 1.0, 1.0, 6)
    assert mean(found.samples, "majority of 3", "8K", "many") == 1.0
    assert {row.of for row in found.samples.rows} == {"docs"}
    assert [each["row"] for each in found.summary()["samples"]["cells"]] == ["best of 3", "majority of 3"]
    html = page(found)
    assert "Several samples" in html
    assert "majority of 3" in html
    printed = command("report", tmp_path).out
    assert "several samples, unknown" in printed
    assert "docs majority of 3" in printed


def test_without_several_samples_a_report_does_not_speak_of_them(tmp_path: Path) -> None:
    found = reported(tmp_path, [line(1, 1.0), line(2, 0.0)])
    assert found.samples.rows == ()
    assert "samples" not in page(found).replace("resamples", "")
    assert "samples" not in command("report", tmp_path).out.replace("resamples", "")


def test_samples_of_skipped_and_absent_examples_in_a_report(tmp_path: Path) -> None:
    lines = [*example(1, 1.0, 0.0), absent(2), *example(3, 1.0, 1.0)]
    found = cell(reported(tmp_path / "a", lines).scores, "docs", "8K")
    assert found is not None
    assert (found.mean, found.counts.examples, found.counts.absent) == (0.5, 3, 1)
    held = cell(reported(tmp_path / "b", [*lines, skipped(4)]).samples, "best of 2", "8K")
    assert held is not None
    assert held.is_inapplicable


def test_a_sample_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    lines = [*example(1, 1.0, 0.0), line(1, 1.0, sample=1)]
    with pytest.raises(ReleaseError, match=r"id '1', sample 1 is scored twice, in m\.default\.jsonl"):
        reported(tmp_path, lines)


def test_alpha_is_calibrated_over_means_of_samples(tmp_path: Path) -> None:
    def made(match: Sequence[float], id: int) -> list[Line]:
        details = [{"match": each, "grounding": 0.5} for each in match]
        return [{**line(id, 0.5, sample=n), "details": each} for n, each in enumerate(details)]

    given = [{"file": "docs_K8.jsonl", "id": f"{n}", "score": score} for n, score in enumerate((0.2, 0.8, 0.5))]
    path = tmp_path / "given.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in given), "utf-8")
    found = []
    for name, pairs in (("a", [(0.0, 0.4), (1.0, 0.6), (0.5,)]), ("b", [(0.2,), (0.8,), (0.5,)])):
        folder = tmp_path / name
        reported(folder, [each for n, match in enumerate(pairs) for each in made(match, n)])
        found.append(calibration(folder, path).rows)
    assert [row.ece for row in found[0]] == pytest.approx([row.ece for row in found[1]])
    assert len(found[0]) == 21
