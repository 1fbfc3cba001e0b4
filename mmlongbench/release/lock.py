"""The lock: what a release is made of, written last. No time, no worker count, no absolute path."""

import json
from collections import Counter
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, ValidationError

from mmlongbench.errors import ReleaseError
from mmlongbench.io.safe_read import read_regular
from mmlongbench.manifest.validation import explain
from mmlongbench.release.layout import LOCK

MAKERS = ("mmlongbench", "pymupdf", "pillow", "tokenizers", "pyarrow", "tantivy", "numpy")
"""The packages whose versions a lock has."""
MAX_BYTES = 512 * 1024 * 1024
"""Of a lock."""


class _Part(BaseModel):
    """A part of a lock; what another version wrote there besides is kept."""

    model_config = ConfigDict(frozen=True, extra="allow", strict=True)


_Count = Annotated[int, Field(ge=0)]
_Counts = dict[str, _Count]


class LockedFile(_Part):
    """A file of a release."""

    bytes: _Count
    sha256: str


class QuestionCounts(_Part):
    """What became of the rows of a dataset; a key that few datasets need stands there only where it counts any."""

    read: _Count
    kept: _Count
    not_sampled: _Count
    not_selected: _Count = 0
    """Rows that the builder does not ask about."""
    rejected: _Counts = {}
    """By reason, as all that follow."""
    skipped: _Counts = {}
    repaired: _Counts = {}
    noted: _Counts = {}


class CellCounts(_Part):
    """What is counted of a dataset at one length; the keys from `not_asked` on stand there only where they count any.

    A task whose spec names a field to balance has one more, `by_<field>`: examples by the value of that field.
    """

    examples: _Count
    rejected: _Count
    """Questions that do not fit."""
    ran_dry: _Count
    """Examples whose units ran out before the room did."""
    not_asked: _Count = 0
    """Questions that no context of this length shows."""
    missing_classes: _Count = 0
    missing_units: _Count = 0
    """For how many units of the mean size there was still room, at most."""
    left_out: _Counts = {}
    """Units that cannot be shown, by reason."""

    @property
    def balances(self) -> dict[str, Any]:
        """Examples by the value of each field that is to balance, by the name of the field."""
        more = self.model_extra or {}
        return {key.removeprefix("by_"): found for key, found in more.items() if key.startswith("by_")}


class DocumentCounts(_Part):
    """The documents of a dataset."""

    usable: _Count
    refused: dict[str, str]
    """Why, by id."""
    images_by_dpi: _Counts = {}
    """Documents that are rendered images as the source has them, by DPI."""
    renamed: dict[str, str]
    """The names that documents have in the release, by id, where these differ."""


class CorpusCounts(_Part):
    """How much a corpus holds."""

    articles: _Count
    passages: _Count
    wikidata_ids: _Count | None
    """None where it was built before these were kept."""


class NegativeCounts(_Part):
    """The hard negatives of a dataset."""

    rejected: _Counts
    """Passages turned away, by reason."""
    fewest_clean: _Count
    """That remained for a question."""
    sha256: str
    """Of what was found."""


class DomainCounts(_Part):
    """The classes of a domain."""

    classes: _Count
    exemplars: _Count
    tests: _Count
    without_exemplars: list[str]
    without_tests: list[str]


class ClassCounts(_Part):
    """The classes of a dataset of pictures."""

    splits: dict[str, str]
    """The names that the source has for `exemplars` and `tests`."""
    domains: dict[str, DomainCounts]


class DatasetCounts(_Part):
    """What is counted of a dataset."""

    questions: QuestionCounts
    cells: dict[str, CellCounts]
    """By length, such as `8K`."""
    documents: DocumentCounts
    errata: dict[str, dict[str, JsonValue]] = {}
    """The corrections of the source's rows, by id."""
    corpus: CorpusCounts | None = None
    negatives: NegativeCounts | None = None
    classes: ClassCounts | None = None
    licence: str | None = None


class UnreadableCounts(BaseModel):
    """The counts of a dataset that say something else than counts."""

    fault: str


