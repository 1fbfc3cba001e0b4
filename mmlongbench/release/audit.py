"""The audit: every example counted again, from its public record and the headers of its images alone.

It trusts nothing that assembled: not the items, not the prices. Memory does not grow with the number of examples.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from mmlongbench.binding import bind_builder
from mmlongbench.errors import ManifestError, MMLongBenchError, ReleaseError
from mmlongbench.files import sha256_of
from mmlongbench.formats import FileFormat, FileName
from mmlongbench.manifest import DatasetSpec
from mmlongbench.processes import each_done
from mmlongbench.progress import Advance, Progress
from mmlongbench.prompt import Prompt
from mmlongbench.release.findings import FileAudit
from mmlongbench.release.images import ImageSizes
from mmlongbench.release.inventory import audit_others, files_below
from mmlongbench.release.layout import DATA, IMAGES, LOCK
from mmlongbench.release.lock import read_lock
from mmlongbench.task import Builder, Record
from tokenization import CrossModalCounter, TokenCount
from tokenization.text import LLAMA2


@dataclass(frozen=True, slots=True)
class AuditedDataset:
    """What an audit needs to know of a dataset, from the lock."""

    builder: Builder
    counter: CrossModalCounter
    reserve: int | None = None
    """What the build kept free, in tokens; None where that is not known."""
    variant: str = ""
    """Another rendering of the records, that is counted in place of the released one."""

    def prompt(self, record: Record) -> Prompt:
        """The prompt of a record, or the variant of it."""
        return self.builder.prompt(record, self.variant) if self.variant else self.builder.prompt(record)  # type: ignore[call-arg]


def audit_release(
    release: Path, progress: Progress, tokenizer: str | None = None, workers: int = 1, variant: str = ""
) -> list[FileAudit]:
    """Audit every file of a release.

    Args:
        release: a folder with `mmlb_data/`, `mmlb_image/` and the lock.
        progress: where bars are shown.
        tokenizer: a path or hub id, where the release was counted with a tokenizer that is a file of the builder's.
        workers: processes; what is found does not depend on it.
        variant: a rendering that builders offer beside the released one, such as `oracle`; its counts are compared
            with the length, not with what the build recorded.

    Raises:
        ReleaseError: it cannot be read, or another tokenizer is given than it was counted with.

    """
    opened = _opened(release, tokenizer, variant)
    if tokenizer and all(dataset.counter.text.name != tokenizer for dataset in opened.datasets):
        raise ReleaseError(f"--tokenizer {tokenizer}: nothing in {release} was counted with it; leave it out")
    root = release / DATA
    there = {path.relative_to(root).as_posix(): path.stat().st_size for path in files_below(root)}
    paths = sorted(there, key=_by_length)
    with progress.meter("audit: examples", _examples(opened.lock)) as advance:
        if workers == 1 or len(paths) < 2:
            found = {path: _audit_file(opened, path, advance) for path in paths}
        else:
            found = _audit_files(
                (release, tokenizer, variant), sorted(paths, key=lambda path: -there[path]), workers, advance
            )
    audits = [found[path] for path in paths]
    for path in sorted(opened.data.keys() - there.keys(), key=_by_length):
        audits.append(FileAudit(path, 0))
        audits[-1].problem("missing file", "the lock names it")
    return audits + audit_others(release, opened.lock, progress)


@dataclass(frozen=True, slots=True)
class _Opened:
    """A release whose lock was read."""

    release: Path
    lock: dict[str, Any]
    datasets: list[AuditedDataset]
    sizes: ImageSizes

    @property
    def data(self) -> dict[str, str]:
        """SHA-256 of the public files, by path below `mmlb_data/`."""
        files = self.lock["files"].items()
        return {path.removeprefix(f"{DATA}/"): file["sha256"] for path, file in files if path.startswith(f"{DATA}/")}


def _opened(release: Path, tokenizer: str | None, variant: str) -> _Opened:
    lock = read_lock(release)
    datasets = [locked_dataset(data, tokenizer) for data in lock["manifest"]]
    if variant:
        offered = {id(d): getattr(d.builder, "variants", ()) for d in datasets}
        if not any(variant in names for names in offered.values()):
            names = sorted({name for found in offered.values() for name in found})
            raise ReleaseError(
                f"--variant {variant}: no builder of this release offers it; offered: {', '.join(names)}"
            )
        datasets = [replace(d, variant=variant) if variant in offered[id(d)] else d for d in datasets]
    return _Opened(release, lock, datasets, ImageSizes(release / IMAGES))


_opened_here = cache(_opened)
"""For a worker, which lives as long as one audit."""


def _audit_files(
    opening: tuple[Path, str | None, str], paths: list[str], workers: int, advance: Advance
) -> dict[str, FileAudit]:
    """The files in other processes, each in one; those that come first begin first."""
    found = {}
    calls = [(*opening, path) for path in paths]
    with closing(each_done(workers, _audit_here, calls, paths)) as ended:
        for place, audit in ended:
            found[paths[place]] = audit
            advance(audit.examples)
    return found


def _audit_here(release: Path, tokenizer: str | None, variant: str, path: str) -> FileAudit:
    return _audit_file(_opened_here(release, tokenizer, variant), path)


def _examples(lock: Mapping[str, Any]) -> int:
    """How many examples there should be, for a bar."""
    try:
        return sum(int(cell["examples"]) for data in lock["datasets"].values() for cell in data["cells"].values())
    except (KeyError, TypeError, ValueError, AttributeError):
        return 0


def _by_length(path: str) -> list[tuple[int, str]]:
    """Names in the order of the numbers in them: K8 before K16."""
    return [(int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", path)]


def locked_dataset(data: Mapping[str, Any], tokenizer: str | None) -> AuditedDataset:
    """The builder of a dataset of the lock, and the counter it was counted with."""
    try:
        recorded = {key: str(data["counter"]["tokenizer"][key]) for key in ("name", "sha256")}
        name = tokenizer or recorded["name"]
        resolved = {key: value for key, value in data.items() if not key.endswith("_sha256")}
        counted = {**data["counter"], "tokenizer": name}
        spec = DatasetSpec.model_validate({**resolved, "source": "sample", "counter": counted})
    except (KeyError, TypeError, ValidationError) as error:
        raise ReleaseError(f"{LOCK}: manifest: cannot be read: {' '.join(str(error).split())}") from error
    try:
        counter = spec.counter.open()
    except ManifestError as error:
        raise ReleaseError(f"{error}; --tokenizer gives the one this release was counted with") from error
    if counter.text.sha256 != recorded["sha256"]:
        if tokenizer and recorded["name"] == LLAMA2:  # the one that is given is another dataset's
            return locked_dataset(data, None)
        raise ReleaseError(
            f"tokenizer {counter.text.name!r} has sha256 {counter.text.sha256[:12]}…, the release was counted with "
            f"{recorded['name']!r}, {recorded['sha256'][:12]}…; --tokenizer gives it"
        )
    builder = bind_builder(spec)
    return AuditedDataset(builder, counter, builder.spec.reserve if spec.reserve is None else spec.reserve)


def _audit_file(opened: _Opened, path: str, advance: Advance | None = None) -> FileAudit:
    file, sha256 = opened.release / DATA / path, opened.data.get(path)
    for dataset in opened.datasets:
        name, form = _recognised(dataset.builder, path)
        if name and name.name == dataset.builder.dataset:
            audit = FileAudit(path, name.length)
            if sha256 is None:
                audit.problem("file is not in the lock", "the whole file")
            elif sha256 != sha256_of(file):
                audit.problem("the bytes are not those of the lock", "the whole file")
            audit_records(audit, file, dataset, opened.sizes, advance, form)
            return audit
    audit = FileAudit(path, 0)
    audit.problem("no dataset of the lock has a file of this name", "the whole file")
    return audit


def _recognised(builder: Builder, path: str) -> tuple[FileName | None, FileFormat]:
    """What a file's name says, and its format, that of the records or of their bundle."""
    spec = builder.spec
    if spec.bundle and (name := spec.bundle.files.recognise(path)):
        return name, spec.bundle.format
    return spec.files.recognise(path), spec.format


