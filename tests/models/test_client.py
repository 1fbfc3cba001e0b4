"""Calls to models over HTTP: answered once, tried again within bounds, failed with a reason, never a score of 0."""

import json
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from crash_harness import wait_for
from model_server import (
    QUICK,
    Grade,
    ModelServer,
    Request,
    Said,
    Script,
    client_of,
    completion,
    good,
    in_turn,
    serving,
    text_of,
)

from mmlongbench.models.calls import Call, fence, json_call, read_object
from mmlongbench.models.client import MAX_LOST, Failed, ModelClient
from mmlongbench.models.replies import REFUSALS, SKIPS, Unusable, name_of
from mmlongbench.models.settings import EndpointError, EndpointSettings
from mmlongbench.scoring.predictions import SKIPPED

MATERIAL = fence("answer", "blue")


def call(**changes: Any) -> Call[Grade]:
    how = {"model": "m", "instruction": "Grade it.", "material": MATERIAL, "form": Grade, **changes}
    return json_call(**how)


CALL, SEEDED = call(), call(temperature=1.0, sample=7)
GOOD = good(reason="because", score=4)
GRADE = Grade(reason="because", score=4)


def ask(script: Script, **changes: Any) -> tuple[Grade | Failed, ModelServer, dict[str, float]]:
    with serving(script) as server, client_of(server, **changes) as opened:
        found, usage = opened.ask(CALL), dict(opened.usage())
        wait_for(lambda: len(server.requests) >= usage["requests"])  # a request may arrive after the client gave it up
        return found, server, usage


def test_a_call_is_answered_once_for_all_threads_and_runs(tmp_path: Path) -> None:
    cache = tmp_path / "answers" / "answers.sqlite"
    with serving(lambda request: replace(GOOD, delay=0.02)) as server:
        for _ in range(2):
            with client_of(server, cache=cache) as opened, ThreadPoolExecutor(8) as pool:
                assert list(pool.map(opened.ask, [CALL] * 16)) == [GRADE] * 16
        assert len(server.requests) == 1
        assert opened.usage()["from_cache"] == 16


def test_a_request_has_the_rubric_the_schema_the_fenced_case_and_no_randomness() -> None:
    _, server, usage = ask(in_turn(GOOD))
    (request,) = server.requests
    system, user = request["messages"]
    assert request["path"] == "/v1/chat/completions"
    assert (system["role"], user["content"]) == ("system", MATERIAL)
    assert system["content"].startswith("Grade it.")
    assert request["response_format"]["json_schema"]["schema"]["properties"]["score"]["maximum"] == 5
    assert request["temperature"] == 0
    expected = {"calls": 1, "requests": 1, "from_cache": 0, "failed_calls": 0, "input_tokens": 10, "output_tokens": 3}
    assert usage == expected


def test_every_part_of_a_call_is_in_its_key() -> None:
    others: list[dict[str, Any]] = [
        {"model": "n"},
        {"instruction": "x"},
        {"material": "x"},
        {"sample": 1},
        {"temperature": 1.0},
    ]
    assert len({CALL.key, *(call(**other).key for other in others)}) == 6


def test_no_more_calls_are_under_way_than_allowed() -> None:
    calls = [call(sample=number) for number in range(24)]
    with serving(lambda request: replace(GOOD, delay=0.01)) as server, client_of(server, concurrency=3) as opened:
        with ThreadPoolExecutor(12) as pool:
            assert len(list(pool.map(opened.ask, calls))) == 24
        assert len(server.requests) == 24
        assert server.most_waiting <= 3


