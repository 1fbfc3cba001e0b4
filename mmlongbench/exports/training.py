"""The target `training`: conversations for trainers. The known answer is the last turn, said by the assistant.

Texts and images stand in the order of the prompt. Where an image is a marker in a text, there are as many markers as
images: a literal marker of a text is written with blanks in it.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum, auto
from functools import cache
from pathlib import Path
from textwrap import fill
from typing import BinaryIO, ClassVar, TypeAlias

from mmlongbench.draws import Draws
from mmlongbench.errors import MMLongBenchError, ReleaseError
from mmlongbench.exports.target import INDEX, LINKED_IMAGES, Export, Exported, Target, json_line, named
from mmlongbench.manifest.binding import calling, metric_of
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
"""The file of each form. The first trainer of LLaVA reads one JSON array; the array has a line an example."""
SPEAKERS = {"user": "human", "assistant": "gpt", "system": "system"}
"""How ShareGPT and LLaVA name the speakers."""
_FORMS: Mapping[str, str] = {
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
_LLAMA_FACTORY: Mapping[str, object] = {
    "mix": {
        "file_name": FILES[Form.SHAREGPT],
        "formatting": "sharegpt",
        "columns": {"messages": "conversations", "images": "images"},
    }
}
_Order: TypeAlias = tuple[int, str]


class Training(Target):
    """Conversations with their answers, for trainers."""

    summary: ClassVar[str] = "conversations with their answers, for trainers: --format openai, sharegpt or llava"
    forms: ClassVar[tuple[str, ...]] = tuple(form.value for form in Form)
    without_model: ClassVar[str] = "conversations name no model and have no limit"

    def write(self, export: Export) -> Exported:
        """Write the conversations in a drawn order, which example each line is, and a link to the release."""
        url = export.release.image_urls(export.images) if export.images else lambda path: f"{LINKED_IMAGES}/{path}"
        metric_of = cache(lambda dataset: _metric(export, dataset))
        left_out, written, changed, embedded = list[str](), 0, 0, 0
        with (
            _shuffled(export.out / FILES[export.form], is_array=export.form == Form.LLAVA) as lines,
            _shuffled(export.out / INDEX) as index,
        ):
            for example in export.examples():
                answer = _answer(export, example, metric_of(example.dataset))
                if not answer.strip():
                    left_out.append(f"{named(example)}: the release has no answer")
                    continue
                conversation = messages(example.prompt, url)
                conversation.append({"role": "assistant", "content": [{"type": "text", "text": answer}]})
                is_changed = _escape(conversation)
                about = {
                    **example.key,
                    "dataset": example.dataset,
                    "length": example.length,
                    "tokens": example.tokens.total,
                    "digest": example.digest,
                    **({"has_changed_markers": True} if is_changed else {}),
                }
                order = Draws(("training",)).rank("order", example.name), example.name
                lines.add(order, json_line(_line(export.form, conversation, example)))
                index.add(order, json_line(about))
                changed += is_changed
                embedded += export.embedded_bytes(example, export.images)
                written += 1
        if not written:
            raise ReleaseError(
                f"training: the release has no answer for any of the {len(left_out):,} chosen examples, so there "
                f"is nothing to train on; the first one is {left_out[0].split(': ')[0]}; choose other datasets"
            )
        if export.form == Form.SHAREGPT:
            (export.out / "dataset_info.json").write_bytes(json_line(_LLAMA_FACTORY))
        if not export.images:
            export.link_release()
        listed = "".join(f"- left out: {each}\n" for each in left_out)
        about_form = fill(_FORMS[export.form], 120, break_on_hyphens=False)
        counted, file = export.counted_as, FILES[export.form]
        export.write_page("training.md", form=about_form, counted=counted, file=file, left_out=listed)
        note = (
            f"{changed:,} examples have a text such as <image> or <|im_end|>, which trainers take for a "
            f"marker; it is written with blanks, and `has_changed_markers` in {INDEX} marks these examples"
        )
        return Exported(written, tuple(left_out), (note,) if changed else (), embedded)


def _metric(export: Export, dataset: str) -> Metric | None:
    try:
        return metric_of(export.release.builder(dataset), export.metric(dataset))(Settings())
    except MMLongBenchError:  # it needs a judge, or documents
        return None


def _answer(export: Export, example: Example, metric: Metric | None) -> str:
    """Return what the metric of the dataset gives the full score, such as the letter of an option; if a judge decides,
    the answer as text. Empty: the release has no answer.
    """
    asked = export.scoring_input(example)
    gold = asked.answer
    if not is_answered(gold):
        return ""
    with calling("metric", type(metric).__name__, "full_answer()", about=example.name):
        full = metric.full_answer(asked) if metric else None
    if full and full.strip():
        return full
    return first_answer([each for each in gold if is_answered(each)] if isinstance(gold, list) else gold)


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


def _line(form: str, conversation: list[Message], example: Example) -> Mapping[str, object]:
    """Return a conversation in a form. ShareGPT and LLaVA have texts with a marker for each image, and the images."""
    if form == Form.OPENAI:
        return {"messages": conversation}
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
    if form == Form.SHAREGPT:
        return {"conversations": turns, "images": images}
    name = "/".join(map(str, example.key.values()))
    return {"id": name, **({"image": images} if images else {}), "conversations": turns}


class _Waiting:
    """Lines of a file whose order is known only when the last one is there. They wait on the disk, because they may be
    larger than the memory.
    """

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self.places: list[tuple[_Order, int, int]] = []

    def add(self, order: _Order, line: bytes) -> None:
        """Add a line; `order` is its place among all."""
        self.places.append((order, self.file.tell(), len(line)))
        self.file.write(line)


@contextmanager
def _shuffled(path: Path, *, is_array: bool = False) -> Iterator[_Waiting]:
    """Yield lines that are written into a file, in their order, when the block ends."""
    waiting = path.with_name(f".{path.name}.waiting")
    with waiting.open("w+b") as lines, path.open("wb") as file:
        written = _Waiting(lines)
        yield written
        file.write(b"[\n" if is_array else b"")
        for number, (_, start, size) in enumerate(sorted(written.places), start=1):
            lines.seek(start)
            line = lines.read(size)
            has_more = is_array and number < len(written.places)
            file.write(line.removesuffix(b"\n") + b",\n" if has_more else line)
        file.write(b"]\n" if is_array else b"")
    waiting.unlink()
