"""Reads predictions from lines of JSON, or from output files of the public code, and sorts them by example.

A line is `{"file", "id", "depth" | "permutation", "prediction" | "skipped"}`; `file` is a path below `mmlb_data/`, and
`skipped` says why the model could not be given the example (see `SKIPPED`). A line may also have `sample`, `digest`,
`context`, `reasoning` and `finish_reason`; other fields are ignored. For lines, only their positions are kept, and each
line is read again when it is scored, so memory does not grow with the outputs. For outputs of the public code, the
texts are kept. Whether a release has the example is checked later (see `joining` and `staleness`).
"""

import json
import math
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Self, TypeAlias

from mmlongbench.errors import ScoringError
from mmlongbench.io.files import bounded_lines
from mmlongbench.models.receipts import FAULTS
from mmlongbench.release.layout import DATA
from mmlongbench.scoring.official import Official, Output, read_official
from mmlongbench.scoring.problems import Problems
from mmlongbench.scoring.scores import MAX_SAMPLE

Key: TypeAlias = tuple[str, str, float]
"""The id of an example, the kind of its placement (`depth`, `permutation` or empty), and the value of the placement."""
SKIPPED = ("context-length", "image-limit", "request-size")
"""Why a model cannot take an example: its window is too small, or a request has too many images or too many bytes."""
_DIGEST = re.compile(r"[0-9a-f]{64}")
_LONGEST_CONTEXT = 80
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
    sample: int = 0
    """The number of the answer among the model's answers to the same example, from 0."""
    digest: bytes = b""
    """The digest of the example that the model was given (see `example_digest`); empty if the line does not say."""
    receipt: str = ""
    """What `mmlongbench run` found wrong with the tokens of the call, such as `image-lost`; empty if nothing."""

    def __str__(self) -> str:
        return f"{self.path.name}, {self.place}"


class Predictions:
    """All predictions of a model; must be closed."""

    def __init__(self) -> None:
        self.by_file: dict[str, dict[Key, list[Prediction]]] = defaultdict(lambda: defaultdict(list))
        """The predictions by public file (a path below `mmlb_data/`) and example, in the order of reading."""
        self.outputs: list[Output] = []
        """The output files of the public code."""
        self.contexts: dict[str, Prediction] = {}
        """The names of the contexts that the model was given, each with the first prediction that names it; the name
        of the released prompt is empty."""
        self._open: dict[Path, BinaryIO] = {}
        self._stack = ExitStack()

    def text(self, prediction: Prediction) -> str:
        """Return the model's output; empty if the model was not given the example."""
        if prediction.skipped:
            return ""
        if prediction.text is not None:
            return prediction.text
        said: str = self._fields(prediction)["prediction"]
        return said

    def is_cut_off(self, prediction: Prediction) -> bool:
        """Return whether the model was stopped at the maximum of tokens while it was reasoning: there is no answer, but
        the line has the reasoning in a field of its own.
        """
        if prediction.skipped or prediction.text is not None:
            return False
        fields = self._fields(prediction)
        reasoning, said = fields.get("reasoning"), fields["prediction"]
        has_reasoning = isinstance(reasoning, str) and bool(reasoning.strip())
        return has_reasoning and not said.strip() and fields.get("finish_reason") == "length"

    def _fields(self, prediction: Prediction) -> dict[str, Any]:
        """Read the line of a prediction again."""
        if prediction.path not in self._open:
            self._open[prediction.path] = self._stack.enter_context(prediction.path.open("rb"))
        file = self._open[prediction.path]
        file.seek(prediction.offset)
        fields: dict[str, Any] = json.loads(file.readline())
        return fields

    def context(self) -> str:
        """Return the name of the context that the model was given; empty for the released prompt.

        Raises:
            ScoringError: the predictions have several contexts.

        """
        if len(self.contexts) > 1:
            (one, first), (two, second) = list(self.contexts.items())[:2]
            raise ScoringError(
                f"predictions with several contexts: {first} has {one or 'the released prompt'!r}, {second} has "
                f"{two or 'the released prompt'!r}; score each context separately, from a file of its own"
            )
        return next(iter(self.contexts), "")

    def drawn(self, names: Sequence[str]) -> int | None:
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


def _sample(fields: Mapping[str, object]) -> int:
    value = fields.get("sample")
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_SAMPLE:
        raise ValueError(f"sample is {value!r:.80}, expected a whole number from 0 to {MAX_SAMPLE:,}")
    return value


def _digest(fields: Mapping[str, object]) -> bytes:
    value = fields.get("digest")
    if value is None:
        return b""
    if not isinstance(value, str) or not _DIGEST.fullmatch(value):
        raise ValueError(f"digest is {value!r:.80}, expected 64 hexadecimal digits in lower case")
    return bytes.fromhex(value)


def _receipt(fields: Mapping[str, object]) -> str:
    value = fields.get("receipt")
    return value if isinstance(value, str) and value in FAULTS else ""


def _context(fields: Mapping[str, object]) -> str:
    value = fields.get("context")
    if value is None:
        return ""
    if not isinstance(value, str) or not value.isprintable() or len(value) > _LONGEST_CONTEXT:
        raise ValueError(f"context is {value!r:.80}, expected a name of at most {_LONGEST_CONTEXT} characters")
    return value


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
        sample, digest, receipt = _sample(fields), _digest(fields), _receipt(fields)
        prediction = replace(prediction, sample=sample, digest=digest, receipt=receipt)
        context = _context(fields)
    except ValueError as error:
        problems.add("mistyped-field", f"{prediction}: {error}")
        return
    if skipped is not None and said is not None:
        problems.add("skipped-and-predicted", str(prediction))
    elif skipped is not None and skipped not in SKIPPED:
        problems.add("unknown-skip", f"{prediction}: {skipped!r:.80}, expected one of {', '.join(SKIPPED)}")
    elif skipped is None and not isinstance(said, str):
        problems.add("not-a-text", f"{prediction}: {type(said).__name__}")
    else:
        found.by_file[file][key].append(replace(prediction, skipped=skipped or ""))
        found.contexts.setdefault(context, prediction)


def _add_official(found: Predictions, path: Path, problems: Problems) -> None:
    official = read_official(path)
    if not isinstance(official, Official):
        problems.add("unreadable-file", f"{path.name}: {official}")
        return
    file = _below_data(official.file)
    found.outputs.append(Output(path, file, official.dataset, official.sample))
    for number, row in enumerate(official.rows):
        prediction = Prediction(path, f"data {number}", text=row.text, lead=row.lead, told=row.told)
        found.contexts.setdefault("", prediction)
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
