"""The lines of a file of predictions, as `run` and `collect` write them; `score` reads them."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from mmlongbench.errors import ReleaseError
from mmlongbench.io.files import atomic_write
from mmlongbench.task.file_formats import JSON_LINES

_FOLDER = "predictions"
"""The folder of predictions files, in the current folder."""


class PredictionLine(BaseModel):
    """One answer of a model to one example; a field that is not set is not written."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    file: str
    """The public file of the example, below `mmlb_data/`."""
    id: str
    depth: float | None = None
    permutation: int | None = None
    sample: int | None = None
    """The number of the answer, from 0, if answers are drawn at a temperature above 0."""
    prediction: str | None = None
    """The answer; None if the model was not given the example."""
    skipped: str | None = None
    """Why the model cannot be given the example, such as `context-length`."""
    digest: str = ""
    """The digest of the example (`Example.digest`)."""
    lock: str = ""
    """The id of the release (`Release.lock_id`)."""
    model: str = ""
    context: str = ""
    """The form of the prompt, such as `none`; empty: the released prompt."""
    settings: Mapping[str, JsonValue] = {}
    """The options of the run that change answers and are not at their default, such as `temperature`."""
    reasoning: str = ""
    """The reasoning that the endpoint returned apart from the answer; it is not scored."""
    finish_reason: str = ""
    usage: Mapping[str, int] = {}
    """The token counts of the endpoint."""
    expected_tokens: int | None = None
    """The prompt tokens that were expected before the call; None if there was nothing to expect them from."""
    receipt: str = ""
    """What the difference between `usage` and `expected_tokens` means, such as `image-lost`; empty if they agree."""
    seconds: float | None = None
    """How long the request took."""
    sent: str = ""
    """A digest of the prompt that was sent, with the bytes of its images."""

    def json_line(self) -> bytes:
        r"""Return the line, with its line end; fields that are not set are left out.

        >>> PredictionLine(file="NIAH/a_K8.jsonl", id="7", depth=0.2, prediction="Yes").json_line()
        b'{"file":"NIAH/a_K8.jsonl","id":"7","depth":0.2,"prediction":"Yes"}\n'
        """
        return self.model_dump_json(exclude_defaults=True, ensure_ascii=True).encode() + b"\n"

    @property
    def place(self) -> tuple[object, ...]:
        """Return what distinguishes the line from the other lines of a file."""
        return self.file, self.id, self.depth, self.permutation, self.sample


def predictions_file(model: str, context: str = "") -> Path:
    """Return the path of a model's predictions.

    >>> predictions_file("Qwen/Qwen2.5-VL-7B", "none").as_posix()
    'predictions/Qwen_Qwen2.5-VL-7B.none.jsonl'
    """
    name = model.replace("/", "_").strip(".") or "model"
    return Path(_FOLDER) / f"{name}{f'.{context}' if context else ''}.jsonl"


def write_predictions(path: Path, lines: Iterable[PredictionLine]) -> int:
    """Write a file of predictions, which appears whole or not at all; return the number of its lines."""
    count = 0
    with atomic_write(path) as file:
        for line in lines:
            file.write(line.json_line())
            count += 1
    return count


def read_lines(path: Path, like: PredictionLine) -> list[PredictionLine]:
    """Return the lines of a file of predictions; an empty list if there is no file.

    Raises:
        ReleaseError: a line is of another form, or has not the model, release, context and settings of `like`; such
            lines must not be mixed in a file.

    """
    if path.exists() and not path.is_file():
        raise ReleaseError(f"{path}: is a folder, a pipe or a device, expected a file of predictions")
    found = []
    for where, fields in JSON_LINES.unbundle(path) if path.exists() else ():
        try:
            line = PredictionLine.model_validate(fields)
        except ValidationError as error:
            place = ".".join(map(str, error.errors()[0]["loc"]))
            raise ReleaseError(f"{path}, {where}: {place}: {error.errors()[0]['msg']}; use another --out") from error
        for name, field in (("model", "model"), ("context", "context"), ("settings", "settings"), ("release", "lock")):
            there, here = getattr(line, field), getattr(like, field)
            if there != here:
                was, has = (f"{value!r:.120}" if value else "none" for value in (there, here))
                raise ReleaseError(
                    f"{path}, {where}: was made with {name} {was}, this run has {has}; use another --out, or remove "
                    "the file (answers that are known are not asked for again)"
                )
        found.append(line)
    return found
