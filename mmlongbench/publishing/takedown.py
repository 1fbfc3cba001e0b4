"""Takes a document, an image or a source out of a finished release: a new release without every example that shows it.

All other examples and files keep their bytes. The new lock has the hashes of the new release, and is the same whenever
it is made; the date is in a file beside it (`TOMBSTONES`).
"""

import json
import re
import shutil
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Literal, TypeAlias

from pydantic import BaseModel, ConfigDict

from mmlongbench.documents.pixels import is_like_any, likeness, unreadable
from mmlongbench.errors import Fault, ReleaseError, nearest
from mmlongbench.exports.export import appearing, checked_folder
from mmlongbench.io.files import file_inside, sha256_of, write_whole
from mmlongbench.io.progress import Progress
from mmlongbench.lengths import format_length
from mmlongbench.manifest.task_files import NO_TASK_FILES, TaskFiles
from mmlongbench.release.assets import (
    ASSETS,
    Asset,
    KnownAssets,
    pages_in,
    read_assets,
    resolve,
    text_key,
    write_assets,
)
from mmlongbench.release.example_cost import placement_of
from mmlongbench.release.file_audit import Facts
from mmlongbench.release.items import Item, ItemReader, items_path
from mmlongbench.release.layout import CLAIMS, DATA, IMAGES, LOCK, REJECTS, TOMBSTONES, as_utf8
from mmlongbench.release.lock import (
    CellCounts,
    DatasetCounts,
    LockedFile,
    files_below,
    is_release_path,
    lock_bytes,
    lock_id,
)
from mmlongbench.release.read_dataset import ReadDataset
from mmlongbench.release.rejects import Reject
from mmlongbench.release.release import PublicFile, Release, open_release
from mmlongbench.task.file_formats import JSON_LINES, to_json
from mmlongbench.task.rows import Record

Kind: TypeAlias = Literal["document", "image", "source"]
REASON = "taken-down"
"""The reason of the rejects that a takedown adds."""
TAKEN_OUT = "taken out"
"""What rejects have in place of what they quoted of something that is taken out."""
MAX_COMPARED = 200
"""The maximum number of images whose likeness is searched in the rest of a release."""


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """What is asked to be taken out of a release."""

    kind: Kind
    id: str
    """The id of a document, article or web page; the path of an image below `mmlb_image/`, which the text of the same
    page shares; or `dataset/source`, or the name of a source in all datasets."""

    def matches(self, asset: Asset) -> bool:
        """Return whether an image or a text is, or is a part of, what is taken out."""
        if asset.kind == "source":
            return False
        if self.kind == "document":
            return asset.document == self.id
        if self.kind == "image":
            return asset.name == self.id  # a page may be an image here and a text there
        return self.id in (asset.source, f"{asset.dataset}/{asset.source}")

    def known_ids(self, asset: Asset) -> tuple[str, ...]:
        """Return the ids by which an asset could be taken out in this way."""
        if self.kind == "document":
            return (asset.document,) if asset.document else ()
        if self.kind != asset.kind:
            return ()
        return (asset.name,) if self.kind == "image" else (asset.name, f"{asset.dataset}/{asset.name}")


@dataclass(slots=True)
class Withdrawn:
    """The assets that are taken out."""

    images: set[str] = field(default_factory=set)
    """Paths below `mmlb_image/`."""
    texts: set[tuple[str, str]] = field(default_factory=set)
    """(dataset, unit)."""
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
    questions: Mapping[tuple[str, int], Mapping[str, Fault]] = field(default_factory=dict)
    """The questions that go for another reason, by dataset and length, and then by id."""

    def add(self, asset: Asset, *, is_equal: bool = False) -> None:
        """Add an image or a text."""
        if asset.kind == "image":
            self.images.add(asset.name)
        elif asset.kind == "text":
            self.texts.add((asset.dataset, asset.name))
        if is_equal:
            self.equal.add(asset.name)

    def __contains__(self, asset: Asset) -> bool:
        if asset.kind == "image":
            return asset.name in self.images
        return asset.kind == "text" and (asset.dataset, asset.name) in self.texts


