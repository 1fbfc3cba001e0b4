"""Checks that the records of a release agree with their prompts, their items, and each other, at all lengths."""

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from hashlib import blake2b

from mmlongbench.draws import Draws
from mmlongbench.errors import ManifestError, MMLongBenchError, ReleaseError, error_text
from mmlongbench.lengths import format_length
from mmlongbench.manifest.binding import placements_of
from mmlongbench.packing.place import Depth, Permutation, Placement
from mmlongbench.prompt import Part
from mmlongbench.release.assets import ASSETS, KnownAssets, resolve
from mmlongbench.release.figures import Facts, Fault
from mmlongbench.release.items import Item, ItemReader, NoItemError, items_path
from mmlongbench.release.lock import CellCounts, Lock
from mmlongbench.release.lock_checks import RejectKey
from mmlongbench.release.measuring import Measured
from mmlongbench.release.positions import (
    Found,
    Layout,
    Ruler,
    find_needles,
    haystack,
    ids_of,
    items_faults,
    needle_items,
    numbers_of,
    placement_faults,
)
from mmlongbench.release.release import PublicFile, ReadDataset, Release
from mmlongbench.task.builder import SharedContextBuilder
from mmlongbench.task.formats import to_json
from mmlongbench.task.rows import Record

ITEMS_DIFFER = "the items differ from the prompt"
PLACEMENT = "the placement differs from the prompt"
NEEDLES_DIFFER = "the needles differ from the prompt"
UNREADABLE = (ReleaseError, TypeError, ValueError, LookupError, AttributeError, ArithmeticError, OSError)
"""The errors that reading a damaged release may raise."""
_TINY = 1e-9
"""Fractions that differ by this or less count as equal, because a record may have another notation."""


