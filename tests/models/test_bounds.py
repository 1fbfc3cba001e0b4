"""Limits for an endpoint: time, bytes, options that it does not know, and replies that repeat the key."""

from dataclasses import replace
from typing import Any

import pytest
from crash_harness import wait_for
from model_server import Grade, Request, Said, client_of, good, in_turn, serving

from mmlongbench.models.client import MAX_LOST, Failed
from mmlongbench.models.fences import fence
from mmlongbench.models.json_call import JsonCall
from mmlongbench.models.settings import EndpointError

CALL = JsonCall("m", "Grade it.", fence("answer", "blue"), Grade, temperature=1.0, sample=7)
OTHER = replace(CALL, material=fence("answer", "red"))
GOOD = good(reason="because", score=4)
GRADE = Grade(reason="because", score=4)
HEAD = b"HTTP/1.1 200 OK\r\nx-padding: " + b"x" * 2000

DRIPPING = {
    "an error": Said(status=500, body=b"x" * 2000, drips=0.05),
    "a success": Said("x" * 2000, drips=0.05),
    "the headers": Said(raw=HEAD, drips=0.05),
    "a body without an end": Said(raw=HEAD[:17] + b"\r\n" + b"{" * 2000, drips=0.05),
}


@pytest.mark.parametrize("part", DRIPPING)
def test_whatever_drips_is_cut_off_at_the_time_of_a_call(part: str) -> None:
    with serving(in_turn(DRIPPING[part])) as server, client_of(server, attempts=1, timeout=0.3) as client:
        assert client.ask(CALL) == Failed("m: no answer in 0.3 s", "timeout")
        wait_for(lambda: server.abandoned)  # it would have gone on


def test_an_error_is_read_to_a_bound() -> None:
    said = Said(status=500, body=b"x" * (32 << 20))
    with serving(in_turn(said)) as server, client_of(server, attempts=1) as client:
        found = client.ask(CALL)
        wait_for(lambda: server.abandoned)  # it could not send it all
    assert isinstance(found, Failed)
    assert found.why.startswith("m: HTTP 500: xxx")
    assert len(found.why) < 300


def options(request: Request) -> set[str]:
    return set(request) - {"model", "messages", "path"}


ALL = {"response_format", "max_completion_tokens", "temperature", "seed"}


def test_a_call_that_is_refused_for_itself_changes_nothing_for_others() -> None:
    refused = Said(status=400, body=b'{"error": {"message": "bad"}}')
    with serving(in_turn(refused, GOOD)) as server, client_of(server) as client:
        assert client.ask(CALL) == client.ask(OTHER) == GRADE
    assert list(map(options, server.requests)) == [ALL, {"temperature", "seed"}, ALL]
    assert [request["seed"] for request in server.requests] == [7, 7, 7]


@pytest.mark.parametrize(
    ("body", "name"),
    [
        ('{"error": {"message": "Unsupported parameter: \'max_completion_tokens\'."}}', "max_completion_tokens"),
        ('{"detail": [{"loc": ["body", "response_format", "json_schema"]}]}', "response_format"),
        ('{"error": {"message": "Unsupported value: \'temperature\' does not support 1."}}', "temperature"),
    ],
)
def test_an_option_that_is_refused_by_name_is_left_out_from_then_on(body: str, name: str) -> None:
    def script(request: dict[str, Any]) -> Said:
        return Said(status=400, body=body.encode()) if name in request else GOOD

    with serving(script) as server, client_of(server) as client:
        assert client.ask(CALL) == client.ask(OTHER) == GRADE
        assert list(map(options, server.requests)) == [ALL, ALL - {name}, ALL - {name}]
        assert client.usage()["requests"] == 3


def test_calls_that_are_refused_one_by_one_are_no_reason_to_give_an_endpoint_up() -> None:
    with serving(in_turn(Said(status=400, body=b""))) as server, client_of(server) as client:
        for number in range(MAX_LOST + 2):
            assert client.ask(replace(CALL, sample=number)) == Failed("m: HTTP 400", "bad-request")


@pytest.mark.parametrize("status", [400, 500, 401])
def test_the_key_is_never_repeated(status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    body = b'{"error": {"message": "bad Bearer sk-secret"}}'
    with serving(in_turn(Said(status=status, body=body))) as server, client_of(server, attempts=1) as client:
        if status == 401:
            with pytest.raises(EndpointError, match="bad Bearer <key>"):
                client.ask(CALL)
        else:
            found = client.ask(CALL)
            assert isinstance(found, Failed)
            assert "bad Bearer <key>" in found.why
            assert "secret" not in found.why
