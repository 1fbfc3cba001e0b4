"""The file of a data folder that says what was downloaded: from where, at which commit, with which bytes.

The first download of a file writes its size and SHA-256; later downloads are checked against them.
"""

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError, field_validator

from mmlongbench.errors import FetchError
from mmlongbench.io.files import MAX_OF_A_FILE, read_regular, write_whole
from mmlongbench.manifest.downloads import RESERVED, fault_of_path


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class FetchedFile(_Model):
    """A file that was downloaded whole."""

    origin: str
    """`hub:owner/name@commit/path`, or the URL without secrets."""
    size: int
    """Its bytes."""
    sha256: str
    """The SHA-256 of its bytes."""
    version: str = ""
    """What the server of a URL calls this version of the file (ETag)."""


class FetchedDataset(_Model):
    """The files of a dataset of the hub that an entry of a manifest asks for."""

    commit: str
    """The commit that the revision was when its files were first listed."""
    files: tuple[str, ...]
    """Their paths below the data folder, whether they were downloaded or not."""

    @field_validator("files", mode="before")
    @classmethod
    def _tuple(cls, value: object) -> object:
        return tuple(value) if isinstance(value, list) else value


class DownloadRecord(_Model):
    """What was downloaded into a data folder."""

    version: Literal[1] = 1
    """The version of this format."""
    datasets: dict[str, FetchedDataset] = {}
    """By the dataset, its revision, the patterns of its files, and the folder that they are in."""
    files: dict[str, FetchedFile] = {}
    """By the path below the data folder."""
    unfinished: dict[str, str] = {}
    """What the server calls the version of a file that is not complete (ETag), by the path of the file."""

    @field_validator("files")
    @classmethod
    def _inside(cls, value: dict[str, FetchedFile]) -> dict[str, FetchedFile]:
        for path in value:
            if fault := fault_of_path(path):
                raise ValueError(f"{path!r:.200}: {fault}")
        return value


def load_record(folder: Path) -> DownloadRecord:
    """Return the record of a data folder; an empty one if there is none.

    Raises:
        FetchError: the file cannot be read, or is not a record.

    """
    path = folder / RESERVED
    if not path.exists():
        return DownloadRecord()
    try:
        return DownloadRecord.model_validate_json(read_regular(path, MAX_OF_A_FILE))
    except (OSError, ValueError) as error:
        said = error.errors()[0]["msg"] if isinstance(error, ValidationError) else str(error)
        raise FetchError(
            f"{path}: expected a record of downloads, found another file ({said}); move it away, and the files are "
            "compared with those of their places, or downloaded again"
        ) from error


def save_record(folder: Path, record: DownloadRecord) -> None:
    """Write the record of a data folder."""
    write_whole(folder / RESERVED, [record.model_dump_json(indent=1).encode(), b"\n"])
