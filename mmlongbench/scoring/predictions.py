"""Reads predictions from lines of JSON, or from output files of the public code, and sorts them by example.

A line is `{"file", "id", "depth" | "permutation", "prediction" | "skipped"}`; `file` is a path below `mmlb_data/`, and
`skipped` says why the model could not be given the example (see `SKIPPED`). For lines, only their positions are kept,
and each line is read again when it is scored, so memory does not grow with the outputs. For outputs of the public code,
the texts are kept. Whether a release has the example is checked later (see `joining`).
"""

import json
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self, TypeAlias

from mmlongbench.errors import ScoringError
from mmlongbench.io.safe_read import bounded_lines
from mmlongbench.release.layout import DATA
from mmlongbench.scoring.official import Official, Output, read_official
from mmlongbench.scoring.problems import Problems

Key: TypeAlias = tuple[str, str, float]
"""The id of an example, the kind of its placement (`depth`, `permutation` or empty), and the value of the placement."""
SKIPPED = ("context-length", "image-limit", "request-size")
"""Why a model cannot take an example: its window is too small, or a request has too many images or too many bytes."""
_JUDGED = "-gpt4eval_o.json"
"""The end of the names of judged outputs. A judged output is a copy of an output file, to which the public code added
judgements; such copies are ignored in a folder."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """One prediction: its position in a file, or its text."""

    path: Path
    place: str
    offset: int = 0
    """The byte at which the line of the prediction begins."""
    text: str | None = None
    """The text of an output of the public code; None for a line, which is read again when it is scored."""
    lead: str = ""
    """See `ScoringInput.lead`."""
    told: bytes | None = None
    """For an output of the public code: a digest that identifies the row (see `told_by`)."""
    skipped: str = ""
    """Why the model was not given the example; empty if the example was given."""

    def __str__(self) -> str:
        return f"{self.path.name}, {self.place}"


class Predictions:
    """All predictions of a model; must be closed."""

    def __init__(self) -> None:
        self.by_file: dict[str, dict[Key, list[Prediction]]] = defaultdict(lambda: defaultdict(list))
        """The predictions by public file (a path below `mmlb_data/`) and example, in the order of reading."""
        self.outputs: list[Output] = []
        """The output files of the public code."""
        self._open: dict[Path, BinaryIO] = {}
        self._stack = ExitStack()

    def text(self, prediction: Prediction) -> str:
        """Return the model's output; empty if the model was not given the example."""
        if prediction.skipped:
            return ""
        if prediction.text is not None:
            return prediction.text
        if prediction.path not in self._open:
            self._open[prediction.path] = self._stack.enter_context(prediction.path.open("rb"))
        file = self._open[prediction.path]
        file.seek(prediction.offset)
        said: str = json.loads(file.readline())["prediction"]
        return said

    def sample(self, names: Sequence[str]) -> int | None:
        """Return how many ids the public code drew from the public file with these names; None if it drew no sample.

        If there are several outputs for the file, the largest sample counts. If one of these outputs used all ids, None
        is returned.
        """
        drawn = [output.sample for output in self.outputs if output.file in names]
        return None if None in drawn else max((each for each in drawn if each is not None), default=None)

    def leave_out(self, output: Output) -> None:
        """Remove an output file of the public code, with its predictions."""
        self.outputs.remove(output)
        kept = {
            key: [each for each in queue if each.path != output.path]
            for key, queue in self.by_file.pop(output.file, {}).items()
        }
        if there := {key: queue for key, queue in kept.items() if queue}:
            self.by_file[output.file].update(there)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()


def read_predictions(paths: Sequence[Path], problems: Problems) -> Predictions:
    """Read every prediction of some files or folders; unusable predictions are counted in `problems`.

    Raises:
        ScoringError: there are no files of predictions.

    """
    found = Predictions()
    files = [file for path in paths for file in _files(path)]
    if not files:
        raise ScoringError(
            f"{', '.join(map(str, paths))}: no predictions there; expected *.jsonl, or *.json of the public code"
        )
    for file in files:
        if file.suffix == ".json":
            _add_official(found, file, problems)
        else:
            _add_lines(found, file, problems)
    return found


