"""Answers that a scripted judge extracts, and rules of all judged metrics."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any, TypeVar

import pytest
from asked import document_question
from model_server import QUICK, ModelServer, Script, good, serving

from mmlongbench.metrics.judge import Answers, Committee, Extracted, FluencyF1, JudgeError
from mmlongbench.metrics.judge.judged import Judged
from mmlongbench.task.metric import Judge, Score, ScoringInput, Settings

M = TypeVar("M", bound=Judged)


@contextmanager
def metric(kind: type[M], script: Script, **judge: Any) -> Iterator[tuple[M, ModelServer]]:
    with serving(script) as server:
        asked = Judge(server.url, **{"models": ("m",), "timeout": 30.0, "attempts": 2, **judge})
        with closing(kind(Settings(judge=asked), QUICK)) as opened:
            yield opened, server


def question(prediction: str, gold: Any = "4", **record: Any) -> ScoringInput:
    full = {"id": "q", "question": "How many petals?", "answer_format": "Integer", "doc_name": "rose", **record}
    return document_question(full, gold, prediction)


ANSWERS = {
    ("Integer", "Integer", ("4",)): ("4", 1.0),
    ("Float", "Float", ("4.02",)): ("4.0", 1.0),
    ("String", "String", ("Red Rose",)): ("red rose", 1.0),
    ("List", "List", ("red", 'a "b", c')): ('["a \\"b\\", c", "red"]', 1.0),
    ("None", "Not answerable", ()): ("Not answerable", 1.0),
    ("Integer ", "Not answerable", ()): ("4", 0.0),
    ("Integer  ", "Fail to answer", ()): ("4", 0.0),
    ("String ", "List", ("red", "rose")): ("blue", 0.0),
}


@pytest.mark.parametrize("case", ANSWERS)
def test_an_extracted_answer_is_scored_by_the_rules(case: tuple[str, str, tuple[str, ...]]) -> None:
    gold, score = ANSWERS[case]
    with metric(Extracted, lambda _: good(format=case[1], answer=case[2])) as (extracted, _):
        found = extracted.score(question("a long response", gold, answer_format=case[0].strip()))
    assert found.score == score
    assert found.details["answered"] == (case[1] != "Not answerable")


def test_extraction_has_accuracy_and_f1_as_totals_and_an_empty_response_fails_to_answer() -> None:
    with metric(Extracted, lambda _: good(format="Integer", answer=["4"])) as (extracted, server):
        scored = [extracted.score(question(said)) for said in ("four", "", "about four")]
        assert [each.score for each in scored] == [1.0, 0.0, 1.0]
        assert scored[1].details["extracted"] == "Fail to answer"
        assert extracted.totals([*scored, Score(None)]) == pytest.approx({"accuracy": 2 / 3, "f1": 2 / 3})
        assert len(server.requests) == 2
        assert extracted.absent(question(""))["answerable"]


@pytest.mark.parametrize(
    ("kind", "answer"), [("Integer", []), ("String", ["a", "b"]), ("Number", ["1"]), ("List", [1])]
)
def test_an_extraction_that_is_none_is_a_failure(kind: str, answer: list[Any]) -> None:
    with metric(Extracted, lambda _: good(format=kind, answer=answer)) as (extracted, _):
        assert extracted.score(question("x")).score is None


@pytest.mark.parametrize("kind", [Answers, Committee, Extracted, FluencyF1])
def test_a_metric_without_a_judge_says_how_to_name_one(kind: type[Judged]) -> None:
    with pytest.raises(
        JudgeError, match=f"{kind.name}: no judge is named; name one with --judge-url and --judge-model"
    ):
        kind(Settings())
