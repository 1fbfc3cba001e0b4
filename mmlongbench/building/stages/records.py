"""The records stage: packs questions into public records and items. It writes integers and paths, no pixels."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain, groupby, islice
from typing import TypeAlias
from urllib.parse import quote

from mmlongbench.building.build_dir import Shard, places_in
from mmlongbench.building.dataset import Dataset
from mmlongbench.building.example_checks import FirstPlacements, draft_fault, unit_fault
from mmlongbench.building.session import TOGETHER, Session
from mmlongbench.building.shard_results import (
    BundledRecord,
    LeftOutUnits,
    PackedRecord,
    RecordLine,
    SharedCounts,
    ShownImages,
)
from mmlongbench.draft import ContextDraft, Draft, Unit
from mmlongbench.draws import Draws
from mmlongbench.errors import DraftError, Fault, Rejected
from mmlongbench.lengths import format_length, parse_length
from mmlongbench.manifest.binding import broken, calling
from mmlongbench.packing.pack import DoesNotFitError, NothingAskedError, PackedExample, examples, pack
from mmlongbench.packing.place import Depth
from mmlongbench.packing.pricing import not_countable
from mmlongbench.prompt import Image
from mmlongbench.release.assets import text_digest
from mmlongbench.release.example_cost import tokens_as
from mmlongbench.release.items import ItemColumns
from mmlongbench.release.rejects import Reject, reject_row
from mmlongbench.task.builder import SharedContextBuilder
from mmlongbench.task.rows import Record, Row
from tokenization import TokenizationError

PackedContext: TypeAlias = tuple[ContextDraft, list[PackedExample] | DoesNotFitError]
PackedLine: TypeAlias = tuple[RecordLine, PackedExample | None]
"""A line, and the example whose record it holds, if any."""


def record_shards(session: Session, name: str) -> list[Shard]:
    """Return the shards of all lengths of a dataset (see `Session.record_shards`)."""
    return session.record_shards(name, session.plans[name].spec.lengths)


def pack_block(session: Session, shard: Shard) -> Iterator[RecordLine]:
    """Pack a block of questions at a length.

    The last line lists all images and texts that they show, so that these are known without reading the other lines.
    """
    dataset = session.dataset(shard.dataset)
    cell, block = shard.name.split("/")
    rows = session.questions(shard.dataset)[slice(None) if block == TOGETHER else places_in(block)]
    pages: set[str] = set()
    texts: set[tuple[str, int, str]] = set()
    pictures: dict[str, set[str]] = {}
    before: dict[int, Unit] = {}  # other placements of a question show the same units
    for line, example in pack_rows(dataset, rows, parse_length(cell)):
        if example and dataset.sources.has_images:
            for path in example.prompt.images:
                if origin := dataset.sources.images.origin(path):
                    pictures.setdefault(path, set()).add(origin)
        if example and isinstance(line, PackedRecord):
            pages.update(filter(None, line.items["image"] or ()))
            known, before = before, dict(zip(map(id, example.units), example.units, strict=True))
            for unit in map(before.__getitem__, before.keys() - known.keys()):
                if isinstance(unit.body, str):
                    said = [part for part in unit.parts if isinstance(part, str)] if unit.turns else [unit.body]
                    chars, digest = text_digest(next(iter(said), ""))
                    texts.add((unit.id, chars, digest.hex()))
                if unit.further or unit.turns:
                    pages.update(unit.images)  # crops of a page, pictures of turns
        yield line
    origins = {path: sorted(names) for path, names in sorted(pictures.items())}
    yield ShownImages(sorted(pages - pictures.keys()), origins, sorted(texts))


def pack_rows(dataset: Dataset, rows: Sequence[Row], length: int) -> Iterator[PackedLine]:
    """Pack some questions at a length. If questions share contexts, `rows` must be all questions."""
    if isinstance(dataset.builder, SharedContextBuilder):
        yield from _pack_shared(dataset, rows, length)
        return
    first: FirstPlacements = {}
    for row in rows:
        try:
            made = pack_row(dataset, row, length)
            lines = [_packed_record(dataset, example, row, first) for example in made]
        except (DoesNotFitError, Rejected) as error:
            yield _reject(dataset, row, error, length), None
        else:
            yield from zip(lines, made, strict=True)
            # left-out units belong to the context, which is the same at every placement
            yield LeftOutUnits(dict(made[0].left_out)), None


def pack_row(dataset: Dataset, row: Row, length: int) -> list[PackedExample]:
    """Return all examples of a row at a length, unless it is left out at all lengths."""
    if dataset.builder.may_reject_everywhere and (fault := _everywhere_fault(dataset, row)):
        raise Rejected(fault)
    return _pack_row(dataset, row, length)


def _pack_row(dataset: Dataset, row: Row, length: int) -> list[PackedExample]:
    with calling("builder", dataset.spec.builder, "draft()", row):
        draft = dataset.draft(row)
        made = _examples(dataset, draft, dataset.draws(row.id), length)
        if not made[0].units:
            raise DoesNotFitError(f"{draft.id}: none of its units fits")
        return made


def _everywhere_fault(dataset: Dataset, row: Row) -> Fault | None:
    """Return why a question is left out of the files of all lengths: the reason at the shortest length that has one. A
    process tries the lengths once for each question.
    """
    if row.id in dataset.left_out:
        return dataset.left_out[row.id]
    fault = None
    for length in sorted(dataset.spec.lengths):
        try:
            for example in _pack_row(dataset, row, length):
                with calling("builder", dataset.spec.builder, "record()", row):
                    dataset.builder.record(example)
        except (DoesNotFitError, Rejected) as error:
            if isinstance(error, Rejected) and error.everywhere:
                fault = replace(error.fault, expected=f"{error.fault.expected} at {format_length(length)}")
                break
    return dataset.left_out.setdefault(row.id, fault)


def _pack_shared(dataset: Dataset, rows: Sequence[Row], length: int) -> Iterator[PackedLine]:
    """Yield the lines of all shared contexts at a length. Each question has a record, made from its home context
    (`Question.is_home`). If the costliest question of a context has another home, it also has a `BundledRecord` from
    this context.
    """
    place = {row.id: number for number, row in enumerate(rows)}
    released: list[PackedExample] = []
    rejected = 0
    for context, packed in pack_contexts(dataset, rows, length):
        if isinstance(packed, NothingAskedError):
            continue
        if isinstance(packed, DoesNotFitError):
            groups = context.take_order.groups(length) or frozenset()
            for question in context.questions:
                if question.is_home and (question.group is None or question.group in groups):
                    rejected += 1
                    yield _reject(dataset, rows[place[question.id]], packed, length), None
            continue
        costliest = max(packed, key=lambda example: (example.count.total, example.id))
        released += [example for example in packed if example.question.is_home or example is costliest]
        yield LeftOutUnits(dict(costliest.left_out)), None
    missing = {context.family: context.take_order.missing_groups(length) for context in _contexts(dataset, rows)}
    first: FirstPlacements = {}
    # sets, because a question has one example for each placement
    asked, refused = set[str](), set[str]()
    for example in sorted(released, key=lambda example: place[example.id]):
        row, is_home = rows[place[example.id]], example.question.is_home
        line: PackedRecord | BundledRecord
        try:
            if is_home:
                line = _packed_record(dataset, example, row, first)
                asked.add(example.id)
            else:
                line = BundledRecord(released_record(dataset, example, row)[0])
        except Rejected as error:
            if error.everywhere:
                todo = "use Rejected(…) without everywhere=True"
                fault = f"questions that share contexts are left out at one length alone; {todo}"
                raise broken("builder", dataset.spec.builder, "record()", fault, row) from error
            if is_home and example.id not in refused:
                refused.add(example.id)
                yield _reject(dataset, row, error, length), None
        else:
            yield line, example
    yield SharedCounts(len(rows) - rejected - len(asked | refused), sum(missing.values())), None


def pack_contexts(dataset: Dataset, rows: Sequence[Row], length: int) -> Iterator[PackedContext]:
    """Yield each shared context at a length with its examples, or why it has none. Contexts with the same
    `Draft.family` show the same groups (`Question.group`); they show more groups if one of them runs out of units, and
    the smallest of them grows by that.
    """

    def pack_context(draft: ContextDraft) -> list[PackedExample] | DoesNotFitError:
        try:
            with calling("builder", dataset.spec.builder, "contexts()", about=f"context {draft.id!r}"):
                return _examples(dataset, draft, dataset.sources.draws.at(draft.id), length)
        except DoesNotFitError as error:
            return error
        except Rejected as error:  # a picture has been removed since the questions were chosen
            return DoesNotFitError(f"{draft.id}: {error.fault}")

    def fewest_units(contexts: list[list[PackedExample] | DoesNotFitError]) -> int:
        """Return how many units the smallest context shows; 0 if a context does not fit."""
        return min((len(context[0].units) if isinstance(context, list) else 0 for context in contexts), default=0)

    for _, family in groupby(_contexts(dataset, rows), key=lambda context: context.family):
        drafts = list(family)
        packed = [pack_context(draft) for draft in drafts]
        while fewest_units(packed) and any(isinstance(context, list) and context[0].ran_dry for context in packed):
            wide = wider(dataset, drafts, length)
            wide_packed = [pack_context(draft) for draft in wide]
            if fewest_units(wide_packed) <= fewest_units(packed):
                break
            drafts, packed = wide, wide_packed
        yield from zip(drafts, packed, strict=True)


def _contexts(dataset: Dataset, rows: Sequence[Row]) -> list[ContextDraft]:
    builder = dataset.builder
    if not isinstance(builder, SharedContextBuilder):
        return []
    with calling("builder", dataset.spec.builder, "contexts()"):
        contexts: list[ContextDraft] = list(builder.contexts(rows, dataset.sources)) if rows else []
        fault = next(filter(None, map(draft_fault, contexts)), "")
        if any(isinstance(context, Draft) for context in contexts):
            fault = (
                "returned an mt.Draft, expected an mt.advanced.ContextDraft; `self.shared(id, draft, rows)` makes one"
            )
    asked = (question.id for context in ([] if fault else contexts) for question in context.questions)
    if unknown := sorted({*asked} - {row.id for row in rows}):
        fault = f"the question {unknown[0]!r} belongs to no row"
    if not fault and (some := next((context.id for context in contexts if context.one_of), "")):
        fault = f"the context {some!r} has one_of, which is for questions that share no context; require its units"
    if fault:
        raise broken("builder", dataset.spec.builder, "contexts()", fault)
    return contexts


def wider(dataset: Dataset, drafts: list[ContextDraft], length: int) -> list[ContextDraft]:
    """Add as few groups to the drafts as possible so that no context runs out of units, and return these drafts.
    If contexts run out with any number of groups, drafts are compared by the number of units in their smallest context.
    Then return the drafts with the largest number, or an empty list if added groups do not raise it.

    To try a number of groups, every context is packed again, so the number is found in steps that double and then
    halve.
    """
    steps = [drafts]  # the drafts with 0, 1, 2 … groups added; empty where the source has too few groups

    def packed_units(groups: int) -> tuple[int, bool]:
        """Return the number of units in the context with the fewest, and whether any context runs out of units; 0 and
        False if a context does not fit.
        """
        while len(steps) <= groups and steps[-1]:
            take_orders = [draft.take_order.wider(length) for draft in steps[-1]]
            pairs = zip(steps[-1], take_orders, strict=True)
            more = [replace(draft, take_order=take_order) for draft, take_order in pairs if take_order]
            steps.append(more if len(more) == len(take_orders) else [])
        try:
            step = steps[groups] if groups < len(steps) else []
            packed = [pack(draft, dataset.budget(length), dataset.pricer) for draft in step]
        except (DoesNotFitError, Rejected):
            return 0, False
        return min((len(context.units) for context in packed), default=0), any(context.ran_dry for context in packed)

    low, high, stride, full = 0, 0, 1, 0
    best = (packed_units(0)[0], 0)
    while not high or high - low > 1:
        middle = (low + high) // 2 if high else low + stride
        units, is_dry = packed_units(middle)
        best = max(best, (units, -middle))  # prefer more units, then fewer groups
        if is_dry:
            low, stride = middle, 2 * stride
        else:
            high, full = middle, units
    if full:
        return steps[high]
    return steps[-best[1]] if best[1] else []


def _examples(dataset: Dataset, draft: ContextDraft, draws: Draws, length: int) -> list[PackedExample]:
    """Return the examples of a draft; a unit whose picture cannot be decoded is excluded, and the next unit is taken
    instead. If such a picture is required, or part of the instruction or a question, raise an error.
    """
    faults: dict[str, str] = {}
    required = {path for unit in draft.required for path in unit.images}
    around = chain(draft.instruction, *(question.parts for question in draft.questions))
    asked = {part.path for part in around if isinstance(part, Image)}
    while True:
        whole = replace(draft, left_out=faults) if faults else draft
        try:
            packed = examples(whole, dataset.budget(length), dataset.plan.bound.placements, dataset.pricer, draws)
        except (AttributeError, TypeError, ValueError) as error:
            units = islice(draft.take_order.units(length), 10_000)
            if fault := next(filter(None, map(unit_fault, units)), ""):
                raise DraftError(fault) from error
            raise
        if not dataset.sources.has_images:
            return packed
        parts = (part for example in packed for part in example.question.parts)
        shown = {*packed[0].prompt.images, *(part.path for part in parts if isinstance(part, Image))}
        undecodable = {path: fault for path in sorted(shown) if (fault := dataset.sources.images.fault_of(path))}
        if not undecodable:
            return packed
        if changed := (required | asked) & undecodable.keys():
            # it could be decoded before, so it has changed
            raise DoesNotFitError(f"{draft.id}: {min(changed)} cannot be decoded")
        faults |= undecodable


def _reject(dataset: Dataset, row: Row, error: DoesNotFitError | Rejected, length: int) -> Reject:
    if isinstance(error, Rejected):
        return reject_row(dataset.spec.name, row, error.fault, length)
    todo = "lower admission_length to leave the question out of all files"
    fault = Fault("does-not-fit", f"a prompt within {format_length(length)}", str(error), todo=todo)
    return reject_row(dataset.spec.name, row, fault, length)


def _packed_record(dataset: Dataset, example: PackedExample, row: Row, first: FirstPlacements) -> PackedRecord:
    record, line = released_record(dataset, example, row)
    dataset.checks.check_placements(example, record, row, first)
    return PackedRecord(_items(example), example.ran_dry, example.missing, line)


def released_record(dataset: Dataset, example: PackedExample, row: Row) -> tuple[Record, bytes]:
    """Return the record of an example and its line, after checking that the record gives the packed prompt and has what
    scoring needs.
    """
    dataset.checks.check_units(example, row)
    with calling("builder", dataset.spec.builder, "record()", row):
        record = finished_record(dataset, example)
    return record, dataset.checks.check_record(example, record, row)


def finished_record(dataset: Dataset, example: PackedExample) -> Record:
    """Return the record of a builder, with its length, tokens and needle positions added."""
    record = dataset.builder.record(example)
    count, placement = example.count, example.placement
    tokens: dict[str, object] = {"text": count.text, "image": count.image, "reserve": example.reserve}
    if further := dataset.plan.bound.count_as:
        try:
            tokens["as"] = tokens_as(further, example.prompt, dataset.sources.sizes)
        except TokenizationError as error:
            raise Rejected(not_countable(error, further.values())) from error
    added: dict[str, object] = {"length": count.total, "tokens": tokens}
    if dataset.canary:
        added["canary"] = dataset.canary
    if placement is not None:
        added[placement.field] = placement.value
        is_single = isinstance(placement, Depth)
        achieved, starts = ([getattr(n, key) for n in example.needles] for key in ("achieved", "start"))
        added["depth_achieved"] = achieved[0] if is_single else achieved
        added["needle_start"] = starts[0] if is_single else starts
        if not is_single:
            added["depth_requested"] = [needle.requested for needle in example.needles]
    if clash := sorted(added.keys() & record.keys()):
        raise DraftError(f"{example.id}: the record of a builder holds {clash[0]!r}, which the engine adds")
    return {**record, **added}


def _items(example: PackedExample) -> ItemColumns:
    units, counts = example.units, example.counts
    # blanks separate the ids, so blanks and percent signs within an id are escaped as in a URL
    inside = {
        place: " ".join(
            "".join(quote(char) if char.isspace() or char == "%" else char for char in needle.id)
            for needle in unit.needles
        )
        for place, unit in enumerate(units)
        if unit.needles
    }
    has_images = example.count.image > 0 or any(isinstance(unit.body, Image) for unit in units)
    return {
        "id": example.id,
        "placement": None if example.placement is None else float(example.placement.value),
        "unit": [unit.id for unit in units],
        "role": [unit.role for unit in units],
        "inside": [inside.get(place, "") for place in range(len(units))] if inside else "",
        "image": [unit.body.path if isinstance(unit.body, Image) else None for unit in units] if has_images else None,
        "start": [*example.starts],
        "text_tokens": [count.text for count in counts],
        "image_tokens": [count.image for count in counts] if has_images else 0,
    }
