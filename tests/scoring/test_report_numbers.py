"""The arithmetic of a report on tables small enough to be checked by hand."""

import json
from pathlib import Path
from typing import Any

import pytest
from score_lines import absent, cell, line, mean, reported, write

from mmlongbench.draws import Draws
from mmlongbench.errors import ReleaseError
from mmlongbench.manifest.registry import metric_type
from mmlongbench.scoring.report import report
from mmlongbench.scoring.report.estimates import Counts
from mmlongbench.task.metric import MetricWithTotals, Score


def test_what_is_absent_counts_as_0_and_what_failed_does_not_count_but_is_shown(tmp_path: Path) -> None:
    found = reported(tmp_path, [line(1, 1.0), line(2, 0.5), absent(3), line(4, None, failure="the judge is down")])
    there = cell(found.scores, "docs", "8K")
    assert there is not None
    assert there.mean == pytest.approx((1.0 + 0.5 + 0.0) / 3)
    assert there.counts == Counts(4, 1, 1, 0)
    assert [(each.file, each.found.counts) for each in found.missing] == [("docs_K8.jsonl", Counts(4, 1, 1, 0))]
    assert [(reason, times) for _, reason, times in found.failures] == [("the judge is down", 1)]


def test_where_all_failed_there_is_no_score_rather_than_0(tmp_path: Path) -> None:
    found = reported(tmp_path, [line(1, None), line(2, None), line(1, 1.0, k=16), line(2, 1.0, k=16)])
    there = cell(found.scores, "docs", "8K")
    assert there is not None
    assert (there.mean, there.low, there.counts.failed, there.is_inapplicable) == (None, None, 2, False)
    assert cell(found.scores, "docs", "mean") is None
    assert cell(found.averages, "Docs", "8K") is None
    assert mean(found.averages, "Docs", "16K") == 1.0
    assert cell(found.averages, "Docs", "mean") is None


def test_a_category_counts_each_dataset_once_and_datasets_counted_together_as_one(tmp_path: Path) -> None:
    niah: dict[str, Any] = {"category": "NIAH"}
    together = {**niah, "counted_with": "reasoning"}
    lines = [
        *(line(n, 0.2, "single", **niah) for n in range(3)),
        *(line(n, 0.9, "reasoning-text", **together) for n in range(2)),
        *(line(n, 0.5, "reasoning-image", **together) for n in range(5)),
        *(line(n, 1.0, "slides", category="DocVQA") for n in range(4)),
        line(0, 0.0, "aside", category=""),
    ]
    found = reported(tmp_path, lines)
    assert mean(found.averages, "NIAH", "8K") == pytest.approx((0.2 + (0.9 + 0.5) / 2) / 2)
    assert mean(found.averages, "DocVQA", "8K") == 1.0
    assert mean(found.averages, "overall", "8K") == pytest.approx((0.45 + 1.0) / 2)
    assert found.averages.rows[1].of == "[reasoning-image (em) + reasoning-text (em)], single (em)"
    assert found.averages.notes == ("in no category, and in no average: aside",)


def test_the_mean_over_lengths_counts_each_length_once(tmp_path: Path) -> None:
    found = reported(tmp_path, [line(1, 0.2), *(line(n, 0.8, k=16) for n in range(9))])
    assert mean(found.scores, "docs", "mean") == pytest.approx(0.5)
    assert mean(found.averages, "Docs", "mean") == pytest.approx(0.5)


def test_an_average_that_lacks_a_part_is_not_given(tmp_path: Path) -> None:
    lines = [line(1, 1.0, name, model=model) for name in ("a", "b") for model in ("all", "some")][:-1]
    found = reported(tmp_path, lines)
    assert mean(found.averages, "Docs", "8K", "all") == 1.0
    assert cell(found.averages, "Docs", "8K", "some") is None
    assert mean(found.scores, "a", "8K", "some") == 1.0
    assert found.averages.notes == ("averages of some lack b at 8K; those that need it are left empty",)


