"""Makes the table of assets when a build finishes: what each image and text of the release is, and where it comes from.

It reads no pixel and no text: the paths and hashes come from the results of earlier stages. Only metadata inside
pictures and PDFs are read again, as hints. The names and hashes of one dataset are in memory at a time, and its assets
one by one.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from heapq import merge
from itertools import groupby
from pathlib import Path, PurePosixPath
from typing import TypeAlias

from mmlongbench.building.asset_licences import AssetRights, stated_rights, without_login
from mmlongbench.building.build_plan import DatasetPlan
from mmlongbench.building.fingerprints import DocumentFile, files_of
from mmlongbench.building.lines import RECORDS, ShownImages
from mmlongbench.building.locating import CORPUS
from mmlongbench.building.session import Session
from mmlongbench.documents.pages import PageImages
from mmlongbench.documents.pixels import PictureFile, PictureInFile
from mmlongbench.documents.rights_hints import pdf_hint, picture_hint
from mmlongbench.errors import FetchError
from mmlongbench.io.locations import HubFiles, Location, Url
from mmlongbench.manifest.binding import calling
from mmlongbench.manifest.downloads import DownloadSpec, load_record
from mmlongbench.manifest.licences import strictness, terms_of
from mmlongbench.manifest.missing import places_of_path
from mmlongbench.manifest.model import DatasetSpec
from mmlongbench.release.assets import ASSETS, Asset, AssetKind, page_marks, read_assets, write_assets
from mmlongbench.release.layout import IMAGES
from mmlongbench.release.lock import LockedFile


def write_asset_table(
    plans: Iterable[DatasetPlan], session: Session, files: Mapping[str, LockedFile]
) -> dict[str, list[str]]:
    """Write the table of assets of a release; return the lines of tables of licences that name nothing of the sources,
    by dataset.

    Args:
        plans: the plans of all datasets.
        session: the open parts of the build.
        files: the files of the release with their hashes.

    """
    unmatched: dict[str, list[str]] = {}

    def assets() -> Iterator[Asset]:
        for plan in sorted(plans, key=lambda plan: plan.spec.name):
            dataset = _DatasetAssets(plan, session)
            yield from dataset.assets(files)
            if lines := dataset.unmatched():
                unmatched[plan.spec.name] = lines

    write_assets(session.build_dir.out / ASSETS, assets())
    return unmatched


@dataclass(frozen=True, slots=True)
class _Origin:
    """Where a source was published: it says so itself if it is at a URL or on the hub. For a path of this machine, the
    entries of `downloads` in the manifest say it, and the record that `fetch` writes has the commit.
    """

    place: str = ""
    """`hub:owner/name@revision`, a URL, or `sample:reader`; empty if it is not known."""
    prefix: str = ""
    """The path of the source in that place."""
    parts: tuple[tuple[str, str], ...] = ()
    """(path inside the source, place) of the parts of a source that come from several places."""


def _origin(spec: DatasetSpec, name: str) -> _Origin:
    """Return the origin of a source; several locations in one place have this place in common."""
    if isinstance(spec.source, str):
        return _Origin(f"sample:{spec.shown_reader}")
    if name == CORPUS:
        return _origin_of_path(spec, spec.corpus) if spec.corpus else _Origin()
    origins = [_origin_of_location(spec, location) for location in spec.source.get(name, ())]
    if len(origins) == 1:
        return origins[0]
    places = [origin.place for origin in origins]
    return _Origin(" ".join(dict.fromkeys(places))) if all(places) else _Origin()


def _origin_of_location(spec: DatasetSpec, location: Location) -> _Origin:
    if isinstance(location, HubFiles):
        revision = f"@{location.revision}" if location.revision else ""
        return _Origin(f"hub:{location.repository}{revision}", "" if "*" in location.path else location.path)
    return _Origin(str(location)) if isinstance(location, Url) else _origin_of_path(spec, location.path)


def _origin_of_path(spec: DatasetSpec, path: Path) -> _Origin:
    """Return the smallest place of `downloads` that has a path of this machine, or the places of its parts."""
    places = sorted(places_of_path(spec, path), key=lambda place: -len(PurePosixPath(place[0].to).parts))
    for place, data in places:
        name = _place_name(place, data)
        if name and path.is_relative_to(data / place.to):
            below = path.relative_to(data / place.to).as_posix()
            return _Origin(name, "" if below == "." or "*" in below else below)
    inside = [(place, data) for place, data in places if (data / place.to).is_relative_to(path)]
    parts = [((data / place.to).relative_to(path).as_posix(), _place_name(place, data)) for place, data in inside]
    return _Origin(parts=tuple((part, name) for part, name in parts if name))


def _place_name(place: DownloadSpec, data: Path) -> str:
    """Return the name of a place, with the commit that `fetch` has recorded for it."""
    if not place.hub:
        return place.origin or (place.name if place.url else "")
    commit = place.revision
    with suppress(FetchError):
        if listed := load_record(data).datasets.get(place.key):
            commit = listed.commit
    return f"{place.name}@{commit}" if commit else place.name


@dataclass(frozen=True, slots=True)
class _Located:
    """A file, or a part of one, in the sources."""

    source: str
    """The name of its source; empty if it cannot be told."""
    inside: str
    """Its path in the place where the source was published."""
    place: str = ""
    """Where it was published; empty if that is not known."""
    within: str = ""
    """Its path inside its source; empty if `inside` is no path."""

    def names_in(self, source: str) -> tuple[str, ...]:
        """Return the names by which a table of licences of a source may call it, the most specific first: its path with
        the name of the source, in the place where the source was published, and in the source.
        """
        inside = self.inside.partition("#page=")[0] if self.within else ""
        below = f"{source}/{self.within}" if source and self.within else ""
        return tuple(filter(None, (below, inside, self.within)))


_Named: TypeAlias = tuple[_Located, tuple[str, ...]]
"""Something of the sources, and the names that it has besides its path."""
_Entry: TypeAlias = tuple[AssetKind, str, str, tuple[str, ...] | int]
"""(kind, name, SHA-256, what else is known): of a picture its names in the source, sorted; of a text its characters."""


class _DatasetAssets:
    """The assets of one dataset."""

    def __init__(self, plan: DatasetPlan, session: Session) -> None:
        self._plan = plan
        self._session = session
        self._sources = session.dataset(plan.spec.name).sources
        self._licences = plan.spec.licences
        self._stated, self._unmet = stated_rights(plan.bound, plan.sources)
        """`_unmet` has the lines of tables of licences that no asset has had as a name so far."""
        self._reader = plan.bound.reader_type
        self._names: tuple[str, ...] = (*plan.fingerprints, *((CORPUS,) if plan.corpus else ()))
        """The names of the sources that the manifest gives, with the corpus."""
        self._only = self._names[0] if len(self._names) == 1 else ""
        """The name of the only source; empty if there are several."""
        self._origins = {name: _origin(plan.spec, name) for name in self._names}
        self._pdf_hint = lru_cache(maxsize=1)(pdf_hint)  # the pages of a document follow each other
        self._shown_pages = lru_cache(maxsize=1)(self._pages_of_images)

    def assets(self, files: Mapping[str, LockedFile]) -> Iterator[Asset]:
        """Yield all assets, sorted; those of an extended release are among them."""
        images, texts = self._shown()
        entries: list[_Entry] = [("source", name, self._source_hash(name), ()) for name in self._names]
        entries += [
            ("image", path, files[f"{IMAGES}/{path}"].sha256, tuple(sorted(names))) for path, names in images.items()
        ]
        entries += [("text", unit, sha256, chars) for unit, chars, sha256 in texts]
        entries.sort(key=lambda entry: (entry[0], _printable(entry[1]), entry[2]))
        both = merge(self._taken(), map(self._asset_of, entries), key=lambda asset: asset.key)
        for _, group in groupby(both, key=lambda asset: asset.key):
            same = list(group)
            # of the names that a picture has in the source, the first one is its origin, whichever build has met it
            first = min(same, key=lambda asset: asset.inside) if same[0].kind == "image" else same[-1]
            yield self._with_strictest(first, same) if len(same) > 1 else first

    def unmatched(self) -> list[str]:
        """Return the lines of tables of licences that name no asset so far, and no file, document or picture of the
        sources. A line may name something that no example shows.
        """
        if not self._unmet:
            return []
        documents = self._plan.documents
        known = {("", name) for name in (*documents, *self._plan.refused, *(file.id for file in documents.values()))}
        for source, root in self._plan.sources.items():
            table = source if source in self._names else ""  # what a reader extracts may be of any source
            for file in files_of(root):
                within = file.relative_to(root).as_posix() if file != root else file.name
                names = {within, file.name, f"{source}/{within}", self._at(source, within).inside}
                known |= {(table, name) for name in names}
        every = {name for _, name in known}
        pictures = self._sources.images.pictures if self._sources.has_images else None
        left = {
            name for table, name in self._unmet if not ({(table, name), ("", name)} & known if table else name in every)
        }
        return [_printable(name) for name in sorted(left) if pictures is None or pictures.file(name) is None]

    def _shown(self) -> tuple[dict[str, set[str]], set[tuple[str, int, str]]]:
        """Return the images that the dataset shows, each with the names of the picture in the source (none for a page),
        and its texts as (unit, characters, SHA-256).
        """
        images: dict[str, set[str]] = {}
        texts: set[tuple[str, int, str]] = set()
        spec, build_dir = self._plan.spec, self._session.build_dir
        for shard in self._session.record_shards(spec.name, spec.lengths):
            shown = build_dir.last(shard, RECORDS)
            if not isinstance(shown, ShownImages):
                raise build_dir.damaged(shard)
            images.update((path, set()) for path in shown.pages)
            texts.update((unit, chars, sha256) for unit, chars, sha256 in shown.texts)
            for path, names in shown.pictures.items():
                images.setdefault(path, set()).update(names)
        return images, texts

    def _taken(self) -> Iterator[Asset]:
        """Yield the images and texts that the extended release has of the dataset; the release keeps all of them."""
        released, name = self._session.released, self._plan.spec.name
        if released is None or released.kept(name) is None:
            return
        for asset in read_assets(released.out, name):
            if asset.kind == "source":
                continue
            path = asset.inside.partition("#page=")[0]
            within = path.removeprefix(f"{self._origins.get(asset.source, _Origin()).prefix}/")
            names = (path, within, f"{asset.source}/{within}", asset.document, asset.name)
            self._meet(asset.source, *names, *(name.split("/")[-1] for name in names))
            yield asset

    def _source_hash(self, name: str) -> str:
        """Return the SHA-256 of a source, as the lock has it."""
        corpus = self._plan.corpus
        return corpus.sha256 if corpus and name == CORPUS else self._plan.source_hashes[name]

    # One asset

    def _asset_of(self, entry: _Entry) -> Asset:
        kind, name, sha256, about = entry
        if kind == "source":
            origin = self._origins[name]
            places = dict.fromkeys(filter(None, (origin.place, *(place for _, place in origin.parts))))
            located = _Located(name, origin.prefix, " ".join(places))
            return self._asset("source", name, sha256, located, self._of_source(name))
        return self._text(name, about, sha256) if isinstance(about, int) else self._image(name, about, sha256)

    def _image(self, path: str, names: tuple[str, ...], sha256: str) -> Asset:
        """Return the asset of an image; `names` are those of a picture in the source, none for a page."""
        if not names and (document := self._document(path)):
            return self._page(path, sha256, document)
        pictures = [self._picture(name) for name in names or (path,)]
        file, located = pictures[0]
        first = names[0] if names else ""
        same: list[_Named] = [(located, (first, Path(first).name, Path(path).name))]
        same += [(other, (name, Path(name).name)) for name, (_, other) in zip(names[1:], pictures[1:], strict=True)]
        for picture, _ in pictures:
            same += self._same_bytes(picture)
        hint = picture_hint(file) if file else ""
        return self._asset("image", path, sha256, located, self._strictest(same), hint=hint)

    def _picture(self, name: str) -> tuple[PictureFile | None, _Located]:
        """Return the file of a picture, and which source it belongs to."""
        file = self._sources.images.pictures.file(name) if self._sources.has_images else None
        if isinstance(file, Path):
            return file, self._locate(file)
        table = file.file if isinstance(file, PictureInFile) else None
        source = self._only or (self._locate(table).source if table else "")
        return file, self._at(source, file.name if file else name)

    def _text(self, unit: str, chars: int, sha256: str) -> Asset:
        """Return the asset of the text of a unit."""
        if file := self._document(unit):
            return replace(self._page(unit, sha256, file), kind="text", chars=chars)
        document = unit.rpartition("#")[0] or unit
        located = self._text_source(document, unit)
        rights = self._strictest([(located, (unit, document))])
        return self._asset("text", unit, sha256, located, rights, document=document, chars=chars)

    def _text_source(self, document: str, unit: str) -> _Located:
        """Return the source of a text that is no page of a document: the corpus, the file that a web page is named
        after, or the only source.
        """
        if self._plan.corpus:
            return self._at(CORPUS, f"#{unit}")
        first, _, below = document.partition("/")
        if first in self._names and below:
            return self._at(first, unit.removeprefix(f"{first}/"))
        for name, path in self._plan.sources.items():
            if name in self._names and path.is_dir() and (path / document).is_file():
                return self._at(name, unit)
        rows = next((name for name in ("questions", "rows", "samples") if name in self._names), self._only)
        return self._at(rows, f"#{unit}", is_whole=True)

    def _document(self, path: str) -> DocumentFile | None:
        """Return the document of a page, by the path of the page in the release."""
        parts = path.split("/")
        is_page = len(parts) > 1 and path.startswith(f"{self._reader.image_folder}/")
        return self._plan.documents.get(parts[-2]) if is_page else None

    def _page(self, path: str, sha256: str, file: DocumentFile) -> Asset:
        """Return the asset of an image that shows a page of a document, a part of one, or several pages joined."""
        numbers = self._shown_pages(file.id).get(path.split("/")[-1], ())
        if isinstance(file.pages, PageImages):
            known = dict(zip(file.pages.numbers, file.pages.files, strict=True))
            files = [known[number] for number in numbers if number in known] or list(file.pages.files)
            hint = next(filter(None, map(picture_hint, files)), "") if numbers else ""
        else:
            files, hint = [file.pages], self._pdf_hint(file.pages, self._plan.spec.limits)
        rights, first = [], self._locate(files[0])
        for each in files:
            located = self._locate(each)
            names = (file.id, file.name, Path(located.within or located.inside).name)
            rights.append(self._strictest([(located, names), *self._same_bytes(each)]))
        strict = max(rights, key=lambda each: strictness(each.licence))
        if len(files) > 1 or not isinstance(file.pages, PageImages):
            first = replace(first, inside=f"{first.inside}{page_marks(numbers)}")
        return self._asset("image", path, sha256, first, strict, document=file.id, hint=hint)

    def _pages_of_images(self, id: str) -> dict[str, tuple[int, ...]]:
        """Return which pages each image of a document shows: their numbers, from 0, by the name of the image."""
        if (document := self._sources.documents.usable.get(id)) is None:
            return {}
        every = document.joined or tuple((page,) for page in document.pages)
        shown: dict[str, tuple[int, ...]] = {crop.path: (crop.page,) for crop in document.crops}
        shown |= {
            page.path: tuple(each.index for each in group) for page, group in zip(document.pages, every, strict=True)
        }
        return {path.split("/")[-1]: numbers for path, numbers in shown.items()}

    def _asset(
        self,
        kind: AssetKind,
        name: str,
        sha256: str,
        located: _Located,
        rights: AssetRights,
        *,
        document: str = "",
        hint: str = "",
        chars: int | None = None,
    ) -> Asset:
        return Asset(
            self._plan.spec.name,
            kind,
            _printable(name),
            sha256,
            chars,
            located.source,
            _printable(document),
            located.place,
            _printable(located.inside),
            rights.licence.name,
            rights.licence.kind,
            rights.author,
            rights.url or _printable(without_login(self._addresses.get(document, ""))),
            hint,
        )

    # Where something comes from

    def _locate(self, path: Path) -> _Located:
        """Return which source a file belongs to, and its path in the place where the source was published.

        What the reader has extracted from the sources belongs to the source that the reader names
        (`Reader.extracted_from`), or to the only source; otherwise, it is not known to which.
        """
        for root, name in self._roots:
            if path.is_relative_to(root):
                below = path.relative_to(root).as_posix()
                within = "" if below == "." else below
                if name in self._names:
                    return self._at(name, within)
                source = self._reader.extracted_from.get(name, "")
                return self._at(source if source in self._names else self._only, within, is_whole=True)
        return self._at(self._only, path.name, is_whole=True)

    @cached_property
    def _roots(self) -> list[tuple[Path, str]]:
        """(path, name) of each source, the deepest first."""
        roots = [(path, name) for name, path in self._plan.sources.items()]
        return sorted(roots, key=lambda root: -len(root[0].parts))

    def _at(self, source: str, path: str, *, is_whole: bool = False) -> _Located:
        """Return something in a source; `is_whole` says that `path` is no path inside the source."""
        origin = self._origins.get(source, _Origin())
        parts = (place for part, place in origin.parts if PurePosixPath(path).is_relative_to(part))
        inside = path if is_whole else "/".join(filter(None, (origin.prefix, path)))
        return _Located(source, inside, next(parts, origin.place), "" if is_whole or path.startswith("#") else path)

    def _same_bytes(self, path: object) -> list[_Named]:
        """Return the other files of the sources with the same bytes, if they may have other licences; none for what is
        no file.
        """
        if not (self._licences.sources or any(self._stated.values())) or not isinstance(path, Path):
            return []
        ids = {file.pages: file.id for file in self._plan.documents.values() if isinstance(file.pages, Path)}
        others = [other for other in self._files.get(self._hashes.get(path, ""), ()) if other != path]
        return [
            (self._locate(other), tuple(filter(None, (ids.get(other), other.stem, other.name)))) for other in others
        ]

    @cached_property
    def _hashes(self) -> dict[Path, str]:
        return self._session.source_files.hashes(self._plan.spec.name)

    @cached_property
    def _files(self) -> dict[str, list[Path]]:
        """The files of the sources with the same bytes, by their SHA-256."""
        files: dict[str, list[Path]] = {}
        for path, sha256 in sorted(self._hashes.items()):
            files.setdefault(sha256, []).append(path)
        return files

    @cached_property
    def _addresses(self) -> Mapping[str, str]:
        """The URLs of single documents, by their ids, as the sources state them."""
        with calling("reader", self._plan.spec.reader, "addresses()"):
            return self._reader().addresses(self._plan.sources)

    # What is stated about it

    def _strictest(self, every: Sequence[_Named]) -> AssetRights:
        """Return the strictest of what is stated about things of the sources: about themselves or, of a source where
        nothing is, about the source. What is of no known source may be of each of them.
        """
        stated: dict[str, list[AssetRights]] = {}
        for located, others in every:
            for source in (located.source,) if located.source else self._names or ("",):
                names = (*located.names_in(source), *others)
                self._meet(source, *names)
                rights = (self._stated.get(table, {}).get(name) for table in (source, "") for name in names)
                stated.setdefault(source, []).extend([first] if (first := next(filter(None, rights), None)) else [])
        each = (rights for source, direct in stated.items() for rights in direct or [self._of_source(source)])
        return max(each, key=lambda rights: strictness(rights.licence))

    def _of_source(self, source: str) -> AssetRights:
        return AssetRights(self._licences.of(source).licence)

    def _meet(self, source: str, *names: str) -> None:
        """Note that an asset of a source has these names."""
        if self._unmet:
            self._unmet.difference_update((table, name) for table in (source, "") for name in names)

    def _with_strictest(self, asset: Asset, same: Sequence[Asset]) -> Asset:
        """Return an asset with the strictest of the licences that it has in two builds."""
        terms = (self._licences, *self._licences.sources.values())
        known = {(each.licence.kind, each.licence.name): each.licence for each in reversed(terms)}

        def strict(each: Asset) -> tuple[tuple[bool, ...], str]:
            return strictness(known.get((each.licence_kind, each.licence)) or terms_of(each.licence).licence)

        first = max((asset, *same), key=strict)
        kind, licence = first.licence_kind, first.licence
        return replace(asset, licence_kind=kind, licence=licence, author=first.author, url=first.url)


def _printable(text: str) -> str:
    """Return a text that UTF-8 can encode, in the form that the items of a release have too."""
    return text.encode("utf-8", "backslashreplace").decode()
