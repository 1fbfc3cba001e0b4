"""The assets of a release: where every source, image and text comes from, under which licence, with its SHA-256.

`items/assets.parquet` has one row for each asset of each dataset, sorted by dataset, kind and name. It is made when a
build finishes, and an audit compares it with the prompts.
"""

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from hashlib import blake2b
from itertools import chain, islice
from operator import attrgetter
from pathlib import Path
from typing import Any, Literal, TypeAlias

from mmlongbench.errors import ReleaseError
from mmlongbench.io.files import atomic_write
from mmlongbench.prompt import Prompt
from mmlongbench.release.file_audit import Facts, FileAudit, Finding
from mmlongbench.release.items import Item, refuse_bomb
from mmlongbench.release.layout import IMAGES, ITEMS, as_utf8
from mmlongbench.release.lock import LockedFile
from mmlongbench.release.release import Release

ASSETS = f"{ITEMS}/assets.parquet"
AssetKind: TypeAlias = Literal["image", "source", "text"]
"""`image`: a file below `mmlb_image/`. `source`: a source of a dataset. `text`: the text of a unit."""
_PAGES = re.compile(r"#page=(?P<first>[0-9]{1,9})(?:-(?P<last>[0-9]{1,9}))?$")
_ROWS = 20_000
_TEXTS = 1 << 14
"""How many texts of units have their digests kept, since examples show the same ones at each length and placement."""
_MAX_ROW = 64 * 1024
"""The maximum size of a row, on average, in bytes."""
_MAX_FIRST = 1024 * 1024
"""The bytes that a table may always have, even with few rows."""


@dataclass(frozen=True, slots=True)
class Asset:
    """One asset of one dataset."""

    dataset: str
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
    if (pages := _PAGES.search(inside)) is None:
        return None
    first = int(pages["first"])
    return range(first, int(pages["last"] or first) + 1)


def text_digest(text: str) -> tuple[int, bytes]:
    """Return the characters and the SHA-256 of a text, without blanks around it."""
    bare = text.strip()
    return len(bare), hashlib.sha256(bare.encode("utf-8", "backslashreplace")).digest()


def write_assets(path: Path, assets: Iterable[Asset]) -> None:
    """Write a table of assets, which must be sorted by `Asset.key`; a part of the rows is in memory at a time."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    types: dict[str, pa.DataType] = {"sha256": pa.binary(32), "chars": pa.int32()}
    schema = pa.schema([(column.name, types.get(column.name, pa.string())) for column in fields(Asset)])
    stored: dict[str, Callable[[Any], object]] = {"sha256": bytes.fromhex, "chars": lambda chars: chars}
    rest = iter(assets)
    with atomic_write(path) as file, pq.ParquetWriter(file, schema, compression="zstd") as writer:
        first = list(islice(rest, _ROWS))  # is written also if it is empty
        for rows in chain([first], iter(lambda: list(islice(rest, _ROWS)), [])):
            columns = {name: list(map(stored.get(name, as_utf8), map(attrgetter(name), rows))) for name in schema.names}
            writer.write_table(pa.table(columns, schema))


def read_assets(release: Path, dataset: str | None = None) -> Iterator[Asset]:
    """Yield the assets of a release in the order of the table, or those of one dataset; a part of the table is in
    memory at a time.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = [column.name for column in fields(Asset)]
    try:
        with (release / ASSETS).open("rb") as opened:  # pyarrow takes no path that is not UTF-8
            table = pq.ParquetFile(opened)
            refuse_bomb(table, ASSETS, _MAX_FIRST, _MAX_ROW)
            if missing := [name for name in names if name not in table.schema_arrow.names]:
                raise ReleaseError(f"{ASSETS}: the column {missing[0]!r} is missing; see `mmlongbench verify`")
            groups = []  # those that may have assets of the dataset, by their statistics
            for number in range(table.metadata.num_row_groups):
                group = table.metadata.row_group(number)
                columns = (group.column(place) for place in range(group.num_columns))
                known = next((column.statistics for column in columns if column.path_in_schema == "dataset"), None)
                is_other = dataset and known and known.has_min_max and not str(known.min) <= dataset <= str(known.max)
                groups += [] if is_other else [number]
            for batch in table.iter_batches(_ROWS, groups, columns=names):
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


@dataclass(frozen=True, slots=True)
class KnownAssets:
    """The images and texts that the table of assets has for one dataset."""

    images: frozenset[str]
    texts: Mapping[str, Sequence[tuple[int, bytes]]]
    """(characters, SHA-256) of each text of a unit, by the id of the unit."""
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


_digest = lru_cache(_TEXTS)(text_digest)


@lru_cache(_TEXTS)
def text_key(name: str, sha256: bytes) -> bytes:
    """Return a short digest that stands for a text of a unit."""
    return blake2b(sha256 + name.encode("utf-8", "backslashreplace"), digest_size=12).digest()


