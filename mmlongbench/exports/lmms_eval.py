"""The target `lmms-eval`: a task for each dataset and length, and a group of all of them.

A row of a data file has texts only: JSON readers of tables guess the types of columns, and would change an answer such
as `0012`, a date, or a column of answers of different types.
"""

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

import yaml

from mmlongbench.exports.harness import Facts, facts_of, json_text, link_release, refuse_forms, table_of, write_template
from mmlongbench.exports.target import Export, Exported, Target
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

    def write(self, export: Export) -> Exported:
        """Write `mmlb/<task>.yaml`, `mmlb/utils.py`, `data/<name>.jsonl`, a link to the release, and README.md."""
        refuse_forms(export, "lmms-eval", "path")
        facts = facts_of(export)
        for each in facts:
            write_whole(export.out / _data(each), _rows(each))
            write_whole(export.out / GROUP / f"{_task(each)}.yaml", [_yaml(each)])
        group = {"group": GROUP, "task": [_task(each) for each in facts]}
        write_whole(export.out / GROUP / f"{GROUP}.yaml", [yaml.safe_dump(group, sort_keys=False).encode()])
        write_template(export.out / GROUP / "utils.py", "lmms_eval_utils.py.txt")
        model, first = shlex.quote(export.model or "MODEL"), _task(facts[0])
        write_template(
            export.out / "README.md",
            "lmms_eval.md",
            tasks=table_of({_task(each): each for each in facts}),
            first=first,
            model=model,
            group=GROUP,
        )
        link_release(export)
        return Exported(sum(each.examples for each in facts), notes=_NOTES)


def _task(facts: Facts) -> str:
    return f"{GROUP}_{facts.name}"


def _data(facts: Facts) -> Path:
    return Path("data") / f"{facts.name}.jsonl"


def _rows(facts: Facts) -> Iterator[bytes]:
    """Yield a line for each example; images are named by their paths below `mmlb_image/`."""
    for place, example in enumerate(facts.cell.examples()):
        row = {
            "key": json_text(example.key),
            "place": place,
            "messages": json_text(messages(example.prompt, str)),
            "answer": json_text(example.answer),
        }
        yield to_json(row)


def _yaml(facts: Facts) -> bytes:
    """Return the configuration of a task. Without `until`, lmms-eval ends answers at the first blank line."""
    means = {"aggregation": "mean", "higher_is_better": True}
    config: dict[str, object] = {
        "task": _task(facts),
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": _data(facts).as_posix()}},
        "test_split": "test",
        "output_type": "generate_until",
        **{name: _Function(f"utils.{name}") for name in ("doc_to_messages", "doc_to_visual", "doc_to_text")},
        "doc_to_target": _Function("utils.doc_to_target"),
        "process_results": _Function("utils.process_results"),
        "generation_kwargs": {"max_new_tokens": facts.answer, "temperature": 0, "do_sample": False, "until": []},
        "metric_list": [
            {"metric": "mmlb_score", **means},
            {"metric": "mmlb_failed", **means, "higher_is_better": False},
        ],
        "metadata": [{"version": 1.0}],
    }
    return yaml.dump(config, Dumper=_Dumper, sort_keys=False, allow_unicode=True).encode()


class _Function(str):
    """The name of a function in `utils.py`."""

    __slots__ = ()


class _Dumper(yaml.SafeDumper):
    """Writes YAML in which functions have the tag of lmms-eval."""


def _function(dumper: _Dumper, name: _Function) -> yaml.Node:
    return dumper.represent_scalar("!function", str(name))


_Dumper.add_representer(_Function, _function)
