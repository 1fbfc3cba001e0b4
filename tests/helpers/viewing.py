"""The viewer in a test: its index is made in this process, and a browser drives its pages."""

import os
import shutil
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
import uvicorn
from starlette.testclient import TestClient

from mmlongbench.io.progress import Progress
from mmlongbench.release.models import ask
from mmlongbench.web.viewer.answers import read_answers
from mmlongbench.web.viewer.app import application
from mmlongbench.web.viewer.guard import Door
from mmlongbench.web.viewer.index import open_index
from mmlongbench.web.viewer.indexing import index_file
from mmlongbench.web.viewer.site import Site
from mmlongbench.web.viewer.sources import open_viewed

HOST = "http://127.0.0.1:7870"


def site_of(
    release: Path,
    models: str = "",
    windows: Sequence[str] = (),
    scores: Sequence[Path] = (),
    images: Path | None = None,
    predictions: Sequence[Path] = (),
) -> Site:
    """Open a site; what the viewer keeps is in the folder that XDG_CACHE_HOME names."""
    viewed = open_viewed(release, images)
    index = open_index(viewed, images, progress=Progress(False), run=index_file)
    opened = [each.open() for each in ask(models, windows)]
    return Site(viewed, index, read_answers(viewed, predictions, scores), opened)


def client(site: Site, door: Door | None = None, base: str = HOST) -> TestClient:
    """A client that asks as a browser on this machine does."""
    return TestClient(application(site, door), base_url=base, follow_redirects=False)


def browser() -> str:
    """The path of a browser; without one the test is skipped, unless CI asks for all tests."""
    found = next(
        (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), ""
    )
    if not found:
        if os.environ.get("CI") == "true":
            pytest.fail("no chromium: apt-get install chromium")
        pytest.skip("no chromium")
    return found


@contextmanager
def served(site: Site) -> Iterator[str]:
    """Serve a site on a free port, and yield its address when it answers."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        config = uvicorn.Config(application(site), log_level="warning", lifespan="off", access_log=False)
        server = uvicorn.Server(config)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        while not server.started:
            time.sleep(0.01)
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        server.should_exit = True
        thread.join(20)
