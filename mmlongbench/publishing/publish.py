"""Makes a folder ready to publish from a release: tables, card, metadata, licences, citation, checksums. Uploads it.

The same release and the same choices give the same bytes: nothing depends on the clock. Nothing leaves the machine but
by `upload`.
"""

import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from mmlongbench.errors import ReleaseError
from mmlongbench.exports.export import appearing, checked_folder
from mmlongbench.exports.hf import UNOPENED
from mmlongbench.io.files import Links, file_inside, sha256_of, write_whole
from mmlongbench.io.printable import without_secrets
from mmlongbench.io.progress import Progress
from mmlongbench.manifest.task_files import NO_TASK_FILES, TaskFiles
from mmlongbench.publishing.card import CARD, PICTURES, write_card, write_pictures
from mmlongbench.publishing.facts import LOCAL, About, Facts, State, practices, read_audit, read_shortcuts
from mmlongbench.publishing.metadata import CROISSANT, NamedFile, write_citation, write_croissant, write_licences
from mmlongbench.publishing.rights import Cleared, clear, rights_of, stated_licences
from mmlongbench.publishing.tables import write_tables
from mmlongbench.release.assets import ASSETS, read_assets, write_assets
from mmlongbench.release.layout import CHECKSUMS, LOCK, PUBLISHED_EXAMPLES, TOKENIZERS, TOMBSTONES
from mmlongbench.release.lock import canary_text, files_below, problem_of
from mmlongbench.release.published_folder import unlike_checksums
from mmlongbench.release.release import Release, open_release

MANIFEST = "manifest.resolved.yaml"
IMAGE_CONFIGS = ("images", "image-table")
"""The names of the configuration with the images, the first that no dataset has."""
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
_REPOSITORY = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}", re.ASCII)


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
    examples: int
    left_out: int
    """The examples that are not in it, because a licence forbids it."""
    images: int
    """How many images it has, each once."""
    image_bytes: int
    files: int
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
    if how.after and next((how.after / PUBLISHED_EXAMPLES).glob("*/*.parquet"), None) is None:
        raise ReleaseError(
            f"--after: {how.after}: has no tables in {PUBLISHED_EXAMPLES}/; give a folder that publish made"
        )
    names = (*IMAGE_CONFIGS, *(f"{IMAGE_CONFIGS[-1]}-{number}" for number in range(2, len(opened.datasets) + 2)))
    with appearing(folder) as made:
        tables = write_tables(opened, made, cleared, progress, how.after)
        facts = Facts(
            name=how.repository or LOCAL,
            about=how.about if how.about.title else how.about.model_copy(update={"title": release.resolve().name}),
            lock=lock,
            lock_id=opened.lock_id,
            rights=rights,
            cleared=cleared,
            tables=tables,
            url=how.about.url or (f"https://huggingface.co/datasets/{how.repository}" if how.repository else ""),
            image_config=next(name for name in names if name not in opened.datasets),
            canary=lock.canary or (canary_text(dict(lock.manifest[0])) if lock.manifest else ""),
            shortcuts=shortcuts,
            audit=audit,
        )
        _copy(opened, made, cleared)
        write_licences(made, rights, stated)
        write_citation(made, facts)
        shown, states = write_pictures(opened, made, cleared), practices(facts)
        paths = (path for table in tables.examples for path in table.paths)
        write_card(made, facts, states, shown, {path: (made / path).stat().st_size for path in paths})
        incomplete = write_croissant(made, facts, list(_files(made)))
        files = {path.relative_to(made).as_posix(): sha256_of(path) for path in files_below(made)}
        write_whole(made / CHECKSUMS, (f"{digest}  {name}\n".encode() for name, digest in sorted(files.items())))
    return Published(
        out=out,
        examples=facts.examples,
        left_out=sum(tables.left_out.values()),
        images=len(tables.shown),
        image_bytes=tables.image_bytes,
        files=len(files) + 1,
        bytes=sum(path.stat().st_size for path in files_below(out)),
        missing=tuple(facts.about.missing()),
        incomplete=incomplete,
        practices={state: sum(each.state == state for each in states) for state in ("met", "not met", "not ours")},
        notes=lock.licence_notes,
    )