def resolve(items: Sequence[Item], prompt: Prompt, known: KnownAssets, facts: Facts) -> Iterator[Finding]:
    """Yield what an example shows that is not among the assets; add the texts that are to `facts.texts`.

    The text of a unit is that of the outline of the prompt. If a builder gives none, or its outline has other parts,
    the text is searched in the prompt, behind the text of the unit before.
    """
    for path in dict.fromkeys(prompt.images):
        if path not in known.images and as_utf8(path) not in known.images:
            yield "an image is not among the assets", path
    outline = prompt.outline
    units = outline.units if outline and len(outline.units) == len(items) else ()
    # After a text that is not in the prompt nothing is searched any more, because each search reads the whole text.
    whole, end, has_failed = "", 0, False
    for number, item in enumerate(items):
        if item["image"] is not None:
            continue
        texts = known.texts.get(item["unit"], ())
        sha256: bytes | None = None
        for part in units[number] if units and texts else ():
            if sha256 is None and isinstance(part, str) and (digest := _digest(part)) in texts:
                sha256 = digest[1]
        if sha256 is None and texts and not has_failed:
            whole = whole or prompt.text
            sha256, end = _find(whole, end, texts)
            has_failed = sha256 is None
        if sha256 is None:
            there = "has another text there" if item["unit"] in known.texts else "is not there"
            yield "a text is not among the assets", f"unit {item['unit']!r:.80} {there}"
        else:
            facts.texts.add(text_key(item["unit"], sha256))


def _find(whole: str, begin: int, texts: Sequence[tuple[int, bytes]]) -> tuple[bytes | None, int]:
    """Return the SHA-256 of the first of the texts that is in `whole`, and where it ends there. Of the texts only the
    characters and the SHA-256 are known.
    """
    for chars, sha256 in texts:
        for at in range(begin, len(whole) - chars + 1):
            if text_digest(whole[at : at + chars]) == (chars, sha256):
                return sha256, at + chars
    return None, begin


def audit_assets(opened: Release, audits: Mapping[str, FileAudit]) -> list[FileAudit]:
    """Compare the table of assets with the lock, and with what the prompts of all files show.

    Returns a list with one entry if something is wrong, and an empty list otherwise. Releases of older versions have no
    such table, and are not compared.
    """
    lock, root = opened.lock, opened.path
    if ASSETS not in lock.files or not (root / ASSETS).is_file():
        return []
    shown: dict[str, tuple[frozenset[str] | None, frozenset[bytes]]] = {}
    for name in opened.datasets:
        files = [file for file in opened.files if file.dataset and file.dataset.name == name]
        facts = [known for file in files if (known := audits[file.name].facts) is not None]
        is_whole = len(facts) == len(files) and all(known.is_read for known in facts) and not opened.missing
        images = frozenset[str]().union(*(known.shown for known in facts)) if is_whole else None
        shown[name] = images, frozenset().union(*(known.texts for known in facts))
    sources: dict[tuple[str, str], tuple[str, str, str]] = {}  # (SHA-256, kind of the licence, its name)
    for data in lock.manifest:
        name, hashes, corpus = str(data.get("name")), data.get("source_sha256"), data.get("corpus")
        stated = dict(hashes) if isinstance(hashes, dict) else {}
        for source, sha256 in (stated | ({"corpus": corpus} if isinstance(corpus, str) else {})).items():
            licence = opened.dataset(name).spec.licences.of(source).licence
            sources[name, source] = str(sha256), licence.kind, licence.name
    audit, last = FileAudit(ASSETS), ("", "", "", "")
    try:
        for asset in read_assets(root):
            if asset.key <= last:
                audit.problem("the assets are not sorted, or have an asset twice", f"{asset.dataset}: {asset.name}")
            last = asset.key
            if fault := _fault(asset, lock.files, shown.get(asset.dataset), sources):
                audit.problem(fault[0], f"{asset.dataset}: {fault[1]}")
    except ReleaseError as error:
        audit.problem("the assets cannot be read", str(error))
    return [audit] if audit.problems else []


def _fault(
    asset: Asset,
    files: Mapping[str, LockedFile],
    shown: tuple[frozenset[str] | None, frozenset[bytes]] | None,
    sources: Mapping[tuple[str, str], tuple[str, str, str]],
) -> Finding | None:
    """Return what is wrong with an asset. `shown` are the images and the texts that the prompts of its dataset show;
    images are None if not all prompts could be read.
    """
    if shown is None:
        return "an asset belongs to no dataset of the lock", asset.name
    images, texts = shown
    if asset.kind == "source":
        sha256, *licence = sources.get((asset.dataset, asset.name), ("",))
        if sha256 != asset.sha256:
            return "the hash of a source is not that of the lock", asset.name
        if licence != [asset.licence_kind, asset.licence]:
            return "the licence of a source is not that of the lock", f"{asset.name}: {asset.licence!r:.80}"
    elif asset.kind == "image":
        file = files.get(f"{IMAGES}/{asset.name}")
        if images is not None and asset.name not in images:
            return "no example shows an asset", asset.name
        if file is None or file.sha256 != asset.sha256:
            return "the hash of an image is not that of the lock", asset.name
    elif images is not None and text_key(asset.name, bytes.fromhex(asset.sha256)) not in texts:
        return "no example shows an asset", f"the text of {asset.name}"
    return None
