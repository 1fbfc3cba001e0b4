"""The target `openai`, read back by the types of OpenAI's own library."""

import json
from pathlib import Path
from typing import Any

import pytest
from exported import every_example, read_back, shown, tree

import mmlongbench as mm

pytestmark = pytest.mark.slow


def validated(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Messages as the types of the library take them; parts are checked only when they are read."""
    from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming
    from pydantic import TypeAdapter

    kind: TypeAdapter[Any] = TypeAdapter(CompletionCreateParamsNonStreaming)
    body = kind.validate_python({"model": "m", "messages": messages})
    return [{**message, "content": list(message["content"])} for message in body["messages"]]


def lines(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for path in sorted(out.rglob("*.jsonl")) for line in path.read_bytes().splitlines()]


@pytest.mark.parametrize("form", ["file-url", "data-uri"])
def test_every_example_is_read_back_text_by_text_and_image_by_image(form: str, mixed: Path, tmp_path: Path) -> None:
    done = mm.export(mixed, "openai", tmp_path / "out", images=form)
    examples = {json.dumps(example.key): example for example in every_example(mixed)}
    found = lines(tmp_path / "out")
    assert len(found) == len(examples) == done.examples
    copied = 0
    for line in found:
        metadata = line["metadata"]
        example = examples.pop(json.dumps({key: metadata[key] for key in metadata if key in KEY}))
        expected = shown(mixed, example)
        assert read_back(validated(line["messages"])) == expected
        assert (metadata["answer"], metadata["digest"]) == (example.answer, example.digest)
        assert metadata["tokens"] == {"text": example.tokens.text, "image": example.tokens.image}
        copied += sum(len(part) for part in expected if isinstance(part, bytes))
    assert not examples
    assert done.bytes_copied == (copied if form == "data-uri" else 0)


KEY = ("file", "id", "depth", "permutation")


def test_files_have_the_names_of_the_public_files(mixed: Path, tmp_path: Path) -> None:
    mm.export(mixed, "openai", tmp_path / "out")
    public = {str(path.relative_to(mixed / "mmlb_data")) for path in (mixed / "mmlb_data").rglob("*.jsonl")}
    assert tree(tmp_path / "out").keys() == {*public, "README.md"}


def test_the_same_choices_give_the_same_bytes(mixed: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        mm.export(mixed, "openai", tmp_path / name)
    assert tree(tmp_path / "a") == tree(tmp_path / "b")


def test_odd_names_of_images_are_quoted(odd: Path, tmp_path: Path) -> None:
    mm.export(odd, "openai", tmp_path / "out")
    examples = list(every_example(odd))
    found = [
        line for name in ("K1", "K2") for line in lines(tmp_path / "out") if f"_{name}." in line["metadata"]["file"]
    ]
    assert [read_back(line["messages"]) for line in found] == [shown(odd, example) for example in examples]
    mm.export(odd, "openai", tmp_path / "web", images="https://host/images")
    urls = [
        part["image_url"]["url"] for part in lines(tmp_path / "web")[0]["messages"][0]["content"] if "image_url" in part
    ]
    assert urls
    assert all(url.startswith("https://host/images/a%20b%23c%2520d%3F%C3%A9%27s/") for url in urls)


def test_what_the_lines_cannot_say_is_refused(odd: Path, tmp_path: Path) -> None:
    for choice in ({"model": "m"}, {"max_tokens": 5}):
        with pytest.raises(mm.ReleaseError, match="the lines hold messages, not requests; leave it out"):
            mm.export(odd, "openai", tmp_path / "out", **choice)
