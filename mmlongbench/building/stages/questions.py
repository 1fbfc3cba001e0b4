"""The questions stage: chooses the rows that are asked about. Nothing here depends on the lengths that are built."""

from array import array
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, TypeAlias

from mmlongbench.building.build_dir import Shard, rows_shard
from mmlongbench.building.dataset import Dataset, StoredRows, row_of
from mmlongbench.building.session import Session
from mmlongbench.building.shard_results import ROWS, Asked, QuestionLine, RowCounts
from mmlongbench.building.stages.rankings import retrieval_counts
from mmlongbench.draft import ContextDraft
from mmlongbench.errors import DraftError, Fault, ManifestError, Rejected, nearest
from mmlongbench.lengths import format_length
from mmlongbench.manifest.binding import calling
from mmlongbench.packing.pack import DoesNotFitError, examples
from mmlongbench.packing.place import Permutation
from mmlongbench.release.lock import QuestionCounts
from mmlongbench.release.rejects import Reject, reject_row
from mmlongbench.task.rows import Row
from mmlongbench.task.take_orders import InOrder

MAX_HELD = 10_000
"""How many rows are held in memory; the others are read again. A row takes about two kilobytes."""


def choose(session: Session, shard: Shard) -> Iterator[QuestionLine]:
    """Choose the questions of a dataset, which are the same in every file: yield a line for each question, then a line
    for each rejected row, both in source order, then a line with the counts.

    Rows are examined in a drawn order until the sample is full, so a larger sample contains every smaller one. The
    results of later stages are removed first, because they belong to an earlier choice.
    """
    dataset, build_dir, name = session.dataset(shard.dataset), session.build_dir, shard.dataset
    build_dir.discard_from("negatives", name)
    with calling("builder", dataset.spec.builder, "selects()"):
        is_asked = dataset.builder.selects(dataset.sources)
        if is_asked is not None and not callable(is_asked):
            raise DraftError(f"returned a {type(is_asked).__name__}, expected a function of a row, or None")
    # Most rows stay on disk, because there may be millions. Readable rows are called by their place among these;
    # `numbers` says which lines of the source they are, and `starts` where they begin in the result of the rows stage.
    numbers, starts = array("q"), array("q")
    held: dict[int, Row] = {}
    rejects: dict[int, Reject] = {}  # by the line of the source
    drawn: list[_Drawn] = []
    kind, sample, draws = dataset.plan.bound.reader_type.row_type, dataset.spec.sample, dataset.sources.sample_draws
    for field in filter(None, (sample.by, sample.stratify)):
        if field not in kind.model_fields:
            hint = nearest(field, kind.model_fields)
            raise ManifestError(f"dataset {name!r}: sample: rows have no field {field!r}{hint}")
    for number, (start, line) in enumerate(build_dir.read_placed(rows_shard(name), ROWS)):
        if isinstance(line, Reject):
            rejects[number] = line
            continue
        row = row_of(line, kind, build_dir, rows_shard(name))
        with calling("builder", dataset.spec.builder, "selects()"):
            if is_asked is None or is_asked(row):
                by, by_id = draws.rank("by", str(getattr(row, sample.by))), draws.rank("id", row.id)
                stratum = str(getattr(row, sample.stratify)) if sample.stratify else ""
                drawn.append((by, by_id, row.id, len(starts), stratum))
                if len(held) < MAX_HELD:
                    held[len(starts)] = row
        numbers.append(number)
        starts.append(start)
    read, rows = len(numbers) + len(rejects), StoredRows(build_dir, name, kind, starts)
    most = len(drawn) if dataset.spec.sample.n is None else dataset.spec.sample.n
    chosen: dict[int, str] = {}
    noted, repaired = Counter[str](), Counter[str]()
    examined = 0
    for place in _in_drawn_order(drawn, dataset):
        if len(chosen) >= most:
            break
        examined += 1
        row = held.pop(place) if place in held else rows[place]
        fault, notes = _admission(row, dataset)
        noted.update(notes)
        if fault:
            rejects[numbers[place]] = reject_row(name, row, fault)
        else:
            chosen[place] = row.id
            repaired.update(row.repairs)
    kept = sorted(chosen.items())
    yield from (Asked(place, id) for place, id in kept)
    yield from (rejects[number] for number in sorted(rejects))
    rejected, skipped = Counter[str](), Counter[str]()
    for reject in rejects.values():
        (skipped if reject.fault.is_expected else rejected)[reject.fault.reason] += 1
    unseen = len(drawn) - examined
    # the lock has these only if they count something
    more: dict[str, Any] = {
        "not_selected": read - len(kept) - len(rejects) - unseen,
        "skipped": dict(sorted(skipped.items())),
        "noted": dict(sorted(noted.items())),
    }
    if dataset.builder.spec.page_rankings:
        ranks = (dataset.sources.page_ranking(id).gold_ranks for _, id in kept)
        more["retrieval"] = retrieval_counts(dataset.spec, ranks)
    counts = QuestionCounts(
        read=read,
        kept=len(kept),
        not_sampled=unseen,
        rejected=dict(sorted(rejected.items())),
        repaired=dict(sorted(repaired.items())),
        **{key: value for key, value in more.items() if value},
    )
    yield RowCounts(counts, build_dir.fingerprint(rows_shard(name)))