def test_a_row_of_averages_has_the_same_members_at_every_length(tmp_path: Path) -> None:
    three: list[Any] = [("a", "Docs"), ("b", "Docs"), ("c", "NIAH")]
    lines = [line(1, 1.0, name, category=category) for name, category in three]
    lines += [line(1, 0.5, "a", 16), line(1, 0.5, "c", 16, category="NIAH"), line(1, 0.5, "a", 32)]
    grid = reported(tmp_path, lines).averages
    shown = {row.name: [bool(cell(grid, row.name, column)) for column in grid.columns] for row in grid.rows}
    assert grid.columns == ("8K", "16K", "32K", "mean")
    assert shown == {
        "Docs": [True, False, False, False],
        "NIAH": [True, True, False, False],
        "overall": [True, False, False, False],
    }
    assert grid.notes == (
        "averages lack b at 16K; those that need it are left empty",
        "averages lack b, c at 32K; those that need it are left empty",
    )


def test_summaries_enter_averages_by_the_judged_metric_where_every_model_and_file_has_it(tmp_path: Path) -> None:
    about: dict[str, Any] = {"averaged_metric": "flu", "category": "Summ"}
    both = [(model, k) for model in ("m", "n") for k in (8, 16)]
    rouge = [line(1, 0.2, "gov", k, model=model, metric="rouge", is_own=True, **about) for model, k in both]
    judged = [line(1, 0.6, "gov", k, model=model, metric="flu", **about) for model, k in both]
    complete, partial = reported(tmp_path, rouge + judged), reported(tmp_path, rouge + judged[1:])
    assert (mean(complete.averages, "Summ", "8K"), complete.averages.notes) == (0.6, ())
    assert [row.metric for row in complete.scores.rows] == ["rouge", "flu"]
    assert mean(partial.averages, "Summ", "8K", "n") == 0.2
    assert partial.averages.notes == ("gov enter by rouge; the paper's averages take flu",)
    assert mean(reported(tmp_path, rouge + judged[1:], "flu").averages, "Summ", "16K") == 0.6
    assert mean(reported(tmp_path, judged).averages, "Summ", "16K") == 0.6


def test_a_dataset_enters_averages_by_its_own_metric_or_by_the_one_that_is_asked_for(tmp_path: Path) -> None:
    write(tmp_path, [line(1, 0.1, metric="anls")], "m.anls.jsonl")
    write(tmp_path, [line(1, 0.7, metric="doc_qa", is_own=True)], "m.default.jsonl")
    assert mean(report(tmp_path).averages, "Docs", "8K") == pytest.approx(0.7)
    assert mean(report(tmp_path, ["anls"]).averages, "Docs", "8K") == pytest.approx(0.1)
    assert [row.metric for row in report(tmp_path).scores.rows] == ["doc_qa", "anls"]
    with pytest.raises(ReleaseError, match=r"--metric anl: scored nothing here.*anls, doc_qa; did you mean 'anls'"):
        report(tmp_path, ["anl"])


def test_depths_are_shown_as_asked_for_and_the_middle_is_held_against_the_ends(tmp_path: Path) -> None:
    scores = {0.0: 1.0, 0.2: 0.9, 0.4: 0.3, 0.6: 0.5, 0.8: 0.7, 1.0: 0.8}
    lines = [line(n, score, depth=depth, k=k) for n in range(3) for depth, score in scores.items() for k in (8, 16)]
    (grid,) = reported(tmp_path, lines).depths
    assert [row.name for row in grid.rows] == ["0", "0.2", "0.4", "0.6", "0.8", "1", "middle − ends"]
    assert grid.columns == ("8K", "16K", "all")
    assert mean(grid, "0.4", "16K") == pytest.approx(0.3)
    for column in grid.columns:
        assert mean(grid, "middle − ends", column) == pytest.approx((0.3 + 0.5) / 2 - (1.0 + 0.8) / 2)


def test_many_depths_are_put_into_steps_and_files_without_depths_into_no_map(tmp_path: Path) -> None:
    drawn = [line(n, 1.0, depth=n / 97) for n in range(98)]
    (grid,) = reported(tmp_path, [*drawn, line(1, 1.0, "other"), line(1, 0.0, "third", permutation=0)]).depths
    assert (grid.title, len(grid.rows)) == ("docs", 12)


