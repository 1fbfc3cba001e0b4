"""Makes the table of assets when a build finishes: what each image and text of the release is, and where it comes from.

It reads no pixel and no text: the paths and hashes come from the results of earlier stages. Only metadata inside
pictures and PDFs are read again, as hints. The names and hashes of one dataset are in memory at a time, and its assets
one by one.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, lru_cache
from heapq import merge
from itertools import groupby
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from mmlongbench.building.asset_licences import AssetRights, stated_rights, without_login
from mmlongbench.building.build_plan import CORPUS, DatasetPlan
from mmlongbench.building.session import Session
from mmlongbench.building.shard_results import RECORDS, ShownImages
from mmlongbench.building.source_files import DocumentFile, files_of
from mmlongbench.documents.pages import PageImages
from mmlongbench.documents.pixels import PictureInFile
from mmlongbench.documents.rights_hints import pdf_hint, picture_hint
from mmlongbench.errors import FetchError
from mmlongbench.io.locations import HubFiles, Url
from mmlongbench.manifest.binding import calling
from mmlongbench.manifest.downloads import load_record
from mmlongbench.manifest.licences import strictness, terms_of
from mmlongbench.manifest.missing import places_of_path
from mmlongbench.manifest.model import DatasetSpec
from mmlongbench.release.assets import ASSETS, Asset, AssetKind, page_marks, read_assets, write_assets
from mmlongbench.release.layout import IMAGES, as_utf8
from mmlongbench.release.lock import LockedFile


def write_asset_table(session: Session, files: Mapping[str, LockedFile]) -> dict[str, list[str]]:
    """Write the table of assets of a release, whose files and hashes are given; return the lines of tables of licences
    that name nothing of the sources, by dataset.
    """
    unmatched: dict[str, list[str]] = {}

    def assets() -> Iterator[Asset]:
        for name, plan in sorted(session.plans.items()):
            dataset = _DatasetAssets(plan, session)
            yield from dataset.assets(files)
            if lines := dataset.unmatched():
                unmatched[name] = lines

    write_assets(session.build_dir.out / ASSETS, assets())
    return unmatched


class _Origin(NamedTuple):
    """Where a source was published: it says so itself if it is at a URL or on the hub. For a path of this machine, the
    entries of `downloads` in the manifest say it, and the record that `fetch` writes has the commit.
    """

    places: tuple[tuple[str, str], ...] = ()
    """(path inside the source, place) of each part of the source; the path is empty if the place has all of it. A place
    is `hub:owner/name@revision`, a URL, or `sample:reader`."""
    prefix: str = ""


def _origin(spec: DatasetSpec, name: str) -> _Origin:
    """Return the origin of a source; several locations in one place have this place in common."""
    if isinstance(spec.source, str):
        return _Origin((("", f"sample:{spec.shown_reader}"),))
    if name == CORPUS:
        return _origin_of_path(spec, spec.corpus) if spec.corpus else _Origin()
    origins = []
    for location in spec.source.get(name, ()):
        if isinstance(location, HubFiles):
            revision = f"@{location.revision}" if location.revision else ""
            place = ("", f"hub:{location.repository}{revision}")
            origins.append(_Origin((place,), "" if "*" in location.path else location.path))
        elif isinstance(location, Url):
            origins.append(_Origin((("", str(location)),)))
        else:
            origins.append(_origin_of_path(spec, location.path))
    if len(origins) == 1:
        return origins[0]
    whole = [place for origin in origins for part, place in origin.places if not part]
    return _Origin((("", " ".join(dict.fromkeys(whole))),)) if whole and len(whole) == len(origins) else _Origin()


def _origin_of_path(spec: DatasetSpec, path: Path) -> _Origin:
    """Return the smallest place of `downloads` that has a path of this machine, or the places of its parts."""
    downloads = sorted(places_of_path(spec, path), key=lambda place: -len(PurePosixPath(place[0].to).parts))
    parts = []
    for download, data in downloads:
        name, folder = download.name if download.hub or download.url else "", data / download.to
        if download.hub:
            commit = download.revision
            with suppress(FetchError):  # `fetch` may have recorded the commit
                if listed := load_record(data).datasets.get(download.key):
                    commit = listed.commit
            name += f"@{commit}" if commit else ""
        elif download.origin:
            name = download.origin
        if name and path.is_relative_to(folder):
            below = path.relative_to(folder).as_posix()
            return _Origin((("", name),), "" if below == "." or "*" in below else below)
        if name and folder.is_relative_to(path):
            parts.append((folder.relative_to(path).as_posix(), name))
    return _Origin(tuple(parts))


class _Located(NamedTuple):
    source: str
    """The name of its source; empty if it cannot be told."""
    inside: str
    """Its path in the place where the source was published."""
    place: str = ""
    """Where it was published; empty if that is not known."""
    within: str = ""
    """Its path inside its source; empty if `inside` is no path."""
    names: tuple[str, ...] = ()
    """What a table of licences may call it besides its path."""


class _DatasetAssets:
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
        self._source_of_file = lru_cache(maxsize=1)(self._find_file)
        self._strictness = lru_cache(lambda rights: strictness(rights.licence))  # few differ
        self._rights_of_source = lru_cache(lambda source: AssetRights(self._licences.of(source).licence))

    def assets(self, files: Mapping[str, LockedFile]) -> Iterator[Asset]:
        """Yield all assets, sorted; those of an extended release are among them."""
        both = merge(self._released(), self._made(files), key=lambda asset: asset.key)
        terms = (self._licences, *self._licences.sources.values())
        known = {(each.licence.kind, each.licence.name): each.licence for each in reversed(terms)}

        def strict(asset: Asset) -> tuple[tuple[bool, ...], str]:
            return strictness(known.get((asset.licence_kind, asset.licence)) or terms_of(asset.licence).licence)

        for _, group in groupby(both, key=lambda asset: asset.key):
            same = list(group)
            # of the names that a picture has in the source, the first one is its origin, whichever build has met it
            asset = min(same, key=lambda asset: asset.inside) if same[0].kind == "image" else same[-1]
            if len(same) > 1:
                most = max((asset, *same), key=strict)
                licence, kind = most.licence, most.licence_kind
                asset = replace(asset, licence=licence, licence_kind=kind, author=most.author, url=most.url)
            yield asset

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
        return [as_utf8(name) for name in sorted(left) if pictures is None or pictures.file(name) is None]

    def _released(self) -> Iterator[Asset]:
        """Yield the images and texts that the extended release has of the dataset; the release keeps all of them."""
        released, name = self._session.released, self._plan.spec.name
        if released is None or released.kept(name) is None:
            return
        for asset in read_assets(released.out, name):
            if asset.kind != "source":
                path = asset.inside.partition("#page=")[0]
                within = path.removeprefix(f"{self._origins.get(asset.source, _Origin()).prefix}/")
                names = (path, within, f"{asset.source}/{within}", asset.document, asset.name)
                self._meet(asset.source, *names, *(name.split("/")[-1] for name in names))
                yield asset

    def _made(self, files: Mapping[str, LockedFile]) -> Iterator[Asset]:
        """Yield the assets of this build: images, then sources, then texts."""
        images: dict[str, set[str]] = {}  # each with the names of the picture in the source; none for a page
        texts: set[tuple[str, str, int]] = set()
        spec, build_dir = self._plan.spec, self._session.build_dir
        for shard in self._session.record_shards(spec.name, spec.lengths):
            shown = build_dir.last(shard, RECORDS)
            if not isinstance(shown, ShownImages):
                raise build_dir.damaged(shard)
            images.update((path, set()) for path in shown.pages)
            texts.update((unit, sha256, chars) for unit, chars, sha256 in shown.texts)
            for path, names in shown.pictures.items():
                images.setdefault(path, set()).update(names)
        hashes = {path: files[f"{IMAGES}/{path}"].sha256 for path in images}
        for path in sorted(images, key=lambda path: (as_utf8(path), hashes[path])):
            if not images[path] and (document := self._document(path)):
                yield self._page("image", path, hashes[path], document)
            else:
                yield self._image(path, sorted(images[path]), hashes[path])
        corpus = self._plan.corpus
        for name in sorted(self._names, key=as_utf8):
            sha256 = corpus.sha256 if corpus and name == CORPUS else self._plan.source_hashes[name]
            places = dict.fromkeys(place for _, place in self._origins[name].places)
            located = _Located(name, self._origins[name].prefix, " ".join(places))
            yield self._asset("source", name, sha256, located, self._rights_of_source(name))
        for unit, sha256, chars in sorted(texts, key=lambda text: (as_utf8(text[0]), *text[1:])):
            if document := self._document(unit):
                yield replace(self._page("text", unit, sha256, document), chars=chars)
            else:
                name = unit.rpartition("#")[0] or unit
                located = self._text_source(name, unit)._replace(names=(unit, name))
                rights = self._strictest([located])
                yield self._asset("text", unit, sha256, located, rights, document=name, chars=chars)

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
            as_utf8(name),
            sha256,
            chars,
            source=located.source,
            document=as_utf8(document),
            origin=located.place,
            inside=as_utf8(located.inside),
            licence=rights.licence.name,
            licence_kind=rights.licence.kind,
            author=rights.author,
            url=rights.url or as_utf8(without_login(self._addresses.get(document, ""))),
            hint=hint,
        )

    def _image(self, path: str, names: Sequence[str], sha256: str) -> Asset:
        """Return the asset of a picture; `names` are those that it has in the source."""
        files, same = [], list[_Located]()
        for name in names or (path,):
            file = self._sources.images.pictures.file(name) if self._sources.has_images else None
            if isinstance(file, Path):
                located = self._locate(file)
            else:
                table = self._locate(file.file).source if isinstance(file, PictureInFile) else ""
                located = self._at(self._only or table, file.name if file else name)
            files.append(file)
            same.append(located._replace(names=(name, Path(name).name) if names else ()))
        first = same[0] = same[0]._replace(names=(*same[0].names, Path(path).name))
        for file in files:
            same += self._same_bytes(file)
        hint = picture_hint(files[0]) if files[0] else ""
        return self._asset("image", path, sha256, first, self._strictest(same), hint=hint)

    def _page(self, kind: AssetKind, path: str, sha256: str, file: DocumentFile) -> Asset:
        """Return the asset of an image or a text of a page of a document, a part of one, or several pages joined."""
        numbers = self._shown_pages(file.id).get(path.split("/")[-1], ())
        if isinstance(file.pages, PageImages):
            images = dict(zip(file.pages.numbers, file.pages.files, strict=True))
            files = [images[number] for number in numbers if number in images] or list(file.pages.files)
            hint = next(filter(None, map(picture_hint, files)), "") if numbers else ""
        else:
            files, hint = [file.pages], self._pdf_hint(file.pages, self._plan.spec.limits)
        rights = []
        for each in files:
            located = self._locate(each)
            names = (file.id, file.name, Path(located.within or located.inside).name)
            rights.append(self._strictest([located._replace(names=names), *self._same_bytes(each)]))
        strict = max(rights, key=lambda each: strictness(each.licence))
        first = self._locate(files[0])
        if len(files) > 1 or not isinstance(file.pages, PageImages):
            first = first._replace(inside=f"{first.inside}{page_marks(numbers)}")
        return self._asset(kind, path, sha256, first, strict, document=file.id, hint=hint)

    def _document(self, path: str) -> DocumentFile | None:
        parts = path.split("/")
        is_page = len(parts) > 1 and path.startswith(f"{self._reader.image_folder}/")
        return self._plan.documents.get(parts[-2]) if is_page else None

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

    def _text_source(self, document: str, unit: str) -> _Located:
        """Return the source of a text that is no page of a document: the corpus, the file that a web page is named
        after, or the only source.
        """
        if self._plan.corpus:
            return self._at(CORPUS, f"#{unit}")
        first, _, below = document.partition("/")
        if first in self._names and below:
            return self._at(first, unit.removeprefix(f"{first}/"))
        if name := self._source_of_file(document):
            return self._at(name, unit)
        rows = next((name for name in ("questions", "rows", "samples") if name in self._names), self._only)
        return self._at(rows, f"#{unit}", is_whole=True)

    def _find_file(self, name: str) -> str:
        folders = ((source, path) for source, path in self._plan.sources.items() if source in self._names)
        return next((source for source, path in folders if path.is_dir() and (path / name).is_file()), "")

    def _at(self, source: str, path: str, *, is_whole: bool = False) -> _Located:
        """Return something in a source; `is_whole` says that `path` is no path inside the source."""
        origin = self._origins.get(source, _Origin())
        places = (place for part, place in origin.places if not part or PurePosixPath(path).is_relative_to(part))
        inside = path if is_whole or not origin.prefix else f"{origin.prefix}/{path}".removesuffix("/")
        place = next(places, "") if origin.places else ""
        return _Located(source, inside, place, "" if is_whole or path.startswith("#") else path)

    def _same_bytes(self, path: object) -> list[_Located]:
        """Return the other files of the sources with the same bytes, if they may have other licences; none for what is
        no file.
        """
        if not (self._licences.sources or any(self._stated.values())) or not isinstance(path, Path):
            return []
        ids = {file.pages: file.id for file in self._plan.documents.values() if isinstance(file.pages, Path)}
        hashes, files = self._files_by_hash
        others = [other for other in files.get(hashes.get(path, ""), ()) if other != path]
        names = (tuple(filter(None, (ids.get(other), other.stem, other.name))) for other in others)
        return [self._locate(other)._replace(names=known) for other, known in zip(others, names, strict=True)]

    @cached_property
    def _files_by_hash(self) -> tuple[Mapping[Path, str], Mapping[str, list[Path]]]:
        """The SHA-256 of each file of the sources, and the files with each SHA-256."""
        hashes, files = self._session.source_files.hashes(self._plan.spec.name), dict[str, list[Path]]()
        for path, sha256 in sorted(hashes.items()):
            files.setdefault(sha256, []).append(path)
        return hashes, files

    @cached_property
    def _addresses(self) -> Mapping[str, str]:
        with calling("reader", self._plan.spec.reader, "addresses()"):
            return self._reader().addresses(self._plan.sources)

    # What is stated about it

    def _strictest(self, same: Sequence[_Located]) -> AssetRights:
        """Return the strictest of what is stated about things of the sources: about themselves or, of a source where
        nothing is, about the source. What is of no known source may be of each of them.
        """
        stated: dict[str, list[AssetRights]] = {}
        if len(same) == 1 and same[0].source and not any(self._stated.values()):  # most texts
            return self._rights_of_source(same[0].source)
        for located in same:
            for source in (located.source,) if located.source else self._names or ("",):
                if not any(self._stated.values()):
                    stated[source] = []
                    continue
                # the most specific name first: its path with the source, in the place of the source, in the source
                paths = (f"{source}/{located.within}" if source else "", located.inside.partition("#page=")[0])
                names = (*filter(None, (*paths, located.within)), *located.names) if located.within else located.names
                self._meet(source, *names)
                rights = (self._stated.get(table, {}).get(name) for table in (source, "") for name in names)
                stated.setdefault(source, []).extend([first] if (first := next(filter(None, rights), None)) else [])
        every = (each for source, direct in stated.items() for each in direct or [self._rights_of_source(source)])
        return max(every, key=self._strictness)

    def _meet(self, source: str, *names: str) -> None:
        """Note that an asset of a source has these names."""
        if self._unmet:
            self._unmet.difference_update((table, name) for table in (source, "") for name in names)
