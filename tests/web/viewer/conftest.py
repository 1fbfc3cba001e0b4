"""A release to look at, a cache of its own for each module, and a site in a browser."""

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright
from reviewed import suspect_lines
from seen import Seen
from tiled import tiled
from viewing import browser, served, site_of

from mmlongbench.web.viewer.curves import read_curves
from mmlongbench.web.viewer.curving import curves_of
from mmlongbench.web.viewer.reviewing.review import open_review
from mmlongbench.web.viewer.site import Site


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder in which the viewer keeps what it makes."""
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("cache")
        patch.setenv("XDG_CACHE_HOME", str(folder))
        yield folder


@pytest.fixture(scope="session")
def tiles(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A release of small tasks with needles; not to be changed."""
    with tiled(tmp_path_factory.mktemp("tiles")) as release:
        yield release


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    path = browser()
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def predictions(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Scores of a model that has every second example wrong."""
    path = tmp_path_factory.mktemp("scores") / "model.jsonl"
    site = site_of(finished)
    lines = [
        {
            "model": "model",
            "metric": "doc_qa",
            "is_own": True,
            "file": file.name,
            "dataset": "mmlongdoc",
            "length": file.length,
            "id": row.id,
            "status": "scored",
            "score": float(row.row % 2),
        }
        for file in site.viewed.files
        for row in site.index.file(file.number).rows
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return path


@pytest.fixture(scope="module")
def site(finished: Path, predictions: Path, tmp_path_factory: pytest.TempPathFactory) -> Site:
    found = site_of(finished, "qwen2.5-vl,gemma3", ["gemma3=1K"], [predictions])
    read_curves(found.answers.score_paths, compute=curves_of)
    folder = tmp_path_factory.mktemp("review")
    return replace(found, review=open_review(suspect_lines(folder), None, folder / "errata.yaml", "anna"))


@pytest.fixture(scope="module")
def address(site: Site) -> Iterator[str]:
    with served(site) as found:
        yield found


@pytest.fixture
def seen(chromium: Browser, address: str) -> Iterator[Seen]:
    context = chromium.new_context(viewport={"width": 1200, "height": 800}, service_workers="block")
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    found = Seen(context.new_page(), address)
    yield found
    context.close()
    assert (found.errors, found.elsewhere) == ([], [])
