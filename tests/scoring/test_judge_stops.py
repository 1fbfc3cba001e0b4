"""Runs that end early do not wait for a judge."""

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any, ClassVar

import pytest
from crash_harness import wait_for
from model_server import ModelServer, Request, Said, good, in_turn, judge_of, serving, text_of

from mmlongbench.io.progress import Progress
from mmlongbench.manifest.calling import PluginCallError
from mmlongbench.metrics.judge.calls import Call
from mmlongbench.metrics.judge.claims import Summaries, write_claims
from mmlongbench.metrics.judge.client import JudgeClient
from mmlongbench.metrics.judge.verdicts import Grade
from mmlongbench.models.client import Failed
from mmlongbench.models.pace import Backoff
from mmlongbench.scoring import running
from mmlongbench.scoring.joining import open_scorable
from mmlongbench.scoring.predictions import read_predictions
from mmlongbench.scoring.problems import Problems
from mmlongbench.scoring.running import Run, score
from mmlongbench.scoring.staleness import ExampleDigests
from mmlongbench.task.metric import Judge, Metric, Score, ScoringInput, Settings

CALL = Call("m", "Grade it.", "blue", Grade)


def test_a_call_under_way_ends_when_its_client_stops_and_none_is_made_any_more() -> None:
    with serving(in_turn(Said(hangs=True))) as server, judge_of(server, timeout=300.0) as client:
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(client.ask, CALL)
            wait_for(lambda: server.under_way)
            client.stop()
            assert isinstance(asked.result(), Failed)
            assert server.under_way == 1  # it would never have answered
        assert isinstance(client.ask(Call("m", "Grade it.", "red", Grade)), Failed)
        assert len(server.requests) == 1


@dataclass
class Interrupted(Progress):
    """Ctrl-C at the first step, once two calls were made."""

    server: ModelServer

    @contextmanager
    def bar(self, label: str, total: int) -> Iterator[Callable[[], None]]:
        def advance() -> None:
            wait_for(lambda: len(self.server.requests) == 2)
            raise KeyboardInterrupt

        yield advance


def test_claims_that_are_interrupted_do_not_wait_as_long_as_the_endpoint_asks(tmp_path: Path) -> None:
    def script(request: Request) -> Said:
        is_first = "dredged" in text_of(request)
        return good(claims=["x"]) if is_first else Said(status=429, headers={"retry-after": "250"})

    summaries = Summaries("gov", "summ/gov_K8.jsonl", {"a": "It was dredged.", "b": "It was closed."})
    with serving(script) as server, closing(JudgeClient(Judge(server.url, ("m",)), Backoff())) as client:
        done = write_claims(client, tmp_path, tmp_path, [summaries], Interrupted(server))
        with pytest.raises(KeyboardInterrupt):
            next(done)


class Waiting(Metric):
    """Waits for an event that never comes, until it is stopped; meanwhile an error occurs."""

    name: ClassVar[str] = "waiting"
    concurrency = 2

    def __init__(self) -> None:
        super().__init__(Settings())
        self.is_waiting, self.stopped, self.ends = Event(), Event(), list[bool]()

    def score(self, asked: ScoringInput) -> Score:
        if asked.id == "mmlongdoc_0":
            self.is_waiting.wait(60)
            raise ValueError("broken")
        self.is_waiting.set()
        self.ends.append(self.stopped.wait(60))
        return Score(0.0)

    def stop(self) -> None:
        self.stopped.set()


def test_a_metric_is_stopped_before_its_threads_are_waited_for(
    public: Path, golds: list[dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    metric, problems, said = Waiting(), Problems(), tmp_path / "m.jsonl"
    monkeypatch.setattr(running, "metric_type", lambda name: lambda settings: metric)
    said.write_text("".join(json.dumps(line) + "\n" for line in golds if "mmlongdoc_K8" in line["file"]))
    digests = ExampleDigests(open_scorable(public / "documentQA/mmlongdoc_K8.jsonl", None, None))
    run = Run("m", ("default",), Settings())
    with read_predictions([said], problems) as read, pytest.raises(PluginCallError, match="ValueError: broken"):
        score(run, digests, read, None, problems, Progress(is_shown=False))
    assert metric.ends
    assert all(metric.ends)
