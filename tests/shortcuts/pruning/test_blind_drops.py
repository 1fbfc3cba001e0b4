"""Drops of questions that models solve blind: the listed ones, and never a question with two answers."""

import json
from pathlib import Path

import pytest
from context_answers import FOUR, TWO, four, predictions, public_files, two
from tiny import command

from mmlongbench.manifest.errata import load_errata

MODELS = ("a", "b", "c", "d")
FOURS, TWOS = [four(number, 0.0) for number in range(60)], [two(number, 0.0) for number in range(60)]


@pytest.fixture(scope="module")
def public(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four models solve 5 questions with four answers blind, and all questions with two answers; not to be changed."""
    folder = tmp_path_factory.mktemp("blind")
    for model in MODELS:
        for file, records, blind in ((FOUR, FOURS, 5), (TWO, TWOS, 60)):
            for context, right in (("", 60), ("none", blind)):
                path = folder / "predictions" / f"{model}.{context or 'full'}.{blind}.jsonl"
                predictions(path, file, records, lambda number, depth, n=right: number < n, context, model)  # type: ignore[misc]
    return public_files(folder, {FOUR: FOURS, TWO: TWOS})


def test_listed_questions_are_dropped_and_binary_ones_never(public: Path, tmp_path: Path) -> None:
    ran = command(
        "shortcuts", public, "--predictions", public.parent / "predictions", "--prune", tmp_path / "errata.yaml"
    )
    assert ran.code == 0, ran.err
    written = sorted(path.name for path in tmp_path.iterdir())
    assert written == ["errata.retrieval-image.yaml"]
    errata = load_errata(tmp_path / written[0])
    assert set(errata) == {f"mm-niah-{number}" for number in range(5)}
    said = "mmlongbench shortcuts: answered without the context by a, b, c, d: 4 of 4 answers are right, luck 0.0039"
    assert {each.source for each in errata.values()} == {said}
    assert "errata.retrieval-image.yaml: drops 5 questions of 60; the set that is left is retrieval-image_pruned:" in (
        ran.out
    )


def test_the_json_has_the_drops_and_an_existing_file_stays(public: Path, tmp_path: Path) -> None:
    out = tmp_path / "errata.yaml"
    given = ("shortcuts", public, "--predictions", public.parent / "predictions", "--json", "--prune", out)
    ran = command(*given)
    pruned = [json.loads(line)["pruned"] for line in ran.out.splitlines()[1:]]
    assert {each["dataset"]: len(each["drops"]) for each in pruned} == {"retrieval-image": 5, "vh_single": 0}
    assert {each["name"] for each in pruned} == {"retrieval-image_pruned", "vh_single_pruned"}
    again = command(*given)
    assert again.code == 2
    assert "errata.retrieval-image.yaml: already exists, and is not overwritten" in again.err
