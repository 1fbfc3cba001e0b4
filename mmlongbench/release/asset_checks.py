"""Compares the table of assets of a release with its prompts, its images and its lock: nothing is missing, nothing is
superfluous, and every hash is right.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path

from mmlongbench.errors import ReleaseError
from mmlongbench.prompt import Image, Prompt
from mmlongbench.release.assets import ASSETS, Asset, read_assets, text_digest
from mmlongbench.release.findings import Facts, FileAudit
from mmlongbench.release.items import Item
from mmlongbench.release.layout import IMAGES
from mmlongbench.release.loading import AuditedDataset, LoadedRelease
from mmlongbench.release.lock import Lock

Problem = tuple[str, str]
"""A problem: (kind, where)."""
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


def resolve(items: Sequence[Item], prompt: Prompt, known: KnownAssets, facts: Facts) -> Iterator[Problem]:
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


def audit_assets(opened: LoadedRelease, found: Mapping[str, FileAudit]) -> list[FileAudit]:
    """Compare the table of assets with the lock, and with what the prompts of all files show.

    Returns a list with one entry if something is wrong, and an empty list otherwise. Releases of older versions have no
    such table, and are not compared.
    """
    lock, root = opened.lock, opened.root
    if lock is None or root is None or ASSETS not in lock.files or not (root / ASSETS).is_file():
        return []
    audit = FileAudit(ASSETS, 0)
    seen = {each.spec.name: _Shown.of(opened, found, each) for each in opened.datasets if each.spec}
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
    def of(cls, opened: LoadedRelease, found: Mapping[str, FileAudit], dataset: AuditedDataset) -> "_Shown":
        spec, lock = dataset.spec, opened.lock
        name = spec.name if spec else ""
        files = [each for each in opened.files if each.dataset and each.dataset.builder.dataset == name]
        facts = [known for each in files if (known := found[each.name].facts) is not None]
        is_whole = len(facts) == len(files) and all(each.is_read for each in facts) and not opened.missing
        data = next((each for each in lock.manifest if each.get("name") == name), {}) if lock else {}
        hashes, corpus = data.get("source_sha256"), data.get("corpus")
        sources = {str(key): str(value) for key, value in hashes.items()} if isinstance(hashes, dict) else {}
        sources |= {"corpus": corpus} if isinstance(corpus, str) else {}
        licences = {each: spec.licences.of(each).licence for each in sources} if spec else {}
        return cls(
            frozenset().union(*(each.shown for each in facts)) if is_whole else None,
            frozenset().union(*(each.texts for each in facts)),
            sources,
            {each: (licence.kind, licence.name) for each, licence in licences.items()},
        )


def _faults(asset: Asset, lock: Lock, shown: _Shown | None) -> Iterator[Problem]:
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
