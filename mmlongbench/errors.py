"""What can go wrong, in words a user can act on. Knows nothing of how it is shown."""

import difflib
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from typing import Any


class MMLongBenchError(Exception):
    """The base of every error a user can mend; the command line prints it as one line."""


class ManifestError(MMLongBenchError):
    """A manifest, or an override of it, that cannot be used as it stands."""


class PluginError(MMLongBenchError):
    """A builder, reader or metric that is unknown, ambiguous or broken."""


class BuildError(MMLongBenchError):
    """A build that cannot start or go on: its folder, its shards, its rendering."""


class TimeLimitError(BuildError):
    """A page of a document that takes too long; the command ends, for no result may depend on a clock."""

    def __init__(self, what: str, todo: str = "leave the document out, or raise limits.seconds_a_page") -> None:
        super().__init__(what)
        self.what = what
        self.todo = todo

    def __str__(self) -> str:
        return f"{self.what}; {self.todo}"

    def in_scores(self) -> "TimeLimitError":
        """The same where predictions are scored, which no limit of a manifest bounds."""
        return TimeLimitError(self.what, "mend or remove the document, and run the same command again")


class ReaderDiedError(BuildError):
    """A document at which the process that reads it dies again and again."""


class SourceChangedError(BuildError):
    """A file of the sources that is no longer what was fingerprinted when the build was planned."""


class ScoringError(MMLongBenchError):
    """Predictions, a release or a metric that cannot be used as they stand."""


class ReleaseError(MMLongBenchError):
    """A release that cannot be read."""


class NotHereError(ReleaseError):
    """The examples of a release cannot be counted, since its tokenizer is not on this machine."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, with what was being done and how to go on."""


class StrictStop(MMLongBenchError):
    """The first reject of a build that was asked to be strict."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing wrong with the input: where it stands, what was expected there, what was found, what to do."""

    reason: str
    """A short slug to count by, such as `missing-document`."""
    expected: str
    found: str
    file: str = ""
    """The file's name or its path below the source's root; never an absolute path."""
    place: str = ""
    """Line, row or page inside the file."""
    field: str = ""
    todo: str = ""
    is_expected: bool = False
    """Whether nothing is wrong: the benchmark itself leaves such rows out. They are counted as skipped instead of
    rejected, and do not stop a strict build."""

    def __post_init__(self) -> None:
        """Make texts of what a plug-in gave as something else, such as the number that it found."""
        for each in fields(self):
            value = getattr(self, each.name)
            if each.name == "is_expected":
                object.__setattr__(self, each.name, bool(value))
            elif not isinstance(value, str):
                object.__setattr__(self, each.name, str(value))

    def __str__(self) -> str:
        where = ", ".join(part for part in (self.file, self.place, self.field) if part)
        todo = f"; {self.todo}" if self.todo else ""
        return f"{where + ': ' if where else ''}{self.reason}: expected {self.expected}, found {self.found}{todo}"

    def fields(self) -> dict[str, Any]:
        """The fault as plain values, for `rejects.jsonl`; `is_expected` only where it is true."""
        found = asdict(self)
        return found if self.is_expected else {key: value for key, value in found.items() if key != "is_expected"}


class SourceError(MMLongBenchError):
    """A source that cannot be read at all; it names file, place, field, expected and found."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault)
        self.fault = fault


class Rejected(MMLongBenchError):
    """One question that cannot become an example; the build goes on without it and says so."""

    def __init__(self, fault: Fault, noted: tuple[str, ...] = ()) -> None:
        """`noted` are phrases that the lock counts beside those of drafts (`Draft.noted`).

        Raises:
            TypeError: `fault` is no fault, or `noted` holds no phrases.

        """
        if not isinstance(fault, Fault):
            raise TypeError(f"Rejected takes a Fault, found {fault!r:.80}")
        super().__init__(fault)
        self.fault = fault
        self.noted = tuple(map(str, noted))


class DraftError(MMLongBenchError):
    """A builder that broke its contract, such as two units of one id."""


def nearest(word: str, words: Iterable[str]) -> str:
    """A hint for a mistyped word, or nothing.

    >>> nearest("lenghts", ["lengths", "seed"])
    "; did you mean 'lengths'?"
    """
    close = difflib.get_close_matches(word, list(words), 1)
    return f"; did you mean {close[0]!r}?" if close else ""
