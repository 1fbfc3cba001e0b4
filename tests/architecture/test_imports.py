"""Imports run builders → engine → tokenization, and downward between the engine's packages; the product's weight."""

import ast
from collections import Counter
from collections.abc import Iterator
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
from scipy.sparse import lil_array
from scipy.sparse.csgraph import connected_components

ROOT = Path(__file__).parents[2]
DOOR = "__init__"
"""The public module of users. The command line uses it; no other part imports it."""
ORDER = (
    *(
        "__main__",
        "cli",
        DOOR,
        "web",
        "publishing",
        "questions",
        "mixes",
        "shortcuts",
        "scoring",
        "metrics",
        "exports",
        "models",
        "checking",
        "building",
        "likeness",
        "release",
        "manifest",
        "task",
    ),
    *(
        "packing",
        "corpus",
        "documents",
        "io",
        "statistics",
        "draft",
        "messages",
        "prompt",
        "sentences",
        "draws",
        "lengths",
        "answers",
        "table",
        "errors",
        "field_texts",
    ),
)
"""The parts of the engine, packages and modules, each above all that it may import."""
AUTHORS = {"mmlongbench.task", *(f"mmlongbench.task.{door}" for door in ("readers", "metrics", "advanced"))}
"""The public modules of tasks, readers, metrics and the paper's families, which re-export."""
PRODUCT = ("tokenization", "mmlongbench", "builders")
CEILINGS = {"lines": 74_500, "files": 345, "classes": 758}
"""The weight of the product. A ceiling falls with the weight; it rises only with a commit that says what it buys."""
CIRCLES: tuple[set[str], ...] = ()
"""The groups of files that import each other, at any place in them; none may be added, and none may grow."""
FORBIDDEN = {"tokenization": {"mmlongbench", "builders"}, "mmlongbench": {"builders"}}


@cache
def parsed(path: Path) -> ast.Module:
    """A file's syntax tree; not to be changed."""
    return ast.parse(path.read_text("utf-8"))


@cache
def imports_of(path: Path) -> tuple[ast.Import | ast.ImportFrom, ...]:
    """Every import of a file, wherever it stands."""
    return tuple(node for node in ast.walk(parsed(path)) if isinstance(node, ast.Import | ast.ImportFrom))


def imported(package: str) -> set[tuple[str, str]]:
    """Return (file, module) of every import in a package, at any place in its files."""
    found = set()
    for path in (ROOT / package).rglob("*.py"):
        for node in imports_of(path):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            found |= {(path.name, module) for module in modules}
    return found


@pytest.mark.parametrize("package", FORBIDDEN)
def test_no_package_imports_what_stands_above_it(package: str) -> None:
    upward = {(file, module) for file, module in imported(package) if module.split(".")[0] in FORBIDDEN[package]}
    assert not upward


def test_the_product_weighs_no_more_than_its_ceilings() -> None:
    paths = [path for package in PRODUCT for path in (ROOT / package).rglob("*.py")]
    weight = {
        "lines": sum(len(path.read_text("utf-8").splitlines()) for path in paths),
        "files": len(paths),
        "classes": sum(isinstance(node, ast.ClassDef) for path in paths for node in ast.walk(parsed(path))),
    }
    assert {name for name, found in weight.items() if found > CEILINGS[name]} == set(), weight
    low = {name for name, found in weight.items() if found < 0.98 * CEILINGS[name]}
    assert low == set(), f"the house became lighter: lower CEILINGS to {weight}"


def test_files_import_each_other_in_no_more_circles() -> None:
    """A circle is a strongly connected part of the graph of all imports, also of those inside functions."""
    paths = [path for package in PRODUCT for path in sorted((ROOT / package).rglob("*.py"))]
    names = {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path for path in paths}
    place = {name: number for number, name in enumerate(names)}
    graph = lil_array((len(names), len(names)), dtype=bool)
    for name, path in names.items():
        for module in files_imported(path, {*names}):
            graph[place[name], place[module]] = True
    _, groups = connected_components(graph.tocsr(), connection="strong")
    members = Counter(groups.tolist())
    circles = [{name for name in names if groups[place[name]] == group} for group, n in members.items() if n > 1]
    assert [circle for circle in circles if not any(circle <= known for known in CIRCLES)] == []


def files_imported(path: Path, files: set[str]) -> Iterator[str]:
    """The modules that a file imports, wherever the import stands."""
    for node in imports_of(path):
        yield from named_by(node, files)


def named_by(node: ast.Import | ast.ImportFrom, files: set[str]) -> set[str]:
    """The modules that an import names; of a package, the modules in it if it names any."""
    if isinstance(node, ast.Import):
        return {alias.name for alias in node.names} & files
    return {f"{node.module}.{alias.name}" for alias in node.names} & files or {node.module or ""} & files


