"""What a card and its metadata say about a publication, gathered once: the release, its rights, its tables, audits."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from mmlongbench.errors import ReleaseError
from mmlongbench.io.json_lines import json_lines
from mmlongbench.lengths import format_length
from mmlongbench.manifest.strict_model import explain
from mmlongbench.publishing.about import About
from mmlongbench.publishing.clearing import Cleared
from mmlongbench.publishing.rights import Rights
from mmlongbench.publishing.tables import Table, Tables
from mmlongbench.release.file_audit import AuditLine
from mmlongbench.release.lock import CellCounts, Lock
from mmlongbench.shortcuts.findings import Finding

_Line = TypeVar("_Line", bound=BaseModel)
LOCAL = "DIR"
"""What stands for the path of the folder in the code of a card, if it is not published on the Hub."""
SHORT = 0.9
"""A mean fill below this is named as a limitation."""


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything that a card is made of."""

    name: str
    """The name of the publication on the Hub, or `LOCAL`."""
    about: About
    """What the publisher says."""
    lock: Lock
    """What the release is made of."""
    lock_id: str
    """The first digits of the SHA-256 of the lock."""
    rights: Rights
    """The rights in the release."""
    cleared: Cleared
    """What of it may be published."""
    tables: Tables
    """The tables that were written."""
    url: str
    """Where it is published; empty if that is not known."""
    image_config: str
    """The name of the configuration with the images."""
    canary: str = ""
    """The canary of the release."""
    shortcuts: tuple[Finding, ...] | None = None
    """What `mmlongbench shortcuts --json` printed; None if it was not given."""
    audit: tuple[AuditLine, ...] | None = None
    """What `mmlongbench audit --json` printed; None if it was not given."""

    @property
    def title(self) -> str:
        """The title."""
        return self.about.title or self.name

    @property
    def datasets(self) -> dict[str, list[Table]]:
        """The tables of each dataset, in the order of the manifest, the shortest length first."""
        found: dict[str, list[Table]] = {}
        for table in self.tables.examples:
            found.setdefault(table.dataset, []).append(table)
        return found

    @property
    def examples(self) -> int:
        """The number of examples."""
        return sum(table.rows for table in self.tables.examples)

    @property
    def leaks(self) -> list[Finding]:
        """The shortcuts that were found."""
        return [each for each in self.shortcuts or () if each.verdict == "leak"]

    def counts(self, table: Table) -> CellCounts | None:
        """Return the counts that the lock has for a table."""
        known = self.lock.counts(table.dataset)
        return known.cells.get(format_length(table.length)) if known else None


def read_shortcuts(path: Path, lock: Lock) -> tuple[Finding, ...]:
    """Read what `mmlongbench shortcuts --json` printed.

    Raises:
        ReleaseError: a line is not of it, or is about a dataset that the release does not have.

    """
    found = tuple(_lines(path, Finding, "--shortcuts", "verdict"))
    if strange := sorted({each.dataset for each in found} - {str(data.get("name")) for data in lock.manifest}):
        raise ReleaseError(f"--shortcuts {path}: is about {strange[0]!r}, which the release does not have")
    return found


def read_audit(path: Path, lock: Lock) -> tuple[AuditLine, ...]:
    """Read what `mmlongbench audit --json` printed.

    Raises:
        ReleaseError: a line is not of it, or is about a file that the release does not have.

    """
    found = tuple(_lines(path, AuditLine, "--audit"))
    names = {name.partition("/")[2] for name in lock.files} | {name.split("/")[0] for name in lock.files}
    if strange := [each.file for each in found if each.file not in names and each.examples]:
        raise ReleaseError(f"--audit {path}: is about {strange[0]!r:.200}, which the release does not have")
    return found


