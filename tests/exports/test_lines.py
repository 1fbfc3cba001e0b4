"""The targets `openai` and `training`: lines of messages, read back part by part as trainers and clients read them."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from exported import MIXED, every_example, read_back, shown, tree

import mmlongbench as mm

FILES = {"openai": "train.jsonl", "sharegpt": "train.jsonl", "llava": "train.json"}
KEY = ("file", "id", "depth", "permutation")
Row = dict[str, Any]


pytestmark = pytest.mark.usefixtures("without_bars")


def key_of(line: Row) -> tuple[object, ...]:
    return tuple(line.get(name) for name in KEY)


def validated(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Messages as the types of OpenAI's library take them; parts are checked only when they are read."""
    from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming
    from pydantic import TypeAdapter

    kind: TypeAdapter[Any] = TypeAdapter(CompletionCreateParamsNonStreaming)
    body = kind.validate_python({"model": "m", "messages": messages})
    return [{**message, "content": list(message["content"])} for message in body["messages"]]


def lines(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for path in sorted(out.rglob("*.jsonl")) for line in path.read_bytes().splitlines()]


@pytest.mark.parametrize("form", ["file-url", "data-uri"])
def test_every_example_is_read_back_text_by_text_and_image_by_image(form: str, families: Path, tmp_path: Path) -> None:
    done = mm.export(families, "openai", tmp_path / "out", images=form, datasets=MIXED)
    examples = {key_of(example.key): example for example in every_example(families, MIXED)}
    found = lines(tmp_path / "out")
    assert len(found) == len(examples) == done.examples
    copied = 0
    for line in found:
        metadata = line["metadata"]
        example = examples.pop(key_of(metadata))
        expected = shown(families, example)
        assert read_back(validated(line["messages"])) == expected
        assert (metadata["answer"], metadata["digest"]) == (example.answer, example.digest)
        assert metadata["tokens"] == {"text": example.tokens.text, "image": example.tokens.image}
        copied += sum(len(part) for part in expected if isinstance(part, bytes))
    assert not examples
    assert done.bytes_copied == (copied if form == "data-uri" else 0)
    names = [str(path.relative_to(families / "mmlb_data")) for path in (families / "mmlb_data").rglob("*.jsonl")]
    public = {name for name in names if any(f"/{dataset}_" in name for dataset in MIXED)}
    assert tree(tmp_path / "out").keys() == {*public, "README.md"}


def test_odd_names_of_images_are_quoted(odd: Path, tmp_path: Path) -> None:
    mm.export(odd, "openai", tmp_path / "out")
    found = sorted(lines(tmp_path / "out"), key=lambda line: str(line["metadata"]["file"]))
    assert [read_back(line["messages"]) for line in found] == [shown(odd, example) for example in every_example(odd)]
    mm.export(odd, "openai", tmp_path / "web", images="https://host/images")
    content = lines(tmp_path / "web")[0]["messages"][0]["content"]
    urls = [part["image_url"]["url"] for part in content if "image_url" in part]
    assert urls
    assert all(url.startswith("https://host/images/a%20b%23c%2520d%3F%C3%A9%27s/") for url in urls)


def exported(release: Path, out: Path, form: str, **choices: Any) -> list[tuple[Row, Row]]:
    """Each conversation, with the line that says which example it is."""
    mm.export(release, "training", out, form=form, **choices)
    text = (out / FILES[form]).read_text("utf-8")
    rows = json.loads(text) if form == "llava" else [json.loads(line) for line in text.splitlines()]
    index = [json.loads(line) for line in (out / "examples.jsonl").read_text("utf-8").splitlines()]
    return list(zip(rows, index, strict=True))


def said(row: Row, out: Path) -> list[str | bytes]:
    """What a conversation shows: texts, and the bytes of images from the folder of the export."""
    if "messages" in row:
        content = [part for message in row["messages"] for part in message["content"]]
        return [p["text"] if p["type"] == "text" else (out / p["image_url"]["url"]).read_bytes() for p in content]
    images = iter(row.get("images") or row.get("image") or [])
    texts = [re.split("(<image>)", turn["value"]) for turn in row["conversations"]]
    parts = [part for turn in texts for part in turn if part]
    found = [(out / next(images)).read_bytes() if part == "<image>" else part for part in parts]
    assert next(images, None) is None
    return found


def with_fields(finished: Path, to: Path, fields: Row) -> list[Row]:
    """A copy of the tiny release in which the first record at 1K has other fields; its records."""
    shutil.copytree(finished, to)
    path = to / "mmlb_data/documentQA/mmlongdoc_K1.jsonl"
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    lines[0] |= fields
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return lines


