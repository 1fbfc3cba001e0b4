"""A release to look at, the folder in which the viewer keeps what it makes, and a browser."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import needs
import pytest
from once import once
from viewing import in_this_process

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="session", autouse=True)
def _logging_as_it_is() -> Iterator[None]:
    """A server that sets up logging anew closes the stream of absl's handler: that of pytest (see `viewing.serve`)."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("logging.config.dictConfig", lambda config: None)
        yield


@pytest.fixture(scope="module", autouse=True)
def calls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """The names of the functions that the viewer calls in processes of their own. It keeps what it makes in a folder
    that all processes of the session share.
    """
    with pytest.MonkeyPatch.context() as patch, in_this_process() as calls:
        patch.setenv("XDG_CACHE_HOME", str(once(tmp_path_factory, "viewer-cache", lambda folder: None)))
        yield calls


@pytest.fixture(scope="module")
def scores(tiles: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of scores of two models on `headed`: `two` has the middle needles wrong."""

    def make(folder: Path) -> None:
        path = tiles / "mmlb_data/tiles/headed_K1.jsonl"
        records = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
        about = {"metric": "sub_em", "profile": "official", "is_own": True, "dataset": "headed", "length": 1024}
        for model in ("one", "two"):
            lines = [
                {
                    **about,
                    "model": model,
                    "file": "tiles/headed_K1.jsonl",
                    "id": each["id"],
                    "depth": each["depth"],
                    "facets": {"colour": ["red", "a, b"]},
                    "status": "scored",
                    "score": float(model == "one" or each["depth"] != 0.4),
                }
                for each in records
            ]
            (folder / f"{model}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")

    return once(tmp_path_factory, "tiles-scores", make)


@pytest.fixture(scope="module")
def chromium() -> Iterator["Browser"]:
    """A browser; without one the test is skipped."""
    path = needs.chromium()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield opened
        opened.close()
