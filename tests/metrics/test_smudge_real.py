"""SMuDGE over the real MMLongBench-Doc documents."""

import ast
import json
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from asked import document_question

from mmlongbench.metrics.smudge import SMuDGE, library
from mmlongbench.metrics.smudge.words import Word, Words, words_of
from mmlongbench.task import ScoringInput, Settings

REAL = Path(__file__).parents[2].parent / "shared/real/mmlongbench-doc"
FORMATS = {"Str": "String", "Int": "Integer", "Float": "Float", "List": "List", "None": "None"}
PARTS = 13
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (REAL / "samples.json").is_file(), reason="shared/real/mmlongbench-doc is absent"),
]


@cache
def questions() -> dict[str, list[ScoringInput]]:
    """Every question, answered with its gold, by document."""
    found: dict[str, list[ScoringInput]] = {}
    for number, row in enumerate(json.loads((REAL / "samples.json").read_bytes())):
        doc = row["doc_id"].removesuffix(".pdf")
        record: dict[str, Any] = {
            "id": f"mmlongdoc_{number}",
            "doc_name": doc,
            "answer_format": FORMATS[row["answer_format"]],
            "ans_page_list": [page - 1 for page in ast.literal_eval(row["evidence_pages"])],
        }
        asked = document_question(record, row["answer"], row["answer"], dataset="mmlongdoc")
        if (REAL / "documents" / f"{doc}.pdf").is_file():
            found.setdefault(doc, []).append(asked)
    return found


@pytest.fixture(scope="module", autouse=True)
def words_are_read_once() -> Iterator[None]:
    """Keep the words of each document for all metrics, since both profiles read the same ones."""
    read: dict[str, Words] = {}

    def words_once(source: Iterator[Word], name: str) -> Words:
        if name not in read:
            read[name] = words_of(source, name)
        return read[name]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(library, "words_of", words_once)
        yield


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("profile", ["paper", "ours"])
def test_a_gold_that_is_said_scores_1_wherever_the_answer_is_extractive(profile: Any, part: int) -> None:
    metric = SMuDGE(Settings(documents=REAL / "documents", profile=profile))
    for doc in sorted(questions())[part::PARTS]:
        for asked in questions()[doc]:
            scored, why = metric.score(asked), metric.out_of_scope(asked)
            if not why and "document-without-words" not in scored.failure:
                assert scored.score == 1, (asked, scored)


def test_an_answer_of_other_letters_and_none_at_all_score_next_to_nothing() -> None:
    metric = SMuDGE(Settings(documents=REAL / "documents"))
    asked = [each for doc in ("Independents-Report", "STEPBACK") for each in questions()[doc]]
    there = [each for each in asked if not metric.out_of_scope(each)]
    assert len(there) > 5
    for each in there:
        for said in ("", "\u4e2d\u6587"):
            other = metric.score(replace(each, prediction=said))
            assert other.score is not None
            assert other.score < 0.05
