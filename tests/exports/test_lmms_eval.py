"""The target `lmms-eval`: tasks, rows and functions, read without lmms-eval (`tests/loaders` reads them with it)."""

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from harness_exports import examples_of, export, sequence_of
from PIL import Image

from mmlongbench.exports.lmms_eval import LmmsEval

TASK = """\
task: mmlb_mmlongdoc_1K
dataset_path: json
dataset_kwargs:
  data_files:
    test: data/mmlongdoc_1K.jsonl
test_split: test
output_type: generate_until
doc_to_messages: !function 'utils.doc_to_messages'
doc_to_visual: !function 'utils.doc_to_visual'
doc_to_text: !function 'utils.doc_to_text'
doc_to_target: !function 'utils.doc_to_target'
process_results: !function 'utils.process_results'
generation_kwargs:
  max_new_tokens: 64
  temperature: 0
  do_sample: false
  until: []
metric_list:
- metric: mmlb_score
  aggregation: mean
  higher_is_better: true
- metric: mmlb_failed
  aggregation: mean
  higher_is_better: false
metadata:
- version: 1.0
"""


@pytest.fixture(scope="module")
def out(hostile: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lmms") / "out"
    export(LmmsEval, hostile, folder)
    return folder


def rows(out: Path, name: str = "mmlongdoc_1K") -> list[dict[str, Any]]:
    lines = (out / "data" / f"{name}.jsonl").read_text("utf-8").split("\n")
    return [json.loads(line) for line in lines if line]


def utils(out: Path) -> ModuleType:
    """The generated module, imported as lmms-eval does it."""
    spec = importlib.util.spec_from_file_location("utils", out / "mmlb/utils.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_task_is_configured(out: Path) -> None:
    assert (out / "mmlb/mmlb_mmlongdoc_1K.yaml").read_text("utf-8") == TASK
    group = yaml.safe_load((out / "mmlb/mmlb.yaml").read_text("utf-8"))
    assert group == {"group": "mmlb", "task": ["mmlb_mmlongdoc_1K"]}
    assert sorted(path.name for path in (out / "mmlb").iterdir()) == ["mmlb.yaml", "mmlb_mmlongdoc_1K.yaml", "utils.py"]


def test_the_maximum_of_an_answer_can_be_chosen(hostile: Path, tmp_path: Path) -> None:
    export(LmmsEval, hostile, tmp_path / "out", max_tokens=7)
    assert "max_new_tokens: 7\n" in (tmp_path / "out/mmlb/mmlb_mmlongdoc_1K.yaml").read_text("utf-8")


def test_a_row_has_only_texts_that_no_reader_takes_for_numbers_or_dates(out: Path) -> None:
    first = rows(out)[0]
    assert list(first) == ["key", "place", "messages", "answer"]
    assert first["key"] == '{"file": "documentQA/mmlongdoc_K1.jsonl", "id": "0012"}'
    assert (first["place"], first["answer"]) == (0, '"0012"')
    assert all(row[name][0] in '{["' for row in rows(out) for name in ("key", "messages", "answer"))


def test_parts_are_those_of_the_release_in_their_order(out: Path, hostile: Path) -> None:
    for row, example in zip(rows(out), examples_of(hostile), strict=True):
        (message,) = json.loads(row["messages"])
        found = [
            ("text", part["text"]) if part["type"] == "text" else ("image", part["image_url"]["url"])
            for part in message["content"]
        ]
        assert found == sequence_of(example)
        assert message["role"] == "user"


def test_the_functions_give_texts_and_images(out: Path, hostile: Path) -> None:
    made = utils(out)
    for row, example in zip(rows(out), examples_of(hostile), strict=True):
        (message,) = made.doc_to_messages(row)
        expected = sequence_of(example)
        assert [part["type"] for part in message["content"]] == [kind for kind, _ in expected]
        for part, (kind, said) in zip(message["content"], expected, strict=True):
            if kind == "text":
                assert part == {"type": "text", "text": said}
            else:
                with Image.open(hostile / "mmlb_image" / said) as picture:
                    assert part["url"].tobytes() == picture.convert("RGB").tobytes()
        assert len(made.doc_to_visual(row)) == 4
        assert made.doc_to_text(row) == example.prompt.rendered()
        assert made.doc_to_target(row) == example.answer


def test_golds_score_1_and_wrong_answers_do_not(out: Path, hostile: Path) -> None:
    made = utils(out)
    for row, example in zip(rows(out), examples_of(hostile), strict=True):
        assert made.process_results(row, [f"Answer: {example.answer}"]) == {"mmlb_score": 1.0, "mmlb_failed": 0.0}
        assert made.process_results(row, ["<think>x</think>wrong"]) == {"mmlb_score": 0.0, "mmlb_failed": 0.0}


def test_a_failed_request_has_no_score_even_if_its_text_has_the_answer(out: Path) -> None:
    row, made = rows(out)[-1], utils(out)
    assert json.loads(row["answer"]) == "12"
    assert made.process_results(row, ["[LMMS_EVAL_REQUEST_FAILED after 5 retries] 12"]) == {"mmlb_failed": 1.0}
    assert made.process_results(row, ["12 [LMMS_EVAL_REQUEST_FAILED"]) == {"mmlb_score": 1.0, "mmlb_failed": 0.0}
    assert made.process_results(row, [None]) == {"mmlb_score": 0.0, "mmlb_failed": 0.0}


def test_rows_name_the_placement_and_the_place(placed: Path, tmp_path: Path) -> None:
    export(LmmsEval, placed, tmp_path / "out")
    found = rows(tmp_path / "out", "vh_single_1K")
    assert [json.loads(row["key"])["depth"] for row in found] == [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    assert [row["place"] for row in found] == [0, 1, 2, 3, 4, 5]
    made = utils(tmp_path / "out")
    refused = [made.process_results(row, ["I cannot see it."])["mmlb_score"] for row in found]
    yes = json.loads(found[0]["answer"]) == "Yes"
    assert refused == [float(guess == yes) for guess in (False, True, True, False, False, True)]
