"""What the page for authors of tasks says is so: excerpts, fields, lines of code and messages."""

import json
import re
import shutil
from inspect import isfunction, signature
from pathlib import Path
from pydoc import plain, render_doc
from textwrap import wrap
from typing import get_args

import pytest
from tiny import command

import mmlongbench.task as mt

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "builders/README.md").read_text("utf-8")
FABLES = ROOT / "examples/fables"
BLOCK = re.compile(r"^```(python|yaml|toml)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SUFFIXES = (".py", ".yaml", ".toml")
SHOWN = (ROOT / "examples", ROOT / "tests/task")
LINE = re.compile(r"^\| `((?:self|sources|draws)\..*?)` \|", re.MULTILINE)
ANY_SOURCES = """
    def draft(self, row: PhotographRow, sources: mt.Sources, draws: mt.Draws) -> mt.Draft:
        for line in {lines!r}:
            found = eval(line)
            assert found is not None, line
            if hasattr(found, "__len__"):
                assert len(found), line
        return self.the_draft(row, sources, draws)

    def the_draft("""

RECORD = """
    def record(self, example):
        return {}

    def draft("""
BACKWARDS = """
    def prompt(self, record):
        return super().prompt({**record, "units": record["units"][::-1]})

    def draft("""
MISTAKES = [
    ("\n    def draft(", RECORD, "the record's id must be the row's, found none"),
    ("question, row.moral)", "question)", "the row has no field 'answer'"),
    ("question, row.moral)", "answer=row.moral)", "the row has no field 'question'"),
    ("question, row.moral)", "question, ' ')", "the answer is empty"),
    ("\n    def draft(", BACKWARDS, "prompt(record) is not the prompt that was packed"),
    ("(row.unit(),)", "(replace(row.unit(), role='negative'),)", "has the role negative and no place"),
    ("(row.unit(),)", "(replace(row.unit(), place=(0,)),)", "what is put at a depth has `place=None`"),
    ("(row.unit(),)", "(replace(row.unit(), role='neadle'),)", "has the role 'neadle'; roles are"),
    ("(row.unit(),)", "row.unit()", "required is a Unit, expected a tuple of mt.Unit"),
    ('"sub_em"', '"sub_emm"', "no metric 'sub_emm' is installed"),
    ('"sub_em"', '"doc_qa"', "metric 'doc_qa' cannot score the answer"),
    ("mt.InOrder([other.unit() for other in others])", "others", "expected a TakeOrder such as mt.InOrder(units)"),
    ("mt.InOrder([other.unit() for other in others])", "mt.InOrder(others)", "take_order holds a Fable, expected mt."),
    ("self.others(row, sources)", "self.rows(sources)", "two units of the id"),
    ("self.text,", "self.txt,", "AttributeError: 'Fable' object has no attribute 'txt' (fables.py, line"),
    ("    moral: str\n", "    moral: str\n    author: str\n", "no question was kept"),
    ("others = draws", "sources.documents\n        others = draws", "no documents: its task needs mt.Pdfs"),
    (
        "import mmlongbench.task as mt\n",
        "import helper\nimport mmlongbench.task as mt\n",
        "a task file is one file",
    ),
    ("question, row.moral)", "question, row.moral, {'length': 3})", "holds 'length', which the engine adds"),
    ("mt.Task[Fable]", "mt.Task", "lacks row_type"),
]
"""A piece of the task, what stands there in its place, and the message."""


def test_every_excerpt_stands_in_a_file_that_a_test_builds() -> None:
    files = [path.read_text("utf-8") for folder in SHOWN for path in folder.rglob("*") if path.suffix in SUFFIXES]
    excerpts = [body for _, body in BLOCK.findall(PAGE)]
    assert len(excerpts) > 5
    texts = list(map(_lines, files))
    assert not [body for body in excerpts if not any(_lines(body) in text for text in texts)]


def _lines(text: str) -> str:
    """Return the lines of a text without their indentation: an excerpt of a class has less of it."""
    return "".join(f"{line.strip()}\n" for line in text.splitlines() if line.strip())


@pytest.mark.parametrize("kind", [mt.Draft, mt.Unit, mt.PackedExample], ids=lambda kind: str(kind.__name__))
def test_every_field_is_named(kind: type) -> None:
    assert not [name for name in signature(kind).parameters if f"`{name}`" not in PAGE]


def test_the_help_of_a_draft_fits_a_screen() -> None:
    """It has at most 50 lines at 80 columns; all fields stand in the first 25."""
    said = plain(render_doc(mt.Draft))
    lines = [piece for line in said.splitlines() for piece in wrap(line, 80) or [""]]
    assert len(lines) <= 50
    assert {"question", "answer", "noted"} <= {line.strip("| ").partition(":")[0] for line in lines[:25]}


def test_every_class_attribute_of_a_task_is_named() -> None:
    declared = [name for base in (mt.Task, mt.advanced.Builder) for name in base.__annotations__]
    assert not [name for name in declared if f"`{name}`" not in PAGE and f"`self.{name}`" not in PAGE]


def test_every_optional_method_is_named() -> None:
    methods = [
        name
        for name in vars(mt.advanced.Builder)
        if not name.startswith("_") and isfunction(getattr(mt.advanced.Builder, name))
    ]
    assert len(methods) > 12
    assert not [name for name in methods if f"{name}(" not in PAGE]


def test_every_role_and_every_metric_is_named() -> None:
    assert not [role for role in get_args(mt.advanced.Role) if f"`{role}`" not in PAGE]
    listed = json.loads(command("list", "--json").out)["plugins"]
    metrics = [each["name"] for each in listed if each["kind"] == "metric" and not each["name"].startswith("judge-")]
    assert len(metrics) > 10
    assert not [name for name in metrics if f"`{name}`" not in PAGE]


def test_every_line_about_sources_and_draws_runs(tmp_path: Path) -> None:
    """The lines run in the draft of a task that has a table, PDFs and pictures."""
    shutil.copytree(ROOT / "examples/photograph", tmp_path / "task")
    task = tmp_path / "task/photograph.py"
    lines = LINE.findall(PAGE)
    assert len(lines) == 14
    text = task.read_text("utf-8").replace('metric = "sub_em"', 'metric = "sub_em"\n    page_texts = True')
    task.write_text(text.replace("\n    def draft(", ANY_SOURCES.format(lines=lines)), "utf-8")
    options = ["--limit", "1", "--lengths", "2K", "--workers", "1"]
    ran = command("build", tmp_path / "task/photograph.yaml", "--out", tmp_path / "out", *options)
    assert ran.code == 0, ran.err


@pytest.mark.parametrize(("right", "wrong", "said"), MISTAKES)
def test_a_common_mistake_is_refused_with_the_message_of_the_page(
    right: str, wrong: str, said: str, tmp_path: Path
) -> None:
    shutil.copytree(FABLES, tmp_path / "task")
    task = tmp_path / "task/fables.py"
    (tmp_path / "task/helper.py").write_text("")
    text = task.read_text("utf-8")
    assert right in text
    text = text.replace("import mmlongbench", "from dataclasses import replace\n\nimport mmlongbench", 1)
    task.write_text(text.replace(right, wrong, 1), "utf-8")
    options = ["--limit", "2", "--lengths", "2K", "--workers", "1"]
    ran = command("build", tmp_path / "task/fables.yaml", "--out", tmp_path / "out", *options)
    assert ran.code in (1, 2), ran.out
    assert said in ran.err


def test_the_page_shows_no_other_messages() -> None:
    (table,) = re.findall(r"\| mistake \| message \|\n(.*?)\n\n", PAGE, re.DOTALL)
    shown = re.findall(r"\| `(.*)` \|$", table, re.MULTILINE)
    tested = [said for _, _, said in MISTAKES]
    assert len(shown) > 5
    assert not [message for message in shown if not any(said in message for said in tested)]


def test_a_manifest_may_name_a_builder_and_a_reader_of_one_file(tmp_path: Path) -> None:
    shutil.copy(ROOT / "tests/task/fables/fables.py", tmp_path)
    shutil.copy(FABLES / "fables.jsonl", tmp_path)
    names = "builder: fables.py:Fables, reader: fables.py:FableReader, source: {fables: fables.jsonl}"
    lengths = "lengths: [2K], admission_length: 2K, sample: {n: 3}"
    (tmp_path / "two.yaml").write_text(f"datasets: [{{name: two, {names}, {lengths}}}]")
    ran = command("build", tmp_path / "two.yaml", "--out", tmp_path / "out", "--workers", "1")
    assert ran.code == 0, ran.err


def test_a_task_may_override_its_spec_and_take_options(tmp_path: Path) -> None:
    shutil.copytree(FABLES, tmp_path / "task")
    task, manifest = tmp_path / "task/fables.py", tmp_path / "task/fables.yaml"
    text = task.read_text("utf-8").replace(
        "import mmlongbench", "from dataclasses import replace\n\nimport mmlongbench", 1
    )
    text = text.replace("class Fables(", 'class Asked(mt.Options):\n    word: str = "moral"\n\n\nclass Fables(')
    text = text.replace("    placements = ", "    options_type = Asked\n    placements = ")
    text += (
        "\n\nclass Further(Fables):\n    @property\n    def spec(self) -> mt.advanced.TaskSpec:\n"
        "        assert self.options.word == 'lesson'\n"
        "        return replace(super().spec, further_metrics=('anls',))\n"
    )
    task.write_text(text, "utf-8")
    text = manifest.read_text("utf-8").replace("py:Fables", "py:Further\n    options: {word: lesson}")
    manifest.write_text(text, "utf-8")
    options = ["--limit", "2", "--lengths", "2K", "--workers", "1"]
    ran = command("build", manifest, "--out", tmp_path / "out", *options)
    assert ran.code == 0, ran.err
