"""The direction of imports: builders → engine → tokenization, and downward between the engine's packages."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ORDER = (
    *("__main__", "cli", "scoring", "metrics", "building", "release", "manifest", "task", "packing", "corpus"),
    *("documents", "io", "draft", "prompt", "sentences", "draws", "lengths", "errors"),
)
"""The parts of the engine, packages and modules, each above all that it may import."""
DOOR = "__init__"
"""What the engine offers to others; it stands beside the order, and no part imports it."""
FORBIDDEN = {"tokenization": {"mmlongbench", "builders"}, "mmlongbench": {"builders"}}


def imported(package: str) -> set[tuple[str, str]]:
    """(file, module) of every import of a package, wherever it stands."""
    found = set()
    for path in (ROOT / package).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            modules += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            found |= {(path.name, module) for module in modules}
    return found


@pytest.mark.parametrize("package", FORBIDDEN)
def test_no_package_imports_what_stands_above_it(package: str) -> None:
    upward = {(file, module) for file, module in imported(package) if module.split(".")[0] in FORBIDDEN[package]}
    assert not upward


def modules_of(path: Path) -> set[str]:
    """Every module that a file imports, and every name that it imports from one, wherever the import stands."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
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
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                name = node.module or ""
                modules += [f"{name}.{alias.name}" for alias in node.names] if name == "mmlongbench" else [name]
            parts = {part(module) for module in modules if module.split(".")[0] == "mmlongbench"}
            found |= {(file.as_posix(), above, below) for below in parts - {above}}
    return found


def test_every_part_of_the_engine_has_its_place_in_the_order() -> None:
    parts = {path.stem for path in (ROOT / "mmlongbench").iterdir() if path.suffix == ".py" or any(path.glob("*.py"))}
    assert parts - {DOOR} == set(ORDER)


def test_parts_of_the_engine_import_downward() -> None:
    place = {name: number for number, name in enumerate(ORDER)}
    upward = {
        (file, below)
        for file, above, below in between_parts()
        if above != DOOR and (below == DOOR or place[below] < place[above])
    }
    assert not upward


def test_imports_between_parts_are_seen() -> None:
    assert {("cli/main.py", "cli", "errors"), ("packing/pack.py", "packing", "draft")} <= between_parts()


def test_builders_import_only_what_the_engine_exports() -> None:
    modules = {module for _, module in imported("builders")}
    assert {module for module in modules if module.startswith("mmlongbench")} == {"mmlongbench"}
    assert "tokenization" not in modules


def test_builders_and_readers_import_no_sample() -> None:
    """Samples are fixtures that are found by entry point; only they import each other."""
    builders = ROOT / "builders"
    found = {
        (path.relative_to(builders).as_posix(), module)
        for path in builders.rglob("*.py")
        if not path.is_relative_to(builders / "samples")
        for module in modules_of(path)
        if f"{module}.".startswith("builders.samples.")
    }
    assert not found


def test_a_family_imports_no_other_family() -> None:
    """What several families need stands in `builders/common`, which imports none of them."""
    builders = ROOT / "builders"
    found = {
        (path.relative_to(builders).as_posix(), module)
        for path in builders.rglob("*.py")
        if not path.is_relative_to(builders / "samples")
        for module in modules_of(path)
        if module.split(".")[0] == "builders" and module.split(".")[1:2] not in ([path.parent.name], ["common"])
    }
    assert not found
    assert "builders.common.pages" in modules_of(builders / "docvqa/builder.py")


def test_imports_of_samples_are_seen() -> None:
    builders = ROOT / "builders"
    assert "builders.samples.docvqa.prose" in modules_of(builders / "samples/summarization/sources.py")
    assert "builders.samples.vrag.things" in modules_of(builders / "samples/vrag/pictures.py")


def test_the_engine_names_no_task() -> None:
    names = ("mmlongdoc", "docvqa", "infoseek", "viquae", "food101", "mmlongbench_doc")
    texts = {path: path.read_text("utf-8").lower() for path in (ROOT / "mmlongbench").rglob("*.py")}
    code = {path: "\n".join(line for line in text.splitlines() if ">>>" not in line) for path, text in texts.items()}
    assert not [(path.name, name) for path, text in code.items() for name in names if f'"{name}' in text]


@pytest.mark.parametrize("module", ["mmlongbench", "mmlongbench.cli", "tokenization"])
def test_importing_costs_no_heavy_library(module: str) -> None:
    heavy = {"pymupdf", "datasets", "tokenizers", "PIL", "numpy", "pyarrow", "rich"}
    script = f"import sys, {module}; print(*(set(sys.modules) & {heavy!r}))"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert found.stdout.split() == []
