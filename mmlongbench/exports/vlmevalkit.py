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
from mmlongbench.exports.target import CellFacts, Export, Exported, Target, facts_of, json_text, table_of, text_of
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
    image_forms: ClassVar[str] = "path"
    image_advice: ClassVar[str] = "vlmevalkit reads image files; expected path"

    def write(self, export: Export) -> Exported:
        """Write `MMLongBench_<length>.tsv`, `MMLongBench_<length>.index.jsonl` (which example a row is),
        `predictions.py`, a link to the release, and README.md.
        """
        cells = facts_of(export)
        tables: dict[str, _Table] = {}
        for facts in sorted(cells, key=lambda facts: facts.cell.length):
            name = f"MMLongBench_{format_length(facts.cell.length)}"
            tables.setdefault(name, _Table(export)).cells.append(facts)
        for name, table in tables.items():
            write_whole(export.out / f"{name}.tsv", table.rows())
            write_whole(export.out / f"{name}.index.jsonl", map(to_json, table.keys))
        export.write_page("vlmevalkit_predictions.py.txt", "predictions.py")
        others = [name for name in tables if name not in KNOWN]
        named = {f"MMLongBench_{format_length(each.cell.length)}, {each.cell.dataset}": each for each in cells}
        export.write_page(
            "vlmevalkit.md",
            first=next(iter(tables)),
            data=" ".join(tables),
            model=shlex.quote(export.model or "MODEL"),
            register="; ".join(f"M.DATASET_SETS[{name!r}] = []" for name in others) or "pass",
            tables=table_of(named),
        )
        export.link_release()
        notes = []
        if changed := sum(table.changed for table in tables.values()):
            notes.append(
                f"{changed:,} prompts have the text <image> or <image token>, which VLMEvalKit takes for an image; it "
                "is written with blanks, and `has_changed_markers` in *.index.jsonl marks these prompts"
            )
        if others:
            notes.append(f"VLMEvalKit does not know {', '.join(others)}; README.md says how to register them")
        if strange := sorted({file for table in tables.values() for file in table.strange}):
            why = "predictions.py prepares the answers for `score`"
            notes.append(f"VLMEvalKit has no metric for {', '.join(strange)}; {why}")
        left_out = tuple(line for table in tables.values() for line in table.left_out)
        return Exported(sum(len(table.keys) for table in tables.values()), left_out, tuple(notes))


@dataclass(slots=True)
class _Table:
    """Writes the rows of one length, and keeps which example each row is."""

    export: Export
    cells: list[CellFacts] = field(default_factory=list)
    keys: list[dict[str, object]] = field(default_factory=list)
    """The key of each row."""
    left_out: list[str] = field(default_factory=list)
    strange: set[str] = field(default_factory=set)
    """The files of tasks that VLMEvalKit has no metric for."""
    changed: int = 0
    """The number of rows in which a marker inside a text was rewritten with blanks."""

    def rows(self) -> Iterator[bytes]:
        """Yield the lines of the table. A cell may have tabs and line ends of all kinds, so texts are quoted."""
        yield ("\t".join(COLUMNS) + "\n").encode()
        for facts in self.cells:
            for place, example in enumerate(facts.cell.examples()):
                if row := self._row(example, place):
                    buffer = io.StringIO(newline="")
                    writer = csv.writer(buffer, delimiter="\t", lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
                    writer.writerow(row)
                    try:
                        yield buffer.getvalue().encode()
                    except UnicodeEncodeError as error:
                        name = f"{example.file}, {name_of(example.record)}"
                        raise ReleaseError(
                            f"{name}: a text that UTF-8 cannot write; see `mmlongbench audit`"
                        ) from error

    def _row(self, example: Example, place: int) -> list[object] | None:
        turns = messages(example.prompt, self.export.release.image_urls("path") if self.export.images else str)
        if len(turns) > 1:
            self.left_out.append(f"{example.file}, {name_of(example.record)}: several turns, and a row has one")
            return None
        text, images, is_changed = _joined(turns[0])
        asked, task = self.export.scoring_input(example), example.file.split("/", maxsplit=1)[0]
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