def _lines(path: Path, model: type[_Line], option: str, needs: str = "") -> Iterator[_Line]:
    """Yield the lines of a file; those of another kind, which lack the key `needs`, are skipped."""
    for line in json_lines(path):
        where = f"{option} {path}, line {line.number}"
        if not isinstance(line.value, dict):
            raise ReleaseError(f"{where}: expected a JSON object; give the output of the command with --json")
        if needs and needs not in line.value:
            continue
        try:
            yield model.model_validate_json(json.dumps(line.value))
        except ValidationError as error:
            raise ReleaseError(explain(error, where, model, [])) from error


def limitations(facts: Facts) -> Iterator[str]:
    """Yield the limitations of a publication in sentences: what its publisher says, then what counts and audits say."""
    yield from facts.about.limitations
    yield from _of_questions(facts)
    for name, tables in facts.datasets.items():
        yield from _of_tables(facts, name, tables)
    yield from _of_rights(facts)
    yield from _of_audits(facts)


def _of_questions(facts: Facts) -> Iterator[str]:
    for name in facts.datasets:
        known = facts.lock.counts(name)
        if known is None:
            continue
        asked = known.questions
        for what, counts in (("rejected", asked.rejected), ("left out as by the benchmark itself", asked.skipped)):
            if counts:
                yield f"{name}: {sum(counts.values()):,} of {asked.read:,} rows were {what} ({listed(counts)})."
        if asked.repaired:
            yield f"{name}: {sum(asked.repaired.values()):,} rows were repaired when read ({listed(asked.repaired)})."
        if asked.not_sampled:
            yield f"{name}: it is a sample; {asked.not_sampled:,} rows are not in it."


def _of_tables(facts: Facts, name: str, tables: Sequence[Table]) -> Iterator[str]:
    """Yield what is short at single lengths."""
    short = [f"{table.split} {mean(table):.0%}" for table in tables if mean(table) < SHORT]
    if short:
        yield f"{name}: prompts are shorter than their length; mean fill: {', '.join(short)}."
    for table in tables:
        counts = facts.counts(table)
        if counts and counts.ran_dry:
            yield (
                f"{name} {table.split}: {counts.ran_dry:,} of {counts.examples:,} examples show all context that their "
                "source gives."
            )
        if counts and counts.rejected:
            yield f"{name} {table.split}: {counts.rejected:,} questions do not fit this length."


def _of_rights(facts: Facts) -> Iterator[str]:
    for (dataset, length), count in sorted(facts.tables.left_out.items()):
        yield f"{dataset} {format_length(length)}: {count:,} examples are left out, because a licence forbids them."
    if facts.rights.unknown:
        yield f"No licence is known of {facts.rights.unknown:,} images and texts."


def _of_audits(facts: Facts) -> Iterator[str]:
    if facts.shortcuts is None:
        yield "Whether answers can be told without looking was not audited (`mmlongbench shortcuts`)."
    for each in facts.leaks:
        yield f"{each.dataset}: a shortcut: {each.kind}: {each.found:.1%} {each.measure}, {each.chance:.1%} by chance."
    undecided = [each for each in facts.shortcuts or () if each.verdict == "undecided"]
    if undecided:
        yield f"{len(undecided):,} probes for shortcuts had too few questions to decide."
    if facts.audit is None:
        yield "The figures are those of the build; they were not counted again (`mmlongbench audit`)."
    for line in facts.audit or ():
        for remark in line.remarks:
            for fault in remark.faults:
                yield f"{line.file}: {fault.count:,} of {remark.examples:,} {remark.subject} {fault.fault}."
        for problem in line.problems:
            yield f"{line.file}: {problem.count:,}: {problem.problem} (first: {problem.first})."


def mean(table: Table) -> float:
    """Return the mean fill of a table."""
    return sum(table.fills) / len(table.fills) if table.fills else 0.0


def listed(counts: dict[str, int]) -> str:
    """Return counts by reason in words, the largest first.

    >>> listed({"a": 1, "b": 2})
    'b 2, a 1'
    """
    ordered = sorted(Counter(counts).items(), key=lambda found: (-found[1], found[0]))
    return ", ".join(f"{reason} {count:,}" for reason, count in ordered)
