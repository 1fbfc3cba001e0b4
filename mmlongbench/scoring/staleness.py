"""Checks that predictions were made for the examples of a release, by comparing digests (see `example_digest`)."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from mmlongbench.errors import ReleaseError, ScoringError
from mmlongbench.manifest.binding import calling
from mmlongbench.release.layout import name_of
from mmlongbench.release.lock import example_digest
from mmlongbench.release.release import Release
from mmlongbench.scoring.joining import Joined, ScorableFile, builder_name, join, predictions_for
from mmlongbench.scoring.predictions import Prediction, Predictions
from mmlongbench.scoring.problems import Problems

_SHOWN = 12
"""How many digits of a digest messages show."""


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
                prompt, gold = builder.prompt(record), builder.gold(record)
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
    """Refuse predictions that were made for other examples than those of the release.

    Raises:
        ScoringError: there are such predictions; the error names the first one and its example.

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
