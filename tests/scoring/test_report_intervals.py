"""The bootstrap: properties of its intervals, which are the same on every machine."""

import math
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from score_lines import Line, cell, line, mean, page, reported

from mmlongbench.cli.report import report as command
from mmlongbench.draws import Draws
from mmlongbench.scoring.report import report
from mmlongbench.scoring.report.columns import Floats
from mmlongbench.scoring.report.estimates import Estimate
from mmlongbench.scoring.report.reading import Reading
from mmlongbench.scoring.report.resampling import RESAMPLES, drawn_means
from mmlongbench.scoring.report.sorting import to_columns
from mmlongbench.scoring.scores import ScoreLine

pytestmark = pytest.mark.slow


def drawn(n: int, share: float = 0.4) -> list[Line]:
    draws = Draws(("intervals",))
    return [line(number, float(draws.fraction(f"{number}") < share)) for number in range(n)]


def estimate(folder: Path, lines: list[Line]) -> Estimate:
    found = cell(reported(folder, lines).scores, "docs", "8K")
    assert found is not None
    return found


def ends(found: Estimate) -> tuple[float, float]:
    assert found.low is not None
    assert found.high is not None
    return found.low, found.high


def means_of(lines: list[Line]) -> Floats:
    reading = Reading(lambda metric: False)
    for each in lines:
        reading.add(ScoreLine.model_validate(each), "a.jsonl")
    scores = to_columns(reading)
    return drawn_means(scores.lines, ["model"])[:, 0]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_the_draws_are_around_the_mean_and_within_the_scores(scores: list[float]) -> None:
    found = means_of([line(n, score) for n, score in enumerate(scores)])
    assert len(found) == RESAMPLES
    assert min(scores) - 1e-9 <= found.min() <= found.max() <= max(scores) + 1e-9
    spread = float(np.std(scores)) / math.sqrt(len(scores))
    assert abs(found.mean() - sum(scores) / len(scores)) <= 6 * spread / math.sqrt(RESAMPLES) + 1e-9


def test_the_interval_is_as_wide_as_the_standard_error_says_and_shrinks_with_more_questions(tmp_path: Path) -> None:
    widths = []
    for n in (25, 100, 400):
        found = estimate(tmp_path, drawn(n))
        low, high = ends(found)
        assert found.mean is not None
        assert low < found.mean < high
        widths.append(high - low)
        assert high - low == pytest.approx(2 * 1.96 * math.sqrt(found.mean * (1 - found.mean) / n), rel=0.12)
    assert widths == sorted(widths, reverse=True)


def test_equal_scores_leave_no_width_and_one_question_gives_no_interval(tmp_path: Path) -> None:
    assert ends(estimate(tmp_path, [line(n, 0.7) for n in range(9)])) == pytest.approx((0.7, 0.7), abs=1e-9)
    alone = estimate(tmp_path, [line(1, 0.7, depth=0.0), line(1, 0.2, depth=1.0)])
    assert (alone.low, alone.high) == (None, None)


def test_the_placements_of_a_question_are_drawn_together(tmp_path: Path) -> None:
    opposite = [line(n, float((n + at) % 2), depth=float(at)) for n in range(20) for at in (0, 1)]
    assert ends(estimate(tmp_path, opposite)) == (0.5, 0.5)


def test_lengths_with_the_same_questions_are_drawn_together_and_other_datasets_apart(tmp_path: Path) -> None:
    same = [each | {"length": k * 1024, "file": f"docs_K{k}.jsonl"} for k in (8, 16, 32) for each in drawn(40)]
    grid = reported(tmp_path, same).scores
    one, over = cell(grid, "docs", "8K"), cell(grid, "docs", "mean")
    assert one is not None
    assert over is not None
    assert ends(over) == pytest.approx(ends(one))
    apart = [each | {"dataset": name, "file": name} for name in ("a", "b", "c") for each in drawn(40)]
    average = cell(reported(tmp_path, apart).averages, "Docs", "8K")
    assert average is not None
    assert ends(average)[1] - ends(average)[0] < 0.75 * (ends(one)[1] - ends(one)[0])


def test_a_failed_score_is_in_no_draw(tmp_path: Path) -> None:
    with_failed = [*(line(n, 1.0) for n in range(5)), *(line(n, None) for n in range(5, 50))]
    found = estimate(tmp_path, with_failed)
    assert (found.mean, *ends(found)) == (1.0, 1.0, 1.0)


def test_the_draws_are_the_same_everywhere(tmp_path: Path) -> None:
    draws = Draws(("golden",))
    low, high = ends(estimate(tmp_path, [line(n, draws.fraction(f"{n}")) for n in range(50)]))
    assert (round(low, 12), round(high, 12)) == (0.430346934161, 0.592945138228)


def test_an_average_holds_its_mean(tmp_path: Path) -> None:
    lines = [each | {"dataset": name, "file": name} for name in ("a", "b") for each in drawn(30)]
    grid = reported(tmp_path, lines).averages
    found = cell(grid, "Docs", "8K")
    assert found is not None
    low, high = ends(found)
    assert low < mean(grid, "Docs", "8K") < high


@pytest.mark.parametrize("clusters", [1, 4, 5])
def test_fewer_than_five_clusters_give_no_interval_and_a_dash_in_its_place(clusters: int, tmp_path: Path) -> None:
    lines = [line(n, n / 40, cluster=f"{n % clusters}") for n in range(40)]
    found = estimate(tmp_path, lines)
    has_interval = clusters >= 5
    assert (found.clusters, found.low is not None, found.has_few_clusters) == (clusters, has_interval, not has_interval)
    printed = CliRunner().invoke(command, [str(tmp_path)], catch_exceptions=False).output
    assert ("48.8 ±–" in printed) == (not has_interval)
    assert "±–: no interval, since a score, or a part of an average, has fewer than 5 clusters\n" in printed
    html = page(report(tmp_path))
    assert ("48.8<small>–</small>" in html) == (not has_interval)
    assert "has fewer than 5 clusters" in " ".join(html.split())


def test_an_average_has_an_interval_only_if_each_of_its_parts_has_enough_clusters(tmp_path: Path) -> None:
    many = [each | {"dataset": "many", "file": "many"} for each in drawn(100)]
    few = [line(n, float(n % 2), "few", cluster="the only one") for n in range(6)]
    average = cell(reported(tmp_path, [*many, *few]).averages, "Docs", "8K")
    assert average is not None
    assert (average.low, average.high, average.has_few_clusters, average.clusters) == (None, None, True, 100)
    both = reported(tmp_path, [each | {"depth": depth} for depth in (0.0, 0.5, 1.0) for each in [*many, *few]])
    lost = {grid.title: cell(grid, "middle − ends", "all") for grid in both.depths}
    assert {title: found and found.low is not None for title, found in lost.items()} == {"many": True, "few": False}
