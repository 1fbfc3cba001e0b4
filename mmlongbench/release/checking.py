"""Whether the records of a release agree with their prompts, their items, and each other, at all lengths."""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from hashlib import blake2b
from pathlib import Path
from typing import Any

from mmlongbench.binding import placements_of
from mmlongbench.bounded import MOST_OF_A_FILE
from mmlongbench.draws import Draws
from mmlongbench.errors import ManifestError, MMLongBenchError, ReleaseError
from mmlongbench.formats import JSON_LINES, to_json
from mmlongbench.packing.budget import format_length
from mmlongbench.packing.placing import Depth, Permutation, Placement
from mmlongbench.prompt import Part
from mmlongbench.release.findings import Facts
from mmlongbench.release.layout import ITEMS, REJECTS
from mmlongbench.release.measuring import Measured
from mmlongbench.release.opening import AuditedDataset, PublicFile
from mmlongbench.release.positions import (
    Found,
    Haystack,
    Ruler,
    find_needles,
    haystack,
    ids_of,
    items_faults,
    needle_items,
)
from mmlongbench.release.rows import Items
from mmlongbench.task import HasGold, HasNeedles, Record

Item = Mapping[str, Any]
Problem = tuple[str, str]
"""(kind, where)."""
ITEMS_DIFFER = "the items differ from the prompt"
PLACEMENT = "the placement differs from the prompt"
NEEDLES_DIFFER = "the needles differ from the prompt"


class RecordChecks:
    """Checks the records of one file of a release, in their order."""

    def __init__(self, file: PublicFile, dataset: AuditedDataset, root: Path) -> None:
        """`root` is the release."""
        self._file, self._dataset = file, dataset
        spec = dataset.builder.spec
        is_bundle = spec.bundle is not None and file.form is spec.bundle.format
        self.facts = Facts(is_bundle)
        self._placements = _placements(dataset)
        self._prices = dataset.prices
        path = root / ITEMS / Path(file.name).with_suffix(".parquet")
        self._items = None if is_bundle or not path.is_file() else Items(root)
        self._seen: set[tuple[str, float | None, int | None]] = set()
        self._missing_items = not is_bundle and not path.is_file()

    def look(self, where: str, record: Record, made: Measured) -> Iterator[Problem]:
        """Yield what is wrong with one record."""
        facts = self.facts
        facts.lines += 1
        facts.shown.update(made.prompt.images)
        key = (made.id, made.placement, made.set if facts.is_bundle else None)
        if key in self._seen:
            yield "two examples of one id and placement", where
        self._seen.add(key)
        facts.placements.setdefault(made.id, []).append(made.placement)
        if turned := [path for path in made.prompt.images if path in self._file.sizes.turned]:
            yield "an image depends on its EXIF orientation, which a build takes away", f"{where}: {turned[0]}"
        yield from ((kind, f"{where}: {said}") for kind, said in self._varied(record, made))
        try:
            items = self._items.of(self._file, made) if self._items else ()
            if self._items and not items:
                yield "the items of an example are missing", where
            yield from ((kind, f"{where}: {said}") for kind, said in self._positions(record, made, items))
        except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, OSError) as error:
            yield ITEMS_DIFFER, f"{where}: {type(error).__name__}: {error}"
            self._items = None

    def end(self, examples: int) -> Iterator[Problem]:
        """Yield what is wrong with the file as a whole, which has so many examples."""
        self.facts.is_read, self.facts.lines = self.facts.lines == examples > 0, examples
        if self._missing_items:
            yield "the items of the file are missing", "the whole file"
        if not self.facts.is_read:  # the examples that are not here have problems of their own
            return
        if self._items and (left := self._items.left()):
            yield "items of examples that the file does not have", left
        wanted = sorted(_value(each) for each in self._placements)
        for id, found in () if self.facts.is_bundle else self.facts.placements.items():
            if sorted(map(_value, found)) != wanted:
                said = ", ".join(str(each) for each in found)
                yield "an example does not stand at each placement of the lock once", f"{id}: at {said}"

    def _varied(self, record: Record, made: Measured) -> Iterator[Problem]:
        """What is the same in all records of a question, and here is another."""
        builder = self._dataset.builder
        key = f"{made.id}" if not builder.spec.is_answer_of_context else f"{made.id} {made.placement}"
        gold = builder.gold(record) if isinstance(builder, HasGold) else record.get("answer")
        if gold is None or gold in ("", []):
            yield "the record has no answer", made.id
        if self.facts.answers.setdefault(key, _digest(gold)) != _digest(gold):
            yield "the answer differs from another placement", made.id
        if isinstance(builder, HasNeedles):
            needles = _digest(sorted(map(str, builder.needles(record))))
            if self.facts.needles.setdefault(made.id, needles) != needles:
                yield "the needles differ from another placement", made.id

    def _positions(self, record: Record, made: Measured, items: Sequence[Item]) -> Iterator[Problem]:
        """What differs between the prompt, the items and what the record says of needles."""
        counter = self._dataset.counter
        ruler = Ruler(made, counter, self._prices) if counter.text.additive and items else None
        if items:
            yield from ((ITEMS_DIFFER, fault) for fault in items_faults(items, ruler, made))
        if made.placement is None or not items:
            return
        if (fault := self._requested_fault(record, made, items)) is not None:
            yield PLACEMENT, fault
        try:
            found = self._needles(record, items, ruler)
        except ReleaseError as error:
            yield NEEDLES_DIFFER, str(error)
            return
        if found is None:
            return
        if len(ids_of(items)) != len(found):
            yield NEEDLES_DIFFER, f"the items have {len(ids_of(items))} needles, the record {len(found)}"
            return
        hay = haystack(found, items)
        yield from ((PLACEMENT, fault) for fault in placement_faults(record, found, hay, is_single=self._is_single))

    @property
    def _is_single(self) -> bool:
        return isinstance(self._placements[0], Depth)

    def _needles(self, record: Record, items: Sequence[Item], ruler: Ruler | None) -> list[Found] | None:
        """The needles of a record where they stand; None where that cannot be told.

        Raises:
            ReleaseError: the record has none, or one that is not in the prompt.

        """
        builder = self._dataset.builder
        if ruler is None:
            return None
        if isinstance(builder, HasNeedles):
            parts: Sequence[Part] = tuple(builder.needles(record))
            if not parts:
                raise ReleaseError("the record has no needle")
            return find_needles(parts, items, ruler)
        return None if any(item.get("inside") for item in items) else needle_items(items)

    def _requested_fault(self, record: Record, made: Measured, items: Sequence[Item]) -> str | None:
        """Whether the depths that a permutation asks for are those that are drawn for it."""
        placement, spec = next((p for p in self._placements if _value(p) == made.placement), None), self._dataset.spec
        if placement is None:
            return f"{made.placement} is no placement of the lock"
        if not isinstance(placement, Permutation) or spec is None:
            return None
        draws, ids = Draws((spec.seed, spec.drawn_name, made.id)), ids_of(items)
        drawn = sorted(draws.fraction(f"permutation {placement.value}: {id}") for id in ids)
        said = record.get("depth_requested")
        if not isinstance(said, list) or len(said) != len(drawn):
            return f"depth_requested is {said!r:.80}, the context has {len(drawn)} needles"
        if any(abs(float(one) - other) > 1e-9 for one, other in zip(sorted(said), drawn, strict=True)):
            return f"depth_requested is {said!r:.80}, drawn for permutation {placement.value} are {drawn!r:.80}"
        return None