def test_a_dry_run_counts_calls_makes_none_and_needs_no_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = call(sample=1)
    with serving(in_turn(GOOD)) as server:
        with client_of(server, cache=tmp_path / "a") as opened:
            opened.ask(CALL)
        monkeypatch.setitem(sys.modules, "openai", None)
        with client_of(server, cache=tmp_path / "a", is_dry=True) as opened:
            assert opened.ask(CALL) == GRADE
            assert opened.ask(other) == opened.ask(other) == Failed("not asked: this is a dry run")
            assert (opened.usage()["planned_calls"], opened.usage()["from_cache"]) == (1, 1)
        with client_of(server, cache=tmp_path / "new" / "b", is_dry=True) as opened:
            assert isinstance(opened.ask(CALL), Failed)
        assert len(server.requests) == 1
    assert not (tmp_path / "new").exists()


def test_a_cache_that_is_none_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.sqlite").write_bytes(b"no database" * 1000)
    with pytest.raises(EndpointError, match=r"a\.sqlite cannot be used: .*; name another file with --cache"):
        ModelClient(EndpointSettings("http://127.0.0.1:1/v1", tmp_path / "a.sqlite"), QUICK)


def test_answers_of_an_earlier_version_are_read_and_one_that_is_none_is_asked_anew(tmp_path: Path) -> None:
    columns = "call TEXT PRIMARY KEY, model TEXT NOT NULL, verdict TEXT NOT NULL"
    counts = "input_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL"
    with closing(sqlite3.connect(tmp_path / "a")) as file, file:
        file.execute(f"CREATE TABLE answers ({columns}, {counts}) WITHOUT ROWID")
        file.execute("INSERT INTO answers VALUES (?, 'm', ?, 10, 3)", (CALL.key, '{"reason": "kept", "score": 2}'))
    other = call(sample=1)
    with serving(in_turn(GOOD)) as server:
        with client_of(server, cache=tmp_path / "a") as opened:
            assert [opened.ask(CALL), opened.ask(other)] == [Grade(reason="kept", score=2), GRADE]
        with closing(sqlite3.connect(tmp_path / "a")) as file, file:
            found = file.execute("SELECT call, model, verdict, input_tokens, output_tokens FROM answers")
            assert {key: json.loads(verdict)["score"] for key, _, verdict, *_ in found} == {CALL.key: 2, other.key: 4}
            file.execute("UPDATE answers SET verdict = '{\"score\": 77}'")
        with client_of(server, cache=tmp_path / "a") as opened:
            assert [opened.ask(CALL), opened.ask(other)] == [GRADE, GRADE]
        assert len(server.requests) == 3


def test_a_full_disk_ends_the_run_before_another_call_is_paid(tmp_path: Path) -> None:
    long = good(reason="x" * 9000, score=4)
    with serving(in_turn(long)) as server, client_of(server, cache=tmp_path / "a") as opened:
        opened._store._database.execute("PRAGMA max_page_count = 2")
        for sample in range(2):
            with pytest.raises(OSError, match="No space left on device"):
                opened.ask(call(sample=sample))
        assert len(server.requests) == 1


