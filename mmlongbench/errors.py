"""The errors of the project, in words that a user can act on. Nothing here knows how they are shown."""

import difflib
import unicodedata
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields, replace


class MMLongBenchError(Exception):
    """The base of every error that a user can fix; the command line prints it as one line."""


class ManifestError(MMLongBenchError):
    """A manifest, or an override of it, cannot be used as it is."""


class PluginError(MMLongBenchError):
    """A builder, reader or metric is unknown, ambiguous or broken."""


class BuildError(MMLongBenchError):
    """A build cannot start or continue, because of its folder, its shards or a page that cannot be rendered."""


class ReaderDiedError(BuildError):
    """The process that reads a document died twice at it, or `tesseract` failed at a page or took too long."""


class SourceChangedError(BuildError):
    """A file of the sources has changed since the build took the fingerprint of the file."""


class FetchError(MMLongBenchError):
    """A file of the sources cannot be downloaded, or is not the one that is expected."""


class DiskFullError(FetchError):
    """There is no room for a file that is downloaded."""


class ScoringError(MMLongBenchError):
    """Predictions, a release or a metric cannot be used as they are."""


class ReleaseError(MMLongBenchError):
    """A release cannot be read."""


class NotHereError(ReleaseError):
    """The examples of a release cannot be counted, because its tokenizer is not on this machine."""


class Interrupted(KeyboardInterrupt):
    """The user pressed Ctrl-C; the message says what was being done and how to continue."""


class StrictStop(MMLongBenchError):
    """A strict build met its first reject."""


class TooFewKept(MMLongBenchError):
    """A dataset kept a smaller share of its questions than the build demands."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong with the input: where it is, what was expected, what was found, and what to do."""

    reason: str
    """A short slug by which faults are counted, such as `missing-document`."""
    expected: str
    """What was expected there."""
    found: str
    """What was found there."""
    file: str = ""
    """The file's name, or its path below the source's root; never an absolute path."""
    place: str = ""
    """The line, row or page inside the file."""
    field: str = ""
    """The field of the row; empty if the fault is about the whole row."""
    todo: str = ""
    """What a user can do about it."""
    is_expected: bool = False
    """Whether this fault is no error, because the benchmark itself leaves such rows out. Such rows are counted as
    skipped instead of rejected, and do not stop a strict build."""

    def __post_init__(self) -> None:
        """Turn values of other types into text, such as a number that a plug-in gave as `found`."""
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

    def fields(self) -> dict[str, object]:
        """Return the fault as plain values for `rejects.jsonl`; `is_expected` is there only if it is true."""
        values = asdict(self)
        return values if self.is_expected else {key: value for key, value in values.items() if key != "is_expected"}


class SourceError(MMLongBenchError):
    """A source cannot be read at all; the error names file, place, field, expected and found."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault)
        self.fault = fault
        """What is wrong with the source, and where."""


class PageLimitError(SourceError):
    """A page takes more time or memory than a page may take. Both may differ a little between machines."""

    def in_scores(self) -> "PageLimitError":
        """Return this error with advice for scoring, where no manifest sets limits."""
        return PageLimitError(replace(self.fault, todo="repair or remove the document, and run the same command again"))


class Rejected(MMLongBenchError):
    """One question cannot become an example; the build continues without it and reports it."""

    def __init__(self, fault: Fault | str, noted: tuple[str, ...] = (), *, everywhere: bool = False) -> None:
        """Keep the fault.

        Args:
            fault: what is wrong; a text says what was found instead of a valid question.
            noted: phrases that the lock counts together with the phrases of drafts (`Draft.noted`).
            everywhere: whether the question is left out of the files of all lengths, if it is refused at one of them.

        Raises:
            TypeError: `fault` is neither a `Fault` nor a text, or `noted` is not made of texts.

        """
        if isinstance(fault, str):
            fault = Fault("refused-by-task", "a valid question", fault)
        if not isinstance(fault, Fault):
            raise TypeError(f"Rejected takes a Fault or a text, found {fault!r:.80}")
        super().__init__(fault)
        self.fault = fault
        """Why the question cannot be asked."""
        self.noted = tuple(map(str, noted))
        """Phrases that the lock counts, like `Draft.noted`."""
        self.everywhere = everywhere
        """Whether the question is left out at all lengths."""


class DraftError(MMLongBenchError):
    """A builder broke its contract, for example by giving two units the same id."""


def nearest(word: str, words: Iterable[str]) -> str:
    r"""Return a hint for a mistyped word; empty if no word is similar to it. Case and the form of Unicode do not count.

    >>> nearest("lenghts", ["lengths", "seed"]), nearest("ASH_2019", ["ash_2019"])
    ("; did you mean 'lengths'?", "; did you mean 'ash_2019'?")
    >>> nearest("e\u0301", ["\u00e9"]) == "; did you mean 'é'? Its letters are composed otherwise: '\\xe9' in ASCII"
    True
    """
    plain = {_compared(known): known for known in words}
    close = difflib.get_close_matches(_compared(word), plain, 1)
    if not close:
        return ""
    known = plain[close[0]]
    looks_same = unicodedata.normalize("NFC", known) == unicodedata.normalize("NFC", word)
    other = f" Its letters are composed otherwise: {known!a} in ASCII" if looks_same else ""
    return f"; did you mean {known!r}?{other}"


def _compared(word: str) -> str:
    return unicodedata.normalize("NFKC", word).casefold()


def error_text(error: Exception) -> str:
    """Return the message of an error. If the error is not one of this project, its type stands before the message.

    >>> error_text(MMLongBenchError("no lock")), error_text(KeyError("id"))
    ('no lock', "KeyError: 'id'")
    """
    return str(error) if isinstance(error, MMLongBenchError) else f"{type(error).__name__}: {error}"
