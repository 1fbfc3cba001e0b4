"""The assets of a release: where every source, image and text comes from, under which licence, with its SHA-256.

`items/assets.parquet` has one row for each asset of each dataset, sorted by dataset, kind and name. It is made when a
build finishes, and an audit compares it with the prompts.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeAlias

from mmlongbench.errors import ReleaseError
from mmlongbench.io.files import atomic_write
from mmlongbench.prompt import Image, Prompt
from mmlongbench.release.file_audit import Facts, FileAudit, Finding
from mmlongbench.release.items import Item
from mmlongbench.release.layout import IMAGES, ITEMS
from mmlongbench.release.lock import Lock
from mmlongbench.release.release import ReadDataset, Release

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

ASSETS = f"{ITEMS}/assets.parquet"
"""The path of the table of assets in a release."""
AssetKind: TypeAlias = Literal["image", "source", "text"]
"""`image`: a file below `mmlb_image/`. `source`: a source of a dataset. `text`: the text of a unit."""
_PAGES = re.compile(r"#page=(?P<first>[0-9]{1,9})(?:-(?P<last>[0-9]{1,9}))?$")
_ROWS = 20_000
"""How many rows are written or read at once."""
_MAX_ROW = 64 * 1024
"""The maximum size of a row, on average, in bytes."""
_MAX_FIRST = 1024 * 1024
"""The bytes that a table may always have, even with few rows."""


@dataclass(frozen=True, slots=True)
class Asset:
    """One asset of one dataset."""

    dataset: str
    """The name of the dataset."""
    kind: AssetKind
    name: str
    """The path of an image below `mmlb_image/`; the id of a unit with a text; the name of a source."""
    sha256: str
    """The SHA-256 in hexadecimal: of an image's file, of a text in UTF-8 without blanks around it, of a source as in
    the lock."""
    chars: int | None = None
    """The characters of a text, without blanks around it; None for other assets."""
    source: str = ""
    """The source of the dataset that it comes from, as the manifest names it; empty if that is not known."""
    document: str = ""
    """The document, article or web page that it is a part of; empty if it is a part of none."""
    origin: str = ""
    """Where the source was published: `hub:owner/name@revision`, a URL, or `sample:reader`; empty if not known."""
    inside: str = ""
    """Its place in the origin: a path, with `#page=3` for a page of a PDF; or an id. A joined image has the path of its
    first page and all its pages, as `#page=3-5`."""
    licence: str = ""
    """Its licence: an SPDX expression or the name of terms; empty if it is not known."""
    licence_kind: Literal["spdx", "term", "unknown"] = "unknown"
    """What `licence` is."""
    author: str = ""
    """Its author, if the source says so."""
    url: str = ""
    """Where it was published, if the source says so for this asset."""
    hint: str = ""
    """What its own metadata say about rights (EXIF, IPTC, XMP, PDF); it is shown, and never believed."""

    @property
    def has_licence(self) -> bool:
        """Whether a licence is stated for it."""
        return self.licence_kind != "unknown"

    @property
    def has_origin(self) -> bool:
        """Whether it is known where it was published."""
        return bool(self.origin or self.url)

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What the table is sorted by; no two rows have the same."""
        return self.dataset, self.kind, self.name, self.sha256


def page_marks(numbers: Sequence[int]) -> str:
    """Return the end of `Asset.inside` that says which pages of a document, from 0, an image shows.

    >>> page_marks([2]), page_marks([2, 3, 4]), page_marks([])
    ('#page=3', '#page=3-5', '')
    """
    if not numbers:
        return ""
    first, last = min(numbers) + 1, max(numbers) + 1
    return f"#page={first}" if first == last else f"#page={first}-{last}"


