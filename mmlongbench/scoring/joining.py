"""The examples of a release and the predictions for them, side by side in the order of the file."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mmlongbench.errors import ReleaseError
from mmlongbench.release.examples import name_of
from mmlongbench.release.layout import IMAGES, LOCK
from mmlongbench.release.opening import Opened, PublicFile, open_public, open_release
from mmlongbench.scoring.predictions import Key, Prediction, Predictions, key_of, unclaimed
from mmlongbench.scoring.problems import Problems
from mmlongbench.task import Builder, Record


@dataclass(frozen=True, slots=True)
class ScorableFile:
    """A public file whose examples can be scored."""

    file: PublicFile
    builder: Builder
    names: tuple[str, ...]
    """What predictions may call it: its name, and that of another shape of the same records (many-shot)."""
    is_repeated: bool = False
    """Whether its rows hold each question several times, to be scored once."""


@dataclass(frozen=True, slots=True)
class Joined:
    """An example, and the prediction for it."""

    record: Record
    prediction: Prediction | None
    place: int
    """See `Asked.place`."""
    turn: int | None = None
    """Of rows at several placements that do not say which: their number among those of the same id, from 0."""


def open_scorable(path: Path, images: Path | None, tokenizer: str | None) -> Opened:
    """A release with its lock, or public files that others made; images need not be there."""
    if (path / LOCK).is_file():
        return open_release(path, tokenizer)
    return open_public([path], images or path / IMAGES)


def scorable_files(opened: Opened) -> list[ScorableFile]:
    """The files whose builder is known, those of the same records once: the ones that are one record a line."""
    found = [each for file in opened.files if (each := _scorable(file))]
    plain = {(each.builder.dataset, each.file.length) for each in found if not each.is_repeated}
    return [each for each in found if not each.is_repeated or (each.builder.dataset, each.file.length) not in plain]


def predictions_for(file: ScorableFile, predictions: Predictions) -> dict[Key, list[Prediction]]:
    """Those for one file, by whatever name they call it."""
    joined: dict[Key, list[Prediction]] = {}
    for name in file.names:
        for key, queue in predictions.by_file.get(name, {}).items():
            joined.setdefault(key, []).extend(queue)
    return joined


def join(file: ScorableFile, predictions: Predictions, problems: Problems) -> Iterator[Joined]:
    """Each example that was asked, with its prediction or none; what does not fit is counted.

    Rows that nothing but their order tells apart take the predictions for them in their order. Of an output of the
    public code that was told to draw a sample, examples without any output were not asked.
    """
    claims, taken, place = predictions_for(file, predictions), Counter[Key](), 0
    sample = next((predictions.samples[name] for name in file.names if name in predictions.samples), None)
    answered = {id for id, _, _ in claims}
    unasked = set[str]()
    for record, key in _records(file):
        queue, at = claims.get(key, []), taken[key]
        taken[key] += 1
        turn = at if file.builder.spec.placements and not key[1] else None
        if at < len(queue):
            yield Joined(record, queue[at], place, turn)
            place += 1
        elif sample is not None and key[0] not in answered:
            unasked.add(key[0])
        else:
            problems.add("absent", f"{file.file.name}: {name_of(record)}")
            yield Joined(record, None, 0, turn)
    for reason, key, prediction in unclaimed(claims, taken):
        problems.add(reason, f"{prediction}: {file.file.name}: {_said(key)}")
    ids = {id for id, _, _ in taken}
    if lost := min(sample or 0, len(ids)) - (len(ids) - len(unasked)) if sample is not None else 0:
        problems.add("lost-output", file.file.name, max(lost, 0))


def _records(file: ScorableFile) -> Iterator[tuple[Record, Key]]:
    if file.file.form is None:
        return
    seen = set[Key]()
    for where, record in file.file.form.unbundle(file.file.path):
        try:
            key = key_of(record)
        except ValueError as error:
            raise ReleaseError(f"{file.file.name}, {where}: {error}; `mmlongbench audit` says more") from error
        if not (file.is_repeated and key in seen):
            seen.add(key)
            yield record, key


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
