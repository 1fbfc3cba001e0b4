"""A small task in a file: find the last word of a line among other lines."""

import json
from pathlib import Path

TASK = '''"""Find the line that has a number."""

import mmlongbench.task as mt

HEAD = "Read the lines.\\n"


class Line(mt.Row):
    """A line."""

    number: int
    text: str


class Lines(mt.Task[Line]):
    """A line among others."""

    metric = "sub_em"

    def draft(self, row: Line, sources: mt.Sources, draws: mt.Draws) -> mt.advanced.ContextDraft:
        """Put the line among the others, in the order of their numbers."""
        units = tuple(line(other.number, other.text, "negative") for other in self.others(row, sources))
        question = mt.advanced.Question(row.id, ask(row.number), {"number": row.number, "answer": row.text.split()[-1]})
        gold = (line(row.number, row.text, "gold"),)
        return mt.advanced.ContextDraft(gold, mt.InOrder(units), instruction=(HEAD,), questions=(question,), id=row.id)

    def record(self, example: mt.PackedExample) -> mt.Record:
        """Return the lines that are shown."""
        lines = [{"number": unit.data["number"], "text": unit.body} for unit in example.units]
        return {"id": example.id, **example.question.data, "lines": lines}

    def prompt(self, record: mt.Record) -> mt.Prompt:
        """Show them again."""
        units = [line(each["number"], each["text"], "negative") for each in record["lines"]]
        return mt.advanced.assemble((HEAD,), units, "\\n\\n", ask(record["number"]))


def line(number: int, text: str, role: mt.advanced.Role) -> mt.Unit:
    """Return a line as a unit."""
    return mt.Unit(str(number), text, (number,), role, head=f"{number}: ", data={"number": number})


def ask(number: int) -> tuple[str]:
    """Return the question."""
    return (f"\\nWhat is the last word of line {number}?",)
'''
MANIFEST = """datasets:
  - {name: lines, builder: "lines.py:Lines", source: {rows: lines.jsonl}, lengths: [1K, 2K], admission_length: 1K,
     sample: {n: 40}, reserve: 16}
"""


def write(folder: Path) -> Path:
    """Write the task, its table and its manifest."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = [{"number": n, "text": f"{'a long story ' * (n % 7 + 1)}ends with {n * n}"} for n in range(120)]
    (folder / "lines.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "lines.py").write_text(TASK)
    (folder / "lines.yaml").write_text(MANIFEST)
    return folder
