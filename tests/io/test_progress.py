"""Bars appear by the clock, and errors of a tokenizer are one line."""

import threading
from pathlib import Path

import pytest
from rich.progress import TaskID
from tiny import build, command

from mmlongbench.building.build import build as make
from mmlongbench.building.executors.local import LocalExecutor
from mmlongbench.io import progress
from mmlongbench.io.progress import Progress
from mmlongbench.manifest.loading import load_manifest
from mmlongbench.release.audit import audit_release
from tokenization import TokenizationError


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set when a bar is shown."""
    from rich.progress import Progress as Bars

    event = threading.Event()
    monkeypatch.setattr(Bars, "start", lambda self: event.set())
    return event


def test_a_bar_appears_before_the_first_step_is_done(started: threading.Event, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    with Progress(is_shown=True).bar("waiting", 3):
        assert started.wait(60)


def test_no_bar_appears_where_the_work_ended_before(started: threading.Event) -> None:
    before = set(threading.enumerate())
    with Progress(is_shown=True).bar("quick", 3) as advance:
        advance()
    assert not started.is_set()
    assert set(threading.enumerate()) <= before  # others of earlier tests may have ended


def test_no_bar_appears_where_none_is_asked_for(started: threading.Event, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    before = set(threading.enumerate())
    with Progress(is_shown=False).meter("hidden", 3) as advance:
        advance(2)
        assert set(threading.enumerate()) <= before
    assert not started.is_set()


def test_a_build_shows_a_line_for_each_cell_that_is_under_way(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rich.progress import Progress as Bars

    moved: dict[str, float] = {}
    shown: list[list[str]] = []
    advance = Bars.advance

    def watched(self: Bars, task: TaskID, by: float = 1) -> None:
        label = self.tasks[task].description
        moved[label] = moved.get(label, 0) + by
        shown.append([each.description for each in self.tasks if each.visible])
        advance(self, task, by)

    monkeypatch.setattr(Bars, "advance", watched)
    manifest = load_manifest(source / "tiny.yaml")
    make(manifest, tmp_path / "out", LocalExecutor(1, Progress(is_shown=True)))
    assert {label: steps for label, steps in moved.items() if ":" not in label} == {
        "mmlongdoc documents": 4,
        "mmlongdoc rows": 1,
        "mmlongdoc questions": 1,
        "mmlongdoc 1K": 6,
        "mmlongdoc 2K": 6,
        "mmlongdoc pages": 4,
        "mmlongdoc files": 2,
    }
    assert {len(visible) for visible in shown} <= {1, 2}  # the two lengths are made side by side


def test_the_bar_of_an_audit_moves_by_records(finished: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from rich.progress import Progress as Bars

    moved: list[tuple[str, float]] = []
    monkeypatch.setattr(Bars, "advance", lambda self, task, by=1: moved.append((self.tasks[task].description, by)))
    audit_release(finished, Progress(is_shown=True))
    assert [by for label, by in moved if label == "audit: examples"] == [1] * 12
    assert sum(label == "audit: files" for label, _ in moved) > 4


def test_an_error_of_a_tokenizer_is_one_line(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise TokenizationError("this text cannot be tokenized")

    monkeypatch.setattr("mmlongbench.building.build.finish", fail)
    failed = build(source, tmp_path / "out")
    assert (failed.code, failed.err) == (2, "error: this text cannot be tokenized\n")
    with pytest.raises(TokenizationError):
        command("--debug", "build", source / "tiny.yaml", "--out", tmp_path / "out")
