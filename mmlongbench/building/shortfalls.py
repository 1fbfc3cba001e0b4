"""Says which datasets lost many of their questions, why, and which questions these are.

Only rows that could have become questions count: rows that the benchmark itself leaves out, that the builder does not
select, or that the sample does not have are not lost. A question that does not fit at a length is lost at this length;
a dataset keeps as many questions as it has at the length with the fewest.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from mmlongbench.errors import TooFewKept
from mmlongbench.io.files import write_whole
from mmlongbench.lengths import format_length
from mmlongbench.release.layout import REJECTS
from mmlongbench.release.lock import Lock, QuestionCounts
from mmlongbench.release.rejects import Reject, read_rejects
from mmlongbench.task.formats import to_json

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
    """Return the datasets of a finished release that kept less than a share of their questions."""
    counts = {name: data.questions for name, data in lock.readable.items()}
    return _shortfalls(counts, read_rejects(out / REJECTS), share)


def refuse_losses(
    counts: Mapping[str, QuestionCounts], rejects: Iterable[Reject], out: Path, min_kept: float, *, is_here: bool
) -> None:
    """Refuse to go on if a dataset kept a smaller share of its questions than `min_kept`. Then write the rejects, rows
    and questions, dataset after dataset, to their file in the folder `out`. Without `is_here`, this folder is on
    another machine, and the error does not name the file.
    """
    lost = list(rejects)
    if few := _shortfalls(counts, lost, min_kept):
        write_whole(out / REJECTS, (to_json(reject.fields()) for reject in lost))
        raise too_few(few, min_kept, out / REJECTS if is_here else None)


def _shortfalls(counts: Mapping[str, QuestionCounts], rejects: Iterable[Reject], share: float) -> tuple[Shortfall, ...]:
    """Return the datasets that kept less than a share of their questions."""
    lost: dict[str, list[Reject]] = {name: [] for name in counts}
    for reject in rejects:
        lost.setdefault(reject.dataset, []).append(reject)
    found = []
    for name, of_rows in counts.items():
        at_lengths = Counter(reject.length for reject in lost[name] if reject.length is not None)
        length = max(at_lengths, key=lambda length: at_lengths[length], default=0)  # the one with the fewest questions
        kept, of = of_rows.kept - at_lengths[length], of_rows.kept + sum(of_rows.rejected.values())
        if (kept / of if of else 1.0) >= share:
            continue
        rows = [reject for reject in lost[name] if reject.length is None and not reject.fault.is_expected]
        questions = [reject for reject in lost[name] if reject.length == length]
        reasons = Counter(f"{reject.fault.reason} at {format_length(length)}" for reject in questions)
        reasons += Counter(of_rows.rejected)
        often = dict(sorted(reasons.items(), key=lambda entry: (-entry[1], entry[0])))
        first = tuple(f"{reject.id}: {reject.fault}" for reject in (*rows, *questions)[:_FIRST])
        found.append(Shortfall(name, kept, of, often, first))
    return tuple(found)


def too_few(few: Iterable[Shortfall], min_kept: float, path: Path | None) -> TooFewKept:
    """Return the error for datasets that kept a smaller share than `min_kept`; `path` is the file with all rejects."""
    said, first = [], ""
    for lost in few:
        said.append(f"dataset {lost.dataset!r} kept {lost.kept:,} of {lost.of:,} questions ({lost.reasons})")
        if lost.first and not first:
            first = f"; first {lost.first[0]}"
    all_of_them = f"; {path} lists all with what to do" if path else ""
    return TooFewKept(
        f"--min-kept {min_kept:g}: {'; '.join(said)}{first}{all_of_them}; correct these, or give a "
        "smaller share to go on"
    )
