"""The target `inspect`: a dataset for each dataset and length, and a file of tasks, for Inspect AI."""

import re
import shlex
from collections.abc import Callable, Iterator
from typing import ClassVar

from mmlongbench.exports.target import LINKED_IMAGES, CellFacts, Export, Exported, Target, facts_of, table_of, text_of
from mmlongbench.io.files import write_whole
from mmlongbench.lengths import format_length
from mmlongbench.messages import Message, messages
from mmlongbench.release.release import Example
from mmlongbench.task.file_formats import to_json

FOLDER = "inspect"
"""The folder of the tasks and their data."""
TASKS = f"{FOLDER}/mmlb.py"
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
    image_forms: ClassVar[str] = "(?!file-url$).*"
    image_advice: ClassVar[str] = "inspect does not take it; expected path, data-uri or a URL"

    def write(self, export: Export) -> Exported:
        """Write `inspect/<name>.jsonl`, `inspect/mmlb.py`, a link to the release, and README.md."""
        cells, left_out, written = facts_of(export), list[str](), 0
        functions: dict[str, CellFacts] = {}  # names of functions, all different
        for facts in cells:
            name = f"mmlb_{re.sub('[^A-Za-z0-9]', '_', facts.name)}"
            while name in functions:
                name += "_"
            functions[name] = facts
            before = len(left_out)
            write_whole(export.out / FOLDER / f"{facts.name}.jsonl", _samples(export, facts, left_out))
            written += facts.examples - (len(left_out) - before)
        metrics = repr(tuple(sorted({facts.metric for facts in cells})))
        tasks = "".join(_task(function, facts) for function, facts in functions.items())
        export.write_page("inspect_tasks.py.txt", TASKS, metrics=metrics, tasks=tasks)
        model, first = shlex.quote(export.model or "MODEL"), next(iter(functions))
        export.write_page("inspect.md", file=TASKS, first=first, model=model, tasks=table_of(functions))
        export.link_release()
        notes = ("the environment of Inspect needs mmlongbench, whose metrics score",)
        return Exported(written, tuple(left_out), notes)


def _task(function: str, facts: CellFacts) -> str:
    summary = f"{facts.cell.dataset} at {format_length(facts.cell.length)}: {facts.examples:,} examples."
    return _TASK.format(function=function, summary=summary, name=facts.name, metric=facts.metric, answer=facts.answer)


def _samples(export: Export, facts: CellFacts, left_out: list[str]) -> Iterator[bytes]:
    """Yield a line for each example that Inspect can hold; name the others in `left_out`."""
    # The paths of images are those from the folder of the dataset, unless another form was chosen.
    url: Callable[[str], str] = lambda path: f"../{LINKED_IMAGES}/{path}"  # noqa: E731
    if export.images:
        url = export.release.image_urls(export.images)
    place = 0
    for example in facts.cell.examples():
        turns = [(turn["role"], _content(turn)) for turn in messages(example.prompt, url)]
        shows = any("image" in part for role, content in turns if role != "user" for part in content)
        if shows and not export.images:
            why = "an image in a turn of the model, whose path Inspect does not resolve; use --images path"
            left_out.append(f"{example.file}, {_id(example)}: {why}")
            continue
        metadata = {
            "key": example.key,
            "place": place,
            "dataset": example.dataset,
            "length": example.length,
            "metric": facts.metric,
            "answer": example.answer,
            "cluster": export.scoring_input(example).cluster or example.id,
            "tokens": {"text": example.tokens.text, "image": example.tokens.image},
            "digest": example.digest,
        }
        sample = {
            "id": _id(example),
            "input": [{"role": role, "content": content} for role, content in turns],
            "target": _target(example.answer),
            "metadata": metadata,
        }
        yield to_json(sample)
        place += 1


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
