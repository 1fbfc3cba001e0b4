"""Calls over real HTTP: answered once, tried again within bounds, failed with a reason."""

import json
import sqlite3
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from model_server import QUICK, Grade, ModelServer, Script, client_of, good, in_turn, serving

from mmlongbench.models.client import Failed, ModelClient
from mmlongbench.models.fences import fence
from mmlongbench.models.json_call import JsonCall
from mmlongbench.models.settings import EndpointError, EndpointSettings

CALL = JsonCall("m", "Grade it.", fence("answer", "blue"), Grade)
GOOD = good(reason="because", score=4)


def ask(
    script: Script, call: JsonCall[Grade] = CALL, **changes: Any
) -> tuple[Grade | Failed, ModelServer, dict[str, float]]:
    with serving(script) as server, client_of(server, **changes) as opened:
        return opened.ask(call), server, dict(opened.usage())


def test_a_call_is_answered_once_for_all_threads_and_runs(tmp_path: Path) -> None:
    cache = tmp_path / "answers" / "answers.sqlite"
    with serving(lambda request: replace(GOOD, delay=0.02)) as server:
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
    assert (system["role"], user["content"]) == ("system", CALL.material)
    assert system["content"].startswith("Grade it.")
    assert request["response_format"]["json_schema"]["schema"]["properties"]["score"]["maximum"] == 5
    assert request["temperature"] == 0
    expected = {"calls": 1, "requests": 1, "from_cache": 0, "failed_calls": 0, "input_tokens": 10, "output_tokens": 3}
    assert usage == expected


def test_no_more_calls_are_under_way_than_allowed() -> None:
    calls = [replace(CALL, sample=number) for number in range(24)]
    with serving(lambda request: replace(GOOD, delay=0.01)) as server, client_of(server, concurrency=3) as opened:
        with ThreadPoolExecutor(12) as pool:
            assert len(list(pool.map(opened.ask, calls))) == 24
        assert len(server.requests) == 24
        assert server.most_under_way <= 3


def test_a_dry_run_counts_calls_and_makes_none(tmp_path: Path) -> None:
    other = replace(CALL, sample=1)
    with serving(in_turn(GOOD)) as server:
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
    with pytest.raises(EndpointError, match=r"a\.sqlite cannot be used: .*; name another file with --cache"):
        ModelClient(EndpointSettings("http://127.0.0.1:1/v1", tmp_path / "a.sqlite"), QUICK)


def test_every_part_of_a_call_is_in_its_key() -> None:
    others = [
        replace(CALL, model="n"),
        replace(CALL, instruction="x"),
        replace(CALL, material="x"),
        replace(CALL, sample=1),
        replace(CALL, temperature=1.0),
    ]
    assert len({call.key for call in (CALL, *others)}) == 6


def test_a_kept_answer_that_is_none_is_asked_anew(tmp_path: Path) -> None:
    with serving(in_turn(GOOD)) as server:
        for _ in range(2):
            with client_of(server, cache=tmp_path / "a") as opened:
                assert opened.ask(CALL) == Grade(reason="because", score=4)
            database = sqlite3.connect(tmp_path / "a")
            assert [json.loads(row[0])["score"] for row in database.execute("SELECT verdict FROM answers")] == [4]
            database.execute("UPDATE answers SET verdict = '{\"score\": 77}'")
            database.commit()
            database.close()
        assert len(server.requests) == 2


def test_a_dry_run_needs_no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openai", None)
    with closing(ModelClient(EndpointSettings("http://127.0.0.1:1/v1", is_dry=True), QUICK)) as client:
        assert client.ask(CALL) == Failed("not asked: this is a dry run")


def test_answers_of_an_earlier_version_are_read_and_others_are_kept_beside_them(tmp_path: Path) -> None:
    columns = "call TEXT PRIMARY KEY, model TEXT NOT NULL, verdict TEXT NOT NULL"
    counts = "input_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL"
    with closing(sqlite3.connect(tmp_path / "a")) as file, file:
        file.execute(f"CREATE TABLE answers ({columns}, {counts}) WITHOUT ROWID")
        file.execute("INSERT INTO answers VALUES (?, 'm', ?, 10, 3)", (CALL.key, '{"reason": "kept", "score": 2}'))
    with serving(in_turn(GOOD)) as server, client_of(server, cache=tmp_path / "a") as opened:
        assert opened.ask(CALL) == Grade(reason="kept", score=2)
        assert opened.ask(replace(CALL, sample=1)) == Grade(reason="because", score=4)
    with closing(sqlite3.connect(tmp_path / "a")) as file:
        assert len(list(file.execute("SELECT call, model, verdict, input_tokens, output_tokens FROM answers"))) == 2


def test_a_full_disk_ends_the_run_before_another_call_is_paid(tmp_path: Path) -> None:
    long = good(reason="x" * 9000, score=4)
    with serving(in_turn(long)) as server, client_of(server, cache=tmp_path / "a") as opened:
        opened._store._database.execute("PRAGMA max_page_count = 2")
        for sample in range(2):
            with pytest.raises(OSError, match="No space left on device"):
                opened.ask(replace(CALL, sample=sample))
        assert len(server.requests) == 1
