"""Decides which examples of a dataset a takedown drops, and what the others show."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from mmlongbench.publishing.withdrawn import Withdrawn
from mmlongbench.release.assets import KnownAssets, resolve
from mmlongbench.release.example_cost import placement_of
from mmlongbench.release.file_audit import Facts
from mmlongbench.release.items import Item, ItemReader
from mmlongbench.release.read_dataset import ReadDataset
from mmlongbench.release.release import PublicFile, Release
from mmlongbench.task.file_formats import to_json
from mmlongbench.task.rows import Record

TAKEN_OUT = "taken out"
"""What rejects have in place of what they quoted of something that is taken out."""
_QUOTING = ("expected", "found")
"""The fields of rejects that quote the sources."""


@dataclass(slots=True)
class Kept:
    """What is left of one public file."""

    dropped: dict[str, None] = field(default_factory=dict)
    """The ids of the questions whose examples are dropped, in the order of the file."""
    ids: set[str] = field(default_factory=set)
    """The ids of the questions whose examples stay."""
    read: int = 0
    """The examples of the file."""
    lines: int = 0
    """The examples that stay."""
    gone: int = 0
    """The examples that are dropped."""
    balanced: Counter[str] = field(default_factory=Counter)
    """How often each value of the field `TaskSpec.balance` is left."""
    facts: Facts = field(default_factory=Facts)
    """The images and the texts that the other examples show."""


def dropped_of(opened: Release, file: PublicFile, dataset: ReadDataset, gone: Withdrawn) -> Kept:
    """Return which questions of a file are dropped: those with an example that shows something of what is taken out, at
    any of its placements, and those about a document that is taken out.
    """
    found = Kept()
    for record, items in examples_of(opened, file, dataset):
        found.read += 1
        if shows(record, items, dataset, gone):
            found.dropped[str(record.get("id"))] = None
    return found


def add_kept(found: Kept, opened: Release, file: PublicFile, dataset: ReadDataset, known: KnownAssets) -> None:
    """Add up what the examples that stay show."""
    balance = dataset.builder.spec.balance
    for record, items in examples_of(opened, file, dataset):
        if str(record.get("id")) in found.dropped:
            found.gone += 1
            continue
        found.lines += 1
        found.ids.add(str(record.get("id")))
        prompt = dataset.prompt(record)
        found.facts.shown.update(prompt.images)
        for _ in resolve(items, prompt, known, found.facts):  # an audit reports what cannot be resolved
            pass
        if balance:
            found.balanced[str(record.get(balance))] += 1


def shows(record: Record, items: Sequence[Item], dataset: ReadDataset, gone: Withdrawn) -> bool:
    """Return whether an example shows, or is about, something that is taken out."""
    name = dataset.builder.dataset
    if name in gone.datasets or not gone.images.isdisjoint(dataset.prompt(record).images):
        return True
    if any(item["image"] is None and (name, item["unit"]) in gone.texts for item in items):
        return True
    evidence = dataset.builder.evidence(record) if gone.folders else None
    return evidence is not None and evidence.document in gone.folders


def examples_of(opened: Release, file: PublicFile, dataset: ReadDataset) -> Iterator[tuple[Record, Sequence[Item]]]:
    """Yield (record, items) of each example of a file; the second file of a task (`TaskSpec.bundle`) has no items."""
    items = None if file.is_bundle else ItemReader(opened.path, file.name, file.length)
    for _, record in file.form.unbundle(file.path):
        yield record, items.of(str(record.get("id")), placement_of(record)) if items else ()


def without_quotes(line: bytes, gone: Withdrawn) -> bytes:
    """Return a line of rejects without what it quotes of a source, or of a document that it names, that is taken out;
    any other line as it is.
    """
    try:
        said = json.loads(line)
    except ValueError:  # an audit reports it
        return line
    if not isinstance(said, dict):
        return line
    quotes = {key: value for key in _QUOTING if isinstance(value := said.get(key), str) and value}
    names = "|".join(re.escape(name) for name in gone.folders if name)
    names_it = bool(names) and any(re.search(rf"(?<!\w)({names})(?!\w)", value) for value in quotes.values())
    if said.get("dataset") not in gone.datasets and not names_it:
        return line
    return to_json({**said, **dict.fromkeys(quotes, TAKEN_OUT)})
