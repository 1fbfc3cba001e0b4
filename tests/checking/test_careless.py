"""Mistakes that build a release, each found by `check`, with the rule, the method and the row to blame."""

from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent / "careless"
BUILT, KEPT = "a small release can be built", "questions are kept, and fit every length"
ROWS, IDS = "rows are the same when they are read again", "ids are unique"
DRAFTS, PROMPTS = "drafts are pure", "prompts come back from records"
NEGATIVES, ONCE = "no negative holds an answer", "required units are shown once"
CLUSTER, ANSWERS = "a question has one cluster", "answers score full, empty outputs do not"
SLOTS, AUDIT = "no slot or marker is left in prompts", "an audit in another process finds nothing"
BYTES = "another process builds the same bytes"
BUILDERS = {
    "Counter": (DRAFTS, "draft()", "called again, it gives another draft: the question is ('note"),
}
READERS: dict[str, tuple[str, str, str]] = {}
METRICS = {"generous": "GenerousMetric", "harsh": "HarshMetric", "moody": "MoodyMetric"}