def _copy(release: Release, out: Path, cleared: Cleared) -> None:
    """Copy the lock, the tombstones and the files that count; write the manifest, and the table of assets without what
    is withheld.
    """
    import yaml

    shutil.copyfile(release.path / LOCK, out / LOCK)
    if stones := file_inside(release.path, TOMBSTONES):
        shutil.copyfile(stones, out / TOMBSTONES)
    links = Links(release.path)
    for path, file in release.lock.files.items():
        if path.startswith(f"{TOKENIZERS}/"):  # so that the publication can be counted anywhere
            if problem := problem_of(links, path, file):  # a link might lead to a file that is not of the release
                raise ReleaseError(f"{release.path}: {path}: {problem}; see `mmlongbench verify`")
            (out / TOKENIZERS).mkdir(exist_ok=True)
            shutil.copyfile(release.path / path, out / path)
    manifest = {"datasets": [dict(data) for data in release.lock.manifest]}
    text = yaml.safe_dump(manifest, sort_keys=False, allow_unicode=True, width=120)
    write_whole(out / MANIFEST, [text.encode("utf-8", "backslashreplace")])
    write_assets(out / Path(ASSETS).name, filter(cleared.is_listed, read_assets(release.path)))


def _files(out: Path) -> Iterator[NamedFile]:
    """Yield the files so far; the metadata name all of them but the card, the pictures in it and themselves."""
    for path in sorted(files_below(out)):
        name = path.relative_to(out).as_posix()
        if name not in (CARD, CROISSANT, CHECKSUMS) and not name.startswith(f"{PICTURES}/"):
            kind = _MEDIA_TYPES.get(path.suffix, "application/octet-stream")
            yield NamedFile(name, path.stat().st_size, sha256_of(path), kind)


@dataclass(frozen=True, slots=True)
class Uploaded:
    """What was uploaded."""

    repository: str
    """The dataset on the Hub, as `owner/name`."""
    commit: str
    url: str
    """The page of the commit."""


def repository_of(to: str) -> str:
    """Return the name of a dataset on the Hub.

    Raises:
        ReleaseError: `to` does not name one.

    >>> repository_of("hub:owner/name")
    'owner/name'

    """
    kind, _, name = to.partition(":")
    if kind != "hub" or not _REPOSITORY.fullmatch(name):
        raise ReleaseError(f"--to {to!r:.200}: expected hub:owner/name")
    return name


def upload(folder: Path, repository: str, *, is_public: bool = False) -> Uploaded:
    """Upload a published folder, and remove files of the dataset that the folder does not have.

    Files that the dataset already has are not sent again. A dataset that does not exist is made; only then `is_public`
    has an effect. The login is that of the Hub's own client.

    Raises:
        ReleaseError: the folder has changed since it was made, or the Hub refuses it.

    """
    if found := next(unlike_checksums(folder), None):
        raise ReleaseError(f"{folder}: {found[0]}: {found[1]}; publish the release again")
    from huggingface_hub import HfApi
    from huggingface_hub.utils.tqdm import disable_progress_bars

    disable_progress_bars()
    api = HfApi(endpoint=os.environ.get("HF_ENDPOINT"))
    try:
        api.create_repo(repository, repo_type="dataset", private=not is_public, exist_ok=True)
        done = api.upload_folder(
            repo_id=repository,
            repo_type="dataset",
            folder_path=folder,
            commit_message="Publish a release",
            delete_patterns="*",
        )
    except Exception as error:  # the errors of the hub's client have no common base
        what = without_secrets(f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}")
        raise ReleaseError(
            f"hub:{repository}: cannot be uploaded: {what}; check the name, the login (`hf auth login`) and the "
            "network; the same command continues"
        ) from error
    return Uploaded(repository, done.oid, done.commit_url)