FAULTS = {
    "prose": (Said("I would give it a four."), "no JSON object in 'I would give it a four.'"),
    "nothing": (Said(""), "an empty answer"),
    "cut off": (Said('{"reason": "it is'), "no JSON object"),
    "a text for a number": (Said('{"reason": "", "score": "4"}'), "score: Input should be a valid integer"),
    "too much": (Said('{"reason": "", "score": 6}'), "score: Input should be less than or equal to 5"),
    "a field missing": (Said('{"score": 4}'), "reason: Field required"),
    "a field more": (Said('{"reason": "", "score": 4, "bonus": 1}'), ": Extra inputs are not permitted in"),
    "a lone surrogate": (Said('{"reason": "\\ud800", "score": "x"}'), "score"),
    "a million braces": (Said("{" * 1_000_000), "an answer of 1,000,000 characters"),
    "status 500": (Said(status=500), "HTTP 500"),
    "status 429": (Said(status=429, headers={"retry-after-ms": "2"}), "HTTP 429"),
    "html": (Said(body=b"<html>welcome</html>"), "a response that is no chat completion"),
    "a refusal": (Said(body=completion(None, refusal="I would rather not.")), "the model refuses: I would rather not."),
    "half a body": (Said("x" * 2000, breaks_off=True), "the connection broke"),
    "too slow": (Said(hangs=True), "no answer in 0.4 s"),
    "dripping": (Said("x" * 500, drips=0.03), "no answer in 0.4 s"),
}
SLOW = ("too slow", "dripping")


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_tried_again_and_one_that_stays_is_a_failure_with_its_reason(fault: str) -> None:
    said, reason = FAULTS[fault]
    # Only tests of timeouts use a short one, so that a busy machine does not look like a slow model.
    timeout = 0.4 if fault in SLOW else 30.0
    found, server, usage = ask(in_turn(said, GOOD), timeout=timeout)
    assert found == GRADE
    assert len(server.requests) == usage["requests"]
    assert usage["requests"] == 2 or fault in SLOW
    assert (usage["calls"], usage["failed_calls"]) == (1, 0)
    found, server, usage = ask(in_turn(said), timeout=timeout, attempts=2)
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
        with pytest.raises(Unusable):
            read_object(f'{{"reason": "because", "score": {nested}}}', Grade)


def test_the_next_attempt_says_what_was_wrong_but_not_in_the_model_s_words() -> None:
    _, server, _ = ask(in_turn(Said('{"reason": "ignore the rubric", "score": 9}'), GOOD))
    note = text_of(server.requests[1]).removeprefix(MATERIAL)
    assert "score: Input should be less than or equal to 5" in note
    assert "ignore" not in note
    assert len(server.requests[1]["messages"]) == 2


def test_retry_after_is_kept_and_too_long_a_one_ends_the_call() -> None:
    at = list[float]()

    def script(request: Request) -> Said:
        at.append(time.monotonic())
        return Said(status=429, headers={"retry-after": "0.25"}) if len(at) == 1 else GOOD

    assert ask(script)[0] == GRADE
    assert at[1] - at[0] >= 0.25
    at.clear()
    with serving(script) as server, client_of(server) as opened:
        assert isinstance(opened.ask(replace(CALL, attempts=1)), Failed)
        assert opened.ask(call(sample=1)) == GRADE
    assert at[1] - at[0] >= 0.25, "the other calls wait, too"
    found, server, _ = ask(in_turn(Said(status=429, headers={"retry-after": "3600"})))
    assert isinstance(found, Failed)
    assert "HTTP 429" in found.why
    assert found.why.endswith("asks to wait 3600 s")
    assert len(server.requests) == 1


def test_a_refusal_that_lists_what_is_known_does_not_end_the_call() -> None:
    """It names an option that was left out already, and not the one that it refuses."""

    def script(request: Request) -> Said:
        known = {"model", "messages", "max_tokens", "stream", "temperature", "seed"}
        assert "temperature" in request, "what changes the answer is not left out"
        if {*request} & {"response_format", "max_completion_tokens"}:
            return Said(f"unknown field; supported fields: {', '.join(sorted(known))}", status=400)
        return GOOD

    with serving(script) as server, client_of(server, attempts=1) as opened:
        assert opened.ask(CALL) == GRADE
        assert opened.ask(call(sample=1)) == GRADE
        assert len(server.requests) == 5, "an option that no refusal named is sent again with the next call"


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
            opened.ask(call(sample=1))
        assert len(server.requests) == 1


def test_only_an_endpoint_that_fails_one_call_after_another_is_given_up() -> None:
    with serving(in_turn(Said(status=502))) as server, client_of(server, attempts=1) as opened:
        for number in range(MAX_LOST - 1):
            assert isinstance(opened.ask(call(sample=number)), Failed)
        with pytest.raises(EndpointError, match=rf"{MAX_LOST} calls failed one after another, the last: HTTP 502"):
            opened.ask(call(sample=MAX_LOST))
    with serving(in_turn(Said(status=400, body=b""))) as server, client_of(server) as opened:
        for number in range(MAX_LOST + 2):  # each is refused for itself
            assert opened.ask(call(sample=number)) == Failed("m: HTTP 400", "bad-request")


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


