"""The questions stage: chooses the rows that are asked about. Nothing here depends on the lengths that are built."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from mmlongbench.building.build_dir import Shard, questions_shard, rows_shard
from mmlongbench.building.dataset import Dataset, row_of
from mmlongbench.building.session import Session
from mmlongbench.building.shard_results import ROWS, Asked, QuestionLine, RowCounts
from mmlongbench.building.stages.rankings import retrieval_counts
from mmlongbench.draft import Draft
from mmlongbench.errors import DraftError, Fault, ManifestError, Rejected, nearest
from mmlongbench.lengths import format_length
from mmlongbench.manifest.binding import calling
from mmlongbench.packing.pack import DoesNotFitError, examples
from mmlongbench.packing.place import Permutation
from mmlongbench.release.lock import QuestionCounts
from mmlongbench.release.rejects import Reject, reject_row
from mmlongbench.task.rows import Row
from mmlongbench.task.take_orders import InOrder


def question_shards(session: Session, name: str) -> list[Shard]:
    """Return one shard for a dataset: the choice depends on all rows."""
    return [questions_shard(name)]


def choose(session: Session, shard: Shard) -> Iterator[QuestionLine]:
    """Choose the questions of a dataset, which are the same in every file: yield a line for each question, then a line
    for each rejected row, both in source order, then a line with the counts.

    Rows are examined in a drawn order until the sample is full, so a larger sample contains every smaller one. The
    results of later stages are removed first, because they belong to an earlier choice.
    """
    dataset, build_dir, name = session.dataset(shard.dataset), session.build_dir, shard.dataset
    build_dir.discard_from("negatives", name)
    # readable rows, and the rejects of the others, by their place in the source
    rows: dict[int, Row] = {}
    rejects: dict[int, Reject] = {}
    kind = dataset.plan.bound.reader_type.row_type
    for number, line in enumerate(build_dir.read(rows_shard(name), ROWS)):
        if isinstance(line, Reject):
            rejects[number] = line
        else:
            rows[number] = row_of(line, kind, build_dir, rows_shard(name))
    readable = {row.id: place for place, row in enumerate(rows.values())}  # places among the readable rows
    place = {row.id: number for number, row in rows.items()}
    read = len(rows) + len(rejects)
    with calling("builder", dataset.spec.builder, "selects()"):
        is_asked = dataset.builder.selects(dataset.sources)
        if is_asked is not None and not callable(is_asked):
            raise DraftError(f"returned a {type(is_asked).__name__}, expected a function of a row, or None")
        if is_asked:
            rows = {number: row for number, row in rows.items() if is_asked(row)}
    most = len(rows) if dataset.spec.sample.n is None else dataset.spec.sample.n
    chosen: set[str] = set()
    noted: Counter[str] = Counter()
    examined = 0
    for row in _drawn_order(list(rows.values()), dataset):
        if len(chosen) >= most:
            break
        examined += 1
        fault, notes = _admission(row, dataset)
        noted.update(notes)
        if fault:
            rejects[place[row.id]] = reject_row(name, row, fault)
        else:
            chosen.add(row.id)
    kept = [row for row in rows.values() if row.id in chosen]
    yield from (Asked(readable[row.id], row.id) for row in kept)
    yield from (rejects[number] for number in sorted(rejects))
    rejected, skipped = Counter[str](), Counter[str]()
    for reject in rejects.values():
        (skipped if reject.fault.is_expected else rejected)[reject.fault.reason] += 1
    unseen = len(rows) - examined
    repaired = Counter(repair for row in kept for repair in row.repairs)
    # the lock has these only if they count something
    more: dict[str, Any] = {
        "not_selected": read - len(kept) - len(rejects) - unseen,
        "skipped": dict(sorted(skipped.items())),
        "noted": dict(sorted(noted.items())),
    }
    if dataset.builder.spec.page_rankings:
        ranks = (dataset.sources.page_ranking(row.id).gold_ranks for row in kept)
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


def _drawn_order(rows: list[Row], dataset: Dataset) -> list[Row]:
    """Return the rows in the order in which they are sampled. Rows with the same value of the field `sample.by` stand
    together, and the values have a drawn order. If `sample.stratify` names a field, the values of that field take
    turns.
    """
    sample, draws = dataset.spec.sample, dataset.sources.sample_draws
    fields = dataset.plan.bound.reader_type.row_type.model_fields
    for field in filter(None, (sample.by, sample.stratify)):
        if field not in fields:
            hint = nearest(field, fields)
            raise ManifestError(f"dataset {dataset.spec.name!r}: sample: rows have no field {field!r}{hint}")
    key = lambda row: (draws.rank("by", str(getattr(row, sample.by))), draws.rank("id", row.id), row.id)  # noqa: E731
    ordered = sorted(rows, key=key)
    if sample.stratify is None:
        return ordered
    turns: Counter[str] = Counter()
    spread = []
    for row in ordered:
        stratum = str(getattr(row, sample.stratify))
        spread.append((turns[stratum], draws.rank("stratum", stratum), row))
        turns[stratum] += 1
    return [row for _, _, row in sorted(spread, key=lambda entry: entry[:2])]


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
    required = replace(draft, required=alone, take_order=InOrder(()), rendered_as_text=None, one_of=(), questions=asked)
    placements = [  # nor a haystack in which needles could keep a distance
        replace(each, in_order=False, apart=0.0) if isinstance(each, Permutation) else each
        for each in dataset.placements()
    ]
    try:
        with calling("builder", dataset.spec.builder, "draft()", row):
            made = examples(required, dataset.budget(length), placements, dataset.pricer, draws)
            if dataset.sources.has_images:
                for path in {path for example in made for path in example.prompt.images}:
                    dataset.sources.images.decode(path)
            return _length_fault(draft, dataset), noted
    except Rejected as error:
        return error.fault, noted
    except DoesNotFitError as error:
        todo, expected = "raise admission_length to keep it in longer files", format_length(length)
        return Fault("above-admission-length", f"required units within {expected}", str(error), todo=todo), noted


def _length_fault(draft: Draft, dataset: Dataset) -> Fault | None:
    """Return a fault if the length of the prompt with all units is not what the task wants (`TaskSpec.full_prompt`)."""
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
