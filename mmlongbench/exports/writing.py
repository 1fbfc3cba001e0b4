"""What several targets write in the same way: the fields that describe an example, lines of JSON, and checks of
choices.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NotRequired

from typing_extensions import TypedDict

from mmlongbench.errors import ReleaseError
from mmlongbench.exports.target import Export
from mmlongbench.release.layout import IMAGES
from mmlongbench.release.release import Example

INDEX = "examples.jsonl"
"""The file beside requests that says which example each request is for."""
_SHOWN = 120


class Tokens(TypedDict):
    """The tokens of a prompt."""

    text: int
    image: int


class Description(TypedDict):
    """The fields that describe an example beside its messages; no server is sent them."""

    file: str
    id: str
    depth: NotRequired[float]
    permutation: NotRequired[int]
    dataset: str
    length: int
    tokens: Tokens
    metric: str
    answer: object
    digest: str


class Describing:
    """Describes examples. The builder of a dataset, which knows the metric, is looked up once."""

    def __init__(self, export: Export) -> None:
        self._metrics = {cell.dataset: export.release.builder(cell.dataset).spec.metric for cell in export.cells}

    def __call__(self, example: Example) -> Description:
        """Return the fields that describe an example."""
        described: Description = {
            "file": example.file,
            "id": example.id,
            "dataset": example.dataset,
            "length": example.length,
            "tokens": {"text": example.tokens.text, "image": example.tokens.image},
            "metric": self._metrics[example.dataset],
            "answer": example.answer,
            "digest": example.digest,
        }
        depth, permutation = example.record.get("depth"), example.record.get("permutation")
        if depth is not None:
            described["depth"] = depth
        if permutation is not None:
            described["permutation"] = permutation
        return described


def embedded_bytes(example: Example, export: Export, form: str) -> int:
    """Return the bytes of images that the messages of an example contain, each image as often as it is shown."""
    if form != "data-uri":
        return 0
    files = export.release.lock.files
    return sum(files[f"{IMAGES}/{image}"].bytes for image in example.prompt.images)


def named(example: Example) -> str:
    """Return the name of an example, such as `NIAH/a_K8.jsonl, a-7, depth 0.2`, shortened if it is very long."""
    return example.name[:_SHOWN]


def answer_type(answer: object) -> str:
    """Return the type of an answer in a column `answer_type`: `text`, `number`, `list`, `object`, `boolean`, `none`.

    >>> answer_type(["a"]), answer_type(4)
    ('list', 'number')
    """
    kinds: Mapping[type, str] = {str: "text", list: "list", tuple: "list", type(None): "none", bool: "boolean"}
    return kinds.get(type(answer)) or ("number" if isinstance(answer, int | float) else "object")


def json_line(value: object) -> bytes:
    r"""Return a value as a line of JSON in ASCII, which every reader splits at the same places.

    >>> json_line({"text": "é"})
    b'{"text": "\\u00e9"}\n'
    """
    return json.dumps(value).encode() + b"\n"


def write_lines(path: Path, lines: Iterable[bytes]) -> int:
    """Write a file line by line, and return the number of lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    count = 0
    with path.open("wb") as file:
        for line in lines:
            file.write(line)
            count += 1
    return count


def write_text(path: Path, text: str) -> None:
    """Write a text file in UTF-8."""
    path.write_bytes(text.encode("utf-8"))


def refuse_model(export: Export, why: str) -> None:
    """Raise an error if a model is named, or its answer limited, for a target whose files say neither."""
    if export.model:
        raise ReleaseError(f"--model {export.model}: {why}; leave it out")
    if export.max_tokens is not None:
        raise ReleaseError(f"--max-tokens {export.max_tokens}: {why}; leave it out")


def once(what: Callable[[Example], str]) -> Callable[[Example], str]:
    """Return the same function, which raises an error if it gives two examples the same name."""
    seen: dict[str, str] = {}

    def checked(example: Example) -> str:
        name = what(example)
        if name in seen:
            raise ReleaseError(
                f"{named(example)}: has the same prompt and placement as {seen[name]}; requests for both "
                "cannot be told apart"
            )
        seen[name] = named(example)
        return name

    return checked
