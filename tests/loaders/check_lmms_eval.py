"""Reads an export back with lmms-eval: `python check_lmms_eval.py RELEASE OUT`, in an environment that has lmms-eval.

Every task is loaded by lmms-eval itself. Prompts are compared text by text and image by image (pixels), golds and
failed requests are scored by the generated functions, and one task is run against a local server.
"""

import base64
import io
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import version
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "helpers"))

FAILED = "[LMMS_EVAL_REQUEST_FAILED after 5 retries] Request timed out."


def main() -> None:
    release, out = (Path(argument).resolve() for argument in sys.argv[1:3])
    os.environ |= {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HOME": tempfile.mkdtemp()}
    os.chdir(out)
    from lmms_eval.tasks import TaskManager, get_task_dict
    from loader_check import Truth, pixels_of

    started, truth = time.monotonic(), Truth(release)
    manager = TaskManager(include_path=str(out / "mmlb"), include_defaults=False)
    names = sorted(name for name in manager.all_subtasks if name.startswith("mmlb_"))
    (group,) = get_task_dict(["mmlb"], manager, task_type="chat").values()
    truth.same("groups with all tasks", "mmlb", sorted(group), names)
    pixels = pixels_of(release)
    for name in names:
        check_task(truth, name, get_task_dict([name], manager, task_type="chat")[name], pixels)
    check_run(truth, names[0], out, pixels)
    truth.end(f"lmms-eval {version('lmms-eval')}", out, time.monotonic() - started)


def check_task(truth: Any, name: str, task: Any, pixels: Callable[[str], str]) -> None:
    from lmms_eval.protocol import ChatMessages
    from loader_check import digest_of, gold_of, sequence_of

    truth.same("tasks with no text that ends answers", name, task.config.generation_kwargs["until"], [])
    for doc in task.test_docs():
        example = truth.of(json.loads(doc["key"]))
        where = f"{name}, {doc['key']}"
        turns = ChatMessages(messages=task.doc_to_messages(doc)).messages
        said = [part for turn in turns for part in turn.content]
        found = [(each.type, each.text if each.type == "text" else digest_of(each.url)) for each in said]
        truth.same("speakers equal", where, [turn.role for turn in turns], [turn.role for turn in example.prompt.turns])
        expected = [(kind, said if kind == "text" else pixels(said)) for kind, said in sequence_of(example)]
        truth.same("part sequences equal", where, found, expected)
        truth.same("golds that score 1", where, task.process_results(doc, [gold_of(example)])["mmlb_score"], 1.0)
        truth.same("failed requests without a score", where, task.process_results(doc, [FAILED]), {"mmlb_failed": 1.0})


def check_run(truth: Any, name: str, out: Path, pixels: Callable[[str], str]) -> None:
    """Run lmms-eval on a task against a server that answers with the gold of the prompt that it receives."""
    from loader_check import gold_of, named, sequence_of

    received: list[bool] = []
    lines = [json.loads(line) for line in (out / "data" / f"{name.removeprefix('mmlb_')}.jsonl").open(encoding="utf-8")]
    golds = {}
    for line in lines:
        example = truth.examples[named(json.loads(line["key"]))]
        parts = [(kind, said if kind == "text" else pixels(said)) for kind, said in sequence_of(example)]
        golds[json.dumps(parts)] = gold_of(example)

    class Answers(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            messages = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["messages"]
            content = [part for message in messages for part in message["content"]]
            parts = [("text", part["text"]) if part["type"] == "text" else ("image", sent(part)) for part in content]
            received.append(json.dumps(parts) in golds)
            said = {"role": "assistant", "content": golds.get(json.dumps(parts), "nothing")}
            choices = [{"index": 0, "finish_reason": "stop", "message": said}]
            body = {"id": "1", "object": "chat.completion", "created": 0, "model": "m", "choices": choices}
            data = json.dumps({**body, "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}})
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data.encode())

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    found = results(truth, name, "openai", f"model_version=m,base_url={url},timeout=600,num_concurrent=1")
    server.shutdown()
    truth.same("runs that score 1", name, found.get("mmlb_score,none"), 1.0)
    truth.same("runs that send what is released", name, received, [True] * min(4, len(lines)))
    found = results(truth, name, "dummy", f"response={FAILED}")
    failed = {metric: value for metric, value in found.items() if metric in ("mmlb_score,none", "mmlb_failed,none")}
    truth.same("runs of failed requests without a score", name, failed, {"mmlb_failed,none": 1.0})


def results(truth: Any, task: str, model: str, arguments: str) -> dict[str, Any]:
    """Run lmms-eval on four examples of a task, and return its figures."""
    folder = Path(tempfile.mkdtemp())
    command = [sys.executable, "-m", "lmms_eval", "--include_path", "mmlb", "--tasks", task, "--batch_size", "1"]
    command += ["--limit", "4", "--output_path", str(folder), "--log_samples"]
    command += ["--model", model, "--model_args", arguments]
    key = {**os.environ, "OPENAI_API_KEY": "x"}
    ran = subprocess.run(command, check=False, capture_output=True, text=True, env=key)
    written = [json.loads(path.read_text("utf-8")) for path in folder.rglob("*results.json")]
    if ran.returncode or not written:
        truth.faults.append(f"lmms_eval on {task}: {ran.stderr[-2000:]}")
        return {}
    found: dict[str, Any] = written[0]["results"][task]
    return found


def sent(part: dict[str, Any]) -> str:
    """The digest of the pixels of an image in a request."""
    from loader_check import digest_of
    from PIL import Image

    with Image.open(io.BytesIO(base64.b64decode(part["image_url"]["url"].partition(",")[2]))) as picture:
        return digest_of(picture.convert("RGB"))


if __name__ == "__main__":
    main()