def pages_in(inside: str) -> range | None:
    """Return the numbers of the pages, from 1, that `Asset.inside` names; None if it names none.

    >>> pages_in("ash.pdf#page=3-5"), pages_in("ash.pdf#page=3"), pages_in("ash/3.png")
    (range(3, 6), range(3, 4), None)
    """
    if (found := _PAGES.search(inside)) is None:
        return None
    first = int(found["first"])
    return range(first, int(found["last"] or first) + 1)


def text_digest(text: str) -> tuple[int, bytes]:
    """Return the characters and the SHA-256 of a text, without blanks around it."""
    bare = text.strip()
    return len(bare), hashlib.sha256(bare.encode("utf-8", "backslashreplace")).digest()


def _schema() -> "pa.Schema":
    import pyarrow as pa

    others: dict[str, pa.DataType] = {"sha256": pa.binary(32), "chars": pa.int32()}
    return pa.schema([(each.name, others.get(each.name, pa.string())) for each in fields(Asset)])


def write_assets(path: Path, assets: Iterable[Asset]) -> int:
    """Write a table of assets, which must be sorted by `Asset.key`, and return how many it has. A part of the rows is
    in memory at a time.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema, count, rows = _schema(), 0, list[Asset]()
    with atomic_write(path) as file, pq.ParquetWriter(file, schema, compression="zstd") as writer:

        def flush() -> None:
            columns = {field.name: [_stored(asset, field.name) for asset in rows] for field in schema}
            writer.write_table(pa.table(columns, schema))
            rows.clear()

        for asset in assets:
            rows.append(asset)
            count += 1
            if len(rows) >= _ROWS:
                flush()
        if rows or not count:
            flush()
    return count


def _stored(asset: Asset, name: str) -> object:
    value = getattr(asset, name)
    if name == "sha256":
        return bytes.fromhex(value)
    return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value


def has_assets(release: Path) -> bool:
    """Return whether a release has a table of assets; releases of older versions have none."""
    return (release / ASSETS).is_file()


def read_assets(release: Path, dataset: str | None = None) -> Iterator[Asset]:
    """Yield the assets of a release in the order of the table, or those of one dataset; a part of the table is in
    memory at a time.

    Raises:
        ReleaseError: the release has no such table, or it is damaged.

    """
    import pyarrow as pa

    names = [each.name for each in fields(Asset)]
    try:
        with _table(release / ASSETS) as table:
            if missing := [name for name in names if name not in table.schema_arrow.names]:
                raise ReleaseError(f"{ASSETS}: the column {missing[0]!r} is missing; see `mmlongbench verify`")
            for batch in table.iter_batches(_ROWS, _groups(table, dataset), columns=names):
                for row in batch.to_pylist():
                    if dataset is None or row["dataset"] == dataset:
                        yield Asset(**{**row, "sha256": row["sha256"].hex()})
    except FileNotFoundError as error:
        raise ReleaseError(
            f"{release / ASSETS}: no such file: the release was built by an older version; build it again to know "
            "where its images and texts come from"
        ) from error
    except (pa.ArrowException, OSError, ValueError, TypeError, AttributeError) as error:
        raise ReleaseError(f"{ASSETS}: is no table of assets: {type(error).__name__}; see verify") from error


def _groups(table: "pq.ParquetFile", dataset: str | None) -> list[int]:
    """Return the groups of rows that may have assets of a dataset, by their statistics; all of them for None."""
    found = []
    for number in range(table.metadata.num_row_groups):
        group = table.metadata.row_group(number)
        columns = (group.column(each) for each in range(group.num_columns))
        known = next((each.statistics for each in columns if each.path_in_schema == "dataset"), None)
        is_other = dataset and known and known.has_min_max and not str(known.min) <= dataset <= str(known.max)
        if not is_other:
            found.append(number)
    return found


@contextmanager
def _table(path: Path) -> "Iterator[pq.ParquetFile]":
    """Open a table of assets; refuse one that unpacks to more bytes than its rows may have."""
    import pyarrow.parquet as pq

    with path.open("rb") as opened:  # pyarrow takes no path that is not UTF-8
        table = pq.ParquetFile(opened)
        meta = table.metadata
        size = sum(meta.row_group(number).total_byte_size for number in range(meta.num_row_groups))
        if size > (bound := _MAX_FIRST + meta.num_rows * _MAX_ROW):
            raise ReleaseError(f"{ASSETS}: {size:,} bytes unpacked, {meta.num_rows:,} rows have at most {bound:,}")
        yield table


_Texts = Mapping[str, Sequence[tuple[int, bytes]]]
"""(characters, SHA-256) of each text of a unit, by the id of the unit."""


@dataclass(frozen=True, slots=True)
class KnownAssets:
    """The images and texts that the table of assets has for one dataset."""

    images: frozenset[str]
    texts: _Texts
    fault: str = ""
    """Why the table cannot be read; empty if it can."""

    @classmethod
    def of(cls, root: Path, dataset: str) -> "KnownAssets":
        """Read the assets of a dataset of the release in `root`."""
        images: set[str] = set()
        texts: dict[str, list[tuple[int, bytes]]] = {}
        try:
            for asset in read_assets(root, dataset):
                if asset.kind == "image":
                    images.add(asset.name)
                elif asset.kind == "text":
                    texts.setdefault(asset.name, []).append((asset.chars or 0, bytes.fromhex(asset.sha256)))
        except ReleaseError as error:
            return cls(frozenset(), {}, str(error))
        return cls(frozenset(images), texts)


def text_key(name: str, sha256: bytes) -> bytes:
    """Return a short digest that stands for a text of a unit."""
    return blake2b(sha256 + name.encode("utf-8", "backslashreplace"), digest_size=12).digest()


def resolve(items: Sequence[Item], prompt: Prompt, known: KnownAssets, facts: Facts) -> Iterator[Finding]:
    """Yield what an example shows that is not among the assets; add the texts that are to `facts.texts`."""
    for path in dict.fromkeys(prompt.images):
        if path.encode("utf-8", "backslashreplace").decode() not in known.images:
            yield "an image is not among the assets", path
    for item, digest in unit_texts(items, prompt, known.texts):
        if digest is None:
            found = "has another text there" if item["unit"] in known.texts else "is not there"
            yield "a text is not among the assets", f"unit {item['unit']!r:.80} {found}"
        else:
            facts.texts.add(text_key(item["unit"], digest))


def unit_texts(items: Sequence[Item], prompt: Prompt, known: _Texts) -> Iterator[tuple[Item, bytes | None]]:
    """Yield each unit of an example that is a text, with the SHA-256 under which `known` has its text; None if `known`
    has not.

    The text is that of the outline of the prompt. If a builder gives none, or its outline has other parts, the text is
    searched in the prompt, behind the text of the unit before.
    """
    outline = prompt.outline
    units = outline.units if outline and len(outline.units) == len(items) else ()
    search: _Search | None = None
    for number, item in enumerate(items):
        if item["image"] is not None:
            continue
        wanted = known.get(item["unit"], ())
        parts = [part for part in units[number] if isinstance(part, str)] if units else []
        digest = next((sha for part in parts for sha in _matching(part, wanted)), None)
        if digest is None and wanted:
            search = search or _Search("".join(p for p in prompt.parts if not isinstance(p, Image)))
            digest = search.find(wanted)
        yield item, digest


def _matching(part: str, wanted: Sequence[tuple[int, bytes]]) -> Iterator[bytes]:
    digest = text_digest(part)
    return (sha256 for chars, sha256 in wanted if (chars, sha256) == digest)


@dataclass(slots=True)
class _Search:
    """Searches texts, of which only lengths and hashes are known, in a longer text, each behind the one before."""

    text: str
    at: int = 0
    has_failed: bool = field(default=False)
    """Whether a text was not found; then nothing is searched any more, because each search reads the whole text."""

    def find(self, wanted: Sequence[tuple[int, bytes]]) -> bytes | None:
        """Return the SHA-256 of the first of the texts that is found."""
        for chars, sha256 in () if self.has_failed else wanted:
            for start in range(self.at, len(self.text) - chars + 1):
                if text_digest(self.text[start : start + chars]) == (chars, sha256):
                    self.at = start + chars
                    return sha256
        self.has_failed = True
        return None


def audit_assets(opened: Release, found: Mapping[str, FileAudit]) -> list[FileAudit]:
    """Compare the table of assets with the lock, and with what the prompts of all files show.

    Returns a list with one entry if something is wrong, and an empty list otherwise. Releases of older versions have no
    such table, and are not compared.
    """
    lock, root = opened.lock, opened.path
    if ASSETS not in lock.files or not (root / ASSETS).is_file():
        return []
    audit = FileAudit(ASSETS)
    seen = {name: _Shown.of(opened, found, opened.dataset(name)) for name in opened.datasets}
    last = ("", "", "", "")
    try:
        for asset in read_assets(root):
            if asset.key <= last:
                audit.problem("the assets are not sorted, or have an asset twice", f"{asset.dataset}: {asset.name}")
            last = asset.key
            for kind, where in _faults(asset, lock, seen.get(asset.dataset)):
                audit.problem(kind, f"{asset.dataset}: {where}")
    except ReleaseError as error:
        audit.problem("the assets cannot be read", str(error))
    return [audit] if audit.problems else []


@dataclass(frozen=True, slots=True)
class _Shown:
    """What the prompts of a dataset show, and what its lock says about its sources."""

    images: frozenset[str] | None
    """None if not all files of the dataset could be read."""
    texts: frozenset[bytes]
    sources: Mapping[str, str]
    """The SHA-256 of each source, by its name."""
    licences: Mapping[str, tuple[str, str]]
    """(kind, name) of the licence of each source."""

    @classmethod
    def of(cls, opened: Release, found: Mapping[str, FileAudit], dataset: ReadDataset) -> "_Shown":
        spec, lock = dataset.spec, opened.lock
        name = spec.name
        files = [each for each in opened.files if each.dataset and each.dataset.name == name]
        facts = [known for each in files if (known := found[each.name].facts) is not None]
        is_whole = len(facts) == len(files) and all(each.is_read for each in facts) and not opened.missing
        data = next((each for each in lock.manifest if each.get("name") == name), {})
        hashes, corpus = data.get("source_sha256"), data.get("corpus")
        sources = {str(key): str(value) for key, value in hashes.items()} if isinstance(hashes, dict) else {}
        sources |= {"corpus": corpus} if isinstance(corpus, str) else {}
        licences = {each: spec.licences.of(each).licence for each in sources}
        return cls(
            frozenset().union(*(each.shown for each in facts)) if is_whole else None,
            frozenset().union(*(each.texts for each in facts)),
            sources,
            {each: (licence.kind, licence.name) for each, licence in licences.items()},
        )


def _faults(asset: Asset, lock: Lock, shown: _Shown | None) -> Iterator[Finding]:
    if shown is None:
        yield "an asset belongs to no dataset of the lock", asset.name
    elif asset.kind == "source":
        if shown.sources.get(asset.name) != asset.sha256:
            yield "the hash of a source is not that of the lock", asset.name
        elif shown.licences[asset.name] != (asset.licence_kind, asset.licence):
            yield "the licence of a source is not that of the lock", f"{asset.name}: {asset.licence!r:.80}"
    elif asset.kind == "image":
        file = lock.files.get(f"{IMAGES}/{asset.name}")
        if shown.images is not None and asset.name not in shown.images:
            yield "no example shows an asset", asset.name
        elif file is None or file.sha256 != asset.sha256:
            yield "the hash of an image is not that of the lock", asset.name
    elif shown.images is not None and text_key(asset.name, bytes.fromhex(asset.sha256)) not in shown.texts:
        yield "no example shows an asset", f"the text of {asset.name}"
