"""The arithmetic of a report on tables small enough to be checked by hand, and the scores that it refuses."""

import json
from pathlib import Path
from typing import Any

import pytest
from score_lines import Line, absent, cell, counts, known, line, mean, printed, refused, reported, table, told, write

from mmlongbench.draws import Draws
from mmlongbench.metrics.mmlongbench_doc import Rules
from mmlongbench.task import Score
from mmlongbench.task.metrics import Settings


def in_order(text: str, *names: str) -> bool:
    """Whether words stand in a text in this order."""
    places = [text.find(name) for name in names]
    return -1 not in places and places == sorted(places)


def test_what_is_absent_counts_as_0_and_what_failed_does_not_count_but_is_shown(tmp_path: Path) -> None:
    found = reported(tmp_path, [line(1, 1.0), line(2, 0.5), absent(3), line(4, None, failure="the judge is down")])
    there = known(found["scores"], "docs", "8K")
    assert (there["mean"], counts(there)) == (pytest.approx((1.0 + 0.5 + 0.0) / 3), (4, 1, 1, 0))
    (missing,), (failure,) = found["missing"], found["failures"]
    assert (missing["file"], counts(missing)) == ("docs_K8.jsonl", (4, 1, 1, 0))
    assert (failure["reason"], failure["times"]) == ("the judge is down", 1)
    assert "1 × em of m: the judge is down" in printed(tmp_path)


def test_where_all_failed_there_is_no_score_rather_than_0(tmp_path: Path) -> None:
    found = reported(tmp_path, [line(1, None), line(2, None), line(1, 1.0, k=16), line(2, 1.0, k=16)])
    there = known(found["scores"], "docs", "8K")
    assert (there["mean"], there["interval"], counts(there)) == (None, None, (2, 0, 2, 0))
    assert cell(found["scores"], "docs", "mean") is None
    assert cell(found["averages"], "Docs", "8K") is None
    assert mean(found["averages"], "Docs", "16K") == 1.0
    assert cell(found["averages"], "Docs", "mean") is None
    assert ["m", "–", "100.0", "±–", "–"] in table(tmp_path, "datasets, unknown")


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
    averages = reported(tmp_path, lines)["averages"]
    assert {each["row"]: each["mean"] for each in averages["cells"]} == pytest.approx(
        {"DocVQA": 1.0, "NIAH": (0.2 + (0.9 + 0.5) / 2) / 2, "overall": (0.45 + 1.0) / 2}
    )
    assert known(averages, "NIAH", "8K")["of"] == "[reasoning-image (em) + reasoning-text (em)], single (em)"
    assert averages["notes"] == ["in no category, and in no average: aside"]


def test_the_mean_over_lengths_counts_each_length_once(tmp_path: Path) -> None:
    found = reported(tmp_path, [line(1, 0.2), *(line(n, 0.8, k=16) for n in range(9))])
    assert mean(found["scores"], "docs", "mean") == mean(found["averages"], "Docs", "mean") == pytest.approx(0.5)


def test_an_average_that_lacks_a_part_is_not_given(tmp_path: Path) -> None:
    lines = [line(1, 1.0, name, model=model) for name in ("a", "b") for model in ("all", "some")][:-1]
    found = reported(tmp_path, lines)
    assert mean(found["averages"], "Docs", "8K", "all") == mean(found["scores"], "a", "8K", "some") == 1.0
    assert cell(found["averages"], "Docs", "8K", "some") is None
    assert found["averages"]["notes"] == ["averages of some lack b at 8K; those that need it are left empty"]


def test_a_row_of_averages_has_the_same_members_at_every_length(tmp_path: Path) -> None:
    three = [("a", "Docs"), ("b", "Docs"), ("c", "NIAH")]
    lines = [line(1, 1.0, name, category=category) for name, category in three]
    lines += [line(1, 0.5, "a", 16), line(1, 0.5, "c", 16, category="NIAH"), line(1, 0.5, "a", 32)]
    grid = reported(tmp_path, lines)["averages"]
    assert {(each["row"], each["column"]) for each in grid["cells"]} == {
        *(("Docs", "8K"), ("NIAH", "8K"), ("NIAH", "16K"), ("overall", "8K"))
    }
    assert in_order(printed(tmp_path), "8K", "16K", "32K", "mean")
    assert grid["notes"] == [
        "averages lack b at 16K; those that need it are left empty",
        "averages lack b, c at 32K; those that need it are left empty",
    ]


