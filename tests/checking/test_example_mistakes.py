"""Mistakes put into the example tasks, each found by `check`; one manifest has all of them."""

import csv
import json
import shutil
from pathlib import Path

import pytest

import mmlongbench as mm
from mmlongbench.checking.findings import Checked, Finding, Note
from mmlongbench.checking.ids import ids_stay

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).parents[2] / "examples"
BUILT, IDS = "a small release can be built", "ids are unique, and stay the same"
ONCE, NEGATIVES = "required units are shown once", "no negative holds an answer"
BYTES = "another process builds the same bytes"
NUMBERED = """class Numbered(mt.Reader[Fable]):
    \"\"\"Numbers the rows.\"\"\"

    row_type = Fable
    sources = ("rows",)
    image_folder = "fables"

    def raw_rows(self, sources):
        columns = mt.Columns(("title", "text", "moral"))
        for number, (place, raw) in enumerate(mt.table_rows(sources["rows"], columns), 1):
            yield mt.raw_row(f"fable{number:04d}", raw, "fables", place)

    def row(self, raw, sources):
        return Fable(id=raw.id, **raw.fields)


class Fables("""
LATE = "import importlib, sys; sys.path.insert(0, {folder!r}); importlib.import_module('late_helper'); others = draws"
TEXT_AND_MORAL = '(other.title, other.text + " So: " + row.moral, "padding"'
ANOTHER = 'mt.Unit(path + "#2", "padding", mt.Image(path), (99, n)) for n, path in enumerate(gold)'
SHOWN = ("[unit.id for unit in example.units]", "[unit.body.path for unit in example.units]")
ASKED = ('"title": data["title"], ', '"title": data["title"] + " " + data["moral"], ')
FABLES = {
    "right": (),
    "numbered": (("class Fables(", NUMBERED),),
    "numbered_csv": (("class Fables(", NUMBERED),),
    "late": (("others = draws", LATE),),
    "padding": (('(other.title, other.text, "negative"', TEXT_AND_MORAL),),
    "asked": (
        ("ask(row.title)", 'ask(row.title + " " + row.moral)'),
        ASKED,
        ('== record["title"]', 'in record["title"]'),
    ),
    **{
        name.lower(): (
            ("import mmlongbench", "import os\nimport mmlongbench"),
            ('{"id": ', f'{{"from": {code}, "id": '),
        )
        for name, code in (
            ("folder", "os.getcwd()"),
            ("HOME", "os.environ.get('HOME')"),
            ("LANG", "os.environ.get('LANG')"),
        )
    },
}
COMPARISONS = {
    "taken": (("        required = tuple", f"        units += [{ANOTHER}]\n        required = tuple"), SHOWN),
    "shown": (
        ("mt.InOrder(rest)", f"mt.InOrder((*({ANOTHER}), *rest))"),
        SHOWN,
    ),
}


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> Checked:
    """One manifest with all mistakes, checked from another folder."""
    folder = tmp_path_factory.mktemp("mistakes")
    shutil.copy(EXAMPLES / "fables/fables.jsonl", folder)
    shutil.copytree(EXAMPLES / "comparison/documents", folder / "documents")
    shutil.copy(EXAMPLES / "comparison/questions.csv", folder)
    (folder / "late_helper.py").write_text("", "utf-8")
    _write_csv(folder)
    datasets = []
    for example, kind, tasks in (("fables", "Fables", FABLES), ("comparison", "Comparison", COMPARISONS)):
        for name, changes in tasks.items():
            text = (EXAMPLES / example / f"{example}.py").read_text("utf-8")
            for before, after in changes:
                assert before in text, before
                text = text.replace(before, after.replace("{folder!r}", repr(str(folder))))
            (folder / f"{name}.py").write_text(text, "utf-8")
            source = {"rows": f"fables.{'csv' if name.endswith('_csv') else 'jsonl'}"}
            source = source if example == "fables" else {"questions": "questions.csv", "documents": "documents"}
            reader = {"reader": f"{name}.py:Numbered"} if "numbered" in name else {}
            datasets.append({"name": name, "builder": f"{name}.py:{kind}", "source": source, **reader})
    common = {"lengths": ["2K"], "admission_length": "2K", "licence": "Apache-2.0"}
    manifest = folder / "all.yaml"
    manifest.write_text(json.dumps({"datasets": [{**each, **common} for each in datasets]}), "utf-8")
    return mm.check(manifest, lengths="2K", limit=2)


def _write_csv(folder: Path) -> None:
    """Write the fables as CSV; the first row has line breaks in a cell."""
    rows = [json.loads(line) for line in (folder / "fables.jsonl").read_text("utf-8").splitlines()]
    rows[0]["text"] = "A fox.\n\nA goat, and\na crow."
    with (folder / "fables.csv").open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, list(rows[0]))
        table.writeheader()
        table.writerows(rows)


def found(checked: Checked, name: str) -> list[Finding]:
    return [each for each in checked.failures if each.dataset == name]


def test_the_unchanged_task_keeps_all_rules(checked: Checked) -> None:
    assert found(checked, "right") == []


@pytest.mark.parametrize("name", ["numbered", "numbered_csv"])
def test_ids_that_move_with_the_rows_fail(name: str, checked: Checked) -> None:
    (failure,) = found(checked, name)
    assert (failure.rule, failure.method, failure.row) == (IDS, "raw_rows()", "fable0002")
    assert "the row has the id 'fable0001'; use an id of the source, or a hash" in failure.detail


def test_a_neighbour_that_a_method_imports_is_refused(checked: Checked) -> None:
    (failure,) = found(checked, "late")
    assert failure.rule == BUILT
    assert failure.detail.startswith("late.py imports late_helper, which lies beside it: a task file is one file")


@pytest.mark.parametrize(
    ("name", "rule", "said"),
    [
        ("taken", ONCE, "of the take order shows the image of the required unit 'comparison/"),
        ("shown", BUILT, "the units of a context must differ: two of them show comparison/"),
    ],
)
def test_a_gold_image_under_another_id_fails(name: str, rule: str, said: str, checked: Checked) -> None:
    """The short contexts of the first task do not show it; the build refuses contexts that do."""
    (failure,) = found(checked, name)
    assert (failure.rule, failure.method) == (rule, "draft()")
    assert said in failure.detail


@pytest.mark.parametrize(("name", "place"), [("padding", "a padding unit"), ("asked", "the question itself")])
def test_an_answer_in_padding_or_in_the_question_is_a_note(name: str, place: str, checked: Checked) -> None:
    assert found(checked, name) == []
    (note,) = [each for each in checked.findings if (each.dataset, each.rule) == (name, NEGATIVES)]
    assert (note.status, note.detail) == ("holds", f"the answer of 2 questions stands in {place}")


@pytest.mark.parametrize("name", ["folder", "home", "lang"])
def test_what_depends_on_the_surroundings_of_a_process_fails(name: str, checked: Checked) -> None:
    (failure,) = found(checked, name)
    assert failure.rule == BYTES
    assert "differs in line 1: 'from' is " in failure.detail


def test_a_reader_of_the_engine_may_number_rows(tmp_path: Path) -> None:
    """Its ids are only looked at: public data that it reads do not change."""
    (note,) = ids_stay("own_documents", {"rows": tmp_path / "none.jsonl"}, ["m_001", "m_002", "m_003"], tmp_path)
    assert isinstance(note, Note)
    assert note.text == "ids are the numbers of rows: they move when a row is added above them"
