"""Batches of requests: `openai-batch` and `vllm-batch`, their limits, the commands that run them, and `collect`.

Results become predictions, in any order; errors never become answers.
"""

import hashlib
import json
import re
import shlex
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from exported import MIXED, every_example, read_back, renamed, shown
from PIL import Image
from tiny import command

import mmlongbench as mm
from mmlongbench.exports import openai_batch, vllm_batch
from mmlongbench.release.release import custom_id


def requests(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for path in sorted(out.glob("batch*.jsonl")) for line in path.read_bytes().splitlines()]


def test_every_request_to_openai_is_taken_by_its_types_and_shows_what_we_show(families: Path, tmp_path: Path) -> None:
    from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming
    from pydantic import TypeAdapter

    kind: TypeAdapter[Any] = TypeAdapter(CompletionCreateParamsNonStreaming)
    done = mm.export(families, "openai-batch", datasets=MIXED, out=tmp_path / "out", model="gpt-5")
    found, examples = requests(tmp_path / "out"), list(every_example(families, MIXED))
    assert (len(found), done.left_out) == (len(examples), ())
    for request, example in zip(found, examples, strict=True):
        body = kind.validate_python(request["body"])
        messages = [{**message, "content": list(message["content"])} for message in body["messages"]]
        assert read_back(messages) == shown(families, example)
        assert request["custom_id"] == custom_id(example)
        assert (request["method"], request["url"]) == ("POST", "/v1/chat/completions")
        assert {part["image_url"]["detail"] for part in messages[0]["content"] if "image_url" in part} <= {"high"}
        assert (body["model"], body["max_completion_tokens"]) == ("gpt-5", example.reserve)
    shown_bytes = [part for example in examples for part in shown(families, example) if isinstance(part, bytes)]
    assert done.bytes_copied == sum(map(len, shown_bytes))


def test_names_of_requests_are_short_and_unique_over_lengths_placements_and_samples(families: Path) -> None:
    examples = list(every_example(families, MIXED))
    names = [custom_id(example, sample) for example in examples for sample in (None, 0, 1)]
    assert len({*names}) == len(names)
    assert {len(name) for name in names} == {32}
    assert {len([example for example in examples if example.id == examples[-1].id])} != {1}


