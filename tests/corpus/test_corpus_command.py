"""The command `corpus build`: its output, its files and its errors."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from mmlongbench.cli.corpus import _FORMATS, corpus
from mmlongbench.corpus import Corpus
from mmlongbench.corpus.making import make_corpus
from mmlongbench.corpus.sources import FORMATS
from mmlongbench.errors import BuildError, SourceError
from mmlongbench.io.progress import Progress

ROWS = [
    {"id": f"{n}", "title": f"Title {n}", "text": f"Text {n}. It has nine words, as has every one."} for n in range(4)
]


@pytest.fixture
def source(lines: Any) -> Path:
    path: Path = lines(*ROWS, {"id": "4", "text": "No title."}, b"no json", b"no more", name="source.jsonl")
    return path


def run(*args: object) -> Result:
    return CliRunner().invoke(corpus, ["build", *map(str, args)])


def test_it_says_what_it_kept_and_what_it_left_out(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    said = [
        "articles: 4 kept, 3 rejected",
        "  rejected 2: invalid-json",
        "  rejected 1: missing-title",
        "passages: 4 of 10.0 words on average",
    ]
    assert run(source, "--out", out).output.splitlines() == [*said, f"{out} is complete"]
    assert run(source, "--out", out).output.splitlines() == [*said, f"{out} was complete already"]


def test_it_says_it_as_json_or_not_at_all(source: Path, tmp_path: Path) -> None:
    said = json.loads(run(source, "--out", tmp_path / "a", "--json", "--mode", "words", "--limit", 2).output)
    assert (said["articles"], said["mode"], said["limit"], said["was_complete"]) == (2, "words", 2, False)
    assert said["rejected"] == {}
    assert said["source"]["name"] == "source.jsonl"
    assert run(source, "--out", tmp_path / "b", "-q").output == ""
    assert len(Corpus.open(tmp_path / "b")) == 4


def test_it_fails_in_one_line_and_leaves_nothing(source: Path, tmp_path: Path) -> None:
    failed = run(source, "--out", tmp_path / "out", "--format", "parquet")
    assert isinstance(failed.exception, SourceError)
    assert str(failed.exception).startswith("source.jsonl: broken-parquet: expected a Parquet file that can be read")
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_used_is_told_before_the_source_is_read(tmp_path: Path) -> None:
    failed = run("nowhere", "--out", tmp_path.parent)
    assert isinstance(failed.exception, BuildError)
    with pytest.raises(BuildError, match="--mode lines: unknown mode; the modes are sentences, words"):
        make_corpus("nowhere", tmp_path / "out", "lines")


def test_a_bar_goes_over_the_source(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mmlongbench.corpus.lines.STEP", 100)
    monkeypatch.setattr("mmlongbench.corpus.sources.STEP", 100)
    monkeypatch.setattr("mmlongbench.io.progress.PATIENCE", 0.0)
    assert make_corpus(str(source), tmp_path / "out", progress=Progress(True)).info.articles == 4


def test_the_command_offers_every_format() -> None:
    assert _FORMATS == FORMATS


def test_importing_the_command_imports_no_heavy_library() -> None:
    import subprocess

    heavy = {"numpy", "pyarrow", "datasets", "pymupdf", "tantivy"}
    script = f"import sys, mmlongbench.cli.corpus; print(*(set(sys.modules) & {heavy!r}))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
