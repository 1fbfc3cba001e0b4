"""Finds what a takedown takes out: the images and texts of a document, an image, or a source, all equal ones, and other
forms of the same pages.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from mmlongbench.documents.pixels import is_like_any, likeness, unreadable
from mmlongbench.errors import ReleaseError, nearest
from mmlongbench.io.progress import Progress
from mmlongbench.release.assets import Asset, pages_in, read_assets
from mmlongbench.release.layout import IMAGES

Kind: TypeAlias = Literal["document", "image", "source"]
MAX_COMPARED = 200
"""The maximum number of images whose likeness is searched in the rest of a release."""


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """What is asked to be taken out of a release."""

    kind: Kind
    """What `id` names."""
    id: str
    """The id of a document, article or web page; the path of an image below `mmlb_image/`, which the text of the same
    page shares; or `dataset/source`, or the name of a source in all datasets."""

    def matches(self, asset: Asset) -> bool:
        """Return whether an asset is, or is a part of, what is taken out."""
        if self.kind == "document":
            return asset.document == self.id
        if self.kind == "image":
            return asset.kind != "source" and asset.name == self.id  # a page may be an image here and a text there
        return asset.kind != "source" and self.id in (asset.source, f"{asset.dataset}/{asset.source}")

    def is_source(self, asset: Asset) -> bool:
        """Return whether an asset is the source that is taken out."""
        is_named = self.id in (asset.name, f"{asset.dataset}/{asset.name}")
        return self.kind == "source" and asset.kind == "source" and is_named


@dataclass(slots=True)
class Withdrawn:
    """The assets that are taken out."""

    images: set[str] = field(default_factory=set)
    """Their paths below `mmlb_image/`."""
    texts: set[tuple[str, str]] = field(default_factory=set)
    """(dataset, unit) of the texts."""
    folders: set[str] = field(default_factory=set)
    """The names of documents as records spell them; a question about one of them goes, whatever its context shows."""
    datasets: set[str] = field(default_factory=set)
    """The datasets of which every example goes, because a source that is taken out is one of theirs: their questions
    may be of it."""
    sourceless: int = 0
    """How many images and texts go because it is not known which source of such a dataset they are of."""
    excludable: set[str] = field(default_factory=set)
    """The datasets of which it is a document with pages, so that `exclude` of a manifest can name it."""
    equal: set[str] = field(default_factory=set)
    """The images and units that are taken out only because they equal another one, or show the same page."""

    def add(self, asset: Asset) -> None:
        """Add an image or a text."""
        if asset.kind == "image":
            self.images.add(asset.name)
        elif asset.kind == "text":
            self.texts.add((asset.dataset, asset.name))


def find_withdrawn(release: Path, withdrawal: Withdrawal) -> Withdrawn:
    """Return the assets that a takedown takes out: those that match, all with the same bytes or the same text, and
    other forms of the same pages.

    Raises:
        ReleaseError: nothing in the release matches; the error names the nearest id.

    """
    found, hashes, known = Withdrawn(), set[str](), dict[str, None]()
    if withdrawal.kind == "source":
        found.datasets = {asset.dataset for asset in read_assets(release) if withdrawal.is_source(asset)}
    for asset in read_assets(release):
        known.update(dict.fromkeys(_ids(asset, withdrawal.kind)))
        is_sourceless = asset.dataset in found.datasets and asset.kind != "source" and not asset.source
        if withdrawal.matches(asset) or is_sourceless:
            found.add(asset)
            found.sourceless += is_sourceless
            if asset.chars != 0:  # pages without text are all equal
                hashes.add(asset.sha256)
            if withdrawal.kind == "document":
                found.folders.add(asset.document)
                if not _is_article(asset):
                    found.folders.update(asset.name.split("/")[-2:-1])
                    found.excludable.add(asset.dataset)
    if not found.images and not found.texts and not found.datasets:
        raise ReleaseError(
            f"--{withdrawal.kind} {withdrawal.id!r:.200}: nothing in {release.name} is of it"
            f"{nearest(withdrawal.id, list(known)[:10_000])}"
        )
    add_same(found, hashes, release)
    return found


def add_same(found: Withdrawn, hashes: set[str], release: Path) -> None:
    """Add all images and texts with the same hash as one that is taken out, and those that show the same page in
    another form: as its text, as a crop of it, or joined with other pages.
    """
    for asset in read_assets(release):
        if asset.sha256 in hashes and asset.kind != "source" and not _is_in(asset, found):
            found.add(asset)
            found.equal.add(asset.name)
    pages = _Pages()
    for asset in read_assets(release):
        # an equal text, such as "Notes", does not say that the whole page is equal
        if _is_in(asset, found) and (asset.kind == "image" or asset.name not in found.equal):
            pages.add(asset)
    for asset in read_assets(release):
        if asset.kind != "source" and not _is_in(asset, found) and pages.has(asset):
            found.add(asset)
            found.equal.add(asset.name)


def _is_in(asset: Asset, found: Withdrawn) -> bool:
    if asset.kind == "image":
        return asset.name in found.images
    return asset.kind == "text" and (asset.dataset, asset.name) in found.texts


@dataclass(slots=True)
class _Pages:
    """Pages that are taken out. An asset may show them as images, as texts, as crops, or joined with other pages."""

    names: set[str] = field(default_factory=set)
    """The paths of pages, which images and texts share."""
    numbers: dict[str, set[int]] = field(default_factory=dict)
    """The numbers of pages, by the folder of the document in the release."""
    files: dict[str, set[str]] = field(default_factory=dict)
    """The files of pages that are page images, by the same folder."""

    def add(self, asset: Asset) -> None:
        """Add the pages that an asset shows."""
        folder = _folder(asset)
        if not folder:
            return
        self.names.add(asset.name)
        if (shown := pages_in(asset.inside)) is None:
            self.files.setdefault(folder, set()).add(asset.inside)
        else:
            self.numbers.setdefault(folder, set()).update(shown)

    def has(self, asset: Asset) -> bool:
        """Return whether an asset shows one of the pages. If one is known by its number and the other by its file, it
        may.
        """
        folder = _folder(asset)
        if not folder:
            return False
        if asset.name in self.names:
            return True
        if (shown := pages_in(asset.inside)) is None:
            return asset.inside in self.files.get(folder, ()) or folder in self.numbers
        return not self.numbers.get(folder, set()).isdisjoint(shown) or folder in self.files


def _is_article(asset: Asset) -> bool:
    """Return whether an asset is the text of an article or a web page; it has their id, and pages have paths."""
    return asset.kind == "text" and asset.document == (asset.name.rpartition("#")[0] or asset.name)


def _folder(asset: Asset) -> str:
    """Return the folder of the document of a page in the release; empty for what is no page of a document."""
    return "" if _is_article(asset) or not asset.document else asset.name.rpartition("/")[0]


def _ids(asset: Asset, kind: Kind) -> Iterator[str]:
    """Yield the ids under which an asset can be taken out."""
    if kind == "document" and asset.document:
        yield asset.document
    if kind == "image" and asset.kind == "image":
        yield asset.name
    if kind == "source" and asset.kind == "source":
        yield from (asset.name, f"{asset.dataset}/{asset.name}")


def near_images(release: Path, gone: Iterable[str], kept: Iterable[str], progress: Progress) -> list[str] | None:
    """Return the kept images that look like one of those that were taken out. They are not taken out themselves,
    because a likeness may be by chance; a person looks at them. None: too many are taken out to compare.
    """
    removed = sorted(set(gone))
    if len(removed) > MAX_COMPARED:
        return None
    looks = [look for path in removed if (look := _look(release / IMAGES / path))]
    rest = sorted(set(kept))
    found = []
    with progress.bar("takedown: images compared", len(rest) if looks else 0) as advance:
        for path in rest if looks else ():
            look = _look(release / IMAGES / path)
            if look and is_like_any(look, looks):
                found.append(path)
            advance()
    return found


def _look(path: Path) -> bytes | None:
    try:
        return likeness(path.read_bytes())
    except unreadable():
        return None
