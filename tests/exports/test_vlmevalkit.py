"""The target `vlmevalkit`: tables as VLMEvalKit reads them, by code that follows its class `MMLongBench`."""

import ast
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from harness_exports import examples_of, export, sequence_of
from hostile_release import CHANGED

import mmlongbench as mm
from mmlongbench.exports.vlmevalkit import VLMEvalKit
from mmlongbench.prompt import Prompt
from mmlongbench.release import opened

COLUMNS = [
    *("index", "question_id", "question", "answer", "image_path", "mmlb_subset", "task", "source_dataset"),
    *("question_type", "tags", "extra_info"),
]


@pytest.fixture(scope="module")
def out(hostile: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("vlmevalkit") / "out"
    done = export(VLMEvalKit, hostile, folder)
    assert done.notes == (
        f"{CHANGED} prompts have the text <image> or <image token>, which VLMEvalKit takes for an image; it is "
        "written with blanks, and `has_changed_markers` in *.index.jsonl marks these prompts",
        "VLMEvalKit does not know MMLongBench_1K; README.md says how to register them",
    )
    return folder


def table(out: Path, length: str = "1K") -> pd.DataFrame:
    """The table, as VLMEvalKit reads it."""
    return pd.read_csv(out / f"MMLongBench_{length}.tsv", sep="\t")


def keys(out: Path, length: str = "1K") -> list[dict[str, Any]]:
    lines = (out / f"MMLongBench_{length}.index.jsonl").read_text("utf-8").split("\n")
    return [json.loads(line) for line in lines if line]


def parts(row: Any, root: Path) -> list[tuple[str, str]]:
    """The parts of a prompt, split at the markers."""
    images = ast.literal_eval(row["image_path"])
    assert all((root / path).is_file() for path in images)
    found = []
    for piece in re.split("(<image token>|<image>)", row["question"]):
        if piece in ("<image token>", "<image>"):
            found.append(("image", images.pop(0)))
        elif piece:
            found.append(("text", piece))
    assert images == []
    return found


def test_a_row_has_the_columns_of_the_class(out: Path) -> None:
    found = table(out)
    assert list(found.columns) == COLUMNS
    assert list(found["index"]) == [0, 1, 2, 3, 4, 5]
    row = found.iloc[5]
    fields = ["mmlb_subset", "task", "source_dataset", "question_type", "tags"]
    assert list(row[fields]) == ["documentQA_1", "documentQA", "mmlongdoc", "open", '["multi-image"]']
    extra = json.loads(row["extra_info"])
    assert extra == {
        "file": "documentQA/mmlongdoc_K1.jsonl",
        "id": "12",
        "answer": "12",
        "answer_format": "Integer",
        "question": "---\n- a: &b *c !d\n# not a heading\n```",
        "dataset_name": "mmlongdoc",
        "length": 1024,
        "tokens": {"text": 119, "image": 784},
    }


def test_parts_are_those_of_the_release_and_a_literal_marker_is_no_image(out: Path, hostile: Path) -> None:
    changed = 0
    for (_, row), key, example in zip(table(out).iterrows(), keys(out), examples_of(hostile), strict=True):
        expected = sequence_of(example)
        if key.get("has_changed_markers"):
            changed += 1
            assert parts(row, hostile / "mmlb_image") != expected
            expected = [(kind, said.replace("<image token>", "< image token >")) for kind, said in expected]
        assert parts(row, hostile / "mmlb_image") == expected
    assert changed == CHANGED


def test_typed_answers_survive_where_pandas_reads_none_of_them(out: Path) -> None:
    found = table(out)
    assert list(found["answer"].isna()) == [False, False, True, True, True, False]
    typed = [json.loads(extra)["answer"] for extra in found["extra_info"]]
    assert typed == ["0012", "2017-01-01", "None", "N/A", "null", "12"]


def test_the_index_names_each_example(out: Path, hostile: Path) -> None:
    for number, (key, example) in enumerate(zip(keys(out), examples_of(hostile), strict=True)):
        expected = {"index": number, **example.key, "place": number, "dataset": "mmlongdoc", "digest": example.digest}
        assert {name: value for name, value in key.items() if name != "has_changed_markers"} == expected


def test_results_become_predictions(out: Path, hostile: Path, tmp_path: Path) -> None:
    results = table(out).assign(prediction=[f"Answer: {example.answer}" for example in examples_of(hostile)])
    results.loc[0, "prediction"] = "Failed to obtain answer via API."
    results.loc[3, "prediction"] = "N/A"
    results.to_csv(tmp_path / "results.tsv", sep="\t", index=False)
    command = [sys.executable, str(out / "predictions.py"), "results.tsv", str(out / "MMLongBench_1K.index.jsonl")]
    ran = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True)
    assert ran.stderr == "1 of 6 requests failed\n"
    (tmp_path / "predictions.jsonl").write_text(ran.stdout, "utf-8")
    scores = mm.score(hostile, tmp_path / "predictions.jsonl")
    (cell,) = scores.cells
    assert (cell.examples, cell.absent) == (6, 1)
    assert cell.score == pytest.approx(5 / 6)
    assert [(problem.reason, problem.count) for problem in scores.problems] == [("absent", 1)]


def test_one_table_holds_all_placements(placed: Path, tmp_path: Path) -> None:
    export(VLMEvalKit, placed, tmp_path / "out")
    found = table(tmp_path / "out")
    assert list(found["index"]) == [0, 1, 2, 3, 4, 5]
    assert {*found["task"]} == {"NIAH"}
    assert [key["depth"] for key in keys(tmp_path / "out")] == [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    for (_, row), example in zip(found.iterrows(), examples_of(placed), strict=True):
        assert parts(row, placed / "mmlb_image") == sequence_of(example)


def test_images_can_have_absolute_paths(hostile: Path, tmp_path: Path) -> None:
    export(VLMEvalKit, hostile, tmp_path / "out", images="path")
    first = ast.literal_eval(table(tmp_path / "out").iloc[0]["image_path"])
    assert first == [str(hostile / "mmlb_image" / path) for path in examples_of(hostile)[0].prompt.images]


def test_a_conversation_of_several_turns_is_reported(
    hostile: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    builder = type(opened.open_release(hostile).builder("mmlongdoc"))
    prompt = builder.prompt

    def talk(self: Any, record: dict[str, Any]) -> Prompt:
        if record["id"] != "12":
            return prompt(self, record)
        return Prompt.of_turns([("user", ["a"]), ("assistant", ["b"]), ("user", ["c"])])

    monkeypatch.setattr(builder, "prompt", talk)
    done = export(VLMEvalKit, hostile, tmp_path / "out")
    assert (done.examples, len(table(tmp_path / "out"))) == (5, 5)
    assert done.left_out == ("documentQA/mmlongdoc_K1.jsonl, 12: several turns, and a row has one",)


def test_the_readme_registers_what_vlmevalkit_does_not_know(out: Path) -> None:
    text = (out / "README.md").read_text("utf-8")
    assert "M.DATASET_SETS['MMLongBench_1K'] = []; runpy.run_path" in text
    assert "--data MMLongBench_1K --model MODEL --mode infer" in text
    assert "PRED_FORMAT=tsv" in text