def test_what_is_refused_for_good_is_asked_once_more_without_the_schema_and_changes_nothing_for_others() -> None:
    other = call(temperature=1.0, sample=7, material=fence("answer", "red"))
    refused = Said(status=400, body=b'{"error": {"message": "too long"}}')
    with serving(in_turn(refused, GOOD)) as server, client_of(server) as client:
        assert client.ask(SEEDED) == client.ask(other) == GRADE
    assert list(map(options, server.requests)) == [ALL, {"temperature", "seed"}, ALL]
    assert [request["seed"] for request in server.requests] == [7, 7, 7]
    found, server, _ = ask(in_turn(refused))
    assert isinstance(found, Failed)
    assert found.why.startswith("m: HTTP 400: ")
    assert "too long" in found.why
    assert len(server.requests) == 2  # with the schema and without


@pytest.mark.parametrize(
    ("body", "name", "kept"),
    [
        ('{"error": {"message": "Unsupported parameter: \'max_completion_tokens\'."}}', "max_completion_tokens", True),
        ('{"detail": [{"loc": ["body", "response_format", "json_schema"]}]}', "response_format", True),
        ('{"error": {"message": "Unsupported value: \'temperature\' does not support 1."}}', "temperature", True),
        ('{"detail": "no schemas"}', "response_format", False),
    ],
)
def test_an_option_that_is_refused_by_name_is_left_out_from_then_on(body: str, name: str, kept: bool) -> None:
    def script(request: dict[str, Any]) -> Said:
        return Said(status=400, body=body.encode()) if name in request else GOOD

    with serving(script) as server, client_of(server) as client:
        assert (
            client.ask(SEEDED) == client.ask(call(temperature=1.0, sample=7, material=fence("answer", "red"))) == GRADE
        )
        assert [name in request for request in server.requests] == [True, False, False]
        assert not kept or list(map(options, server.requests)) == [ALL, ALL - {name}, ALL - {name}]
        assert client.usage()["requests"] == 3


@pytest.mark.parametrize(
    ("status", "message", "name"),
    [
        (400, "This model's maximum context length is 32768 tokens. However, you requested 40000", "context-length"),
        (400, "The input (40 tokens) is longer than the model's context length (32 tokens).", "context-length"),
        (400, "the request exceeds the available context size. try increasing it", "context-length"),
        (400, "At most 16 image(s) may be provided in one prompt.", "image-limit"),
        (400, "Image count 30 exceeds limit 16", "image-limit"),
        (413, "", "request-size"),
        (400, "raise VLLM_MAX_MEDIA_REQUEST_DECODE_BYTES", "decode-budget"),
        (400, "an item of 20000 tokens exceeds the encoder cache size 16384", "encoder-cache"),
        (500, "Cannot load local files without `--allowed-local-media-path`.", "file-not-allowed"),
        (500, "[Errno 2] No such file or directory: '/x.jpg'", "missing-file"),
        (429, "slow down", "overloaded"),
        (429, "Too many tokens, please wait before trying again.", "overloaded"),
        (500, "the request exceeds the available context size", "context-length"),
        (502, "at most 8 images", "server-error"),
        (400, "The number of images in the prompt exceeds the limit of 10", "image-limit"),
        (422, "extra fields not permitted", "unknown-field"),
        (500, "Internal Server Error", "server-error"),
        (400, "something", "bad-request"),
    ],
)
def test_a_refusal_has_a_name(status: int, message: str, name: str) -> None:
    assert name_of(status, message) == name
    assert REFUSALS[name].advice


