"""Scores one example at a time, for programs that run a model themselves, such as evaluation harnesses.

A score equals that of `mmlongbench score` for the same example and prediction.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Lock

from mmlongbench.errors import ScoringError, nearest
from mmlongbench.manifest.binding import calling
from mmlongbench.manifest.plugins import metric_type
from mmlongbench.manifest.task_files import NO_TASK_FILES, TaskFiles
from mmlongbench.scoring.joining import ScorableFile, builder_name, open_scorable, records_of, scorable_files
from mmlongbench.scoring.metric_calls import score_of, why_outside
from mmlongbench.scoring.predictions import Key, key_of
from mmlongbench.scoring.reasoning import without_reasoning
from mmlongbench.scoring.score_model import filled_settings
from mmlongbench.task.builder import scoring_input
from mmlongbench.task.metric import Metric, Score, ScoringInput, Settings


@dataclass(frozen=True, slots=True)
class _File:
    """A public file, with the examples that were read from it."""

    file: ScorableFile
    metric: Metric
    inputs: dict[Key, ScoringInput] = field(default_factory=dict)
    """The input of the metric for each example, without a prediction. Contexts are not in it."""


class Scorer:
    """Scores one example of a release at a time, by the metric of its dataset. Threads can share it.

    A file is read once, when the first of its examples is scored. Of each example, memory then holds what its metric
    needs: the answer and the question, but not the context.
    """

    def __init__(
        self,
        release: Path,
        settings: Settings | None = None,
        *,
        keeps_reasoning: bool = False,
        tasks: TaskFiles = NO_TASK_FILES,
    ) -> None:
        """Open a release.

        Raises:
            ReleaseError: the release cannot be read.

        """
        self._release = release
        self._settings = filled_settings(release, settings or Settings())
        self._keeps_reasoning = keeps_reasoning
        files = scorable_files(open_scorable(release, None, None, tasks))
        self._known = {name: file for file in files for name in file.names}
        self._opened: dict[str, _File] = {}
        self._lock = Lock()

    def score(self, key: Mapping[str, object], prediction: str, place: int | None = None) -> Score:
        """Return the score of a prediction.

        Args:
            key: the fields that name the example, as in a line of predictions: `file`, `id`, and `depth` or
                `permutation` if it has one. Other fields are ignored.
            prediction: the output of the model; reasoning is left out, as `mmlongbench score` does.
            place: how many examples of the file come before this one among those that the model is given; None: all
                that come before it in the file. Visual haystacks take it as a guess if the model gives no answer.

        Returns:
            The score. Its `score` is None, and `failure` says why, if the example cannot be scored.

        Raises:
            ScoringError: the release has no such example, or a metric needs a package that is not installed.
            PluginError: a metric is not installed, or is broken.

        """
        said = prediction if self._keeps_reasoning else without_reasoning(prediction).answer
        with self._lock:
            opened = self._file(key.get("file"))
            asked = _input(opened, key)
            asked = replace(asked, prediction=said, place=asked.place if place is None else place)
            if why := why_outside(opened.metric, asked):
                return Score(None, failure=why)
            return score_of(opened.metric, asked)

    def close(self) -> None:
        """Close the metrics."""
        for opened in self._opened.values():
            opened.metric.close()
        self._opened.clear()

    def _file(self, name: object) -> _File:
        if not isinstance(name, str) or name not in self._known:
            hint = nearest(str(name), self._known)
            raise ScoringError(f"{self._release.name}: no public file {name!r:.200} that can be scored{hint}")
        file = self._known[name]
        if file.file.name not in self._opened:
            self._opened[file.file.name] = self._read(file)
        return self._opened[file.file.name]

    def _read(self, file: ScorableFile) -> _File:
        spec = file.builder.spec
        with calling("metric", spec.metric, "__init__()"):
            opened = _File(file, metric_type(spec.metric)(self._settings))
        name = builder_name(file)
        for place, (record, key) in enumerate(records_of(file)):
            if key in opened.inputs:
                raise ScoringError(
                    f"{file.file.name}: {key[0]!r} is the id of several examples that nothing tells apart; use "
                    "`mmlongbench score`, which takes predictions in the order of the file"
                )
            with calling("builder", name, "a method that scoring calls", about=f"example {record.get('id')!r}"):
                opened.inputs[key] = scoring_input(file.builder, record, file.file.name, place=place)
        return opened


def _input(opened: _File, key: Mapping[str, object]) -> ScoringInput:
    """Return the input of the metric for an example, without the prediction."""
    name = opened.file.file.name
    try:
        found = key_of(key)
    except ValueError as error:
        raise ScoringError(f"{name}: the key of an example: {error}") from error
    if found not in opened.inputs:
        id, kind, value = found
        placed = f" at {kind} {value:g}" if kind else ""
        raise ScoringError(f"{name}: no example {id!r:.200}{placed}; a key is the `key` of an example of this release")
    return opened.inputs[found]