def _readable(value: object) -> object:
    """Return the counts that JSON says, or why it says none; what is one of both already, as it is."""
    if isinstance(value, DatasetCounts | UnreadableCounts):
        return value
    try:
        return DatasetCounts.model_validate(value)
    except ValidationError as error:
        return UnreadableCounts(fault=explain(error, "counts", DatasetCounts, []))


def _object(value: Any) -> dict[str, Any]:  # noqa: ANN401  (JSON)
    """Return an object, or an empty one in place of something else."""
    return value if isinstance(value, dict) else {}


class Lock(BaseModel):
    """What a release is made of."""

    model_config = ConfigDict(frozen=True, extra="allow")

    format: Literal[1]
    versions: Annotated[Mapping[str, JsonValue], BeforeValidator(_object)] = {}
    """Of everything that makes bytes, by package; texts, in a lock of ours."""
    manifest: list[dict[str, JsonValue]]
    """Each dataset as it was resolved, with the fingerprints of its sources; `locked_dataset` reads it."""
    datasets: dict[str, Annotated[DatasetCounts | UnreadableCounts, BeforeValidator(_readable)]]
    """By name."""
    files: dict[str, LockedFile]
    """By path below the release."""

    def counts(self, dataset: str) -> DatasetCounts | None:
        """Return the counts of a dataset; None where there are none that can be read."""
        found = self.datasets.get(dataset)
        return found if isinstance(found, DatasetCounts) else None

    @property
    def readable(self) -> dict[str, DatasetCounts]:
        """The counts of each dataset whose counts can be read."""
        return {name: found for name, found in self.datasets.items() if isinstance(found, DatasetCounts)}

    def public(self) -> dict[str, Any]:
        """Return the JSON of the lock."""
        return self.model_dump(exclude_unset=True)  # as JSON, names of documents that are no Unicode would be lost


def versions() -> dict[str, str]:
    """The versions of everything that makes bytes."""
    from PIL import features

    made = {name: version(name) for name in MAKERS}
    return {**made, "libjpeg-turbo": str(features.version("libjpeg_turbo"))}


def lock_bytes(lock: Lock) -> list[bytes]:
    """A lock as a file a person can read and diff."""
    return [json.dumps(lock.public(), ensure_ascii=False, indent=1).encode("utf-8", "backslashreplace"), b"\n"]


def read_lock(release: Path) -> Lock:
    """The lock of a release.

    Raises:
        ReleaseError: there is none, or it is no lock of this format.

    """
    return as_lock(release, lock_json(release))


def as_lock(release: Path, data: dict[str, Any]) -> Lock:
    """The lock that JSON says.

    Raises:
        ReleaseError: it is no lock of this format.

    """
    path = release / LOCK
    try:
        lock = Lock.model_validate(data)
    except ValidationError as error:
        raise ReleaseError(explain(error, f"{path}", Lock, [])) from error
    names = Counter(str(data.get("name")) for data in lock.manifest)
    if twice := sorted(name for name, times in names.items() if times > 1):
        raise ReleaseError(f"{path}: manifest: two datasets are called {twice[0]!r}")
    return lock


def lock_json(release: Path) -> dict[str, Any]:
    """The JSON of the lock of a release, whatever its parts say.

    Raises:
        ReleaseError: there is none, or it is no lock of this format.

    """
    path = release / LOCK
    try:
        lock = json.loads(read_regular(path, MAX_BYTES), object_pairs_hook=_once)
    except FileNotFoundError as error:
        raise ReleaseError(
            f"{release}: no {LOCK}: not a release of this engine, or one whose build has not ended; "
            "public files that others made are audited by their own path, or that of mmlb_data/"
        ) from error
    except RecursionError as error:
        raise ReleaseError(f"{path}: expected a lock, found JSON that is nested too deeply") from error
    except (ValueError, OSError) as error:
        raise ReleaseError(f"{path}: expected JSON, found {error}") from error
    if not isinstance(lock, dict) or type(lock.get("format")) is not int or lock["format"] != 1:
        raise ReleaseError(f"{path}: expected a lock of format 1")
    return lock


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON, each of whose keys stands in it once: of two, readers would take one or the other."""
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {key!r:.80} twice in one object")
        found[key] = value
    return found
