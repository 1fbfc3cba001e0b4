"""Every reject says what to do."""

import ast
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from samples import Sources, from_samples
from tiny import command, rejects

ROOT = Path(__file__).parents[2]
PACKAGES = ("builders", "mmlongbench/building", "mmlongbench/task", "mmlongbench/documents", "mmlongbench/corpus")
BY_HAND = ("mmlongbench/io", "mmlongbench/metrics", "mmlongbench/exports", "mmlongbench/cli")
PASSED_ON = {
    ("mmlongbench/documents/confined.py", "Fault(**last['fault'])"),
    ("builders/docvqa/rows.py", "mt.Fault(**pages)"),
}
"""Calls that repeat a fault as it was made and written before, such as by another process."""
TODO = 7
"""The place of `todo` among the fields of a `Fault`."""


@cache
def trees(package: str) -> list[tuple[str, ast.Module]]:
    """The syntax of every module of a package, by its file."""
    paths = sorted((ROOT / package).rglob("*.py"))
    return [(path.relative_to(ROOT).as_posix(), ast.parse(path.read_text("utf-8"))) for path in paths]


def faults(package: str) -> Iterator[tuple[str, ast.Call]]:
    """Every call of `Fault` in a package, with its file."""
    for file, tree in trees(package):
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == "Fault":
                yield file, node


def says_what_to_do(call: ast.Call) -> bool:
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    todo = given.get("todo") or (call.args[TODO - 1] if len(call.args) >= TODO else None)
    is_empty = isinstance(todo, ast.Constant) and not todo.value
    return "is_expected" in given or (todo is not None and not is_empty)


@pytest.mark.parametrize("package", [*PACKAGES, *BY_HAND])
def test_every_fault_of_the_source_says_what_to_do(package: str) -> None:
    silent = [
        f"{file}:{call.lineno}"
        for file, call in faults(package)
        if not says_what_to_do(call) and (file, ast.unparse(call)) not in PASSED_ON
    ]
    assert not silent


@pytest.mark.parametrize("package", [*PACKAGES, *BY_HAND])
def test_no_function_leaves_out_what_to_do_by_default(package: str) -> None:
    silent = []
    for file, tree in trees(package):
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                named = (*node.args.posonlyargs, *node.args.args)
                given = zip(reversed(named), reversed(node.args.defaults), strict=False)
                silent += [f"{file}:{node.lineno}" for arg, value in given if arg.arg == "todo" and not value_of(value)]
    assert not silent


def test_no_reject_or_error_of_a_source_is_made_with_nothing_to_do() -> None:
    """Most faults of the families are made by two functions of `builders/common.py`, whose fifth argument is `todo`."""
    calls = [
        (
            f"{file}:{node.lineno}",
            {keyword.arg: keyword.value for keyword in node.keywords}.get("todo", *node.args[4:5]),
        )
        for file, tree in trees("builders")
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] in ("refused", "source_error")
    ]
    assert len(calls) > 50
    assert not [place for place, todo in calls if todo is not None and not value_of(todo)]


def value_of(node: ast.expr) -> object:
    """The value of a constant; a name has some value."""
    return node.value if isinstance(node, ast.Constant) else True


def test_the_faults_are_found() -> None:
    assert sum(1 for package in PACKAGES for _ in faults(package)) > 80
    empty, given, none = (ast.parse(text, mode="eval").body for text in ("Fault(todo='')", "Fault(todo=x)", "Fault()"))
    assert [says_what_to_do(call) for call in (empty, given, none) if isinstance(call, ast.Call)] == [
        False,
        True,
        False,
    ]


def silent(release: Path) -> list[object]:
    """The rejects of a release that do not say what to do."""
    return [line for line in rejects(release) if not line.get("todo") and not line.get("is_expected")]


def test_every_reject_of_a_release_says_what_to_do(finished: Path, families: Path) -> None:
    assert rejects(finished)
    assert silent(finished) + silent(families) == []


SAMPLED = {
    **dict.fromkeys(("mmlongbench_doc", "slidevqa"), "docvqa"),
    **dict.fromkeys(("visual_haystacks", "photographs"), "visual_haystack"),
    **dict.fromkeys(("govreport", "multi_lexsum"), "summary"),
    **{"infoseek": "vrag", "mm_niah": "mm_niah", "image_tables": "many_shot"},
}


@pytest.mark.rare
@pytest.mark.parametrize("reader", SAMPLED)
def test_every_reject_of_a_sample_at_a_short_length_says_what_to_do(
    reader: str, sample: Callable[[str], Sources], tmp_path: Path
) -> None:
    dataset = {"name": "drawn", "builder": SAMPLED[reader], "reader": reader, "lengths": ["1K", "8K"]}
    more: dict[str, Any] = {"admission_length": "1K", "licence": "none", "sample": {"n": 3}}
    if reader == "multi_lexsum":
        more["options"] = {"kind": "case"}
    (tmp_path / "drawn.yaml").write_text(yaml.safe_dump(from_samples({"datasets": [{**dataset, **more}]}, sample)))
    ran = command("build", tmp_path / "drawn.yaml", "--out", tmp_path / "out", "-q")
    assert ran.code in (0, 1), ran.err
    assert silent(tmp_path / "out") == []
