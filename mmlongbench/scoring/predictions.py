"""Reads predictions from lines of JSON, or from output files of the public code, and sorts them by example.

A line is `{"file", "id", "depth" | "permutation", "prediction" | "skipped"}`; `file` is a path below `mmlb_data/`, and
`skipped` says why the model could not be given the example (see `SKIPPED`). A line may also have `sample`, `digest`,
`context`, `reasoning` and `finish_reason`; other fields are ignored. For lines, only their positions are kept, and each
line is read again when it is scored, so memory does not grow with the outputs.

The public code's `eval.py` writes one JSON object for each dataset and length. `args.test_files` is the public file.
`args.datasets` is the dataset that the run was about; several ablations read the file of another dataset.
`args.max_test_samples` is the number of examples drawn from the file. `data` has the examples, each with the fields of
its public line except the context, and with `output`: the prompt's last words, then the model's output. Examples of
many-shot files have their id in a field `example`. Of these outputs, the texts are kept.

Whether a release has the example is checked later (see `joining`).
"""

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from hashlib import blake2b
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, Self, TypeAlias, TypedDict

from mmlongbench.errors import ScoringError, SourceError
from mmlongbench.io.files import bounded_lines, read_whole
from mmlongbench.models.receipts import FAULTS
from mmlongbench.release.layout import DATA
from mmlongbench.scoring.scores import MAX_SAMPLE

Key: TypeAlias = tuple[str, str, float]
"""The id of an example, the kind of its placement (`depth`, `permutation` or empty), and the value of the placement."""
SKIPPED = ("context-length", "image-limit", "request-size")
"""Why a model cannot take an example: its window is too small, or a request has too many images or too many bytes."""
REASONS = {
    "unreadable-file": "files that are neither predictions nor an output of the public code",
    "unreadable-line": "lines that are no JSON object in UTF-8",
    "line-too-long": "lines too long to be read",
    "missing-field": "predictions without a field they need",
    "mistyped-field": "predictions with a field of another type",
    "not-a-text": "predictions that are no text; ignored",
    "skipped-and-predicted": "lines with both a prediction and `skipped`; ignored",
    "unknown-skip": "lines whose `skipped` is not a known reason; ignored",
    "other-dataset": "outputs of the public code for another dataset than the file's own; left out",
    "unknown-file": "predictions for a file that the release does not have",
    "unknown-id": "predictions for an id that the file does not have",
    "wrong-placement": "predictions for a placement that the example does not have",
    "duplicate": "predictions for an example that has one; the first counts",
    "ambiguous": "ids with rows that cannot be told apart, and fewer predictions than such rows; none of these counts",
    "absent": "examples without a prediction; they score 0",
    "no-predictions": "files without any prediction, left out by --partial",
    "lost-output": "examples of a sample without an output; they are not scored, because their ids are unknown",
    "missing-file": "files that the release's lock names, but that are not there",
}
"""The reasons in words, in the order in which they are shown."""
_PLACES = 3
"""How many places are kept for each reason."""
LEADS = ("Answer:", "Summary:", "label:")
"""The texts with which prompts end. The public code repeats the end of its prompt at the start of each output."""
_APPENDED = ("choices_image", "needle_image_list")
"""The fields with the pictures of the question; the public code appends these pictures to those of the context."""
_JUDGED = "-gpt4eval_o.json"
"""The end of the names of judged outputs. A judged output is a copy of an output file, to which the public code added
judgements; such copies are ignored in a folder."""
_DIGEST = re.compile(r"[0-9a-f]{64}")
_LONGEST = 80
"""The maximum characters of the name of a context."""


class Found(TypedDict):
    """How often a problem occurs."""

    count: int
    first: list[str]
    """The first places where it occurs."""


