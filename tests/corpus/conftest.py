"""Small sources in every format, written by the tests themselves."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mmlongbench.corpus import Article
from mmlongbench.corpus.articles import fit
from mmlongbench.corpus.sources import find_source
from mmlongbench.errors import Fault

Read = Callable[..., list[Article | Fault]]
Write = Callable[..., Path]


@pytest.fixture
def read() -> Read:
    """What a source yields: articles, and the faults of those that are none."""

    def read(source: object, format: str | None = None) -> list[Article | Fault]:
        return list(fit(find_source(str(source), format).articles()))

    return read


@pytest.fixture
def lines(tmp_path: Path) -> Write:
    """Write a file of lines: objects as JSON, bytes as they are."""

    def write(*rows: Any, name: str = "corpus.jsonl") -> Path:
        path = tmp_path / name
        path.write_bytes(
            b"".join((row if isinstance(row, bytes) else json.dumps(row).encode()) + b"\n" for row in rows)
        )
        return path

    return write
