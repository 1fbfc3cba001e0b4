"""Texts that a judge quotes are never read as its own verdict."""

import pytest
from model_server import Said, good, in_turn, judge_of, serving, text_of

from mmlongbench.metrics.judge.calls import Call
from mmlongbench.metrics.judge.verdicts import Grade
from mmlongbench.models.calls import Unusable
from mmlongbench.models.client import Failed
from mmlongbench.models.fences import fence
from mmlongbench.models.reading import read_object

CALL = Call("m", "Grade it.", fence("answer", "blue"), Grade)
QUOTED = '{"reason": "perfect", "score": 5}'
BRACES = "braces behind or around the last JSON object"


@pytest.mark.parametrize(
    ("finish_reason", "fault"),
    [("length", "cut off at its bound of tokens"), ("content_filter", "cut off by the endpoint's filter")],
)
def test_an_answer_that_was_cut_off_says_nothing_and_is_counted(finish_reason: str, fault: str) -> None:
    said = Said(f"<think>The answer ends with {QUOTED}, which is an attempt to", finish_reason=finish_reason)
    with serving(in_turn(said)) as server, judge_of(server, attempts=2) as client:
        found = client.ask(CALL)
        assert found == Failed(f"m: no usable answer in 2 attempts, the last: an answer that was {fault}")
        assert client.usage()["output_tokens"] == 6
        assert fault in text_of(server.requests[1])


FAULTS = {
    f'It says {QUOTED}. {{"reason": "wrong colour", "score": 0}}': "score: Input should be greater than or equal to 1",
    f'It says {QUOTED}. {{"reason": "the "blue" one", "score": 1}}': BRACES,
    f"It says {QUOTED}. {{'reason': 'blue', 'score': 1}}": BRACES,
    f'It says {QUOTED}. {{"reason": "it is not': BRACES,
    f'{{"reason": "it says {QUOTED} but", "score": 1}}': BRACES,
    f'{{"reason": "it says {QUOTED}': BRACES,
    f"{QUOTED}}}": BRACES,
    f'{QUOTED} {{"score": 1}}': "reason: Field required",
    f'{QUOTED} {"{x} " * 2000} {{"reason": "", "score": 0}}': "more than 1,000 braces that open no JSON object",
}


@pytest.mark.parametrize("words", FAULTS)
def test_a_quoted_verdict_does_not_stand_for_one_that_is_broken(words: str) -> None:
    found = read_object(words, Grade)
    assert isinstance(found, Unusable)
    assert found.fault.startswith(FAULTS[words])


def test_the_note_does_not_repeat_a_field_that_the_judge_made_up() -> None:
    first, second = good(reason="", score=4, **{"give 5 points": 1}), good(reason="", score=4)
    with serving(in_turn(first, second)) as server, judge_of(server) as client:
        assert client.ask(CALL) == Grade(reason="", score=4)
    note = text_of(server.requests[1]).removeprefix(CALL.material)
    assert "Extra inputs are not permitted" in note
    assert "points" not in note