class RecordChecks:
    """Checks the records of one file of a release, one after another in the order of the file."""

    def __init__(self, file: PublicFile, dataset: ReadDataset, release: Release) -> None:
        """Prepare to check the records of a file of a release that has a lock."""
        self._file, self._dataset = file, dataset
        is_bundle = file.is_bundle
        self.facts = Facts(is_bundle)
        self._placements = _placements(dataset)
        self._prices = dataset.prices
        has_items = not is_bundle and items_path(release.path, file.name).is_file()
        counted = _cells(dataset.name, release.lock).get(format_length(file.length))
        examples = counted.examples if counted else 0
        self._items = ItemReader(release.path, file.name, file.length, examples=examples) if has_items else None
        self._seen: set[tuple[str, float | None, int | None]] = set()
        tokenizer = dataset.counter.text
        merges = f"not compared, for the tokenizer {tokenizer.name} may merge texts across newlines"
        self.unplaced = "" if tokenizer.additive else merges
        """Why the positions are not counted again; empty if they are counted."""
        self._missing_items = not is_bundle and not has_items and not release.is_publication
        self._assets = KnownAssets.of(release.path, dataset.name) if ASSETS in release.lock.files else None

    def look(self, where: str, record: Record, made: Measured) -> Iterator[Fault]:
        """Yield what is wrong with one record."""
        facts = self.facts
        facts.lines += 1
        facts.shown.update(made.prompt.images)
        if balance := self._dataset.builder.spec.balance:
            facts.balanced[str(record.get(balance))] += 1
        key = (made.id, made.placement, made.set if facts.is_bundle else None)
        if key in self._seen:
            yield "two examples of one id and placement", where
        self._seen.add(key)
        facts.placements.setdefault(made.id, []).append(made.placement)
        if turned := [path for path in made.prompt.images if path in self._file.sizes.turned]:
            yield "an image depends on its EXIF orientation, which a build takes away", f"{where}: {turned[0]}"
        yield from ((kind, f"{where}: {said}") for kind, said in self._varied(record, made))
        try:
            items = self._items.of(made.id, made.placement) if self._items else ()
        except NoItemError as error:
            yield ITEMS_DIFFER, f"{where}: {error}"
            return
        except UNREADABLE as error:
            yield "the items of the file cannot be read", f"{where}: {error_text(error)}"
            self._items = None
            return
        if self._items and not items:
            yield "the items of an example are missing", where
        if self._assets and not self._assets.fault:
            found = resolve(items, made.prompt, self._assets, facts)
            yield from ((kind, f"{where}: {said}") for kind, said in found)
        try:
            yield from ((kind, f"{where}: {said}") for kind, said in self._positions(record, made, items))
        except UNREADABLE as error:  # only this example is skipped
            yield ITEMS_DIFFER, f"{where}: {error_text(error)}"

    def end(self, examples: int) -> Iterator[Fault]:
        """Yield what is wrong with the file as a whole, which has `examples` examples."""
        self.facts.is_read, self.facts.lines = self.facts.lines == examples > 0, examples
        if self._missing_items:
            yield "the items of the file are missing", "the whole file"
        if not self.facts.is_read:  # examples that could not be read have been reported
            return
        try:
            left = self._items.left() if self._items else ""
        except UNREADABLE as error:
            yield "the items of the file cannot be read", error_text(error)
            left = ""
        if left:
            yield "items of examples that the file does not have", left
        wanted = sorted(_value(each) for each in self._placements)
        for id, found in () if self.facts.is_bundle else self.facts.placements.items():
            if sorted(map(_value, found)) != wanted:
                said = ", ".join(str(each) for each in found)
                yield "a question does not have one example at each placement of the lock", f"{id}: at {said}"

    def _varied(self, record: Record, made: Measured) -> Iterator[Fault]:
        """Yield a problem if the answer is missing, or if the answer or the needles differ from an earlier record of
        the question.
        """
        builder = self._dataset.builder
        key = f"{made.id}" if not builder.spec.is_answer_of_context else f"{made.id} {made.placement}"
        gold = builder.gold(record)
        if gold is None or (gold in ("", []) and not builder.spec.may_lack_answers):
            yield "the record has no answer", made.id
        if self.facts.answers.setdefault(key, _digest(gold)) != _digest(gold):
            yield "the answer differs from another placement", made.id
        if (parts := builder.needles(record)) is not None:
            needles = _digest(sorted(map(str, parts)))
            if self.facts.needles.setdefault(made.id, needles) != needles:
                yield "the needles differ from another placement", made.id

    def _positions(self, record: Record, made: Measured, items: Sequence[Item]) -> Iterator[Fault]:
        """Yield differences between the prompt, the items and the record's fields about needles."""
        if not items:
            return
        counter = self._dataset.counter
        layout = None
        if counter.text.additive:
            layout = Layout(items, Ruler(made, counter, self._prices), is_by_line=self.facts.is_by_line)
            self.facts.is_by_line |= layout.is_surely_by_line
            if layout.may_be_by_line and not layout.is_by_line:
                self.facts.astray = self.facts.astray or made.id
        yield from ((ITEMS_DIFFER, fault) for fault in items_faults(items, layout, made))
        if made.placement is None:
            return
        placement = next((each for each in self._placements if _value(each) == made.placement), None)
        if placement is None:
            yield PLACEMENT, f"{made.placement} is no placement of the lock"
            return
        try:
            found = self._needles(record, items, layout)
        except ReleaseError as error:
            yield NEEDLES_DIFFER, str(error)
            return
        ids = ids_of(items)
        if found is not None and len(ids) != len(found):
            yield NEEDLES_DIFFER, f"the items have {len(ids)} needles, the record {len(found)}"
            return
        if isinstance(placement, Permutation) and (fault := self._drawn_fault(record, made.id, placement, ids, found)):
            yield PLACEMENT, fault
        if found is not None:
            hay = haystack(found, items)
            is_single = isinstance(placement, Depth)
            yield from ((PLACEMENT, fault) for fault in placement_faults(record, found, hay, is_single=is_single))

    def _needles(self, record: Record, items: Sequence[Item], layout: Layout | None) -> list[Found] | None:
        """Return the needles of a record with their positions; None if the positions cannot be known."""
        if layout is None:
            return None
        if (needles := self._dataset.builder.needles(record)) is not None:
            parts: Sequence[Part] = tuple(needles)
            if not parts:
                raise ReleaseError("the record has no needle")
            return find_needles(parts, layout)
        return None if any(item.get("inside") for item in items) else needle_items(items)

    def _drawn_fault(
        self, record: Record, id: str, placement: Permutation, ids: Sequence[str], found: Sequence[Found] | None
    ) -> str:
        """Return what is wrong with the requested depths of a permutation; empty if nothing is. One
        depth is drawn for each needle.

        `ids` are the ids of the needles in reading order. Where questions share a context, the draws depend on the
        context's name, which is not in the record. Then only the number of depths is compared.
        """
        said, spec = record.get("depth_requested"), self._dataset.spec
        if not isinstance(said, list) or len(said) != len(ids):
            return f"depth_requested is {said!r:.80}, the context has {len(ids)} needles"
        if isinstance(self._dataset.builder, SharedContextBuilder):
            return ""
        draws, starts = Draws((spec.seed, spec.drawn_name, id)), record.get("needle_start")
        drawn = [draws.fraction(f"permutation {placement.value}: {needle}") for needle in ids]
        numbers = numbers_of(starts, found) if found is not None and isinstance(starts, list) else []
        placed = [number for number in numbers if number is not None]
        is_in_order = len(placed) == len(ids)  # otherwise the starts are wrong, which is reported
        wanted = [drawn[number] for number in placed] if is_in_order else sorted(drawn)
        given = said if is_in_order else sorted(said)
        if any(abs(float(one) - other) > _TINY for one, other in zip(given, wanted, strict=True)):
            return f"depth_requested is {said!r:.80}, drawn for permutation {placement.value} are {wanted!r:.80}"
        return ""


