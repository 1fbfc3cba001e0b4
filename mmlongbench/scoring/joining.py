"""Joins each example of a public file with its prediction, in the order of the file."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from mmlongbench.errors import ReleaseError, ScoringError
from mmlongbench.manifest.task_files import NO_TASK_FILES, TaskFiles
from mmlongbench.release.layout import IMAGES, LOCK, name_of
from mmlongbench.release.release import PublicFile, Release
from mmlongbench.scoring.official import is_called
from mmlongbench.scoring.predictions import Key, Prediction, Predictions, key_of
from mmlongbench.scoring.problems import Problems
from mmlongbench.scoring.rows import shared_out, told_by
from mmlongbench.task.builder import Builder
from mmlongbench.task.rows import Record, Row


@dataclass(frozen=True, slots=True)
class ScorableFile:
    """A public file with examples that can be scored."""

    file: PublicFile
    builder: Builder[Row]
    names: tuple[str, ...]
    """The names that predictions may use for the file: its own name and, for many-shot learning, the name of the file
    with the same records in another format."""
    is_repeated: bool = False
    """Whether the file has each question several times; then only the first example of each question is scored."""


@dataclass(frozen=True, slots=True)
class Joined:
    """An example and a prediction for it. An example with several samples gives one `Joined` for each of them, in
    order.
    """

    row: int
    """The number of the example in its file, from 0."""
    record: Record
    prediction: Prediction | None
    """None if there is no prediction for the example."""
    place: int
    """See `ScoringInput.place`."""
    samples: int = 1
    """The number of samples of the example; 1 if there is no prediction, or if the example was skipped."""
    turn: int | None = None
    """The number of the row among the rows with the same id, from 0. It is set only if the task has placements, but
    the row has neither a depth nor a permutation; otherwise it is None."""


def open_scorable(
    path: Path,
    images: Path | None,
    tokenizer: str | None,
    tasks: TaskFiles = NO_TASK_FILES,
    *,
    with_images: bool = False,
) -> Release:
    """Open a release of this engine, which has a lock, or public files of other origin; few metrics need images."""
    if (path / LOCK).is_file():
        return Release.open(path, tokenizer=tokenizer, tasks=tasks, with_images=with_images)
    return Release.open(path, images=images or path / IMAGES)


def scorable_files(opened: Release) -> list[ScorableFile]:
    """Return the files with a known builder. If two files have the same records, only the file with one record on each
    line is returned.
    """
    found = [each for file in opened.files if (each := _scorable(file))]
    plain = {(each.builder.dataset, each.file.length) for each in found if not each.is_repeated}
    return [each for each in found if not each.is_repeated or (each.builder.dataset, each.file.length) not in plain]


def leave_out_others(files: Sequence[ScorableFile], predictions: Predictions, problems: Problems) -> None:
    """Remove each output of the public code that is about another dataset than its public file, as in ablations.

    Raises:
        ScoringError: two outputs with different dataset names may belong to one file, and neither name equals the name
            of the file's dataset.

    """
    for file in files:
        name = file.builder.dataset
        claims = [output for output in predictions.outputs if output.file in file.names and output.dataset]
        own = [output for output in claims if is_called(output.dataset, name)]
        exact = [output for output in own if output.dataset == name] or own
        if len({output.dataset for output in exact}) > 1:
            raise ScoringError(
                f"{exact[0]} and {exact[1]}: only one of them can be the output for {name}; remove the other, or "
                "change its args.datasets"
            )
        for output in claims:
            if output not in exact:
                predictions.leave_out(output)
                problems.add("other-dataset", str(output))


def predictions_for(file: ScorableFile, predictions: Predictions) -> dict[Key, list[Prediction]]:
    """Return the predictions for one file by key, whichever of its names they use."""
    joined: dict[Key, list[Prediction]] = {}
    for name in file.names:
        for key, queue in predictions.by_file.get(name, {}).items():
            joined.setdefault(key, []).extend(queue)
    return joined


def join(file: ScorableFile, predictions: Predictions, problems: Problems) -> Iterator[Joined]:
    """Yield each example of a file with its prediction, or with None if there is none; an example with several samples
    is yielded once for each sample.

    If a model has answered an example in some samples, those that are marked as skipped are left out. If all are marked
    as skipped, the example is yielded once. Predictions that fit no example are counted in `problems`.

    If the public code ran on a sample of the ids, an id without any output counts as not in the sample, and its
    examples are left out.
    """
    found, taken, place = predictions_for(file, predictions), Counter[Key](), 0
    drawn = predictions.drawn(file.names)
    is_placed = file.builder.spec.placements is not None
    has_turns = is_placed and any(not kind for _, kind, _ in found)
    rows = _rows(file) if has_turns or drawn is not None else {}
    claims = _shared_out(file, rows, found, problems)
    unasked = _unasked(file, rows, found, drawn, problems)
    for row, (record, key) in enumerate(records_of(file)):
        at = taken[key]
        taken[key] += 1
        turn = at if is_placed and not key[1] else None
        own = [each for queue in claims.get(key, ()) if at < len(queue) and (each := queue[at])]
        if own:
            answered = [each for each in own if not each.skipped]
            samples = answered or own[:1]
            yield from (Joined(row, record, each, place, len(samples), turn) for each in samples)
            place += bool(answered)
        elif key[0] not in unasked:
            problems.add("absent", f"{file.file.name}: {name_of(record)}")
            yield Joined(row, record, None, 0, turn=turn)
    for reason, key, prediction in _unclaimed(claims, taken):
        sample = f", sample {prediction.sample}" if prediction.sample else ""
        problems.add(reason, f"{prediction}: {file.file.name}: {_said(key)}{sample}")


def builder_name(file: ScorableFile) -> str:
    """Return the name of a file's builder, for errors."""
    return file.file.dataset.spec.builder if file.file.dataset else ""