@pytest.mark.parametrize("form", FILES)
def test_every_example_is_there_with_its_images_and_its_answer(form: str, families: Path, tmp_path: Path) -> None:
    from datasets import load_dataset

    examples = {key_of(example.key): example for example in every_example(families, MIXED)}
    scorer, count = mm.scorer(families), len(examples)
    found = exported(families, tmp_path / "out", form, datasets=MIXED)
    for row, about in found:
        example = examples.pop(key_of(about))
        *prompt, answer = said(row, tmp_path / "out")
        assert prompt == shown(families, example)
        assert isinstance(answer, str)
        assert scorer.score(example.key, answer).score == 1
        assert (about["tokens"], about["digest"]) == (example.tokens.total, example.digest)
    assert examples == {}
    options = {"data_files": str(tmp_path / "out" / FILES[form]), "cache_dir": str(tmp_path / "cache")}
    data = load_dataset("json", **options)["train"]
    assert len(data) == count
    for row in data:
        if form == "openai":
            kinds = [part["type"] for message in row["messages"] for part in message["content"]]
            assert set(kinds) <= {"text", "image_url"}
            assert row["messages"][-1]["role"] == "assistant"
        else:
            text = "".join(turn["value"] for turn in row["conversations"])
            assert text.count("<image>") == len(row["images" if form == "sharegpt" else "image"] or [])
            assert [turn["from"] for turn in row["conversations"]] == ["human", "gpt"]
    if form == "sharegpt":
        info = json.loads((tmp_path / "out/dataset_info.json").read_text("utf-8"))["mix"]
        assert (tmp_path / "out" / info["file_name"]).is_file()
        assert (info["formatting"], {*info["columns"].values()}) == ("sharegpt", {*found[0][0]})


@pytest.mark.parametrize("form", FILES)
def test_literal_markers_are_no_images_and_hostile_texts_come_back(
    form: str, finished: Path, hostile: Path, tmp_path: Path
) -> None:
    """A question and its answer have markers in their words."""
    fields = {"question": "Is <image> or <video> a tag?", "answer": "<image>"}
    lines = with_fields(finished, tmp_path / "release", fields)
    rows = {
        about["id"]: (row, about) for row, about in exported(tmp_path / "release", tmp_path / "out", form, lengths="1K")
    }
    found = said(rows[lines[0]["id"]][0], tmp_path / "out")
    assert found[-1] == "< image >"
    assert isinstance(found[-2], str)
    assert "Is < image > or < video > a tag?" in found[-2]
    assert sum(isinstance(part, bytes) for part in found) == len(lines[0]["page_list"])
    assert [id for id, (_, about) in rows.items() if about.get("has_changed_markers")] == [lines[0]["id"]]
    examples = {example.id: example for example in every_example(hostile)}
    for row, about in exported(hostile, tmp_path / "hostile", form):
        assert said(row, tmp_path / "hostile")[:-1] == shown(hostile, examples[about["id"]])


@pytest.mark.parametrize("blank", ["", " \n", ["", " "]])
def test_an_example_without_an_answer_is_named_and_left_out(blank: object, finished: Path, tmp_path: Path) -> None:
    lines = with_fields(finished, tmp_path / "release", {"answer": blank})
    done = mm.export(tmp_path / "release", "training", tmp_path / "out", lengths="1K")
    (left,) = done.left_out
    assert left.startswith("documentQA/mmlongdoc_K1.jsonl, mmlongdoc_0: ")
    assert done.examples == len(lines) - 1
    assert (tmp_path / "out/README.md").read_text("utf-8").endswith(f"\n- left out: {left}\n")
    path = tmp_path / "release/mmlb_data/documentQA/mmlongdoc_K1.jsonl"
    path.write_text("".join(json.dumps({**line, "answer": blank}) + "\n" for line in lines), "utf-8")
    with pytest.raises(mm.ReleaseError, match=rf"no answer for any of the {len(lines)} chosen examples"):
        mm.export(tmp_path / "release", "training", tmp_path / "none", lengths="1K")
    assert not (tmp_path / "none").exists()


def test_bytes_are_the_same_wherever_the_release_is_and_images_may_be_inside(finished: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").symlink_to(finished.parent)
    mm.export(finished, "training", tmp_path / "one/out", form="sharegpt")
    mm.export(tmp_path / "elsewhere" / finished.name, "training", tmp_path / "other/out", form="sharegpt")
    assert tree(tmp_path / "one/out") == tree(tmp_path / "other/out")
    done = mm.export(finished, "training", tmp_path / "out", form="openai", images="data-uri")
    assert done.bytes_copied > 0
    assert not (tmp_path / "out/release").exists()
    line = json.loads((tmp_path / "out/train.jsonl").read_text("utf-8").splitlines()[0])
    urls = [part["image_url"]["url"] for part in line["messages"][0]["content"] if part["type"] == "image_url"]
    assert all(url.startswith("data:image/jpeg;base64,") for url in urls)


GOLDEN = """\
human: You are given a document with text and images, and a question. Answer the question as concisely as you can, \
using a single phrase or sentence if possible. If the question cannot be answered based on the information in the \
article, write 'Not answerable.' Write your answer in the following format:
Answer: [answer]

Document cedar: <image>

Document cedar: <image>

Document ash: <image>

Document ash: <image>

Question: Based on Document ash, answer the following question. What is its wood?
Answer:
gpt: hard
images:
release/mmlb_image/mmlongbench-doc/cedar/cedar_page2.jpg
release/mmlb_image/mmlongbench-doc/cedar/cedar_page3.jpg
release/mmlb_image/mmlongbench-doc/ash/ash_page0.jpg
release/mmlb_image/mmlongbench-doc/ash/ash_page1.jpg
"""


def test_a_line_that_a_person_can_read(finished: Path, tmp_path: Path) -> None:
    rows = {about["id"]: row for row, about in exported(finished, tmp_path / "out", "sharegpt", lengths="1K")}
    row = rows["mmlongdoc_0"]
    turns = "".join(f"{turn['from']}: {turn['value']}\n" for turn in row["conversations"])
    assert "\n".join([f"{turns}images:", *row["images"], ""]) == GOLDEN
