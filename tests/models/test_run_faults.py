"""Runs against servers that misbehave: every fault has its word, and none becomes an answer."""

import json
from pathlib import Path
from typing import Any

import pytest
from counting_server import RULE
from model_server import Said, Script
from runs import NUMBER, OPTIONS, asked, lines

from mmlongbench.models.asking import RunOptions
from mmlongbench.models.refusals import REFUSALS

NO_RULE = RunOptions("m", count_as="none")


def always(said: Said) -> Script:
    return lambda request: said


@pytest.mark.parametrize(
    ("said", "kind", "words"),
    [
        (Said(status=429, headers={"retry-after": "600"}), "overloaded", "asks to wait 600 s"),
        (Said(status=503, body=b"busy"), "overloaded", "HTTP 503: busy"),
        (Said("x", drips=0.05), "timeout", "no answer in 0.3 s"),
        (Said("x", hangs=True), "timeout", "no answer in 0.3 s"),
        (Said("x", breaks_off=True), "connection", "the connection broke"),
        (Said(body=b"{"), "not-a-completion", "no chat completion"),
        (Said(body=b'{"choices": []}'), "not-a-completion", "no chat completion"),
        (Said(body=b"<html>"), "not-a-completion", "no chat completion"),
        (Said(body=b" " * (17 * 1024 * 1024)), "not-a-completion", "a response of more than 16,777,216 bytes"),
        (Said(status=413), "request-size", "HTTP 413"),
        (Said(status=500, body=b"oops"), "server-error", "HTTP 500: oops"),
        (Said(status=400, body=b'{"error": {"message": "maximum context length"}}'), "context-length", "HTTP 400"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_fault_has_its_word_and_what_to_do(finished: Path, tmp_path: Path, said: Said, kind: str, words: str) -> None:
    changes: dict[str, Any] = {"timeout": 0.3} if kind == "timeout" else {}
    result, _, _ = asked(finished, tmp_path / "m.jsonl", always(said), NO_RULE, attempts=1, **changes)
    assert [(each.kind, each.count) for each in result.failures] == [(kind, NUMBER)]
    assert words in result.failures[0].first
    assert result.failures[0].advice == REFUSALS[kind].advice
    assert lines(tmp_path / "m.jsonl") == []


def test_what_failed_is_asked_again_by_the_next_run(finished: Path, tmp_path: Path) -> None:
    out = tmp_path / "m.jsonl"
    asked(finished, out, always(Said(status=500)), NO_RULE, attempts=1)
    result, requests, _ = asked(finished, out, always(Said("fine")), NO_RULE)
    assert (result.failures, len(requests)) == ((), NUMBER)


def test_a_refusal_of_the_model_is_its_answer(finished: Path, tmp_path: Path) -> None:
    body = {"choices": [{"message": {"role": "assistant", "content": None, "refusal": "I will not."}}]}
    result, _, _ = asked(finished, tmp_path / "m.jsonl", always(Said(body=json.dumps(body).encode())), NO_RULE)
    assert (result.answers, result.failures) == (NUMBER, ())
    assert {line["prediction"] for line in lines(tmp_path / "m.jsonl")} == {"I will not."}


@pytest.mark.parametrize(
    "usage",
    [{"prompt_tokens": -4}, {"prompt_tokens": 2**60}, {"prompt_tokens": "many"}, {"prompt_tokens": 1.5}, [1], "x"],
)
def test_counts_that_are_none_do_no_harm(finished: Path, tmp_path: Path, usage: object) -> None:
    body = {"choices": [{"message": {"content": "x"}, "finish_reason": "stop"}], "usage": usage}
    result, _, _ = asked(finished, tmp_path / "m.jsonl", always(Said(body=json.dumps(body).encode())), OPTIONS)
    assert result.answers == NUMBER


def test_probes_that_fail_are_said_and_the_run_goes_on(finished: Path, tmp_path: Path) -> None:
    def script(request: Any) -> Said:
        return Said(status=400, body=b"no") if request["max_tokens"] == 1 else Said("x")

    result, _, _ = asked(finished, tmp_path / "m.jsonl", script, OPTIONS, attempts=1)
    assert (result.answers, result.receipts) == (NUMBER, ())
    assert result.notes[0].startswith("a probe of the endpoint failed: m: HTTP 400")
    assert RULE.name == OPTIONS.count_as


@pytest.mark.parametrize(
    ("message", "words"),
    [
        ({"content": [{"type": "text", "text": "Answer: "}, {"type": "text", "text": "ash"}]}, "Answer: ash"),
        ({"content": ["Answer: ", {"type": "output_text", "text": "ash"}, {"text": None}]}, "Answer: ash"),
        ({"content": [{"type": "reasoning", "text": "hm"}, {"type": "text", "text": "ash"}]}, "ash"),
        ({"content": "a\ud800b"}, "a?b"),
        ({"content": ""}, ""),
        ({"content": None, "reasoning_content": "", "reasoning": "hm"}, ""),
    ],
)
def test_an_answer_in_any_form_is_read(finished: Path, tmp_path: Path, message: dict[str, object], words: str) -> None:
    body = json.dumps({"choices": [{"message": message, "finish_reason": None}]}).encode()
    asked(finished, tmp_path / "m.jsonl", always(Said(body=body)), NO_RULE)
    found = lines(tmp_path / "m.jsonl")
    assert {line["prediction"] for line in found} == {words}
    assert {line.get("reasoning", "") for line in found} == ({"hm"} if "reasoning" in message else {""})


@pytest.mark.parametrize("reason", [None, "error"])
def test_a_reply_that_holds_nothing_is_no_answer(finished: Path, tmp_path: Path, reason: str | None) -> None:
    body = json.dumps({"choices": [{"message": {"content": None}, "finish_reason": reason}]}).encode()
    result, _, _ = asked(finished, tmp_path / "m.jsonl", always(Said(body=body)), NO_RULE, attempts=1)
    assert [(each.kind, each.count) for each in result.failures] == [("not-a-completion", NUMBER)]
    assert lines(tmp_path / "m.jsonl") == []
