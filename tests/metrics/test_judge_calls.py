"""Calls over real HTTP: answered once, tried again within bounds, failed with a reason."""

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from judge_server import QUICK, JudgeServer, Script, client_of, good, in_turn, judging

from mmlongbench.errors import MMLongBenchError
from mmlongbench.metrics.judge.calls import Call, Manner, PromptCall, Reading, fence
from mmlongbench.metrics.judge.client import Failed, JudgeClient
from mmlongbench.metrics.judge.errors import JudgeError
from mmlongbench.metrics.judge.pictures import Picture
from mmlongbench.metrics.judge.readings import last_grade
from mmlongbench.metrics.judge.verdicts import Grade
from mmlongbench.task.metric import Judge

CALL = Call("m", "Grade it.", fence("answer", "blue"), Grade)
GOOD = good(reason="because", score=4)


def ask(
    script: Script, call: Call[Grade] = CALL, **changes: Any
) -> tuple[Grade | Failed, JudgeServer, dict[str, float]]:
    with judging(script) as server, client_of(server, **changes) as opened:
        return opened.ask(call), server, dict(opened.usage())


def test_a_call_is_answered_once_for_all_threads_and_runs(tmp_path: Path) -> None:
    cache = tmp_path / "answers" / "judge.sqlite"
    with judging(lambda request: replace(GOOD, delay=0.02)) as server:
        for _ in range(2):
            with client_of(server, cache=cache) as opened, ThreadPoolExecutor(8) as pool:
                found = list(pool.map(opened.ask, [CALL] * 16))
            assert found == [Grade(reason="because", score=4)] * 16
        assert len(server.requests) == 1
        assert opened.usage()["from_cache"] == 16


def test_a_request_has_the_rubric_the_schema_the_fenced_case_and_no_randomness() -> None:
    _, server, usage = ask(in_turn(GOOD))
    (request,) = server.requests
    system, user = request["messages"]
    assert request["path"] == "/v1/chat/completions"
    assert (system["role"], user["content"]) == ("system", CALL.case)
    assert system["content"].startswith("Grade it.")
    assert request["response_format"]["json_schema"]["schema"]["properties"]["score"]["maximum"] == 5
    assert request["temperature"] == 0
    expected = {"calls": 1, "requests": 1, "from_cache": 0, "failed_calls": 0, "input_tokens": 10, "output_tokens": 3}
    assert usage == expected


def test_no_more_calls_are_under_way_than_allowed() -> None:
    calls = [replace(CALL, sample=number) for number in range(24)]
    with judging(lambda request: replace(GOOD, delay=0.01)) as server, client_of(server, concurrency=3) as opened:
        with ThreadPoolExecutor(12) as pool:
            assert len(list(pool.map(opened.ask, calls))) == 24
        assert len(server.requests) == 24
        assert server.most_under_way <= 3


def test_a_dry_run_counts_calls_and_makes_none(tmp_path: Path) -> None:
    other = replace(CALL, sample=1)
    with judging(in_turn(GOOD)) as server:
        with client_of(server, cache=tmp_path / "a") as opened:
            opened.ask(CALL)
        with client_of(server, cache=tmp_path / "a", is_dry=True) as opened:
            assert opened.ask(CALL) == Grade(reason="because", score=4)
            assert isinstance(opened.ask(other), Failed)
            assert opened.ask(other) == opened.ask(other)
            assert (opened.usage()["planned_calls"], opened.usage()["from_cache"]) == (1, 1)
        with client_of(server, cache=tmp_path / "new" / "b", is_dry=True) as opened:
            assert isinstance(opened.ask(CALL), Failed)
        assert len(server.requests) == 1
    assert not (tmp_path / "new").exists()


def test_a_cache_that_is_none_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.sqlite").write_bytes(b"no database" * 1000)
    with pytest.raises(JudgeError, match=r"a\.sqlite cannot be used: .*; name another file with --judge-cache"):
        JudgeClient(Judge("http://127.0.0.1:1/v1", ("m",), tmp_path / "a.sqlite"), QUICK)


def test_every_part_of_a_call_is_in_its_key() -> None:
    others = [
        replace(CALL, model="n"),
        replace(CALL, rubric="x"),
        replace(CALL, case="x"),
        replace(CALL, sample=1),
        replace(CALL, temperature=1.0),
    ]
    assert len({call.key for call in (CALL, *others)}) == 6


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


def test_a_kept_answer_that_is_none_is_asked_anew(tmp_path: Path) -> None:
    import sqlite3

    with judging(in_turn(GOOD)) as server:
        for _ in range(2):
            with client_of(server, cache=tmp_path / "a") as opened:
                assert opened.ask(CALL) == Grade(reason="because", score=4)
            database = sqlite3.connect(tmp_path / "a")
            assert [json.loads(row[0])["score"] for row in database.execute("SELECT verdict FROM answers")] == [4]
            database.execute("UPDATE answers SET verdict = '{\"score\": 77}'")
            database.commit()
            database.close()
        assert len(server.requests) == 2


def test_a_client_that_is_not_installed_is_named_with_its_extra_and_a_dry_run_needs_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "openai", None)
    judge = Judge("http://127.0.0.1:1/v1", ("m",))
    with pytest.raises(MMLongBenchError, match=r'openai: pip install "mmlongbench\[scoring\]"'):
        JudgeClient(judge, QUICK)
    JudgeClient(replace(judge, is_dry=True), QUICK).close()
