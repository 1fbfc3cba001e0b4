"""Makes the table of assets when a build finishes: what each image and text of the release is, and where it comes from.

It reads no pixel and no text: the paths and hashes come from the results of earlier stages. Only metadata inside
pictures and PDFs are read again, as hints. The names and hashes of one dataset are in memory at a time, and its assets
one by one.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from heapq import merge
from itertools import groupby
from pathlib import Path
from typing import TypeAlias

from mmlongbench.building.asset_licences import AssetRights, StatedRights, stated_rights, without_login
from mmlongbench.building.build_plan import DatasetPlan
from mmlongbench.building.fingerprints import DocumentFile, files_of
from mmlongbench.building.lines import RECORDS, ShownImages
from mmlongbench.building.locating import CORPUS
from mmlongbench.building.origins import Located, Origin, Origins
from mmlongbench.building.session import Session
from mmlongbench.building.stages.records import record_shards
from mmlongbench.documents.pages import PageImages
from mmlongbench.documents.pixels import PictureFile, PictureInFile
from mmlongbench.documents.rights_hints import pdf_hint, picture_hint
from mmlongbench.errors import BuildError
from mmlongbench.manifest.binding import calling
from mmlongbench.manifest.licences import Licence, strictness, terms_of
from mmlongbench.manifest.plugins import reader_type
from mmlongbench.release.assets import ASSETS, Asset, AssetKind, has_assets, page_marks, read_assets, write_assets
from mmlongbench.release.layout import IMAGES, TOMBSTONES
from mmlongbench.release.lock import LockedFile

_Entry: TypeAlias = tuple[AssetKind, str, str, tuple[str, ...] | int]
"""(kind, name, SHA-256, what else is known): of a picture its names in the source, sorted; of a text its characters."""
_Named: TypeAlias = tuple[Located, tuple[str, ...]]
"""Something of the sources, and the names that it has besides its path."""


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

    def found() -> Iterator[Asset]:
        for plan in sorted(plans, key=lambda each: each.spec.name):
            maker = _Maker(plan, session)
            yield from _of(maker, session, files)
            if lines := maker.unmatched():
                unmatched[plan.spec.name] = lines

    write_assets(session.build_dir.out / ASSETS, found())
    return unmatched


def _of(maker: "_Maker", session: Session, files: Mapping[str, LockedFile]) -> Iterator[Asset]:
    """Yield the assets of a dataset, sorted; those of an extended release are among them."""
    plan = maker.plan
    images, texts = _shown(plan, session)
    entries: list[_Entry] = [("source", name, maker.source_hash(name), ()) for name in maker.origins.names]
    entries += [
        ("image", path, files[f"{IMAGES}/{path}"].sha256, tuple(sorted(names))) for path, names in images.items()
    ]
    entries += [("text", unit, sha256, chars) for unit, chars, sha256 in texts]
    entries.sort(key=lambda entry: (entry[0], _printable(entry[1]), entry[2]))
    taken = map(maker.met, _taken(plan, session))
    both = merge(taken, map(maker.make, entries), key=lambda asset: asset.key)
    for _, found in groupby(both, key=lambda asset: asset.key):
        same = list(found)
        # of the names that a picture has in the source, the first one is its origin, whichever build has met it
        first = min(same, key=lambda asset: asset.inside) if same[0].kind == "image" else same[-1]
        yield maker.with_strictest(first, same) if len(same) > 1 else first


def _shown(plan: DatasetPlan, session: Session) -> tuple[dict[str, set[str]], set[tuple[str, int, str]]]:
    """Return the images that a dataset shows, each with the names of the picture in the source (none for a page), and
    its texts as (unit, characters, SHA-256).
    """
    images: dict[str, set[str]] = {}
    texts: set[tuple[str, int, str]] = set()
    for shard in record_shards(session, plan.spec.name, plan.spec.lengths):
        shown = session.build_dir.last(shard, RECORDS)
        if not isinstance(shown, ShownImages):
            raise session.build_dir.damaged(shard)
        images.update((path, set()) for path in shown.pages)
        texts.update((unit, chars, sha256) for unit, chars, sha256 in shown.texts)
        for path, names in shown.pictures.items():
            images.setdefault(path, set()).update(names)
    return images, texts


def _taken(plan: DatasetPlan, session: Session) -> Iterable[Asset]:
    """Return the images and texts that the extended release has of a dataset; the release keeps all of them."""
    released = session.released
    if released is None or released.kept(plan.spec.name) is None:
        return ()
    return (asset for asset in read_assets(released.out, plan.spec.name) if asset.kind != "source")


def refuse_unextendable(out: Path) -> None:
    """Refuse to extend a release that has no table of assets, or of which something was taken out, because an extension
    would put it back.

    Raises:
        BuildError: the release cannot be extended.

    """
    if (out / TOMBSTONES).is_file():
        raise BuildError(
            f"--out {out}: {TOMBSTONES} says that examples were taken out of the finished release; an extension would "
            "put them back: build into another folder, with `exclude` in the manifest"
        )
    if not has_assets(out):
        raise BuildError(
            f"--out {out}: the finished release has no table of assets ({ASSETS}), because an older version built it; "
            "it cannot be extended: use another folder, or remove this one to build it again"
        )


class _Maker:
    """Makes the assets of one dataset."""

    def __init__(self, plan: DatasetPlan, session: Session) -> None:
        self.plan = plan
        self._dataset = session.dataset(plan.spec.name)
        self._licences = plan.spec.licences
        self._session = session
        self._rights: StatedRights = stated_rights(plan)
        self._has_licences = bool(self._licences.sources) or any(self._rights.by_source.values())
        self._folder = reader_type(plan.spec.reader).image_folder
        self.origins = Origins(plan)
        self._pdf_hint = lru_cache(maxsize=1)(pdf_hint)  # the pages of a document follow each other
        self._shown_pages = lru_cache(maxsize=1)(self._shown_pages_of)

    def make(self, entry: _Entry) -> Asset:
        """Return the asset of an entry."""
        kind, name, sha256, about = entry
        if kind == "source":
            origin = self.origins.of[name]
            places = dict.fromkeys(filter(None, (origin.place, *(place for _, place in origin.parts))))
            return self._asset("source", name, sha256, (Located(name, origin.prefix, " ".join(places)), ()))
        return self._text(name, about, sha256) if isinstance(about, int) else self._image(name, about, sha256)

    def met(self, asset: Asset) -> Asset:
        """Return an asset of the extended release, whose names are noted."""
        path = asset.inside.partition("#page=")[0]
        within = path.removeprefix(f"{self.origins.of.get(asset.source, Origin()).prefix}/")
        names = (path, within, f"{asset.source}/{within}", asset.document, asset.name)
        self._rights.meet(asset.source, *names, *(name.split("/")[-1] for name in names))
        return asset

    def unmatched(self) -> list[str]:
        """Return the lines of tables of licences that name no asset so far, and no file, document or picture of the
        sources. A line may name something that no example shows.
        """
        if not self._rights.unmet:
            return []
        documents = self.plan.documents
        known = {("", name) for name in (*documents, *self.plan.refused, *(file.id for file in documents.values()))}
        for source, root in self.plan.sources.items():
            table = source if source in self.origins.names else ""  # what a reader extracts may be of any source
            for file in files_of(root):
                within = file.relative_to(root).as_posix() if file != root else file.name
                names = {within, file.name, f"{source}/{within}", self.origins.at(source, within).inside}
                known |= {(table, name) for name in names}
        every = {name for _, name in known}
        pictures = self._dataset.sources.images.pictures if self._dataset.sources.has_images else None
        left = {
            name
            for table, name in self._rights.unmet
            if not ({(table, name), ("", name)} & known if table else name in every)
        }
        return [_printable(name) for name in sorted(left) if pictures is None or pictures.file(name) is None]

    def source_hash(self, name: str) -> str:
        """Return the SHA-256 of a source, as the lock has it."""
        corpus = self.plan.corpus
        return corpus.sha256 if corpus and name == CORPUS else self.plan.source_hashes[name]

    def _image(self, path: str, names: tuple[str, ...], sha256: str) -> Asset:
        """Return the asset of an image; `names` are those of a picture in the source, none for a page."""
        if not names and (file := self._document(path)):
            return self._page(path, sha256, file)
        (found, located), *others = [self._picture(name) for name in names or (path,)]
        first = names[0] if names else ""
        same: list[_Named] = [
            (other, (name, Path(name).name)) for name, (_, other) in zip(names[1:], others, strict=True)
        ]
        for picture in (found, *(picture for picture, _ in others)):
            same += self._equal(picture)
        called = (first, Path(first).name, Path(path).name)
        return self._asset("image", path, sha256, (located, called), same, hint=picture_hint(found) if found else "")

    def _picture(self, name: str) -> tuple[PictureFile | None, Located]:
        """Return the file of a picture, and which source it belongs to."""
        found = self._dataset.sources.images.pictures.file(name) if self._dataset.sources.has_images else None
        if isinstance(found, Path):
            return found, self.origins.locate(found)
        table = found.file if isinstance(found, PictureInFile) else None
        source = self.origins.only or (self.origins.locate(table).source if table else "")
        return found, self.origins.at(source, found.name if found else name)

    def _equal(self, path: object) -> list[_Named]:
        """Return the other files of the sources with the same bytes, if they may have other licences; none for what is
        no file.
        """
        if not self._has_licences or not isinstance(path, Path):
            return []
        ids = {file.pages: file.id for file in self.plan.documents.values() if isinstance(file.pages, Path)}
        others = [other for other in self._files.get(self._hashes.get(path, ""), ()) if other != path]
        return [
            (self.origins.locate(other), tuple(filter(None, (ids.get(other), other.stem, other.name))))
            for other in others
        ]

    @cached_property
    def _addresses(self) -> Mapping[str, str]:
        """The URLs of single documents, by their ids, as the sources state them."""
        with calling("reader", self.plan.spec.reader, "addresses()"):
            return reader_type(self.plan.spec.reader)().addresses(self.plan.sources)

    @cached_property
    def _hashes(self) -> dict[Path, str]:
        return self._session.source_files.hashes(self.plan.spec.name)

    @cached_property
    def _files(self) -> dict[str, list[Path]]:
        """The files of the sources with the same bytes, by their SHA-256."""
        found: dict[str, list[Path]] = {}
        for path, sha256 in sorted(self._hashes.items()):
            found.setdefault(sha256, []).append(path)
        return found

    def _text(self, unit: str, chars: int, sha256: str) -> Asset:
        """Return the asset of the text of a unit."""
        if file := self._document(unit):
            return replace(self._page(unit, sha256, file), kind="text", chars=chars)
        document = unit.rpartition("#")[0] or unit
        located = self._text_source(document, unit)
        return self._asset("text", unit, sha256, (located, (unit, document)), document=document, chars=chars)

    def _text_source(self, document: str, unit: str) -> Located:
        """Return the source of a text that is no page of a document: the corpus, the file that a web page is named
        after, or the only source.
        """
        names = self.origins.names
        if self.plan.corpus:
            return self.origins.at(CORPUS, f"#{unit}")
        first, _, below = document.partition("/")
        if first in names and below:
            return self.origins.at(first, unit.removeprefix(f"{first}/"))
        for name, path in self.plan.sources.items():
            if name in names and path.is_dir() and (path / document).is_file():
                return self.origins.at(name, unit)
        rows = next((name for name in ("questions", "rows", "samples") if name in names), self.origins.only)
        return self.origins.at(rows, f"#{unit}", is_whole=True)

    def _document(self, path: str) -> DocumentFile | None:
        """Return the document of a page, by the path of the page in the release."""
        parts = path.split("/")
        is_page = len(parts) > 1 and path.startswith(f"{self._folder}/")
        return self.plan.documents.get(parts[-2]) if is_page else None

    def _page(self, path: str, sha256: str, file: DocumentFile) -> Asset:
        """Return the asset of an image that shows a page of a document, a part of one, or several pages joined."""
        numbers = self._shown_pages(file.id).get(path.split("/")[-1], ())
        if isinstance(file.pages, PageImages):
            known = dict(zip(file.pages.numbers, file.pages.files, strict=True))
            files = [known[number] for number in numbers if number in known] or list(file.pages.files)
            hint = next(filter(None, map(picture_hint, files)), "") if numbers else ""
        else:
            files, hint = [file.pages], self._pdf_hint(file.pages)
        pages = [self._named_page(each, file) for each in files]
        located, _ = pages[0][0]
        is_file = isinstance(file.pages, PageImages) and len(files) == 1
        located = located if is_file else replace(located, inside=f"{located.inside}{page_marks(numbers)}")
        rights = max((self._strictest(every) for every in pages), key=lambda each: strictness(each.licence))
        return self._described("image", path, sha256, located, rights, document=file.id, hint=hint)

    def _named_page(self, path: Path, file: DocumentFile) -> list[_Named]:
        """Return the file of a page, or of all pages of a document, and the files with the same bytes."""
        located = self.origins.locate(path)
        names = (file.id, file.name, Path(located.within or located.inside).name)
        return [(located, names), *self._equal(path)]

    def _shown_pages_of(self, id: str) -> dict[str, tuple[int, ...]]:
        """Return which pages each image of a document shows: their numbers, from 0, by the name of the image."""
        if (document := self._dataset.sources.documents.usable.get(id)) is None:
            return {}
        every = document.joined or tuple((page,) for page in document.pages)
        shown: dict[str, tuple[int, ...]] = {crop.path: (crop.page,) for crop in document.crops}
        shown |= {
            page.path: tuple(each.index for each in found) for page, found in zip(document.pages, every, strict=True)
        }
        return {path.split("/")[-1]: numbers for path, numbers in shown.items()}

    def _asset(
        self,
        kind: AssetKind,
        name: str,
        sha256: str,
        named: _Named,
        same: Sequence[_Named] = (),
        *,
        document: str = "",
        hint: str = "",
        chars: int | None = None,
    ) -> Asset:
        """Return an asset with the strictest of the licences that are stated under any of its names; `same` has the
        other names of the same bytes.
        """
        located = named[0]
        rights = self._of_source(located.source) if kind == "source" else self._strictest((named, *same))
        return self._described(kind, name, sha256, located, rights, document=document, hint=hint, chars=chars)

    def _described(
        self,
        kind: AssetKind,
        name: str,
        sha256: str,
        located: Located,
        rights: AssetRights,
        *,
        document: str = "",
        hint: str = "",
        chars: int | None = None,
    ) -> Asset:
        """Return an asset with these rights."""
        return Asset(
            self.plan.spec.name,
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

    def _strictest(self, every: Sequence[_Named]) -> AssetRights:
        """Return the strictest of what is stated about things of the sources: about themselves or, of a source where
        nothing is, about the source. What is of no known source may be of each of them.
        """
        found: dict[str, list[AssetRights]] = {}
        for located, names in every:
            for source in (located.source,) if located.source else self.origins.names or ("",):
                stated = self._rights.of(source, *replace(located, source=source).names, *names)
                found.setdefault(source, []).extend([stated] if stated else [])
        each = (one for source, direct in found.items() for one in direct or [self._of_source(source)])
        return max(each, key=lambda rights: strictness(rights.licence))

    def _of_source(self, source: str) -> AssetRights:
        return AssetRights(self._licences.of(source).licence)

    def with_strictest(self, asset: Asset, same: Sequence[Asset]) -> Asset:
        """Return an asset with the strictest of the licences that it has in two builds."""
        strict = max((asset, *same), key=lambda each: strictness(self._licence_of(each)))
        kind, licence = strict.licence_kind, strict.licence
        return replace(asset, licence_kind=kind, licence=licence, author=strict.author, url=strict.url)

    def _licence_of(self, asset: Asset) -> Licence:
        every = (terms.licence for terms in (self._licences, *self._licences.sources.values()))
        known = next((each for each in every if (each.kind, each.name) == (asset.licence_kind, asset.licence)), None)
        return known or terms_of(asset.licence).licence


def _printable(text: str) -> str:
    """Return a text that UTF-8 can encode, in the form that the items of a release have too."""
    return text.encode("utf-8", "backslashreplace").decode()
