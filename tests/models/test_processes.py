"""Runs that are killed and go on, and runs side by side: every call is answered once."""

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Event

import pytest
from crash_harness import wait_for
from model_server import Grade, ModelServer, Request, Said, client_of, good, serving, text_of

from mmlongbench.models.client import ModelClient
from mmlongbench.models.json_call import JsonCall

pytestmark = pytest.mark.slow

CALLS = 120
AT_ONCE = 4
HELPERS = str(Path(__file__).parents[1] / "helpers")
RUN = """
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
sys.path.insert(0, sys.argv[5])
from mmlongbench.models import Backoff, EndpointSettings, JsonCall, ModelClient
from model_server import Grade

url, cache, calls, at_once = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
client = ModelClient(EndpointSettings(url, cache, at_once), Backoff())
with ThreadPoolExecutor(at_once) as pool:
    list(pool.map(client.ask, [JsonCall("m", "Grade it.", str(number), Grade) for number in range(calls)]))
sys.stdout.write(str(client.usage()["calls"]))
client.close()
"""


def slowly(_: object) -> Said:
    return Said(good(reason="", score=4).words, delay=0.01)


@contextmanager
def run(server: ModelServer, cache: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Another process that makes the same calls."""
    command = [sys.executable, "-c", RUN, server.url, str(cache), str(CALLS), str(AT_ONCE), HELPERS]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.kill()


def make_calls(client: ModelClient) -> list[int]:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        found = pool.map(client.ask, [JsonCall("m", "Grade it.", str(number), Grade) for number in range(CALLS)])
        return [verdict.score for verdict in found if isinstance(verdict, Grade)]


def answered(server: ModelServer, least: int) -> Callable[[], bool]:
    return lambda: sum(server.answered.values()) >= least


def test_a_run_that_was_killed_goes_on_and_asks_again_only_what_was_under_way(tmp_path: Path) -> None:
    cache, is_killed, left = tmp_path / "answers.sqlite", Event(), iter(range(CALLS // 2))

    def script(request: Request) -> Said:  # half of the calls are answered before the kill, however late that comes
        return replace(slowly(request), until=None if next(left, None) is not None else is_killed)

    with serving(script) as server:
        with run(server, cache) as killed:
            wait_for(answered(server, CALLS // 3))
            killed.send_signal(signal.SIGKILL)
            killed.wait()
        before = sum(server.answered.values())
        is_killed.set()
        with client_of(server, cache=cache, concurrency=AT_ONCE) as client:
            assert make_calls(client) == [4] * CALLS
            usage = client.usage()
        wait_for(lambda: not server.under_way)  # it counts an answer once it is sent
        assert CALLS // 3 <= before < CALLS
        assert len(server.answered) == CALLS
        assert sum(server.answered.values()) - CALLS <= AT_ONCE
        assert usage["calls"] + usage["from_cache"] == CALLS
        assert usage["from_cache"] >= before - AT_ONCE


def test_two_processes_that_share_a_file_call_at_once_and_make_each_call_once(tmp_path: Path) -> None:
    cache, other_is_done = tmp_path / "answers.sqlite", Event()

    def script(request: Request) -> Said:
        return replace(slowly(request), until=other_is_done if text_of(request) == "held" else None)

    with serving(script) as server, client_of(server, cache=cache, concurrency=AT_ONCE + 1) as client:
        with ThreadPoolExecutor(1) as pool:
            held = pool.submit(client.ask, JsonCall("m", "Grade it.", "held", Grade))
            wait_for(lambda: server.under_way)
            with run(server, cache) as other:
                wait_for(answered(server, 1))  # it has opened the file, while a call of this process was under way
                assert make_calls(client) == [4] * CALLS
                made, _ = other.communicate()
            other_is_done.set()
            assert held.result() == Grade(reason="", score=4)
        assert other.returncode == 0
        assert 0 < int(made) <= CALLS
        assert client.usage()["calls"] + int(made) == CALLS + 1
        wait_for(lambda: not server.under_way)  # it counts an answer once it is sent
        assert len(server.answered) == sum(server.answered.values()) == CALLS + 1
