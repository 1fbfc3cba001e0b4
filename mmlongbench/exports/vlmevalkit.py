"""The target `vlmevalkit`: a table for each length, which VLMEvalKit reads with its class `MMLongBench`.

The class splits the text of a prompt at `<image token>` and `<image>`, and puts the images there in their order. It
knows the names of four lengths; tables of other lengths have names of the same form, which one line registers.
"""

import csv
import io
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from mmlongbench.errors import ReleaseError
from mmlongbench.exports.harness import (
    Facts,
    asked_of,
    facts_of,
    json_text,
    link_release,
    refuse_forms,
    table_of,
    text_of,
    write_template,
)
from mmlongbench.exports.target import Export, Exported, Target
from mmlongbench.io.files import write_whole
from mmlongbench.lengths import K, format_length
from mmlongbench.messages import Message, messages
from mmlongbench.release.layout import name_of
from mmlongbench.release.release import Example
from mmlongbench.task.file_formats import to_json

KNOWN = ("MMLongBench_32K", "MMLongBench_128K", "MMLongBench_256K", "MMLongBench_512K")
"""The tables that VLMEvalKit knows without registration."""
MARKER = "<image token>"
"""What stands for an image in the text of a prompt."""
_MARKERS = re.compile(r"<(image(?: token)?)>")
"""Matches what VLMEvalKit takes for a marker."""
TASKS = ("vrag", "NIAH", "ICL", "summ", "documentQA")
"""The tasks by which VLMEvalKit chooses a metric. They are the folders of the public files."""
COLUMNS = (
    *("index", "question_id", "question", "answer", "image_path", "mmlb_subset", "task", "source_dataset"),
    *("question_type", "tags", "extra_info"),
)


class VLMEvalKit(Target):
    """Tables for the class `MMLongBench` of VLMEvalKit."""

    summary: ClassVar[str] = "tables for the class MMLongBench of VLMEvalKit, one for each length"

    def write(self, export: Export) -> Exported:
        """Write `MMLongBench_<length>.tsv`, `MMLongBench_<length>.index.jsonl` (which example a row is),
        `predictions.py`, a link to the release, and README.md.
        """
        refuse_forms(export, "vlmevalkit", "path")
        facts = facts_of(export)
        tables = [_Table(export, [each for each in facts if each.cell.length == length]) for length in _lengths(facts)]
        for table in tables:
            write_whole(export.out / f"{table.name}.tsv", table.rows())
            write_whole(export.out / f"{table.name}.index.jsonl", map(to_json, table.keys))
        write_template(export.out / "predictions.py", "vlmevalkit_predictions.py.txt")
        names = [table.name for table in tables]
        write_template(
            export.out / "README.md",
            "vlmevalkit.md",
            first=names[0],
            data=" ".join(names),
            model=shlex.quote(export.model or "MODEL"),
            register="; ".join(f"M.DATASET_SETS[{name!r}] = []" for name in names if name not in KNOWN) or "pass",
            tables=table_of({f"{_name(each.cell.length)}, {each.cell.dataset}": each for each in facts}),
        )
        link_release(export)
        left_out = tuple(line for table in tables for line in table.left_out)
        return Exported(sum(len(table.keys) for table in tables), left_out, tuple(_notes(tables)))


@dataclass(slots=True)
class _Table:
    """Writes the rows of one length, and keeps which example each row is."""

    export: Export
    facts: list[Facts]
    keys: list[dict[str, object]] = field(default_factory=list)
    """The key of each row."""
    left_out: list[str] = field(default_factory=list)
    strange: set[str] = field(default_factory=set)
    """The files of tasks that VLMEvalKit has no metric for."""
    changed: int = 0
    """The number of rows in which a marker inside a text was rewritten with blanks."""

    @property
    def name(self) -> str:
        """The name of the table, and of the dataset in VLMEvalKit."""
        return _name(self.facts[0].cell.length)

    def rows(self) -> Iterator[bytes]:
        """Yield the lines of the table. A cell may have tabs and line ends of all kinds, so texts are quoted."""
        buffer = io.StringIO(newline="")
        writer = csv.writer(buffer, delimiter="\t", lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
        buffer.write("\t".join(COLUMNS) + "\n")
        for each in self.facts:
            for place, example in enumerate(each.cell.examples()):
                if row := self._row(example, place):
                    writer.writerow(row)
                    yield _encoded(buffer, example)
        yield buffer.getvalue().encode()

    def _row(self, example: Example, place: int) -> list[object] | None:
        said = messages(example.prompt, self.export.release.image_urls("path") if self.export.images else str)
        if len(said) > 1:
            self.left_out.append(f"{example.file}, {name_of(example.record)}: several turns, and a row has one")
            return None
        text, images, is_changed = _joined(said[0])
        asked, task = asked_of(self.export, example), example.file.split("/", maxsplit=1)[0]
        index = len(self.keys)
        self.keys.append(
            {"index": index, **example.key, "place": place, "dataset": example.dataset, "digest": example.digest}
            | ({"has_changed_markers": True} if is_changed else {})
        )
        self.changed += is_changed
        if task not in TASKS:
            self.strange.add(example.file)
        shown = "multi-image" if len(images) > 1 else "single-image" if images else "text-only"
        extra = {
            **example.key,
            "answer": example.answer,
            **({} if asked.answer_format is None else {"answer_format": asked.answer_format}),
            "question": asked.question,
            "dataset_name": example.dataset,
            "length": example.length,
            "tokens": {"text": example.tokens.text, "image": example.tokens.image},
        }
        return [
            *(index, example.id, text, text_of(example.answer), json_text(images), f"{task}_{example.length // K}"),
            *(task, example.dataset, "open", json_text([shown]), json_text(extra)),
        ]


def _encoded(buffer: io.StringIO, example: Example) -> bytes:
    """Return what is in the buffer, and empty it."""
    text = buffer.getvalue()
    buffer.seek(0)
    buffer.truncate()
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        name = f"{example.file}, {name_of(example.record)}"
        raise ReleaseError(f"{name}: a text that UTF-8 cannot write; see `mmlongbench audit`") from error


def _joined(message: Message) -> tuple[str, list[str], bool]:
    """Return the text of a prompt with a marker for each image, the images, and whether a text was changed.

    A literal marker in a text gets blanks, as the release does it with `<image>`.
    """
    texts, images, is_changed = list[str](), list[str](), False
    for part in message["content"]:
        if isinstance(part, str):
            raise TypeError("the content of a turn is a list of parts")
        if part["type"] == "image_url":
            texts.append(MARKER)
            images.append(part["image_url"]["url"])
            continue
        plain = _MARKERS.sub(r"< \1 >", part["text"])
        is_changed |= plain != part["text"]
        texts.append(plain)
    return "".join(texts), images, is_changed


def _lengths(facts: list[Facts]) -> list[int]:
    return sorted({each.cell.length for each in facts})


def _name(length: int) -> str:
    return f"MMLongBench_{format_length(length)}"


def _notes(tables: list[_Table]) -> Iterator[str]:
    if changed := sum(table.changed for table in tables):
        yield (
            f"{changed:,} prompts have the text <image> or <image token>, which VLMEvalKit takes for an image; it is "
            "written with blanks, and `has_changed_markers` in *.index.jsonl marks these prompts"
        )
    if others := [table.name for table in tables if table.name not in KNOWN]:
        yield f"VLMEvalKit does not know {', '.join(others)}; README.md says how to register them"
    if strange := sorted({file for table in tables for file in table.strange}):
        yield f"VLMEvalKit has no metric for {', '.join(strange)}; predictions.py prepares the answers for `score`"
