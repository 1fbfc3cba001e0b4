"""The target `lmms-eval`: a task for each dataset and length, and a group of all of them.

A row of a data file has texts only: JSON readers of tables guess the types of columns, and would change an answer such
as `0012`, a date, or a column of answers of different types.
"""

import shlex
from collections.abc import Iterator
from typing import ClassVar

import yaml

from mmlongbench.exports.target import CellFacts, Export, Exported, Target, facts_of, json_text, table_of
from mmlongbench.io.files import write_whole
from mmlongbench.messages import messages
from mmlongbench.task.file_formats import to_json

GROUP = "mmlb"
"""The name of the group of all tasks, and the beginning of the name of each task."""
_NOTES = (
    "the environment of lmms-eval needs mmlongbench, whose metrics score",
    "run lmms-eval in the folder of the export: the paths of its data files start there",
    "a failed request has no score; the metric mmlb_failed counts such requests",
)


class LmmsEval(Target):
    """Tasks for lmms-eval, which call the metrics of this engine."""

    summary: ClassVar[str] = "tasks for lmms-eval (YAML, utils.py, data), scored by the metrics of mmlongbench"
    image_forms: ClassVar[str] = "path"
    image_advice: ClassVar[str] = "lmms-eval reads image files; expected path"

    def write(self, export: Export) -> Exported:
        """Write `mmlb/<task>.yaml`, `mmlb/utils.py`, `data/<name>.jsonl`, a link to the release, and README.md."""
        tasks = {f"{GROUP}_{facts.name}": facts for facts in facts_of(export)}
        for task, facts in tasks.items():
            data = f"data/{facts.name}.jsonl"
            write_whole(export.out / data, _rows(facts))
            write_whole(export.out / GROUP / f"{task}.yaml", [_yaml(task, data, facts.answer)])
        group = {"group": GROUP, "task": list(tasks)}
        write_whole(export.out / GROUP / f"{GROUP}.yaml", [yaml.safe_dump(group, sort_keys=False).encode()])
        export.write_page("lmms_eval_utils.py.txt", f"{GROUP}/utils.py")
        model, first = shlex.quote(export.model or "MODEL"), next(iter(tasks))
        export.write_page("lmms_eval.md", tasks=table_of(tasks), first=first, model=model, group=GROUP)
        export.link_release()
        return Exported(sum(facts.examples for facts in tasks.values()), notes=_NOTES)


def _rows(facts: CellFacts) -> Iterator[bytes]:
    """Yield a line for each example; images are named by their paths below `mmlb_image/`."""
    for place, example in enumerate(facts.cell.examples()):
        row = {
            "key": json_text(example.key),
            "place": place,
            "messages": json_text(messages(example.prompt, str)),
            "answer": json_text(example.answer),
        }
        yield to_json(row)


def _yaml(task: str, data: str, answer_tokens: int) -> bytes:
    """Return the configuration of a task. Without `until`, lmms-eval ends answers at the first blank line."""
    functions = ("doc_to_messages", "doc_to_visual", "doc_to_text", "doc_to_target", "process_results")
    metric = {"aggregation": "mean", "higher_is_better": True}
    config: dict[str, object] = {
        "task": task,
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": data}},
        "test_split": "test",
        "output_type": "generate_until",
        **{name: _Function(f"utils.{name}") for name in functions},
        "generation_kwargs": {"max_new_tokens": answer_tokens, "temperature": 0, "do_sample": False, "until": []},
        "metric_list": [
            {"metric": "mmlb_score", **metric},
            {"metric": "mmlb_failed", **metric, "higher_is_better": False},
        ],
        "metadata": [{"version": 1.0}],
    }
    return yaml.dump(config, Dumper=_Dumper, sort_keys=False, allow_unicode=True).encode()


class _Function(str):
    """The name of a function in `utils.py`."""

    __slots__ = ()


class _Dumper(yaml.SafeDumper):
    """Writes YAML in which functions have the tag of lmms-eval."""


_Dumper.add_representer(_Function, lambda dumper, name: dumper.represent_scalar("!function", str(name)))