def find_withdrawn(release: Path, withdrawal: Withdrawal) -> Withdrawn:
    """Return the assets that a takedown takes out: those that match, all with the same bytes or the same text, and
    other forms of the same pages.

    Raises:
        ReleaseError: nothing in the release matches; the error names the nearest id.

    """
    gone, hashes, known = Withdrawn(), set[str](), dict[str, None]()
    if withdrawal.kind == "source":
        sources = (asset for asset in read_assets(release) if asset.kind == "source")
        gone.datasets = {asset.dataset for asset in sources if withdrawal.id in withdrawal.known_ids(asset)}
    for asset in read_assets(release):
        known.update(dict.fromkeys(withdrawal.known_ids(asset)))
        is_sourceless = asset.dataset in gone.datasets and asset.kind != "source" and not asset.source
        if not (withdrawal.matches(asset) or is_sourceless):
            continue
        gone.add(asset)
        gone.sourceless += is_sourceless
        if asset.chars != 0:  # pages without text are all equal
            hashes.add(asset.sha256)
        if withdrawal.kind == "document":
            gone.folders.add(asset.document)
            if not _is_article(asset):
                gone.folders.update(asset.name.split("/")[-2:-1])
                gone.excludable.add(asset.dataset)
    if not gone.images and not gone.texts and not gone.datasets:
        raise ReleaseError(
            f"--{withdrawal.kind} {withdrawal.id!r:.200}: nothing in {release.name} is of it"
            f"{nearest(withdrawal.id, list(known)[:10_000])}"
        )
    add_same(gone, hashes, release)
    return gone


def add_same(gone: Withdrawn, hashes: set[str], release: Path) -> None:
    """Add all images and texts with the same hash as one that is taken out, and those that show the same page in
    another form: as its text, as a crop of it, or joined with other pages.
    """
    for asset in read_assets(release):
        if asset.sha256 in hashes and asset.kind != "source" and asset not in gone:
            gone.add(asset, is_equal=True)
    # Pages that are taken out: their paths, which images and texts share; and by the folder of their document in the
    # release their numbers or, if the pages are image files, these files.
    paths, numbers, files = set[str](), defaultdict[str, set[int]](set), defaultdict[str, set[str]](set)
    for asset in read_assets(release):
        # an equal text, such as "Notes", does not say that the whole page is equal
        is_whole = asset.kind == "image" or asset.name not in gone.equal
        if asset in gone and is_whole and (folder := _folder(asset)):
            paths.add(asset.name)
            if (pages := pages_in(asset.inside)) is None:
                files[folder].add(asset.inside)
            else:
                numbers[folder].update(pages)
    for asset in read_assets(release):
        folder = _folder(asset)
        if asset.kind == "source" or not folder or asset in gone:
            continue
        # If one page is known by its number and the other by its file, they may be the same.
        if (pages := pages_in(asset.inside)) is None:
            is_same = folder in numbers or asset.inside in files.get(folder, ())
        else:
            is_same = folder in files or not numbers.get(folder, set()).isdisjoint(pages)
        if is_same or asset.name in paths:
            gone.add(asset, is_equal=True)


def _is_article(asset: Asset) -> bool:
    """Return whether an asset is the text of an article or a web page; it has their id, and pages have paths."""
    return asset.kind == "text" and asset.document == (asset.name.rpartition("#")[0] or asset.name)


def _folder(asset: Asset) -> str:
    """Return the folder of the document of a page in the release; empty for what is no page of a document."""
    return "" if _is_article(asset) or not asset.document else asset.name.rpartition("/")[0]


def near_images(release: Path, gone: Iterable[str], kept: Iterable[str], progress: Progress) -> tuple[str, ...] | None:
    """Return the kept images that look like one of those that were taken out. They are not taken out themselves,
    because a likeness may be by chance; a person looks at them. None: too many are taken out to compare.
    """

    def look(path: str) -> bytes | None:
        try:
            return likeness((release / IMAGES / path).read_bytes())
        except unreadable():
            return None

    removed, rest = sorted(set(gone)), sorted(set(kept))
    if len(removed) > MAX_COMPARED:
        return None
    looks = [found for path in removed if (found := look(path))]
    near = []
    with progress.bar("takedown: images compared", len(rest) if looks else 0) as advance:
        for path in rest if looks else ():
            own = look(path)
            if own and is_like_any(own, looks):
                near.append(path)
            advance()
    return tuple(near)


