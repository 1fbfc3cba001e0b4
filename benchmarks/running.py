"""Calls a second of `mmlongbench run` against a server that answers at once, beside the client library in a plain loop.

Both send the same messages, made anew for each call, with the images in base64. The server is a process of its own, so
that it takes no time of the client. Prints calls a second, their ratio, and the peak memory of a run with 32 calls at
once.

    python benchmarks/running.py --release RELEASE --dataset mmlongdoc --length 128K --limit 40
"""

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import mmlongbench as mm
from mmlongbench.release.selection import Selection

_SERVER = """
import json, sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
ANSWER = json.dumps({"choices": [{"index": 0, "message": {"role": "assistant", "content": "x"},
    "finish_reason": "stop"}], "usage": {"prompt_tokens": 10, "completion_tokens": 1}}).encode()
class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    def do_POST(self):
        left = int(self.headers["content-length"])
        while left:
            left -= len(self.rfile.read(min(left, 1 << 20)))
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(ANSWER)))
        self.end_headers()
        self.wfile.write(ANSWER)
    def do_GET(self):
        self.send_error(404)
    def log_message(self, *words):
        pass
class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
server = Server(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
"""
_SAMPLES = 5
"""How often each example is sent, so that the start of a run weighs little."""


@contextmanager
def serving() -> Iterator[str]:
    """Start the server; yield its address."""
    with subprocess.Popen([sys.executable, "-c", _SERVER], stdout=subprocess.PIPE, text=True) as process:
        try:
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}/v1" if process.stdout else ""
        finally:
            process.terminate()


def plain_loop(release: Path, selection: Selection, url: str) -> float:
    """Return the seconds that the client library takes for the examples, one after another."""
    import openai

    opened, client = mm.open_release(release), openai.OpenAI(base_url=url, api_key="none", max_retries=0)
    start, count = time.perf_counter(), 0
    for example in opened.examples(selection.datasets[0], selection.lengths[0]):
        if count == selection.limit:
            break
        for sample in range(_SAMPLES):
            said: list[object] = list(example.messages("data-uri"))
            client.chat.completions.create(model="m", messages=said, max_tokens=64, temperature=1, seed=sample)  # type: ignore[arg-type]
        count += 1
    return (time.perf_counter() - start) / count / _SAMPLES


def a_run(release: Path, selection: Selection, url: str, at_once: int) -> float:
    """Return the seconds a call of a run, which keeps every answer on disk."""
    options = mm.RunOptions("m", count_as="none", samples=_SAMPLES, temperature=1.0)
    with tempfile.TemporaryDirectory() as folder:
        settings = mm.EndpointSettings(url, concurrency=at_once, timeout=600)
        start = time.perf_counter()
        found = mm.run(
            release,
            settings,
            options,
            datasets=selection.datasets,
            lengths=selection.lengths,
            limit=selection.limit,
            out=Path(folder) / "m.jsonl",
        )
        return (time.perf_counter() - start) / found.answers


def main() -> None:
    """Measure, and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--release", type=Path, required=True)
    parser.add_argument("--dataset", default="mmlongdoc")
    parser.add_argument("--length", default="8K")
    parser.add_argument("--limit", type=int, default=40)
    parser.add_argument("--pairs", type=int, default=3)
    given = parser.parse_args()
    selection = Selection((given.dataset,), (given.length,), given.limit)
    with serving() as url:
        for pair in range(given.pairs):
            loop = plain_loop(given.release, selection, url)
            runs = {at_once: a_run(given.release, selection, url, at_once) for at_once in (1, 8)}
            said = ", ".join(f"run × {n}: {1 / each:.1f}/s ({loop / each:.2f} ×)" for n, each in runs.items())
            print(f"{pair}: {given.length}: plain loop {1 / loop:.1f}/s; {said}")
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        a_run(given.release, selection, url, 32)
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        print(f"peak memory: {before / 1024:,.0f} MiB before, {after / 1024:,.0f} MiB with 32 calls at once")


if __name__ == "__main__":
    main()
