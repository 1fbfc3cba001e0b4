"""Datasets of the Hugging Face hub, with a fake hub of a few rows."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mmlongbench.corpus.sources import find_source
from mmlongbench.errors import SourceError

ROWS = [{"id": str(n), "title": f"Title {n}", "text": f"Text {n}.", "vector": [n]} for n in range(3)]


class Hub:
    """The fake hub: two datasets, one of them with two splits."""

    splits = {"me/one": {"train": ROWS}, "me/two": {"a": ROWS[:1], "b": ROWS[1:]}}  # noqa: RUF012

    def load(self, name: str, config: str | None, *, revision: str | None, streaming: bool) -> Any:
        assert streaming
        assert (config, revision) in ((None, None), ("full", "v1"))
        return self.splits[name]

    def dataset_info(self, name: str, revision: str | None) -> Any:
        if name not in self.splits:
            raise ConnectionError("no network\nat all")
        return SimpleNamespace(sha=f"{name} {revision}")


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("datasets.load_dataset", Hub().load)
    monkeypatch.setattr("huggingface_hub.HfApi", Hub)
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("hub")
def test_a_dataset_of_the_hub(read: Any) -> None:
    assert [(a.doc_id, a.title, a.paragraphs) for a in read("me/one")] == [
        (str(n), f"Title {n}", (f"Text {n}.",)) for n in range(3)
    ]
    assert [(a.doc_id, a.place) for a in read("me/two:full:b@v1")] == [("1", "row 0"), ("2", "row 1")]
    assert find_source("me/two:full:b@v1").info.sha256 == "me/two v1"
    assert find_source("me/one").info.name == "me/one"


@pytest.mark.usefixtures("hub")
def test_what_the_hub_cannot_give_is_said_in_one_line(read: Any) -> None:
    with pytest.raises(SourceError, match=r"^me/two: unknown-split: expected one of the splits a, b, found none; name"):
        read("me/two")
    with pytest.raises(
        SourceError, match=r"me/no: unreachable-dataset: .* found ConnectionError: no network; download"
    ):
        read("me/no")
    with pytest.raises(SourceError, match=r"unknown-source: expected owner/name\[:config\[:split\]\]\[@revision\]"):
        read("no name", "hub")


@pytest.mark.usefixtures("hub")
@pytest.mark.parametrize("source", ["corpora/wiki.jsonl", "/a/b", "nowhere", "a/b/c", "./one"])
def test_a_path_that_leads_nowhere_is_not_looked_for_on_the_hub(read: Any, source: str) -> None:
    message = "missing-source: expected a file, a folder, or owner/name on the hub, found none; check the path"
    with pytest.raises(SourceError, match=f"^{source}: {message}"):
        read(source)
