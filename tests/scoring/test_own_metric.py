"""The metric of the page on scoring works as shown."""

import re
import runpy
from pathlib import Path

import mmlongbench.task as mt

PAGE = Path(__file__).parents[2] / "mmlongbench/scoring/README.md"


def test_the_metric_of_the_page_reads_the_evidence_of_any_task(tmp_path: Path) -> None:
    (code,) = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    (tmp_path / "own.py").write_text(code, "utf-8")
    metric = runpy.run_path(str(tmp_path / "own.py"))["NamesItsPage"](mt.Settings())
    assert isinstance(metric, mt.Metric)
    asked = mt.ScoringInput("f.jsonl", "d", "q", "red", "Red, see page 4.", evidence=mt.Evidence("rose", (3,)))
    assert (metric.out_of_scope(asked), metric.score(asked).score) == ("", 1.0)
    for evidence in (None, mt.Evidence("rose")):
        without = mt.ScoringInput("f.jsonl", "d", "q", "red", "Red, see page 4.", evidence=evidence)
        assert (metric.out_of_scope(without), metric.score(without).score) == ("no page holds the answer", 0.0)