def records_of(file: ScorableFile) -> Iterator[tuple[Record, Key]]:
    """Yield each example of a file, with its key.

    Raises:
        ReleaseError: the file is damaged.

    """
    seen = set[Key]()
    for where, record in file.file.form.unbundle(file.file.path):
        try:
            key = key_of(record)
        except ValueError as error:
            raise ReleaseError(f"{file.file.name}, {where}: {error}; see `mmlongbench audit`") from error
        if not (file.is_repeated and key in seen):
            seen.add(key)
            yield record, key


def _rows(file: ScorableFile) -> dict[Key, list[bytes | None]]:
    """Return, for each key, a digest of each of its rows (see `told_by`)."""
    rows: dict[Key, list[bytes | None]] = {}
    for record, key in records_of(file):
        rows.setdefault(key, []).append(told_by(record))
    return rows


def _shared_out(
    file: ScorableFile,
    rows: Mapping[Key, Sequence[bytes | None]],
    claims: Mapping[Key, Sequence[Prediction]],
    problems: Problems,
) -> dict[Key, list[Sequence[Prediction | None]]]:
    """Return, for each key and each sample, the predictions in the order of the key's rows (see `shared_out`)."""
    shared: dict[Key, list[Sequence[Prediction | None]]] = {}
    for key, every in claims.items():
        shared[key] = []
        for queue in _by_sample(every):
            given: Sequence[Prediction | None] = queue
            if key in rows:
                given, is_ambiguous = shared_out(rows[key], queue)
                if is_ambiguous:
                    said = f"{len(queue)} predictions for {len(rows[key])} rows"
                    problems.add("ambiguous", f"{file.file.name}: {_said(key)}: {said}")
            shared[key].append(given)
    return shared


def _by_sample(predictions: Sequence[Prediction]) -> list[list[Prediction]]:
    """Return a list of predictions for each sample, in the order of the samples."""
    found: dict[int, list[Prediction]] = {}
    for each in predictions:
        found.setdefault(each.sample, []).append(each)
    return [found[sample] for sample in sorted(found)]


def _unasked(
    file: ScorableFile,
    rows: Mapping[Key, object],
    claims: Mapping[Key, object],
    drawn: int | None,
    problems: Problems,
) -> set[str]:
    """Return the ids without any output if the public code drew a sample; an empty set if it used all ids."""
    ids = {id for id, _, _ in rows}
    if drawn is None or drawn >= len(ids):
        return set()
    unasked = ids - {id for id, _, _ in claims}
    if (lost := drawn - (len(ids) - len(unasked))) > 0:
        problems.add("lost-output", file.file.name, lost)
    return unasked


def _unclaimed(
    predictions: Mapping[Key, Sequence[Sequence[Prediction | None]]], taken: Mapping[Key, int]
) -> Iterator[tuple[str, Key, Prediction]]:
    """Yield (reason, key, prediction) for each prediction that fits no example; `taken` counts the examples by key."""
    ids = {id for id, _, _ in taken}
    for key, queues in predictions.items():
        reason = "duplicate" if key in taken else "wrong-placement" if key[0] in ids else "unknown-id"
        left = (prediction for queue in queues for prediction in queue[taken.get(key, 0) :])
        yield from ((reason, key, prediction) for prediction in left if prediction)


def _scorable(file: PublicFile) -> ScorableFile | None:
    if file.dataset is None:
        return None
    builder = file.dataset.builder
    bundle = builder.spec.bundle
    if bundle is None:
        return ScorableFile(file, builder, (file.name,))
    is_bundle = bundle.files.recognise(file.name) is not None and builder.spec.files.recognise(file.name) is None
    other = builder.spec.files if is_bundle else bundle.files
    return ScorableFile(file, builder, (file.name, other.write(builder.dataset, file.length)), is_bundle)


def _said(key: Key) -> str:
    id, kind, value = key
    return name_of({"id": id, kind: int(value) if kind == "permutation" else value} if kind else {"id": id})
