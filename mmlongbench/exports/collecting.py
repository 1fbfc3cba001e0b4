"""Makes a file of predictions from the results of batch requests. An error of a server never becomes an answer.

OpenAI's Batch API and `vllm run-batch` write results in the same form. The fields that are needed are checked; all
others are ignored.
"""

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from mmlongbench.errors import Fault, ReleaseError
from mmlongbench.exports.target import named
from mmlongbench.io.files import write_whole
from mmlongbench.io.json_lines import json_lines
from mmlongbench.io.progress import Progress
from mmlongbench.models.prediction_lines import PredictionLine, predictions_file
from mmlongbench.models.replies import Reply, RequestError, read_reply
from mmlongbench.release.release import Release, custom_id
from mmlongbench.release.selection import Selection, examples_of, select

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


def collect(
    release: Release, results: Sequence[Path], model: str, out: Path | None = None, progress: Progress | None = None
) -> Collected:
    """Write the answers in files of results as predictions, in the order of the release (see `mmlongbench.collect`)."""
    if not model.strip():
        raise ReleaseError("model: expected the name of the model, found an empty text")
    places: dict[str, list[str]] = defaultdict(list)  # of each kind of problem, all of them
    # The results by the names of the requests, each with the place of its line.
    answers, errors = dict[str, tuple[Reply, str]](), dict[str, tuple[str, str]]()
    for path in results:
        for line in json_lines(path):
            place = f"{path.name}, line {line.number}"
            result = line.value if isinstance(line.value, Fault) else _read_result(line.value)
            if isinstance(result, Fault):
                places["unreadable-line"].append(f"{place}: {result.reason}: {result.found}")
                continue
            name, reply = result
            if isinstance(reply, str):
                errors.setdefault(name, (reply, place))
            elif name in answers:
                places["duplicate"].append(f"{place}: {name}")
            else:
                answers[name] = (reply, place)
    lines, examples, context, unknown = list[bytes](), 0, "", {**errors, **answers}
    for example in examples_of(select(release, Selection()), progress or Progress(False), "collect: examples"):
        examples, context = examples + 1, example.variant
        name = custom_id(example)
        unknown.pop(name, None)
        answer = answers.get(name)
        if name in errors:
            words, place = errors[name]
            places["error-and-answer" if answer else "error"].append(f"{place}: {named(example)}: {words}")
        if answer:
            fields = {
                **example.key,
                "prediction": answer[0].words,
                "digest": example.digest,
                "lock": release.lock_id,
                "context": example.variant,
                "model": model,
                "reasoning": answer[0].reasoning,
                "finish_reason": answer[0].finish_reason,
                "usage": answer[0].usage,
            }
            lines.append(PredictionLine.model_validate(fields).json_line())
    places["unknown-request"] += [f"{place}: {name[:80]}" for name, (_, place) in unknown.items()]
    problems = tuple(
        ResultProblem(reason, words, len(places[reason]), tuple(places[reason][:_NAMED]))
        for reason, words in REASONS.items()
        if places[reason]
    )
    if not lines:
        why = "; ".join(f"{each.count:,} {each.words}: {each.first[0]}" for each in problems)
        raise ReleaseError(f"{', '.join(map(str, results))}: no answer for {release.path.name}: {why or 'no line'}")
    target = out or predictions_file(model, context)
    _write(target, lines)
    return Collected(target, len(lines), examples, problems)


def _write(path: Path, lines: Sequence[bytes]) -> None:
    """Write the file of predictions. A file that holds other predictions is refused."""
    if path.exists():
        if not path.is_file():
            raise ReleaseError(f"--out {path}: is no file")
        if path.read_bytes() != b"".join(lines):
            raise ReleaseError(f"--out {path}: already holds other predictions; give another file, or remove this one")
        return
    write_whole(path, lines)


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class _Error(_Part):
    code: str | int | None = None
    message: str | None = None


class _Response(_Part):
    status_code: int | None = None
    body: JsonValue = None


class _Line(_Part):
    custom_id: str
    response: _Response | None = None
    error: _Error | str | None = None


def _read_result(fields: Mapping[str, object]) -> tuple[str, Reply | str] | Fault:
    """Return the name of a request, and its reply or why there is none; or what is wrong with the line."""
    try:
        line = _Line.model_validate(fields)
    except ValidationError as error:
        where = ".".join(map(str, error.errors()[0]["loc"])) or "the line"
        return Fault(
            "not-a-result",
            "a result of a batch",
            f"{where}: {error.errors()[0]['msg']}",
            todo="give the output file of a batch",
        )
    response = line.response
    status = response.status_code if response else None
    body = response.body if response else None
    if line.error is None and response is not None and status in (None, 200):
        try:
            return line.custom_id, read_reply(json.dumps(body).encode())
        except RequestError as error:
            return line.custom_id, error.why
    # The error in few words: the status and what the server says.
    inner = body.get("error", body) if isinstance(body, dict) else body
    inner_words = inner.get("message") or inner.get("code") if isinstance(inner, dict) else inner
    own = line.error.message or line.error.code if isinstance(line.error, _Error) else line.error
    said = " ".join(str(own or inner_words or "no response").split())[:160]
    return line.custom_id, f"status {status}: {said}" if status is not None else said