def _placements(dataset: AuditedDataset) -> tuple[Placement, ...]:
    """The placements of the lock; the task's own where those cannot be, which is a problem of the lock."""
    own = dataset.builder.spec.placements
    try:
        return placements_of(dataset.spec, dataset.builder) if dataset.spec else (None,)
    except ManifestError:
        return own.all() if own else (None,)


def placement_faults(record: Record, found: Sequence[Found], hay: Haystack, *, is_single: bool) -> Iterator[str]:
    """Yield what differs between the fields of a record and the places of its needles.

    With `is_single`, the fields name the one needle that stands at the depth, which others may stand before.
    """
    starts, depths = record.get("needle_start"), record.get("depth_achieved")
    placed = list(enumerate(found))
    if is_single:  # of several needles, the one that stands at the depth is named
        starts, depths = [starts], [depths]
        placed = placed if len(placed) == 1 else [pair for pair in placed if pair[1].start == starts[0]][:1]
    if not isinstance(starts, list) or not isinstance(depths, list) or not len(starts) == len(depths) == len(placed):
        yield f"needle_start and depth_achieved do not name the needles of the prompt, of which there are {len(found)}"
        return
    try:
        pairs = sorted(zip(starts, depths, strict=True))
    except TypeError:
        yield "needle_start or depth_achieved is no number"
        return
    for (start, depth), (number, needle) in zip(pairs, placed, strict=True):
        if start != needle.start:
            yield f"needle_start is {start}, in the prompt {needle.start} tokens stand before the needle"
        if not hay.is_at(number, depth):
            right = hay.before[number] / hay.tokens if hay.tokens else 0.0
            yield f"depth_achieved is {depth}, in the prompt it is {right:.4f}"
    if is_single and len(found) == 1 and not hay.is_near(0, record.get("depth")):
        right = hay.before[0] / hay.tokens if hay.tokens else 0.0
        yield f"depth is {record.get('depth')}, in the prompt the needle stands at {right:.4f}"


