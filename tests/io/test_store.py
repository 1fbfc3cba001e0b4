"""Rows on disk: found again by others, bounded in what a kill costs, and files that cannot be used are named."""

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import ClassVar

import pytest

from mmlongbench.errors import BuildError
from mmlongbench.io import sqlite_rows as store
from mmlongbench.io.sqlite_rows import MEMORY, Store


class Counts(Store):
    """Numbers by a name."""

    table: ClassVar[str] = "counts"
    columns: ClassVar[str] = "name TEXT, number INTEGER NOT NULL"

    def unusable(self, error: Exception) -> BuildError:
        return BuildError(f"{self.path.name}: {error}; remove it")


class Latest(Counts):
    """As `Counts`, but the last number counts, and is written to a log first."""

    replaces: ClassVar[bool] = True
    writes_ahead: ClassVar[bool] = True


KINDS = (Counts, Latest)


@contextmanager
def two(kind: type[Counts], path: Path) -> Iterator[tuple[Counts, Counts]]:
    with closing(kind(path)) as one, closing(kind(path)) as other:
        yield one, other


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_put_is_there_at_once_and_for_others_once_it_is_saved(kind: type[Counts], tmp_path: Path) -> None:
    with two(kind, tmp_path / "new" / "a.sqlite") as (one, other):
        one.put("a", 1)
        assert (one.row("a"), other.row("a"), one.row("b")) == (("a", 1), None, None)
        one.save()
        assert other.row("a") == ("a", 1)
        assert list(other.rows(["b", "a"])) == list(other.select("WHERE number = ?", 1)) == [("a", 1)]


@pytest.mark.parametrize(("kind", "found"), [(Counts, 1), (Latest, 2)])
def test_the_first_row_of_a_key_stays_unless_rows_are_replaced(kind: type[Counts], found: int, tmp_path: Path) -> None:
    with two(kind, tmp_path / "a.sqlite") as (one, other):
        one.write([("a", 1)])
        other.write([("a", 2)])
        assert one.row("a") == ("a", found)


def test_rows_that_were_put_are_written_by_the_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "BATCH", 3)
    monkeypatch.setattr(store, "MAX_KEYS", 2)
    with two(Counts, tmp_path / "a.sqlite") as (one, other):
        names = [f"{number}" for number in range(7)]
        for number, name in enumerate(names):
            one.put(name, number)
        assert len(list(other.rows(names))) == 6
        assert sorted(one.rows(names)) == [(name, number) for number, name in enumerate(names)]


END = """
import sys; from pathlib import Path; sys.path.insert(0, sys.argv[2])
from test_store import Counts
counts = Counts(Path(sys.argv[1]))
counts.put("a", 1)
"""


def test_what_was_put_is_written_at_the_end_of_the_interpreter_and_when_a_store_is_let_go(tmp_path: Path) -> None:
    path, here = tmp_path / "a.sqlite", str(Path(__file__).parent)
    subprocess.run([sys.executable, "-c", END, str(path), here], check=True)
    counts = Counts(path)
    counts.put("b", 2)
    del counts
    with closing(Counts(path)) as counts:
        assert sorted(counts.rows(["a", "b"])) == [("a", 1), ("b", 2)]


def test_any_thread_reads_writes_and_closes(tmp_path: Path) -> None:
    counts = Latest(tmp_path / "a.sqlite")
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: counts.write([(str(number), number)]), range(64)))
        assert list(pool.map(lambda number: counts.row(str(number)), range(64))) == [(str(n), n) for n in range(64)]
        pool.submit(counts.close).result()
    with pytest.raises(BuildError, match=r"a\.sqlite: Cannot operate on a closed database"):
        counts.row("1")


RACE = """
import os, sys; from pathlib import Path; sys.path.insert(0, sys.argv[2])
from test_store import Latest
for number in range(8):
    path, (start, go), children = Path(sys.argv[1], f"{number}.sqlite"), os.pipe(), []
    for _ in range(4):
        children.append(os.fork())
        if not children[-1]:
            os.read(start, 1)
            Latest(path).write([(str(os.getpid()), 1)])
            os._exit(0)
    os.write(go, b"1234")
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 4
"""
"""Forked, since they must open a file within the same millisecond."""


def test_processes_that_open_a_new_file_at_once_wait_for_each_other(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", RACE, str(tmp_path), str(Path(__file__).parent)], check=True)
    for number in range(8):
        with closing(Latest(tmp_path / f"{number}.sqlite")) as opened:
            assert len(list(opened.select(""))) == 4


def test_rows_without_a_file_are_kept_in_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with closing(Latest(MEMORY)) as counts:
        counts.write([("a", 1)])
        assert counts.row("a") == ("a", 1)
    assert not list(tmp_path.iterdir())


def test_a_frozen_file_is_read_where_nothing_can_be_written(tmp_path: Path) -> None:
    path = tmp_path / "a #1?.sqlite"
    with closing(Counts(path)) as counts:
        counts.put("a", 1)
    with closing(Counts(path, is_frozen=True)) as counts:
        assert counts.row("a") == ("a", 1)
        with pytest.raises(BuildError, match="readonly"):
            counts.write([("b", 2)])
    with pytest.raises(BuildError, match="unable to open"):
        Counts(tmp_path / "none.sqlite", is_frozen=True)
    assert [each.name for each in tmp_path.iterdir()] == [path.name]