def key_of(fields: Mapping[str, object]) -> Key:
    """Return the `Key` of an example, from the fields of a record or a prediction; a wrong field raises ValueError."""
    id = fields.get("id")
    if isinstance(id, bool) or not isinstance(id, str | int):
        raise ValueError(f"id is {id!r:.80}, expected a text")
    for kind in ("depth", "permutation"):
        value = fields.get(kind)
        if value is not None:
            return str(id), kind, round(_number(kind, value), 4)
    return str(id), "", 0.0


def _number(kind: str, value: object) -> float:
    try:
        found = float(value) if isinstance(value, int | float) and not isinstance(value, bool) else math.nan
    except OverflowError:
        found = math.inf
    if not math.isfinite(found):
        raise ValueError(f"{kind} is {value!r:.80}, expected a number")
    return found


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    named = (file for file in path.rglob("*") if file.suffix in (".jsonl", ".json") and file.is_file())
    return sorted(file for file in named if not file.name.endswith(_JUDGED) and not file.name.startswith("."))


def _add_lines(found: Predictions, path: Path, problems: Problems) -> None:
    with path.open("rb") as lines:
        for number, offset, line in bounded_lines(lines):
            prediction = Prediction(path, f"line {number}", offset)
            if line is None:
                problems.add("line-too-long", str(prediction))
            elif line.strip() and (fields := _fields(line)) is None:
                problems.add("unreadable-line", str(prediction))
            elif line.strip() and fields is not None:
                _add(found, fields, prediction, problems)


def _add(found: Predictions, fields: Mapping[str, object], prediction: Prediction, problems: Problems) -> None:
    said, skipped = fields.get("prediction"), fields.get("skipped")
    needed = ("file", "id") if skipped is not None else ("file", "id", "prediction")
    if missing := [name for name in needed if name not in fields]:
        problems.add("missing-field", f"{prediction}: {missing[0]}")
        return
    try:
        key = key_of(fields)
        file = _below_data(fields["file"])
    except ValueError as error:
        problems.add("mistyped-field", f"{prediction}: {error}")
        return
    if skipped is not None and said is not None:
        problems.add("skipped-and-predicted", str(prediction))
    elif skipped is not None and skipped not in SKIPPED:
        problems.add("unknown-skip", f"{prediction}: {skipped!r:.80}, expected one of {', '.join(SKIPPED)}")
    elif skipped is not None:
        found.by_file[file][key].append(replace(prediction, skipped=skipped))
    elif isinstance(said, str):
        found.by_file[file][key].append(prediction)
    else:
        problems.add("not-a-text", f"{prediction}: {type(said).__name__}")


def _add_official(found: Predictions, path: Path, problems: Problems) -> None:
    official = read_official(path)
    if not isinstance(official, Official):
        problems.add("unreadable-file", f"{path.name}: {official}")
        return
    file = _below_data(official.file)
    found.outputs.append(Output(path, file, official.dataset, official.sample))
    for number, row in enumerate(official.rows):
        prediction = Prediction(path, f"data {number}", text=row.text, lead=row.lead, told=row.told)
        try:
            key = key_of(row.fields)
        except ValueError as error:
            problems.add("mistyped-field", f"{prediction}: {error}")
            continue
        if row.text is None:
            problems.add("not-a-text", str(prediction))
        else:
            found.by_file[file][key].append(prediction)


def _fields(line: bytes) -> dict[str, object] | None:
    try:
        fields: object = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return fields if isinstance(fields, dict) else None


def _below_data(name: object) -> str:
    if not isinstance(name, str):
        raise ValueError(f"file is {name!r:.80}, expected a path below {DATA}/")
    return name.removeprefix("./").removeprefix(f"{DATA}/")
