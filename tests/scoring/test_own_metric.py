"""The metric that the page on scoring shows, as it stands there."""

import re
import runpy
from pathlib import Path

import mmlongbench as mm
from mmlongbench.task.metric import Metric, ScoringInput, Settings

PAGE = Path(__file__).parents[2] / "mmlongbench/scoring/README.md"


def test_the_metric_of_the_page_reads_the_evidence_of_any_task(tmp_path: Path) -> None:
    (code,) = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    (tmp_path / "own.py").write_text(code, "utf-8")
    metric = runpy.run_path(str(tmp_path / "own.py"))["NamesItsPage"](Settings())
    assert isinstance(metric, Metric)
    asked = ScoringInput("f.jsonl", "d", "q", "red", "Red, see page 4.", evidence=mm.Evidence("rose", (3,)))
    assert (metric.out_of_scope(asked), metric.score(asked).score) == ("", 1.0)
    for evidence in (None, mm.Evidence("rose")):
        without = ScoringInput("f.jsonl", "d", "q", "red", "Red, see page 4.", evidence=evidence)
        assert (metric.out_of_scope(without), metric.score(without).score) == ("no page holds the answer", 0.0)
