"""The audit: every example counted again, from its public record and the headers of its images alone.

It trusts nothing that assembled: not the items, not the prices. Memory does not grow with the number of examples.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from mmlongbench.binding import bind_builder
from mmlongbench.errors import ManifestError, MMLongBenchError, ReleaseError
from mmlongbench.files import sha256_of
from mmlongbench.manifest import DatasetSpec
from mmlongbench.progress import Progress
from mmlongbench.release.images import ImageSizes
from mmlongbench.release.layout import DATA, IMAGES, LOCK
from mmlongbench.release.lock import read_lock
from mmlongbench.task import Builder, Record
from tokenization import CrossModalCounter, TokenCount
from tokenization.text import LLAMA2


@dataclass(slots=True)
class Spread:
    """Mean, standard deviation, least and most of a stream of numbers."""

    n: int = 0
    total: float = 0.0
    squares: float = 0.0
    least: float = math.inf
    most: float = -math.inf

    def add(self, value: float) -> None:
        """Take one number in."""
        self.n += 1
        self.total += value
        self.squares += value * value
        self.least, self.most = min(self.least, value), max(self.most, value)

    @property
    def mean(self) -> float:
        """The mean; 0 of nothing."""
        return self.total / self.n if self.n else 0.0

    @property
    def deviation(self) -> float:
        """The standard deviation of the population."""
        return math.sqrt(max(0.0, self.squares / self.n - self.mean**2)) if self.n else 0.0

    def summary(self) -> dict[str, float]:
        """For a report."""
        if not self.n:
            return {"mean": 0.0, "sd": 0.0, "min": 0.0, "max": 0.0}
        return {"mean": self.mean, "sd": self.deviation, "min": self.least, "max": self.most}


@dataclass(slots=True)
class FileAudit:
    """What was counted in one file."""

    file: str
    length: int
    examples: int = 0
    fill: Spread = field(default_factory=Spread)
    text: Spread = field(default_factory=Spread)
    image: Spread = field(default_factory=Spread)
    images: Spread = field(default_factory=Spread)
    problems: Counter[str] = field(default_factory=Counter)
    """How often each kind of problem was found."""
    first: dict[str, str] = field(default_factory=dict)
    """Where each kind was found first, in words."""

    def problem(self, kind: str, where: str) -> None:
        """Note a problem."""
        self.problems[kind] += 1
        self.first.setdefault(kind, where)

    def summary(self) -> dict[str, Any]:
        """One JSON object."""
        spreads = {name: getattr(self, name).summary() for name in ("fill", "text", "image", "images")}
        problems = [{"problem": kind, "count": n, "first": self.first[kind]} for kind, n in self.problems.items()]
        return {
            "file": self.file,
            "length": self.length,
            "examples": self.examples,
            **spreads,
            "problems": problems,
        }


@dataclass(frozen=True, slots=True)
class AuditedDataset:
    """What an audit needs to know of a dataset, from the lock."""

    builder: Builder
    counter: CrossModalCounter
    reserve: int | None = None
    """What the build kept free, in tokens; None where that is not known."""


def audit_release(release: Path, progress: Progress, tokenizer: str | None = None) -> list[FileAudit]:
    """Audit every file of a release.

    Args:
        release: a folder with `mmlb_data/`, `mmlb_image/` and the lock.
        progress: where bars are shown.
        tokenizer: a path or hub id, where the release was counted with a tokenizer that is a file of the builder's.

    Raises:
        ReleaseError: it cannot be read, or another tokenizer is given than it was counted with.

    """
    lock = read_lock(release)
    datasets = [locked_dataset(data, tokenizer) for data in lock["manifest"]]
    if tokenizer and all(dataset.counter.text.name != tokenizer for dataset in datasets):
        raise ReleaseError(f"--tokenizer {tokenizer}: nothing in {release} was counted with it; leave it out")
    sizes = ImageSizes(release / IMAGES)
    audits = []
    expected = {
        path.removeprefix(f"{DATA}/"): data["sha256"] for path, data in lock["files"].items() if path.startswith(DATA)
    }
    paths = sorted(_data_files(release / DATA), key=_by_length)
    with progress.bar("audit", len(paths)) as advance:
        for path in paths:
            audits.append(_audit_file(release, path, datasets, sizes, expected.get(path)))
            advance()
    for path in sorted(expected.keys() - paths):
        audits.append(FileAudit(path, 0))
        audits[-1].problem("missing file", "the lock names it")
    return audits


def _by_length(path: str) -> list[tuple[int, str]]:
    """Names in the order of the numbers in them: K8 before K16."""
    return [(int(part), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", path)]


def _data_files(root: Path) -> Iterator[str]:
    return (path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())


def locked_dataset(data: Mapping[str, Any], tokenizer: str | None) -> AuditedDataset:
    """The builder of a dataset of the lock, and the counter it was counted with."""
    try:
        recorded = {key: str(data["counter"]["tokenizer"][key]) for key in ("name", "sha256")}
        name = tokenizer or recorded["name"]
        resolved = {key: value for key, value in data.items() if key != "source_sha256"}
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


def _audit_file(
    release: Path, path: str, datasets: list[AuditedDataset], sizes: ImageSizes, sha256: str | None
) -> FileAudit:
    for dataset in datasets:
        name = dataset.builder.spec.files.recognise(path)
        if name and name.name == dataset.builder.dataset:
            audit = FileAudit(path, name.length)
            if sha256 is None:
                audit.problem("file is not in the lock", "the whole file")
            elif sha256 != sha256_of(release / DATA / path):
                audit.problem("the bytes are not those of the lock", "the whole file")
            audit_records(audit, release / DATA / path, dataset, sizes)
            return audit
    audit = FileAudit(path, 0)
    audit.problem("no dataset of the lock has a file of this name", "the whole file")
    return audit


def audit_records(audit: FileAudit, path: Path, dataset: AuditedDataset, sizes: ImageSizes) -> None:
    """Count every example of one file again, into `audit`."""
    try:
        for where, record in dataset.builder.spec.format.unbundle(path):
            audit.examples += 1
            _audit_record(audit, f"{where}, {record.get('id')}", record, dataset, sizes)
    except (ReleaseError, OSError) as error:
        audit.problem("the file cannot be read", str(error))
    if not audit.examples:
        audit.problem("no examples", "the whole file")


def _audit_record(audit: FileAudit, where: str, record: Record, dataset: AuditedDataset, sizes: ImageSizes) -> None:
    try:
        prompt = dataset.builder.prompt(record)
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
    for kind, claimed, counted in _claims(record, count):
        if claimed != counted:
            audit.problem(f"{kind} differs from the recount", f"{where}: {claimed} against {counted}")


def _claims(record: Record, count: TokenCount) -> Iterator[tuple[str, Any, int]]:
    yield "length", record.get("length"), count.total
    yield "tokens.text", record["tokens"].get("text"), count.text
    yield "tokens.image", record["tokens"].get("image"), count.image
