"""Runs that are killed again and again: no call whose answer is stored is made again, and no answer is lost."""

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
from question_models import script_of
from question_runs import Kills, made, recorded, results, settings_of
from question_world import Doc, World
from tiny import environment

KILLS = int(os.environ.get("MMLONGBENCH_KILLS", "4"))
"""How often a run is killed in the rare tests."""
DELAYS = (0.001, 0.0, 0.01, 0.003, 0.03)
"""Seconds between a request and the kill: so that it hits the run before, at and after the writing of the answer."""


def identity(request: Request) -> str:
    return json.dumps([request["messages"], request.get("seed")])


def stored(path: Path) -> set[str]:
    if not path.exists():
        return set()
    with closing(sqlite3.connect(path)) as database:
        return {row[0] for row in database.execute("SELECT call FROM answers")}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("kills", [2, pytest.param(KILLS, marks=pytest.mark.rare)])
def test_no_answer_is_lost_or_asked_for_twice(kills: int, finished: Path, tmp_path: Path) -> None:
    out, calls, samples = tmp_path / "m.jsonl", tmp_path / "m.calls.sqlite", max(4, kills)
    process: list[subprocess.Popen[bytes]] = []
    state = {"left": 0, "delay": 0.0}

    def script(request: Request) -> Said:
        if not is_probe(request):
            state["left"] -= 1
            if state["left"] == 0:
                threading.Timer(state["delay"], process[-1].kill).start()
        said: Said = counting("hard")(request)
        return said

    rounds: list[tuple[int, int]] = []
    with serving(script) as server:
        command = [sys.executable, "-m", "mmlongbench", "run", str(finished), "--url", server.url, "--model", "m"]
        command += ["--count-as", "qwen2.5-vl", "--samples", str(samples), "--temperature", "1", "--out", str(out)]
        for number in range(kills + 1):
            before, asked = stored(calls), len(server.requests)
            state |= {"left": 3 if number < kills else -1, "delay": DELAYS[number % len(DELAYS)]}
            process.append(subprocess.Popen([*command, "--concurrency", "2", "-q"], env=environment()))
            assert process[-1].wait(120) == (-signal.SIGKILL if number < kills else 0)
            sent = [identity(request) for request in server.requests[asked:] if not is_probe(request)]
            assert len({*sent}) == len(sent)
            assert stored(calls) >= before
            rounds.append((len(before), len(sent)))
    found = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
    assert len(found) == 12 * samples
    probes = len(stored(calls)) - len(found)  # stored too, before all others: how the server counts images
    assert probes > 0
    for known, requests in rounds[1:]:
        assert requests <= len(found) - (known - probes)
    assert requests == len(found) - (known - probes)  # what is stored is not asked for again
    assert {line["prediction"] for line in found} == {"hard"}


@pytest.mark.rare
@pytest.mark.timeout(600)
def test_questions_ask_for_no_stored_answer_again_and_end_with_the_same_bytes(tmp_path: Path) -> None:
    world = World.drawn(tmp_path / "docs", [Doc("harbours-a", 3)], tmp_path / "whole")
    with recorded() as known, serving(script_of(world)) as server:
        made(world, tmp_path / "whole", server.url, settings_of())
        total = len(server.requests)
    world.pictures = tmp_path / "killed" / ".kept" / "pictures"
    killing = Kills(world, tmp_path / "killed", known)
    with killing.serving() as server:
        for number in range(KILLS):
            after = max(2, total // (KILLS + 2))
            assert killing.run(server, after, DELAYS[number % len(DELAYS)], 1 + number) == -signal.SIGKILL
        assert killing.run(server, 0) == 0
    assert killing.repeated == 0
    assert results(tmp_path / "killed") == results(tmp_path / "whole")
