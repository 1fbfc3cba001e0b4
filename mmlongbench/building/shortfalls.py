"""Says which datasets lost many of their questions, why, and which questions these are.

Only rows that could have become questions count: rows that the benchmark itself leaves out, that the builder does not
select, or that the sample does not have are not lost. A question that does not fit at a length is lost at this length;
a dataset keeps as many questions as it has at the length with the fewest.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from mmlongbench.building.build_dir import BuildDir, questions_shard
from mmlongbench.building.lines import QUESTIONS, RowCounts
from mmlongbench.errors import Fault, TooFewKept
from mmlongbench.io.files import write_whole
from mmlongbench.lengths import format_length
from mmlongbench.release.layout import REJECTS
from mmlongbench.release.lock import Lock, QuestionCounts
from mmlongbench.release.rejects import Reject, read_rejects
from mmlongbench.task.formats import to_json
from mmlongbench.task.rows import Row


def reject_row(dataset: str, row: Row, fault: Fault, length: int | None = None) -> Reject:
    """Return the reject of a row; a fault that names no file gets the file and place of the row."""
    return Reject(dataset, row.id, length, fault if fault.file else replace(fault, file=row.file, place=row.place))


def sentence(found: Reject) -> str:
    """Return a reject as one sentence."""
    return f"{found.dataset}, {found.id}: {found.fault}"


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
    found = []
    for name, data in lock.readable.items():
        # read only if there are too few
        rejects = (each for each in read_rejects(out / REJECTS) if each.dataset == name)
        at_lengths = {length: cell.rejected for length, cell in data.cells.items()}
        found.append(_shortfall(name, data.questions, at_lengths, rejects, share))
    return tuple(filter(None, found))


def refuse_losses(
    names: Sequence[str],
    build_dir: BuildDir,
    min_kept: float,
    *,
    is_here: bool,
    at_lengths: Iterable[Reject] = (),
) -> None:
    """Refuse to go on if a dataset whose questions are chosen kept less than `min_kept` of them. If so, the rejects of
    all datasets are written to `rejects.jsonl`.

    Args:
        names: the datasets.
        build_dir: the folder of the build.
        min_kept: the share of questions that each dataset must keep.
        is_here: whether the user can read the folder.
        at_lengths: the questions that do not fit at a length, once the records are packed.

    Raises:
        TooFewKept: the error names each such dataset, the reasons, and the first rejected questions.

    """
    lines = {name: list(build_dir.read(questions_shard(name), QUESTIONS)) for name in names}
    rejects = {name: [line for line in found if isinstance(line, Reject)] for name, found in lines.items()}
    for reject in at_lengths:
        rejects[reject.dataset].append(reject)
    few = []
    for name, found in lines.items():
        lost = Counter(format_length(each.length) for each in rejects[name] if each.length is not None)
        for counts in (line.counts for line in found if isinstance(line, RowCounts)):
            few.append(_shortfall(name, counts, lost, rejects[name], min_kept))
    if any(few):
        path = build_dir.out / REJECTS
        write_whole(path, (to_json(each.fields()) for found in rejects.values() for each in found))
        raise _too_few(filter(None, few), min_kept, path if is_here else None)


def refuse_losses_of(lock: Lock, out: Path, min_kept: float) -> None:
    """Refuse a finished release if one of its datasets kept a smaller share of its questions than `min_kept`.

    Raises:
        TooFewKept: see `refuse_losses`.

    """
    if few := shortfalls_of(lock, out, min_kept):
        raise _too_few(few, min_kept, out / REJECTS)


def _shortfall(
    name: str, counts: QuestionCounts, at_lengths: Mapping[str, int], rejects: Iterable[Reject], share: float
) -> Shortfall | None:
    """Describe a dataset that kept less than a share of its questions; None if it kept enough.

    Args:
        name: the dataset.
        counts: how many questions were chosen, and how many rows were rejected.
        at_lengths: how many of the chosen questions do not fit at each length, such as `8K`.
        rejects: the rejected rows, and the questions that do not fit.
        share: the share of its questions.

    """
    length = max(at_lengths, key=lambda each: at_lengths[each], default="")  # the length with the fewest questions
    kept, of = counts.kept - at_lengths.get(length, 0), counts.kept + sum(counts.rejected.values())
    if (kept / of if of else 1.0) >= share:
        return None
    lost = list(rejects)
    rows = [each for each in lost if each.length is None and not each.fault.is_expected]
    here = [each for each in lost if each.length is not None and format_length(each.length) == length]
    reasons = Counter(f"{each.fault.reason} at {length}" for each in here) + Counter(counts.rejected)
    often = dict(sorted(reasons.items(), key=lambda each: (-each[1], each[0])))
    return Shortfall(name, kept, of, often, tuple(f"{each.id}: {each.fault}" for each in (*rows, *here)[:_FIRST]))


def _too_few(found: Iterable[Shortfall], min_kept: float, path: Path | None) -> TooFewKept:
    few = list(found)
    said = [f"dataset {each.dataset!r} kept {each.kept:,} of {each.of:,} questions ({each.reasons})" for each in few]
    first = next((f"; first {each.first[0]}" for each in few if each.first), "")
    all_of_them = f"; {path} lists all with what to do" if path else ""
    return TooFewKept(
        f"--min-kept {min_kept:g}: {'; '.join(said)}{first}{all_of_them}; correct these, or give a "
        "smaller share to go on"
    )
