"""Reads an export to `vllm-batch` back with vLLM: `python check_vllm.py RELEASE OUT`, where vllm can be imported.

vLLM parses every request, and its media connector fetches every image, allowed to read only the folder that the page
names. Texts, images (bytes) and their order are compared with the release. No engine runs.
"""

import hashlib
import json
import re
import shlex
import sys
import time
from functools import cache
from importlib.metadata import version
from pathlib import Path

import mmlongbench as mm
from mmlongbench.release.release import custom_id


def main() -> None:
    from vllm.entrypoints.launchers.run_batch import BatchRequestInput, validate_batch
    from vllm.multimodal.media.connector import MediaConnector

    started, out = time.monotonic(), Path(sys.argv[2])
    release = mm.open_release(sys.argv[1], tasks=sys.argv[3:])
    options = options_of((out / "README.md").read_text("utf-8"))
    allowed = options.get("--allowed-local-media-path", "")
    connector = MediaConnector(allowed_local_media_path=allowed)
    every = (each for name in release.datasets for k in release.lengths(name) for each in release.examples(name, k))
    examples = {custom_id(each): each for each in every}

    @cache
    def fetched(url: str) -> str:
        image = connector.fetch_image(url)
        assert min(image.media.size) > 0
        return hashlib.sha256(image.original_bytes).hexdigest()

    with (out / "batch.jsonl").open() as file:
        count = validate_batch(file)
    seen, equal, most, longest = set(), 0, 0, 0
    for line in (out / "batch.jsonl").read_text("utf-8").splitlines():
        row = BatchRequestInput.model_validate_json(line)
        example = examples[row.custom_id]
        found = [
            part["text"] if part["type"] == "text" else (fetched(part["image_url"]["url"]),)
            for message in row.body.messages
            for part in message["content"]
        ]
        speakers = [message["role"] for message in row.body.messages]
        assert speakers == [turn.role for turn in example.prompt.turns], row.custom_id
        files = release.lock.files
        ours = [
            part if isinstance(part, str) else (files[f"mmlb_image/{part.path}"].sha256,)
            for part in example.prompt.parts
        ]
        equal += found == ours
        seen.add(row.custom_id)
        most, longest = max(most, len(example.prompt.images)), max(longest, example.tokens.total)
    assert (len(seen), equal) == (count, count), f"{count} requests, {len(seen)} custom_ids, {equal} equal"
    assert json.loads(options.get("--limit-mm-per-prompt", '{"image": 0}')) == {"image": most}
    assert int(options["--max-model-len"]) > longest
    if allowed:
        refuses_what_is_outside(Path(allowed), connector)
    copied = sum(path.stat().st_size for path in out.rglob("*") if path.suffix in (".jpg", ".png"))
    print(  # noqa: T201
        f"vllm {version('vllm')}: examples read back {count}, part sequences equal {equal}, images fetched "
        f"{fetched.cache_info().currsize} from {allowed}, bytes of images copied {copied}, "
        f"{time.monotonic() - started:.0f} s"
    )


def options_of(page: str) -> dict[str, str]:
    """The options of the command on the page that runs the requests."""
    (line,) = re.findall(r"^.*vllm run-batch .*$", page, re.MULTILINE)
    words = shlex.split(line)
    return {word: words[at + 1] for at, word in enumerate(words) if word.startswith("--")}


def refuses_what_is_outside(folder: Path, connector: object) -> None:
    from vllm.multimodal.media.connector import MediaConnector

    assert isinstance(connector, MediaConnector)
    lock = next(path for path in folder.parents if (path / "build.lock.json").exists()) / "build.lock.json"
    try:
        connector.fetch_image(f"file://{lock}")
    except ValueError:
        return
    raise AssertionError(f"{lock} could be read")


if __name__ == "__main__":
    main()
