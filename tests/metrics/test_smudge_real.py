"""SMuDGE over the real MMLongBench-Doc documents."""

import ast
import json
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import needs
import pytest
from asked import document_question

from mmlongbench.metrics.smudge import SMuDGE, words
from mmlongbench.metrics.smudge.words import Word, Words, words_of
from mmlongbench.task.metrics import ScoringInput, Settings

FORMATS = {"Str": "String", "Int": "Integer", "Float": "Float", "List": "List", "None": "None"}
PARTS = 4
pytestmark = pytest.mark.rare


@cache
def questions(real: Path) -> dict[str, list[ScoringInput]]:
    """Every question, answered with its gold, by document."""
    found: dict[str, list[ScoringInput]] = {}
    for number, row in enumerate(json.loads((real / "samples.json").read_bytes())):
        doc = row["doc_id"].removesuffix(".pdf")
        record: dict[str, Any] = {
            "id": f"mmlongdoc_{number}",
            "doc_name": doc,
            "answer_format": FORMATS[row["answer_format"]],
            "ans_page_list": [page - 1 for page in ast.literal_eval(row["evidence_pages"])],
        }
        if (real / "documents" / f"{doc}.pdf").is_file():
            asked = document_question(record, row["answer"], row["answer"], dataset="mmlongdoc")
            found.setdefault(doc, []).append(asked)
    return found


@pytest.fixture(scope="module")
def real() -> Iterator[Path]:
    """The real documents; the words of each are kept for all metrics, since both profiles read the same ones."""
    read: dict[str, Words] = {}

    def words_once(source: Iterator[Word], name: str) -> Words:
        if name not in read:
            read[name] = words_of(source, name)
        return read[name]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(words, "words_of", words_once)
        yield needs.shared("real", "mmlongbench-doc", "samples.json").parent


@pytest.mark.parametrize("part", range(PARTS))
def test_a_gold_that_is_said_scores_1_wherever_the_answer_is_extractive(part: int, real: Path) -> None:
    metric = SMuDGE(Settings(documents=real / "documents"))
    for doc in sorted(questions(real))[part::PARTS]:
        for asked in questions(real)[doc]:
            scored, why = metric.score(asked), metric.out_of_scope(asked)
            if not why and "document-without-words" not in scored.failure:
                assert scored.score == 1, (asked, scored)


def test_an_answer_of_other_letters_and_none_at_all_score_next_to_nothing(real: Path) -> None:
    metric = SMuDGE(Settings(documents=real / "documents"))
    asked = [each for doc in ("Independents-Report", "STEPBACK") for each in questions(real)[doc]]
    there = [each for each in asked if not metric.out_of_scope(each)]
    assert len(there) > 5
    for each in there:
        for said in ("", "\u4e2d\u6587"):
            score = metric.score(replace(each, prediction=said)).score
            assert score is not None
            assert score < 0.05
