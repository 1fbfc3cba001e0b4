"""A run that is killed again and again: no call whose answer arrived is made again, and no answer is lost."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest
from counting_server import counting, is_probe
from model_server import Request, Said, serving
from tiny import environment

import mmlongbench as mm
from mmlongbench.models.asking import Asking, RunOptions
from mmlongbench.release.selecting import Selection, select

pytestmark = pytest.mark.slow

KILLS = int(os.environ.get("MMLONGBENCH_KILLS", "4"))
"""How often the run is killed."""
DELAYS = (0.0, 0.001, 0.003, 0.01, 0.03)
"""Seconds between the answer to a request and the kill: so that it hits the run before, at and after the writing."""


def identity(request: Request) -> str:
    return json.dumps([request["messages"], request.get("seed")])


def stored(path: Path) -> set[str]:
    if not path.exists():
        return set()
    with closing(sqlite3.connect(path)) as database:
        return {row[0] for row in database.execute("SELECT call FROM answers")}


def calls_of(release: Path, samples: int) -> dict[str, str]:
    """The identity of each request of a run, by the key of its call."""
    opened = mm.open_release(release)
    asking = Asking(
        opened, select(opened, Selection()), RunOptions("m", count_as="none", samples=samples, temperature=1.0)
    )
    return {
        call.key: identity({"messages": call.messages(), "seed": call.sampling.sample}) for _, call in asking.calls()
    }


@pytest.mark.timeout(600)
def test_no_answer_is_lost_or_asked_for_twice(finished: Path, tmp_path: Path) -> None:
    samples = max(4, KILLS)
    known, out = calls_of(finished, samples), tmp_path / "m.jsonl"
    calls = tmp_path / "m.calls.sqlite"
    process: list[subprocess.Popen[bytes]] = []
    state = {"left": 0, "delay": 0.0}

    def kill() -> None:
        process[-1].send_signal(signal.SIGKILL)

    def script(request: Request) -> Said:
        if not is_probe(request):
            state["left"] -= 1
            if state["left"] == 0:
                threading.Timer(state["delay"], kill).start()
        said: Said = counting("hard")(request)
        return said

    with serving(script) as server:
        command = [sys.executable, "-m", "mmlongbench", "run", str(finished), "--url", server.url, "--model", "m"]
        command += ["--count-as", "qwen2.5-vl", "--samples", str(samples), "--temperature", "1", "--out", str(out)]
        for number in range(KILLS + 1):
            before, asked = stored(calls), len(server.requests)
            state |= {"left": 3 if number < KILLS else -1, "delay": DELAYS[number % len(DELAYS)]}
            process.append(subprocess.Popen([*command, "--concurrency", "2", "-q"], env=environment()))
            code = process[-1].wait(120)
            assert code == (-signal.SIGKILL if number < KILLS else 0)
            sent = {identity(request) for request in server.requests[asked:] if not is_probe(request)}
            assert not {known[key] for key in before if key in known} & sent
            assert stored(calls) >= before
    found = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
    assert len(found) == len(known)
    assert {line["prediction"] for line in found} == {"hard"}
    assert set(known) <= stored(calls)
