"""What `mmlongbench view` serves, asked in this process as a browser on this machine asks."""

import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import uvicorn
from starlette.testclient import TestClient
from tiny import Ran, command

POOL = "mmlongbench.io.pool.ProcessPoolExecutor"
"""What indexes files, scores predictions and draws curves in processes of their own, which take seconds to start."""


class InThisProcess(ThreadPoolExecutor):
    """Runs in a thread what would run in another process."""

    calls: list[str]
    """The names of the functions that were called."""

    def __init__(self, workers: int, *_: object, **__: object) -> None:
        super().__init__(workers)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.calls.append(fn.__name__)
        return super().submit(fn, *args, **kwargs)


@contextmanager
def in_this_process() -> Iterator[list[str]]:
    """Start no processes; yield the names of the functions that would run in one."""
    InThisProcess.calls = []
    with mock.patch(POOL, InThisProcess):
        yield InThisProcess.calls


def serve(release: Path, *options: object) -> tuple[Any, str]:
    """Return the application that the command serves, and the path in the printed address: its token."""
    served: list[Any] = []

    def keep(server: uvicorn.Server, sockets: object = None) -> None:
        served.append(server.config.app)

    # a server sets up logging anew, which closes the stream of every old handler: that of absl, which a metric imports,
    # is the one in which pytest keeps what a test prints
    with mock.patch("logging.config.dictConfig"), mock.patch.object(uvicorn.Server, "run", keep):
        ran = command("view", release, "--port", 0, *options)
    assert ran.code == 0, ran.err
    printed = re.fullmatch(r"http://127\.0\.0\.1:\d+(/[\w-]{22})/ shows .*; press Ctrl-C to end\n", ran.out)
    assert printed, ran.out
    return served[0], printed[1]


def viewer(release: Path, *options: object) -> TestClient:
    """Return a client of what the command serves, for paths after the token."""
    app, token = serve(release, *options)
    return TestClient(app, base_url=f"http://127.0.0.1:7870{token}", follow_redirects=False)


def static(release: Path, out: Path, *options: object) -> Ran:
    """Write the pages as files."""
    return command("view", release, "--static", out, *options)


@contextmanager
def served(release: Path, *options: object) -> Iterator[str]:
    """Serve on a free port, and yield the address when it answers."""
    app, token = serve(release, *options)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="off", access_log=False))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}{token}"
        server.should_exit = True
        thread.join(20)