@dataclass(slots=True)
class Kept:
    """What is left of one public file."""

    dropped: dict[str, None] = field(default_factory=dict)
    """The ids of the questions whose examples are dropped, in the order of the file."""
    ids: set[str] = field(default_factory=set)
    """The ids of the questions whose examples stay."""
    read: int = 0
    lines: int = 0
    """The examples that stay."""
    balanced: Counter[str] = field(default_factory=Counter)
    """How often each value of the field `TaskSpec.balance` is left."""
    facts: Facts = field(default_factory=Facts)
    """The images and the texts that the other examples show."""

    @property
    def gone(self) -> int:
        """The examples that are dropped."""
        return self.read - self.lines


def dropped_of(opened: Release, file: PublicFile, dataset: ReadDataset, gone: Withdrawn) -> Kept:
    """Return which questions of a file are dropped: those with an example that shows something of what is taken out, at
    any of its placements, and those about a document that is taken out.
    """
    kept = Kept()
    for record, items in _examples(opened, file):
        kept.read += 1
        id = str(record.get("id"))
        if id in gone.questions.get((dataset.name, file.length), ()) or _shows(record, items, dataset, gone):
            kept.dropped[id] = None
    return kept


def _examples(opened: Release, file: PublicFile) -> Iterator[tuple[Record, Sequence[Item]]]:
    """Yield (record, items) of each example of a file; the second file of a task (`TaskSpec.bundle`) has no items."""
    items = None if file.is_bundle else ItemReader(opened.path, file.name, file.length)
    for _, record in file.form.unbundle(file.path):
        yield record, items.of(str(record.get("id")), placement_of(record)) if items else ()


def _shows(record: Record, items: Sequence[Item], dataset: ReadDataset, gone: Withdrawn) -> bool:
    if dataset.name in gone.datasets or not gone.images.isdisjoint(dataset.prompt(record).images):
        return True
    if any(item["image"] is None and (dataset.name, item["unit"]) in gone.texts for item in items):
        return True
    evidence = dataset.builder.evidence(record) if gone.folders else None
    return evidence is not None and evidence.document in gone.folders


