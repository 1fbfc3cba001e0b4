"""Which files are read as predictions, and what is said about files that cannot be compared."""

from pathlib import Path
from typing import Any

import pytest
from context_answers import DEPTHS, FOUR, four, predictions, public_files, write

import mmlongbench as mm
from mmlongbench.io.progress import Progress
from mmlongbench.release.digests import example_digest
from mmlongbench.scoring import staleness
from mmlongbench.shortcuts.contexts.audit import audit_contexts

RECORDS = [four(number, depth) for number in range(8) for depth in DEPTHS]


def always(number: int, depth: float) -> bool:
    return True


@pytest.fixture(scope="module")
def public(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of one public file; not to be changed."""
    return public_files(tmp_path_factory.mktemp("contexts"), {FOUR: RECORDS})


def test_a_file_of_several_contexts_is_refused(public: Path, tmp_path: Path) -> None:
    one = predictions(tmp_path / "one.jsonl", FOUR, RECORDS, always)
    two = predictions(tmp_path / "two.jsonl", FOUR, RECORDS, always, "none")
    both = tmp_path / "both.jsonl"
    both.write_text(one.read_text("utf-8") + two.read_text("utf-8"), "utf-8")
    with pytest.raises(
        mm.ScoringError, match=r"both\.jsonl: has predictions of m, released prompt and of m, none; give"
    ):
        audit_contexts(public, [both], Progress(False))


def test_a_file_of_several_models_is_refused(public: Path, tmp_path: Path) -> None:
    one = predictions(tmp_path / "one.jsonl", FOUR, RECORDS, always)
    two = predictions(tmp_path / "two.jsonl", FOUR, RECORDS, always, model="other")
    both = tmp_path / "both.jsonl"
    both.write_text(one.read_text("utf-8") + two.read_text("utf-8"), "utf-8")
    with pytest.raises(mm.ScoringError, match="has predictions of m, released prompt and of other, released prompt"):
        audit_contexts(public, [both], Progress(False))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "no line is a JSON object; expected predictions of `mmlongbench run`"),
        ("null\n[1]\n{", "no line is a JSON object"),
        (
            '{"file": "NIAH/other_K8.jsonl", "id": "1", "prediction": "x"}\n',
            "no prediction fits .* the release does not have",
        ),
        ('{"a": 1}\n', r"no prediction fits .* without a field they need: p\.jsonl, line 1: file"),
        (f'{{"file": "{FOUR}", "id": "mm-niah-0"}}\n', r"p\.jsonl, line 1: prediction; give what `mmlongbench run`"),
        ('{"metric": "m", "status": "scored"}\n', "Field required; is it a scores file"),
        ('{"metric": "m", "status": "scored"}\n{"file": "x"}\n', "has both predictions and scores"),
    ],
)
def test_files_that_are_no_predictions_are_refused_in_one_line(
    public: Path, tmp_path: Path, content: str, said: str
) -> None:
    path = tmp_path / "p.jsonl"
    path.write_text(content, "utf-8")
    with pytest.raises(mm.MMLongBenchError, match=said) as refused:
        audit_contexts(public, [path], Progress(False))
    assert "\n" not in str(refused.value)


def test_missing_files_and_empty_folders_are_named(public: Path, tmp_path: Path) -> None:
    with pytest.raises(mm.ScoringError, match=r"gone\.jsonl: no such file of predictions"):
        audit_contexts(public, [tmp_path / "gone.jsonl"], Progress(False))
    with pytest.raises(mm.ScoringError, match="no predictions there"):
        audit_contexts(public, [tmp_path], Progress(False))


def test_lines_without_a_model_take_the_name_of_their_file(public: Path, tmp_path: Path) -> None:
    predictions(tmp_path / "qwen.jsonl", FOUR, RECORDS, always, model="")
    predictions(tmp_path / "qwen.none.jsonl", FOUR, RECORDS, always, "none", model="")
    assert audit_contexts(public, [tmp_path], Progress(False)).models == ("qwen",)


def test_without_the_released_prompt_nothing_is_compared(public: Path, tmp_path: Path) -> None:
    predictions(tmp_path / "m.none.jsonl", FOUR, RECORDS, always, "none")
    audit = audit_contexts(public, [tmp_path], Progress(False))
    assert [row.differences for row in audit.rows] == [()] * len(audit.rows)
    assert audit.notes == ("m: no predictions of the released prompt, so nothing is compared; give them too",)


def test_examples_that_the_model_cannot_take_are_left_out_and_counted(public: Path, tmp_path: Path) -> None:
    path = predictions(tmp_path / "m.jsonl", FOUR, RECORDS[:12], always)
    skipped = [{"file": FOUR, "id": each["id"], "depth": each["depth"], "model": "m"} for each in RECORDS[12:]]
    more = write(tmp_path / "more.jsonl", [{**each, "skipped": "context-length"} for each in skipped])
    predictions(tmp_path / "m.none.jsonl", FOUR, RECORDS, always, "none")
    audit = audit_contexts(public, [path, more, tmp_path / "m.none.jsonl"], Progress(False))
    assert [(each.context, each.questions) for each in audit.rows[0].means] == [("", 6), ("none", 8)]
    assert "m, released prompt: 4 answers have no score and are left out: context-length 4" in audit.notes


def test_a_file_given_twice_counts_once(public: Path, tmp_path: Path) -> None:
    path = predictions(tmp_path / "m.jsonl", FOUR, RECORDS, always)
    once = audit_contexts(public, [path], Progress(False))
    assert audit_contexts(public, [path, path, tmp_path], Progress(False)) == once


def test_predictions_of_other_examples_are_refused(finished: Path, tmp_path: Path) -> None:
    example = next(mm.open_release(finished).examples("mmlongdoc", "2K"))
    line = {**example.key, "prediction": "hard", "model": "m", "digest": "0" * 64}
    with pytest.raises(mm.ScoringError, match="stale"):
        audit_contexts(finished, [write(tmp_path / "m.jsonl", [line])], Progress(False))


def test_the_digest_of_an_example_is_computed_once_for_all_models_and_contexts(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    computed = []

    def digest(*given: Any) -> str:
        computed.append(given)
        return example_digest(*given)

    examples = list(mm.open_release(finished).examples("mmlongdoc", "2K"))
    for model in ("one", "two"):
        for context in ("", "none", "shuffled"):
            common = {"model": model, "prediction": "hard", **({"context": context} if context else {})}
            said = [{**each.key, **common, "digest": each.digest} for each in examples]
            write(tmp_path / "predictions" / f"{model}.{context or 'full'}.jsonl", said)
    monkeypatch.setattr(staleness, "example_digest", digest)
    audit = audit_contexts(finished, [tmp_path / "predictions"], Progress(False))
    assert audit.models == ("one", "two")
    assert len(computed) == len(examples)
