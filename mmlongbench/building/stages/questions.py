"""The questions stage: chooses the rows that are asked about. Nothing here depends on the lengths that are built."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from mmlongbench.building.build_dir import BuildDir, Shard, questions_shard, rows_shard
from mmlongbench.building.dataset import Dataset, row_of, sample_draws
from mmlongbench.building.lines import ROWS, Asked, QuestionLine, RowCounts
from mmlongbench.building.session import Session
from mmlongbench.building.shortfalls import reject_row
from mmlongbench.building.stages.checks import check_draft
from mmlongbench.building.stages.rankings import retrieval_counts
from mmlongbench.draft import Draft
from mmlongbench.draws import Draws
from mmlongbench.errors import DraftError, Fault, ManifestError, Rejected, nearest
from mmlongbench.lengths import format_length
from mmlongbench.manifest.binding import calling
from mmlongbench.packing.pack import DoesNotFitError, PackedExample, examples
from mmlongbench.release.lock import QuestionCounts
from mmlongbench.release.rejects import Reject
from mmlongbench.task.rows import Row
from mmlongbench.task.take_orders import InOrder


def question_shards(session: Session, name: str) -> list[Shard]:
    """Return one shard for a dataset: the choice depends on all rows."""
    return [questions_shard(name)]


def choose(session: Session, shard: Shard) -> Iterator[QuestionLine]:
    """Choose the questions of a dataset, which are the same in every file. First remove the results of later stages,
    because they belong to an earlier choice.
    """
    session.build_dir.discard_from("negatives", shard.dataset)
    yield from choose_rows(session.dataset(shard.dataset), session.build_dir)


def choose_rows(dataset: Dataset, build_dir: BuildDir) -> Iterator[QuestionLine]:
    """Yield a line for each question, then a line for each rejected row, both in source order, then a line with the
    counts.

    Rows are examined in a drawn order until the sample is full, so a larger sample contains every smaller one.
    """
    name = dataset.spec.name
    rows, rejects = _read(dataset, build_dir)
    places = {row.id: number for number, row in enumerate(rows.values())}
    read = len(rows) + len(rejects)
    with calling("builder", dataset.spec.builder, "selects()"):
        is_asked = dataset.builder.selects(dataset.sources)
        if is_asked is not None and not callable(is_asked):
            raise DraftError(f"returned a {type(is_asked).__name__}, expected a function of a row, or None")
        if is_asked:
            rows = {number: row for number, row in rows.items() if is_asked(row)}
    place = {row.id: number for number, row in rows.items()}
    chosen: set[str] = set()
    noted: Counter[str] = Counter()
    most = len(rows) if dataset.spec.sample.n is None else dataset.spec.sample.n
    examined = 0
    for row in drawn_order(list(rows.values()), dataset):
        if len(chosen) >= most:
            break
        examined += 1
        found = _admission(row, dataset)
        noted.update(found.noted)
        if found.fault:
            rejects[place[row.id]] = reject_row(name, row, found.fault)
        else:
            chosen.add(row.id)
    kept = [row for row in rows.values() if row.id in chosen]
    yield from (Asked(places[row.id], row.id) for row in kept)
    yield from (rejects[number] for number in sorted(rejects))
    counts = _counts(kept, list(rejects.values()), read, len(rows) - examined, noted)
    if dataset.builder.spec.page_rankings:
        ranks = (dataset.sources.page_ranking(row.id).gold_ranks for row in kept)
        counts = counts.model_copy(update={"retrieval": retrieval_counts(dataset.spec, ranks)})
    yield RowCounts(counts, build_dir.fingerprint(rows_shard(name)))


def _read(dataset: Dataset, build_dir: BuildDir) -> tuple[dict[int, Row], dict[int, Reject]]:
    """Return the readable rows, and the rejects of the others, by their place in the source."""
    rows: dict[int, Row] = {}
    rejects: dict[int, Reject] = {}
    shard, kind = rows_shard(dataset.spec.name), dataset.reader.row_type
    for number, line in enumerate(build_dir.read(shard, ROWS)):
        if isinstance(line, Reject):
            rejects[number] = line
        else:
            rows[number] = row_of(line, kind, build_dir, shard)
    return rows, rejects


def drawn_order(rows: list[Row], dataset: Dataset) -> list[Row]:
    """Return the rows in the order in which they are sampled. Rows with the same value of the field `sample.by` stand
    together, and the values have a drawn order. If `sample.stratify` names a field, the values of that field take
    turns.
    """
    sample = dataset.spec.sample
    for field in filter(None, (sample.by, sample.stratify)):
        if field not in dataset.reader.row_type.model_fields:
            hint = nearest(field, dataset.reader.row_type.model_fields)
            raise ManifestError(f"dataset {dataset.spec.name!r}: sample: rows have no field {field!r}{hint}")
    draws = sample_draws(dataset.spec)
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


@dataclass(frozen=True, slots=True)
class _Admission:
    """Whether a row becomes a question, and what the lock counts about it."""

    fault: Fault | None
    """Why the row is in no file, for example because its required units do not fit the admission length; None if it
    becomes a question."""
    noted: tuple[str, ...] = ()
    """The notes of the draft, even if the row is refused after it was drafted. If there is no draft, the notes of the
    refusal."""


def _admission(row: Row, dataset: Dataset) -> _Admission:
    """Draft a row and pack its required units at the admission length; return whether it becomes a question."""
    length = dataset.spec.admission_length
    draws = dataset.draws(row.id)
    try:
        with calling("builder", dataset.spec.builder, "draft()", row):
            full = dataset.builder.draft(row, dataset.sources, draws)
            noted = tuple(map(str, full.noted))
            check_draft(dataset, full, row)
    except Rejected as error:
        return _Admission(error.fault, error.noted)
    try:
        with calling("builder", dataset.spec.builder, "draft()", row):
            fault = _refusal(full, dataset, draws)
    except Rejected as error:
        return _Admission(error.fault, noted)
    except DoesNotFitError as error:
        todo, expected = "raise admission_length to keep it in longer files", format_length(length)
        fault = Fault("above-admission-length", f"required units within {expected}", str(error), todo=todo)
    return _Admission(fault, noted)


def _refusal(full: Draft, dataset: Dataset, draws: Draws) -> Fault | None:
    """Pack the required units of a draft at the admission length, and decode their pictures. Return why the length of
    the full prompt is wrong; None if it is right.

    Raises:
        Rejected: a picture that the draft requires cannot be decoded.
        DoesNotFitError: the required units are longer than the admission length.

    """
    made = required_examples(full, dataset, draws)
    if dataset.sources.has_images:
        for path in {path for example in made for path in example.prompt.images}:
            dataset.sources.images.decode(path)
    return _out_of_span(full, dataset)


def required_examples(full: Draft, dataset: Dataset, draws: Draws) -> list[PackedExample]:
    """Return the examples of a draft that have its required units alone, packed at the admission length.

    Raises:
        DoesNotFitError: the required units are longer than the admission length.

    """
    # without other units, there is no passage that a needle sentence could be put into
    alone = tuple(replace(unit, between_sentences=False) for unit in full.required)
    draft = replace(
        full, required=alone, take_order=InOrder(()), rendered_as_text=None
    )  # units are not shown as text, so that releases of images and of text have the same questions
    budget = dataset.budget(dataset.spec.admission_length)
    return examples(draft, budget, dataset.placements(), dataset.pricer, draws)


def _out_of_span(draft: Draft, dataset: Dataset) -> Fault | None:
    """Return a fault if the length of the prompt with all units is not what the task wants (`TaskSpec.full_prompt`);
    otherwise, return None.
    """
    span, reference = dataset.builder.spec.full_prompt, dataset.spec.reference_length
    if span is None:
        return None
    pricer = dataset.pricer
    separator = pricer.text(draft.separator)
    units = (*draft.required, *draft.take_order.units(reference))
    frame = max(pricer.reserved_frame(draft, question).total for question in draft.questions)
    full = frame - separator + sum(pricer.unit(unit).total + separator for unit in units)
    if reference - span.below <= full <= reference + span.above:
        return None
    expected = f"a full prompt of {reference - span.below} to {reference + span.above} tokens"
    return Fault("full-prompt-out-of-span", expected, f"{full}", todo="set reference_length to keep other lengths")


def _counts(kept: list[Row], rejects: list[Reject], read: int, unseen: int, noted: Counter[str]) -> QuestionCounts:
    """Return how many rows were read, kept, not sampled and not selected; how many were rejected, by reason; and how
    many repairs and notes there are, by name.
    """
    repaired = Counter(repair for row in kept for repair in row.repairs)
    rejected, skipped = Counter[str](), Counter[str]()
    for fault in (each.fault for each in rejects):
        (skipped if fault.is_expected else rejected)[fault.reason] += 1
    few: dict[str, Any] = {
        "not_selected": read - len(kept) - len(rejects) - unseen,
        "skipped": _sorted(skipped),
        "noted": _sorted(noted),
    }
    return QuestionCounts(
        read=read,
        kept=len(kept),
        not_sampled=unseen,
        rejected=_sorted(rejected),
        repaired=_sorted(repaired),
        **{key: found for key, found in few.items() if found},
    )


def _sorted(counts: Counter[str]) -> dict[str, int]:
    return dict(sorted(counts.items()))
