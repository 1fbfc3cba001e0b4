"""The table of contexts equals the script: models of known blindness, whose scores are known without any model."""

import json
from pathlib import Path

import pytest
from context_answers import DEPTHS, FOUR, TWO, four, predictions, public_files, two, write
from tiny import command

from mmlongbench.io.progress import Progress
from mmlongbench.shortcuts.contexts.audit import audit_contexts
from mmlongbench.shortcuts.contexts.results import ContextAudit, ContextRow

NUMBER = 120
FOURS = [four(number, depth) for number in range(NUMBER) for depth in DEPTHS]
TWOS = [two(number, depth) for number in range(NUMBER) for depth in DEPTHS]


@pytest.fixture(scope="module")
def public(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of public files of four-choice and yes-or-no questions; not to be changed."""
    return public_files(tmp_path_factory.mktemp("contexts"), {FOUR: FOURS, TWO: TWOS})


@pytest.fixture(scope="module")
def audit(public: Path, tmp_path_factory: pytest.TempPathFactory) -> ContextAudit:
    """Four-choice questions: right in the full prompt for 90 of 120, blind for 30, at half of the depths for text-only,
    always for shuffled as for full. Yes or no: right everywhere blind.
    """
    folder = tmp_path_factory.mktemp("predictions")
    predictions(folder / "m.jsonl", FOUR, FOURS, lambda number, depth: number < 90)
    predictions(folder / "m.none.jsonl", FOUR, FOURS, lambda number, depth: number < 30, "none")
    predictions(folder / "m.text.jsonl", FOUR, FOURS, lambda number, depth: number < 90 and depth == 0, "text-only")
    predictions(folder / "m.shuffled.jsonl", FOUR, FOURS, lambda number, depth: number < 90, "shuffled")
    predictions(folder / "vh.jsonl", TWO, TWOS, lambda number, depth: True)
    predictions(folder / "vh.none.jsonl", TWO, TWOS, lambda number, depth: True, "none")
    return audit_contexts(public, [folder], Progress(False))


def row(audit: ContextAudit, dataset: str, value: str = "", model: str = "m") -> ContextRow:
    (found,) = [
        each
        for each in audit.rows
        if (each.dataset, each.value, each.model, each.length) == (dataset, value, model, None)
    ]
    return found


def test_means_and_differences_equal_the_script(audit: ContextAudit) -> None:
    found = row(audit, "retrieval-image")
    assert audit.contexts == ("", "none", "shuffled", "text-only")
    assert {each.context: (each.mean, each.questions) for each in found.means} == {
        "": (90 / 120, 120),
        "none": (30 / 120, 120),
        "shuffled": (90 / 120, 120),
        "text-only": (45 / 120, 120),
    }
    differences = {each.context: each for each in found.differences}
    assert {name: (each.mean, each.full, each.other) for name, each in differences.items()} == {
        "none": (60 / 120, 90 / 120, 30 / 120),
        "shuffled": (0.0, 90 / 120, 90 / 120),
        "text-only": (45 / 120, 90 / 120, 45 / 120),
    }
    assert {(each.examples, each.questions, each.clusters) for each in found.differences} == {(240, 120, 120)}


def test_survival_is_the_share_above_chance_that_is_left(audit: ContextAudit) -> None:
    differences = {each.context: each for each in row(audit, "retrieval-image").differences}
    assert {each.chance for each in differences.values()} == {0.25}
    assert {name: each.survival for name, each in differences.items()} == {
        "none": 0.0,
        "shuffled": 1.0,
        "text-only": (0.375 - 0.25) / (0.75 - 0.25),
    }
    binary = row(audit, "vh_single").differences[0]
    assert (binary.chance, binary.survival) == (0.5, 1.0)


def test_verdicts_follow_from_the_script(audit: ContextAudit) -> None:
    needs = {each.need.part: each.need.verdict for each in row(audit, "retrieval-image").differences if each.need}
    assert needs == {"context": "needs", "images": "needs", "order": "does not need"}
    assert [each.need and each.need.verdict for each in row(audit, "vh_single").differences] == ["does not need"]


def test_each_value_of_a_facet_has_a_row(audit: ContextAudit) -> None:
    yes, no = row(audit, "vh_single", "Yes"), row(audit, "vh_single", "No")
    assert (yes.facet, no.facet) == ("answer", "answer")
    assert (yes.differences[0].questions, no.differences[0].questions) == (60, 60)


def test_an_interval_contains_its_mean(audit: ContextAudit) -> None:
    for each in (each for found in audit.rows for each in found.differences):
        assert each.low is not None
        assert each.high is not None
        assert each.low <= each.mean <= each.high


def test_only_examples_with_a_score_in_both_contexts_are_compared(public: Path, tmp_path: Path) -> None:
    predictions(tmp_path / "m.jsonl", FOUR, FOURS[:80], lambda number, depth: True)
    predictions(tmp_path / "m.none.jsonl", FOUR, FOURS[40:], lambda number, depth: False, "none")
    found = row(audit_contexts(public, [tmp_path], Progress(False)), "retrieval-image")
    assert [(each.context, each.questions) for each in found.means] == [("", 40), ("none", 100)]
    assert [(each.questions, each.mean) for each in found.differences] == [(20, 1.0)]


def test_several_models_have_rows_of_their_own(public: Path, tmp_path: Path) -> None:
    for model, blind in (("a/one", 0), ("two", NUMBER)):
        name = model.replace("/", "_")
        predictions(tmp_path / f"{name}.jsonl", FOUR, FOURS, lambda number, depth: True, model=model)
        path = tmp_path / f"{name}.none.jsonl"
        predictions(path, FOUR, FOURS, lambda number, depth, blind=blind: number < blind, "none", model)  # type: ignore[misc]
    audit = audit_contexts(public, [tmp_path], Progress(False))
    assert audit.models == ("a/one", "two")
    verdicts = [row(audit, "retrieval-image", model=name).differences[0].need for name in audit.models]
    assert [need and need.verdict for need in verdicts] == ["needs", "does not need"]


def test_samples_are_averaged_before_contexts_are_compared(public: Path, tmp_path: Path) -> None:
    predictions(tmp_path / "m.jsonl", FOUR, FOURS, lambda number, depth: True)
    path = predictions(tmp_path / "m.none.jsonl", FOUR, FOURS, lambda number, depth: True, "none", samples=4)
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    write(path, [{**line, "prediction": "E"} if line["sample"] == 3 else line for line in lines])
    found = row(audit_contexts(public, [tmp_path], Progress(False)), "retrieval-image")
    assert [(each.context, each.mean) for each in found.means] == [("", 1.0), ("none", 0.75)]


def test_scores_files_give_the_same_table_as_predictions(public: Path, tmp_path: Path) -> None:
    import mmlongbench as mm

    folder = tmp_path / "predictions"
    predictions(folder / "m.jsonl", FOUR, FOURS, lambda number, depth: number % 3 > 0)
    predictions(folder / "m.none.jsonl", FOUR, FOURS, lambda number, depth: number % 5 == 0, "none")
    scored = []
    for name in ("m", "m.none"):
        out = tmp_path / name
        found = mm.score(public, folder / f"{name}.jsonl", partial=True, model="m", out=out)
        assert found.file
        scored.append(found.file)
    one = audit_contexts(public, [folder], Progress(False))
    assert audit_contexts(public, scored, Progress(False)) == one


def test_the_order_of_predictions_does_not_matter(public: Path, tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    for folder, records in ((one, FOURS), (two, FOURS[::-1])):
        predictions(folder / "m.jsonl", FOUR, records, lambda number, depth: number % 3 > 0)
        predictions(folder / "m.none.jsonl", FOUR, records, lambda number, depth: number % 5 == 0, "none")
    write(two / "ignored.txt", [])
    found = [audit_contexts(public, [folder], Progress(False)).model_dump_json() for folder in (one, two)]
    assert found[0] == found[1]


def test_a_model_that_always_says_no_does_not_show_that_any_group_can_do_without(public: Path, tmp_path: Path) -> None:
    predictions(tmp_path / "m.jsonl", TWO, TWOS, lambda number, depth: number % 2 == 1)
    predictions(tmp_path / "m.none.jsonl", TWO, TWOS, lambda number, depth: number % 2 == 1, "none")
    audit = audit_contexts(public, [tmp_path], Progress(False))
    assert row(audit, "vh_single", "No").differences[0].other == 1.0
    verdicts = {each.value: [found.need and found.need.verdict for found in each.differences] for each in audit.rows}
    assert verdicts == {"": ["undecided"], "No": ["undecided"], "Yes": ["undecided"]}


def test_lengths_have_rows_of_their_own_where_there_are_several(tmp_path: Path) -> None:
    longer = FOUR.replace("K8", "K16")
    public = public_files(tmp_path, {FOUR: FOURS, longer: FOURS})
    for name, file, right in (("8", FOUR, 120), ("16", longer, 60)):
        folder = tmp_path / "predictions"
        predictions(folder / f"m.{name}.jsonl", file, FOURS, lambda number, depth, right=right: number < right)  # type: ignore[misc]
        predictions(folder / f"m.none.{name}.jsonl", file, FOURS, lambda number, depth: number < 30, "none")
    audit = audit_contexts(public, [tmp_path / "predictions"], Progress(False))
    found = {each.length: each.differences[0] for each in audit.rows}
    assert {length: (each.mean, each.questions, each.clusters) for length, each in found.items()} == {
        None: (0.5, 120, 120),
        8_192: (0.75, 120, 120),
        16_384: (0.25, 120, 120),
    }
    assert audit.blind_counts[0].questions == 120


def test_the_door_and_the_page_have_the_same_table(public: Path, tmp_path: Path) -> None:
    import mmlongbench as mm

    predictions(tmp_path / "m.jsonl", FOUR, FOURS, lambda number, depth: number < 90)
    predictions(tmp_path / "m.none.jsonl", FOUR, FOURS, lambda number, depth: number < 30, "none")
    found = mm.compare_contexts(str(public), str(tmp_path))
    assert found == audit_contexts(public, [tmp_path], Progress(False))
    ran = command("shortcuts", public, "--predictions", tmp_path, "--html", tmp_path / "page.html")
    assert ran.code == 0, ran.err
    page = (tmp_path / "page.html").read_text("utf-8")
    assert "□ needs the context</span>" in page
    assert '<td data-key="75.0">75.0</td>' in page or '<td data-key="0.75">75.0</td>' in page
