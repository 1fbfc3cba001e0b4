"""The targets that evaluation harnesses read: `inspect`, `lmms-eval` and `vlmevalkit`, read here without them.

`tests/loaders` reads the exports with the harnesses themselves.
"""

import ast
import base64
import importlib.util
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd
import pytest
import yaml
from exported import every_example, sequence_of, tree
from hostile_release import CHANGED, FILE, FOLDER
from once import linked, once
from packaging.requirements import Requirement
from PIL import Image

import mmlongbench as mm
from mmlongbench.prompt import Prompt

TARGETS = ("inspect", "lmms-eval", "vlmevalkit")
DEPTHS = [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
ANSWERS = ["0012", "2017-01-01", "None", "N/A", "null", "12"]
"""The answers of the hostile release."""
Sequence = list[tuple[str, str]]


@pytest.fixture(scope="session")
def outs(hostile: Path, families: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Exports of the hostile release by target, and in `placed` of a question at six depths; not to be changed."""

    def make(folder: Path) -> None:
        for target in TARGETS:
            mm.export(hostile, target, folder / target)
            chosen = {"datasets": "vh_single", "lengths": "8K", "limit": 6}
            mm.export(families, target, folder / "placed" / target, **chosen)  # type: ignore[arg-type]

    return once(tmp_path_factory, "harnesses", make)


def json_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text("utf-8").split("\n") if line]


def samples(out: Path, name: str = "mmlongdoc_1K") -> list[dict[str, Any]]:
    """The samples of Inspect."""
    return json_lines(out / "inspect" / f"{name}.jsonl")


def rows(out: Path, name: str = "mmlongdoc_1K") -> list[dict[str, Any]]:
    """The rows of lmms-eval."""
    return json_lines(out / "data" / f"{name}.jsonl")


def table(out: Path, length: str = "1K") -> pd.DataFrame:
    """The table, as VLMEvalKit reads it."""
    return pd.read_csv(out / f"MMLongBench_{length}.tsv", sep="\t")


def keys(out: Path, length: str = "1K") -> list[dict[str, Any]]:
    """The index beside the table of VLMEvalKit."""
    return json_lines(out / f"MMLongBench_{length}.index.jsonl")


def of_inspect(out: Path, release: Path, sample: dict[str, Any]) -> Sequence:
    """The parts of a sample; images are found from the folder of the samples."""
    (message,) = sample["input"]
    assert message["role"] == "user"
    root = release / "mmlb_image"
    return [
        ("text", part["text"])
        if part["type"] == "text"
        else ("image", str((out / "inspect" / part["image"]).resolve(strict=True).relative_to(root)))
        for part in message["content"]
    ]


def of_lmms_eval(row: dict[str, Any]) -> Sequence:
    (message,) = json.loads(row["messages"])
    assert message["role"] == "user"
    return [
        ("text", part["text"]) if part["type"] == "text" else ("image", part["image_url"]["url"])
        for part in message["content"]
    ]


def of_vlmevalkit(row: Any, root: Path) -> Sequence:
    """The parts of a prompt, split at the markers as the class `MMLongBench` of VLMEvalKit does it."""
    images = ast.literal_eval(row["image_path"])
    assert all((root / path).is_file() for path in images)
    pieces = [piece for piece in re.split("(<image token>|<image>)", row["question"]) if piece]
    found = [("image", images.pop(0)) if piece in ("<image token>", "<image>") else ("text", piece) for piece in pieces]
    assert images == []
    return found


@pytest.mark.parametrize("target", TARGETS)
def test_the_same_release_gives_the_same_bytes_wherever_it_is_written(
    target: str, hostile: Path, outs: Path, tmp_path: Path
) -> None:
    done = mm.export(hostile, target, tmp_path / "deep/er/b")
    assert (done.examples, done.left_out) == (6, ())
    link = tmp_path / "deep/er/b/release"
    assert tree(link.parent) == tree(outs / target)
    assert not link.readlink().is_absolute()
    assert link.resolve() == hostile
    assert not [path for path in (tmp_path / "deep").rglob("*") if path.suffix == ".jpg"]
    written = b"".join(path.read_bytes() for path in (tmp_path / "deep").rglob("*") if path.is_file())
    assert str(hostile).encode() not in written
    assert str(tmp_path).encode() not in written


@pytest.mark.parametrize("target", TARGETS)
def test_what_an_export_cannot_do_is_refused_before_anything_is_written(
    target: str, hostile: Path, tmp_path: Path
) -> None:
    with pytest.raises(mm.ReleaseError, match="--images file-url"):
        mm.export(hostile, target, tmp_path / "out", images="file-url")
    copy = shutil.copytree(hostile, tmp_path / "copy")
    lines = (copy / FILE).read_bytes().splitlines(keepends=True)
    (copy / FILE).write_bytes(b"".join([*lines, lines[0]]))
    with pytest.raises(mm.ReleaseError, match=r"two examples have the name '0012'.*audit"):
        mm.export(copy, target, tmp_path / "out")
    (copy / FILE).write_bytes(b"")
    with pytest.raises(mm.ReleaseError, match="no example is chosen"):
        mm.export(copy, target, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("target", TARGETS)
def test_a_file_without_an_example_is_left_out(target: str, finished: Path, tmp_path: Path) -> None:
    copy = linked(finished, tmp_path / "copy")
    (copy / "mmlb_data/documentQA/mmlongdoc_K2.jsonl").write_bytes(b"")
    mm.export(copy, target, tmp_path / "out")
    written = tree(tmp_path / "out")
    assert any("1K" in path for path in written)
    assert not any("2K" in path for path in written)


@pytest.mark.parametrize("target", TARGETS)
def test_the_page_quotes_the_model_and_counts_the_examples(target: str, hostile: Path, tmp_path: Path) -> None:
    mm.export(hostile, target, tmp_path / "out", model="it's a model; $HOME")
    text = (tmp_path / "out/README.md").read_text("utf-8")
    assert shlex.quote("it's a model; $HOME") in text
    assert "| 6 | doc_qa | 64 | 904 | 4 |" in text
    assert "$model" not in text
    assert target != "vlmevalkit" or "M.DATASET_SETS['MMLongBench_1K'] = []; runpy.run_path" in text
    assert all(len(line) <= 160 for line in text.split("\n") if not line.startswith("python"))
    (code,) = [path for path in (tmp_path / "out").rglob("*.py") if "release" not in path.parts]
    compile(code.read_text("utf-8"), os.fspath(code), "exec")


def test_inspect_is_given_what_a_scorer_needs(outs: Path, hostile: Path) -> None:
    out, examples = outs / "inspect", [*every_example(hostile)]
    found, scorer = samples(out), mm.scorer(out / "release")
    assert found[0].keys() == {"id", "input", "target", "metadata"}
    assert (found[0]["id"], found[0]["target"]) == ("0012", "0012")
    assert found[0]["metadata"] == {
        "key": {"file": "documentQA/mmlongdoc_K1.jsonl", "id": "0012"},
        "place": 0,
        "dataset": "mmlongdoc",
        "length": 1024,
        "metric": "doc_qa",
        "answer": "0012",
        "cluster": "ash",
        "tokens": {"text": 116, "image": 784},
        "digest": examples[0].digest,
    }
    assert [sample["target"] for sample in found] == ANSWERS
    assert [sample["id"] for sample in found][2:4] == ['a/b, "c"\n=1+1', "N/A"]
    for sample, example in zip(found, examples, strict=True):
        assert of_inspect(out, hostile, sample) == sequence_of(example)
        assert all(FOLDER in part["image"] for part in sample["input"][0]["content"] if part["type"] == "image")
        data = sample["metadata"]
        assert scorer.score(data["key"], sample["target"], data["place"]).score == 1.0


def test_inspect_has_a_task_for_each_cell(outs: Path) -> None:
    text = (outs / "inspect/inspect/mmlb.py").read_text("utf-8")
    functions = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    tasks = [node for node in functions if [ast.unparse(each) for each in node.decorator_list] == ["task"]]
    assert [task.name for task in tasks] == ["mmlb_mmlongdoc_1K"]
    assert ast.unparse(tasks[0].body[-1]) == "return cell('mmlongdoc_1K', 'doc_qa', 64)"
    assert "in ('doc_qa',)}" in text


@pytest.mark.parametrize(
    ("form", "start"), [("path", "/"), ("data-uri", "data:image/jpeg;base64,"), ("http://h/i", "http://h/i/")]
)
def test_images_of_inspect_can_have_other_addresses(hostile: Path, tmp_path: Path, form: str, start: str) -> None:
    mm.export(hostile, "inspect", tmp_path / "out", images=form)
    (message,) = samples(tmp_path / "out")[0]["input"]
    found = [part["image"] for part in message["content"] if part["type"] == "image"]
    assert all(address.startswith(start) for address in found)
    file = hostile / "mmlb_image" / next(every_example(hostile)).prompt.images[0]
    if form == "path":
        assert found[0] == str(file)
    elif form == "data-uri":
        assert base64.b64decode(found[0].removeprefix(start)) == file.read_bytes()
    else:
        assert found[0].startswith("http://h/i/mmlongbench-doc/a%20b%23%2541")
        assert "%24x%7Bz%7D%FF/" in found[0]


def of_turns(release: Path, monkeypatch: pytest.MonkeyPatch, prompts: dict[str, Prompt]) -> None:
    """Let the task give some examples prompts of several turns."""
    builder = type(mm.open_release(release).builder("mmlongdoc"))
    prompt = builder.prompt
    monkeypatch.setattr(builder, "prompt", lambda self, record: prompts.get(record["id"]) or prompt(self, record))


def test_turns_keep_their_roles_and_what_a_harness_cannot_show_is_named(
    hostile: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    image = mm.Image(next(every_example(hostile)).prompt.images[0])
    talk = Prompt.of_turns([("user", ["a", image]), ("assistant", ["b"]), ("user", ["c"])])
    shown = Prompt.of_turns([("user", ["a"]), ("assistant", ["b", image]), ("user", ["c"])])
    of_turns(hostile, monkeypatch, {"0012": talk, "2017-01-01": shown})
    done = mm.export(hostile, "inspect", tmp_path / "inspect", limit=2)
    assert done.examples == 1
    (left,) = done.left_out
    assert left.startswith("documentQA/mmlongdoc_K1.jsonl, 2017-01-01: ")
    assert "--images path" in left
    (sample,) = samples(tmp_path / "inspect")
    turns = [(each["role"], len(each["content"])) for each in sample["input"]]
    assert turns == [("user", 2), ("assistant", 1), ("user", 1)]
    assert sample["input"][1]["content"] == [{"type": "text", "text": "b"}]
    done = mm.export(hostile, "vlmevalkit", tmp_path / "vlmevalkit")
    assert (done.examples, len(table(tmp_path / "vlmevalkit"))) == (4, 4)
    named = [left.split(": ")[0] for left in done.left_out]
    assert named == [f"documentQA/mmlongdoc_K1.jsonl, {id}" for id in ("0012", "2017-01-01")]


TASK: dict[str, Any] = {
    "task": "mmlb_mmlongdoc_1K",
    "dataset_path": "json",
    "dataset_kwargs": {"data_files": {"test": "data/mmlongdoc_1K.jsonl"}},
    "test_split": "test",
    "output_type": "generate_until",
    **{
        name: f"!utils.{name}"
        for name in ("doc_to_messages", "doc_to_visual", "doc_to_text", "doc_to_target", "process_results")
    },
    "generation_kwargs": {"max_new_tokens": 64, "temperature": 0, "do_sample": False, "until": []},
    "metric_list": [
        {"metric": "mmlb_score", "aggregation": "mean", "higher_is_better": True},
        {"metric": "mmlb_failed", "aggregation": "mean", "higher_is_better": False},
    ],
    "metadata": [{"version": 1.0}],
}


def configured(out: Path) -> Any:
    """The task of lmms-eval, whose functions are texts."""
    text = (out / "mmlb/mmlb_mmlongdoc_1K.yaml").read_text("utf-8")
    return yaml.safe_load(re.sub(r"!function '(.*)'", r"'!\1'", text))


def test_a_task_of_lmms_eval_is_configured(outs: Path, hostile: Path, tmp_path: Path) -> None:
    out = outs / "lmms-eval"
    assert configured(out) == TASK
    group = yaml.safe_load((out / "mmlb/mmlb.yaml").read_text("utf-8"))
    assert group == {"group": "mmlb", "task": ["mmlb_mmlongdoc_1K"]}
    assert sorted(path.name for path in (out / "mmlb").iterdir()) == ["mmlb.yaml", "mmlb_mmlongdoc_1K.yaml", "utils.py"]
    mm.export(hostile, "lmms-eval", tmp_path / "out", max_tokens=7)
    assert configured(tmp_path / "out")["generation_kwargs"]["max_new_tokens"] == 7


def test_a_row_of_lmms_eval_has_only_texts_that_no_reader_takes_for_numbers_or_dates(outs: Path) -> None:
    found = rows(outs / "lmms-eval")
    assert list(found[0]) == ["key", "place", "messages", "answer"]
    assert found[0]["key"] == '{"file": "documentQA/mmlongdoc_K1.jsonl", "id": "0012"}'
    assert (found[0]["place"], found[0]["answer"]) == (0, '"0012"')
    assert all(row[name][0] in '{["' for row in found for name in ("key", "messages", "answer"))


def utils(out: Path) -> ModuleType:
    """The generated module, imported as lmms-eval does it."""
    spec = importlib.util.spec_from_file_location("utils", out / "mmlb/utils.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_functions_of_lmms_eval_give_texts_images_and_scores(outs: Path, hostile: Path) -> None:
    made = utils(outs / "lmms-eval")
    for row, example in zip(rows(outs / "lmms-eval"), every_example(hostile), strict=True):
        expected = sequence_of(example)
        assert of_lmms_eval(row) == expected
        (message,) = made.doc_to_messages(row)
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
        assert made.process_results(row, [f"Answer: {example.answer}"]) == {"mmlb_score": 1.0, "mmlb_failed": 0.0}
        assert made.process_results(row, ["<think>x</think>wrong"]) == {"mmlb_score": 0.0, "mmlb_failed": 0.0}


def test_a_failed_request_of_lmms_eval_has_no_score_even_if_its_text_has_the_answer(outs: Path) -> None:
    row, made = rows(outs / "lmms-eval")[-1], utils(outs / "lmms-eval")
    assert json.loads(row["answer"]) == "12"
    assert made.process_results(row, ["[LMMS_EVAL_REQUEST_FAILED after 5 retries] 12"]) == {"mmlb_failed": 1.0}
    assert made.process_results(row, ["12 [LMMS_EVAL_REQUEST_FAILED"]) == {"mmlb_score": 1.0, "mmlb_failed": 0.0}
    assert made.process_results(row, [None]) == {"mmlb_score": 0.0, "mmlb_failed": 0.0}


def test_a_row_of_vlmevalkit_has_the_columns_of_its_class(outs: Path, hostile: Path) -> None:
    found = table(outs / "vlmevalkit")
    assert " ".join(found.columns) == (
        "index question_id question answer image_path mmlb_subset task source_dataset question_type tags extra_info"
    )
    assert list(found["index"]) == [0, 1, 2, 3, 4, 5]
    row = found.iloc[5]
    fields = ["mmlb_subset", "task", "source_dataset", "question_type", "tags"]
    assert list(row[fields]) == ["documentQA_1", "documentQA", "mmlongdoc", "open", '["multi-image"]']
    assert json.loads(row["extra_info"]) == {
        "file": "documentQA/mmlongdoc_K1.jsonl",
        "id": "12",
        "answer": "12",
        "answer_format": "Integer",
        "question": "---\n- a: &b *c !d\n# not a heading\n```",
        "dataset_name": "mmlongdoc",
        "length": 1024,
        "tokens": {"text": 119, "image": 784},
    }
    assert list(found["answer"].isna()) == [False, False, True, True, True, False]  # pandas reads no such answer
    assert [json.loads(extra)["answer"] for extra in found["extra_info"]] == ANSWERS
    for number, (key, example) in enumerate(zip(keys(outs / "vlmevalkit"), every_example(hostile), strict=True)):
        expected = {"index": number, **example.key, "place": number, "dataset": "mmlongdoc", "digest": example.digest}
        assert {name: value for name, value in key.items() if name != "has_changed_markers"} == expected


def test_a_literal_marker_is_no_image_for_vlmevalkit(outs: Path, hostile: Path, tmp_path: Path) -> None:
    out, changed = outs / "vlmevalkit", 0
    for (_, row), key, example in zip(table(out).iterrows(), keys(out), every_example(hostile), strict=True):
        expected = sequence_of(example)
        if key.get("has_changed_markers"):
            changed += 1
            assert of_vlmevalkit(row, hostile / "mmlb_image") != expected
            expected = [(kind, said.replace("<image token>", "< image token >")) for kind, said in expected]
        assert of_vlmevalkit(row, hostile / "mmlb_image") == expected
    assert changed == CHANGED
    done = mm.export(hostile, "vlmevalkit", tmp_path / "out", images="path")
    assert [note for note in done.notes if note.startswith(f"{CHANGED} prompts ") and "has_changed_markers" in note]
    first = ast.literal_eval(table(tmp_path / "out").iloc[0]["image_path"])
    assert first == [str(hostile / "mmlb_image" / path) for path in next(every_example(hostile)).prompt.images]


def test_results_of_vlmevalkit_become_predictions(outs: Path, hostile: Path, tmp_path: Path) -> None:
    out = outs / "vlmevalkit"
    results = table(out).assign(prediction=[f"Answer: {example.answer}" for example in every_example(hostile)])
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


def test_every_target_names_the_placement_and_the_place(outs: Path, families: Path) -> None:
    examples = [each for each in every_example(families, ["vh_single"]) if each.length == 8192][:6]
    id = examples[0].id
    sampled = samples(outs / "placed/inspect", "vh_single_8K")
    assert [sample["id"] for sample in sampled] == [f"{id}@depth={depth}" for depth in DEPTHS]
    assert [sample["metadata"]["place"] for sample in sampled] == [0, 1, 2, 3, 4, 5]
    assert len({sample["metadata"]["cluster"] for sample in sampled}) == 1
    found, made = rows(outs / "placed/lmms-eval", "vh_single_8K"), utils(outs / "placed/lmms-eval")
    assert [json.loads(row["key"])["depth"] for row in found] == DEPTHS
    assert [row["place"] for row in found] == [0, 1, 2, 3, 4, 5]
    refused = [made.process_results(row, ["I cannot see it."])["mmlb_score"] for row in found]
    yes = json.loads(found[0]["answer"]) == "Yes"
    assert refused == [float(guess == yes) for guess in (False, True, True, False, False, True)]
    tabled = table(outs / "placed/vlmevalkit", "8K")
    assert (list(tabled["index"]), {*tabled["task"]}) == ([0, 1, 2, 3, 4, 5], {"NIAH"})
    assert [key["depth"] for key in keys(outs / "placed/vlmevalkit", "8K")] == DEPTHS
    for (_, row), example in zip(tabled.iterrows(), examples, strict=True):
        assert of_vlmevalkit(row, families / "mmlb_image") == sequence_of(example)


@pytest.mark.parametrize("name", ["inspect", "lmms_eval"])
def test_a_frozen_environment_has_what_the_project_needs(name: str) -> None:
    root = Path(__file__).parents[2]
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    needed = map(Requirement, [*project["dependencies"], *project["optional-dependencies"]["scoring"]])
    lines = (root / f"tests/loaders/requirements-{name}.txt").read_text("utf-8").splitlines()
    pinned = dict(line.lower().replace("_", "-").split("==") for line in lines if "==" in line)
    assert [str(each) for each in needed if not each.specifier.contains(pinned.get(each.name, "0"))] == []
