"""Calibration of α on scores whose best α is known."""

import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from score_lines import Line, line, refused, told, write
from tiny import command

from mmlongbench.draws import Draws

DRAWS = Draws(("calibration",))
EXAMPLES = 60
ALPHAS = [step / 20 for step in range(21)]


def parts(number: int, model: str = "m") -> tuple[float, float]:
    """A drawn match and grounding."""
    draws = DRAWS.at(model, number)
    return draws.fraction("match"), draws.fraction("grounding")


def smudge(number: int, match: float, grounding: float, **fields: Any) -> Line:
    return line(number, 0.5, metric="smudge", details={"match": match, "grounding": grounding}, **fields)


def scored(folder: Path, *models: str, count: int = EXAMPLES) -> Path:
    """Scores of SMuDGE."""
    lines = [smudge(n, *parts(n, model), model=model) for model in models or ("m",) for n in range(count)]
    return write(folder / "scores", lines, "m.smudge.jsonl")


def given(folder: Path, lines: Iterable[Line]) -> Path:
    return write(folder, lines, "given.jsonl") / "given.jsonl"


def of_example(number: int, score: object) -> Line:
    return {"file": "docs_K8.jsonl", "id": str(number), "score": score}


def people(alpha: float, say: Callable[[int, float], float] = lambda number, score: score) -> list[Line]:
    """Scores of people who weigh the match by α."""
    pairs = [parts(number) for number in range(EXAMPLES)]
    return [of_example(n, say(n, alpha * match + (1 - alpha) * other)) for n, (match, other) in enumerate(pairs)]


def calibrated(folder: Path, lines: Iterable[Line], *options: str) -> Line:
    found = told(folder, "--calibrate-alpha", given(folder.parent, lines), *options)
    assert [row["alpha"] for row in found["rows"]] == ALPHAS
    return found


def at(found: Line, alpha: float) -> Line:
    """(ECE, Pearson's r) at one α."""
    return dict(found["rows"][ALPHAS.index(alpha)])


@pytest.mark.parametrize("alpha", [0.0, 0.25, 0.6, 1.0])
def test_the_alpha_that_given_scores_are_made_with_is_found(alpha: float, tmp_path: Path) -> None:
    found = calibrated(scored(tmp_path), people(alpha))
    assert (found["given"], found["count"]) == ("examples", EXAMPLES)
    assert found["best"] == {"ece": alpha, "pearson": alpha}
    assert at(found, alpha) == {"alpha": alpha, "ece": pytest.approx(0, abs=1e-12), "pearson": pytest.approx(1)}


def test_pearson_finds_it_through_noise_and_another_scale(tmp_path: Path) -> None:
    def say(number: int, score: float) -> float:
        return 0.2 + 0.4 * score + 0.02 * DRAWS.at("noise", number).fraction("noise")

    found = calibrated(scored(tmp_path), people(0.7, say))
    assert found["best"]["pearson"] == pytest.approx(0.7, abs=0.05)
    assert at(found, 0.7)["ece"] == pytest.approx(0.15, abs=0.05)  # the coarse scale has an error of its own


@pytest.mark.parametrize("models", [("one", "two", "three"), ("one", "two", "three", "four")], ids=len)
def test_over_models_the_alpha_of_the_lowest_correlation_with_their_errors_is_best(
    models: tuple[str, ...], tmp_path: Path
) -> None:
    means = {model: np.mean([parts(number, model) for number in range(4)], axis=0) for model in models}
    errors: list[Line] = [{"model": m, "ece": float(0.9 - 0.5 * (0.3 * a + 0.7 * b))} for m, (a, b) in means.items()]
    found = calibrated(scored(tmp_path, *models, count=4), [*errors, {"model": "not scored", "ece": 0.5}])
    assert (found["given"], found["count"], found["best"]) == ("models", len(models), {"ece": None, "pearson": 0.3})
    assert at(found, 0.3) == {"alpha": 0.3, "ece": None, "pearson": pytest.approx(-1)}


def test_lines_of_another_metric_are_given_scores_and_what_failed_is_passed_over(tmp_path: Path) -> None:
    lines = [line(number, score, metric="judge-answers") for number, score in ((0, 1.0), (1, 0.0), (2, None))]
    assert calibrated(scored(tmp_path), [*lines, line("other", 1.0)])["count"] == 2


@pytest.mark.parametrize(
    ("scores", "said", "error"),
    [
        # three of 0.1 to 0.2 with a mean of 0.15 against 1/3, one of 1 in the last bin against 0
        ([0.12, 0.15, 0.18, 1.0], [0.0, 0.0, 1.0, 0.0], (3 * (1 / 3 - 0.15) + 1 * 1.0) / 4),
        # 1 − 0.8 and 1 − 0.9 are a little less than 0.2 and 0.1, and yet in the upper bin
        ([1 - 0.8, 0.15], [1.0, 0.0], (0.8 + 0.15) / 2),
        ([1 - 0.9, 0.05], [1.0, 0.0], (0.9 + 0.05) / 2),
    ],
    ids=["bins", "border of 0.2", "border of 0.1"],
)
def test_ece_is_the_mean_over_bins_of_what_scores_are_off(
    scores: list[float], said: list[float], error: float, tmp_path: Path
) -> None:
    folder = write(tmp_path / "scores", [smudge(n, score, score) for n, score in enumerate(scores)])
    found = calibrated(folder, [of_example(n, score) for n, score in enumerate(said)])
    assert [at(found, alpha)["ece"] for alpha in (0.0, 1.0)] == pytest.approx([error] * 2)