def test_files_for_openai_stay_below_both_limits(
    families: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mm.export(families, "openai-batch", datasets=MIXED, out=tmp_path / "one", model="m")
    (whole,) = (tmp_path / "one").glob("batch-*.jsonl")
    longest = max(len(line) for line in whole.read_bytes().splitlines(keepends=True))
    monkeypatch.setattr(openai_batch, "SHARD", 2 * longest)
    mm.export(families, "openai-batch", datasets=MIXED, out=tmp_path / "bytes", model="m")
    shards = sorted((tmp_path / "bytes").glob("batch-*.jsonl"))
    assert len(shards) > 1
    assert max(path.stat().st_size for path in shards) <= 2 * longest
    assert requests(tmp_path / "bytes") == requests(tmp_path / "one")
    monkeypatch.setattr(openai_batch, "MAX_REQUESTS", 7)
    mm.export(families, "openai-batch", datasets=MIXED, out=tmp_path / "requests", model="m")
    counts = [len(path.read_bytes().splitlines()) for path in sorted((tmp_path / "requests").glob("batch-*.jsonl"))]
    assert max(counts) == 7
    assert requests(tmp_path / "requests") == requests(tmp_path / "one")
    assert openai_batch.MAX_FILE * 95 // 100 == 190_000_000


def test_an_example_that_no_request_can_hold_is_named(
    families: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    examples = list(every_example(families, MIXED))
    monkeypatch.setattr(openai_batch, "MAX_IMAGES", 5)
    done = mm.export(families, "openai-batch", datasets=MIXED, out=tmp_path / "images", model="m")
    crowded = [example for example in examples if len(example.prompt.images) > 5]
    assert 0 < len(crowded) < len(examples)
    assert (done.examples, len(done.left_out)) == (len(examples) - len(crowded), len(crowded))
    first = crowded[0]
    assert done.left_out[0] == f"{first.file}, {first.id}: {len(first.prompt.images)} images; a request may have 5"
    page = (tmp_path / "images/README.md").read_text("utf-8")
    assert all(f"- left out: {reason}\n" in page for reason in done.left_out)
    monkeypatch.setattr(openai_batch, "MAX_IMAGES", 1500)
    monkeypatch.setattr(openai_batch, "SHARD", 100_000)
    ran = command_of(families, tmp_path / "bytes")
    large = [
        line for line in ran.err.splitlines() if re.search(r"a request of [\d,]+ bytes; a file may have 100,000", line)
    ]
    assert large
    assert f"{len(requests(tmp_path / 'bytes'))} examples, " in ran.out
    assert max(path.stat().st_size for path in (tmp_path / "bytes").glob("batch-*.jsonl")) <= 100_000


def command_of(release: Path, out: Path) -> Any:
    chosen = [word for name in MIXED for word in ("--dataset", name)]
    return command("export", release, "--to", "openai-batch", "--out", out, "--model", "m", *chosen)


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


def test_requests_to_vllm_show_what_we_show(odd: Path, tmp_path: Path) -> None:
    done = mm.export(odd, "vllm-batch", tmp_path / "out", model="org/model", max_tokens=7)
    index = [json.loads(line) for line in (tmp_path / "out/examples.jsonl").read_bytes().splitlines()]
    for request, about, example in zip(requests(tmp_path / "out"), index, every_example(odd), strict=True):
        assert read_back(request["body"]["messages"]) == shown(odd, example)
        assert {**example.key, "digest": example.digest, "custom_id": request["custom_id"]}.items() <= about.items()
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


def test_prompts_without_images_need_no_folder(families: Path, tmp_path: Path) -> None:
    mm.export(families, "vllm-batch", tmp_path / "out", datasets="text_mmlongdoc")
    assert run_line(tmp_path / "out")[1].keys() == {"-i", "-o", "--model", "--max-model-len"}


def test_examples_that_cannot_be_told_apart_are_refused(finished: Path, tmp_path: Path) -> None:
    copy = tmp_path / "release"
    shutil.copytree(finished, copy)
    file = copy / "mmlb_data/documentQA/mmlongdoc_K1.jsonl"
    first = file.read_bytes().splitlines(keepends=True)[0]
    file.write_bytes(file.read_bytes() + first)
    with pytest.raises(mm.ReleaseError, match="mmlongdoc_0: has the same prompt and placement as"):
        mm.export(copy, "vllm-batch", tmp_path / "out")


def gold(example: mm.Example) -> str:
    """A prediction that gives the answer."""
    answer = example.answer
    return str(answer[0] if isinstance(answer, list) and example.dataset == "viquae" else answer)


def result(name: str, text: str | None, **message: object) -> dict[str, Any]:
    """A line of results with an answer, as both services write it."""
    choice = {"index": 0, "message": {"role": "assistant", "content": text, **message}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9, "prompt_tokens_details": None}
    body = {"id": "chatcmpl-1", "object": "chat.completion", "choices": [choice], "usage": usage, "model": "m"}
    return {
        "id": "b",
        "custom_id": name,
        "response": {"status_code": 200, "request_id": "r", "body": body},
        "error": None,
    }


def failed(name: str, status: int = 400, message: str = "At most 5 image(s)") -> dict[str, Any]:
    """A line of vLLM with an error."""
    response = {"status_code": status, "request_id": "r", "body": {"error": {"message": message, "code": status}}}
    return {"id": "b", "custom_id": name, "response": response, "error": {"message": message}}


def written(path: Path, lines: Iterable[Mapping[str, object] | str]) -> Path:
    texts = (line if isinstance(line, str) else json.dumps(line) for line in lines)
    path.write_text("".join(f"{text}\n" for text in texts), "utf-8")
    return path


def counts(collected: mm.Collected) -> dict[str, int]:
    return {problem.reason: problem.count for problem in collected.problems}


def test_golds_that_come_back_in_any_order_score_full(families: Path, tmp_path: Path) -> None:
    examples = list(every_example(families))
    lines = [result(custom_id(example), gold(example)) for example in reversed(examples)]
    half = len(lines) // 2
    files = [written(tmp_path / "a.jsonl", lines[:half]), written(tmp_path / "b.jsonl", lines[half:])]
    found = mm.collect(families, files, model="org/model", out=tmp_path / "model.jsonl")
    assert (found.answered, found.examples, found.problems) == (len(examples), len(examples), ())
    said = [json.loads(line) for line in (tmp_path / "model.jsonl").read_bytes().splitlines()]
    assert [{key: line[key] for key in example.key} for line, example in zip(said, examples, strict=True)] == [
        example.key for example in examples
    ]
    scores = mm.score(families, tmp_path / "model.jsonl", partial=True)
    assert scores.problems == ()
    assert {cell.dataset: cell.score for cell in scores.cells if cell.dataset in MIXED} == dict.fromkeys(MIXED, 1.0)


def test_a_line_says_what_was_answered_by_whom_and_to_what(finished: Path, tmp_path: Path) -> None:
    example = next(every_example(finished))
    line = result(custom_id(example), "Answer: hard", reasoning_content="It is ash.", refusal=None)
    mm.collect(finished, written(tmp_path / "r.jsonl", [line]), model="org/m", out=tmp_path / "p.jsonl")
    lock = hashlib.sha256((finished / "build.lock.json").read_bytes()).hexdigest()[:16]
    assert json.loads((tmp_path / "p.jsonl").read_text()) == {
        **example.key,
        "prediction": "Answer: hard",
        "digest": example.digest,
        "lock": lock,
        "model": "org/m",
        "reasoning": "It is ash.",
        "finish_reason": "stop",
        "usage": {"prompt_tokens": 7, "completion_tokens": 2},
    }
    assert mm.open_release(finished).lock_id == lock


def test_everything_that_is_no_answer_is_counted_and_named(finished: Path, tmp_path: Path) -> None:
    names = [custom_id(example) for example in every_example(finished)]
    good, twice, late, bad, status, gone, empty, broken, cut, refused = names[:10]
    results = written(
        tmp_path / "results.jsonl",
        [
            result(good, "first"),
            result(twice, "one"),
            result(twice, "two"),
            failed(late, 500, "EngineDead"),
            result("0" * 32, "whose?"),
            "{half",
            "[1]",
            json.dumps({"custom_id": 7, "response": None}),
            '{"custom_id": "x", "response": {"body": "\\ud800"}}',
            "",
            {**result(status, "not an answer"), "response": {**result(status, "x")["response"], "status_code": 429}},
            {**result(gone, "x"), "response": None, "error": {"code": "batch_expired", "message": "expired"}},
            {**result(broken, "x"), "response": {"status_code": 200, "body": {"choices": "none"}}},
            result(empty, None),
            result(refused, None, refusal="I will not."),
            {**result(cut, "x"), "response": {"status_code": 200, "body": {"choices": []}}},
        ],
    )
    errors = written(tmp_path / "errors.jsonl", [failed(bad), failed("1" * 32), result(late, "later")])
    found = mm.collect(finished, [results, errors], model="m", out=tmp_path / "p.jsonl")
    assert counts(found) == {
        "error": 5,
        "error-and-answer": 1,
        "unreadable-line": 4,
        "unknown-request": 2,
        "duplicate": 1,
    }
    said = {line["prediction"] for line in map(json.loads, (tmp_path / "p.jsonl").read_text().splitlines())}
    assert said == {"first", "one", "later", "", "I will not."}
    first = {problem.reason: problem.first for problem in found.problems}
    assert first["unreadable-line"][0].startswith("results.jsonl, line 6: invalid-json")
    assert first["duplicate"] == (f"results.jsonl, line 3: {twice}",)
    assert any("status 429" in place for place in first["error"])
    ran = command("collect", finished, results, errors, "--model", "m", "--out", tmp_path / "p.jsonl")
    assert ran.code == 1
    assert (
        "5 requests with an error instead of an answer; they are not in the predictions: errors.jsonl, line 1: "
        in ran.err
    )
    assert f"{tmp_path}/p.jsonl: 5 of 12 examples of the release have an answer; " in ran.out
    ran = command("collect", finished, results, errors, "--model", "m", "--out", tmp_path / "p.jsonl", "--json")
    assert json.loads(ran.out)["answered"] == 5


def test_errors_alone_write_nothing(finished: Path, tmp_path: Path) -> None:
    name = custom_id(next(every_example(finished)))
    results = written(tmp_path / "r.jsonl", [failed(name), failed("0" * 32)])
    ran = command("collect", finished, results, "--model", "m", "--out", tmp_path / "p.jsonl")
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "no answer for release: 1 requests with an error instead of an answer" in ran.err
    assert "status 400: At most 5 image(s)" in ran.err
    assert not (tmp_path / "p.jsonl").exists()
    with pytest.raises(mm.ReleaseError, match="no answer for release: no line"):
        mm.collect(finished, written(tmp_path / "empty.jsonl", []), model="m", out=tmp_path / "p.jsonl")


def test_results_of_a_changed_release_are_not_taken(finished: Path, odd: Path, tmp_path: Path) -> None:
    """The digest has the images' bytes, not their names, so a release with other names has the same requests."""
    lines = [result(custom_id(example), "x") for example in every_example(finished)]
    results = written(tmp_path / "r.jsonl", lines)
    assert mm.collect(odd, results, model="m", out=tmp_path / "p.jsonl").problems == ()
    file = tmp_path / "changed"
    renamed(finished, file, "What is its wood?", "What is its leaf?")
    found = mm.collect(file, results, model="m", out=tmp_path / "q.jsonl")
    assert counts(found) == {"unknown-request": 2}


def test_other_predictions_are_not_overwritten(finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    name = custom_id(next(every_example(finished)))
    results = written(tmp_path / "r.jsonl", [result(name, "x")])
    out = Path("predictions/org_m.jsonl")
    assert mm.collect(finished, results, model="org/m").out == out
    assert mm.collect(finished, results, model="org/m").answered == 1
    written(results, [result(name, "y")])
    with pytest.raises(mm.ReleaseError, match=r"predictions/org_m\.jsonl: already holds other predictions"):
        mm.collect(finished, results, model="org/m")
    assert json.loads(out.read_text())["prediction"] == "x"
    for model in ("", " "):
        with pytest.raises(mm.ReleaseError, match="expected the name of the model"):
            mm.collect(finished, results, model=model)
