"""Makes a file of predictions from the results of batch requests. An error of a server never becomes an answer."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path

from mmlongbench.errors import Fault, ReleaseError
from mmlongbench.exports.results import Failure, read_result
from mmlongbench.exports.writing import named
from mmlongbench.io.files import write_whole
from mmlongbench.io.json_lines import json_lines
from mmlongbench.models.prediction_lines import PredictionLine, predictions_file
from mmlongbench.models.replies import Reply
from mmlongbench.release.release import Example, Release, custom_id
from mmlongbench.release.selection import Selection, select

REASONS = {
    "error": "requests with an error instead of an answer; they are not in the predictions",
    "error-and-answer": "requests with an error and, elsewhere, an answer, which counts",
    "unreadable-line": "lines that are no result of a batch",
    "unknown-request": "results for no example of this release as it is now",
    "duplicate": "results for an example that has an answer; the first counts",
}
"""The problems of results in words, in the order in which they are shown."""
_NAMED = 3


@dataclass(frozen=True, slots=True)
class ResultProblem:
    """A problem of results."""

    reason: str
    """A key of `REASONS`."""
    words: str
    """The problem in words that can follow a number."""
    count: int
    """How often it occurs."""
    first: tuple[str, ...]
    """The first places where it occurs."""


@dataclass(frozen=True, slots=True)
class Collected:
    """What was collected."""

    out: Path
    """The file of predictions."""
    answered: int
    """The examples that have an answer."""
    examples: int
    """The examples of the release."""
    problems: tuple[ResultProblem, ...]
    """What is wrong with the results."""

    def summary(self) -> dict[str, object]:
        """Return the figures as values of JSON."""
        return {**asdict(self), "out": str(self.out)}


class _Problems:
    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._first: dict[str, list[str]] = defaultdict(list)

    def add(self, reason: str, place: str) -> None:
        self._counts[reason] += 1
        if len(self._first[reason]) < _NAMED:
            self._first[reason].append(place)

    def found(self) -> tuple[ResultProblem, ...]:
        return tuple(
            ResultProblem(reason, words, self._counts[reason], tuple(self._first[reason]))
            for reason, words in REASONS.items()
            if self._counts[reason]
        )


def collect(release: Release, results: Sequence[Path], model: str, out: Path | None = None) -> Collected:
    """Write the answers in files of results as predictions, in the order of the release.

    Args:
        release: the release whose examples were sent.
        results: files of results and of errors.
        model: the name of the model.
        out: the file of predictions; None: `predictions/<model>.jsonl`.

    Raises:
        ReleaseError: the release cannot be read, no result is for it, or `out` holds other predictions.
        SourceError: a file of results cannot be read.

    """
    if not model.strip():
        raise ReleaseError("model: expected the name of the model, found an empty text")
    problems = _Problems()
    read = _read(results, problems)
    lines, examples = _predictions(release, read, model, problems)
    if not lines:
        why = "; ".join(f"{each.count:,} {each.words}: {each.first[0]}" for each in problems.found())
        raise ReleaseError(f"{', '.join(map(str, results))}: no answer for {release.path.name}: {why or 'no line'}")
    target = out or predictions_file(model)
    _write(target, lines)
    return Collected(target, len(lines), examples, problems.found())


@dataclass(frozen=True, slots=True)
class _Read:
    """The results of all files, by the names of the requests; each with the place of its line."""

    answers: dict[str, tuple[Reply, str]]
    failures: dict[str, tuple[Failure, str]]


def _read(results: Sequence[Path], problems: _Problems) -> _Read:
    read = _Read({}, {})
    for path in results:
        for line in json_lines(path):
            place = f"{path.name}, line {line.number}"
            result = line.value if isinstance(line.value, Fault) else read_result(line.value)
            if isinstance(result, Fault):
                problems.add("unreadable-line", f"{place}: {result.reason}: {result.found}")
            elif isinstance(result.outcome, Failure):
                read.failures.setdefault(result.custom_id, (result.outcome, place))
            elif result.custom_id in read.answers:
                problems.add("duplicate", f"{place}: {result.custom_id}")
            else:
                read.answers[result.custom_id] = (result.outcome, place)
    return read


def _predictions(release: Release, read: _Read, model: str, problems: _Problems) -> tuple[list[bytes], int]:
    """Return a line for each example that has an answer, in the order of the release, and the number of examples."""
    lines: list[bytes] = []
    unknown, lock, count = {**read.failures, **read.answers}, release.lock_id, 0
    for example in chain.from_iterable(cell.examples() for cell in select(release, Selection())):
        count += 1
        name = custom_id(example)
        unknown.pop(name, None)
        answer, failure = read.answers.get(name), read.failures.get(name)
        if failure:
            failed, place = failure
            problems.add("error-and-answer" if answer else "error", f"{place}: {named(example)}: {failed.words}")
        if answer:
            lines.append(_line(example, answer[0], model, lock).json_line())
    for name, (_, place) in unknown.items():
        problems.add("unknown-request", f"{place}: {name[:80]}")
    return lines, count


def _line(example: Example, answer: Reply, model: str, lock: str) -> PredictionLine:
    return PredictionLine.model_validate(
        {
            **example.key,
            "prediction": answer.words,
            "digest": example.digest,
            "lock": lock,
            "model": model,
            "reasoning": answer.reasoning,
            "finish_reason": answer.finish_reason,
            "usage": answer.usage,
        }
    )


def _write(path: Path, lines: Sequence[bytes]) -> None:
    """Write the file of predictions. A file that holds other predictions is refused."""
    if path.exists():
        if not path.is_file():
            raise ReleaseError(f"--out {path}: is no file")
        if path.read_bytes() != b"".join(lines):
            raise ReleaseError(f"--out {path}: already holds other predictions; give another file, or remove this one")
        return
    write_whole(path, lines)
