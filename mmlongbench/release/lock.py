"""The lock: what a release is made of, written last. It has no time, no worker count and no absolute path.

What is missing, or cannot be read, raises a `ReleaseError` that names the file.
"""

import hashlib
import json
import os
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, ValidationError

from mmlongbench.errors import ReleaseError
from mmlongbench.io.files import TEMPORARY, Links, read_regular, sha256_of
from mmlongbench.lengths import format_length
from mmlongbench.manifest.licences import LicenceSpec, licence_spec
from mmlongbench.manifest.strict_model import explain
from mmlongbench.prompt import Image, Prompt
from mmlongbench.release.layout import CLAIMS, DATA, IMAGES, ITEMS, LOCK, REJECTS, TOKENIZERS, TOMBSTONES
from mmlongbench.task.file_formats import to_json

MAKERS = ("mmlongbench", "pymupdf", "pillow", "tokenizers", "pyarrow", "tantivy", "numpy")
MAX_BYTES = 512 * 1024 * 1024
_NAMED = 5
CANARY = "mmlongbench benchmark data, not for training: canary"
"""The words before the identifier of a canary: a text that is in the records of a release and nowhere else, so that
training data can be searched for them."""
_CHANGING = frozenset({"lengths", "sample", "source", "source_sha256"})
"""The keys of a resolved dataset that an extension of the release may change; its canary stays."""


class _Part(BaseModel):
    """A part of a lock; unknown keys, written by another version, are kept."""

    model_config = ConfigDict(frozen=True, extra="allow", strict=True)


_Count = Annotated[int, Field(ge=0)]
_Counts = dict[str, _Count]


class LockedFile(_Part):
    """A file of a release."""

    bytes: _Count
    """The size in bytes."""
    sha256: str
    """The SHA-256 in hexadecimal."""


class RetrievalCounts(_Part):
    """What a retriever of pages found for the questions of a dataset."""

    by: str
    """How pages were ranked: `bm25`, `text` or `image`."""
    questions: _Count
    """The questions that have pages with the answer; recall is the mean over them."""
    gold_pages: _Count
    """The pages that hold an answer, counted for each question."""
    ranked_gold_pages: _Count
    """How many of them were ranked. BM25 does not rank a page that shares no word with the question, such as a scan."""
    recall: dict[str, Annotated[float, Field(ge=0, le=1)]]
    """The mean share of a question's gold pages among the first k pages, by k."""


class QuestionCounts(_Part):
    """How many rows of a dataset were kept or left out; `not_selected`, `skipped` and `noted` are there only if they
    count something, and `retrieval` if the contexts are retrieved.
    """

    read: _Count
    """The rows of the source."""
    kept: _Count
    """The questions that were chosen."""
    not_sampled: _Count
    """The rows that the sample leaves out."""
    not_selected: _Count = 0
    """The rows that the builder does not ask about."""
    rejected: _Counts = {}
    """The rejected rows, by reason."""
    skipped: _Counts = {}
    """The rows that the benchmark itself leaves out, by reason."""
    repaired: _Counts = {}
    """The kept rows that were repaired when they were read, by kind of repair."""
    noted: _Counts = {}
    """How many examined rows have each note of `Draft.noted`, also rejected ones."""
    retrieval: RetrievalCounts | None = None
    """What the retriever of pages found; None if no pages were ranked."""


class CellCounts(_Part):
    """The counts of a dataset at one length; `not_asked` and the keys after it are there only if they are not 0.

    If a task balances its examples by a field (`TaskSpec.balance`), there is one more key, `by_<field>`: how many
    examples have each value of the field.
    """

    examples: _Count
    """Examples in the file."""
    rejected: _Count
    """Questions that do not fit."""
    ran_dry: _Count
    """Examples whose take order was exhausted while there was still room."""
    not_asked: _Count = 0
    """Questions whose group no context of this length shows (`Question.group`)."""
    missing_classes: _Count = 0
    """Classes that contexts of this length should show and the source does not have."""
    missing_units: _Count = 0
    """The largest number of units of mean size for which an example still had room."""
    left_out: _Counts = {}
    """Units that could not be shown, by reason."""

    @property
    def balances(self) -> dict[str, Any]:
        """How many examples have each value of a balanced field, by the name of the field."""
        more = self.model_extra or {}
        return {key.removeprefix("by_"): counts for key, counts in more.items() if key.startswith("by_")}


