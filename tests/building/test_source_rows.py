"""`sources.rows`: every readable row of a source, whether it is asked about or not, from disk."""

import json
from pathlib import Path

import pytest
from built import prepared
from tiny import KEPT, ROWS, draw_source, write_manifest

from builders.docvqa.rows import DocumentQuestion
from mmlongbench.building.build_dir import rows_shard
from mmlongbench.building.session import Session
from mmlongbench.errors import BuildError
from mmlongbench.manifest.loading import load_manifest

PAGE_0 = 8
"""The place of a row that the reader refuses."""


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A tiny source that may be changed."""
    draw_source(tmp_path / "own")
    return tmp_path / "own"


def opened(own: Path, out: Path) -> Session:
    return prepared(load_manifest(own / "tiny.yaml"), out)


def test_rows_are_all_that_can_be_read_in_the_order_of_the_source(own: Path, tmp_path: Path) -> None:
    with opened(own, tmp_path / "out") as session:
        rows = session.dataset("mmlongdoc").sources.rows
        found = [each.id for each in rows]
        assert found == [f"mmlongdoc_{number}" for number in range(len(ROWS)) if number != PAGE_0]
        assert [each.id for each in session.questions("mmlongdoc")] == [*KEPT]
        assert [each.id for each in rows] == found
        assert len(rows) == len(found)
        assert [rows[place].id for place in (0, 3, -1)] == [found[0], found[3], found[-1]]
        assert [each.id for each in rows[2:5]] == found[2:5]
        assert all(isinstance(each, DocumentQuestion) for each in rows)
        with pytest.raises(IndexError):
            rows[len(found)]


def test_rows_are_those_before_sampling_and_after_errata(own: Path, tmp_path: Path) -> None:
    errata = {"mmlongdoc_0": {"source": "told", "set": {"question": "What is it made of?"}}}
    (own / "errata.yaml").write_text(json.dumps(errata))
    write_manifest(own / "tiny.yaml", sample={"n": 2}, errata="errata.yaml")
    with opened(own, tmp_path / "out") as session:
        rows = session.dataset("mmlongdoc").sources.rows
        assert len(rows) == len(ROWS) - 1
        first = rows[0]
        assert isinstance(first, DocumentQuestion)
        assert first.question == "What is it made of?"
        assert len(session.questions("mmlongdoc")) == 2


def test_rows_that_are_damaged_on_disk_end_the_build_by_name(own: Path, tmp_path: Path) -> None:
    with opened(own, tmp_path / "out") as session:
        rows = session.dataset("mmlongdoc").sources.rows
        assert rows[1].id == "mmlongdoc_1"
        path = session.build_dir.result(rows_shard("mmlongdoc"))
        path.write_bytes(path.read_bytes().replace(b'"mmlongdoc_1"', b'"mmlongdoc_1', 1))
        with pytest.raises(BuildError, match="was damaged or changed, and was removed"):
            rows[1]
        assert not path.exists()