def modules_of(path: Path) -> set[str]:
    """Every module that a file imports, and every name that it imports from one, wherever the import stands."""
    found = set()
    for node in imports_of(path):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        else:
            found |= {node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def part(module: str) -> str:
    """The part of the engine to which a module belongs: its first name below the engine's own."""
    return (*module.split("."), DOOR)[1]


def between_parts() -> set[tuple[str, str, str]]:
    """(file, part, imported part) of every import between two parts of the engine."""
    engine = ROOT / "mmlongbench"
    found = set()
    for path in engine.rglob("*.py"):
        file = path.relative_to(engine)
        above = file.parts[0].removesuffix(".py")
        for node in imports_of(path):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                name = node.module or ""
                modules += [f"{name}.{alias.name}" for alias in node.names] if name == "mmlongbench" else [name]
            parts = {part(module) for module in modules if module.split(".")[0] == "mmlongbench"}
            found |= {(file.as_posix(), above, below) for below in parts - {above}}
    return found


def test_every_part_of_the_engine_has_its_place_in_the_order() -> None:
    parts = {path.stem for path in (ROOT / "mmlongbench").iterdir() if path.suffix == ".py" or any(path.glob("*.py"))}
    assert parts == set(ORDER)


def test_parts_of_the_engine_import_downward() -> None:
    place = {name: number for number, name in enumerate(ORDER)}
    upward = {(file, below) for file, above, below in between_parts() if place[below] < place[above]}
    assert not upward


def test_imports_between_parts_are_seen() -> None:
    assert {("cli/main.py", "cli", "errors"), ("packing/pack.py", "packing", "draft")} <= between_parts()


def test_one_module_knows_sqlite() -> None:
    engine = ROOT / "mmlongbench"
    found = [path.relative_to(engine).as_posix() for path in engine.rglob("*.py") if "sqlite3" in modules_of(path)]
    assert found == ["io/sqlite_rows.py"]


def test_one_package_knows_the_library_that_talks_to_models() -> None:
    engine = ROOT / "mmlongbench"
    found = [path.relative_to(engine).as_posix() for path in engine.rglob("*.py") if "openai" in modules_of(path)]
    assert found == ["models/endpoint.py"]


def test_builders_import_only_the_door_of_task_authors() -> None:
    modules = {module for _, module in imported("builders")}
    assert {module for module in modules if module.startswith("mmlongbench")} <= AUTHORS
    assert "tokenization" not in modules


def test_the_engine_imports_modules_and_not_the_door_of_task_authors() -> None:
    """The modules that `task/__init__.py` re-exports can then import a module of `task` without a cycle."""
    assert {file for file, module in imported("mmlongbench") if module in AUTHORS} == {"__init__.py"}


def test_no_module_of_the_engine_needs_itself() -> None:
    """Together with the test above: each module can be imported first, whichever public module re-exports it."""
    engine = sorted((ROOT / "mmlongbench").rglob("*.py"))
    named = {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path for path in engine}
    graph = {name: {*imported_first(path, {*named})} for name, path in named.items()}
    assert {"mmlongbench.task.rows", "mmlongbench.errors"} <= graph["mmlongbench.task.builder"]
    assert len(list(TopologicalSorter(graph).static_order())) == len(named)  # raises CycleError


def imported_first(path: Path, modules: set[str]) -> Iterator[str]:
    """The modules that a file imports when it is imported itself: not inside a function, not for types alone."""
    nodes: list[ast.AST] = [*parsed(path).body]
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from named_by(node, modules)
        elif isinstance(node, ast.ClassDef | ast.Try | ast.If) and not _is_for_types(node):
            nodes += list(ast.iter_child_nodes(node))


def _is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def of_families() -> set[tuple[Path, str]]:
    """(file, module) of every import of the task families and of what they share."""
    return {(path, module) for path in (ROOT / "builders").rglob("*.py") for module in modules_of(path)}


@pytest.mark.parametrize("package", PRODUCT)
def test_the_product_imports_no_tests(package: str) -> None:
    """The package of tests that draws samples is a means of tests and benchmarks."""
    assert not {(file, module) for file, module in imported(package) if module.split(".")[0] == "tests"}


def test_a_family_imports_no_other_family() -> None:
    """Code that several families need is in `builders/common.py`, which imports no family."""
    own = [(path, module.split(".")) for path, module in of_families() if module.split(".")[0] == "builders"]
    assert not [(path, parts) for path, parts in own if parts[1:2] not in ([path.parent.name], ["common"])]
    assert (ROOT / "builders/docvqa/builder.py", "builders.common") in of_families()


def test_the_engine_names_no_task() -> None:
    names = ("mmlongdoc", "docvqa", "infoseek", "viquae", "food101", "mmlongbench_doc")
    texts = {path: path.read_text("utf-8").lower() for path in (ROOT / "mmlongbench").rglob("*.py")}
    code = {path: "\n".join(line for line in text.splitlines() if ">>>" not in line) for path, text in texts.items()}
    assert not [(path.name, name) for path, text in code.items() for name in names if f'"{name}' in text]