_Drawn: TypeAlias = tuple[int, int, str, int, str]
"""What decides when a row is examined: the ranks of its field `sample.by` and of its id, its id, its place, and the
value of its field `sample.stratify`."""


def _in_drawn_order(drawn: list[_Drawn], dataset: Dataset) -> list[int]:
    """Return the places of rows in the order in which they are sampled: rows with the same value of `sample.by` stand
    together, and the values of `sample.stratify` take turns.
    """
    drawn.sort()
    if dataset.spec.sample.stratify is None:
        return [place for _, _, _, place, _ in drawn]
    turns: Counter[str] = Counter()
    spread = []
    for _, _, _, place, stratum in drawn:
        spread.append((turns[stratum], dataset.sources.sample_draws.rank("stratum", stratum), place))
        turns[stratum] += 1
    return [place for _, _, place in sorted(spread, key=lambda entry: entry[:2])]


def _admission(row: Row, dataset: Dataset) -> tuple[Fault | None, tuple[str, ...]]:
    """Draft a row, pack its required units at the admission length, and decode their pictures.

    Return why the row is in no file, for example because its required units do not fit; None if it becomes a question.
    Return also the notes of the draft, even if the row is refused after it was drafted; without a draft, the notes of
    the refusal.
    """
    length, draws = dataset.spec.admission_length, dataset.draws(row.id)
    try:
        with calling("builder", dataset.spec.builder, "draft()", row):
            draft = dataset.draft(row)
            noted = tuple(map(str, draft.noted))
            dataset.checks.check_draft(draft, row)
    except Rejected as error:
        return error.fault, error.noted
    # without other units, there is no passage that a needle sentence could be put into; units are not shown as text, so
    # that releases of images and of text have the same questions
    alone = tuple(replace(unit, between_sentences=False) for unit in draft.required)
    # nor the units that a wording chooses by; room is kept for the costliest one, whichever is chosen
    asked = tuple(
        replace(question, wording=question.wording and replace(question.wording, choose=lambda units: 0))
        for question in draft.questions
    )
    required = replace(
        draft, required=alone, take_order=InOrder(()), rendered_as_text=None, one_of=None, questions=asked
    )
    placements = [  # nor a haystack in which needles could keep a distance
        replace(each, in_order=False, apart=0.0) if isinstance(each, Permutation) else each
        for each in dataset.plan.bound.placements
    ]
    try:
        with calling("builder", dataset.spec.builder, "draft()", row):
            made = examples(required, dataset.budget(length), placements, dataset.pricer, draws)
            if dataset.sources.has_images:
                for path in {path for example in made for path in example.prompt.images}:
                    dataset.sources.images.decode(path)
            return _units_fault(draft, dataset) or _length_fault(draft, dataset), noted
    except Rejected as error:
        return error.fault, noted
    except DoesNotFitError as error:
        todo, expected = "raise admission_length to keep it in longer files", format_length(length)
        return Fault("above-admission-length", f"required units within {expected}", str(error), todo=todo), noted


def _units_fault(draft: ContextDraft, dataset: Dataset) -> Fault | None:
    units = draft.required or draft.take_order.units(dataset.spec.lengths[0])
    if not dataset.plan.corpus and not any(True for _ in units):  # hard negatives are found later
        todo = "correct the row, or how draft() finds its units"
        return Fault("no-units", "units to show", "the draft has no units", todo=todo)
    if draft.one_of is not None and not draft.one_of:
        todo = "correct the row; a draft of which no unit must be shown has no one_of"
        return Fault("not-shown", "units in Draft.one_of", "none", todo=todo)
    return None


def _length_fault(draft: ContextDraft, dataset: Dataset) -> Fault | None:
    span, reference, pricer = dataset.builder.spec.full_prompt, dataset.spec.reference_length, dataset.pricer
    if span is None:
        return None
    separator = pricer.text(draft.separator)
    units = (*draft.required, *draft.take_order.units(reference))
    frame = max(pricer.reserved_frame(draft, question).total for question in draft.questions)
    full = frame - separator + sum(pricer.unit(unit).total + separator for unit in units)
    if reference - span.below <= full <= reference + span.above:
        return None
    expected = f"a full prompt of {reference - span.below} to {reference + span.above} tokens"
    return Fault("full-prompt-out-of-span", expected, f"{full}", todo="set reference_length to keep other lengths")
