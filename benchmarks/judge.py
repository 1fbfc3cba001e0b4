"""A judge under faults: every call is answered once, although requests fail or hang and the process is killed.

A server on this machine answers some requests with errors or not at all, as a hash of the request and its number says.
A process scores by it, is killed with SIGKILL, and goes on. The server counts what it answered well, by content.
"""

import json
import multiprocessing
import signal
import sqlite3
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import click

from mmlongbench.draws import Draws
from mmlongbench.metrics.judge import Answers
from mmlongbench.models.client import Backoff
from mmlongbench.task.metric import Judge, ScoringInput, Settings

ERRORS, HANGS = 0.20, 0.05
"""Shares of the requests."""
BROKEN = ('{"answer_sc', "I would say that it is right.", '{"answer_score": "yes"}', '{"answer_score": 7}')


@dataclass(frozen=True)
class Run:
    """The arguments of the scoring process."""

    url: str
    folder: Path
    calls: int
    at_once: int
    timeout: float


class FaultyJudge(ThreadingHTTPServer):
    """A judge that marks an answer right if its number is even, when it answers at all."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.guard, self.ended = threading.Lock(), threading.Event()
        self.asked: Counter[str] = Counter()
        self.answered: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore connections that a killed process closed."""


class _Handler(BaseHTTPRequestHandler):
    server: FaultyJudge
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))["messages"][-1]["content"]
        number = asked.rpartition("number ")[2].partition(".")[0]
        judge = self.server
        with judge.guard:
            judge.asked[number] += 1
            draws = Draws(("judge", number, judge.asked[number]))
        self._answer(number, draws)

    def _answer(self, number: str, draws: Draws) -> None:
        share = draws.fraction("fault")
        if share < HANGS:
            self._count("hangs")
            self.server.ended.wait(600)
            self.close_connection = True
        elif share < HANGS + ERRORS:
            self._fail(draws)
        else:
            time.sleep(0.005 + 0.02 * draws.fraction("delay"))
            self._say(200, f'By its number. {{"answer_score": {1 - int(number) % 2}}}')
            with self.server.guard:
                self.server.answered[number] += 1

    def _fail(self, draws: Draws) -> None:
        status = draws.choice("status", (200, 200, 429, 500, 503))
        self._count(f"status {status}" if status != 200 else "broken answers")
        self._say(status, draws.choice("broken", BROKEN))

    def _say(self, status: int, words: str) -> None:
        usage = {"prompt_tokens": 100, "completion_tokens": 10}
        body = json.dumps({"choices": [{"message": {"role": "assistant", "content": words}}], "usage": usage}).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        if status == 429:
            self.send_header("retry-after", "0.05")
        self.end_headers()
        self.wfile.write(body)

    def _count(self, fault: str) -> None:
        with self.server.guard:
            self.server.faults[fault] += 1

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--calls", type=click.IntRange(min=20), default=1000, show_default=True)
@click.option("--at-once", type=click.IntRange(min=1), default=8, show_default=True)
@click.option("--timeout", default=1.0, show_default=True, help="Seconds after which a call that hangs is given up.")
def main(calls: int, at_once: int, timeout: float) -> None:
    """Print how often the judge answered each call, over one kill."""
    with tempfile.TemporaryDirectory() as folder, FaultyJudge() as judge:
        threading.Thread(target=judge.serve_forever, args=(0.05,), daemon=True).start()
        run = Run(f"http://127.0.0.1:{judge.server_address[1]}/v1", Path(folder), calls, at_once, timeout)
        began = time.perf_counter()
        _kill(run, judge, calls // 2)
        before, kept = judge.answered.total(), _kept(run)
        _process(run).join()
        seconds = time.perf_counter() - began
        found = json.loads((run.folder / "scores.json").read_text("utf-8"))
        judge.ended.set()
        judge.shutdown()
        _show(judge, found, before - kept, seconds)


def _process(run: Run) -> multiprocessing.process.BaseProcess:
    process = multiprocessing.get_context("spawn").Process(target=_score, args=(run,))
    process.start()
    return process


def _score(run: Run) -> None:
    """Score every prediction, and write scores and what was spent."""
    judge = Judge(run.url, ("judge",), run.folder / "judge.sqlite", run.at_once, run.timeout, attempts=8)
    with closing(Answers(Settings(judge=judge), Backoff(first=0.02, most=0.2))) as metric:
        with ThreadPoolExecutor(run.at_once) as pool:
            scored = list(pool.map(metric.score, map(_asked, range(run.calls))))
        found = {"scores": [each.score for each in scored], "usage": dict(metric.usage())}
    (run.folder / "scores.json").write_text(json.dumps(found), "utf-8")


def _asked(number: int) -> ScoringInput:
    file, question, said = "documentQA/drawn_K8.jsonl", "Is its number even?", f"number {number}."
    return ScoringInput(file, "drawn", str(number), "yes", said, question=question, answer_format="String")


def _kill(run: Run, judge: FaultyJudge, least: int) -> None:
    """Start a process, and kill it after this many answers."""
    process = _process(run)
    while len(judge.answered) < least and process.is_alive():
        time.sleep(0.001)
    process.kill()
    process.join()
    if process.exitcode != -signal.SIGKILL:
        raise click.ClickException("it ended before it was killed; ask for more --calls")


def _kept(run: Run) -> int:
    with closing(sqlite3.connect(run.folder / "judge.sqlite")) as database:
        return int(database.execute("SELECT count(*) FROM answers").fetchone()[0])


def _show(judge: FaultyJudge, found: dict[str, Any], caught: int, seconds: float) -> None:
    scores, usage = found["scores"], found["usage"]
    again = sum(count - 1 for count in judge.answered.values())
    wrong = sum(score != 1 - number % 2 for number, score in enumerate(scores) if score is not None)
    faults = ", ".join(f"{count} {fault}" for fault, count in sorted(judge.faults.items()))
    total, spoilt = sum(judge.asked.values()), sum(judge.faults.values())
    print(f"calls                         {len(scores):6,}   in {seconds:.1f} s, killed once in the middle")
    print(f"requests                      {total:6,}   {spoilt / total:.0%} of them spoilt: {faults}")
    print(f"calls answered well           {len(judge.answered):6,}")
    print(f"  answered again              {again:6,}   {caught:,} were on their way, not yet kept, when it was killed")
    print(f"from the cache after the kill {usage['from_cache']:6,}")
    print(f"scored / failed               {len(scores) - scores.count(None):6,} / {scores.count(None):,}")
    print(f"scores that are another's     {wrong:6,}")


if __name__ == "__main__":
    main()
