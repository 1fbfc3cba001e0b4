"""Reads an export to `openai-batch` back with OpenAI's package: `python check_openai_batch.py RELEASE OUT [TASK …]`.

Each request is validated against the parameters of chat completions, in which no field may be unknown. Speakers, texts,
images (bytes), their order and the metadata are compared with the release.
"""

import base64
import hashlib
import json
import sys
import time
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "helpers"))


def main() -> None:
    release, out = (Path(argument).resolve() for argument in sys.argv[1:3])
    from loader_check import Truth, turns_of
    from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming
    from pydantic import TypeAdapter

    started, truth = time.monotonic(), Truth(release)
    parameters: TypeAdapter[Any] = TypeAdapter(CompletionCreateParamsNonStreaming)
    keys = map(json.loads, (out / "examples.jsonl").read_text("utf-8").splitlines())
    lines = (line for path in sorted(out.glob("batch-*.jsonl")) for line in path.open(encoding="utf-8"))
    for line, key in zip(lines, keys, strict=True):
        request, example = json.loads(line), truth.of(key)
        body = whole(parameters.validate_python(request["body"]))
        truth.same("requests of known fields alone", example.name, body, request["body"])
        turns = [(message["role"], [shown(part) for part in message["content"]]) for message in body["messages"]]
        truth.same("turns equal", example.name, turns, turns_of(example, truth.image))
        truth.same("names of requests", example.name, request["custom_id"], key["custom_id"])
        truth.same("digests equal", example.name, key["digest"], example.digest)
        truth.counts["turns"] += len(turns)
        truth.counts["images"] += len(example.prompt.images)
    truth.end(f"openai {version('openai')}", out, time.monotonic() - started)


def whole(value: Any) -> Any:
    """What was validated, without iterators: pydantic validates the elements of an `Iterable` when they are read."""
    if isinstance(value, dict):
        return {name: whole(each) for name, each in value.items()}
    return [whole(each) for each in value] if isinstance(value, Iterable) and not isinstance(value, str) else value


def shown(part: dict[str, Any]) -> str:
    """The text of a part, or the hash of its image."""
    if part["type"] == "text":
        return str(part["text"])
    return hashlib.sha256(base64.b64decode(part["image_url"]["url"].partition(",")[2])).hexdigest()


if __name__ == "__main__":
    main()
