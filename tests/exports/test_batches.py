"""The targets `openai-batch` and `vllm-batch`: requests, their limits, and the commands that run them."""

import json
import re
import shlex
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from exported import every_example, read_back, shown, tree
from PIL import Image

import mmlongbench as mm
from mmlongbench.exports import openai_batch, vllm_batch
from mmlongbench.release.custom_ids import custom_id

pytestmark = pytest.mark.slow


def requests(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for path in sorted(out.glob("batch*.jsonl")) for line in path.read_bytes().splitlines()]


def test_every_request_to_openai_is_taken_by_its_types_and_shows_what_we_show(mixed: Path, tmp_path: Path) -> None:
    from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming
    from pydantic import TypeAdapter

    kind: TypeAdapter[Any] = TypeAdapter(CompletionCreateParamsNonStreaming)
    done = mm.export(mixed, "openai-batch", tmp_path / "out", model="gpt-5")
    found, examples = requests(tmp_path / "out"), list(every_example(mixed))
    assert (len(found), done.left_out) == (len(examples), ())
    for request, example in zip(found, examples, strict=True):
        body = kind.validate_python(request["body"])
        messages = [{**message, "content": list(message["content"])} for message in body["messages"]]
        assert read_back(messages) == shown(mixed, example)
        assert request["custom_id"] == custom_id(example)
        assert (request["method"], request["url"]) == ("POST", "/v1/chat/completions")
        assert {part["image_url"]["detail"] for part in messages[0]["content"] if "image_url" in part} <= {"high"}
        assert (body["model"], body["max_completion_tokens"]) == ("gpt-5", example.reserve)
    shown_bytes = [part for example in examples for part in shown(mixed, example) if isinstance(part, bytes)]
    assert done.bytes_copied == sum(map(len, shown_bytes))


def test_names_of_requests_are_short_and_unique_over_lengths_placements_and_samples(mixed: Path) -> None:
    examples = list(every_example(mixed))
    names = [custom_id(example, sample) for example in examples for sample in (None, 0, 1)]
    assert len({*names}) == len(names)
    assert {len(name) for name in names} == {32}
    assert {len([example for example in examples if example.id == examples[-1].id])} != {1}


def test_an_index_says_which_example_a_request_is(mixed: Path, tmp_path: Path) -> None:
    mm.export(mixed, "vllm-batch", tmp_path / "out")
    index = [json.loads(line) for line in (tmp_path / "out/examples.jsonl").read_bytes().splitlines()]
    for line, example in zip(index, every_example(mixed), strict=True):
        assert line["custom_id"] == custom_id(example)
        assert {**example.key, "digest": example.digest}.items() <= line.items()