class Tombstone(BaseModel):
    """A line of `takedowns.jsonl`: what was taken out of a release, and when."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    date: str
    """The day, as 2026-11-25."""
    kind: str
    id: str
    before: str
    """The first digits of the SHA-256 of the lock before (`lock_id`)."""
    examples: dict[str, int]
    """How many examples were dropped from each public file."""
    images: int
    """How many images were removed, with those that no other example shows."""
    texts: int
    """How many texts were removed, with those that no other example shows."""
    equal: int
    """How many images and texts went because they equal what was taken out, under another name."""


@dataclass(frozen=True, slots=True)
class TakenDown:
    """The result of a takedown."""

    out: Path
    tombstone: Tombstone
    untouched: int
    """The files that are the same as before."""
    near: tuple[str, ...] | None
    """The images of the new release that look like one that was taken out; None if they were not compared."""
    exclude: str
    """The line for the manifest with which a rebuild leaves out the document; for anything else, what to do."""
    exclude_from: tuple[str, ...] = ()
    """The datasets that need this line."""
    sourceless: int = 0
    """How many images and texts went because it is not known which source of their dataset they are of."""


def take_down(
    release: Path,
    withdrawal: Withdrawal,
    out: Path,
    date: str,
    progress: Progress,
    tasks: TaskFiles = NO_TASK_FILES,
) -> TakenDown:
    """Write a release without every example that shows what is taken out; it appears whole or not at all.

    `date` is the day for the tombstone.

    Raises:
        ReleaseError: the release cannot be read, nothing of it matches, nothing of it would be left, or `out` cannot be
            used.

    """
    folder, opened = checked_folder(out, release), open_release(release, tasks)
    if opened.is_publication:
        raise ReleaseError(f"{release}: is a publication; take it down from the release, and publish that again")
    if opened.missing:
        raise ReleaseError(f"{release}: files of the lock are missing; see `mmlongbench verify`")
    gone = find_withdrawn(release, withdrawal)
    rest = Rest(opened, gone, progress)
    if not any(rest.has_examples(file) for file in opened.files):
        raise ReleaseError(
            f"--{withdrawal.kind} {withdrawal.id!r:.200}: every example of {release.name} shows it or is of it, so "
            "nothing would be left; remove the release instead"
        )
    with appearing(folder) as made:
        files, assets = rest.write(made, progress)
        stay = {asset.key for asset in assets}
        removed = [asset for asset in read_assets(release) if asset.key not in stay]
        tombstone = Tombstone(
            date=date,
            kind=withdrawal.kind,
            id=withdrawal.id,
            before=lock_id(release),
            examples={f"{DATA}/{name}": kept.gone for name, kept in sorted(rest.kept.items()) if kept.gone},
            images=len({asset.name for asset in removed if asset.kind == "image"}),
            texts=sum(asset.kind == "text" for asset in removed),
            equal=len(gone.equal),
        )
        earlier = (made / TOMBSTONES).read_bytes() if (made / TOMBSTONES).is_file() else b""
        write_whole(made / TOMBSTONES, [earlier, to_json(tombstone.model_dump())])
        rest.write_lock(made, files)
        images = {asset.name for asset in assets if asset.kind == "image"}
        near = near_images(release, gone.images, images, progress)
    if gone.excludable:
        exclude = f"exclude: [{json.dumps(withdrawal.id, ensure_ascii=False)}]"
    else:
        what = {"document": "article or web page", "image": "picture", "source": "source"}[withdrawal.kind]
        exclude = f"take the {what} out of the sources: `exclude` is for documents with pages"
    same = sum(opened.lock.files.get(path) == file for path, file in files.items())
    return TakenDown(out, tombstone, same, near, exclude, tuple(sorted(gone.excludable)), gone.sourceless)


class Rest:
    """What stays of a release, and what its new files hold."""

    def __init__(self, opened: Release, gone: Withdrawn, progress: Progress) -> None:
        """Find the examples that are dropped, then what the others of the same datasets show."""
        self.opened, self.release, self.gone = opened, opened.path, gone
        self.kept: dict[str, Kept] = {}  # by the path below mmlb_data/; only files of datasets that lose an example
        self.datasets: dict[str, list[tuple[PublicFile, ReadDataset]]] = {}
        for file in opened.files:
            if file.dataset:
                self.datasets.setdefault(file.dataset.name, []).append((file, file.dataset))
        with progress.bar("takedown: files", len(opened.files)) as advance:
            for name, files in self.datasets.items():
                kept = {}
                for file, dataset in files:
                    kept[file.name] = dropped_of(opened, file, dataset, gone)
                    advance()
                if any(each.dropped for each in kept.values()):
                    known = KnownAssets.of(self.release, name)
                    for file, dataset in files:
                        # what is left of a second file is known once it is written
                        if not (file.is_bundle and kept[file.name].dropped):
                            self._add_kept(kept[file.name], file, dataset, known)
                    self.kept |= kept

    def _add_kept(self, kept: Kept, file: PublicFile, dataset: ReadDataset, known: KnownAssets) -> None:
        balance = dataset.builder.spec.balance
        for record, items in _examples(self.opened, file):
            if str(record.get("id")) in kept.dropped:
                continue
            kept.lines += 1
            kept.ids.add(str(record.get("id")))
            prompt = dataset.prompt(record)
            kept.facts.shown.update(prompt.images)
            for _ in resolve(items, prompt, known, kept.facts):  # an audit reports what cannot be resolved
                pass
            if balance:
                kept.balanced[str(record.get(balance))] += 1

    def has_examples(self, file: PublicFile) -> bool:
        """Return whether an example of a file is left."""
        is_counted = file.dataset is not None and not file.is_bundle
        return is_counted and (file.name not in self.kept or self.kept[file.name].lines > 0)

    def write(self, out: Path, progress: Progress) -> tuple[dict[str, LockedFile], list[Asset]]:
        """Write all but the lock, with earlier tombstones; return the files for the lock, and the assets that stay."""
        files, assets = self._write_files(out, progress), list(self._assets())
        for path in sorted({f"{IMAGES}/{asset.name}" for asset in assets if asset.kind == "image"}):
            _link(self.release / path, out / path)
            files[path] = self.opened.lock.files[path]
        write_assets(out / ASSETS, assets)
        files[ASSETS] = _described(out / ASSETS)
        self._write_claims(out)
        if stones := file_inside(self.release, TOMBSTONES):
            shutil.copyfile(stones, out / TOMBSTONES)
        return files, assets

    def write_lock(self, out: Path, files: Mapping[str, LockedFile], **more: object) -> None:
        """Write the lock of the new release, with more keys or other values of keys."""
        update = {"datasets": self.counts(), "files": dict(sorted(files.items())), **more}
        write_whole(out / LOCK, lock_bytes(self.opened.lock.model_copy(update=update)))

    def _write_files(self, out: Path, progress: Progress) -> dict[str, LockedFile]:
        """Write the public files, their items, the rejects and other files; return the files without images and
        assets.
        """
        files: dict[str, LockedFile] = {}
        changed: dict[str, tuple[PublicFile, ReadDataset]] = {}
        for file, dataset in chain.from_iterable(self.datasets.values()):
            if file.name in self.kept and self.kept[file.name].dropped:
                changed[f"{DATA}/{file.name}"] = changed[items_path(Path(), file.name).as_posix()] = (file, dataset)
        locked_files = self.opened.lock.files
        with progress.bar("takedown: files written", len(locked_files)) as advance:
            for path, locked in locked_files.items():
                if not is_release_path(path):
                    raise ReleaseError(f"{LOCK}: the path {path!r:.200} leads out of the release")
                if path in changed:
                    write = self._write_public if path.startswith(f"{DATA}/") else self._write_items
                    if write(*changed[path], out / path):
                        files[path] = _described(out / path)
                elif not path.startswith(f"{IMAGES}/") and path not in (ASSETS, REJECTS):
                    _link(self.release / path, out / path)
                    files[path] = locked
                advance()
        write_whole(out / REJECTS, self._rejects())
        return files | {REJECTS: _described(out / REJECTS)}

    def _write_public(self, file: PublicFile, dataset: ReadDataset, target: Path) -> bool:
        """Write a public file without the dropped examples; return False if none is left."""
        kept = self.kept[file.name]
        if not file.is_bundle:
            if kept.lines:
                write_whole(target, file.form.without(file.path, lambda record: str(record.get("id")) in kept.dropped))
            return kept.lines > 0
        is_whole, gone = dataset.name in self.gone.datasets, self.gone.images
        questions = self.gone.questions.get((dataset.name, file.length), ())

        def goes(record: Record) -> bool:
            is_named = is_whole or str(record.get("id")) in questions
            return is_named or not gone.isdisjoint(dataset.prompt(record).images)

        write_whole(target, file.form.without(file.path, goes))
        for _, record in file.form.unbundle(target) if target.stat().st_size else ():
            kept.lines += 1
            kept.facts.shown.update(dataset.prompt(record).images)
        if not kept.lines:
            target.unlink()
        return kept.lines > 0

    def _write_items(self, file: PublicFile, _: ReadDataset, target: Path) -> bool:
        """Write the items of a file without those of dropped examples; return False if none is left."""
        import pyarrow as pa
        import pyarrow.compute as pc
        import pyarrow.parquet as pq

        kept = self.kept[file.name]
        if not kept.lines:
            return False
        dropped = pa.array([*map(as_utf8, kept.dropped)], pa.string())
        target.parent.mkdir(parents=True, exist_ok=True)
        with pq.ParquetFile(items_path(self.release, file.name)) as table:
            schema = table.schema_arrow
            with pq.ParquetWriter(target, schema) as writer:
                for batch in table.iter_batches(50_000):
                    left = batch.filter(pc.invert(pc.is_in(batch["id"], value_set=dropped)))
                    writer.write_table(pa.Table.from_batches([left], schema))
        return True

    def _rejects(self) -> Iterator[bytes]:
        """Yield the rejects of the release without quotes of what is taken out, then one for each dropped question at a
        length.
        """
        with (self.release / REJECTS).open("rb") as lines:
            yield from (_without_quotes(line, self.gone) for line in lines)
        taken_out = Fault(REASON, "an example that may be shown", "one that was taken out", is_expected=True)
        for name, files in self.datasets.items():
            for file, _ in files:
                faults = self.gone.questions.get((name, file.length), {})
                for id in () if file.is_bundle or file.name not in self.kept else self.kept[file.name].dropped:
                    fault = faults.get(id, taken_out)
                    yield to_json(Reject(name, id, file.length, fault).fields())

    def _assets(self) -> Iterator[Asset]:
        """Yield the assets that examples of the new release show, and the sources of their datasets."""
        empty = {name for name, files in self.datasets.items() if not any(self.has_examples(file) for file, _ in files)}
        shown: dict[str, tuple[set[str], set[bytes]]] = {}
        for name, files in self.datasets.items():
            if facts := [self.kept[file.name].facts for file, _ in files if file.name in self.kept]:
                shown[name] = set().union(*(each.shown for each in facts)), set().union(*(each.texts for each in facts))
        for asset in read_assets(self.release):
            if asset.dataset in empty:
                continue
            if asset.dataset in shown and asset.kind != "source":
                images, texts = shown[asset.dataset]
                is_text = asset.kind == "text"
                if not (
                    text_key(asset.name, bytes.fromhex(asset.sha256)) in texts if is_text else asset.name in images
                ):
                    continue
            yield asset

    def counts(self) -> dict[str, DatasetCounts]:
        """Return the counts of the new lock. Dropped questions count as rejected at their length. What cannot be known
        from the records stays as the build counted it, as far as it is possible for the examples that are left.
        """
        by_dataset = dict(self.opened.lock.readable)
        for file, dataset in chain.from_iterable(self.datasets.values()):
            counts, kept = by_dataset.get(dataset.name), self.kept.get(file.name)
            if counts is None or kept is None or file.is_bundle or not kept.dropped:
                continue
            length = format_length(file.length)
            cell = counts.cells[length]
            values: dict[str, object] = cell.model_dump(exclude_unset=True)
            values |= {"examples": kept.lines, "rejected": cell.rejected + len(kept.dropped)}
            values["ran_dry"] = min(cell.ran_dry, kept.lines)
            if not values["ran_dry"]:
                values.pop("missing_units", None)
            if balance := dataset.builder.spec.balance:
                values[f"by_{balance}"] = dict(sorted(kept.balanced.items()))
            cells = {**counts.cells, length: CellCounts.model_validate(values)}
            by_dataset[dataset.name] = counts.model_copy(update={"cells": cells})
        return by_dataset

    def _write_claims(self, out: Path) -> None:
        """Copy the files of claims, without the lines of questions of which their dataset has no example any more. A
        file of which nothing is left is left out.
        """
        for path in files_below(self.release / DATA):
            if not path.name.endswith(CLAIMS):
                continue
            files = self.datasets.get(path.name.removesuffix(CLAIMS), ())
            kept = [self.kept[file.name] for file, _ in files if file.name in self.kept]
            gone = {id for each in kept for id in each.dropped} - {id for each in kept for id in each.ids}
            lines = JSON_LINES.without(path, lambda record, gone=gone: str(record.get("id")) in gone)  # type: ignore[misc]
            target = out / path.relative_to(self.release)
            write_whole(target, lines)
            if not target.stat().st_size:
                target.unlink()


def _without_quotes(line: bytes, gone: Withdrawn) -> bytes:
    """Return a line of rejects without what it quotes of a source, or of a document that it names, that is taken out;
    any other line as it is.
    """
    try:
        reject = json.loads(line)
    except ValueError:  # an audit reports it
        return line
    if not isinstance(reject, dict):
        return line
    quotes = {key: reject[key] for key in ("expected", "found") if isinstance(reject.get(key), str) and reject[key]}
    names = "|".join(re.escape(name) for name in gone.folders if name)
    names_it = bool(names) and any(re.search(rf"(?<!\w)({names})(?!\w)", value) for value in quotes.values())
    if reject.get("dataset") not in gone.datasets and not names_it:
        return line
    return to_json({**reject, **dict.fromkeys(quotes, TAKEN_OUT)})


def _link(source: Path, target: Path) -> None:
    """Give a file a second name; copy it if the file system has no such links."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if not source.is_symlink():
        with suppress(OSError):
            target.hardlink_to(source)
            return
    shutil.copyfile(source, target)


def _described(path: Path) -> LockedFile:
    return LockedFile(bytes=path.stat().st_size, sha256=sha256_of(path))
