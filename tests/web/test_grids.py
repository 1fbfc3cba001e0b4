"""Grids as tables: what a cell shows for each kind of number, and which colour it has."""

import pytest

from mmlongbench.scoring.report.estimates import Counts, Estimate
from mmlongbench.scoring.report.grids import Grid, Row
from mmlongbench.web.grids import beside, heat_maps
from mmlongbench.web.tables import DASH, Cell

FOUND = {
    "8K": Estimate(0.5, 0.4, 0.6, Counts(1200), 7),
    "16K": Estimate(0.25, counts=Counts(10, absent=1, failed=2), clusters=3),
    "32K": Estimate(None, counts=Counts(10, skipped=4)),
    "64K": Estimate(None, counts=Counts(3, failed=3)),
}
ROW = Row("docs", "DocVQA", "em")
GRID = Grid("a", (ROW,), (*FOUND, "mean"), {("m", ROW, column): found for column, found in FOUND.items()})


def test_cells_show_scores_intervals_and_what_is_missing() -> None:
    (group,) = beside(GRID, ["m", "other"]).groups
    assert (group.name, group.about) == ("docs", "DocVQA, em")
    (line,) = group.lines
    assert line.name == "m"
    assert line.cells == [
        Cell("50.0", "0.500", "40.0–60.0", "1,200 examples of 7 clusters, 0 absent, 0 failed"),
        Cell("25.0", "0.250", "–", "10 examples of 3 clusters, 1 absent, 2 failed", ["1 absent", "2 failed"]),
        Cell("N/A", missing=["4 skipped"], look="na m"),
        Cell("–", missing=["3 failed"], look="na m"),
        DASH,
    ]


def test_numbers_that_are_no_scores_have_no_colour_and_no_interval() -> None:
    (group,) = beside(GRID, ["m"], are_scores=False).groups
    title = "1,200 examples of 7 clusters, 0 absent, 0 failed"
    assert group.lines[0].cells[0] == Cell("0.500", title=title)


def test_the_last_cell_of_a_row_has_the_rank_of_its_model() -> None:
    ranked = Grid("a", (ROW,), ("8K",), {("m", ROW, "8K"): FOUND["8K"]}, ranks={("m", ROW, "8K"): 2.5})
    (group,) = beside(ranked, ["m"]).groups
    assert group.lines[0].cells[0].rank == "2.5"


def test_heat_maps_have_a_table_a_model_on_one_ramp_that_is_not_too_narrow() -> None:
    cells = {(model, ROW, "8K"): Estimate(mean, counts=Counts(4)) for model, mean in (("m", 0.51), ("n", 0.55))}
    maps = heat_maps(Grid("a", (ROW,), ("8K",), cells), ["m", "n", "without"])
    assert [maps.ramp.low, maps.ramp.high] == pytest.approx([0.35, 0.55])
    assert [(table.name, table.columns) for table in maps.tables] == [("m", ("8K", "n")), ("n", ("8K", "n"))]
    (group,) = maps.tables[1].groups
    assert (group.about, [cell.text for cell in group.lines[0].cells]) == ("DocVQA, em", ["55.0", "4"])
    assert [cell.ramp for cell in group.lines[0].cells] == ["1.000", ""]
