"""Joins each example of a public file with its prediction, in the order of the file, and checks by digests that the
prediction was made for this example.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mmlongbench.errors import ReleaseError, ScoringError
from mmlongbench.manifest.binding import calling
from mmlongbench.manifest.task_files import NO_TASK_FILES, TaskFiles
from mmlongbench.release.layout import IMAGES, LOCK, name_of
from mmlongbench.release.lock import example_digest
from mmlongbench.release.release import PublicFile, Release
from mmlongbench.scoring.predictions import Key, Prediction, Predictions, Problems, key_of, told_by
from mmlongbench.task.builder import Builder
from mmlongbench.task.rows import Record, Row

_SHOWN = 12
"""How many digits of a digest messages show."""


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
    files = []
    for file in opened.files:
        if file.dataset is None:
            continue
        builder, bundle = file.dataset.builder, file.dataset.builder.spec.bundle
        if bundle is None:
            files.append(ScorableFile(file, builder, (file.name,)))
            continue
        plain = builder.spec.files
        is_bundle = bundle.files.recognise(file.name) is not None and plain.recognise(file.name) is None
        other = (plain if is_bundle else bundle.files).write(builder.dataset, file.length)
        files.append(ScorableFile(file, builder, (file.name, other), is_bundle))
    plain_files = {(each.builder.dataset, each.file.length) for each in files if not each.is_repeated}
    return [
        each for each in files if not each.is_repeated or (each.builder.dataset, each.file.length) not in plain_files
    ]


def leave_out_others(files: Sequence[ScorableFile], predictions: Predictions, problems: Problems) -> None:
    """Remove each output of the public code that is about another dataset than its public file, as in ablations.

    Raises:
        ScoringError: two outputs with different dataset names may belong to one file, and neither name equals the name
            of the file's dataset.

    """
    for file in files:
        name = file.builder.dataset
        claims = [output for output in predictions.outputs if output.file in file.names and output.dataset]
        own = [output for output in claims if output.is_of(name)]
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
    given, taken, place = predictions_for(file, predictions), Counter[Key](), 0
    drawn = predictions.drawn(file.names)
    is_placed = file.builder.spec.placements is not None
    rows: dict[Key, list[bytes | None]] = {}
    if drawn is not None or (is_placed and any(not kind for _, kind, _ in given)):
        for record, key in records_of(file):
            rows.setdefault(key, []).append(told_by(record))
    claims: dict[Key, list[Sequence[Prediction | None]]] = {}
    for key, every in given.items():
        by_sample: dict[int, list[Prediction]] = {}
        for prediction in every:
            by_sample.setdefault(prediction.sample, []).append(prediction)
        claims[key] = []
        for _, queue in sorted(by_sample.items()):
            shared, is_ambiguous = _shared_out(rows[key], queue) if key in rows else (queue, False)
            if is_ambiguous:
                what = f"{len(queue)} predictions for {len(rows[key])} rows"
                problems.add("ambiguous", f"{file.file.name}: {_named(key)}: {what}")
            claims[key].append(shared)
    ids, unasked = {id for id, _, _ in rows}, set[str]()
    if drawn is not None and drawn < len(ids):
        unasked = ids - {id for id, _, _ in given}
        if (lost := drawn - (len(ids) - len(unasked))) > 0:
            problems.add("lost-output", file.file.name, lost)
    for row, (record, key) in enumerate(records_of(file)):
        at = taken[key]
        taken[key] += 1
        turn = at if is_placed and not key[1] else None
        own = [claim for queue in claims.get(key, ()) if at < len(queue) and (claim := queue[at])]
        if own:
            answered = [prediction for prediction in own if not prediction.skipped]
            samples = answered or own[:1]
            yield from (Joined(row, record, prediction, place, len(samples), turn) for prediction in samples)
            place += bool(answered)
        elif key[0] not in unasked:
            problems.add("absent", f"{file.file.name}: {name_of(record)}")
            yield Joined(row, record, None, 0, turn=turn)
    known = {id for id, _, _ in taken}
    for key, queues in claims.items():
        reason = "duplicate" if key in taken else "wrong-placement" if key[0] in known else "unknown-id"
        for left in (claim for queue in queues for claim in queue[taken.get(key, 0) :] if claim):
            sample = f", sample {left.sample}" if left.sample else ""
            problems.add(reason, f"{left}: {file.file.name}: {_named(key)}{sample}")


def _shared_out(
    rows: Sequence[bytes | None], predictions: Sequence[Prediction]
) -> tuple[list[Prediction | None], bool]:
    """Return a list of predictions, and whether some are ambiguous. The list has a prediction or None for each row, and
    then the predictions that are left over; `rows` has what `told_by` returns for each row.

    Rows that cannot be distinguished form a group, and take the predictions for the group in order. If a group has
    fewer predictions than rows, it is unknown which row lacks one. Then all predictions for the group are ambiguous,
    and the list does not have them.
    """
    known = {prediction.told for prediction in predictions} & set(rows) - {None}
    places: dict[bytes | None, list[int]] = {None: []}
    for place, row in enumerate(rows):
        places.setdefault(row if row in known else None, []).append(place)
    queues: dict[bytes | None, list[Prediction]] = {}
    for prediction in predictions:
        queues.setdefault(prediction.told if prediction.told in known else None, []).append(prediction)
    given: list[Prediction | None] = [None] * len(rows)
    left, is_ambiguous = list[Prediction](), False
    for told, queue in queues.items():
        group = places[told]
        if len(queue) < len(group):
            is_ambiguous = True
            continue
        for place, prediction in zip(group, queue, strict=False):
            given[place] = prediction
        left += queue[len(group) :]
    return [*given, *left], is_ambiguous


def builder_name(file: ScorableFile) -> str:
    """Return the name of a file's builder, for errors."""
    return file.file.dataset.spec.builder if file.file.dataset else ""