def test_equal_scores_have_no_correlation(tmp_path: Path) -> None:
    folder = write(tmp_path / "scores", [smudge(n, 0.5, 0.5) for n in range(2)])
    assert {row["pearson"] for row in calibrated(folder, [of_example(0, 0.0), of_example(1, 1.0)])["rows"]} == {None}


@pytest.mark.parametrize(
    ("lines", "models", "facts"),
    [
        ([], "m", ("0 of its 0 examples are scored", "2 at least")),
        ([of_example(0, 1.0)], "m", ("1 of its 1 examples", "2 at least")),
        ([of_example(0, 2)], "m", ("line 1: score:", "less than or equal to 1")),
        ([{"file": "docs_K8.jsonl", "id": "0"}], "m", ("line 1: score: Field required", "model and ece")),
        ([{"model": "m", "ece": -1}], "m", ("line 1: ece:", "greater than or equal to 0")),
        ([{"model": "m", "ece": 0.1}, {"model": "n", "ece": 0.1}], "mn", ("2 of its 2 models", "3 at least")),
        (people(0.5), "mn", ("names no model", "2 models", "add `model`")),
        ([*people(0.5), *people(0.6)], "m", ("id '0' of docs_K8.jsonl has two scores", "one metric")),
    ],
    ids=["nothing", "one example", "above 1", "no score", "below 0", "two models", "whose", "twice"],
)
def test_what_cannot_be_compared_says_why(lines: list[Line], models: str, facts: Sequence[str], tmp_path: Path) -> None:
    said = refused(scored(tmp_path, *models), "--calibrate-alpha", given(tmp_path, lines))
    assert [fact for fact in ("given.jsonl", *facts) if fact not in said] == []


def test_scores_without_parts_or_with_two_scores_of_an_example_are_refused(tmp_path: Path) -> None:
    file = given(tmp_path, people(0.5))
    plain = write(tmp_path / "plain", [line(0, 1.0), line(1, 0.0)])
    said = refused(plain, "--calibrate-alpha", file)
    assert "no scores have a match and a grounding" in said
    assert "--metrics smudge" in said
    folder = scored(tmp_path)
    (folder / "again.jsonl").write_bytes((folder / "m.smudge.jsonl").read_bytes())
    said = refused(folder, "--calibrate-alpha", file)
    assert "m: id '0' of docs_K8.jsonl has two scores of SMuDGE" in said


def test_the_command_prints_every_alpha_and_the_best(tmp_path: Path) -> None:
    folder, file = scored(tmp_path), given(tmp_path, people(0.4))
    lines = command("report", folder, "--calibrate-alpha", file).out.splitlines()
    assert lines[0] == f"α against the scores of examples: {EXAMPLES} in both"
    assert lines[2 + ALPHAS.index(0.4)].split() == ["0.40", "0.000", "1.000"]
    assert lines[-2:] == ["best α by the least ECE: 0.4", "best α by the highest Pearson: 0.4"]
    assert command("report", folder, "--calibrate-alpha", file, "-q").out == ""
    assert "leave out --html and --metric" in refused(folder, "--calibrate-alpha", file, "--html", tmp_path / "p.html")


def test_of_two_profiles_one_is_chosen(tmp_path: Path) -> None:
    lines = []
    for number in range(EXAMPLES):  # match and grounding are exchanged under ours
        match, grounding = parts(number)
        lines += [smudge(number, match, grounding, profile="paper"), smudge(number, grounding, match, profile="ours")]
    folder, file = write(tmp_path / "scores", lines), given(tmp_path, people(0.25))
    for profile, alpha in (("paper", 0.25), ("ours", 0.75)):
        assert calibrated(folder, people(0.25), "--profile", profile)["best"] == {"ece": alpha, "pearson": alpha}
    said = refused(folder, "--calibrate-alpha", file)
    assert "id '0' of docs_K8.jsonl has two scores of SMuDGE, under the profiles paper and ours" in said
    said = refused(folder, "--calibrate-alpha", file, "--profile", "official")
    assert "no scores under official have" in said
    assert "paper, ours" in said


def test_alpha_is_calibrated_over_means_of_samples(tmp_path: Path) -> None:
    said = [of_example(n, score) for n, score in enumerate((0.2, 0.8, 0.5))]
    found = []
    for name, matches in (("a", [(0.0, 0.4), (1.0, 0.6), (0.5,)]), ("b", [(0.2,), (0.8,), (0.5,)])):
        lines = [smudge(n, one, 0.5, sample=at) for n, many in enumerate(matches) for at, one in enumerate(many)]
        (tmp_path / name).mkdir()
        found.append(calibrated(write(tmp_path / name / "scores", lines), said)["rows"])
    assert [row["ece"] for row in found[0]] == pytest.approx([row["ece"] for row in found[1]])
    assert not any(math.isnan(row["ece"]) for row in found[0])
