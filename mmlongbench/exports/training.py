"""The target `training`: conversations for trainers. The known answer is the last turn, said by the assistant.

Texts and images stand in the order of the prompt. Where an image is a marker in a text, there are as many markers as
images: a literal marker of a text is written with blanks in it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum, auto
from pathlib import Path
from textwrap import fill
from typing import BinaryIO, ClassVar

from mmlongbench.draws import Draws
from mmlongbench.errors import MMLongBenchError, ReleaseError
from mmlongbench.exports.harness import LINKED_IMAGES, asked_of, link_release, write_template
from mmlongbench.exports.target import Export, Exported, Target
from mmlongbench.exports.writing import INDEX, embedded_bytes, json_line, named, refuse_model
from mmlongbench.manifest.binding import calling
from mmlongbench.manifest.plugins import metric_type
from mmlongbench.messages import Message, messages
from mmlongbench.prompt import MARKER, escape_markers
from mmlongbench.release.release import Example
from mmlongbench.task.metric import Metric, Settings, first_answer, is_answered


class Form(StrEnum):
    """A form of conversations; its value is what `--format` takes."""

    OPENAI = auto()
    SHAREGPT = auto()
    LLAVA = auto()


FILES: Mapping[str, str] = {Form.OPENAI: "train.jsonl", Form.SHAREGPT: "train.jsonl", Form.LLAVA: "train.json"}
"""The forms, and the file of each. The first trainer of LLaVA reads one JSON array; the array has a line an example."""
SPEAKERS = {"user": "human", "assistant": "gpt", "system": "system"}
"""How ShareGPT and LLaVA name the speakers."""
FORMS: Mapping[str, str] = {
    Form.OPENAI: 'Each line is `{"messages": [...]}`: chat messages whose content is a list of parts of the types '
    "`text` and `image_url`.",
    Form.SHAREGPT: 'Each line is `{"conversations": [...], "images": [...]}`: the text of a turn has `<image>` for '
    "each image, and `images` has their paths in the same order. `dataset_info.json` registers the file for "
    "LLaMA-Factory: `dataset_dir` and `media_dir` are this folder, `dataset` is `mix`.",
    Form.LLAVA: 'Each line is an element of one JSON array: `{"id": ..., "image": [...], "conversations": [...]}`. '
    "The text of a turn has `<image>` for each image, and `image` has their paths in the same order, from "
    "`--image_folder`, which is this folder. The first LLaVA takes one image an example; LLaVA-NeXT takes a list.",
}
"""What the page of an export says about its lines, by form."""


class Training(Target):
    """Conversations with their answers, for trainers."""

    summary: ClassVar[str] = "conversations with their answers, for trainers: --format openai, sharegpt or llava"
    forms: ClassVar[tuple[str, ...]] = tuple(form.value for form in Form)

    def write(self, export: Export) -> Exported:
        """Write the conversations in a drawn order, which example each line is, and a link to the release."""
        refuse_model(export, "conversations name no model and have no limit")
        line, written = _Lines(export, Answers(export)), 0
        with (
            _shuffled(export.out / FILES[export.form], is_array=export.form == Form.LLAVA) as lines,
            _shuffled(export.out / INDEX) as index,
        ):
            for example in export.examples():
                if said := line(example):
                    order = _rank(example)
                    lines.add(order, said)
                    index.add(order, json_line(_about(example, line.changed_last)))
                    written += 1
        if not written:
            raise ReleaseError(
                f"training: the release has no answer for any of the {len(line.left_out):,} chosen examples, so there "
                f"is nothing to train on; the first one is {line.left_out[0].split(': ')[0]}; choose other datasets"
            )
        if export.form == Form.SHAREGPT:
            (export.out / "dataset_info.json").write_bytes(json_line(_LLAMA_FACTORY))
        if not export.images:
            link_release(export)
        _write_page(export, line.left_out)
        return Exported(written, tuple(line.left_out), tuple(line.notes()), line.embedded)


def _write_page(export: Export, left_out: Sequence[str]) -> None:
    about = fill(FORMS[export.form], 120, break_on_hyphens=False)
    listed = "".join(f"- left out: {each}\n" for each in left_out)
    write_template(export.out / "README.md", "training.md", form=about, file=FILES[export.form], left_out=listed)


_LLAMA_FACTORY: Mapping[str, object] = {
    "mix": {
        "file_name": FILES[Form.SHAREGPT],
        "formatting": "sharegpt",
        "columns": {"messages": "conversations", "images": "images"},
    }
}


class Answers:
    """Says the answer of an example as a model that knows it. The metric of a dataset is made once."""

    def __init__(self, export: Export) -> None:
        """Take the export whose examples are answered."""
        self._export = export
        self._metrics: dict[str, Metric | None] = {}

    def __call__(self, example: Example) -> str:
        """Return what the metric of the dataset gives the full score, such as the letter of an option; if a judge
        decides, the answer as text. Empty: the release has no answer.
        """
        asked, metric = asked_of(self._export, example), self._metric(example.dataset)
        gold = asked.gold
        if not is_answered(gold):
            return ""
        with calling("metric", type(metric).__name__, "full_answer()", about=example.name):
            said = metric.full_answer(asked) if metric else None
        if said and said.strip():
            return said
        return first_answer([each for each in gold if is_answered(each)] if isinstance(gold, list) else gold)

    def _metric(self, dataset: str) -> Metric | None:
        if dataset not in self._metrics:
            name = self._export.release.builder(dataset).spec.metric
            try:
                self._metrics[dataset] = metric_type(name)(Settings())
            except MMLongBenchError:  # it needs a judge, or documents
                self._metrics[dataset] = None
        return self._metrics[dataset]


@dataclass(slots=True)
class _Lines:
    """Makes the line of an example."""

    export: Export
    answer: Answers
    left_out: list[str] = field(default_factory=list)
    changed: int = 0
    """The number of examples in which a marker inside a text was rewritten with blanks."""
    changed_last: bool = False
    """Whether the last example is one of them."""
    embedded: int = 0
    """The bytes of images that the lines contain."""

    def __call__(self, example: Example) -> bytes:
        """Return the line; empty if the release has no answer."""
        answer = self.answer(example)
        if not answer.strip():
            self.left_out.append(f"{named(example)}: the release has no answer")
            return b""
        conversation = messages(example.prompt, self._address())
        conversation.append({"role": "assistant", "content": [{"type": "text", "text": answer}]})
        self.changed_last = _escape(conversation)
        self.changed += self.changed_last
        self.embedded += embedded_bytes(example, self.export, self.export.images)
        return json_line(_WRITERS[self.export.form](conversation, example))

    def _address(self) -> Callable[[str], str]:
        """Return how an image is addressed: from the folder of the export, through its link to the release."""
        if self.export.images:
            return self.export.release.image_urls(self.export.images)
        return lambda path: f"{LINKED_IMAGES}/{path}"

    def notes(self) -> Iterator[str]:
        if self.changed:
            yield (
                f"{self.changed:,} examples have a text such as <image> or <|im_end|>, which trainers take for a "
                f"marker; it is written with blanks, and `has_changed_markers` in {INDEX} marks these examples"
            )


def _escape(conversation: list[Message]) -> bool:
    """Write literal markers in the texts of a conversation with blanks, and return whether there were any."""
    is_changed = False
    for message in conversation:
        for part in message["content"]:
            if not isinstance(part, str) and part["type"] == "text":
                plain = escape_markers(part["text"])
                is_changed |= plain != part["text"]
                part["text"] = plain
    return is_changed


def _openai(conversation: list[Message], example: Example) -> Mapping[str, object]:
    return {"messages": conversation}


def _sharegpt(conversation: list[Message], example: Example) -> Mapping[str, object]:
    turns, images = _marked(conversation)
    return {"conversations": turns, "images": images}


def _llava(conversation: list[Message], example: Example) -> Mapping[str, object]:
    turns, images = _marked(conversation)
    name = "/".join(map(str, example.key.values()))
    return {"id": name, **({"image": images} if images else {}), "conversations": turns}


_WRITERS: Mapping[str, Callable[[list[Message], Example], Mapping[str, object]]] = {
    Form.OPENAI: _openai,
    Form.SHAREGPT: _sharegpt,
    Form.LLAVA: _llava,
}


def _marked(conversation: list[Message]) -> tuple[list[Mapping[str, str]], list[str]]:
    """Return the turns of a conversation as texts with a marker for each image, and the images."""
    images, turns = list[str](), list[Mapping[str, str]]()
    for message in conversation:
        texts = list[str]()
        for part in message["content"]:
            if isinstance(part, str):
                texts.append(part)
            elif part["type"] == "text":
                texts.append(part["text"])
            else:
                texts.append(MARKER)
                images.append(part["image_url"]["url"])
        turns.append({"from": SPEAKERS[message["role"]], "value": "".join(texts)})
    return turns, images


def _about(example: Example, is_changed: bool) -> Mapping[str, object]:
    """Return which example a line is."""
    about = {**example.key, "dataset": example.dataset, "length": example.length, "tokens": example.tokens.total}
    return {**about, "digest": example.digest, **({"has_changed_markers": True} if is_changed else {})}


def _rank(example: Example) -> tuple[int, str]:
    """Return the place of an example in the drawn order of all lines."""
    name = example.name
    return Draws(("training",)).rank("order", name), name


class _Shuffled:
    """A file whose lines are written in an order that is known only when the last one is there. The lines wait on the
    disk, because they may be larger than the memory.
    """

    def __init__(self, path: Path, *, is_array: bool) -> None:
        self._path, self._waiting = path, path.with_name(f".{path.name}.waiting")
        self._is_array = is_array
        self._file: BinaryIO = self._waiting.open("wb")
        self._places: list[tuple[tuple[int, str], int, int]] = []

    def add(self, order: tuple[int, str], line: bytes) -> None:
        """Add a line; `order` is its place among all."""
        self._places.append((order, self._file.tell(), len(line)))
        self._file.write(line)

    def __enter__(self) -> "_Shuffled":
        return self

    def __exit__(self, *_: object) -> None:
        """Write all lines in their order."""
        self._file.close()
        with self._waiting.open("rb") as waiting, self._path.open("wb") as file:
            file.write(b"[\n" if self._is_array else b"")
            for number, (_, start, size) in enumerate(sorted(self._places), start=1):
                waiting.seek(start)
                line = waiting.read(size)
                has_more = self._is_array and number < len(self._places)
                file.write(line.removesuffix(b"\n") + b",\n" if has_more else line)
            file.write(b"]\n" if self._is_array else b"")
        self._waiting.unlink()


def _shuffled(path: Path, *, is_array: bool = False) -> _Shuffled:
    return _Shuffled(path, is_array=is_array)
