"""The two public modules: `import mmlongbench as mm` for users, `import mmlongbench.task as mt` for task authors."""

import importlib
import inspect
import pydoc
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import mmlongbench as mm
import mmlongbench.task as mt
from mmlongbench.field_texts import field_texts

ROOT = Path(__file__).parents[1]
DOORS = (mm, mt)
FUNCTIONS = (
    *(mm.audit, mm.build, mm.check, mm.collect, mm.compare_contexts, mm.diff, mm.export, mm.export_mix),
    mm.fetch,
    *(mm.find_shortcuts, mm.open_release, mm.plan, mm.run, mm.score, mm.scorer, mm.verify),
)


def test_a_name_in_both_doors_means_one_thing() -> None:
    both = {*mm.__all__} & {*mt.__all__}
    assert both >= {"Evidence", "Image", "Prompt"}
    assert [name for name in both if getattr(mm, name) is not getattr(mt, name)] == []


@pytest.mark.parametrize("door", DOORS, ids=["mm", "mt"])
def test_a_door_has_what_it_lists_and_lists_it_in_order(door: ModuleType) -> None:
    assert sorted(door.__all__) == sorted({*door.__all__})
    assert {*door.__all__} <= {*dir(door)}
    assert all(getattr(door, name, None) is not None for name in door.__all__)


def test_no_name_of_a_door_is_that_of_a_part_of_the_engine() -> None:
    parts = {path.stem for path in (ROOT / "mmlongbench").iterdir()}
    assert not parts & {*mm.__all__}
    parts = {path.stem for path in (ROOT / "mmlongbench/task").iterdir()}
    assert parts & {*mt.__all__} == {"advanced", "metrics", "readers"}


def test_the_door_of_users_costs_nothing_before_it_is_used() -> None:
    script = "import sys, mmlongbench; print(*(n for n in sys.modules if n.startswith(('mmlongbench', 'pydantic'))))"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT)
    assert found.stdout.split() == ["mmlongbench"]


def test_a_name_that_moved_says_where_it_is_now() -> None:
    said = r"mmlongbench\.Builder is for task authors: it is mmlongbench\.task\.advanced\.Builder"
    with pytest.raises(ImportError, match=said):
        mm.Builder  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(ImportError, match=said):
        from mmlongbench import Builder  # type: ignore[attr-defined]  # noqa: F401
    with pytest.raises(AttributeError, match="no attribute 'bild'"):
        mm.bild  # type: ignore[attr-defined]  # noqa: B018
    assert not hasattr(mm, "scoring.report")
    from mmlongbench import scoring

    assert scoring.__name__ == "mmlongbench.scoring"


@pytest.mark.parametrize("door", DOORS, ids=["mm", "mt"])
def test_every_class_and_function_of_a_door_says_what_it_is(door: ModuleType) -> None:
    named = {
        name: value
        for name in door.__all__
        if inspect.isclass(value := getattr(door, name)) or inspect.isfunction(value)
    }
    assert [name for name, value in named.items() if not value.__doc__] == []


def test_help_shows_the_texts_below_fields() -> None:
    for kind, text in ((mt.Unit, "place: Its position among the other units"), (mt.Rejected, "fault: ")):
        assert text in " ".join(pydoc.plain(pydoc.render_doc(kind)).replace("|", " ").split())


def test_the_texts_of_fields_are_found_after_a_comment_that_is_not_indented(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = 'class Spoken:\n    a: int = 1\n    """First."""\n# between\n    b: int = 2\n    """Second."""\nx = 1\n'
    (tmp_path / "spoken_fields.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    assert field_texts(importlib.import_module("spoken_fields").Spoken) == {"a": "First.", "b": "Second."}


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_a_function_says_what_it_takes_gives_and_raises(function: Any) -> None:
    doc = inspect.getdoc(function) or ""
    taken, _, rest = doc.partition("\nArgs:\n")[2].partition("\nReturns:\n")
    gives, _, raises = rest.partition("\nRaises:\n")
    named = {name for line in re.findall(r"^ {4}(\w+(?:, \w+)*): ", taken, re.MULTILINE) for name in line.split(", ")}
    assert named == {*inspect.signature(function).parameters}
    assert gives.strip()
    errors = re.findall(r"^ {4}(\w+): ", raises, re.MULTILINE)
    assert errors
    assert all(issubclass(getattr(mm, name), mm.MMLongBenchError) for name in errors)


def test_all_functions_are_looked_at() -> None:
    assert [each.__name__ for each in FUNCTIONS] == [name for name in mm.__all__ if name.islower()]