class DocumentCounts(_Part):
    """The counts of a dataset's documents."""

    usable: _Count
    refused: dict[str, str]
    """Why documents were refused, by id."""
    images_by_dpi: _Counts = {}
    """How many documents are page images already in the source, by DPI."""
    renamed: dict[str, str]
    """The names that documents have in the release, by id, if these differ."""
    damaged: dict[str, dict[str, str]] = {}
    """The pages that are not drawn whole, by document and by the number of the page from 1, with the cause."""
    hidden_text: _Counts = {}
    """How many pages of a document have text that cannot be seen and is left out, by document."""


class CorpusCounts(_Part):
    """The size of a corpus."""

    articles: _Count
    passages: _Count
    wikidata_ids: _Count | None
    """None if the corpus was built by a version that did not keep Wikidata ids."""


class NegativeCounts(_Part):
    """The counts of a dataset's hard negatives."""

    rejected: _Counts
    """How many passages were rejected, by reason."""
    fewest_clean: _Count
    """The smallest number of hard negatives that a query has."""
    sha256: str
    """The SHA-256 of the negatives that were found."""


class DomainCounts(_Part):
    """The counts of the classes of a domain."""

    classes: _Count
    exemplars: _Count
    tests: _Count
    without_exemplars: list[str]
    without_tests: list[str]


class ClassCounts(_Part):
    """The counts of the classes of a dataset of pictures."""

    splits: dict[str, str]
    """The names that the splits `exemplars` and `tests` have in the source."""
    domains: dict[str, DomainCounts]


class DatasetCounts(_Part):
    """All counts of a dataset."""

    questions: QuestionCounts
    """The counts of its rows."""
    cells: dict[str, CellCounts]
    """The counts by length, such as `8K`."""
    documents: DocumentCounts
    """The counts of its documents."""
    errata: dict[str, dict[str, JsonValue]] = {}
    """The corrections of the source's rows, by id."""
    corpus: CorpusCounts | None = None
    """The size of its corpus; None without one."""
    negatives: NegativeCounts | None = None
    """The counts of its hard negatives; None without a corpus."""
    classes: ClassCounts | None = None
    """The counts of its classes of pictures; None without any."""
    licence: str | None = None
    """The licence of the source, as the manifest states it."""


class UnreadableCounts(BaseModel):
    """Takes the place of the counts of a dataset that cannot be read."""

    fault: str


def _counts_or_fault(value: object) -> object:
    if isinstance(value, DatasetCounts | UnreadableCounts):
        return value
    try:
        return DatasetCounts.model_validate(value)
    except ValidationError as error:
        return UnreadableCounts(fault=explain(error, "counts", DatasetCounts, []))


class Lock(BaseModel):
    """The contents of a release."""

    model_config = ConfigDict(frozen=True, extra="allow")

    format: Literal[1]
    """The version of this format."""
    versions: Annotated[
        Mapping[str, JsonValue], BeforeValidator(lambda value: value if isinstance(value, dict) else {})
    ] = {}
    """The versions of everything that decides bytes, by package; always texts in a lock of this engine."""
    manifest: list[dict[str, JsonValue]]
    """Each dataset as it was resolved, with the fingerprints of its sources; `locked_dataset` reads it."""
    datasets: dict[str, Annotated[DatasetCounts | UnreadableCounts, BeforeValidator(_counts_or_fault)]]
    """The counts of each dataset, by name."""
    files: dict[str, LockedFile]
    """The files, by path below the release."""
    canary: str = ""
    """The text that the field `canary` of every record has, in datasets whose manifest asks for it; empty if no dataset
    does."""
    cut: dict[str, JsonValue] = {}
    """How a release was cut for models: `of`, the `lock_id` of the release that it was cut from, and `fits`, the window
    and the tokenizer of each model; empty if it was not."""
    unmatched_licences: dict[str, list[str]] = {}
    """The lines of tables of licences that name nothing of the sources, by dataset, without datasets that have none."""

    @property
    def licence_notes(self) -> tuple[str, ...]:
        """What a user must know about the tables of licences, one sentence for each dataset."""
        notes = []
        for dataset, lines in self.unmatched_licences.items():
            more = f" and {len(lines) - _NAMED:,} more" if len(lines) > _NAMED else ""
            named = ", ".join(f"{name!r:.200}" for name in lines[:_NAMED])
            note = (
                f"dataset {dataset!r}: the table of licences has lines that name no file, document or picture of the "
                f"sources, and no text that an example shows, so they have no effect: {named}{more}; correct them, or "
                "take them out"
            )
            notes += [note] if lines else []
        return tuple(notes)

    def counts(self, dataset: str) -> DatasetCounts | None:
        """Return the counts of a dataset; None if there are no readable ones."""
        counts = self.datasets.get(dataset)
        return counts if isinstance(counts, DatasetCounts) else None

    def cell(self, dataset: str, length: int) -> CellCounts | None:
        """Return the counts of a dataset at a length, in tokens; None if there are no readable ones."""
        counts = self.counts(dataset)
        return counts.cells.get(format_length(length)) if counts else None

    @property
    def readable(self) -> dict[str, DatasetCounts]:
        """The counts of each dataset with readable counts."""
        return {name: counts for name, counts in self.datasets.items() if isinstance(counts, DatasetCounts)}

    def public(self) -> dict[str, Any]:
        """Return the lock as JSON values."""
        return self.model_dump(exclude_unset=True)  # JSON mode would lose names of documents that are not valid Unicode


