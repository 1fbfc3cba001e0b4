"""Calibration of α on scores whose best α is known."""

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result
from score_lines import line, write

from mmlongbench.cli.main import cli
from mmlongbench.draws import Draws
from mmlongbench.errors import ReleaseError
from mmlongbench.scoring.report.calibration import ALPHAS, Calibration, calibration, expected_error, pearson

DRAWS = Draws(("calibration",))
EXAMPLES = 200


def parts(number: int, model: str = "m") -> tuple[float, float]:
    """A drawn match and grounding."""
    draws = DRAWS.at(model, number)
    return draws.fraction("match"), draws.fraction("grounding")


def scored(folder: Path, *models: str, count: int = EXAMPLES) -> Path:
    """Scores of SMuDGE."""
    lines = []
    for model in models or ("m",):
        for number in range(count):
            match, grounding = parts(number, model)
            details = {"match": match, "grounding": grounding}
            score = 0.25 * match + 0.75 * grounding
            lines.append(line(number, score, model=model, metric="smudge", details=details))
    return write(folder / "scores", lines, "m.smudge.jsonl")


def given(folder: Path, lines: Iterable[dict[str, Any]]) -> Path:
    path = folder / "given.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in lines), "utf-8")
    return path


def people(alpha: float, say: Callable[[int, float], float] = lambda number, score: score) -> list[dict[str, Any]]:
    """Scores of people who weigh the match by α."""
    found = []
    for number in range(EXAMPLES):
        match, grounding = parts(number)
        score = say(number, alpha * match + (1 - alpha) * grounding)
        found.append({"file": "docs_K8.jsonl", "id": str(number), "score": score})
    return found


def row(found: Calibration, alpha: float) -> tuple[float | None, float | None]:
    (each,) = (each for each in found.rows if each.alpha == alpha)
    return each.ece, each.pearson


@pytest.mark.parametrize("alpha", [0.0, 0.25, 0.6, 1.0])
def test_the_alpha_that_given_scores_are_made_with_is_found(alpha: float, tmp_path: Path) -> None:
    found = calibration(scored(tmp_path), given(tmp_path, people(alpha)))
    assert (found.given, found.count) == ("examples", EXAMPLES)
    assert found.best_by_ece is not None
    assert found.best_by_pearson is not None
    assert (found.best_by_ece.alpha, found.best_by_pearson.alpha) == (alpha, alpha)
    ece, r = row(found, alpha)
    assert ece == pytest.approx(0, abs=1e-12)
    assert r == pytest.approx(1)


def test_pearson_finds_it_through_noise_and_another_scale(tmp_path: Path) -> None:
    def say(number: int, score: float) -> float:
        return 0.2 + 0.4 * score + 0.02 * DRAWS.at("noise", number).fraction("noise")

    found = calibration(scored(tmp_path), given(tmp_path, people(0.7, say)))
    assert found.best_by_pearson is not None
    assert found.best_by_pearson.alpha == pytest.approx(0.7, abs=0.05)
    assert row(found, 0.7)[0] == pytest.approx(0.15, abs=0.05)  # the coarse scale has an error of its own


def test_over_models_the_alpha_of_the_lowest_correlation_with_their_errors_is_best(tmp_path: Path) -> None:
    models = ("one", "two", "three", "four")
    folder = scored(tmp_path, *models, count=4)
    means = {model: np.mean([parts(number, model) for number in range(4)], axis=0) for model in models}
    errors = [{"model": model, "ece": float(0.9 - 0.5 * (0.3 * m + 0.7 * g))} for model, (m, g) in means.items()]
    found = calibration(folder, given(tmp_path, [*errors, {"model": "not scored", "ece": 0.5}]))
    assert (found.given, found.count, found.best_by_ece) == ("models", 4, None)
    assert found.best_by_pearson is not None
    assert found.best_by_pearson.alpha == 0.3
    ece, r = row(found, 0.3)
    assert ece is None
    assert r == pytest.approx(-1)


def test_lines_of_another_metric_are_given_scores_and_what_failed_is_passed_over(tmp_path: Path) -> None:
    lines = [line(number, score, metric="judge-answers") for number, score in ((0, 1.0), (1, 0.0), (2, None))]
    found = calibration(scored(tmp_path), given(tmp_path, [*lines, line("other", 1.0)]))
    assert found.count == 2


def test_ece_is_the_mean_over_bins_of_what_scores_are_off(tmp_path: Path) -> None:
    # three of 0.1 to 0.2 with a mean of 0.15 against 1/3, one of 1 in the last bin against 0
    scores, said = np.array([0.12, 0.15, 0.18, 1.0]), np.array([0.0, 0.0, 1.0, 0.0])
    assert expected_error(scores, said) == pytest.approx((3 * (1 / 3 - 0.15) + 1 * 1.0) / 4)
    assert pearson(np.array([0.5, 0.5]), np.array([0.0, 1.0])) is None