def compare_files(
    files: Iterable[tuple[PublicFile, Facts]], lock: Mapping[str, Any], rejected: Set[tuple[str, str, int | None]]
) -> Iterator[tuple[str, str, str]]:
    """Yield (file, kind, where) of what differs between the files of a dataset, or from what the lock counts.

    Args:
        files: every public file that could be read, with what its records say.
        lock: the lock.
        rejected: (dataset, id, length) of the rejects.

    """
    datasets: dict[str, list[tuple[PublicFile, Facts]]] = {}
    for file, facts in files:
        if file.dataset:
            datasets.setdefault(file.dataset.builder.dataset, []).append((file, facts))
    for name, group in datasets.items():
        records = [each for each in group if not each[1].is_bundle]
        for file, facts in group:
            spec = group[0][0].dataset.builder.spec if group[0][0].dataset else None
            if spec and not (spec.is_answer_of_context and not facts.is_bundle):
                pool = records if not spec.is_answer_of_context else [r for r in records if r[0].length == file.length]
                yield from _others(file, facts, pool)
        for file, facts in records:
            yield from ((file.name, *problem) for problem in _counted(name, file, facts, lock))
            if facts.is_read and not any("not_asked" in cell for cell in _cells(name, lock).values()):
                known = {id for _, other in records for id in other.placements}
                missing = (
                    id for id in sorted(known - facts.placements.keys()) if (name, id, file.length) not in rejected
                )
                if (id := next(missing, None)) is not None:
                    yield file.name, "a question of another length is missing", id


def _others(file: PublicFile, facts: Facts, pool: Sequence[tuple[PublicFile, Facts]]) -> Iterator[tuple[str, str, str]]:
    """The first question of a file whose answer, or needles, are others in another file."""
    for what in ("answer", "needles"):
        ours = facts.answers if what == "answer" else facts.needles
        for other_file, other in pool:
            theirs = other.answers if what == "answer" else other.needles
            if other_file is not file and (id := next((i for i in ours if theirs.get(i, ours[i]) != ours[i]), None)):
                yield (
                    file.name,
                    f"the {what} of a question differ{'s' * (what == 'answer')} between files",
                    (f"{id.split(' ')[0]}: from {other_file.name}"),
                )
                break


def _counted(name: str, file: PublicFile, facts: Facts, lock: Mapping[str, Any]) -> Iterator[Problem]:
    """What the lock counts of a file, and the file has otherwise."""
    cell = _cells(name, lock).get(format_length(file.length))
    if cell is None:
        yield "the lock counts nothing of this length", format_length(file.length)
    elif cell.get("examples") != facts.lines:
        yield "the number of examples differs from the lock", f"{facts.lines} against {cell.get('examples')}"


def rejects_of(release: Path) -> frozenset[tuple[str, str, int | None]]:
    """Return (dataset, id, length) of each line of the rejects that can be read; of none where there are too many."""
    found = set()
    path = release / REJECTS
    is_fit = path.is_file() and path.stat().st_size <= MOST_OF_A_FILE
    for _, line in JSON_LINES.lines(path) if is_fit else ():
        if isinstance(line, dict):
            length = line.get("length")
            found.add((str(line.get("dataset")), str(line.get("id")), length if isinstance(length, int) else None))
    return frozenset(found)


def _cells(name: str, lock: Mapping[str, Any]) -> Mapping[str, Any]:
    data = lock["datasets"].get(name)
    cells = data.get("cells") if isinstance(data, dict) else None
    found = cells if isinstance(cells, dict) else {}
    return {key: cell for key, cell in found.items() if isinstance(cell, dict)}


def _value(placement: object) -> float:
    """A placement as the audit reads it from a record; -1 where there is none."""
    if isinstance(placement, Depth | Permutation):
        return float(placement.value)
    return float(placement) if isinstance(placement, int | float) else -1.0


def _digest(value: object) -> bytes:
    try:
        return blake2b(to_json(value), digest_size=12).digest()
    except (TypeError, ValueError, RecursionError) as error:
        raise MMLongBenchError(f"a value that is no JSON: {type(error).__name__}") from error