def test_summaries_enter_averages_by_the_judged_metric_where_every_model_and_file_has_it(tmp_path: Path) -> None:
    about: dict[str, Any] = {"averaged_metric": "flu", "category": "Summ"}
    both = [(model, k) for model in ("m", "n") for k in (8, 16)]
    rouge = [line(1, 0.2, "gov", k, model=model, metric="rouge", is_own=True, **about) for model, k in both]
    judged = [line(1, 0.6, "gov", k, model=model, metric="flu", **about) for model, k in both]
    complete, partial = reported(tmp_path, rouge + judged), reported(tmp_path / "b", rouge + judged[1:])
    assert (mean(complete["averages"], "Summ", "8K"), complete["averages"]["notes"]) == (0.6, [])
    assert in_order(printed(tmp_path).partition("datasets, unknown")[2], "gov rouge", "gov flu")
    assert mean(partial["averages"], "Summ", "8K", "n") == 0.2
    assert partial["averages"]["notes"] == ["gov enter by rouge; the paper's averages take flu"]
    assert mean(told(tmp_path / "b", "--metric", "flu")["averages"], "Summ", "16K") == 0.6
    assert mean(reported(tmp_path / "c", judged)["averages"], "Summ", "16K") == 0.6


def test_a_dataset_enters_averages_by_its_own_metric_or_by_the_one_that_is_asked_for(tmp_path: Path) -> None:
    write(tmp_path, [line(1, 0.1, metric="anls")], "m.anls.jsonl")
    write(tmp_path, [line(1, 0.7, metric="doc_qa", is_own=True)], "m.default.jsonl")
    assert mean(told(tmp_path)["averages"], "Docs", "8K") == pytest.approx(0.7)
    assert mean(told(tmp_path, "--metric", "anls")["averages"], "Docs", "8K") == pytest.approx(0.1)
    assert in_order(printed(tmp_path).partition("datasets, unknown")[2], "docs doc_qa", "docs anls")
    said = refused(tmp_path, "--metric", "anl")
    assert "--metric anl: scored nothing here" in said
    assert "anls, doc_qa; did you mean 'anls'" in said


def test_depths_are_shown_as_asked_for_and_the_middle_is_held_against_the_ends(tmp_path: Path) -> None:
    scores = {0.0: 1.0, 0.2: 0.9, 0.4: 0.3, 0.6: 0.5, 0.8: 0.7, 1.0: 0.8}
    lines = [line(n, score, depth=depth, k=k) for n in range(3) for depth, score in scores.items() for k in (8, 16)]
    (grid,) = reported(tmp_path, lines)["depths"]
    assert {(each["row"], each["column"]) for each in grid["cells"]} == {
        (row, column)
        for row in ("0", "0.2", "0.4", "0.6", "0.8", "1", "middle − ends")
        for column in ("8K", "16K", "all")
    }
    assert mean(grid, "0.4", "16K") == pytest.approx(0.3)
    for column in ("8K", "16K", "all"):
        assert mean(grid, "middle − ends", column) == pytest.approx((0.3 + 0.5) / 2 - (1.0 + 0.8) / 2)
    row = ["m", "100.0", "90.0", "30.0", "50.0", "70.0", "80.0", "-50.0", "±–"]
    assert row in table(tmp_path, "depth: docs")


def test_many_depths_are_put_into_steps_and_files_without_depths_into_no_map(tmp_path: Path) -> None:
    drawn = [line(n, 1.0, depth=n / 97) for n in range(98)]
    others = [line(1, 1.0, "other"), line(1, 0.0, "third", permutation=0)]
    (grid,) = reported(tmp_path, [*drawn, *others])["depths"]
    assert (grid["title"], len({each["row"] for each in grid["cells"]})) == ("docs", 12)