def locked_licences(data: Mapping[str, object]) -> LicenceSpec:
    """Return the licences of a dataset in the form of the lock; a `ReleaseError` if no manifest may have this form."""
    given = data.get("licence") or ""
    try:
        return licence_spec(given) if isinstance(given, str) else LicenceSpec.model_validate(given)
    except ValidationError as error:
        raise ReleaseError(explain(error, f"{LOCK}: manifest: licence", LicenceSpec, [])) from error


def versions() -> dict[str, str]:
    """Return the versions of everything that decides bytes."""
    from PIL import features

    return {name: version(name) for name in MAKERS} | {"libjpeg-turbo": str(features.version("libjpeg_turbo"))}


LockedCounter: TypeAlias = Mapping[str, Any]


def counted_as(counter: LockedCounter) -> str:
    """Return the model by which a dataset was counted, with the files that count; empty if it was the benchmark's rule
    of images.

    >>> tokenizer, image = {"name": "mine.json", "sha256": "0"}, {"model": "gemma4"}
    >>> counted_as({"tokenizer": tokenizer, "image": image, "exact": False})
    'gemma4, texts by mine.json; these are estimates of what it counts'
    """
    if "model" not in counter.get("image", {}):
        return ""
    template = f", with the chat template {counter['template']['name']}" if "template" in counter else ""
    exact = counter.get("exact", True)
    doubt = "" if exact else "; these are estimates of what it counts"
    return f"{counter['image']['model']}, texts by {counter['tokenizer']['name']}{template}{doubt}"


def also_counted_as(further: Mapping[str, LockedCounter]) -> str:
    """Return the further counters of a dataset in words; empty if there are none."""
    said = (counted_as(each) or f"{name}, texts by {each['tokenizer']['name']}" for name, each in further.items())
    return "; and as ".join(said)


def lock_bytes(lock: Lock) -> list[bytes]:
    """Return the parts of a lock file, as bytes; the file is indented, so that a person can read and compare it."""
    return [json.dumps(lock.public(), ensure_ascii=False, indent=1).encode("utf-8", "backslashreplace"), b"\n"]


def lock_id(release: Path) -> str:
    """Return the first 16 hexadecimal digits of the SHA-256 of a lock, which predictions and scores carry."""
    try:
        return sha256_of(release / LOCK)[:16]
    except OSError as error:
        raise ReleaseError(f"{release / LOCK}: cannot be read: {error.strerror or error}") from error


def read_lock(release: Path, data: Mapping[str, Any] | None = None) -> Lock:
    """Read the lock of a release; `data` is its JSON if that is read already (`lock_json`)."""
    path = release / LOCK
    try:
        lock = Lock.model_validate(lock_json(release) if data is None else data)
    except ValidationError as error:
        raise ReleaseError(explain(error, f"{path}", Lock, [])) from error
    names = Counter(str(data.get("name")) for data in lock.manifest)
    if twice := sorted(name for name, times in names.items() if times > 1):
        raise ReleaseError(f"{path}: manifest: two datasets have the name {twice[0]!r}")
    return lock


def lock_json(release: Path) -> dict[str, Any]:
    """Return the JSON of the lock of a release; `read_lock` checks its parts."""

    def once(pairs: list[tuple[str, object]]) -> dict[str, object]:
        values = dict(pairs)
        if len(values) < len(pairs):  # some readers would take the first value, others the last
            twice = next(key for key, times in Counter(key for key, _ in pairs).items() if times > 1)
            raise ValueError(f"the key {twice!r:.80} twice in one object")
        return values

    path = release / LOCK
    try:
        lock: object = json.loads(read_regular(path, MAX_BYTES), object_pairs_hook=once)
    except FileNotFoundError as error:
        raise ReleaseError(
            f"{release}: no {LOCK}: this is no release of mmlongbench, or its build has not finished; "
            "to audit public files of other origin, give their own path or that of mmlb_data/"
        ) from error
    except RecursionError as error:
        raise ReleaseError(f"{path}: expected a lock, found JSON that is nested too deeply") from error
    except (ValueError, OSError) as error:
        raise ReleaseError(f"{path}: expected JSON, found {error}") from error
    if not isinstance(lock, dict) or type(lock.get("format")) is not int or lock["format"] != 1:
        raise ReleaseError(f"{path}: expected a lock of format 1")
    return lock


