"""The target `inspect`: samples and the file of tasks, read without Inspect (`tests/loaders` reads them with it)."""

import ast
import base64
import json
from pathlib import Path
from typing import Any

import pytest
from harness_exports import examples_of, export, sequence_of
from hostile_release import FOLDER

import mmlongbench as mm
from mmlongbench.exports.inspect_tasks import InspectTasks
from mmlongbench.prompt import Image, Prompt
from mmlongbench.release import opened
from mmlongbench.release.selecting import Selection


@pytest.fixture(scope="module")
def out(hostile: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("inspect") / "out"
    export(InspectTasks, hostile, folder)
    return folder


def samples(out: Path, name: str = "mmlongdoc_1K") -> list[dict[str, Any]]:
    lines = (out / "inspect" / f"{name}.jsonl").read_text("utf-8").split("\n")
    return [json.loads(line) for line in lines if line]


def test_a_sample_has_what_a_scorer_needs(out: Path, hostile: Path) -> None:
    first = samples(out)[0]
    assert list(first) == ["id", "input", "target", "metadata"]
    assert (first["id"], first["target"]) == ("0012", "0012")
    assert first["metadata"] == {
        "key": {"file": "documentQA/mmlongdoc_K1.jsonl", "id": "0012"},
        "place": 0,
        "dataset": "mmlongdoc",
        "length": 1024,
        "metric": "doc_qa",
        "answer": "0012",
        "cluster": "ash",
        "tokens": {"text": 116, "image": 784},
        "digest": examples_of(hostile)[0].digest,
    }


def test_parts_are_those_of_the_release_and_images_are_found_from_the_dataset(out: Path, hostile: Path) -> None:
    for sample, example in zip(samples(out), examples_of(hostile), strict=True):
        (message,) = sample["input"]
        assert message["role"] == "user"
        found = []
        for part in message["content"]:
            if part["type"] == "image":
                assert part["image"].startswith(f"../release/mmlb_image/{FOLDER}/")
                file = (out / "inspect" / part["image"]).resolve(strict=True)
                found.append(("image", str(file.relative_to(hostile / "mmlb_image"))))
            else:
                found.append(("text", part["text"]))
        assert found == sequence_of(example)


def test_targets_are_texts_as_they_are(out: Path) -> None:
    assert [sample["target"] for sample in samples(out)] == ["0012", "2017-01-01", "None", "N/A", "null", "12"]
    assert [sample["id"] for sample in samples(out)][2:4] == ['a/b, "c"\n=1+1', "N/A"]


def test_ids_are_unique_over_placements(placed: Path, tmp_path: Path) -> None:
    export(InspectTasks, placed, tmp_path / "out")
    found = samples(tmp_path / "out", "vh_single_1K")
    id = examples_of(placed)[0].id
    assert [sample["id"] for sample in found] == [f"{id}@depth={depth}" for depth in (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)]
    assert [sample["metadata"]["place"] for sample in found] == [0, 1, 2, 3, 4, 5]
    assert len({sample["metadata"]["cluster"] for sample in found}) == 1


def test_the_file_of_tasks_has_a_task_for_each_cell(out: Path) -> None:
    tree = ast.parse((out / "inspect/mmlb.py").read_text("utf-8"))
    tasks = [
        node
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and [ast.unparse(each) for each in node.decorator_list] == ["task"]
    ]
    assert [task.name for task in tasks] == ["mmlb_mmlongdoc_1K"]
    assert ast.unparse(tasks[0].body[-1]) == "return cell('mmlongdoc_1K', 'doc_qa', 64)"
    assert "in ('doc_qa',)}" in (out / "inspect/mmlb.py").read_text("utf-8")


@pytest.mark.parametrize(
    ("form", "start"), [("path", "/"), ("data-uri", "data:image/jpeg;base64,"), ("http://h/i", "")]
)
def test_images_can_have_other_addresses(hostile: Path, tmp_path: Path, form: str, start: str) -> None:
    export(InspectTasks, hostile, tmp_path / "out", images=form)
    example = examples_of(hostile)[0]
    (message,) = samples(tmp_path / "out")[0]["input"]
    found = [part["image"] for part in message["content"] if part["type"] == "image"]
    assert all(address.startswith(start) for address in found)
    file = hostile / "mmlb_image" / example.prompt.images[0]
    if form == "path":
        assert found[0] == str(file)
    elif form == "data-uri":
        assert base64.b64decode(found[0].removeprefix(start)) == file.read_bytes()
    else:
        assert found[0].startswith("http://h/i/mmlongbench-doc/a%20b%23%2541")
        assert "%24x%7Bz%7D%FF/" in found[0]


def test_turns_keep_their_roles_and_an_image_that_inspect_would_not_find_is_reported(
    hostile: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = examples_of(hostile)[0].prompt.images[0]
    talks = iter(
        [
            Prompt.of_turns([("user", ["a", Image(path)]), ("assistant", ["b"]), ("user", ["c"])]),
            Prompt.of_turns([("user", ["a"]), ("assistant", ["b", Image(path)]), ("user", ["c"])]),
        ]
        * 4
    )
    files = opened.open_release(hostile)
    builder = type(files.builder("mmlongdoc"))
    monkeypatch.setattr(builder, "prompt", lambda self, record: next(talks))
    done = export(InspectTasks, hostile, tmp_path / "out", selection=Selection(limit=2))
    assert done.examples == 1
    assert done.left_out == (
        "documentQA/mmlongdoc_K1.jsonl, 2017-01-01: an image in a turn of the model, whose path Inspect does not "
        "resolve; use --images path",
    )
    (sample,) = samples(tmp_path / "out")
    assert [(each["role"], len(each["content"])) for each in sample["input"]] == [
        ("user", 2),
        ("assistant", 1),
        ("user", 1),
    ]
    assert sample["input"][1]["content"] == [{"type": "text", "text": "b"}]


def test_the_scorer_of_the_release_takes_the_keys(out: Path) -> None:
    scorer = mm.scorer(out / "release")
    for sample in samples(out):
        said, data = sample["target"], sample["metadata"]
        assert scorer.score(data["key"], said, data["place"]).score == 1.0
