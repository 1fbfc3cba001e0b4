"""Intervals resample clusters: with several questions about a document, they have the coverage that they claim."""

import hashlib
import math
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from score_lines import cell, line, reported

from mmlongbench.errors import ReleaseError
from mmlongbench.scoring.report.averages import cells, dataset_grid
from mmlongbench.scoring.report.columns import Floats
from mmlongbench.scoring.report.estimates import samples
from mmlongbench.scoring.report.reading import Reading
from mmlongbench.scoring.report.sorting import to_columns
from mmlongbench.scoring.scores import ScoreLine

pytestmark = pytest.mark.slow

WORLDS, DOCUMENTS, QUESTIONS = 150, 50, 7


@lru_cache
def coverage(share_of_documents: float, *, has_clusters: bool) -> float:
    """How often the interval of a mean holds the true one, 1/2, over drawn worlds.

    In each world a document is easy or hard, by as much as `share_of_documents` says: the variance that its questions
    have in common over the whole variance.
    """
    spread = math.sqrt(share_of_documents) / 2
    is_easy = drawn("documents", WORLDS, DOCUMENTS) < 0.5
    chances = np.where(is_easy, 0.5 + spread, 0.5 - spread)
    right = drawn("questions", WORLDS, DOCUMENTS, QUESTIONS) < chances[:, :, None]
    reading = Reading(lambda metric: False)
    for world, document, question in np.ndindex(right.shape):
        about: dict[str, Any] = {"cluster": f"{document}"} if has_clusters else {}
        found = line(f"{document}-{question}", float(right[world, document, question]), model=f"{world}", **about)
        reading.add(ScoreLine.model_construct(**found), "a.jsonl")
    scores = to_columns(reading)
    ends = [each.estimate() for each in samples(scores.lines, ["model"]).values()]
    assert len(ends) == WORLDS
    return sum(each.low <= 0.5 <= each.high for each in ends if each.low is not None and each.high is not None) / WORLDS


def drawn(name: str, *shape: int) -> Floats:
    """Numbers from 0 to 1, drawn by a hash."""
    some = hashlib.shake_128(name.encode()).digest(4 * math.prod(shape))
    return (np.frombuffer(some, "<u4") / 2**32).reshape(shape)


@pytest.mark.parametrize("share", [0.15, 0.5])
def test_intervals_over_clusters_cover_what_they_claim(share: float) -> None:
    assert 0.91 <= coverage(share, has_clusters=True) <= 0.98


def test_intervals_over_questions_are_too_narrow_where_questions_have_a_document_in_common() -> None:
    assert coverage(0.15, has_clusters=False) < 0.88
    assert coverage(0.5, has_clusters=False) < 0.75


def test_all_questions_of_a_cluster_are_drawn_together_at_all_their_placements(tmp_path: Path) -> None:
    """Every document has one right and one wrong question, so that however they are drawn the mean is one half."""
    opposite = [
        line(f"{n}-{at}", float(at), cluster=f"{n}", depth=depth)
        for n in range(20)
        for at in (0, 1)
        for depth in (0.0, 1.0)
    ]
    found = cell(reported(tmp_path, opposite).scores, "docs", "8K")
    assert found is not None
    assert (found.low, found.high, found.clusters, found.counts.examples) == (0.5, 0.5, 20, 80)


def test_lengths_with_other_questions_about_the_same_documents_are_drawn_together(tmp_path: Path) -> None:
    lines = [line(f"{k} {n}", n / 20, k=k, cluster=f"{n}") for k in (8, 16) for n in range(20)]
    grid = reported(tmp_path, lines).scores
    one, over = cell(grid, "docs", "8K"), cell(grid, "docs", "mean")
    assert one is not None
    assert over is not None
    assert (over.low, over.high) == (one.low, one.high)
    assert one.clusters == over.clusters == 20


def test_one_document_alone_gives_no_interval(tmp_path: Path) -> None:
    found = cell(reported(tmp_path, [line(n, n / 5, cluster="a") for n in range(5)]).scores, "docs", "8K")
    assert found is not None
    assert (found.low, found.high, found.clusters) == (None, None, 1)


def test_lines_without_a_cluster_take_it_from_those_of_the_same_question_or_are_their_own(tmp_path: Path) -> None:
    lines = [
        line(n, n / 9, model=model, k=k, **about(n, model, k)) for n in range(9) for model in "ab" for k in (8, 16)
    ]
    found = reported(tmp_path, lines)
    for model in "ab":
        for column in ("8K", "16K"):
            there = cell(found.scores, "docs", column, model)
            assert there is not None
            assert there.clusters == 3 + 3  # three documents of two questions; three questions without one