def test_every_facet_has_its_groups_pooled_and_by_dataset_with_numbers_in_their_order(tmp_path: Path) -> None:
    lines = [
        line(1, 1.0, "a", facets={"pages": ["2-9"], "source": ["Table", "Chart"]}),
        line(2, 0.0, "a", facets={"pages": ["10-99"], "source": ["Chart"]}),
        line(1, 0.5, "b", facets={"pages": ["10-99"]}),
        line(1, 1.0, "b-over-text", facets={"pages": ["10-99"]}, category=""),
    ]
    pages, source = reported(tmp_path, lines)["facets"]
    assert {(each["of"], each["row"]) for each in pages["cells"]} == {
        *(("all datasets", "2-9"), ("all datasets", "10-99"), ("a", "2-9"), ("a", "10-99")),
        *(("b", "10-99"), ("b-over-text", "10-99")),
    }
    assert in_order(printed(tmp_path).partition("pages, em")[2], "2-9", "10-99")
    assert mean(pages, "10-99", "all", of="all datasets") == pytest.approx(0.25)
    assert (mean(source, "Chart", "all"), mean(source, "Table", "8K")) == (0.5, 1.0)


def test_details_that_are_numbers_or_flags_have_means_and_nothing_else_has(tmp_path: Path) -> None:
    details = [
        {"refused": True, "rouge1": 0.5, "said": "no", "pages": [1], "huge": 10**400},
        {"refused": False, "rouge1": 0.75},
        {},
    ]
    found = reported(tmp_path, [line(n, 1.0, details=each) for n, each in enumerate(details)])["details"]
    assert {each["row"]: each["mean"] for each in found["cells"]} == {"refused": 0.5, "rouge1": pytest.approx(0.625)}


def test_details_are_in_the_order_of_dataset_metric_profile_and_name(tmp_path: Path) -> None:
    lines = [line(1, 1.0, profile=profile, details={"b": 1, "a": 2}) for profile in ("ours", "official")]
    text = printed(write(tmp_path, lines))
    assert in_order(text[text.index("what metrics say") :], "official", "docs em: a", "docs em: b", "ours")


def test_totals_are_the_metric_s_own_over_what_did_not_fail(tmp_path: Path) -> None:
    details = [{"answerable": True, "answered": True}, {"answerable": False, "answered": True}] * 3
    pairs = list(zip([1.0, 0.0, 0.5, 1.0, 1.0, 0.0], details, strict=True))
    lines = [line(n, score, metric="mmlongbench-doc", details=about) for n, (score, about) in enumerate(pairs)]
    failed = line(99, None, metric="mmlongbench-doc")
    found = reported(tmp_path, [*lines, failed, line(0, 1.0, "x", metric="nobody's")])
    wanted = Rules(Settings()).totals([Score(score, about) for score, about in pairs])
    assert wanted
    assert {each["row"]: each["mean"] for each in found["totals"]["cells"]} == pytest.approx(wanted)
    assert [note for note in found["notes"] if "totals of nobody's are not shown" in note]


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
    assert json.dumps(told(one)) == json.dumps(told(two))


def test_odd_names_stay_apart(tmp_path: Path) -> None:
    names = ["m", "m\0", "m ", "M", "m\n", "m\ud800"]
    found = reported(tmp_path, [line(1, at / 10, model=name) for at, name in enumerate(names)])
    assert set(found["models"]) == set(names)
    assert {each["model"]: each["mean"] for each in found["scores"]["cells"]} == {
        name: at / 10 for at, name in enumerate(names)
    }


def test_models_and_metrics_may_lack_whole_files_and_a_single_file_is_read_too(tmp_path: Path) -> None:
    lines = [line(1, 1.0), line(1, 1.0, k=16), line(1, 1.0, model="n"), line(1, 1.0, metric="other")]
    assert reported(tmp_path, lines)["lines"] == told(tmp_path / "m.default.jsonl")["lines"] == 4


def test_models_asked_different_examples_are_compared_on_those_they_share(tmp_path: Path) -> None:
    kept = [line(n, n / 10, model=model, depth=0.2, details={"x": n}) for n in (2, 3) for model in ("m", "n")]
    more = [line(n, 1.0, facets={"kind": ["a"]}, depth=0.2, details={"x": 9, "y": 1}) for n in (1, 4)]
    more += [line(2, 1.0, model="n", depth=0.4), line(5, None, model="n", depth=0.2, failure="down")]
    alone = line(1, 1.0, "other")
    found, wanted = (reported(tmp_path / f"{len(some)}", [*some, alone]) for some in ([*more, *kept], kept))
    said = "docs_K8.jsonl, em: models were asked different examples (m 4, n 4); here are the 2 they share"
    assert found == {**wanted, "notes": [said, *wanted["notes"]]}


