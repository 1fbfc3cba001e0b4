"""Runs of `questions` with the models of a `question_world`, in this process or as a command."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

from model_server import QUICK, ModelServer, Request, Said, serving
from question_models import script_of
from question_world import World

from mmlongbench.io.progress import Progress
from mmlongbench.models.client import ModelClient
from mmlongbench.models.settings import EndpointSettings
from mmlongbench.questions.writing.asking import WritingSettings
from mmlongbench.questions.writing.make import CALLS, Made, make, prepare

MODELS = ("gpt-4o", "claude-3", "gemini-2")
CHECKER = "qwen-2"
CLIENT = "mmlongbench.questions.writing.make.ModelClient"


def settings_of(**changes: Any) -> WritingSettings:
    return WritingSettings(**{"authors": MODELS, "checkers": (CHECKER,), "dpi": 36, **changes})


def made(world: World, out: Path, url: str, settings: WritingSettings, at_once: int = 8, **more: Any) -> Made:
    """Run all stages in this process."""
    prepared = prepare(world.folder, out, settings, Progress(False), **more)
    return make(prepared, EndpointSettings(url, out / CALLS, at_once), Progress(False), QUICK)


def calls_at_most(world: World, out: Path, settings: WritingSettings) -> float:
    """The forecast of calls if every question passed every check."""
    return sum(each.calls for each in prepare(world.folder, out, settings, Progress(False)).at_most)


def identity(request: Request) -> str:
    return json.dumps([request["model"], request["messages"], request.get("seed")])


@contextmanager
def recorded() -> Iterator[dict[str, str]]:
    """The keys of all calls of this process, by what the server sees of them."""
    known: dict[str, str] = {}

    class Recording(ModelClient):
        def ask(self, call: Any, *, is_fresh: bool = False) -> Any:
            seen = {"model": call.model, "messages": call.messages(""), "seed": call.options.get("seed")}
            known[identity(seen)] = call.key
            return super().ask(call, is_fresh=is_fresh)

    with mock.patch(CLIENT, Recording):
        yield known


def stored(out: Path) -> set[str]:
    """The keys of the answers on file."""
    path = out / CALLS
    if not path.exists():
        return set()
    with closing(sqlite3.connect(path)) as database:
        return {row[0] for row in database.execute("SELECT call FROM answers")}


def command_of(world: World, out: Path, url: str, at_once: int) -> list[str]:
    """The command line of a run with the usual settings."""
    words = [sys.executable, "-m", "mmlongbench", "questions", str(world.folder), "--out", str(out), "--url", url]
    words += [word for model in MODELS for word in ("--model", model)] + ["--check-model", CHECKER]
    return [*words, "--dpi", "36", "--concurrency", str(at_once), "-q"]


@dataclass
class Kills:
    """Kills a run after a number of requests, and counts what is asked again."""

    world: World
    out: Path
    known: dict[str, str]
    """The keys of all calls, by what the server sees of them."""
    repeated: int = 0
    """How many answers that were on file were asked for again."""
    codes: list[int] = field(default_factory=list)
    """The exit codes of the runs."""
    _left: int = -1
    _delay: float = 0.0
    _process: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @contextmanager
    def serving(self) -> Iterator[ModelServer]:
        """A server that counts down to the next kill."""
        answer = script_of(self.world)

        def script(request: Request) -> Said:
            self._left -= 1
            if self._left == 0:
                threading.Timer(self._delay, self._kill).start()
            return answer(request)

        with serving(script) as server:
            yield server

    def _kill(self) -> None:
        self._process[-1].send_signal(signal.SIGKILL)

    def run(self, server: ModelServer, after: int, delay: float = 0.0, at_once: int = 4) -> int:
        """Run the command, kill it after some requests (never if `after` is 0), and return its exit code."""
        before, asked = stored(self.out), len(server.requests)
        self._left, self._delay = after or -1, delay
        self._process.append(
            subprocess.Popen(command_of(self.world, self.out, server.url, at_once), env=dict(os.environ))
        )
        code = self._process[-1].wait(300)
        sent = {self.known.get(identity(request), "") for request in server.requests[asked:]}
        self.repeated += len(before & sent)
        assert stored(self.out) >= before
        self.codes.append(code)
        return code


def results(out: Path, names: Sequence[str] = (".jsonl", ".json", ".yaml")) -> dict[str, bytes]:
    """The bytes of every file of a run but those that are kept between runs."""
    paths = [path for path in sorted(out.rglob("*")) if path.suffix in names and ".kept" not in path.parts]
    return {str(path.relative_to(out)): path.read_bytes() for path in paths}
