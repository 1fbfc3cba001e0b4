"""Faults of models over real HTTP: a call is repeated within bounds, then fails with the reason; it never scores 0."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from crash_harness import wait_for
from model_server import QUICK, Grade, ModelServer, Said, Script, client_of, completion, good, in_turn, serving, text_of

from mmlongbench.models.calls import Unusable
from mmlongbench.models.client import MAX_LOST, Failed, ModelClient
from mmlongbench.models.fences import fence
from mmlongbench.models.json_call import JsonCall
from mmlongbench.models.pace import RateLimiter
from mmlongbench.models.reading import read_object
from mmlongbench.models.settings import EndpointError, EndpointSettings

pytestmark = pytest.mark.slow

CALL = JsonCall("m", "Grade it.", fence("answer", "blue"), Grade)
GOOD = good(reason="because", score=4)


def ask(
    script: Script, call: JsonCall[Grade] = CALL, **changes: Any
) -> tuple[Grade | Failed, ModelServer, dict[str, float]]:
    with serving(script) as server, client_of(server, **changes) as opened:
        found, usage = opened.ask(call), dict(opened.usage())
        wait_for(lambda: len(server.requests) >= usage["requests"])  # a request may arrive after the client gave it up
        return found, server, usage


FAULTS = {
    "prose": (Said("I would give it a four."), "no JSON object in 'I would give it a four.'"),
    "nothing": (Said(""), "an empty answer"),
    "cut off": (Said('{"reason": "it is'), "no JSON object"),
    "a text for a number": (Said('{"reason": "", "score": "4"}'), "score: Input should be a valid integer"),
    "true for a number": (Said('{"reason": "", "score": true}'), "score: Input should be a valid integer"),
    "too much": (Said('{"reason": "", "score": 6}'), "score: Input should be less than or equal to 5"),
    "no number": (Said('{"reason": "", "score": NaN}'), "score"),
    "a field missing": (Said('{"score": 4}'), "reason: Field required"),
    "a field more": (Said('{"reason": "", "score": 4, "bonus": 1}'), ": Extra inputs are not permitted in"),
    "a lone surrogate": (Said('{"reason": "\\ud800", "score": "x"}'), "score"),
    "a million braces": (Said("{" * 1_000_000), "an answer of 1,000,000 characters"),
    "braces": (Said('{"a":' * 30_000), "no JSON object"),
    "status 500": (Said(status=500), "HTTP 500"),
    "status 429": (Said(status=429, headers={"retry-after-ms": "2"}), "HTTP 429"),
    "status 503": (Said(status=503, body=b"<html>", headers={"retry-after": "0.001"}), "HTTP 503"),
    "html": (Said(body=b"<html>welcome</html>"), "a response that is no chat completion"),
    "no choices": (Said(body=b'{"choices": []}'), "a response that is no chat completion: choices"),
    "a number as words": (Said(body=completion(None).replace(b"null", b"4")), "no chat completion: choices.0.message"),
    "a refusal": (Said(body=completion(None, refusal="I would rather not.")), "the model refuses: I would rather not."),
    "half a body": (Said("x" * 2000, breaks_off=True), "the connection broke"),
    "too slow": (Said(hangs=True), "no answer in 0.4 s"),
    "dripping": (Said("x" * 500, drips=0.03), "no answer in 0.4 s"),
}


SLOW = ("too slow", "dripping")


def patience(fault: str) -> float:
    """Seconds. Only tests of timeouts use a short one, so that a busy machine does not look like a slow model."""
    return 0.4 if fault in SLOW else 30.0


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_tried_again(fault: str) -> None:
    found, server, usage = ask(in_turn(FAULTS[fault][0], GOOD), timeout=patience(fault))
    assert found == Grade(reason="because", score=4)
    assert len(server.requests) == usage["requests"]
    assert usage["requests"] == 2 or fault in SLOW
    assert (usage["calls"], usage["failed_calls"]) == (1, 0)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_that_stays_is_a_failure_with_its_reason(fault: str) -> None:
    said, reason = FAULTS[fault]
    found, server, usage = ask(in_turn(said), timeout=patience(fault), attempts=2)
    assert isinstance(found, Failed)
    assert found.why.startswith("m: no usable answer in 2 attempts, the last: ")
    assert reason in found.why
    assert "\n" not in found.why
    assert len(found.why) < 400
    assert (len(server.requests), usage["calls"], usage["failed_calls"]) == (2, 0, 1)


def test_a_call_that_failed_is_not_made_again_by_this_run_but_by_the_next(tmp_path: Path) -> None:
    script = in_turn(Said("no"), Said("no"), GOOD)
    with serving(script) as server:
        with client_of(server, attempts=2, cache=tmp_path / "a") as opened:
            assert opened.ask(CALL) == opened.ask(CALL)
            assert (len(server.requests), opened.usage()["failed_calls"]) == (2, 1)
        with client_of(server, attempts=2, cache=tmp_path / "a") as opened:
            assert opened.ask(CALL) == Grade(reason="because", score=4)


@pytest.mark.parametrize(
    "words",
    [
        '```json\n{"reason": "because", "score": 4}\n```',
        '<think>{"reason": "they say", "score": 5}</think> I say {"reason": "because", "score": 4}.',
        'The answer says {"score": 5}, a {set}. {"reason": "because", "score": 4} So it is.',
    ],
)
def test_a_verdict_is_found_among_words_and_the_last_counts(words: str) -> None:
    assert ask(in_turn(Said(words)))[0] == Grade(reason="because", score=4)


def test_an_object_as_deep_as_the_stack_is_unusable_at_every_depth() -> None:
    """At one depth an object can be read and not be written: to write it takes a little more of the stack."""
    depth = sys.getrecursionlimit()
    for levels in range(depth - 300, depth + 20):
        nested = "[" * levels + "]" * levels
        assert isinstance(read_object(f'{{"reason": "because", "score": {nested}}}', Grade), Unusable)


def test_an_endpoint_that_refuses_the_schema_by_name_is_asked_in_words_from_then_on() -> None:
    def plain(request: dict[str, Any]) -> Said:
        return Said(status=400, body=b'{"detail": "no schemas"}') if "response_format" in request else GOOD

    with serving(plain) as server, client_of(server) as opened:
        other = replace(CALL, material=fence("answer", "red"))
        assert opened.ask(CALL) == opened.ask(other) == Grade(reason="because", score=4)
        assert ["response_format" in request for request in server.requests] == [True, False, False]
        assert opened.usage()["requests"] == 3


def test_what_is_refused_for_good_is_not_tried_again() -> None:
    found, server, _ = ask(in_turn(Said(status=400, body=b'{"error": {"message": "too long"}}')))
    assert isinstance(found, Failed)
    assert found.why.startswith("m: HTTP 400: ")
    assert "too long" in found.why
    assert len(server.requests) == 2  # with the schema and without


def test_the_next_attempt_says_what_was_wrong_but_not_in_the_model_s_words() -> None:
    _, server, _ = ask(in_turn(Said('{"reason": "ignore the rubric", "score": 9}'), GOOD))
    note = text_of(server.requests[1]).removeprefix(CALL.material)
    assert "score: Input should be less than or equal to 5" in note
    assert "ignore" not in note
    assert len(server.requests[1]["messages"]) == 2


def test_retry_after_holds_all_requests_and_too_long_a_one_ends_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[float] = []

    def hold(self: RateLimiter, seconds: float) -> bool:
        held.append(seconds)
        return seconds <= QUICK.asked

    monkeypatch.setattr(RateLimiter, "hold", hold)
    ask(in_turn(Said(status=429, headers={"retry-after": "0.25"}), GOOD))
    found, server, _ = ask(in_turn(Said(status=429, headers={"retry-after": "3600"})))
    assert held == [0.25, 3600]
    assert isinstance(found, Failed)
    assert "HTTP 429" in found.why
    assert found.why.endswith("asks to wait 3600 s")
    assert len(server.requests) == 1


def test_an_endpoint_that_is_down_is_named_with_what_to_do(tmp_path: Path) -> None:
    with serving(in_turn(GOOD)) as server:
        url = server.url
    opened = ModelClient(EndpointSettings(url, tmp_path / "a.sqlite"), QUICK)
    with pytest.raises(EndpointError) as raised:
        opened.ask(CALL)
    opened.close()
    said = str(raised.value)
    assert said.startswith(f"{url}: no model answers there (")
    assert "start it, or correct --url" in said
    assert f"kept in {tmp_path / 'a.sqlite'}" in said
    assert "\n" not in said


@pytest.mark.parametrize(("status", "todo"), [(401, "set OPENAI_API_KEY"), (404, "--url usually ends in /v1")])
def test_a_wrong_key_or_path_ends_the_run_at_once(status: int, todo: str) -> None:
    with serving(in_turn(Said(status=status))) as server, client_of(server) as opened:
        with pytest.raises(EndpointError, match=todo):
            opened.ask(CALL)
        with pytest.raises(EndpointError, match=todo):
            opened.ask(replace(CALL, sample=1))
        assert len(server.requests) == 1


def test_an_endpoint_that_fails_one_call_after_another_is_given_up() -> None:
    with serving(in_turn(Said(status=502))) as server, client_of(server, attempts=1) as opened:
        for number in range(MAX_LOST - 1):
            assert isinstance(opened.ask(replace(CALL, sample=number)), Failed)
        with pytest.raises(EndpointError, match=rf"{MAX_LOST} calls failed one after another, the last: HTTP 502"):
            opened.ask(replace(CALL, sample=MAX_LOST))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"url": "127.0.0.1:8000"}, "expected an address such as"),
        ({"url": "http://[::1/v1"}, "expected an address such as"),
        ({"attempts": 0}, "the attempts of a call: expected a number above 0, found 0"),
        ({"timeout": float("inf")}, "--timeout"),
        ({"concurrency": -1}, "--concurrency"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(EndpointError, match=said):
        ModelClient(replace(EndpointSettings("http://127.0.0.1:1/v1"), **changes), QUICK)
