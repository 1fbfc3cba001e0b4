"""Reads an export back with Inspect AI: `python check_inspect.py RELEASE OUT`, in an environment that has inspect-ai.

Inspect loads every task and runs it against its mock model, which compares what it receives with the release, text by
text and image by image (bytes), and answers with golds. Then the scores in the logs are read.
"""

import base64
import hashlib
import importlib.util
import json
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "helpers"))


def main() -> None:
    release, out = (Path(argument).resolve() for argument in sys.argv[1:3])
    from inspect_ai import eval as run
    from loader_check import Truth, gold_of, sequence_of

    started, truth = time.monotonic(), Truth(release)
    asked = {}
    for example in truth.examples.values():
        parts = [(kind, said if kind == "text" else truth.image(said)) for kind, said in sequence_of(example)]
        asked[json.dumps(parts)] = gold_of(example)
    tasks = tasks_of(out / "inspect/mmlb.py")
    for task in tasks:
        for sample in task.dataset:
            check_sample(truth, sample, release)
    logs = run(tasks, model=model(truth, asked), log_dir=tempfile.mkdtemp(), log_images=False, display="none")
    for log in logs:
        truth.same("tasks run", log.eval.task, log.status, "success")
        truth.counts["scorers"] += len(log.results.scores if log.results else [])
        for sample in log.samples or []:
            (score,) = (sample.scores or {}).values()
            truth.same("golds that score 1", str(sample.id), score.value, 1.0)
            truth.same("scores with the server's tokens", str(sample.id), score.metadata["input_tokens"], 7)
    truth.end(f"inspect-ai {version('inspect-ai')}", out, time.monotonic() - started)


def tasks_of(path: Path) -> list[Any]:
    """All tasks of a file, found as the command line of Inspect finds them, and made."""
    from inspect_ai import list_tasks

    listed = {info.name for info in list_tasks(str(path.name), root_dir=path.parent)}
    spec = importlib.util.spec_from_file_location("mmlb", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return [getattr(module, name)() for name in sorted(listed)]


def check_sample(truth: Any, sample: Any, release: Path) -> None:
    from loader_check import sequence_of

    example = truth.of(sample.metadata["key"])
    found = []
    for part in (part for message in sample.input for part in message.content):
        if part.type == "text":
            found.append(("text", part.text))
        else:
            found.append(("image", str(Path(part.image).resolve().relative_to(release / "mmlb_image"))))
    speakers = [message.role for message in sample.input]
    truth.same("speakers equal", str(sample.id), speakers, [turn.role for turn in example.prompt.turns])
    truth.same("part sequences equal", str(sample.id), found, sequence_of(example))
    truth.same("digests equal", str(sample.id), sample.metadata["digest"], example.digest)


def model(truth: Any, asked: dict[str, str]) -> Any:
    """A model that answers with the gold of the example whose texts and image bytes it receives."""
    from inspect_ai.model import ModelOutput, ModelUsage, get_model

    def said(input: list[Any], tools: object, tool_choice: object, config: object) -> Any:
        shown = (part for message in input for part in parts_of(message))
        parts = [(part.type, part.text if part.type == "text" else sha256(part.image)) for part in shown]
        found = asked.get(json.dumps(parts))
        truth.same("prompts received as released", json.dumps(parts)[:100], found is not None, True)
        output = ModelOutput.from_content("mockllm/model", found or "none")
        output.usage = ModelUsage(input_tokens=7)
        return output

    return get_model("mockllm/model", custom_outputs=said)


def parts_of(message: Any) -> list[Any]:
    """The parts of a message; Inspect may make a single text of them."""
    from inspect_ai.model import ContentText

    return [ContentText(text=message.content)] if isinstance(message.content, str) else list(message.content)


def sha256(uri: str) -> str:
    return hashlib.sha256(base64.b64decode(uri.partition(",")[2])).hexdigest()


if __name__ == "__main__":
    main()