class Problems:
    """Counts problems by reason."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._first: dict[str, list[str]] = defaultdict(list)

    def add(self, reason: str, place: str, count: int = 1) -> None:
        """Count one more problem, or several at one place."""
        self._counts[reason] += count
        if len(self._first[reason]) < _PLACES:
            self._first[reason].append(place)

    def forgive(self, reason: str) -> int:
        """Forget the problems with a reason; return how many there were."""
        return self._counts.pop(reason, 0)

    def __bool__(self) -> bool:
        return bool(self._counts)

    def summary(self) -> dict[str, Found]:
        """Return how often each problem occurs, and its first places."""
        return {
            reason: {"count": self._counts[reason], "first": self._first[reason]}
            for reason in REASONS
            if self._counts[reason]
        }


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


@dataclass(frozen=True, slots=True)
class Output:
    """One output file of the public code."""

    path: Path
    file: str
    """The public file, below `mmlb_data/`."""
    dataset: str
    """The public code's name for the dataset; empty if it is missing."""
    sample: int | None
    """How many ids were drawn from the file; None if all were used."""

    def __str__(self) -> str:
        return f"{self.path.name}: {self.dataset} on {self.file}"

    def is_of(self, name: str) -> bool:
        """Return whether the public code's name for the dataset can mean the dataset `name` of a public file.

        It can if it contains `name`. It also can if `name` contains all its parts between `-` and `_`.

        >>> def is_of(dataset, name): return Output(Path(), "", dataset, None).is_of(name)
        >>> is_of("mm_niah_counting-text", "counting-text"), is_of("text_doc", "text_mmlongdoc")
        (True, True)
        >>> is_of("triviaqa", "viquae"), is_of("occ_vrag", "viquae"), is_of("text_doc", "mmlongdoc")
        (False, False, False)
        """
        return name in self.dataset or all(part in name for part in re.split("[-_]", self.dataset))


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

    def __exit__(self, *_: object) -> None:
        self._stack.close()


def read_predictions(paths: Sequence[Path], problems: Problems) -> Predictions:
    """Read every prediction of some files or folders; unusable predictions are counted in `problems`.

    Raises:
        ScoringError: there are no files of predictions.

    """
    found, is_empty = Predictions(), True
    for path in paths:
        files = [path]
        if path.is_dir():
            there = (file for file in path.rglob("*") if file.suffix in (".jsonl", ".json") and file.is_file())
            files = sorted(file for file in there if not file.name.endswith(_JUDGED) and not file.name.startswith("."))
        for file in files:
            is_empty = False
            if file.suffix == ".json":
                _add_output(found, file, problems)
            else:
                _add_lines(found, file, problems)
    if is_empty:
        raise ScoringError(
            f"{', '.join(map(str, paths))}: no predictions there; expected *.jsonl, or *.json of the public code"
        )
    return found


def key_of(fields: Mapping[str, object]) -> Key:
    """Return the `Key` of an example, from the fields of a record or a prediction; a wrong field raises ValueError."""
    id = fields.get("id")
    if isinstance(id, bool) or not isinstance(id, str | int):
        raise ValueError(f"id is {id!r:.80}, expected a text")
    for kind in ("depth", "permutation"):
        value = fields.get(kind)
        if value is not None:
            try:
                number = float(value) if isinstance(value, int | float) and not isinstance(value, bool) else math.nan
            except OverflowError:
                number = math.inf
            if not math.isfinite(number):
                raise ValueError(f"{kind} is {value!r:.80}, expected a number")
            return str(id), kind, round(number, 4)
    return str(id), "", 0.0


def told_by(fields: Mapping[str, object]) -> bytes | None:
    """Return a digest of a row's answer and image names; it is the same for a record and for an output of the public
    code.

    Return None if the row has neither. Outputs do not contain the order of passages, so rows that differ only in this
    order have the same digest.
    """
    names = {key: _image_names(fields.get(key)) for key in ("image_list", "ctxs", "image", *_APPENDED)}
    images = names["image_list"] or names["ctxs"] or names["image"]
    for key in _APPENDED:
        if names[key] and images[-len(names[key]) :] == names[key]:
            images = images[: -len(names[key])]
    if "answer" not in fields and not images:
        return None
    text = json.dumps([fields.get("answer"), images], sort_keys=True)
    return blake2b(text.encode(), digest_size=8).digest()


def _image_names(value: object) -> list[str]:
    paths = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    return [PurePosixPath(path).name for path in paths] if all(isinstance(path, str) for path in paths) else []


def _add_lines(found: Predictions, path: Path, problems: Problems) -> None:
    with path.open("rb") as lines:
        for number, offset, line in bounded_lines(lines):
            prediction = Prediction(path, f"line {number}", offset)
            if line is None:
                problems.add("line-too-long", str(prediction))
            elif line.strip():
                try:
                    fields: object = json.loads(line)
                except (ValueError, RecursionError):
                    fields = None
                if isinstance(fields, dict):
                    _add(found, fields, prediction, problems)
                else:
                    problems.add("unreadable-line", str(prediction))


