"""The contract of an export: what a target is given, what it writes, and what it reports; and what targets share.

No target is known here. Choices that a target does not take are refused before it is asked to write.
"""

import json
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import ClassVar

from mmlongbench.errors import ReleaseError
from mmlongbench.io.files import write_whole
from mmlongbench.lengths import format_length
from mmlongbench.manifest.binding import calling
from mmlongbench.messages import Message
from mmlongbench.release.layout import IMAGES, name_of
from mmlongbench.release.release import Example, Release
from mmlongbench.release.selection import Cell
from mmlongbench.task.builder import scoring_input
from mmlongbench.task.file_formats import to_json
from mmlongbench.task.metric import ScoringInput

INDEX = "examples.jsonl"
"""The file beside requests or conversations that says which example each is."""
LINKED_IMAGES = f"release/{IMAGES}"
"""The images of the release, from the folder of the export, through its link `release`."""


@dataclass(frozen=True, slots=True)
class Export:
    """What is exported, where to, and how."""

    release: Release
    cells: tuple[Cell, ...]
    """The chosen examples: one cell for each dataset and length."""
    out: Path
    """The folder to write into; it exists and is empty."""
    model: str = ""
    """The name of the model, for targets whose files name it; empty: not given."""
    images: str = ""
    """The form of image addresses (see `Example.messages`); empty: the target's own choice."""
    max_tokens: int | None = None
    """The maximum number of tokens of an answer; None: the reserve of the example."""
    form: str = ""
    """The form of the lines, one of the target's `forms`; empty if it has only one."""

    def examples(self) -> Iterator[Example]:
        """Yield all chosen examples, cell by cell; one is in memory at a time."""
        for cell in self.cells:
            yield from cell.examples()

    def metric(self, dataset: str) -> str:
        """Return the name of the metric of a dataset."""
        return self.release.builder(dataset).spec.metric

    @property
    def counted_as(self) -> str:
        """By what its tokens are counted, in words."""
        names = {cell.dataset for cell in self.cells}
        datasets = (file.dataset for file in self.release.files if file.dataset and file.dataset.name in names)
        said = (each.counted_as or f"texts by {each.tokenizer}, images by their patches" for each in datasets)
        return "; ".join(dict.fromkeys(said))

    def describe(self, example: Example) -> dict[str, object]:
        """Return the fields that describe an example beside its messages; no server is sent them."""
        placed = {name: example.record.get(name) for name in ("depth", "permutation")}
        return {
            "file": example.file,
            "id": example.id,
            "dataset": example.dataset,
            "length": example.length,
            "tokens": {"text": example.tokens.text, "image": example.tokens.image},
            "metric": self.metric(example.dataset),
            "answer": example.answer,
            "digest": example.digest,
            **({"context": example.variant} if example.variant else {}),
            **{name: value for name, value in placed.items() if value is not None},
        }

    def scoring_input(self, example: Example) -> ScoringInput:
        """Return what a metric is given for an example, without a prediction."""
        builder = self.release.builder(example.dataset)
        about = f"example {example.id!r}"
        with calling("builder", type(builder).__name__, "a method that scoring calls", about=about):
            return scoring_input(builder, example.record, example.file)

    def answer_tokens(self, example: Example) -> int:
        """Return the maximum number of tokens of an answer; 0: not limited, because the release kept no tokens free."""
        return self.max_tokens or example.reserve

    def embedded_bytes(self, example: Example, form: str) -> int:
        """Return the bytes of images in the messages of an example, each image as often as it is shown."""
        locked = self.release.lock.files
        return sum(locked[f"{IMAGES}/{image}"].bytes for image in example.prompt.images) if form == "data-uri" else 0

    def request(self, name: str, example: Example, messages: Iterable[Message]) -> bytes:
        """Return the line of a batch file: a chat completion, with the name by which its result comes back."""
        most = self.answer_tokens(example)
        body: Mapping[str, object] = {
            **({"model": self.model} if self.model else {}),
            "messages": messages,
            **({"max_completion_tokens": most} if most else {}),
        }
        return json_line({"custom_id": name, "method": "POST", "url": "/v1/chat/completions", "body": body})

    def link_release(self) -> None:
        """Make the link `release` in the folder of the export; it is relative. The task files that a user gave with the
        release are copied to `tasks`, since written code scores with them.

        Raises:
            ReleaseError: two different task files have one name.

        """
        for path in self.release.tasks.paths:
            copy, data = self.out / "tasks" / path.name, path.read_bytes()
            if copy.exists() and copy.read_bytes() != data:
                todo = "rename one of them, name it so in the manifest, and build the release again"
                raise ReleaseError(f"--task {path}: another --task file is called {path.name} too; {todo}")
            write_whole(copy, [data])
        out = self.out.resolve()
        (out / "release").symlink_to(os.path.relpath(self.release.path.resolve(), out), target_is_directory=True)

    def write_page(self, template: str, path: str = "README.md", /, **values: object) -> None:
        """Write a file from a template of this package: `$name` becomes a value, `$$` a dollar sign."""
        text = (files("mmlongbench.exports") / "templates" / template).read_text("utf-8")
        page = Template(text).substitute(values)
        write_whole(self.out / path, [page.encode("utf-8", "backslashreplace")])


