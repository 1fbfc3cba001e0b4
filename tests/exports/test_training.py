"""The target `training`, read back as trainers read it: `datasets`, and markers beside the lists of images."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from exported import every_example, shown, tree

import mmlongbench as mm
from mmlongbench.exports.training import FILES, Form

pytestmark = pytest.mark.slow

FORMS = tuple(form.value for form in Form)
Row = dict[str, Any]


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    import datasets

    datasets.disable_progress_bars()
    yield
    datasets.enable_progress_bars()


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
        parts = [part for message in row["messages"] for part in message["content"]]
        return [
            part["text"] if part["type"] == "text" else (out / part["image_url"]["url"]).read_bytes() for part in parts
        ]
    images = iter(row.get("images") or row.get("image") or [])
    texts = [re.split("(<image>)", turn["value"]) for turn in row["conversations"]]
    parts = [part for turn in texts for part in turn if part]
    found = [(out / next(images)).read_bytes() if part == "<image>" else part for part in parts]
    assert next(images, None) is None
    return found


def key_of(line: Row) -> tuple[object, ...]:
    return tuple(line.get(name) for name in ("file", "id", "depth", "permutation"))


def with_fields(finished: Path, to: Path, fields: Row) -> list[Row]:
    """A copy of the tiny release in which the first record at 1K has other fields; its records."""
    shutil.copytree(finished, to)
    path = to / "mmlb_data/documentQA/mmlongdoc_K1.jsonl"
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    lines[0] |= fields
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return lines


@pytest.mark.parametrize("form", FORMS)
def test_every_example_is_there_with_its_images_and_its_answer(form: str, mixed: Path, tmp_path: Path) -> None:
    examples = {key_of(example.key): example for example in every_example(mixed)}
    scorer, count = mm.scorer(mixed), 0
    for row, about in exported(mixed, tmp_path / "out", form):
        example = examples.pop(key_of(about))
        *prompt, answer = said(row, tmp_path / "out")
        assert prompt == shown(mixed, example)
        assert isinstance(answer, str)
        assert scorer.score(example.key, answer).score == 1
        assert (about["tokens"], about["digest"]) == (example.tokens.total, example.digest)
        count += 1
    assert examples == {}
    assert count == len(list(every_example(mixed)))


@pytest.mark.parametrize("form", FORMS)
def test_datasets_opens_it_with_as_many_images_as_markers(form: str, mixed: Path, tmp_path: Path) -> None:
    from datasets import load_dataset

    exported(mixed, tmp_path / "out", form)
    data = load_dataset("json", data_files=str(tmp_path / "out" / FILES[form]), cache_dir=str(tmp_path / "c"))["train"]
    assert len(data) == len(list(every_example(mixed)))
    for row in data:
        if form == "openai":
            kinds = [part["type"] for message in row["messages"] for part in message["content"]]
            assert set(kinds) <= {"text", "image_url"}
            assert row["messages"][-1]["role"] == "assistant"
        else:
            text = "".join(turn["value"] for turn in row["conversations"])
            images = row["images"] if form == "sharegpt" else row["image"]
            assert text.count("<image>") == len(images or [])
            assert [turn["from"] for turn in row["conversations"]] == ["human", "gpt"]


def test_the_file_of_llama_factory_names_the_columns_that_are_there(mixed: Path, tmp_path: Path) -> None:
    row, _ = exported(mixed, tmp_path / "out", "sharegpt")[0]
    info = json.loads((tmp_path / "out/dataset_info.json").read_text("utf-8"))["mix"]
    assert (tmp_path / "out" / info["file_name"]).is_file()
    assert info["formatting"] == "sharegpt"
    assert set(info["columns"].values()) == set(row)


@pytest.mark.parametrize("form", FORMS)
def test_literal_markers_are_no_images(form: str, finished: Path, tmp_path: Path) -> None:
    """A question and its answer have markers in their words."""
    changed = tmp_path / "release"
    lines = with_fields(finished, changed, {"question": "Is <image> or <video> a tag?", "answer": "<image>"})
    rows = {about["id"]: (row, about) for row, about in exported(changed, tmp_path / "out", form, lengths="1K")}
    row, about = rows[lines[0]["id"]]
    found = said(row, tmp_path / "out")
    assert found[-1] == "< image >"
    assert isinstance(found[-2], str)
    assert "Is < image > or < video > a tag?" in found[-2]
    assert sum(isinstance(part, bytes) for part in found) == len(lines[0]["page_list"])
    assert [each["id"] for _, each in rows.values() if each.get("has_changed_markers")] == [about["id"]]


@pytest.mark.parametrize("form", FORMS)
def test_hostile_names_and_texts_come_back(form: str, hostile: Path, tmp_path: Path) -> None:
    examples = {example.id: example for example in every_example(hostile)}
    for row, about in exported(hostile, tmp_path / "out", form):
        assert said(row, tmp_path / "out")[:-1] == shown(hostile, examples[about["id"]])


@pytest.mark.parametrize("blank", ["", " \n", ["", " "]])
def test_an_example_without_an_answer_is_named_and_left_out(blank: object, finished: Path, tmp_path: Path) -> None:
    lines = with_fields(finished, tmp_path / "release", {"answer": blank})
    done = mm.export(tmp_path / "release", "training", tmp_path / "out", lengths="1K")
    assert done.left_out == ("documentQA/mmlongdoc_K1.jsonl, mmlongdoc_0: the release has no answer",)
    assert done.examples == len(lines) - 1
    page = (tmp_path / "out/README.md").read_text("utf-8")
    assert page.endswith(f"\n- left out: {done.left_out[0]}\n")


def test_an_export_without_any_answer_is_refused(finished: Path, tmp_path: Path) -> None:
    lines = with_fields(finished, tmp_path / "release", {"answer": " "})
    path = tmp_path / "release/mmlb_data/documentQA/mmlongdoc_K1.jsonl"
    path.write_text("".join(json.dumps({**line, "answer": " "}) + "\n" for line in lines), "utf-8")
    with pytest.raises(mm.ReleaseError, match=rf"no answer for any of the {len(lines)} chosen examples"):
        mm.export(tmp_path / "release", "training", tmp_path / "out", lengths="1K")
    assert not (tmp_path / "out").exists()


def test_bytes_are_the_same_wherever_the_release_is(finished: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").symlink_to(finished.parent)
    mm.export(finished, "training", tmp_path / "one/out", form="sharegpt")
    mm.export(tmp_path / "elsewhere" / finished.name, "training", tmp_path / "other/out", form="sharegpt")
    one, other = tree(tmp_path / "one/out"), tree(tmp_path / "other/out")
    assert {**one, "release": ""} == {**other, "release": ""}


def test_other_addresses_of_images(finished: Path, tmp_path: Path) -> None:
    done = mm.export(finished, "training", tmp_path / "out", form="openai", images="data-uri")
    assert done.bytes_copied > 0
    assert not (tmp_path / "out/release").exists()
    line = json.loads((tmp_path / "out/train.jsonl").read_text("utf-8").splitlines()[0])
    urls = [part["image_url"]["url"] for part in line["messages"][0]["content"] if part["type"] == "image_url"]
    assert all(url.startswith("data:image/jpeg;base64,") for url in urls)


@pytest.mark.parametrize(
    ("target", "form", "said"),
    [
        ("training", "lava", "expected openai, sharegpt, llava; did you mean 'llava'?"),
        ("hf", "llava", "it has only one form; leave it out"),
    ],
)
def test_an_unknown_form_is_refused(target: str, form: str, said: str, finished: Path, tmp_path: Path) -> None:
    with pytest.raises(mm.ReleaseError) as raised:
        mm.export(finished, target, tmp_path / "out", form=form)
    assert said in str(raised.value)


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
