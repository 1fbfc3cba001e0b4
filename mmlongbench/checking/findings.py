"""The results of checks, as values: what a rule found in a dataset, and the result of all rules."""

from dataclasses import dataclass
from traceback import format_exception
from typing import Literal, NamedTuple, TypeAlias

from mmlongbench.errors import error_text
from mmlongbench.manifest.binding import PluginCallError

Status: TypeAlias = Literal["holds", "fails", "skipped", "not run"]


class Failure(NamedTuple):
    """One case in which a rule does not hold; its values are those of the `Finding`."""

    detail: str
    method: str = ""
    row: str = ""
    length: int = 0
    place: str = ""
    """Empty: `check` looks it up."""
    traceback: str = ""


def failure_of(error: Exception, row: str = "", length: int = 0) -> Failure:
    """Return the failure that an error is."""
    seen = "".join(format_exception(error))
    if isinstance(error, PluginCallError):
        return Failure(error.fault, error.method, error.row or row, length, error.place, seen)
    return Failure(error_text(error), row=row, length=length, traceback=seen)


class Skipped(Exception):
    """A rule does not apply to a dataset, or cannot be checked; the message says why."""


@dataclass(frozen=True, slots=True)
class SecondLook:
    """What the second process found in a release."""

    rows: str = ""
    """A digest of all rows of the source, in their order; empty if they could not be read."""
    failures: tuple[Failure, ...] = ()
    """The first prompt that could not be rebuilt, and what the audit found."""
    build_error: str = ""
    """Why there is no second release; empty if there is one."""
    prompt: tuple[int, str] | None = None
    """The first prompt that differs from that of the first process: its place among all, and its text."""
    packed: tuple[str, int, str, str | None] | None = None
    """The first of `packed_texts` that differs: its key, and the text; None if it is not there."""


Outcome: TypeAlias = Failure | str
"""What a rule yields: a case in which it does not hold, or a note on a rule that holds. One that does not apply raises
`Skipped`."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one rule for one dataset."""

    rule: str
    """What the rule says, such as `ids are unique`."""
    dataset: str
    """The name of the dataset."""
    status: Status
    """Whether the rule holds or fails. It is `skipped` if it does not apply to the dataset, and `not run` if the small
    release could not be built as far as the rule needs it."""
    detail: str = ""
    """What was expected and found, in the first case that fails; or why the rule was skipped or not run. If the rule
    holds, a note, or empty."""
    method: str = ""
    """The method to blame, such as `draft()`; empty if it is not known."""
    row: str = ""
    """The id of the row in the first case that fails; empty if it is not about one row."""
    more: int = 0
    """In how many more cases the rule fails."""
    length: int = 0
    """The length in tokens in the first case that fails; 0 if it is not about one length."""
    place: str = ""
    """The file and the line of this row, such as `facts.jsonl, line 3`."""
    traceback: str = ""
    """The traceback, if the code of a plug-in raised an exception; `--debug` shows it."""


@dataclass(frozen=True, slots=True)
class CheckedDataset:
    """One dataset that was checked."""

    name: str
    """The name of the dataset."""
    code: tuple[str, ...]
    """The plug-ins whose code was run, such as `builder 'fables' (fables:Fables of mmlongbench-fables)`."""
    questions: int
    """The number of questions of the small release; 0 if it could not be built."""
    lengths: tuple[int, ...]
    """The lengths of the small release, in tokens."""
    example: tuple[tuple[str, str], ...] = ()
    """A question for people to read, since no rule can see that a plausible answer is wrong: its row, the question, the
    answer, and the gold units of its context by their labels or roles."""


@dataclass(frozen=True, slots=True)
class Checked:
    """The result of `check`."""

    datasets: tuple[CheckedDataset, ...]
    """The datasets, in the order of the manifest."""
    findings: tuple[Finding, ...]
    """One finding for each rule and dataset: dataset after dataset, in the order of the rules."""

    @property
    def failures(self) -> tuple[Finding, ...]:
        """The findings that fail; empty if all holds."""
        return tuple(found for found in self.findings if found.status == "fails")
