"""Makes a folder ready to publish from a release: tables, card, metadata, licences, citation, checksums.

The same release and the same choices give the same bytes: nothing depends on the clock. Nothing leaves the machine.
"""

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, count
from pathlib import Path

from mmlongbench.errors import ReleaseError
from mmlongbench.exports.export import appearing, checked_folder
from mmlongbench.exports.hf import UNOPENED
from mmlongbench.io.files import sha256_of, write_whole
from mmlongbench.io.progress import Progress
from mmlongbench.manifest.task_files import NO_TASK_FILES, TaskFiles
from mmlongbench.publishing.about import About
from mmlongbench.publishing.card import CARD, write_card
from mmlongbench.publishing.card_pictures import write_pictures
from mmlongbench.publishing.clearing import Cleared, clear
from mmlongbench.publishing.croissant import CROISSANT, NamedFile, write_croissant
from mmlongbench.publishing.earlier import Earlier
from mmlongbench.publishing.facts import LOCAL, Facts, read_audit, read_shortcuts
from mmlongbench.publishing.licence_files import write_citation, write_licences
from mmlongbench.publishing.practices import PRACTICES, State
from mmlongbench.publishing.rights import rights_of, stated_licences
from mmlongbench.publishing.tables import write_tables
from mmlongbench.release.assets import ASSETS, read_assets, write_assets
from mmlongbench.release.layout import CHECKSUMS, LOCK, TOMBSTONES
from mmlongbench.release.lock import Lock, canary_text, files_below
from mmlongbench.release.release import Release, open_release

MANIFEST = "manifest.resolved.yaml"
IMAGE_CONFIG = "images"
"""The configuration with the images, unless a dataset has this name (`_image_config`)."""
_MEDIA_TYPES = {
    ".parquet": "application/x-parquet",
    ".json": "application/json",
    ".jsonl": "application/jsonlines",
    ".jpg": "image/jpeg",
    ".md": "text/markdown",
    ".txt": "text/plain",
    ".yaml": "application/yaml",
    ".cff": "application/yaml",
}


@dataclass(frozen=True, slots=True)
class Publishing:
    """What a publisher says about a release, and what they allow."""

    about: About = field(default_factory=About)
    """What the publisher says."""
    repository: str = ""
    """The name on the Hub, such as `owner/name`; empty: not on the Hub."""
    shortcuts: Path | None = None
    """The output of `shortcuts --json`, for the card."""
    audit: Path | None = None
    """The output of `audit --json`, for the card."""
    allow_unknown_licence: bool = False
    """Publish images and texts of which no licence is known."""
    cleared: tuple[str, ...] = ()
    """A licence whose terms allow it, or whose owner agreed; there may be several."""
    after: Path | None = None
    """An earlier publication: its tables stay as they are where they can, so that an upload sends only what is new."""


@dataclass(frozen=True, slots=True)
class Published:
    """What was made."""

    out: Path
    """The folder."""
    examples: int
    """How many examples it has."""
    left_out: int
    """The examples that are not in it, because a licence forbids it."""
    images: int
    """How many images it has, each once."""
    image_bytes: int
    """The bytes of these images."""
    files: int
    """The number of files."""
    bytes: int
    """The size of all files."""
    missing: tuple[str, ...]
    """What nobody has said: keys of `--about`."""
    incomplete: tuple[str, ...]
    """The required keys that `croissant.json` lacks therefore."""
    practices: dict[State, int]
    """How many practices are met, not met, and not for a publication to meet."""
    notes: tuple[str, ...]
    """What a user must know about the tables of licences."""


