"""Takes a document, an image or a source out of a finished release: a new release without every example that shows it.

All other examples and files keep their bytes. The new lock has the hashes of the new release, and is the same whenever
it is made; the date is in a file beside it (`TOMBSTONES`).
"""

import json
import shutil
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from mmlongbench.errors import Fault, ReleaseError
from mmlongbench.exports.export import appearing, checked_folder
from mmlongbench.io.files import sha256_of, write_whole
from mmlongbench.io.progress import Progress
from mmlongbench.lengths import format_length
from mmlongbench.manifest.task_files import NO_TASK_FILES, TaskFiles
from mmlongbench.publishing.dropping import Kept, add_kept, dropped_of, without_quotes
from mmlongbench.publishing.tombstones import Tombstone, write_tombstones
from mmlongbench.publishing.withdrawn import Withdrawal, Withdrawn, find_withdrawn, near_images
from mmlongbench.release.assets import ASSETS, Asset, KnownAssets, read_assets, text_key, write_assets
from mmlongbench.release.items import items_path
from mmlongbench.release.layout import CLAIMS, DATA, IMAGES, LOCK, REJECTS, as_utf8
from mmlongbench.release.lock import (
    CellCounts,
    DatasetCounts,
    Lock,
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

REASON = "taken-down"
"""The reason of the rejects that a takedown adds."""


@dataclass(frozen=True, slots=True)
class TakenDown:
    """The result of a takedown."""

    out: Path
    """The folder of the new release."""
    tombstone: Tombstone
    """What went, and when."""
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


@dataclass(slots=True)
class _Plan:
    """What of each public file stays, and what all of them show."""

    opened: Release
    lock: Lock
    gone: Withdrawn
    kept: dict[str, Kept] = field(default_factory=dict)
    """By the path below `mmlb_data/`; only the files of datasets that lose an example."""

    @property
    def datasets(self) -> dict[str, list[PublicFile]]:
        """The public files of each dataset."""
        found: dict[str, list[PublicFile]] = {}
        for file in self.opened.files:
            if file.dataset:
                found.setdefault(file.dataset.builder.dataset, []).append(file)
        return found

    def has_left(self, file: PublicFile) -> bool:
        """Return whether an example of a file is left."""
        is_counted = file.dataset is not None and not file.is_bundle
        return is_counted and (file.name not in self.kept or self.kept[file.name].lines > 0)

    def is_dropped(self, file: PublicFile) -> bool:
        """Return whether a file loses examples."""
        return file.name in self.kept and self.kept[file.name].gone > 0


def take_down(
    release: Path,
    withdrawal: Withdrawal,
    out: Path,
    date: str,
    progress: Progress,
    tasks: TaskFiles = NO_TASK_FILES,
) -> TakenDown:
    """Write a release without every example that shows what is taken out; it appears whole or not at all.

    Args:
        release: the finished release; it is not changed.
        withdrawal: what is taken out.
        out: the folder of the new release, which is new or empty, and outside of `release`.
        date: the day for the tombstone.
        progress: shows the bars.
        tasks: the task files that the release was built with.

    Raises:
        ReleaseError: the release cannot be read, nothing of it matches, nothing of it would be left, or `out` cannot be
            used.

    """
    folder = checked_folder(out, release)
    opened = open_release(release, tasks)
    if opened.is_publication:
        raise ReleaseError(f"{release}: is a publication; take it down from the release, and publish that again")
    if opened.missing:
        raise ReleaseError(f"{release}: files of the lock are missing; see `mmlongbench verify`")
    plan = _Plan(opened, opened.lock, find_withdrawn(release, withdrawal))
    _decide(plan, release, progress)
    if not any(plan.has_left(file) for file in opened.files):
        raise ReleaseError(
            f"--{withdrawal.kind} {withdrawal.id!r:.200}: every example of {release.name} shows it or is of it, so "
            "nothing would be left; remove the release instead"
        )
    with appearing(folder) as made:
        files = _write_files(plan, release, made, progress)
        left = list(_left(plan, release))
        images = {asset.name for asset in left if asset.kind == "image"}
        files |= _link_images(plan, release, made, images)
        write_assets(made / ASSETS, left)
        files[ASSETS] = _described(made / ASSETS)
        tombstone = _tombstone(plan, withdrawal, date, lock_id(release), release, left)
        _write_claims(plan, release, made)
        write_tombstones(release, made, tombstone)
        lock = plan.lock.model_copy(update={"datasets": _counts(plan), "files": dict(sorted(files.items()))})
        write_whole(made / LOCK, lock_bytes(lock))
        near = near_images(release, plan.gone.images, images, progress)
    same = sum(plan.lock.files.get(path) == file for path, file in files.items())
    return TakenDown(
        out,
        tombstone,
        same,
        None if near is None else tuple(near),
        _exclude(withdrawal, plan.gone),
        tuple(sorted(plan.gone.excludable)),
        plan.gone.sourceless,
    )


def _decide(plan: _Plan, release: Path, progress: Progress) -> None:
    """Find the examples that are dropped, then what the others of the same datasets show."""
    with progress.bar("takedown: files", len(plan.opened.files)) as advance:
        for name, files in plan.datasets.items():
            found = {}
            for file in files:
                if file.dataset:
                    found[file.name] = dropped_of(plan.opened, file, file.dataset, plan.gone)
                advance()
            if any(each.dropped for each in found.values()):
                known = KnownAssets.of(release, name)
                for file in files:
                    # what is left of a second file is known once it is written
                    if file.dataset and not (file.is_bundle and found[file.name].dropped):
                        add_kept(found[file.name], plan.opened, file, file.dataset, known)
                plan.kept |= found


def _write_files(plan: _Plan, release: Path, out: Path, progress: Progress) -> dict[str, LockedFile]:
    """Write the public files, their items, the rejects and other files; return the files without images and assets."""
    files: dict[str, LockedFile] = {}
    changed: dict[str, PublicFile] = {}
    for file in plan.opened.files:
        if file.name in plan.kept and plan.kept[file.name].dropped:
            changed[f"{DATA}/{file.name}"] = file
            changed[items_path(Path(), file.name).as_posix()] = file
    with progress.bar("takedown: files written", len(plan.lock.files)) as advance:
        for path, locked in plan.lock.files.items():
            if not is_release_path(path):
                raise ReleaseError(f"{LOCK}: the path {path!r:.200} leads out of the release")
            if path.startswith(f"{IMAGES}/") or path in (ASSETS, REJECTS):
                pass
            elif path in changed:
                if _write_changed(plan, changed[path], path, out):
                    files[path] = _described(out / path)
            else:
                _link(release / path, out / path)
                files[path] = locked
            advance()
    write_whole(out / REJECTS, _rejects(plan, release))
    return files | {REJECTS: _described(out / REJECTS)}


def _write_changed(plan: _Plan, file: PublicFile, path: str, out: Path) -> bool:
    """Write a public file, or its items, without the dropped examples; return False if none is left."""
    if path.startswith(f"{DATA}/"):
        return _write_public(plan, file, out / path)
    return _write_items(plan, file, out)


def _write_public(plan: _Plan, file: PublicFile, target: Path) -> bool:
    """Write a public file without the dropped examples; return False if none is left."""
    kept, dataset = plan.kept[file.name], file.dataset
    if dataset is None:
        return False
    if not file.is_bundle:
        if kept.lines:
            write_whole(target, file.form.without(file.path, lambda record: str(record.get("id")) in kept.dropped))
        return kept.lines > 0
    is_whole, gone = dataset.builder.dataset in plan.gone.datasets, plan.gone.images
    lines = file.form.without(file.path, lambda record: is_whole or not gone.isdisjoint(dataset.prompt(record).images))
    write_whole(target, lines)
    for _, record in file.form.unbundle(target) if target.stat().st_size else ():
        kept.lines += 1
        kept.facts.shown.update(dataset.prompt(record).images)
    kept.gone = kept.read - kept.lines
    if not kept.lines:
        target.unlink()
    return kept.lines > 0


def _write_items(plan: _Plan, file: PublicFile, out: Path) -> bool:
    """Write the items of a file without those of dropped examples; return False if none is left."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    kept = plan.kept[file.name]
    if not kept.lines:
        return False
    dropped = pa.array([*map(as_utf8, kept.dropped)], pa.string())
    target = items_path(out, file.name)
    target.parent.mkdir(parents=True, exist_ok=True)
    with pq.ParquetFile(items_path(plan.opened.path, file.name)) as table:
        schema = table.schema_arrow
        with pq.ParquetWriter(target, schema) as writer:
            for batch in table.iter_batches(50_000):
                left = batch.filter(pc.invert(pc.is_in(batch["id"], value_set=dropped)))
                writer.write_table(pa.Table.from_batches([left], schema))
    return True


def _rejects(plan: _Plan, release: Path) -> Iterator[bytes]:
    """Yield the rejects of the release without quotes of what is taken out, then one for each dropped question at a
    length.
    """
    with (release / REJECTS).open("rb") as lines:
        yield from (without_quotes(line, plan.gone) for line in lines)
    for name, files in plan.datasets.items():
        for file in files:
            for id in () if file.is_bundle or file.name not in plan.kept else plan.kept[file.name].dropped:
                fault = Fault(REASON, "an example that may be shown", "one that was taken out", is_expected=True)
                yield to_json(Reject(name, id, file.length, fault).fields())


def _left(plan: _Plan, release: Path) -> Iterator[Asset]:
    """Yield the assets that examples of the new release show, and the sources of their datasets."""
    empty = {name for name, files in plan.datasets.items() if not any(plan.has_left(file) for file in files)}
    shown: dict[str, tuple[set[str], set[bytes]]] = {}
    for name, files in plan.datasets.items():
        known = [plan.kept[file.name].facts for file in files if file.name in plan.kept]
        if known:
            shown[name] = (set().union(*(each.shown for each in known)), set().union(*(each.texts for each in known)))
    for asset in read_assets(release):
        if asset.dataset in empty:
            continue
        images, texts = shown.get(asset.dataset, (None, None))
        is_image_left = asset.kind != "image" or images is None or asset.name in images
        is_text = asset.kind == "text" and texts is not None
        if is_image_left and (not is_text or text_key(asset.name, bytes.fromhex(asset.sha256)) in (texts or ())):
            yield asset


def _link_images(plan: _Plan, release: Path, out: Path, images: Iterable[str]) -> dict[str, LockedFile]:
    """Give the new release the images that it shows."""
    files = {}
    for name in sorted(images):
        path = f"{IMAGES}/{name}"
        _link(release / path, out / path)
        files[path] = plan.lock.files[path]
    return files


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


def _counts(plan: _Plan) -> dict[str, DatasetCounts]:
    """Return the counts of the new lock. Dropped questions count as rejected at their length."""
    found = dict(plan.lock.readable)
    for name, files in plan.datasets.items():
        counts = found.get(name)
        for file in files:
            kept = plan.kept.get(file.name)
            if counts is None or kept is None or file.is_bundle or file.dataset is None or not kept.dropped:
                continue
            length = format_length(file.length)
            cell = _cell(counts.cells[length], kept, file.dataset)
            counts = counts.model_copy(update={"cells": {**counts.cells, length: cell}})
        if counts:
            found[name] = counts
    return found


def _cell(cell: CellCounts, kept: Kept, dataset: ReadDataset) -> CellCounts:
    """Return the counts of a length. What cannot be known from the records stays as the build counted it, as far as it
    is possible for the examples that are left.
    """
    values: dict[str, object] = cell.model_dump(exclude_unset=True)
    values |= {"examples": kept.lines, "rejected": cell.rejected + len(kept.dropped)}
    values["ran_dry"] = min(cell.ran_dry, kept.lines)
    if not values["ran_dry"]:
        values.pop("missing_units", None)
    if balance := dataset.builder.spec.balance:
        values[f"by_{balance}"] = dict(sorted(kept.balanced.items()))
    return CellCounts.model_validate(values)


def _write_claims(plan: _Plan, release: Path, out: Path) -> None:
    """Copy the files of claims, without the lines of questions of which their dataset has no example any more. A file
    of which nothing is left is left out.
    """
    for path in files_below(release / DATA):
        if not path.name.endswith(CLAIMS):
            continue
        files = plan.datasets.get(path.name.removesuffix(CLAIMS), ())
        known = [plan.kept[file.name] for file in files if file.name in plan.kept]
        gone = {id for each in known for id in each.dropped} - {id for each in known for id in each.ids}
        lines = JSON_LINES.without(path, lambda record, gone=gone: str(record.get("id")) in gone)  # type: ignore[misc]
        target = out / path.relative_to(release)
        write_whole(target, lines)
        if not target.stat().st_size:
            target.unlink()


def _tombstone(
    plan: _Plan, withdrawal: Withdrawal, date: str, before: str, release: Path, left: Iterable[Asset]
) -> Tombstone:
    stay = {asset.key for asset in left}
    gone = [asset for asset in read_assets(release) if asset.key not in stay]
    return Tombstone(
        date=date,
        kind=withdrawal.kind,
        id=withdrawal.id,
        before=before,
        examples={f"{DATA}/{name}": kept.gone for name, kept in sorted(plan.kept.items()) if kept.gone},
        images=len({asset.name for asset in gone if asset.kind == "image"}),
        texts=sum(asset.kind == "text" for asset in gone),
        equal=len(plan.gone.equal),
    )


def _exclude(withdrawal: Withdrawal, gone: Withdrawn) -> str:
    """Return how a rebuild leaves out what was taken out."""
    if gone.excludable:
        return f"exclude: [{json.dumps(withdrawal.id, ensure_ascii=False)}]"
    what = {"document": "article or web page", "image": "picture", "source": "source"}[withdrawal.kind]
    return f"take the {what} out of the sources: `exclude` is for documents with pages"
