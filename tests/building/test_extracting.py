"""What a reader extracts from its sources: written once, used again, written anew after a change, never half."""

import errno
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar

import pytest

from mmlongbench.building.build_dir import BuildDir
from mmlongbench.building.extracting import extract_sources
from mmlongbench.errors import BuildError, SourceError
from mmlongbench.io.progress import Progress
from mmlongbench.manifest.calling import PluginCallError
from mmlongbench.manifest.model import DatasetSpec
from mmlongbench.task import Fault, RawRow, Reader, Row, RowFault, SourcePaths

QUIET = Progress(is_shown=False)
SPEC = DatasetSpec.model_validate(
    {"name": "d", "builder": "docvqa", "reader": "slidevqa", "source": {"table": "x"}, "lengths": ["8K"]}
)


class Plain(Reader[Row]):
    row_type: ClassVar[type[Row]] = Row
    sources: ClassVar[tuple[str, ...]] = ("table",)

    def raw_rows(self, sources: SourcePaths) -> Iterator[RawRow | RowFault]:
        yield from ()

    def row(self, raw: RawRow, sources: SourcePaths) -> Row | Fault:
        return Row(id=raw.id)


class Extracting(Plain):
    """Writes each word of its table as a file; the class counts the calls."""

    calls: ClassVar[list[Path]] = []

    def extract(self, sources: SourcePaths, folder: Path) -> None:
        self.calls.append(folder)
        (folder / "words").mkdir()
        for word in sources["table"].read_text().split():
            (folder / "words" / word).write_text(word)
            if word == "bad":
                raise SourceError(Fault("bad-word", "a good word", word, todo="mend it"))


@pytest.fixture
def table(tmp_path: Path) -> Path:
    Extracting.calls.clear()
    (tmp_path / "table").write_text("one two")
    return tmp_path / "table"


def extracted(table: Path, reader: Reader[Row] | None = None) -> dict[str, Path]:
    sources: Mapping[str, Path] = {"table": table}
    return extract_sources(SPEC, reader or Extracting(), sources, BuildDir(table.parent / "out"), QUIET)


def words(found: Mapping[str, Path]) -> list[str]:
    return sorted(path.name for path in found["words"].iterdir())


def test_a_reader_that_extracts_nothing_costs_nothing(table: Path) -> None:
    assert extracted(table, Plain()) == {"table": table}
    assert not (table.parent / "out").exists()


def test_what_a_reader_writes_is_a_source_by_its_name(table: Path) -> None:
    found = extracted(table)
    assert found == {"table": table, "words": table.parent / "out/.build/extracted/d/words"}
    assert words(found) == ["one", "two"]


def test_files_are_written_again_only_if_the_sources_changed(table: Path) -> None:
    assert extracted(table) == extracted(table)
    assert len(Extracting.calls) == 1
    table.write_text("three")
    assert words(extracted(table)) == ["three"]
    assert len(Extracting.calls) == 2


def test_files_of_a_stopped_process_are_written_again(table: Path) -> None:
    table.write_text("one bad two")
    for _ in range(2):
        with pytest.raises(SourceError, match="bad-word"):
            extracted(table)
    table.write_text("one")
    assert words(extracted(table)) == ["one"]
    assert len(Extracting.calls) == 3


def test_files_of_another_version_of_the_software_are_written_again(
    table: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    extracted(table)
    monkeypatch.setattr("mmlongbench.building.extracting.versions", lambda: {"mmlongbench": "9"})
    extracted(table)
    assert len(Extracting.calls) == 2


def test_a_folder_that_was_moved_keeps_its_files(table: Path) -> None:
    extracted(table)
    (table.parent / "out").rename(table.parent / "moved")
    found = extract_sources(SPEC, Extracting(), {"table": table}, BuildDir(table.parent / "moved"), QUIET)
    assert words(found) == ["one", "two"]
    assert len(Extracting.calls) == 1


def test_a_full_disk_is_named_with_what_to_do(table: Path) -> None:
    class Full(Extracting):
        def extract(self, sources: SourcePaths, folder: Path) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(BuildError, match=r"dataset 'd': .*: No space left on device; make room, and run the same"):
        extracted(table, Full())
    assert words(extracted(table)) == ["one", "two"]


def test_a_name_of_another_source_is_refused(table: Path) -> None:
    class Clashing(Extracting):
        def extract(self, sources: SourcePaths, folder: Path) -> None:
            (folder / "table").touch()

    with pytest.raises(PluginCallError, match=r"extract\(\): wrote 'table', which is the name of another source"):
        extracted(table, Clashing())


def test_a_damaged_description_is_written_anew(table: Path) -> None:
    extracted(table)
    description = table.parent / "out/.build/extracted/d.json"
    assert json.loads(description.read_text())[1] == "slidevqa"
    description.write_text("{")
    assert words(extracted(table)) == ["one", "two"]
    assert len(Extracting.calls) == 2