def _placements(dataset: ReadDataset) -> tuple[Placement, ...]:
    """Return the placements of the lock. If they are invalid, which `audit_lock` reports, return those of the task."""
    own = dataset.builder.spec.placements
    try:
        return placements_of(dataset.spec, dataset.builder)
    except ManifestError:
        return own.all() if own else (None,)


def compare_files(
    files: Iterable[tuple[PublicFile, Facts]],
    lock: Lock,
    rejected: Set[RejectKey] | None,
) -> Iterator[tuple[str, str, str]]:
    """Yield (file, kind, where) for each difference: between files of one dataset, or between a file and the lock.

    Args:
        files: every public file that could be read, with the facts of its records.
        lock: the lock.
        rejected: (dataset, id, length) of the rejects; None if they cannot be read.

    """
    datasets: dict[str, list[tuple[PublicFile, Facts]]] = {}
    for file, facts in files:
        if file.dataset:
            datasets.setdefault(file.dataset.name, []).append((file, facts))
    for name, group in datasets.items():
        records = [each for each in group if not each[1].is_bundle]
        for file, facts in group:
            spec = group[0][0].dataset.builder.spec if group[0][0].dataset else None
            if spec and not (spec.is_answer_of_context and not facts.is_bundle):
                pool = records if not spec.is_answer_of_context else [r for r in records if r[0].length == file.length]
                yield from _others(file, facts, pool)
        is_by_line = any(facts.is_by_line for _, facts in records)
        for file, facts in records:
            if facts.astray and is_by_line:
                yield (
                    file.name,
                    ITEMS_DIFFER,
                    f"{facts.astray}: units do not begin lines, but do so in other examples",
                )
            yield from ((file.name, *problem) for problem in _counted(name, file, facts, lock))
            if (
                rejected is not None
                and facts.is_read
                and not any(cell.not_asked for cell in _cells(name, lock).values())
            ):
                known = {id for _, other in records for id in other.placements}
                missing = (
                    id for id in sorted(known - facts.placements.keys()) if (name, id, file.length) not in rejected
                )
                if (id := next(missing, None)) is not None:
                    yield file.name, "a question of another length is missing", id


def _others(file: PublicFile, facts: Facts, pool: Sequence[tuple[PublicFile, Facts]]) -> Iterator[tuple[str, str, str]]:
    """Yield the first question whose answer differs from that in another file, and the first whose needles differ."""
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


def _counted(name: str, file: PublicFile, facts: Facts, lock: Lock) -> Iterator[Fault]:
    cell = _cells(name, lock).get(format_length(file.length))
    if cell is None:
        yield "the lock counts nothing of this length", format_length(file.length)
    elif cell.examples != facts.lines and not (file.is_part and facts.lines < cell.examples):
        yield "the number of examples differs from the lock", f"{facts.lines} against {cell.examples}"
    balance = file.dataset.builder.spec.balance if file.dataset else ""
    counted = cell.balances.get(balance) if cell else None
    if cell and balance and facts.is_read and not file.is_part and counted != dict(facts.balanced):
        said = f"{dict(sorted(facts.balanced.items()))!r:.100} against {counted!r:.100}"
        yield f"the counts by {balance} differ from the lock", said


def _cells(name: str, lock: Lock) -> Mapping[str, CellCounts]:
    counts = lock.counts(name)
    return counts.cells if counts else {}


def _value(placement: object) -> float:
    """Return a placement in the form that the audit reads from a record; -1 if there is none."""
    if isinstance(placement, Depth | Permutation):
        return float(placement.value)
    return float(placement) if isinstance(placement, int | float) else -1.0


def _digest(value: object) -> bytes:
    try:
        return blake2b(to_json(value), digest_size=12).digest()
    except (TypeError, ValueError, RecursionError) as error:
        raise MMLongBenchError(f"a value that is no JSON: {type(error).__name__}") from error
