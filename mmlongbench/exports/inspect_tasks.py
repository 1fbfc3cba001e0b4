"""The target `inspect`: a dataset for each dataset and length, and a file of tasks, for Inspect AI."""

import re
import shlex
from collections.abc import Callable, Iterator
from typing import ClassVar

from mmlongbench.errors import ReleaseError
from mmlongbench.exports.harness import (
    LINKED_IMAGES,
    Facts,
    asked_of,
    facts_of,
    link_release,
    table_of,
    text_of,
    write_template,
)
from mmlongbench.exports.target import Export, Exported, Target
from mmlongbench.io.files import write_whole
from mmlongbench.lengths import format_length
from mmlongbench.messages import Message, messages
from mmlongbench.release.release import Example
from mmlongbench.task.file_formats import to_json

FOLDER = "inspect"
"""The folder of the tasks and their data."""
TASKS = "mmlb.py"
"""The file of tasks. It must not have the name of a module that it imports."""
_TASK = '''

@task
def {function}() -> Task:
    """{summary}"""
    return cell({name!r}, {metric!r}, {answer})
'''


class InspectTasks(Target):
    """Tasks for Inspect AI, which call the metrics of this engine."""

    summary: ClassVar[str] = "datasets and tasks for Inspect AI, scored by the metrics of mmlongbench"

    def write(self, export: Export) -> Exported:
        """Write `inspect/<name>.jsonl`, `inspect/mmlb.py`, a link to the release, and README.md."""
        if export.images == "file-url":
            raise ReleaseError("--images file-url: inspect does not take it; expected path, data-uri or a URL")
        facts, left_out, written = facts_of(export), list[str](), 0
        functions = _functions(facts)
        for each in facts:
            samples = _Samples(export, each, left_out)
            write_whole(export.out / FOLDER / f"{each.name}.jsonl", samples.lines())
            written += samples.count
        write_template(
            export.out / FOLDER / TASKS,
            "inspect_tasks.py.txt",
            metrics=repr(tuple(sorted({each.metric for each in facts}))),
            tasks="".join(_task(function, each) for function, each in functions.items()),
        )
        write_template(
            export.out / "README.md",
            "inspect.md",
            file=f"{FOLDER}/{TASKS}",
            first=next(iter(functions)),
            model=shlex.quote(export.model or "MODEL"),
            tasks=table_of(functions),
        )
        link_release(export)
        return Exported(
            written, tuple(left_out), ("the environment of Inspect needs mmlongbench, whose metrics score",)
        )


class _Samples:
    """Writes the samples of a cell."""

    def __init__(self, export: Export, facts: Facts, left_out: list[str]) -> None:
        self.count = 0
        self._export = export
        self._facts = facts
        self._left_out = left_out
        form = export.images
        self._url: Callable[[str], str] = export.release.image_urls(form) if form else _relative

    def lines(self) -> Iterator[bytes]:
        """Yield a line for each example that Inspect can hold."""
        for example in self._facts.cell.examples():
            said = messages(example.prompt, self._url)
            if not self._export.images and _has_image_elsewhere(said):
                why = "an image in a turn of the model, whose path Inspect does not resolve; use --images path"
                self._left_out.append(f"{example.file}, {_id(example)}: {why}")
                continue
            yield to_json(self._sample(example, said))
            self.count += 1

    def _sample(self, example: Example, said: list[Message]) -> dict[str, object]:
        asked = asked_of(self._export, example)
        metadata = {
            "key": example.key,
            "place": self.count,
            "dataset": example.dataset,
            "length": example.length,
            "metric": self._facts.metric,
            "answer": example.answer,
            "cluster": asked.cluster or example.id,
            "tokens": {"text": example.tokens.text, "image": example.tokens.image},
            "digest": example.digest,
        }
        return {
            "id": _id(example),
            "input": [{"role": each["role"], "content": _content(each)} for each in said],
            "target": _target(example.answer),
            "metadata": metadata,
        }


def _relative(path: str) -> str:
    """Return the path of an image from the folder of the dataset."""
    return f"../{LINKED_IMAGES}/{path}"


def _has_image_elsewhere(said: list[Message]) -> bool:
    """Return whether a turn of the model shows an image."""
    return any("image" in part for each in said if each["role"] != "user" for part in _content(each))


def _content(message: Message) -> list[dict[str, str]]:
    content = message["content"]
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [
        {"type": "text", "text": part["text"]}
        if part["type"] == "text"
        else {"type": "image", "image": part["image_url"]["url"]}
        for part in content
    ]


def _id(example: Example) -> str:
    """Return the id of a sample, which Inspect wants to be unique: the id of the question and its placement."""
    placed = [f"{name}={value}" for name, value in example.key.items() if name in ("depth", "permutation")]
    return "@".join([example.id, *placed])


def _target(answer: object) -> str | list[str]:
    """Return an answer as Inspect shows it; metrics take it from the release."""
    if isinstance(answer, list) and answer and all(isinstance(each, str) for each in answer):
        return list(answer)
    return text_of(answer)


def _functions(facts: list[Facts]) -> dict[str, Facts]:
    """Return the cells by the names of their tasks, which are names of functions and all different."""
    named: dict[str, Facts] = {}
    for each in facts:
        name = f"mmlb_{re.sub('[^A-Za-z0-9]', '_', each.name)}"
        while name in named:
            name += "_"
        named[name] = each
    return named


def _task(function: str, facts: Facts) -> str:
    length = format_length(facts.cell.length)
    summary = f"{facts.cell.dataset} at {length}: {facts.examples:,} examples."
    return _TASK.format(function=function, summary=summary, name=facts.name, metric=facts.metric, answer=facts.answer)