def records_of(file: ScorableFile) -> Iterator[tuple[Record, Key]]:
    """Yield each example of a file, with its key; a damaged file is a `ReleaseError`."""
    seen = set[Key]()
    for where, record in file.file.form.unbundle(file.file.path):
        try:
            key = key_of(record)
        except ValueError as error:
            raise ReleaseError(f"{file.file.name}, {where}: {error}; see `mmlongbench audit`") from error
        if not (file.is_repeated and key in seen):
            seen.add(key)
            yield record, key


def _named(key: Key) -> str:
    id, kind, value = key
    return name_of({"id": id, kind: int(value) if kind == "permutation" else value} if kind else {"id": id})


class ExampleDigests:
    """The digests of a release's examples; each is computed once, also for several runs over it. Public files of other
    origin have none.
    """

    def __init__(self, opened: Release) -> None:
        self.lock = opened.lock_id if opened.is_locked else ""
        """See `ScoreLine.lock`."""
        self.opened = opened
        self._known: dict[tuple[str, int], bytes] = {}

    def of(self, file: ScorableFile, joined: Joined) -> bytes:
        """Return the digest of an example; empty if it has none.

        Raises:
            ReleaseError: the lock does not have an image of the prompt.

        """
        if not self.opened.is_locked or file.is_repeated:
            return b""
        key = file.file.name, joined.row
        if key not in self._known:
            record, builder = joined.record, file.builder
            with calling(
                "builder", builder_name(file), "a method that makes prompts", about=f"example {name_of(record)}"
            ):
                prompt, gold = builder.prompt(record), builder.answer_of(record)
            try:
                self._known[key] = bytes.fromhex(example_digest(prompt, gold, self.opened.lock))
            except ReleaseError as error:
                raise ReleaseError(f"{file.file.name}: {name_of(record)}: {error}") from error
        return self._known[key]


def is_stale(prediction: Prediction | None, digest: bytes) -> bool:
    """Return whether a prediction was made for an example with another digest; False if one of them has no digest."""
    return bool(prediction and prediction.digest and digest and prediction.digest != digest)


@dataclass(slots=True)
class Staleness:
    """Counts the predictions for other examples than those of the release, and the predictions without a digest."""

    stale: int = 0
    first_stale: str = ""
    checked: int = 0
    """How many predictions have a digest."""
    without: Counter[str] = field(default_factory=Counter)
    """How many predictions have no digest, by the name of their file."""

    def add(self, file: ScorableFile, joined: Joined, digest: bytes) -> None:
        """Count one prediction, unless the example has no digest."""
        prediction = joined.prediction
        if not prediction or not digest:
            return
        if not prediction.digest:
            self.without[prediction.path.name] += 1
            return
        self.checked += 1
        if is_stale(prediction, digest):
            self.stale += 1
            here, there = digest.hex()[:_SHOWN], prediction.digest.hex()[:_SHOWN]
            example = f"{file.file.name}: {name_of(joined.record)}"
            self.first_stale = self.first_stale or f"{prediction} (digest {there}…): {example} (digest {here}…)"

    def notes(self) -> list[str]:
        """Return the sentences that readers of the scores must know."""
        found = []
        if self.stale:
            what = f"{self.stale:,} of {self.checked:,} predictions were made for other examples than those here"
            found.append(f"{what}, and are scored because of --allow-stale; first {self.first_stale}")
        if self.without:
            number = sum(self.without.values())
            what = "1 prediction has" if number == 1 else f"{number:,} predictions have"
            (first, _), more = self.without.most_common(1)[0], len(self.without) - 1
            where = f"{first} and {more:,} more files" if more else first
            found.append(f"{where}: {what} no digest, so it cannot be checked that they were made for this release")
        return found


def refuse_stale(files: Iterable[ScorableFile], predictions: Predictions, digests: ExampleDigests) -> None:
    """Refuse predictions that were made for other examples than those of the release; the `ScoringError` names the
    first one and its example.
    """
    found = Staleness()
    for file in files:
        if any(each.digest for queue in predictions_for(file, predictions).values() for each in queue):
            for joined in join(file, predictions, Problems()):
                if joined.prediction and joined.prediction.digest:
                    found.add(file, joined, digests.of(file, joined))
    if found.stale:
        raise ScoringError(
            f"{found.first_stale}: the prediction was made for another example of this name ({found.stale:,} of "
            f"{found.checked:,} predictions with a digest are stale); run the model again on these examples, or score "
            "them with --allow-stale"
        )