def test_every_facet_has_its_groups_pooled_and_by_dataset_with_numbers_in_their_order(tmp_path: Path) -> None:
    lines = [
        line(1, 1.0, "a", facets={"pages": ["2-9"], "source": ["Table", "Chart"]}),
        line(2, 0.0, "a", facets={"pages": ["10-99"], "source": ["Chart"]}),
        line(1, 0.5, "b", facets={"pages": ["10-99"]}),
        line(1, 1.0, "b-over-text", facets={"pages": ["10-99"]}, category=""),
    ]
    pages, source = reported(tmp_path, lines).facets
    assert [(row.of, row.name) for row in pages.rows] == [
        ("all datasets", "2-9"),
        ("all datasets", "10-99"),
        ("a", "2-9"),
        ("a", "10-99"),
        ("b", "10-99"),
        ("b-over-text", "10-99"),
    ]
    assert mean(pages, "10-99", "all", of="all datasets") == pytest.approx(0.25)
    assert mean(source, "Chart", "all") == 0.5
    assert mean(source, "Table", "8K") == 1.0


def test_details_that_are_numbers_or_flags_have_means_and_nothing_else_has(tmp_path: Path) -> None:
    details = [
        {"refused": True, "rouge1": 0.5, "said": "no", "pages": [1], "huge": 10**400},
        {"refused": False, "rouge1": 0.75},
        {},
    ]
    found = reported(tmp_path, [line(n, 1.0, details=each) for n, each in enumerate(details)])
    assert [row.name for row in found.details.rows] == ["refused", "rouge1"]
    assert mean(found.details, "refused", "8K") == 0.5
    assert mean(found.details, "rouge1", "8K") == pytest.approx(0.625)


def test_details_are_in_the_order_of_dataset_metric_profile_and_name(tmp_path: Path) -> None:
    lines = [line(1, 1.0, profile=profile, details={"b": 1, "a": 2}) for profile in ("ours", "official")]
    rows = [(row.profile, row.name) for row in reported(tmp_path, lines).details.rows]
    assert rows == [("official", "a"), ("official", "b"), ("ours", "a"), ("ours", "b")]


def test_totals_are_the_metric_s_own_over_what_did_not_fail(tmp_path: Path) -> None:
    details = [{"answerable": True, "answered": True}, {"answerable": False, "answered": True}] * 3
    scores = [1.0, 0.0, 0.5, 1.0, 1.0, 0.0]
    pairs = list(zip(scores, details, strict=True))
    lines = [line(n, score, metric="mmlongbench-doc", details=about) for n, (score, about) in enumerate(pairs)]
    failed = line(99, None, metric="mmlongbench-doc")
    found = reported(tmp_path, [*lines, failed, line(0, 1.0, "x", metric="nobody's")])
    metric = metric_type("mmlongbench-doc")
    assert issubclass(metric, MetricWithTotals)
    wanted = metric.totals([Score(score, about) for score, about in pairs])
    assert wanted
    assert {row.name: mean(found.totals, row.name, "8K") for row in found.totals.rows} == pytest.approx(wanted)
    assert [note for note in found.notes if "totals of nobody's are not shown" in note]


@pytest.mark.parametrize("name", ["one order", "another"])
def test_the_order_of_lines_and_files_changes_nothing(tmp_path: Path, name: str) -> None:
    lines = [
        line(n, n / 10, name, k, model=model, depth=depth, details={"x": n}, facets={"kind": [str(n % 2)]})
        for n in range(4)
        for name in ("a", "b")
        for k in (8, 16)
        for model in ("m", "n")
        for depth in (0.0, 1.0)
    ]
    shuffled = Draws((name,)).order("lines", lines, id=json.dumps)
    one, two = write(tmp_path / "one", lines), write(tmp_path / "two", shuffled[:20], "z.default.jsonl")
    write(two, shuffled[20:], "a.default.jsonl")
    assert json.dumps(report(one).summary()) == json.dumps(report(two).summary())
