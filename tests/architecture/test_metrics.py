"""The built-in metrics read no record: the builder gives them what they need as fields of `ScoringInput`."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]
METRICS = ROOT / "mmlongbench/metrics"
RECORDS = (
    "mmlongbench",
    "mmlongbench.task",
    "mmlongbench.task.rows",
    "mmlongbench.task.builder",
)
"""Modules that lead to records."""


def test_metrics_read_no_record() -> None:
    names = {
        node.attr
        for path in METRICS.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Attribute)
    }
    assert "record" not in names


def test_metrics_import_nothing_that_leads_to_records() -> None:
    found = set()
    for path in METRICS.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            modules += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            found |= {(path.name, module) for module in modules if module in RECORDS}
    assert not found
