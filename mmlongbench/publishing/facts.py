"""What a card and its metadata say about a publication: the publisher's words, the release, its rights, audits."""

import datetime
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, TypeAlias, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from mmlongbench.errors import ReleaseError
from mmlongbench.io.files import read_regular
from mmlongbench.io.json_lines import json_lines
from mmlongbench.io.yaml_text import MAX_BYTES, load_yaml
from mmlongbench.lengths import format_length
from mmlongbench.manifest.strict_model import explain
from mmlongbench.publishing.rights import Cleared, Rights
from mmlongbench.publishing.tables import Table, Tables
from mmlongbench.release.file_audit import AuditLine
from mmlongbench.release.lock import CellCounts, Lock, also_counted_as, counted_as

if TYPE_CHECKING:
    from mmlongbench.shortcuts.findings import Finding

LOCAL = "DIR"
"""What stands for the path of the folder in the code of a card, if it is not published on the Hub."""
_SHORT_FILL = 0.9
"""A mean fill below this is named as a limitation."""
_Line = TypeVar("_Line", bound=BaseModel)
_Texts = Annotated[
    tuple[str, ...],
    BeforeValidator(
        lambda value: (value,) if isinstance(value, str) else tuple(value) if isinstance(value, list) else value
    ),
]
_Day = Annotated[
    str,
    BeforeValidator(lambda value: value.isoformat() if isinstance(value, datetime.date) else value),
    Field(pattern=r"^(\d{4}-\d\d-\d\d)?$"),
]