def publish(
    release: Path, out: Path, how: Publishing, progress: Progress, tasks: TaskFiles = NO_TASK_FILES
) -> Published:
    """Make a folder ready to publish, which appears whole or not at all.

    Args:
        release: the folder of the release.
        out: the folder to make, which is new or empty.
        how: what the publisher says and allows.
        progress: shows the bar.
        tasks: the task files that the release was built with.

    Raises:
        ReleaseError: the release cannot be read, a licence is unknown, nothing may be published, a file of `how` is not
            of this release, or `out` cannot be used.

    """
    opened = open_release(release, tasks)
    if mark := next((mark for mark in UNOPENED if mark in str(out)), ""):
        raise ReleaseError(f"--out: datasets opens no folder with {mark!r} in its path; give another one")
    if opened.is_publication:
        raise ReleaseError(f"{release}: is a publication already; publish the release that it was made of")
    folder, lock = checked_folder(out, opened.path), opened.lock
    stated = stated_licences(lock)
    rights = rights_of(read_assets(release), stated, lock.licence_notes)
    cleared = clear(release, rights, allow_unknown=how.allow_unknown_licence, cleared=how.cleared, tasks=tasks)
    shortcuts = read_shortcuts(how.shortcuts, lock) if how.shortcuts else None
    audit = read_audit(how.audit, lock) if how.audit else None
    earlier = Earlier.open(how.after) if how.after else None
    with appearing(folder) as made:
        tables = write_tables(opened, made, cleared, progress, earlier)
        facts = Facts(
            name=how.repository or LOCAL,
            about=how.about if how.about.title else how.about.model_copy(update={"title": release.resolve().name}),
            lock=lock,
            lock_id=opened.lock_id,
            rights=rights,
            cleared=cleared,
            tables=tables,
            url=how.about.url or (f"https://huggingface.co/datasets/{how.repository}" if how.repository else ""),
            image_config=_image_config(opened),
            canary=lock.canary or (canary_text(dict(lock.manifest[0])) if lock.manifest else ""),
            shortcuts=shortcuts,
            audit=audit,
        )
        _copy(opened, made, cleared)
        write_licences(made, rights, stated)
        write_citation(made, facts)
        shown = write_pictures(opened, made, cleared)
        paths = (path for table in tables.examples for path in table.paths)
        write_card(made, facts, shown, {path: (made / path).stat().st_size for path in paths})
        incomplete = write_croissant(made, facts, list(_files(made)))
        files = _write_checksums(made)
    return _published(out, facts, files, incomplete)


def _image_config(release: Release) -> str:
    """Return the name of the configuration with the images, which no dataset has."""
    further = (f"image-table-{number}" for number in count(2))
    return next(name for name in chain((IMAGE_CONFIG, "image-table"), further) if name not in release.datasets)


def _copy(release: Release, out: Path, cleared: Cleared) -> None:
    """Copy the lock and the tombstones; write the manifest, and the table of assets without what is withheld."""
    import yaml

    shutil.copyfile(release.path / LOCK, out / LOCK)
    if (release.path / TOMBSTONES).is_file():
        shutil.copyfile(release.path / TOMBSTONES, out / TOMBSTONES)
    said = {"datasets": _plain(release.lock)}
    text = yaml.safe_dump(said, sort_keys=False, allow_unicode=True, width=120)
    write_whole(out / MANIFEST, [text.encode("utf-8", "backslashreplace")])
    write_assets(out / Path(ASSETS).name, filter(cleared.is_listed, read_assets(release.path)))


def _plain(lock: Lock) -> Sequence[object]:
    return [dict(data) for data in lock.manifest]


def _files(out: Path) -> Iterator[NamedFile]:
    """Yield the files so far; the metadata name all of them but the card, the pictures in it and themselves."""
    for path in sorted(files_below(out)):
        name = path.relative_to(out).as_posix()
        if name not in (CARD, CROISSANT, CHECKSUMS) and not name.startswith("pictures/"):
            kind = _MEDIA_TYPES.get(path.suffix, "application/octet-stream")
            yield NamedFile(name, path.stat().st_size, sha256_of(path), kind)


def _write_checksums(out: Path) -> int:
    """Write the SHA-256 of every file, and return how many files there are."""
    files = {path.relative_to(out).as_posix(): sha256_of(path) for path in files_below(out)}
    write_whole(out / CHECKSUMS, (f"{digest}  {name}\n".encode() for name, digest in sorted(files.items())))
    return len(files) + 1


def _published(out: Path, facts: Facts, files: int, incomplete: tuple[str, ...]) -> Published:
    states = [each.state_of(facts) for each in PRACTICES]
    tables = facts.tables
    return Published(
        out=out,
        examples=facts.examples,
        left_out=sum(tables.left_out.values()),
        images=len(tables.shown),
        image_bytes=sum(file.bytes for file in tables.images),
        files=files,
        bytes=sum(path.stat().st_size for path in files_below(out)),
        missing=tuple(facts.about.missing()),
        incomplete=incomplete,
        practices={state: states.count(state) for state in ("met", "not met", "not ours")},
        notes=facts.lock.licence_notes,
    )