@dataclass(frozen=True, slots=True)
class Exported:
    """What a target wrote."""

    examples: int
    """The number of examples in its files."""
    left_out: tuple[str, ...] = ()
    """The examples that the form cannot hold, each with the reason."""
    notes: tuple[str, ...] = ()
    """Sentences that a user must know to run the files."""
    bytes_copied: int = 0
    """The bytes of images that its files contain, as copies or in base64; 0 if images are linked or referred to."""
    files: int = 0
    """The number of files; counted by `export`."""
    bytes: int = 0
    """The size of all files, without files that are linked; counted by `export`."""


class Target(ABC):
    """A form in which other tools take examples. Subclasses are entry points of the group `mmlongbench.exports`; the
    name of the entry point is the name of the target.
    """

    summary: ClassVar[str]
    """What the target is, in one line."""
    forms: ClassVar[tuple[str, ...]] = ()
    """The forms of its lines, of which `--format` chooses one, the first by default; empty: there is only one."""
    image_forms: ClassVar[str] = ".*"
    """A pattern of what `--images` may be, such as `path|data-uri`."""
    image_advice: ClassVar[str] = ""
    """Why it takes no other form of images, and what to do."""
    without_model: ClassVar[str] = ""
    """Why its files name no model and limit no answer; empty if they do."""

    @abstractmethod
    def write(self, export: Export) -> Exported:
        """Write the files, and a README.md that says how to run them.

        The same release and the same choices give the same bytes. Images are referred to, linked or embedded, as the
        form allows; a text part or an image is never left out or moved.

        Raises:
            ReleaseError: the release cannot be read, or a choice does not fit the target.

        """

    def check(self, images: str, model: str, max_tokens: int | None) -> None:
        """Raise ReleaseError if a form of images, a model or a limit means nothing to this target."""
        if images and not re.fullmatch(self.image_forms, images):
            raise ReleaseError(f"--images {images}: {self.image_advice}")
        for option, value in (("--model", model or None), ("--max-tokens", max_tokens)):
            if self.without_model and value is not None:
                raise ReleaseError(f"{option} {value}: {self.without_model}; leave it out")


@dataclass(frozen=True, slots=True)
class CellFacts:
    """What a target must know of a cell before it writes."""

    cell: Cell
    name: str
    """The dataset and the length, such as `mmlongdoc_8K`."""
    metric: str
    examples: int
    answer: int
    """The maximum number of tokens of an answer."""
    longest: int
    """The tokens of the longest prompt."""
    most_images: int
    """The number of images of the prompt that has the most."""


def facts_of(export: Export) -> list[CellFacts]:
    """Read every chosen example once; a `ReleaseError` if two of a file have one name. Cells without an example are
    left out.
    """
    found = []
    for cell in export.cells:
        names, reserve, longest, most = set[str](), 0, 0, 0
        for example in cell.examples():
            name = name_of(example.record)
            if name in names:
                raise ReleaseError(f"{example.file}: two examples have the name {name!r:.200}; see `mmlongbench audit`")
            names.add(name)
            reserve = max(reserve, example.reserve)
            longest = max(longest, example.tokens.total)
            most = max(most, len(example.prompt.images))
        if names:
            spec = export.release.builder(cell.dataset).spec
            answer = export.max_tokens or reserve or spec.reserve
            title = f"{cell.dataset}_{format_length(cell.length)}"
            found.append(CellFacts(cell, title, spec.metric, len(names), answer, longest, most))
    return found


def table_of(cells: Mapping[str, CellFacts]) -> str:
    """Return a table of cells in Markdown, by the names that the target gives them."""
    heads = ("name", "examples", "metric", "answer tokens", "longest prompt (tokens)", "most images")
    rows = [heads, ("---", *["---:"] * (len(heads) - 1))]
    for name, facts in cells.items():
        figures = (f"{figure:,}" for figure in (facts.answer, facts.longest, facts.most_images))
        rows.append((f"`{name}`", f"{facts.examples:,}", facts.metric, *figures))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def text_of(answer: object) -> str:
    """Return an answer as one text: the text itself, or else JSON.

    >>> text_of("0012"), text_of(["a", "b"]), text_of(3)
    ('0012', '["a", "b"]', '3')
    """
    return answer if isinstance(answer, str) else json_text(answer)


def json_text(value: object) -> str:
    """Return a value as JSON in one line, which UTF-8 can encode."""
    return to_json(value).decode().removesuffix("\n")


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


def named(example: Example) -> str:
    """Return the name of an example, such as `NIAH/a_K8.jsonl, a-7, depth 0.2`, shortened if it is very long."""
    return example.name[:120]


def once(name_of_request: Callable[[Example], str]) -> Callable[[Example], str]:
    """Return the same function, which raises an error if it gives two examples the same name."""
    seen: dict[str, str] = {}

    def checked(example: Example) -> str:
        name = name_of_request(example)
        if name in seen:
            raise ReleaseError(
                f"{named(example)}: has the same prompt and placement as {seen[name]}; requests for both "
                "cannot be told apart"
            )
        seen[name] = named(example)
        return name

    return checked


_IMAGES_SAID = {
    "file-url": "Images are `file://` URLs of the release, so the release must stay where it is. A server must be "
    "allowed to read it, as vLLM is by `--allowed-local-media-path`.",
    "path": "Images are absolute paths of the release, so the release must stay where it is. SGLang and `transformers "
    "serve` take paths; vLLM and OpenAI do not.",
    "data-uri": "Images are in the lines themselves, in base64.",
}


def images_said(form: str) -> str:
    """Return what the page of an export says about its images, by the form in which they are given."""
    url = f"Images are URLs below {form}, where the folder `mmlb_image/` of the release must be served."
    return _IMAGES_SAID.get(form, url)
