"""Many statements and long ones: each is shown to a judge and counted, or nothing is."""

import re
from contextlib import closing

import pytest
from judge_server import QUICK, JudgeServer, Request, Said, form_of, good, judging, text_of

from mmlongbench.scoring.judge import Answers, FluencyF1
from mmlongbench.scoring.metric import Asked, Judge, Scored, Settings

GOLD = "It was dredged."


def all_it_sees(request: Request) -> Said:
    """A judge that finds every statement good."""
    match form_of(request):
        case "Claims":
            return good(claims=[GOLD])
        case "Fluent":
            return good(reason="", fluent=1)
    return good(supported=[int(number) for number in re.findall(r"^(\d+)\. ", text_of(request), re.MULTILINE)])


def settings(server: JudgeServer) -> Settings:
    return Settings(judge=Judge(server.url, ("m",), timeout=30.0))


def scored(prediction: str) -> tuple[Scored, int]:
    """A summary's score, and the calls about its statements or its gold's."""
    with judging(all_it_sees) as server, closing(FluencyF1(settings(server), QUICK)) as metric:
        found = metric.score(Asked("summ/gov_K8.jsonl", "gov", {"id": "s"}, GOLD, prediction))
        return found, [form_of(request) for request in server.requests].count("Supported")


@pytest.mark.parametrize(("sentence", "number", "calls"), [("Dug in {}.", 1200, 3), ("Dug in {}" + " so" * 900, 40, 3)])
def test_many_statements_are_judged_in_several_calls_and_none_is_left_out(
    sentence: str, number: int, calls: int
) -> None:
    found, made = scored("\n\n".join(sentence.format(year) for year in range(number)))
    assert (found.details["sentences"], found.details["precision"], found.score) == (number, 1.0, 1.0)
    assert made == 1 + calls


@pytest.mark.parametrize(("prediction", "number"), [("so " * 20_000, 1), ("It was so. " * 5001, 5001)])
def test_statements_that_no_judge_can_be_shown_are_a_failure(prediction: str, number: int) -> None:
    found, made = scored(prediction)
    assert (found.score, made) == (None, 1)
    assert found.failure.startswith(f"too long to be judged: {number:,} sentences, ")


def test_a_gold_list_that_no_judge_can_be_shown_is_a_failure() -> None:
    record = {"id": "q", "question": "Which?", "answer_format": "List"}
    with judging(all_it_sees) as server, closing(Answers(settings(server), QUICK)) as metric:
        found = metric.score(Asked("documentQA/roses_K8.jsonl", "roses", record, ["x" * 30_000] * 2, "red"))
        assert (found.score, found.failure) == (None, "too long to be judged: 2 items, 60,000 characters")
        assert not server.requests