OTHER_BYTES = "the bytes are not those of the lock"
_UNFINISHED = (TEMPORARY, ".build")
"""How the names of incomplete files, and of the working folder of a build, begin."""


def files_below(root: Path) -> Iterator[Path]:
    """Yield every file in the folder `root`, or `root` itself if it is a file."""
    return (path for path in (root, *root.rglob("*")) if path.is_file())


def names_there(release: Path) -> Iterator[str]:
    """Yield the path of everything in a release that is no folder, except the lock, files of claims (`CLAIMS`) and
    `TOMBSTONES`. A link to a folder is followed only if it is `mmlb_data`, `mmlb_image` or `items` itself.
    """
    for top in release.iterdir():
        if not top.is_dir() or (top.is_symlink() and top.name not in (DATA, IMAGES, ITEMS)):
            if top.name not in (LOCK, TOMBSTONES):
                yield top.name
            continue
        for folder, folders, files in os.walk(top):
            links = [name for name in folders if Path(folder, name).is_symlink()]
            below = folder.removeprefix(f"{release}/")
            yield from (f"{below}/{name}" for name in files + links if top.name != DATA or not name.endswith(CLAIMS))


def inventory(release: Path, lock: Lock) -> dict[str, LockedFile | None]:
    """Return every file that is in the lock or on disk, sorted by path, as the lock has it; None if it has not."""
    return {path: lock.files.get(path) for path in sorted({*lock.files, *names_there(release)})}


def problem_of(links: Links, name: str, file: LockedFile | None) -> str | None:
    """Return why a file of the inventory is not the file of the lock; None if it is. `links` is of the release."""
    if file is None:
        is_temporary = any(part.startswith(_UNFINISHED) for part in name.split("/"))
        return "temporary file is left" if is_temporary else "file is not in the lock"
    if ".." in name.split("/") or name.startswith("/"):
        return "the path leaves the release"
    path = links.root / name
    try:
        if not path.is_file():  # reading a pipe might never end
            return "is no file" if path.exists() else "missing file"
        if links.lead_out(name, of_top=True):
            return "is a link out of the release"
        is_same = path.stat().st_size == file.bytes and sha256_of(path) == file.sha256
        return None if is_same else OTHER_BYTES
    except OSError:
        return "the file cannot be read"


def is_release_path(name: str) -> bool:
    """Return whether a name in a lock can be that of a file of a release, below its folder."""
    pure = PurePosixPath(name)
    is_inside = ".." not in pure.parts and not pure.is_absolute() and "\\" not in name and "\0" not in name
    is_below = len(pure.parts) > 1 and pure.parts[0] in (DATA, IMAGES, ITEMS, TOKENIZERS)
    return is_inside and (name == REJECTS or is_below)


def leads_out(release: Path, name: str) -> bool:
    """Return whether a file is a link that leads out of its top folder; the top folders may be links themselves."""
    return Links(release).lead_out(name, of_top=True)


def example_digest(prompt: Prompt, gold: object, lock: Lock) -> str:
    """Return the SHA-256 of a prompt, of the bytes of its images, and of its answer.

    Two releases that show a model the same texts and the same images, whatever the images are called, and have the same
    answer, give the same digest. An image that the lock does not have is a `ReleaseError`.
    """
    turns = []
    for turn in prompt.turns:
        parts: list[object] = []
        for part in turn.parts:
            if isinstance(part, Image):
                file = lock.files.get(f"{IMAGES}/{part.path}")
                if file is None:
                    raise ReleaseError(f"image {part.path!r}: is not in the lock; see `mmlongbench verify`")
                parts.append({"image": file.sha256})
            else:
                parts.append(part)
        turns.append([turn.role, parts])
    whole = json.dumps([turns, gold], sort_keys=True, default=str)
    return hashlib.sha256(whole.encode()).hexdigest()


def canary_text(public: dict[str, Any]) -> str:
    """Return the canary that belongs to a dataset in the form of the lock.

    >>> canary_text({"name": "a", "lengths": [1]}) == canary_text({"name": "a", "lengths": [1, 2]})
    True
    """
    fixed = {key: value for key, value in sorted(public.items()) if key not in _CHANGING}
    digest = hashlib.sha256(b"canary\n" + to_json(fixed)).digest()
    return f"{CANARY} {uuid.UUID(bytes=digest[:16], version=5)}"
