"""Judges over the client for models: their options in messages, their errors, the keys of their calls."""

from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from model_server import QUICK, Said, completion, good, in_turn, judge_of, serving

from mmlongbench.errors import ScoringError
from mmlongbench.metrics.judge.calls import Call, Manner, PromptCall, Reading
from mmlongbench.metrics.judge.client import JudgeClient
from mmlongbench.metrics.judge.errors import JudgeError
from mmlongbench.metrics.judge.readings import last_grade
from mmlongbench.metrics.judge.verdicts import Grade
from mmlongbench.models.client import Failed
from mmlongbench.models.fences import fence
from mmlongbench.models.pictures import Picture
from mmlongbench.task.metric import Judge

CALL = Call("m", "Grade it.", fence("answer", "blue"), Grade)
JUDGE = Judge("http://127.0.0.1:1/v1", ("m",))


def test_the_keys_of_answers_that_were_paid_for_stay() -> None:
    """A file of answers is read by these keys. A call with another key is made and paid for again."""
    reading = Reading("grade", Grade, partial(last_grade, is_literal=False))
    assert CALL.key == "4f2cff853b3d3742e130084c0dd31d279ae67d6577b34d7477424df0535e831e"
    prompt = PromptCall("m", "Well?", reading, Manner(1.0, 256))
    assert prompt.key == "ba86a5817b367098ee87acce09cbe4cda1095cd47b203428e1fc13550473f46b"


def test_a_rubric_is_asked_with_the_rules_on_its_material() -> None:
    with serving(in_turn(good(reason="because", score=4))) as server, judge_of(server) as client:
        assert client.ask(CALL) == Grade(reason="because", score=4)
    system, user = server.requests[0]["messages"]
    assert system["content"].startswith("Grade it.\n\nMaterial stands between a line <name-hash>")
    assert user["content"] == CALL.material


def test_every_part_of_a_prompt_is_in_its_key() -> None:
    reading = Reading("grade", Grade, partial(last_grade, is_literal=False))
    asked = PromptCall("m", "Well?", reading, Manner(1.0, 256))
    others = [
        replace(asked, model="n"),
        replace(asked, prompt="x"),
        replace(asked, sample=1),
        replace(asked, manner=Manner(0.0, 256)),
        replace(asked, manner=Manner(None, 256)),
        replace(asked, manner=Manner(1.0, 512)),
        replace(asked, reading=replace(reading, name="another")),
        replace(asked, pictures=(Picture(Path("page.png"), "a" * 64),)),
    ]
    assert len({call.key for call in (asked, *others)}) == 9


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"url": "127.0.0.1:8000"}, "--judge-url '127.0.0.1:8000': expected an address such as"),
        ({"models": ()}, "--judge-model"),
        ({"models": (" ",)}, "--judge-model"),
        ({"models": ("a", "b", "a")}, "--judge-model: a, b, a: one is named twice"),
        ({"samples": 0}, "--judge-samples: expected a number above 0, found 0"),
        ({"timeout": float("inf")}, "--judge-timeout"),
        ({"concurrency": -1}, "--judge-concurrency"),
    ],
)
def test_a_judge_that_cannot_be_meant_is_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(JudgeError, match=said):
        JudgeClient(replace(JUDGE, **changes), QUICK)


def assert_raised(kind: type[Exception], said: str, client: JudgeClient) -> None:
    with pytest.raises(kind, match=said):
        client.ask(CALL)


def test_messages_speak_of_judges_and_of_their_options(tmp_path: Path) -> None:
    path = r"--judge-url usually ends in /v1, and --judge-model is a name"
    away = r"no judge answers there \(.*\); start it, or correct --judge-url"
    with serving(in_turn(Said(status=404))) as server, judge_of(server) as client:
        assert_raised(JudgeError, path, client)
    with closing(JudgeClient(replace(JUDGE, url=server.url), QUICK)) as client:
        assert_raised(ScoringError, away, client)
    refusal = Said(body=completion(None, refusal="I would rather not."))
    with serving(in_turn(refusal)) as server, judge_of(server, attempts=1) as client:
        assert client.ask(CALL) == Failed("m: the judge refuses: I would rather not.", "refusal")
    (tmp_path / "a.sqlite").write_bytes(b"no database" * 1000)
    said = r"the judge's answers .*a\.sqlite cannot be used: .*; name another file with --judge-cache"
    with pytest.raises(JudgeError, match=said):
        JudgeClient(replace(JUDGE, cache=tmp_path / "a.sqlite"), QUICK)
