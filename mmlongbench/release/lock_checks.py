"""Checks a release against its lock: that the parts of the lock fit each other and the rejects (versions, code of
plug-ins, counts, placements), and that the records agree with their prompts, their items, and each other.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path
from typing import TypeAlias
from urllib.parse import unquote

from pydantic import TypeAdapter, ValidationError

from mmlongbench.draws import Draws
from mmlongbench.errors import ManifestError, MMLongBenchError, ReleaseError, error_text
from mmlongbench.io.files import MAX_OF_A_FILE, Links
from mmlongbench.lengths import format_length
from mmlongbench.manifest.binding import placements_of
from mmlongbench.manifest.model import SAMPLE
from mmlongbench.manifest.plugins import ENGINE, PluginCode
from mmlongbench.manifest.strict_model import explain
from mmlongbench.manifest.task_files import task_file
from mmlongbench.packing.place import Depth, Permutation, Placement
from mmlongbench.release.assets import ASSETS, KnownAssets, resolve
from mmlongbench.release.example_cost import ExampleCost
from mmlongbench.release.file_audit import UNREADABLE, Facts, FileAudit, Finding
from mmlongbench.release.items import Item, ItemReader, NoItemError, items_path
from mmlongbench.release.layout import DATA, LOCK, REJECTS
from mmlongbench.release.lock import MAKERS, CellCounts, DatasetCounts, Lock, UnreadableCounts, problem_of
from mmlongbench.release.positions import (
    FoundNeedle,
    Haystack,
    Layout,
    is_needle,
    items_faults,
    numbers_of,
    placement_faults,
)
from mmlongbench.release.read_dataset import ReadDataset
from mmlongbench.release.release import PublicFile, Release
from mmlongbench.task.builder import SharedContextBuilder
from mmlongbench.task.file_formats import JSON_LINES, to_json
from mmlongbench.task.rows import Record

RejectKey: TypeAlias = tuple[str, str, int | None]
"""The dataset, the id and the length of a reject; the length is None for a row that is in no file."""
_CODE: TypeAdapter[dict[str, PluginCode]] = TypeAdapter(dict[str, PluginCode])
_SHA256 = re.compile(r"[0-9a-f]{64}")


def audit_lock(opened: Release) -> list[FileAudit]:
    """Compare the parts of a lock with each other and with the rejects; a changed file of rejects is not compared.

    Returns a list with one entry if something differs, and an empty list otherwise.
    """
    lock, root = opened.lock, opened.path
    described = lock.files.get(REJECTS)
    is_damaged = described is None or problem_of(Links(root), REJECTS, described) is not None
    found = FileAudit(LOCK, 0)
    rejects = None
    try:
        rejects = None if is_damaged else rejects_of(root)
    except ReleaseError as error:
        found.problem("the rejects are not compared", str(error))
    for kind, where in _faults(lock, [opened.dataset(name) for name in opened.datasets], rejects):
        found.problem(kind, where)
    return [found] if found.problems else []


def rejects_of(release: Path) -> tuple[RejectKey, ...]:
    """Return (dataset, id, length) of each readable line of the rejects, which have a line for each row of one id; a
    `ReleaseError` if the file is too large to be read.
    """
    found: list[RejectKey] = []
    path = release / REJECTS
    if not path.is_file():
        return ()
    if (size := path.stat().st_size) > MAX_OF_A_FILE:
        raise ReleaseError(f"{REJECTS}: {size:,} bytes, at most {MAX_OF_A_FILE:,} are read")
    for _, line in JSON_LINES.read(path):
        if isinstance(line, dict):
            length = line.get("length")
            found.append((str(line.get("dataset")), str(line.get("id")), length if isinstance(length, int) else None))
    return tuple(found)


def _faults(lock: Lock, datasets: Sequence[ReadDataset], rejects: Sequence[RejectKey] | None) -> Iterator[Finding]:
    """Yield the entries of a lock that are impossible; with None, the rejects are not compared.

    Older locks name no code, so a lock may do without it if no dataset names its code and none was built with a task
    file: nothing finds that the code of installed plug-ins was taken out of all datasets.
    """
    engine = lock.versions.get(ENGINE)
    # other versions may use other packages
    makers = MAKERS if engine == version(ENGINE) else (ENGINE, *lock.versions)
    if missing := [name for name in makers if not isinstance(lock.versions.get(name), str)]:
        yield "versions: expected the version of each package that makes bytes", f"none of {missing[0]}"
    if REJECTS not in lock.files:
        yield "the lock names no file of rejects, which every build writes", REJECTS
    names = [dataset.spec.name for dataset in datasets]
    if sorted(lock.datasets) != sorted(names):
        other = sorted(set(lock.datasets) ^ set(names))
        yield "the datasets that are counted are not those of the manifest", ", ".join(other)[:200]
    names_code = any("code" in data for data in lock.manifest)
    for data in lock.manifest:
        if names_code or any(task_file(str(data.get(kind))) for kind in ("builder", "reader")):
            for fault in _code_faults(data, str(engine)):
                yield "the code of the plug-ins is not that of the manifest", f"{data.get('name')}: {fault}"
    for dataset in datasets:
        counts = lock.datasets.get(dataset.spec.name)
        if isinstance(counts, UnreadableCounts):
            yield "the counts cannot be read", f"{dataset.spec.name}: {counts.fault}"
        elif counts:
            yield from _count_faults(dataset, counts, lock, rejects)


def _code_faults(data: Mapping[str, object], engine: str) -> Iterator[str]:
    try:
        code = _CODE.validate_python(data.get("code"))
    except ValidationError as error:
        yield f"code: {explain(error, '', PluginCode, [])[2:]}"
        return
    wanted = {"builder": data.get("builder"), "reader": data.get("reader")}
    if data.get("source") == SAMPLE:
        wanted["sample"] = data.get("reader")
    for kind in (*wanted, "metric"):
        if (plugin := code.get(kind)) is None:
            yield f"none is named for the {kind}"
        elif kind in wanted and plugin.name != wanted[kind]:
            yield f"{kind} {wanted[kind]!r}, found {plugin.name!r}"
        elif plugin.distribution == ENGINE and (plugin.version != engine or plugin.sha256):
            yield f"{kind}: expected version {engine} of the engine, found {plugin.version}"
        elif plugin.distribution != ENGINE and not _SHA256.fullmatch(plugin.sha256):
            yield f"{kind}: expected a SHA-256, found {plugin.sha256!r:.80}"


def _count_faults(
    dataset: ReadDataset, counts: DatasetCounts, lock: Lock, rejects: Sequence[RejectKey] | None
) -> Iterator[Finding]:
    spec, questions = dataset.spec, counts.questions
    try:
        placements = len(placements_of(spec, dataset.builder))
    except ManifestError as error:
        yield "the placements of the lock are not valid", str(error)
        return
    if sorted(counts.cells) != sorted(map(format_length, spec.lengths)):
        where = f"{spec.name}: {', '.join(counts.cells)}"
        yield "the lengths that are counted are not those of the manifest", where
    rejected = Counter(length for name, _, length in rejects or () if name == spec.name)
    for length in spec.lengths:
        cell = counts.cells.get(format_length(length))
        if cell is None:
            continue
        where, examples, dry = f"{spec.name} {format_length(length)}", cell.examples, cell.ran_dry
        if dry > examples or (not dry and cell.missing_units):
            said = f"{dry} of {examples}, {cell.missing_units} units missing"
            yield "the count of examples that ran out of units is impossible", f"{where}: {said}"
        expected = (questions.kept - cell.rejected - cell.not_asked) * placements
        if examples != expected:
            said = f"{examples} examples, {questions.kept} questions at {placements} placements give {expected}"
            yield "the number of examples does not fit the number of questions", f"{where}: {said}"
        public = dataset.builder.spec.files.write(spec.name, length, questions.kept, placements)
        if (f"{DATA}/{public}" in lock.files) != (examples > 0):
            yield "the files of the lock are not those of its counts", f"{where}: {examples} examples"
        if rejects is not None and cell.rejected != rejected[length]:
            yield "the rejects are not those of the lock", f"{where}: {rejected[length]} against {cell.rejected}"
    rows = sum(questions.rejected.values()) + sum(questions.skipped.values())
    if rejects is not None and rejected[None] != rows:
        yield "the rejects are not those of the lock", f"{spec.name}: rows"


# The records

ITEMS_DIFFER = "the items differ from the prompt"
ITEMS_UNREADABLE = "the items of the file cannot be read"
PLACEMENT = "the placement differs from the prompt"
NEEDLES_DIFFER = "the needles differ from the prompt"
_TINY = 1e-9
"""Fractions that differ by this or less count as equal, because a record may have another notation."""


class RecordChecks:
    """Checks the records of one file of a release, one after another in the order of the file."""

    def __init__(self, file: PublicFile, dataset: ReadDataset, release: Release) -> None:
        """Prepare to check the records of a file of a release that has a lock."""
        self._file, self._dataset, self.facts = file, dataset, Facts()
        self._placements: tuple[Placement, ...]
        try:
            self._placements = placements_of(dataset.spec, dataset.builder)
        except ManifestError:  # which `audit_lock` reports
            own = dataset.builder.spec.placements
            self._placements = own.all() if own else (None,)
        self._items, self._lacks_items = None, False
        if not file.is_bundle and items_path(release.path, file.name).is_file():
            cell = release.lock.cell(dataset.name, file.length)
            self._items = ItemReader(release.path, file.name, file.length, examples=cell.examples if cell else 0)
        elif not file.is_bundle:
            self._lacks_items = not release.is_publication
        self._assets = KnownAssets.of(release.path, dataset.name) if ASSETS in release.lock.files else None
        self._seen: set[tuple[str, float | None, int | None]] = set()
        counter = dataset.counter
        merges = f"not compared, for the tokenizer {dataset.tokenizer} may merge texts across newlines"
        if counter.text.additive:
            merges = "not compared, for the tokens of a model's prompt are no sum of those of its parts"
        self.unplaced = "" if counter.additive else merges
        """Why the positions are not counted again; empty if they are counted."""

    def look(self, record: Record, cost: ExampleCost) -> Iterator[Finding]:
        """Yield what is wrong with one record: (kind of problem, more about it, which may be empty)."""
        facts, builder = self.facts, self._dataset.builder
        facts.lines += 1
        images = cost.prompt.images
        facts.shown.update(images)
        if balance := builder.spec.balance:
            facts.balanced[str(record.get(balance))] += 1
        key = (cost.id, cost.placement, cost.set if self._file.is_bundle else None)
        if key in self._seen:
            yield "two examples of one id and placement", ""
        self._seen.add(key)
        facts.placements.setdefault(cost.id, []).append(cost.placement)
        if turned := [path for path in images if path in self._file.sizes.turned]:
            yield "an image depends on its EXIF orientation, which a build takes away", turned[0]

        gold = builder.answer_of(record)
        if gold is None or (gold in ("", []) and not builder.spec.may_lack_answers):
            yield "the record has no answer", cost.id
        question = f"{cost.id} {cost.placement}" if builder.spec.is_answer_of_context else cost.id
        if facts.answers.setdefault(question, _digest(gold)) != _digest(gold):
            yield "the answer differs from another placement", cost.id
        if (needles := builder.needles(record)) is not None:
            digest = _digest(sorted(map(str, needles)))
            if facts.needles.setdefault(cost.id, digest) != digest:
                yield "the needles differ from another placement", cost.id

        try:
            items = self._items.of(cost.id, cost.placement) if self._items else ()
        except NoItemError as error:
            yield ITEMS_DIFFER, str(error)
            return
        except UNREADABLE as error:
            yield ITEMS_UNREADABLE, error_text(error)
            self._items = None
            return
        if self._items and not items:
            yield "the items of an example are missing", ""
        if self._assets and not self._assets.fault:
            yield from resolve(items, cost.prompt, self._assets, facts)
        try:
            if items:
                yield from self._positions(record, cost, items)
        except UNREADABLE as error:  # only this example is skipped
            yield ITEMS_DIFFER, error_text(error)

    def end(self, examples: int) -> Iterator[Finding]:
        """Yield what is wrong with the file as a whole, which has `examples` examples."""
        self.facts.is_read, self.facts.lines = self.facts.lines == examples > 0, examples
        if self._lacks_items:
            yield "the items of the file are missing", "the whole file"
        if not self.facts.is_read:  # examples that could not be read have been reported
            return
        try:
            if left := self._items.left() if self._items else "":
                yield "items of examples that the file does not have", left
        except UNREADABLE as error:
            yield ITEMS_UNREADABLE, error_text(error)
        wanted = sorted(map(_value, self._placements))
        for id, placements in () if self._file.is_bundle else self.facts.placements.items():
            if sorted(map(_value, placements)) != wanted:
                at = ", ".join(map(str, placements))
                yield "a question does not have one example at each placement of the lock", f"{id}: at {at}"

    def _positions(self, record: Record, cost: ExampleCost, items: Sequence[Item]) -> Iterator[Finding]:
        counter, layout = self._dataset.counter, None
        if counter.additive:
            layout = Layout(items, cost, counter, is_by_line=self.facts.is_by_line)
            self.facts.is_by_line |= layout.is_surely_by_line
            if layout.may_be_by_line and not layout.is_by_line:
                self.facts.astray = self.facts.astray or cost.id
        yield from ((ITEMS_DIFFER, fault) for fault in items_faults(items, layout, cost.prompt))
        if cost.placement is None:
            return
        placement = next((each for each in self._placements if _value(each) == cost.placement), None)
        if placement is None:
            yield PLACEMENT, f"{cost.placement} is no placement of the lock"
            return
        needles: list[FoundNeedle] | None = None  # where positions are not counted again
        if layout is not None:
            parts = self._dataset.builder.needles(record)
            try:
                if parts is not None or not any(item.get("inside") for item in items):
                    needles = layout.find(None if parts is None else tuple(parts))
            except ReleaseError as error:
                yield NEEDLES_DIFFER, str(error)
                return
        ids: list[str] = []  # of the needles in reading order
        for item in items:
            ids += [item["unit"]] if is_needle(item) else map(unquote, (item.get("inside") or "").split())
        if needles is not None and len(ids) != len(needles):
            yield NEEDLES_DIFFER, f"the items have {len(ids)} needles, the record {len(needles)}"
            return
        if isinstance(placement, Permutation):
            yield from self._drawn_faults(record, cost.id, placement, ids, needles)
        if needles is not None:
            hay = Haystack.of(needles, items)
            yield from ((PLACEMENT, fault) for fault in placement_faults(record, needles, hay, placement))

    def _drawn_faults(
        self, record: Record, id: str, placement: Permutation, ids: Sequence[str], needles: Sequence[FoundNeedle] | None
    ) -> Iterator[Finding]:
        """Yield what is wrong with the requested depths of a permutation. One depth is drawn for each needle.

        `ids` are the ids of the needles in reading order. Where questions share a context, the draws depend on the
        context's name, which is not in the record. Then only the number of depths is compared.
        """
        requested, spec = record.get("depth_requested"), self._dataset.spec
        if not isinstance(requested, list) or len(requested) != len(ids):
            yield PLACEMENT, f"depth_requested is {requested!r:.80}, the context has {len(ids)} needles"
            return
        if isinstance(self._dataset.builder, SharedContextBuilder):
            return
        draws, starts = Draws((spec.seed, spec.drawn_name, id)), record.get("needle_start")
        drawn = placement.depths(ids, draws)
        numbers = numbers_of(starts, needles) if needles is not None and isinstance(starts, list) else []
        placed = [number for number in numbers if number is not None]
        is_in_order = len(placed) == len(ids)  # otherwise the starts are wrong, which is reported
        wanted = [drawn[number] for number in placed] if is_in_order else sorted(drawn)
        given = requested if is_in_order else sorted(requested)
        if any(abs(float(one) - other) > _TINY for one, other in zip(given, wanted, strict=True)):
            drawn_for = f"drawn for permutation {placement.value} are {wanted!r:.80}"
            yield PLACEMENT, f"depth_requested is {requested!r:.80}, {drawn_for}"


def compare_files(audits: Iterable[tuple[PublicFile, FileAudit]], lock: Lock, rejected: Set[RejectKey] | None) -> None:
    """Add to the audits of files how the files of one dataset differ from each other and from the lock; files without
    facts are left out. `rejected` has (dataset, id, length) of the rejects; None if they cannot be read.
    """
    datasets: dict[str, list[tuple[PublicFile, FileAudit, Facts]]] = {}
    for file, audit in audits:
        if file.dataset and audit.facts:
            datasets.setdefault(file.dataset.name, []).append((file, audit, audit.facts))
    for name, group in datasets.items():
        records = [(file, facts) for file, _, facts in group if not file.is_bundle]
        is_by_line = any(facts.is_by_line for _, facts in records)
        known = {id for _, facts in records for id in facts.placements}
        counts = lock.counts(name)
        cells = counts.cells if counts else {}
        asks_all = not any(cell.not_asked for cell in cells.values())
        for file, audit, facts in group:
            is_of_context = file.dataset is not None and file.dataset.builder.spec.is_answer_of_context
            if file.is_bundle or not is_of_context:
                pool = [other for other in records if not is_of_context or other[0].length == file.length]
                for kind, where in _unlike(file, facts, pool):
                    audit.problem(kind, where)
            if file.is_bundle:
                continue
            if facts.astray and is_by_line:
                where = f"{facts.astray}: units do not begin lines, but do so in other examples"
                audit.problem(ITEMS_DIFFER, where)
            for kind, where in _miscounted(file, facts, cells.get(format_length(file.length))):
                audit.problem(kind, where)
            if rejected is not None and asks_all and facts.is_read:
                absent = sorted(known - facts.placements.keys())
                if (id := next((id for id in absent if (name, id, file.length) not in rejected), None)) is not None:
                    audit.problem("a question of another length is missing", id)


def _unlike(file: PublicFile, facts: Facts, pool: Sequence[tuple[PublicFile, Facts]]) -> Iterator[Finding]:
    """Yield the first question whose answer differs from that in another file, and the first whose needles differ."""
    kinds = {"answers": "the answer of a question differs", "needles": "the needles of a question differ"}
    for digests, kind in kinds.items():
        ours = getattr(facts, digests)
        for other, its in pool:
            theirs = getattr(its, digests)
            differing = (id for id, digest in ours.items() if theirs.get(id, digest) != digest)
            if other is not file and (id := next(differing, None)) is not None:
                yield f"{kind} between files", f"{id.split(' ')[0]}: from {other.name}"
                break


def _miscounted(file: PublicFile, facts: Facts, cell: CellCounts | None) -> Iterator[Finding]:
    if cell is None:
        yield "the lock counts nothing of this length", format_length(file.length)
        return
    if cell.examples != facts.lines and not (file.is_part and facts.lines < cell.examples):
        yield "the number of examples differs from the lock", f"{facts.lines} against {cell.examples}"
    balance = file.dataset.builder.spec.balance if file.dataset else ""
    if balance and facts.is_read and not file.is_part and cell.balances.get(balance) != dict(facts.balanced):
        counted = f"{dict(sorted(facts.balanced.items()))!r:.100}"
        yield f"the counts by {balance} differ from the lock", f"{counted} against {cell.balances.get(balance)!r:.100}"


def _value(placement: Placement | float) -> float:
    """Return a placement in the form that the audit reads from a record; -1 if there is none."""
    if isinstance(placement, Depth | Permutation):
        return float(placement.value)
    return -1.0 if placement is None else float(placement)


def _digest(value: object) -> bytes:
    try:
        return blake2b(to_json(value), digest_size=12).digest()
    except (TypeError, ValueError, RecursionError) as error:
        raise MMLongBenchError(f"a value that is no JSON: {type(error).__name__}") from error
