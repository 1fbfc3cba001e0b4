"""The direction of imports: builders → engine → tokenization, never back."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
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


def test_builders_import_only_what_the_engine_exports() -> None:
    modules = {module for _, module in imported("builders")}
    assert {module for module in modules if module.startswith("mmlongbench")} == {"mmlongbench"}
    assert "tokenization" not in modules


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
