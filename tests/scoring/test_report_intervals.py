"""Intervals: they have the coverage that they claim, resample clusters of questions, and are the same everywhere."""

import hashlib
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from score_lines import Line, cell, known, line, mean, page, printed, reported

from mmlongbench.draws import Draws

WORLDS, DOCUMENTS, QUESTIONS = 100, 50, 7


def drawn(n: int, share: float = 0.4) -> list[Line]:
    draws = Draws(("intervals",))
    return [line(number, float(draws.fraction(f"{number}") < share)) for number in range(n)]


def estimate(folder: Path, lines: list[Line]) -> Line:
    return known(reported(folder, lines)["scores"], "docs", "8K")


def width(found: Line) -> float:
    low, high = found["interval"]
    return float(high - low)


def numbers(name: str, *shape: int) -> Any:
    """Numbers from 0 to 1, drawn by a hash."""
    some = hashlib.shake_128(name.encode()).digest(4 * math.prod(shape))
    return (np.frombuffer(some, "<u4") / 2**32).reshape(shape)


def coverage(folder: Path, share_of_documents: float, *, has_clusters: bool) -> float:
    """How often the interval of a mean holds the true one, 1/2, over drawn worlds.

    In each world a document is easy or hard, by as much as `share_of_documents` says: the variance that its questions
    have in common over the whole variance.
    """
    spread = math.sqrt(share_of_documents) / 2
    is_easy = numbers("documents", WORLDS, DOCUMENTS) < 0.5
    chances = np.where(is_easy, 0.5 + spread, 0.5 - spread)
    right = numbers("questions", WORLDS, DOCUMENTS, QUESTIONS) < chances[:, :, None]
    lines = []
    for world, document, question in np.ndindex(right.shape):
        about: Line = {"cluster": f"{document}"} if has_clusters else {}
        score = float(right[world, document, question])
        lines.append(line(f"{document}-{question}", score, model=f"{world}", **about))
    ends = [each["interval"] for each in reported(folder, lines)["scores"]["cells"]]
    assert len(ends) == WORLDS
    return float(sum(low <= 0.5 <= high for low, high in ends) / WORLDS)


@pytest.mark.rare
@pytest.mark.parametrize(("share", "without"), [(0.15, 0.88), (0.5, 0.75)])
def test_intervals_cover_what_they_claim_only_where_questions_about_a_document_are_drawn_together(
    share: float, without: float, tmp_path: Path
) -> None:
    assert 0.91 <= coverage(tmp_path, share, has_clusters=True) <= 0.98
    assert coverage(tmp_path, share, has_clusters=False) < without


@pytest.mark.rare
def test_the_mean_over_lengths_that_lack_some_documents_has_an_interval_that_covers_what_it_claims(
    tmp_path: Path,
) -> None:
    """40 documents have 5 questions each, asked at 5 lengths; with gaps each length lacks another document."""
    repeats, lengths, documents, questions = 40, 5, 40, 5
    chances = np.where(numbers("documents at lengths", repeats, documents) < 0.5, 0.8, 0.2)[:, None, :, None]
    right = numbers("questions at lengths", repeats, lengths, documents, questions) < chances
    widths = []
    for has_gaps in (True, False):
        lines = []
        for world, length, document, question in np.ndindex(right.shape):
            if not has_gaps or document != 7 * length:
                score, about = float(right[world, length, document, question]), {"cluster": f"{document}"}
                lines.append(line(f"{document}-{question}", score, k=8 << length, model=f"{world}", **about))
        cells = reported(tmp_path, lines)["scores"]["cells"]
        ends = [each["interval"] for each in cells if each["column"] == "mean"]
        assert len(ends) == repeats
        widths.append(sum(high - low for low, high in ends) / repeats)
        assert sum(low <= 0.5 <= high for low, high in ends) / repeats >= 0.9
    assert widths[0] == pytest.approx(widths[1], rel=0.15)


def test_the_interval_is_as_wide_as_the_standard_error_says_and_shrinks_with_more_questions(tmp_path: Path) -> None:
    widths = []
    for n in (25, 100, 400):
        found = estimate(tmp_path, drawn(n))
        low, high = found["interval"]
        assert 0 <= low < found["mean"] < high <= 1
        widths.append(high - low)
        assert high - low == pytest.approx(2 * 1.96 * math.sqrt(found["mean"] * (1 - found["mean"]) / n), rel=0.12)
    assert widths == sorted(widths, reverse=True)


def test_the_draws_are_the_same_everywhere(tmp_path: Path) -> None:
    draws = Draws(("golden",))
    low, high = estimate(tmp_path, [line(n, draws.fraction(f"{n}")) for n in range(50)])["interval"]
    assert (round(low, 12), round(high, 12)) == (0.430346934161, 0.592945138228)


def test_equal_scores_leave_no_width_and_one_question_gives_no_interval(tmp_path: Path) -> None:
    found = estimate(tmp_path, [line(n, 0.7) for n in range(9)])["interval"]
    assert found == pytest.approx([0.7, 0.7], abs=1e-9)
    assert estimate(tmp_path, [line(1, 0.7, depth=0.0), line(1, 0.2, depth=1.0)])["interval"] is None


def test_a_failed_score_is_in_no_draw(tmp_path: Path) -> None:
    found = estimate(tmp_path, [*(line(n, 1.0) for n in range(5)), *(line(n, None) for n in range(5, 50))])
    assert (found["mean"], found["interval"]) == (1.0, [1.0, 1.0])