def audit_records(
    audit: FileAudit,
    path: Path,
    dataset: AuditedDataset,
    sizes: ImageSizes,
    advance: Advance | None = None,
    form: FileFormat | None = None,
) -> None:
    """Count every example of one file again, into `audit`; its format is that of the records by default."""
    try:
        for where, record in (form or dataset.builder.spec.format).unbundle(path):
            audit.examples += 1
            _audit_record(audit, f"{where}, {record.get('id')}", record, dataset, sizes)
            if advance:
                advance(1)
    except (ReleaseError, OSError) as error:
        audit.problem("the file cannot be read", str(error))
    if not audit.examples:
        audit.problem("no examples", "the whole file")


def _audit_record(audit: FileAudit, where: str, record: Record, dataset: AuditedDataset, sizes: ImageSizes) -> None:
    try:
        prompt = dataset.prompt(record)
        count = dataset.counter.count(prompt.text, [sizes[path] for path in prompt.images])
        reserve = int(record["tokens"]["reserve"])
    except KeyError as error:
        audit.problem(f"the field {error} is missing", where)
        return
    except (MMLongBenchError, TypeError, ValueError, IndexError, AttributeError) as error:
        audit.problem("the prompt cannot be rebuilt and counted", f"{where}: {error}")
        return
    audit.fill.add((count.total + reserve) / audit.length)
    audit.text.add(count.text)
    audit.image.add(count.image)
    audit.images.add(len(prompt.images))
    if count.total + reserve > audit.length:
        audit.problem("over its length", f"{where}: {count.total} + {reserve} > {audit.length}")
    if dataset.reserve not in (None, reserve):
        audit.problem("tokens.reserve differs from the lock", f"{where}: {reserve} against {dataset.reserve}")
    for kind, claimed, counted in () if dataset.variant else _claims(record, count):
        if claimed != counted:
            audit.problem(f"{kind} differs from the recount", f"{where}: {claimed} against {counted}")


def _claims(record: Record, count: TokenCount) -> Iterator[tuple[str, Any, int]]:
    yield "length", record.get("length"), count.total
    yield "tokens.text", record["tokens"].get("text"), count.text
    yield "tokens.image", record["tokens"].get("image"), count.image