def test_files_for_openai_stay_below_both_limits(mixed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mm.export(mixed, "openai-batch", tmp_path / "one", model="m")
    (whole,) = (tmp_path / "one").glob("batch-*.jsonl")
    longest = max(len(line) for line in whole.read_bytes().splitlines(keepends=True))
    monkeypatch.setattr(openai_batch, "SHARD", 2 * longest)
    mm.export(mixed, "openai-batch", tmp_path / "bytes", model="m")
    shards = sorted((tmp_path / "bytes").glob("batch-*.jsonl"))
    assert len(shards) > 1
    assert max(path.stat().st_size for path in shards) <= 2 * longest
    assert requests(tmp_path / "bytes") == requests(tmp_path / "one")
    monkeypatch.setattr(openai_batch, "MAX_REQUESTS", 7)
    mm.export(mixed, "openai-batch", tmp_path / "requests", model="m")
    counts = [len(path.read_bytes().splitlines()) for path in sorted((tmp_path / "requests").glob("batch-*.jsonl"))]
    assert max(counts) == 7
    assert requests(tmp_path / "requests") == requests(tmp_path / "one")
    assert openai_batch.MAX_FILE * 95 // 100 == 190_000_000


def test_an_example_that_no_request_can_hold_is_named(
    mixed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    examples = list(every_example(mixed))
    monkeypatch.setattr(openai_batch, "MAX_IMAGES", 5)
    done = mm.export(mixed, "openai-batch", tmp_path / "images", model="m")
    crowded = [example for example in examples if len(example.prompt.images) > 5]
    assert 0 < len(crowded) < len(examples)
    assert (done.examples, len(done.left_out)) == (len(examples) - len(crowded), len(crowded))
    first = crowded[0]
    assert done.left_out[0] == f"{first.file}, {first.id}: {len(first.prompt.images)} images; a request may have 5"
    page = (tmp_path / "images/README.md").read_text("utf-8")
    assert all(f"- left out: {reason}\n" in page for reason in done.left_out)
    monkeypatch.setattr(openai_batch, "MAX_IMAGES", 1500)
    monkeypatch.setattr(openai_batch, "SHARD", 100_000)
    ran = command_of(mixed, tmp_path / "bytes")
    large = [
        line for line in ran.err.splitlines() if re.search(r"a request of [\d,]+ bytes; a file may have 100,000", line)
    ]
    assert large
    assert f"{len(requests(tmp_path / 'bytes'))} examples, " in ran.out
    assert max(path.stat().st_size for path in (tmp_path / "bytes").glob("batch-*.jsonl")) <= 100_000


def command_of(release: Path, out: Path) -> Any:
    from tiny import command

    return command("export", release, "--to", "openai-batch", "--out", out, "--model", "m")


def test_a_format_that_openai_does_not_take_is_named(finished: Path, tmp_path: Path) -> None:
    copy = tmp_path / "release"
    shutil.copytree(finished, copy)
    example = next(every_example(copy))
    image = copy / "mmlb_image" / example.prompt.images[0]
    with Image.open(image) as picture:
        picture.convert("RGB").save(image, "BMP")
    lock = json.loads((copy / "build.lock.json").read_text("utf-8"))
    lock["files"][f"mmlb_image/{example.prompt.images[0]}"]["bytes"] = image.stat().st_size
    (copy / "build.lock.json").write_text(json.dumps(lock), "utf-8")
    done = mm.export(copy, "openai-batch", tmp_path / "out", model="m")
    assert done.left_out
    assert done.left_out[0].endswith("is BMP; the API takes PNG, JPEG, WEBP and GIF")


@pytest.mark.parametrize("form", ["file-url", "path", "file:///srv/images"])
def test_openai_is_given_no_file_of_this_machine(form: str, finished: Path, tmp_path: Path) -> None:
    with pytest.raises(mm.ReleaseError, match=f"--images {form}: the API cannot read files of this machine"):
        mm.export(finished, "openai-batch", tmp_path / "out", model="m", images=form)
    with pytest.raises(mm.ReleaseError, match="--model: is missing"):
        mm.export(finished, "openai-batch", tmp_path / "out")


def test_requests_to_vllm_show_what_we_show(odd: Path, tmp_path: Path) -> None:
    done = mm.export(odd, "vllm-batch", tmp_path / "out", model="org/model", max_tokens=7)
    for request, example in zip(requests(tmp_path / "out"), every_example(odd), strict=True):
        assert read_back(request["body"]["messages"]) == shown(odd, example)
        assert (request["body"]["model"], request["body"]["max_completion_tokens"]) == ("org/model", 7)
    assert done.bytes_copied == 0


def run_line(out: Path, command: str = "run-batch") -> tuple[list[str], dict[str, str]]:
    """The variables and options of a command on the page of an export."""
    (line,) = re.findall(rf"^.*vllm {command} .*$", (out / "README.md").read_text("utf-8"), re.MULTILINE)
    words = shlex.split(line)
    variables = words[: words.index("vllm")]
    return variables, {word: words[at + 1] for at, word in enumerate(words) if word.startswith("-")}


def test_the_command_for_vllm_allows_what_the_requests_need_and_no_more(odd: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(odd)
    mm.export(link, "vllm-batch", tmp_path / "out", model="org/model", lengths="2K")
    examples = [example for example in every_example(odd) if example.length == 2048]
    folders = {(odd / "mmlb_image" / image).resolve().parent for example in examples for image in example.prompt.images}
    variables, options = run_line(tmp_path / "out")
    allowed = Path(options["--allowed-local-media-path"])
    assert allowed.name == "a b#c%20d?é's"
    assert all(folder.is_relative_to(allowed) for folder in folders)
    assert not any(all(folder.is_relative_to(child) for folder in folders) for child in allowed.iterdir())
    most = max(len(example.prompt.images) for example in examples)
    assert json.loads(options["--limit-mm-per-prompt"]) == {"image": most}
    longest = max(example.tokens.total + example.reserve for example in examples)
    assert longest <= int(options["--max-model-len"]) < longest + 1024
    assert (variables, options["--model"], options["-i"]) == ([], "org/model", "batch.jsonl")
    served = run_line(tmp_path / "out", "serve")[1]
    assert served.items() <= options.items()
    mm.export(odd, "vllm-batch", tmp_path / "more", max_tokens=5000)
    assert int(run_line(tmp_path / "more")[1]["--max-model-len"]) >= 5000 + max(e.tokens.total for e in examples)


def test_the_folder_for_vllm_is_never_the_root(finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.path.commonpath", lambda folders: "/")
    with pytest.raises(mm.ReleaseError, match="only / holds all images"):
        mm.export(finished, "vllm-batch", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_limits_of_decoded_images_are_lifted_where_a_request_passes_them(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoded = 4 * 400 * 400 * max(len(example.prompt.images) for example in every_example(finished))
    monkeypatch.setattr(vllm_batch, "DECODED", decoded)
    mm.export(finished, "vllm-batch", tmp_path / "below")
    assert run_line(tmp_path / "below")[0] == []
    monkeypatch.setattr(vllm_batch, "DECODED", decoded - 1)
    done = mm.export(finished, "vllm-batch", tmp_path / "above")
    assert run_line(tmp_path / "above")[0] == ["VLLM_MAX_MEDIA_REQUEST_DECODE_BYTES=0"]
    assert any("VLLM_MAX_MEDIA_REQUEST_DECODE_BYTES=0" in note for note in done.notes)
    monkeypatch.setattr(vllm_batch, "PIXELS", 100)
    mm.export(finished, "vllm-batch", tmp_path / "large")
    assert run_line(tmp_path / "large", "serve")[0] == [
        "VLLM_MAX_MEDIA_REQUEST_DECODE_BYTES=0",
        "VLLM_MAX_IMAGE_PIXELS=160000",
    ]


def test_prompts_without_images_need_no_folder(mixed: Path, tmp_path: Path) -> None:
    mm.export(mixed, "vllm-batch", tmp_path / "out", datasets="text_mmlongdoc")
    assert run_line(tmp_path / "out")[1].keys() == {"-i", "-o", "--model", "--max-model-len"}


def test_vllm_is_given_no_plain_paths(finished: Path, tmp_path: Path) -> None:
    with pytest.raises(mm.ReleaseError, match="--images path: vLLM takes no plain paths"):
        mm.export(finished, "vllm-batch", tmp_path / "out", images="path")


@pytest.mark.parametrize("target", ["openai-batch", "vllm-batch"])
def test_the_same_choices_give_the_same_bytes(target: str, mixed: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        mm.export(mixed, target, tmp_path / name, model="m")
    assert tree(tmp_path / "a") == tree(tmp_path / "b")
    counts = Counter(line["custom_id"] for line in requests(tmp_path / "a"))
    assert set(counts.values()) == {1}


def test_examples_that_cannot_be_told_apart_are_refused(finished: Path, tmp_path: Path) -> None:
    copy = tmp_path / "release"
    shutil.copytree(finished, copy)
    file = copy / "mmlb_data/documentQA/mmlongdoc_K1.jsonl"
    first = file.read_bytes().splitlines(keepends=True)[0]
    file.write_bytes(file.read_bytes() + first)
    with pytest.raises(mm.ReleaseError, match="mmlongdoc_0: has the same prompt and placement as"):
        mm.export(copy, "vllm-batch", tmp_path / "out")
