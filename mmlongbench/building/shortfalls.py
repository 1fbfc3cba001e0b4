"""Says which datasets lost many of their questions, why, and which questions these are.

Only rows that could have become questions count: rows that the benchmark itself leaves out, that the builder does not
select, or that the sample does not have are not lost.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from mmlongbench.building.build_dir import BuildDir, questions_shard
from mmlongbench.building.lines import QUESTIONS, Reject, RowCounts
from mmlongbench.building.rejects import read_rejects
from mmlongbench.errors import TooFewKept
from mmlongbench.io.atomic import write_whole
from mmlongbench.release.layout import REJECTS
from mmlongbench.release.lock import Lock, QuestionCounts
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
    """How many questions were kept."""
    of: int
    """How many rows could have become questions: the kept and the rejected ones."""
    rejected: dict[str, int]
    """How many rows were rejected, by reason; the most frequent reason first."""
    first: tuple[str, ...]
    """The first rejected rows: the id, then what is wrong and what to do."""

    @property
    def reasons(self) -> str:
        """The reasons with their numbers, as one text."""
        return ", ".join(f"{number:,} × {reason}" for reason, number in self.rejected.items())


def shortfalls_of(lock: Lock, out: Path, share: float = NOTICED) -> tuple[Shortfall, ...]:
    """Return the datasets of a finished release that kept less than a share of their questions."""
    few = {name: data.questions for name, data in lock.readable.items() if _share(data.questions) < share}
    lost = [reject for reject in read_rejects(out / REJECTS) if reject.length is None] if few else []
    return tuple(
        _shortfall(name, counts, (each for each in lost if each.dataset == name)) for name, counts in few.items()
    )


def refuse_losses(names: Sequence[str], build_dir: BuildDir, min_kept: float, *, is_here: bool) -> None:
    """Refuse to go on if a dataset whose questions are chosen kept less than `min_kept` of them. If so, the rejected
    rows of all datasets are written to `rejects.jsonl`; `is_here` says whether the user can read this folder.

    Raises:
        TooFewKept: the error names each such dataset, the reasons, and the first rejected questions.

    """
    lines = {name: list(build_dir.read(questions_shard(name), QUESTIONS)) for name in names}
    rejects = {name: [line for line in found if isinstance(line, Reject)] for name, found in lines.items()}
    counts = {name: line.counts for name, found in lines.items() for line in found if isinstance(line, RowCounts)}
    few = [_shortfall(name, found, rejects[name]) for name, found in counts.items() if _share(found) < min_kept]
    if few:
        path = build_dir.out / REJECTS
        write_whole(path, (to_json(each.fields()) for found in rejects.values() for each in found))
        raise _too_few(few, min_kept, path if is_here else None)


def refuse_losses_of(lock: Lock, out: Path, min_kept: float) -> None:
    """Refuse a finished release of which a dataset kept less than `min_kept` of its questions.

    Raises:
        TooFewKept: see `refuse_losses`.

    """
    if few := shortfalls_of(lock, out, min_kept):
        raise _too_few(few, min_kept, out / REJECTS)


def _share(counts: QuestionCounts) -> float:
    of = counts.kept + sum(counts.rejected.values())
    return counts.kept / of if of else 1.0


def _shortfall(name: str, counts: QuestionCounts, rejects: Iterable[Reject]) -> Shortfall:
    often = dict(sorted(counts.rejected.items(), key=lambda each: (-each[1], each[0])))
    lost = (f"{reject.id}: {reject.fault}" for reject in rejects if not reject.fault.is_expected)
    return Shortfall(name, counts.kept, counts.kept + sum(often.values()), often, tuple(islice(lost, _FIRST)))


def _too_few(found: Sequence[Shortfall], min_kept: float, path: Path | None) -> TooFewKept:
    said = [f"dataset {each.dataset!r} kept {each.kept:,} of {each.of:,} questions ({each.reasons})" for each in found]
    all_of_them = f"; {path} lists all with what to do" if path else ""
    return TooFewKept(
        f"--min-kept {min_kept:g}: {'; '.join(said)}; first {found[0].first[0]}{all_of_them}; correct these, or give a "
        "smaller share to go on"
    )