def test_the_placements_of_a_question_and_the_questions_of_a_cluster_are_drawn_together(tmp_path: Path) -> None:
    """Every question, or document, is half right and half wrong, so that however they are drawn the mean is 1/2."""
    placed = [line(n, float((n + at) % 2), depth=float(at)) for n in range(20) for at in (0, 1)]
    assert estimate(tmp_path, placed)["interval"] == [0.5, 0.5]
    clustered = [
        line(f"{n}-{at}", float(at), cluster=f"{n}", depth=depth)
        for n in range(20)
        for at in (0, 1)
        for depth in (0.0, 1.0)
    ]
    found = estimate(tmp_path, clustered)
    assert (found["interval"], found["clusters"], found["examples"]) == ([0.5, 0.5], 20, 80)


def test_lengths_with_the_same_questions_or_documents_are_drawn_together_and_datasets_apart(tmp_path: Path) -> None:
    same = [each | {"length": k * 1024, "file": f"docs_K{k}.jsonl"} for k in (8, 16, 32) for each in drawn(40)]
    grid = reported(tmp_path, same)["scores"]
    one = known(grid, "docs", "8K")
    assert known(grid, "docs", "mean")["interval"] == pytest.approx(one["interval"])
    about = [line(f"{k} {n}", n / 20, k=k, cluster=f"{n}") for k in (8, 16) for n in range(20)]
    grid = reported(tmp_path, about)["scores"]
    assert known(grid, "docs", "mean")["interval"] == known(grid, "docs", "8K")["interval"]
    assert known(grid, "docs", "mean")["clusters"] == known(grid, "docs", "8K")["clusters"] == 20
    apart = [each | {"dataset": name, "file": name} for name in ("a", "b", "c") for each in drawn(40)]
    grid = reported(tmp_path, apart)["averages"]
    average = known(grid, "Docs", "8K")
    assert average["interval"][0] < mean(grid, "Docs", "8K") < average["interval"][1]
    assert width(average) < 0.75 * width(one)


def test_all_lengths_together_are_drawn_alike_where_one_lacks_a_document(tmp_path: Path) -> None:
    lines = [
        line(f"{n}", n / 39, k=k, cluster=f"{n}", facets={"kind": ["x"]})
        for k in (8, 16, 32, 64, 128)
        for n in range(40)
        if n != k % 39
    ]
    (grid,) = reported(tmp_path, lines)["facets"]
    assert width(known(grid, "x", "all")) == pytest.approx(width(estimate(tmp_path, lines[:39])), rel=0.15)


def test_lines_without_a_cluster_take_it_from_those_of_the_same_question_or_are_their_own(tmp_path: Path) -> None:
    def about(number: int, model: str, k: int) -> Line:
        """Only the scores of one model at one length have clusters: three documents of two questions."""
        return {"cluster": f"doc {number // 2}"} if (model, k) == ("a", 8) and number < 6 else {}

    keys = [(n, model, k) for n in range(9) for model in "ab" for k in (8, 16)]
    lines = [line(n, n / 9, model=model, k=k, **about(n, model, k)) for n, model, k in keys]
    cells = reported(tmp_path, lines)["scores"]["cells"]
    assert {each["clusters"] for each in cells if each["column"] != "mean"} == {3 + 3}
    apart = [line(n, n / 12, cluster="3" if n > 6 else "") for n in range(12)]  # "3" is the id of a question, too
    assert estimate(tmp_path, apart)["clusters"] == 7 + 1


def test_questions_on_their_own_are_drawn_as_clusters_by_the_same_names(tmp_path: Path) -> None:
    found = [
        estimate(tmp_path, [line(f"{n:02}", n / 30, cluster=f"{n:02}" if has_clusters else "") for n in range(30)])
        for has_clusters in (True, False)
    ]
    assert found[0] == found[1]
    assert found[0]["interval"] is not None


@pytest.mark.parametrize("clusters", [1, 4, 5])
def test_fewer_than_five_clusters_give_no_interval_and_a_dash_in_its_place(clusters: int, tmp_path: Path) -> None:
    found = estimate(tmp_path, [line(n, n / 40, cluster=f"{n % clusters}") for n in range(40)])
    has_interval = clusters >= 5
    assert (found["clusters"], found["interval"] is not None) == (clusters, has_interval)
    text = printed(tmp_path)
    assert ("48.8 ±–" in text) == (not has_interval)
    assert "±–: no interval, since a score, or a part of an average, has fewer than 5 clusters\n" in text
    html = page(tmp_path)
    assert ("48.8<small>–</small>" in html) == (not has_interval)
    assert "has fewer than 5 clusters" in " ".join(html.split())


def test_an_average_has_an_interval_only_if_each_of_its_parts_has_enough_clusters(tmp_path: Path) -> None:
    many = [each | {"dataset": "many", "file": "many"} for each in drawn(100)]
    few = [line(n, float(n % 2), "few", cluster="the only one") for n in range(6)]
    average = known(reported(tmp_path, [*many, *few])["averages"], "Docs", "8K")
    assert (average["mean"] is None, average["interval"], average["clusters"]) == (False, None, 100)
    both = reported(tmp_path, [each | {"depth": depth} for depth in (0.0, 0.5, 1.0) for each in [*many, *few]])
    lost = {grid["title"]: cell(grid, "middle − ends", "all") for grid in both["depths"]}
    assert {title: bool(found and found["interval"]) for title, found in lost.items()} == {"many": True, "few": False}