def test_what_a_model_cannot_take_is_skipped_with_a_reason_that_score_knows() -> None:
    assert set(SKIPS) <= set(REFUSALS)
    assert SKIPS == SKIPPED


CALLS, AT_ONCE = 60, 4
HELPERS = str(Path(__file__).parents[1] / "helpers")
RUN = """
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
sys.path.insert(0, sys.argv[5])
from mmlongbench.models.calls import json_call
from mmlongbench.models.client import ModelClient
from mmlongbench.models.settings import EndpointSettings
from model_server import Grade

url, cache, calls, at_once = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
client = ModelClient(EndpointSettings(url, cache, at_once))
with ThreadPoolExecutor(at_once) as pool:
    list(pool.map(client.ask, [json_call("m", "Grade it.", str(number), Grade) for number in range(calls)]))
sys.stdout.write(str(client.usage()["calls"]))
client.close()
"""


def slowly(_: object) -> Said:
    return Said(good(reason="", score=4).words, delay=0.01)


@contextmanager
def run(server: ModelServer, cache: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Another process that makes the same calls."""
    command = [sys.executable, "-c", RUN, server.url, str(cache), str(CALLS), str(AT_ONCE), HELPERS]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.kill()


def make_calls(client: ModelClient) -> list[int]:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        found = pool.map(client.ask, [json_call("m", "Grade it.", str(number), Grade) for number in range(CALLS)])
        return [verdict.score for verdict in found if isinstance(verdict, Grade)]


def answered(server: ModelServer, least: int) -> Callable[[], bool]:
    return lambda: sum(server.answered.values()) >= least


def test_a_run_that_was_killed_goes_on_and_asks_again_only_what_was_under_way(tmp_path: Path) -> None:
    cache, is_killed, left = tmp_path / "answers.sqlite", Event(), iter(range(CALLS // 2))

    def script(request: Request) -> Said:  # half of the calls are answered before the kill, however late that comes
        return replace(slowly(request), until=None if next(left, None) is not None else is_killed)

    with serving(script) as server:
        with run(server, cache) as killed:
            wait_for(answered(server, CALLS // 3))
            killed.send_signal(signal.SIGKILL)
            killed.wait()
        before = sum(server.answered.values())
        is_killed.set()
        with client_of(server, cache=cache, concurrency=AT_ONCE) as client:
            assert make_calls(client) == [4] * CALLS
            usage = client.usage()
        wait_for(lambda: not server.under_way)  # it counts an answer once it is sent
        assert CALLS // 3 <= before < CALLS
        assert len(server.answered) == CALLS
        assert sum(server.answered.values()) - CALLS <= AT_ONCE
        assert usage["calls"] + usage["from_cache"] == CALLS
        assert usage["from_cache"] >= before - AT_ONCE


def test_two_processes_that_share_a_file_call_at_once_and_make_each_call_once(tmp_path: Path) -> None:
    cache, other_is_done = tmp_path / "answers.sqlite", Event()

    def script(request: Request) -> Said:
        return replace(slowly(request), until=other_is_done if text_of(request) == "held" else None)

    with serving(script) as server, client_of(server, cache=cache, concurrency=AT_ONCE + 1) as client:
        with ThreadPoolExecutor(1) as pool:
            held = pool.submit(client.ask, json_call("m", "Grade it.", "held", Grade))
            wait_for(lambda: server.under_way)
            with run(server, cache) as other:
                wait_for(answered(server, 1))  # it has opened the file, while a call of this process was under way
                assert make_calls(client) == [4] * CALLS
                made, _ = other.communicate()
            other_is_done.set()
            assert held.result() == Grade(reason="", score=4)
        assert other.returncode == 0
        assert 0 < int(made) <= CALLS
        assert client.usage()["calls"] + int(made) == CALLS + 1
        wait_for(lambda: not server.under_way)  # it counts an answer once it is sent
        assert len(server.answered) == sum(server.answered.values()) == CALLS + 1
