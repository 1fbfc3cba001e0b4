"""Volatility and robustness over subsets of the questions, by hand."""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from statistics import stdev

import pytest
from click.testing import CliRunner
from score_lines import Line, line, page, reported, write

from mmlongbench.cli.main import cli
from mmlongbench.scoring.report.sorting import read
from mmlongbench.scoring.report.variants import vectors
from mmlongbench.scoring.report.volatility import MIN_QUESTIONS, Volatility, volatilities

TENTHS = {"a": (9, 5, 1), "b": (6, 6, 6), "c": (3, 7, 2)}
"""Models, and their scores of the three groups."""


def asked(scores: Mapping[str, tuple[int, ...]] = TENTHS, per_group: int = MIN_QUESTIONS, k: int = 8) -> list[Line]:
    """Questions of several groups, each group scored alike."""
    return [
        line(f"{group}-{n}", tenths / 10, k=k, model=model, facets={"format": [f"format {group}"]})
        for model, groups in scores.items()
        for group, tenths in enumerate(groups)
        for n in range(per_group)
    ]


def moved(folder: Path, lines: list[Line]) -> tuple[Volatility, ...]:
    scores = read(write(folder, lines))
    return volatilities(scores, vectors(scores))


def by_model(found: tuple[Volatility, ...]) -> dict[str, Volatility]:
    assert len({each.model for each in found}) == len(found)
    return {each.model: each for each in found}


def test_volatility_is_the_standard_deviation_times_the_root_of_the_number_of_subsets(tmp_path: Path) -> None:
    found = by_model(moved(tmp_path, asked()))
    ranks = {"a": (1, 3, 3), "b": (2, 2, 1), "c": (3, 1, 2)}
    for model, places in ranks.items():
        each = found[model]
        assert (each.dataset, each.metric, each.subsets) == ("docs", "em", 3)
        assert each.score == pytest.approx(stdev(tenths / 10 for tenths in TENTHS[model]) * math.sqrt(3))
        assert each.rank == pytest.approx(stdev(places) * math.sqrt(3))
        assert each.median_rank == sorted(places)[1]
        assert each.robustness == pytest.approx(stdev(places) * math.sqrt(3) / sorted(places)[1])
    assert found["a"].score == pytest.approx(0.4 * math.sqrt(3))  # 0.9, 0.5, 0.1: a standard deviation of 0.4
    assert found["b"].score == pytest.approx(0)


def test_equal_models_share_their_ranks_and_one_that_keeps_its_rank_is_wholly_robust(tmp_path: Path) -> None:
    found = by_model(moved(tmp_path, asked({"a": (9, 9), "b": (5, 5), "c": (5, 1)})))
    assert (found["a"].rank, found["a"].robustness, found["a"].median_rank) == (0, 0, 1)
    assert found["b"].median_rank == 2.25  # 2.5 beside c, then 2
    assert found["c"].rank == pytest.approx(stdev([2.5, 3]) * math.sqrt(2))


def test_models_with_the_same_scores_in_another_order_share_their_ranks(tmp_path: Path) -> None:
    tenths = {"a": (1, 2, 3), "b": (3, 2, 1)}
    lines = [
        line(f"{group}-{n}", each[n % 3] / 10, model=model, facets={"format": [group]})
        for model, each in tenths.items()
        for group in "xyz"
        for n in range(12 if group == "x" else 15)
    ]
    found = by_model(moved(tmp_path, lines))
    assert {(each.rank, each.median_rank) for each in found.values()} == {(0, 1.5)}


def test_groups_of_few_questions_and_of_every_question_are_no_subsets(tmp_path: Path) -> None:
    lines = asked()
    for each in lines:
        each["facets"] = {**each["facets"], "kind": ["report"]}  # all of them
    few = [line(f"few-{n}", 1.0, model=model, facets={"format": ["rare"]}) for model in "abc" for n in range(9)]
    found = by_model(moved(tmp_path, [*lines, *few]))
    assert {each.subsets for each in found.values()} == {4}  # `kind` has all but nine now
    found = by_model(moved(tmp_path / "b", lines))
    assert {each.subsets for each in found.values()} == {3}


def test_a_question_at_several_lengths_is_one_and_each_file_counts_once(tmp_path: Path) -> None:
    short = asked(per_group=MIN_QUESTIONS - 1)
    assert not moved(tmp_path / "short", [*short, *asked(per_group=MIN_QUESTIONS - 1, k=16)])
    lines = [*asked(), *asked({"a": (1, 5, 9), "b": (6, 6, 6), "c": (3, 7, 2)}, k=16)]
    found = by_model(moved(tmp_path / "both", lines))
    assert found["a"].score == pytest.approx(0)  # the mean of both files is 0.5 in each group


def test_only_examples_that_every_model_has_a_score_for_count(tmp_path: Path) -> None:
    lines = asked(per_group=MIN_QUESTIONS + 2)
    for each in lines:
        if each["model"] == "b" and each["id"] in ("0-0", "0-1"):
            each |= {"status": "failed", "score": None}
        if each["model"] == "a" and each["id"] in ("0-0", "0-1"):
            each |= {"score": 0.0}
    found = by_model(moved(tmp_path, lines))
    assert found["a"].score == pytest.approx(0.4 * math.sqrt(3))


@pytest.mark.parametrize("scores", [{"a": (9, 5, 1)}, {"a": (9,), "b": (5,)}], ids=["one model", "one group"])
def test_of_one_model_or_one_group_there_is_none(scores: Mapping[str, tuple[int, ...]], tmp_path: Path) -> None:
    assert moved(tmp_path, asked(scores)) == ()


def test_each_metric_and_each_value_of_a_parameter_has_its_own(tmp_path: Path) -> None:
    lines = asked()
    for each in lines:
        each["details"] = {"alpha_0": each["score"], "alpha_1": 0.5}
    found = moved(tmp_path, lines)
    assert {each.metric for each in found} == {"em alpha_0", "em alpha_1"}
    assert {each.score for each in found if each.metric == "em alpha_1"} == {0}


def test_it_is_in_the_table_the_page_and_the_json(tmp_path: Path) -> None:
    folder = write(tmp_path / "scores", asked())
    shown = CliRunner().invoke(cli, ["report", str(folder)])
    assert "volatility over T groups of the questions" in shown.output
    row = next(found for found in shown.output.splitlines() if found.split()[:2] == ["a", "3"])
    assert row.split() == ["a", "3", "69.3", "2.00", "3", "0.67"]
    asked_json = CliRunner().invoke(cli, ["report", str(folder), "--json", "--html", str(tmp_path / "page.html")])
    (first, *_) = json.loads(asked_json.output)["volatility"]
    assert (first["model"], first["subsets"]) == ("a", 3)
    assert first["robustness"] == pytest.approx(2 / 3)
    assert "Between subsets of the questions" in (tmp_path / "page.html").read_text("utf-8")


def test_a_page_without_several_models_has_no_such_section(tmp_path: Path) -> None:
    found = reported(tmp_path, asked({"a": (9, 5, 1)}))
    assert found.volatilities == ()
    assert "Between subsets of the questions" not in page(found)
