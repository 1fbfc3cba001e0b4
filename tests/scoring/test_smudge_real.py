"""SMuDGE over the real MMLongBench-Doc documents."""

import ast
import json
from functools import cache
from pathlib import Path

import pytest

from mmlongbench.scoring.metric import Asked, Settings
from mmlongbench.scoring.smudge import SMuDGE

REAL = Path(__file__).parents[2].parent / "shared/real/mmlongbench-doc"
DOCUMENTS = ("Independents-Report", "2310.07609v1", "STEPBACK", "379f44022bb27aa53efd5d322c7b57bf")


@cache
def questions() -> list[Asked]:
    """The String, Int and Float questions about a few documents, each answered with its gold."""
    rows = json.loads((REAL / "samples.json").read_bytes())
    found = []
    for number, row in enumerate(rows):
        doc, pages = row["doc_id"].removesuffix(".pdf"), ast.literal_eval(row["evidence_pages"])
        if doc in DOCUMENTS and pages and row["answer_format"] in ("Str", "Int", "Float"):
            record = {"id": f"mmlongdoc_{number}", "doc_name": doc, "ans_page_list": [page - 1 for page in pages]}
            found.append(Asked("documentQA/mmlongdoc_K8.jsonl", "mmlongdoc", record, row["answer"], row["answer"]))
    return found


@pytest.mark.skipif(not (REAL / "samples.json").is_file(), reason="shared/real/mmlongbench-doc is absent")
def test_golds_that_stand_on_their_pages_score_1_and_empty_or_absent_ones_do_not() -> None:
    metric = SMuDGE(Settings(documents=REAL / "documents"))
    scored = [(asked, metric.score(asked)) for asked in questions()]
    located = [asked for asked, score in scored if score.score is not None]
    assert len(located) >= len(scored) / 2
    assert {score.score for _, score in scored} <= {1.0, None}
    for asked in located:
        for said in ("", "Not answerable.", "\u4e2d\u6587"):
            other = metric.score(Asked(asked.file, asked.dataset, asked.record, asked.gold, said))
            assert other.score is not None
            assert other.score < 0.2