def _add(found: Predictions, fields: Mapping[str, Any], prediction: Prediction, problems: Problems) -> None:
    text, skipped = fields.get("prediction"), fields.get("skipped")
    needed = ("file", "id") if skipped is not None else ("file", "id", "prediction")
    if missing := [name for name in needed if name not in fields]:
        problems.add("missing-field", f"{prediction}: {missing[0]}")
        return
    try:
        key = key_of(fields)
        if not isinstance(fields["file"], str):
            raise ValueError(f"file is {fields['file']!r:.80}, expected a path below {DATA}/")
        sample, digest, context = (fields.get(name) for name in ("sample", "digest", "context"))
        if sample is not None and not (type(sample) is int and 0 <= sample <= MAX_SAMPLE):
            raise ValueError(f"sample is {sample!r:.80}, expected a whole number from 0 to {MAX_SAMPLE:,}")
        if digest is not None and not (isinstance(digest, str) and _DIGEST.fullmatch(digest)):
            raise ValueError(f"digest is {digest!r:.80}, expected 64 hexadecimal digits in lower case")
        if context is not None and not (
            isinstance(context, str) and context.isprintable() and len(context) <= _LONGEST
        ):
            raise ValueError(f"context is {context!r:.80}, expected a name of at most {_LONGEST} characters")
    except ValueError as error:
        problems.add("mistyped-field", f"{prediction}: {error}")
        return
    if skipped is not None and text is not None:
        problems.add("skipped-and-predicted", str(prediction))
    elif skipped is not None and skipped not in SKIPPED:
        problems.add("unknown-skip", f"{prediction}: {skipped!r:.80}, expected one of {', '.join(SKIPPED)}")
    elif skipped is None and not isinstance(text, str):
        problems.add("not-a-text", f"{prediction}: {type(text).__name__}")
    else:
        receipt = fields.get("receipt")
        prediction = replace(
            prediction,
            skipped=skipped or "",
            sample=sample or 0,
            digest=bytes.fromhex(digest or ""),
            receipt=receipt if isinstance(receipt, str) and receipt in FAULTS else "",
        )
        found.by_file[_below_data(fields["file"])][key].append(prediction)
        found.contexts.setdefault(context or "", prediction)


def _below_data(name: str) -> str:
    return name.removeprefix("./").removeprefix(f"{DATA}/")


def _add_output(found: Predictions, path: Path, problems: Problems) -> None:
    try:
        content: Any = json.loads(read_whole(path, "an output of the public code"))
    except SourceError as error:
        problems.add("unreadable-file", f"{path.name}: {' '.join(str(error).split())}")
        return
    except (ValueError, RecursionError) as error:
        problems.add("unreadable-file", f"{path.name}: expected JSON, found {error!s:.120}")
        return
    if not isinstance(content, dict) or not isinstance(content.get("data"), list):
        problems.add("unreadable-file", f"{path.name}: expected an object with `data`, a list")
        return
    args = content.get("args")
    if not isinstance(args, dict) or not isinstance(args.get("test_files"), str):
        problems.add("unreadable-file", f"{path.name}: expected `args.test_files`, the public file that was asked")
        return
    file, sample, dataset = _below_data(args["test_files"]), args.get("max_test_samples"), args.get("datasets")
    is_sample = isinstance(sample, int) and not isinstance(sample, bool)
    output = Output(path, file, dataset if isinstance(dataset, str) else "", sample if is_sample else None)
    found.outputs.append(output)
    for number, row in enumerate(content["data"]):
        row = row if isinstance(row, dict) else {}
        example = {**inner, **row} if isinstance(inner := row.get("example"), dict) else row
        text = row.get("output")
        lead = next((lead for lead in LEADS if isinstance(text, str) and text.startswith(lead)), "")
        prediction = Prediction(path, f"data {number}", lead=lead)
        found.contexts.setdefault("", prediction)
        try:
            key = key_of(example)
        except ValueError as error:
            problems.add("mistyped-field", f"{prediction}: {error}")
            continue
        if isinstance(text, str):
            prediction = replace(prediction, text=text.removeprefix(lead), told=told_by(example))
            found.by_file[file][key].append(prediction)
        else:
            problems.add("not-a-text", str(prediction))