def about(number: int, model: str, k: int) -> dict[str, Any]:
    """Return the cluster of a line; only the scores of one model at one length have it."""
    return {"cluster": f"doc {number // 2}"} if (model, k) == ("a", 8) and number < 6 else {}


def test_a_question_about_two_things_is_of_two_releases(tmp_path: Path) -> None:
    with pytest.raises(ReleaseError, match=r"id '1' is about 'b', elsewhere about 'a': scores of several releases"):
        reported(tmp_path, [line(1, 0.5, cluster="a"), line(1, 0.5, k=16, cluster="b")])


def test_the_draws_of_questions_on_their_own_are_those_of_clusters_by_the_same_names() -> None:
    def draws(*, has_clusters: bool) -> Floats:
        reading = Reading(lambda metric: False)
        for n in range(30):
            about: dict[str, Any] = {"cluster": f"{n:02}"} if has_clusters else {}
            found = line(f"{n:02}", n / 30, **about)
            reading.add(ScoreLine.model_validate(found), "a.jsonl")
        scores = to_columns(reading)
        return samples(scores.lines, ["model"])["m"].draws

    assert np.array_equal(draws(has_clusters=True), draws(has_clusters=False))


LENGTHS = 5
REPEATS = 40


@lru_cache
def interval_of_the_mean(*, has_gaps: bool) -> tuple[float, float]:
    """Return how often the interval of a mean over lengths holds the true one, 1/2, and how wide it is on average.

    40 documents have 5 questions each, asked at 5 lengths. With gaps each length lacks another document.
    """
    documents, questions = 40, 5
    is_easy = drawn("documents at lengths", REPEATS, documents) < 0.5
    right = (
        drawn("questions at lengths", REPEATS, LENGTHS, documents, questions)
        < np.where(is_easy, 0.8, 0.2)[:, None, :, None]
    )
    reading = Reading(lambda metric: False)
    for world, length, document, question in np.ndindex(right.shape):
        if not has_gaps or document != 7 * length:
            score = float(right[world, length, document, question])
            about: dict[str, Any] = {"model": f"{world}", "k": 8 << length, "cluster": f"{document}"}
            reading.add(ScoreLine.model_construct(**line(f"{document}-{question}", score, **about)), "a.jsonl")
    scores = to_columns(reading)
    grid = dataset_grid(scores, cells(scores))
    ends = [cell(grid, "docs", "mean", model) for model in scores.models]
    found = [(each.low, each.high) for each in ends if each and each.low is not None and each.high is not None]
    assert len(found) == REPEATS
    return sum(low <= 0.5 <= high for low, high in found) / REPEATS, sum(high - low for low, high in found) / REPEATS


def test_the_mean_over_lengths_that_lack_some_documents_has_an_interval_that_covers_what_it_claims() -> None:
    coverage, width = interval_of_the_mean(has_gaps=True)
    assert coverage >= 0.9
    assert width == pytest.approx(interval_of_the_mean(has_gaps=False)[1], rel=0.15)


def test_all_lengths_together_are_drawn_alike_where_one_lacks_a_document(tmp_path: Path) -> None:
    lines = [
        line(f"{n}", n / 39, k=k, cluster=f"{n}", facets={"kind": ["x"]})
        for k in (8, 16, 32, 64, 128)
        for n in range(40)
        if n != k % 39
    ]
    (grid,) = reported(tmp_path, lines).facets
    pooled, whole = cell(grid, "x", "all"), cell(reported(tmp_path / "whole", lines[:39]).scores, "docs", "8K")
    assert pooled is not None
    assert whole is not None
    assert pooled.low is not None
    assert pooled.high is not None
    assert whole.low is not None
    assert whole.high is not None
    assert pooled.high - pooled.low == pytest.approx(whole.high - whole.low, rel=0.15)


def test_a_question_without_a_cluster_is_apart_from_a_cluster_that_is_named_like_its_id(tmp_path: Path) -> None:
    lines = [line(n, n / 12, cluster="3" if n > 6 else "") for n in range(12)]
    found = cell(reported(tmp_path, lines).scores, "docs", "8K")
    assert found is not None
    assert found.clusters == 7 + 1