class About(BaseModel):
    """What a publisher says about a release, and nobody can read from it: the keys of the YAML file of `--about`.

    Every key may be left out; the card and the metadata show what is missing.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    title: str = ""  # empty: the name of the folder of the release
    description: str = ""
    authors: _Texts = ()  # persons or organisations
    contact: str = ""  # where to ask, report faults and request a takedown: an address or a page
    url: str = ""
    paper: str = ""
    code: str = ""  # the page of the code that scores predictions, if it is not this package
    version: Annotated[str, Field(pattern=r"^\d+\.\d+\.\d+$")] = "1.0.0"
    date: _Day = ""  # the day of the publication, such as 2026-11-25
    keywords: _Texts = ("long-context", "vision-language", "benchmark")
    languages: _Texts = ("en",)
    tasks: _Texts = ("visual-question-answering",)  # task categories of the Hub
    citation: str = ""  # BibTeX
    use_cases: _Texts = ()  # what it is for, and what it is not for
    limitations: _Texts = ()  # those that no audit finds
    biases: _Texts = ()  # which groups, languages or subjects are shown more or less than others
    sensitive: _Texts = ()  # personal or sensitive information in the sources
    social_impact: str = ""
    synthetic: bool | None = None  # whether sources contain data that a model made; None: not said
    baselines: _Texts = ()  # scores to compare with: people, chance, models

    def missing(self) -> Iterator[str]:
        """Yield the keys without which metadata of the publication are incomplete."""
        wanted = (
            "description",
            "authors",
            "contact",
            "url",
            "date",
            "citation",
            "biases",
            "sensitive",
            "social_impact",
        )
        yield from (key for key in (*wanted, "use_cases") if not getattr(self, key))
        if self.synthetic is None:
            yield "synthetic"


def read_about(path: Path) -> About:
    """Read what a publisher says; raises ReleaseError for an unreadable file, an unknown key or a wrong type."""
    try:
        data: Any = load_yaml(read_regular(path, MAX_BYTES), twice=False)
        return About.model_validate({} if data is None else data)
    except ValidationError as error:
        raise ReleaseError(explain(error, f"--about {path}", About, [])) from error
    except (OSError, ValueError) as error:
        raise ReleaseError(f"--about {path}: cannot be read: {error}") from error


def read_shortcuts(path: Path, lock: Lock) -> tuple["Finding", ...]:
    """Read what `mmlongbench shortcuts --json` printed about this release; other lines are a `ReleaseError`."""
    from mmlongbench.shortcuts.findings import Finding  # needs numpy, which `rights` does not

    findings = tuple(_lines(path, Finding, "--shortcuts", needs="verdict"))
    if strange := sorted({finding.dataset for finding in findings} - {str(data.get("name")) for data in lock.manifest}):
        raise ReleaseError(f"--shortcuts {path}: is about {strange[0]!r}, which the release does not have")
    return findings


def read_audit(path: Path, lock: Lock) -> tuple[AuditLine, ...]:
    """Read what `mmlongbench audit --json` printed about this release; other lines are a `ReleaseError`."""
    lines = tuple(_lines(path, AuditLine, "--audit"))
    names = {name.partition("/")[2] for name in lock.files} | {name.split("/")[0] for name in lock.files}
    if strange := [line.file for line in lines if line.file not in names and line.examples]:
        raise ReleaseError(f"--audit {path}: is about {strange[0]!r:.200}, which the release does not have")
    return lines


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


@dataclass(frozen=True, slots=True)
class Facts:
    """Everything that a card and the metadata are made of."""

    name: str
    """The name of the publication on the Hub, or `LOCAL`."""
    about: About
    lock: Lock
    lock_id: str
    rights: Rights
    cleared: Cleared
    tables: Tables
    url: str
    """Where it is published; empty if that is not known."""
    image_config: str
    """The name of the configuration with the images."""
    canary: str = ""
    shortcuts: "tuple[Finding, ...] | None" = None
    """None: no audit of shortcuts was given."""
    audit: tuple[AuditLine, ...] | None = None
    """None: no audit was given."""

    @property
    def title(self) -> str:
        """The title."""
        return self.about.title or self.name

    @property
    def datasets(self) -> dict[str, list[Table]]:
        """The tables of each dataset, in the order of the manifest, the shortest length first."""
        by_name: dict[str, list[Table]] = {}
        for table in self.tables.examples:
            by_name.setdefault(table.dataset, []).append(table)
        return by_name

    @property
    def examples(self) -> int:
        """The number of examples."""
        return sum(table.rows for table in self.tables.examples)

    @property
    def leaks(self) -> list["Finding"]:
        """The shortcuts that were found."""
        return [finding for finding in self.shortcuts or () if finding.verdict == "leak"]

    def counts(self, table: Table) -> CellCounts | None:
        """Return the counts that the lock has for a table."""
        known = self.lock.counts(table.dataset)
        return known.cells.get(format_length(table.length)) if known else None

    def limitations(self) -> Iterator[str]:
        """Yield the limitations in sentences: what the publisher says, then what counts, rights and audits say."""
        yield from self.about.limitations
        for name in self.datasets:
            known = self.lock.counts(name)
            if known is None:
                continue
            asked = known.questions
            for counts, which, what in (
                (asked.rejected, f" of {asked.read:,}", "rejected"),
                (asked.skipped, f" of {asked.read:,}", "left out as by the benchmark itself"),
                (asked.repaired, "", "repaired when read"),
            ):
                if counts:
                    yield f"{name}: {sum(counts.values()):,}{which} rows were {what} ({listed(counts)})."
            counter = next((data.get("counter") for data in self.lock.manifest if data.get("name") == name), None)
            if isinstance(counter, dict) and (counted := counted_as(counter)):
                yield f"{name}: tokens are counted as {counted}."
            further: Any = next((data.get("count_as") for data in self.lock.manifest if data.get("name") == name), None)
            if isinstance(further, dict) and further:
                yield f"{name}: `tokens.as` has the tokens as {also_counted_as(further)}."
            if asked.not_sampled:
                yield f"{name}: it is a sample; {asked.not_sampled:,} rows are not in it."
        for name, tables in self.datasets.items():
            if short := [f"{table.split} {table.mean_fill:.0%}" for table in tables if table.mean_fill < _SHORT_FILL]:
                yield f"{name}: prompts are shorter than their length; mean fill: {', '.join(short)}."
            for table in tables:
                counts_of_table = self.counts(table)
                if counts_of_table and counts_of_table.ran_dry:
                    yield (
                        f"{name} {table.split}: {counts_of_table.ran_dry:,} of {counts_of_table.examples:,} examples "
                        "show all context that their source gives."
                    )
                if counts_of_table and counts_of_table.rejected:
                    yield f"{name} {table.split}: {counts_of_table.rejected:,} questions do not fit this length."
        for (dataset, length), count in sorted(self.tables.left_out.items()):
            yield f"{dataset} {format_length(length)}: {count:,} examples are left out, because a licence forbids them."
        if self.rights.unknown:
            yield f"No licence is known of {self.rights.unknown:,} images and texts."
        yield from self._of_audits()

    def _of_audits(self) -> Iterator[str]:
        if self.shortcuts is None:
            yield "Whether answers can be told without looking was not audited (`mmlongbench shortcuts`)."
        for leak in self.leaks:
            found = f"{leak.found:.1%} {leak.measure}, {leak.chance:.1%} by chance"
            yield f"{leak.dataset}: a shortcut: {leak.kind}: {found}."
        if undecided := sum(finding.verdict == "undecided" for finding in self.shortcuts or ()):
            yield f"{undecided:,} probes for shortcuts had too few questions to decide."
        if self.audit is None:
            yield "The figures are those of the build; they were not counted again (`mmlongbench audit`)."
        for line in self.audit or ():
            for remark in line.remarks:
                for fault in remark.faults:
                    yield f"{line.file}: {fault.count:,} of {remark.examples:,} {remark.subject} {fault.fault}."
            for problem in line.problems:
                yield f"{line.file}: {problem.count:,}: {problem.problem} (first: {problem.first})."


def listed(counts: dict[str, int]) -> str:
    """Return counts by reason in words, the largest first.

    >>> listed({"a": 1, "b": 2})
    'b 2, a 1'
    """
    ordered = sorted(Counter(counts).items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{reason} {count:,}" for reason, count in ordered)


State: TypeAlias = Literal["met", "not met", "not ours"]


class Practice(NamedTuple):
    """A practice for benchmarks, and whether a publication meets it."""

    stage: str
    name: str
    state: State
    is_told: bool
    """Whether the state is told from the publication; otherwise it is the same for all."""
    by: str


def practices(facts: Facts) -> list[Practice]:
    """Return the practices of `templates/practices.yaml`, and which of them a publication meets."""
    audit, tables, rights = facts.audit, facts.tables.examples, facts.rights
    checks = {
        "shortcuts audited": facts.shortcuts is not None,
        "no shortcut": facts.shortcuts is not None and not facts.leaks,
        "fills": all(table.fills for table in tables),
        "canary": bool(facts.canary),
        "canary in records": bool(facts.lock.canary),
        "counted again": audit is not None and not any(line.problems for line in audit),
        "limitations": bool(facts.about.limitations) or audit is not None,
        "licences": not rights.without_licence,
        "origins": rights.with_origin == rights.images + rights.texts,
    }
    content = load_yaml((files("mmlongbench.publishing") / "templates/practices.yaml").read_bytes(), twice=False)
    found = []
    for part in content:
        for row in part["practices"]:
            state = row.get("state")
            if not state:
                is_met = checks[row["if"]] if "if" in row else all(getattr(facts.about, key) for key in row["about"])
                state = "met" if is_met else "not met"
            found.append(Practice(part["stage"], row["name"], state, "state" not in row, row["by"]))
    return found
