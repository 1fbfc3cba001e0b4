"""Says which datasets lost many of their questions, why, and which questions these are.

Only rows that could have become questions count: rows that the benchmark itself leaves out, that the builder does not
select, or that the sample does not have are not lost. A question that does not fit at a length is lost at this length;
a dataset keeps as many questions as it has at the length with the fewest.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mmlongbench.errors import TooFewKept
from mmlongbench.io.files import write_whole
from mmlongbench.lengths import format_length
from mmlongbench.release.layout import REJECTS
from mmlongbench.release.lock import Lock, QuestionCounts
from mmlongbench.release.rejects import Reject, read_rejects
from mmlongbench.task.file_formats import to_json

NOTICED = 0.9
"""A dataset that keeps a smaller share of its questions than this is reported."""
_FIRST = 3
"""How many of the rejected questions are shown."""


@dataclass(frozen=True, slots=True)
class Shortfall:
    """A dataset that lost a noticeable share of its questions."""

    dataset: str
    """The name of the dataset."""
    kept: int
    """How many questions were kept at the length with the fewest."""
    of: int
    """How many rows could have become questions: the kept and the rejected ones."""
    rejected: dict[str, int]
    """How many rows were rejected, by reason, and how many questions at the length with the fewest, by reason and
    length, such as `does-not-fit at 8K`; the most frequent reason first."""
    first: tuple[str, ...]
    """The first of these rows and questions: the id, then what is wrong and what to do."""

    @property
    def reasons(self) -> str:
        """The reasons with their numbers, as one text."""
        return ", ".join(f"{number:,} × {reason}" for reason, number in self.rejected.items())


def shortfalls_of(lock: Lock, out: Path, share: float = NOTICED) -> tuple[Shortfall, ...]:
    """Return the datasets of a finished release that kept less than a share of their questions. The counts of the lock
    decide; the file of rejects is read only for these datasets.
    """
    found = []
    for name, data in lock.readable.items():
        at_lengths = {length: cell.rejected for length, cell in data.cells.items()}
        rejects = (reject for reject in read_rejects(out / REJECTS) if reject.dataset == name)
        found.append(_shortfall(name, data.questions, at_lengths, rejects, share))
    return tuple(filter(None, found))


def refuse_losses(
    counts: Mapping[str, QuestionCounts], rejects: Mapping[str, list[Reject]], out: Path, share: float, *, is_here: bool
) -> None:
    """Refuse to go on if a dataset kept less than a share of its questions. Then write the rejects, rows and
    questions, dataset after dataset, to their file in the folder `out`. Without `is_here`, this folder is on another
    machine, and the error does not name the file.
    """
    found = []
    for name, of_rows in counts.items():
        at_lengths = Counter(format_length(reject.length) for reject in rejects[name] if reject.length is not None)
        found.append(_shortfall(name, of_rows, at_lengths, rejects[name], share))
    if few := tuple(filter(None, found)):
        write_whole(out / REJECTS, (to_json(reject.fields()) for lost in rejects.values() for reject in lost))
        raise too_few(few, share, out / REJECTS if is_here else None)


def _shortfall(
    name: str, counts: QuestionCounts, at_lengths: Mapping[str, int], rejects: Iterable[Reject], share: float
) -> Shortfall | None:
    """Describe a dataset that kept less than a share of its questions; None if it kept enough. `at_lengths` has how
    many questions do not fit at each length; `rejects` are read only if the dataset kept too few.
    """
    length = max(at_lengths, key=lambda length: at_lengths[length], default="")  # the one with the fewest questions
    kept, of = counts.kept - at_lengths.get(length, 0), counts.kept + sum(counts.rejected.values())
    if (kept / of if of else 1.0) >= share:
        return None
    lost = list(rejects)
    rows = [reject for reject in lost if reject.length is None and not reject.fault.is_expected]
    questions = [reject for reject in lost if reject.length is not None and format_length(reject.length) == length]
    reasons = Counter(f"{reject.fault.reason} at {length}" for reject in questions) + Counter(counts.rejected)
    often = dict(sorted(reasons.items(), key=lambda entry: (-entry[1], entry[0])))
    first = tuple(f"{reject.id}: {reject.fault}" for reject in (*rows, *questions)[:_FIRST])
    return Shortfall(name, kept, of, often, first)


def too_few(few: Sequence[Shortfall], min_kept: float, path: Path | None) -> TooFewKept:
    """Return the error for datasets that kept a smaller share than `min_kept`; `path` is the file with all rejects."""
    said = (f"dataset {lost.dataset!r} kept {lost.kept:,} of {lost.of:,} questions ({lost.reasons})" for lost in few)
    first = next((f"; first {lost.first[0]}" for lost in few if lost.first), "")
    all_of_them = f"; {path} lists all" if path else ""
    return TooFewKept(
        f"--min-kept {min_kept:g}: {'; '.join(said)}{first}{all_of_them}; correct these, or give a "
        "smaller share to go on"
    )