SCORED = "m.default.jsonl: m, em, docs_K8.jsonl, id '1': status"
REFUSED: dict[str, tuple[list[Line], tuple[str, ...]]] = {
    "no line": ([], ("`mmlongbench score`",)),
    "above 1": ([line(1, 1.5)], (f"{SCORED} 'scored' with score 1.5", "from 0 to 1")),
    "no number": ([line(1, float("nan"))], ("with score nan",)),
    "no score": ([line(1, None, status="scored")], ("with score None",)),
    "absent": ([line(1, 0.5, status="absent")], ("status 'absent' with score 0.5", "expected a score 0;")),
    "failed": ([line(1, 1.0, status="failed")], ("status 'failed' with score 1.0", "expected a score null")),
    "skipped": ([line(1, 0.0, status="skipped")], ("status 'skipped' with score 0.0", "expected a score null")),
    "no depth": ([line(1, 1.0, depth=float("inf"))], ("at depth inf",)),
    "status": ([line(1, 1.0, status="unknown")], ("m.default.jsonl, line 1: status",)),
    "a field": ([line(1, 1.0), line(2, 1.0, colour="red")], ("m.default.jsonl, line 2: colour",)),
    "id": ([line(1, 1.0) | {"id": 7}], ("m.default.jsonl, line 1: id",)),
    **{f"sample {n}": ([line(1, 1.0, sample=n)], ("line 1: sample",)) for n in (-1, 1_000_000, 10**30, "x", 1.5)},
    "two samples": ([line(1, 1.0, sample=1), line(1, 0.0, sample=1)], ("id '1', sample 1 is scored twice",)),
    "two categories": (
        [line(1, 1.0), line(2, 1.0, category="else")],
        ("docs_K8.jsonl is of", "category 'else'", "elsewhere of", "category 'Docs'", "mixed"),
    ),
    "two lengths": ([line(1, 1.0), line(2, 1.0, length=4096)], ("docs_K8.jsonl is of", "length 4096", "mixed")),
    "two files": (
        [line(1, 1.0), line(2, 1.0, file="docs2_K8.jsonl")],
        ("dataset 'docs' has two files of 8,192 tokens, docs2_K8.jsonl and docs_K8.jsonl", "mixed"),
    ),
    "other examples": (
        [line(1, 1.0), line(2, 1.0, model="n")],
        ("docs_K8.jsonl: models were asked different examples (m 1, n 1) and share none", "mixed"),
    ),
    "other places": ([line(1, 1.0), line(1, 1.0, model="n", permutation=2)], ("and share none", "mixed")),
    "two things": (
        [line(1, 0.5, cluster="a"), line(1, 0.5, k=16, cluster="b")],
        ("id '1' is about 'b', elsewhere about 'a'", "several releases"),
    ),
    "twice": (
        [line(1, 0.5, profile="official"), line(1, 0.2, profile="official")],
        ("m, em (official), docs_K8.jsonl: id '1' is scored twice",),
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_scores_that_cannot_be_reported_are_refused_by_their_place_and_the_next_step(case: str, tmp_path: Path) -> None:
    lines, facts = REFUSED[case]
    said = refused(write(tmp_path, lines))
    assert [fact for fact in facts if fact not in said] == []


def test_a_release_is_not_taken_for_scores(tmp_path: Path) -> None:
    (tmp_path / "build.lock.json").write_text("{}")
    (tmp_path / "rejects.jsonl").write_text("")
    assert "is a release; give the folder of scores" in refused(tmp_path)


def test_a_folder_without_scores_and_a_line_of_two_files_are_refused(tmp_path: Path) -> None:
    assert "`mmlongbench score` writes them" in refused(tmp_path)
    write(tmp_path, [line(1, 1.0, depth=0.2), line(2, 1.0, depth=0.2)])
    write(tmp_path, [line(1, 0.0, depth=0.2)], "m.again.jsonl")
    twice = "m, em, docs_K8.jsonl: id '1' at depth 0.2 is scored twice, in m.again.jsonl and m.default.jsonl"
    assert twice in refused(tmp_path)
