"""The two public modules: `import mmlongbench as mm` for users, `import mmlongbench.task as mt` for task authors."""

import dataclasses
import inspect
import pydoc
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from pydantic import BaseModel

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


def types() -> Iterator[type]:
    for door in DOORS:
        yield from (found for name in door.__all__ if isinstance(found := getattr(door, name), type))


def test_a_name_in_both_doors_means_one_thing() -> None:
    both = {*mm.__all__} & {*mt.__all__}
    assert both >= {"Evidence", "Image", "Prompt", "ReleaseError"}
    assert [name for name in both if getattr(mm, name) is not getattr(mt, name)] == []


@pytest.mark.parametrize("door", DOORS, ids=["mm", "mt"])
def test_a_door_has_what_it_lists_and_lists_it_in_order(door: ModuleType) -> None:
    assert sorted(door.__all__) == sorted({*door.__all__})
    assert {*door.__all__} <= {*dir(door)}
    assert all(getattr(door, name, None) is not None for name in door.__all__)


def test_no_name_of_a_door_is_that_of_a_part_of_the_engine() -> None:
    parts = {path.stem for path in (ROOT / "mmlongbench").iterdir()}
    assert not parts & {*mm.__all__}
    assert not {path.stem for path in (ROOT / "mmlongbench/task").iterdir()} & {*mt.__all__}


def test_the_door_of_users_costs_nothing_before_it_is_used() -> None:
    script = "import sys, mmlongbench; print(*(n for n in sys.modules if n.startswith(('mmlongbench', 'pydantic'))))"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT)
    assert found.stdout.split() == ["mmlongbench"]


def test_a_name_that_moved_says_where_it_is_now() -> None:
    said = r"mmlongbench\.Builder is for task authors: it is mmlongbench\.task\.Builder"
    with pytest.raises(ImportError, match=said):
        mm.Builder  # type: ignore[attr-defined]  # noqa: B018
    with pytest.raises(ImportError, match=said):
        from mmlongbench import Builder  # type: ignore[attr-defined]  # noqa: F401
    with pytest.raises(AttributeError, match="no attribute 'bild'"):
        mm.bild  # type: ignore[attr-defined]  # noqa: B018
    assert not hasattr(mm, "scoring.report")
    from mmlongbench import scoring

    assert scoring.__name__ == "mmlongbench.scoring"


KINDS = sorted({*types()}, key=str)


@pytest.mark.parametrize("kind", KINDS, ids=[kind.__name__ for kind in KINDS])
def test_help_says_what_each_field_means(kind: type) -> None:
    texts = field_texts(kind)
    assert [name for name in fields(kind) if not texts.get(name)] == []
    shown = " ".join(pydoc.plain(pydoc.render_doc(kind)).replace("|", " ").split())
    assert [name for name, text in texts.items() if f"{name}: {text}" not in shown] == []


def fields(kind: type) -> set[str]:
    """Return the public fields of a class and of its own base classes; of an exception, those that `__init__` sets."""
    if issubclass(kind, BaseModel):
        return {*kind.model_fields}
    if dataclasses.is_dataclass(kind):
        return {field.name for field in dataclasses.fields(kind) if not field.name.startswith("_")}
    ours = [each for each in kind.__mro__ if each.__module__.split(".")[0] in ("mmlongbench", "tokenization")]
    named = {name for each in ours for name in inspect.get_annotations(each) if not name.startswith("_")}
    return named | {name for name in field_texts(kind) if name in ("fault", "rows")}


def test_fields_that_init_sets_have_texts_too() -> None:
    assert {"fault", "noted"} <= field_texts(mt.Rejected).keys()
    assert {"rows", "draws"} <= field_texts(mt.Sources).keys()
    assert field_texts(mt.Unit)["place"].startswith("Its position among the other units")
    assert field_texts(int) == {}


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_a_function_says_what_it_takes_gives_and_raises(function: Any) -> None:
    doc = inspect.getdoc(function) or ""
    taken, _, rest = doc.partition("\nArgs:\n")[2].partition("\nReturns:\n")
    gives, _, raises = rest.partition("\nRaises:\n")
    assert [name for name in inspect.signature(function).parameters if f"    {name}: " not in taken] == []
    assert gives.strip()
    named = re.findall(r"^ {4}(\w+): ", raises, re.MULTILINE)
    assert named
    assert all(issubclass(getattr(mm, name), mm.MMLongBenchError) for name in named)


def test_all_functions_are_looked_at() -> None:
    assert [each.__name__ for each in FUNCTIONS] == [name for name in mm.__all__ if name.islower()]
