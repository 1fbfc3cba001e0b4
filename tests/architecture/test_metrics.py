"""Metrics never see a record: the builder gives them what they need as fields of `ScoringInput`."""

import ast
import json
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

from mmlongbench.task.metric import Evidence, ScoringInput

ROOT = Path(__file__).parents[2]
METRICS = ROOT / "mmlongbench/metrics"
RECORDS = (
    "mmlongbench",
    "mmlongbench.task",
    "mmlongbench.task.rows",
    "mmlongbench.task.builder",
)
"""Modules that lead to records."""
WORDS = {"answer", "id", "length", "name", "question", "summary", "url"}
"""Names of record fields that mean something else in metrics: placeholders of prompts, keys of replies and claims."""


def public_fields() -> set[str]:
    """The names of the fields of every task's records."""
    return {
        key for path in ROOT.glob("tests/conformance/goldens/*/record.json") for key in json.loads(path.read_bytes())
    }


def strings() -> Iterator[tuple[str, str]]:
    """(file, text) of every string of the metrics that is not part of a longer one."""
    for path in METRICS.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield path.relative_to(METRICS).as_posix(), node.value


def test_a_metric_is_given_no_record() -> None:
    assert {"record", "builder"}.isdisjoint(each.name for kind in (ScoringInput, Evidence) for each in fields(kind))


def test_metrics_name_no_field_of_a_record() -> None:
    names = public_fields()
    assert {"answer_format", "doc_name", "ans_page_list", "page_list", "page_text_list", "source_id"} <= names
    assert names >= WORDS
    assert not [(file, text) for file, text in strings() if text in names - WORDS]


def test_metrics_import_nothing_that_leads_to_records() -> None:
    found = set()
    for path in METRICS.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            modules += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            found |= {(path.name, module) for module in modules if module in RECORDS}
    assert not found


def test_every_string_of_a_metric_is_seen() -> None:
    assert {"judge-committee", "smudge"} <= {text for _, text in strings()}