def test_a_score_at_the_border_of_two_bins_is_in_the_upper_one_however_it_is_computed() -> None:
    """1 − 0.8 and 1 − 0.9 are a little less than 0.2 and 0.1."""
    for border in (0.2, 0.1):
        scores, said = np.array([1 - (1 - border), border - 0.05]), np.array([1.0, 0.0])
        assert scores[0] < border
        assert expected_error(scores, said) == pytest.approx(((1 - border) + (border - 0.05)) / 2)


@pytest.mark.parametrize(
    ("lines", "models", "why"),
    [
        ([], ("m",), r"0 of its 0 examples are scored; expected 2 at least"),
        ([{"file": "docs_K8.jsonl", "id": "0", "score": 2}], ("m",), "line 1: score: .*less than or equal to 1"),
        ([{"file": "docs_K8.jsonl", "id": "0"}], ("m",), "line 1: score: Field required; a line has model and ece, or"),
        ([{"model": "m", "ece": -1}], ("m",), "line 1: ece: .*greater than or equal to 0"),
        ([{"model": "m", "ece": 0.1}], ("m",), "1 of its 1 models are scored; expected 3 at least"),
        (people(0.5), ("m", "n"), "a line names no model, but 2 models have scores: add `model` to it"),
        ([*people(0.5), *people(0.6)], ("m",), "id '0' of docs_K8.jsonl has two scores; give one metric"),
    ],
    ids=["nothing", "above 1", "no score", "below 0", "one model", "whose", "twice"],
)
def test_what_cannot_be_compared_says_why(
    lines: list[dict[str, Any]], models: tuple[str, ...], why: str, tmp_path: Path
) -> None:
    with pytest.raises(ReleaseError, match=rf"given\.jsonl.*{why}"):
        calibration(scored(tmp_path, *models), given(tmp_path, lines))


def test_scores_without_match_and_grounding_have_no_alpha(tmp_path: Path) -> None:
    folder = write(tmp_path / "scores", [line(0, 1.0), line(1, 0.0)])
    with pytest.raises(ReleaseError, match=r"no scores have a match and a grounding.*score with --metrics smudge"):
        calibration(folder, given(tmp_path, people(0.5)))


def test_an_example_that_has_two_scores_of_smudge_is_refused(tmp_path: Path) -> None:
    folder = scored(tmp_path)
    (folder / "again.jsonl").write_bytes((folder / "m.smudge.jsonl").read_bytes())
    with pytest.raises(ReleaseError, match=r"m: id '0' of docs_K8.jsonl has two scores of SMuDGE; give a folder"):
        calibration(folder, given(tmp_path, people(0.5)))


def command(*words: object) -> Result:
    return CliRunner().invoke(cli, ["report", *map(str, words)])


def test_the_command_prints_every_alpha_and_the_best(tmp_path: Path) -> None:
    folder, file = scored(tmp_path), given(tmp_path, people(0.4))
    shown = command(folder, "--calibrate-alpha", file)
    assert shown.exit_code == 0, shown.output
    lines = shown.output.splitlines()
    assert lines[0] == "α against the scores of examples: 200 in both"
    assert lines[2 + ALPHAS.index(0.4)].split() == ["0.40", "0.000", "1.000"]
    assert lines[-2:] == ["best α by the least ECE: 0.4", "best α by the highest Pearson: 0.4"]
    found = json.loads(command(folder, "--calibrate-alpha", file, "--json").output)
    assert found["best"] == {"ece": 0.4, "pearson": 0.4}
    assert len(found["rows"]) == len(ALPHAS)
    assert command(folder, "--calibrate-alpha", file, "-q").output == ""
    refused = command(folder, "--calibrate-alpha", file, "--html", tmp_path / "page.html")
    assert "leave out --html and --metric" in refused.output
    assert refused.exit_code == 2


def under_two_profiles(folder: Path) -> Path:
    """Scores of SMuDGE whose match and grounding are exchanged under ours."""
    lines = []
    for number in range(EXAMPLES):
        match, grounding = parts(number)
        for profile, one, two in (("paper", match, grounding), ("ours", grounding, match)):
            about: dict[str, Any] = {
                "metric": "smudge",
                "profile": profile,
                "details": {"match": one, "grounding": two},
            }
            lines.append(line(number, 0.5, **about))
    return write(folder / "scores", lines, "m.smudge.jsonl")


def test_of_two_profiles_one_is_chosen(tmp_path: Path) -> None:
    folder, file = under_two_profiles(tmp_path), given(tmp_path, people(0.25))
    best = {}
    for profile in ("paper", "ours"):
        found = calibration(folder, file, profile)
        assert found.best_by_ece is not None
        best[profile] = found.best_by_ece.alpha
    assert best == {"paper": 0.25, "ours": 0.75}
    refused = command(folder, "--calibrate-alpha", file)
    assert (
        "id '0' of docs_K8.jsonl has two scores of SMuDGE, under the profiles paper and ours; choose one with"
        in str(refused.exception)
    )
    chosen = json.loads(command(folder, "--calibrate-alpha", file, "--profile", "ours", "--json").output)
    assert chosen["best"] == {"ece": 0.75, "pearson": 0.75}
    with pytest.raises(
        ReleaseError, match=r"no scores under official have .*; there are such under paper, ours; choose"
    ):
        calibration(folder, file, "official")
