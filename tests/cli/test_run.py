"""The command `run`: what it prints, how it ends, and that no secret is printed."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from shlex import quote

import pytest
from counting_server import counting, is_probe, sizes_in, tokens_of
from model_server import Request, Said, serving
from tiny import Ran, command

MODEL = ("--model", "m", "--count-as", "qwen2.5-vl", "--length", "2K")


def ran(release: Path, out: Path, url: str, *more: object) -> Ran:
    return command("run", release, "--url", url, *MODEL, "--out", out, *more)


def test_a_run_says_what_it_expects_what_it_found_and_how_to_go_on(finished: Path, tmp_path: Path) -> None:
    out = tmp_path / "m.jsonl"
    with serving(counting()) as server:
        done = ran(finished, out, server.url)
    assert done.code == 0
    said = done.out.splitlines()
    assert said[0].startswith("6 examples, ")
    assert said[1].startswith("  probes: the chat template has 18 tokens, a text 1.25")
    assert f"{out}: 6 answers (finish reason: stop 6)" in said
    assert "  documentQA/mmlongdoc_K2.jsonl: 6 of 6 prompts as expected" in done.out
    assert said[-1] == f"score them with `mmlongbench score {quote(str(finished))} {quote(str(out))} --only-answered`"


def test_faults_are_named_and_the_command_ends_with_1(finished: Path, tmp_path: Path) -> None:
    def lost(request: Request, tokens: int) -> int:
        return tokens if is_probe(request) else tokens_of(request, sizes_in(request)[1:])

    with serving(counting(fault=lost)) as server:
        done = ran(finished, tmp_path / "m.jsonl", server.url, "--limit", 3)
    assert done.code == 1
    assert "documentQA/mmlongdoc_K2.jsonl, mmlongdoc_0: images were lost: 198 tokens fewer than expected" in done.out


def test_calls_that_fail_are_reported_by_kind_with_what_to_do(finished: Path, tmp_path: Path) -> None:
    with serving(lambda request: Said(status=413)) as server:
        done = ran(finished, tmp_path / "m.jsonl", server.url, "--count-as", "none")
    assert done.code == 1
    assert "6 calls failed, request-size: the request has too many bytes for the server or a proxy" in done.out
    assert (tmp_path / "m.jsonl").read_text("utf-8") == ""


def test_options_reach_the_endpoint(finished: Path, tmp_path: Path) -> None:
    options = ("--system", "Be brief.", "--max-tokens", 7, "--count-as", "none")
    with serving(counting()) as server:
        assert ran(finished, tmp_path / "m.jsonl", server.url, *options).code == 0
        first = [each for each in server.requests if not is_probe(each)]
        assert {each["messages"][0]["content"] for each in first} == {"Be brief."}
        assert {each["max_tokens"] for each in first} == {7}
        assert ran(finished, tmp_path / "m.jsonl", server.url, *options).code == 0
        assert len([each for each in server.requests if not is_probe(each)]) == len(first)  # all answers are known
        assert ran(finished, tmp_path / "m.jsonl", server.url, *options, "--fresh").code == 0
        assert len([each for each in server.requests if not is_probe(each)]) == 2 * len(first)
        said = ran(finished, tmp_path / "n.jsonl", server.url, "--max-images", 2).out
        assert "mmlongdoc_0: 9 images, at most 2" in said


def test_json_is_one_object_and_quiet_is_quiet(finished: Path, tmp_path: Path) -> None:
    with serving(counting()) as server:
        done = ran(finished, tmp_path / "m.jsonl", server.url, "--json")
        quiet = ran(finished, tmp_path / "m.jsonl", server.url, "-q")
    found = json.loads(done.out)
    assert (found["answers"], found["model"], found["failures"]) == (6, "m", [])
    assert (quiet.out, quiet.err) == ("", "")


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--samples", 2), "2 samples: all answers would be alike; give a temperature above 0"),
        (("--dataset", "mmlongdok"), "no dataset 'mmlongdok'"),
        (("--length", "3K"), "no examples of 3K"),
        (("--subset", "mine"), "subset 'mine': expected paper"),
        (("--context", "shufled"), "did you mean 'shuffled'?"),
        (("--images", "files"), "images 'files': expected path, file-url, data-uri, or a URL"),
        (("--text-tokenizer", "/no/such/file.json"), "/no/such/file.json"),
        (("--url", "ftp://x"), "--url 'ftp://x': expected an address such as http://127.0.0.1:8000/v1"),
        (("--url", "http://127.0.0.1:1/v1"), "no model answers there"),
    ],
)
def test_what_cannot_be_run_is_refused_in_one_line(
    finished: Path, tmp_path: Path, more: tuple[object, ...], said: str
) -> None:
    with serving(counting()) as server:
        done = ran(finished, tmp_path / "m.jsonl", server.url, "--attempts", 1, *more)
    assert done.code == 2
    assert said in done.err
    assert len(done.err.splitlines()) == 1
    assert not (tmp_path / "m.jsonl").exists()


def refusing(status: int, said: str) -> Callable[[Request], Said]:
    return lambda request: Said(status=status, body=json.dumps({"error": {"message": said}}).encode())


def test_a_key_is_sent_and_stands_nowhere(finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    said = ""
    for status in (400, 500, 401, 200):
        with serving(counting() if status == 200 else refusing(status, "bad key sk-very-secret?")) as server:
            done = ran(finished, tmp_path / "m.jsonl", server.url, "--count-as", "none", "--attempts", 1)
        assert (status == 200) != ("bad key <key>?" in done.out + done.err), status
        said += done.out + done.err
    monkeypatch.setenv("OPENAI_API_KEY", "x")  # as for a server on this machine
    with serving(refusing(400, "max_length of text")) as server:
        refused = ran(finished, tmp_path / "other.jsonl", server.url, "--count-as", "none", "--cache", tmp_path / "c")
    assert "max_length of text" in refused.out + refused.err
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) >= 3
    assert not [path for path in files if b"sk-very-secret" in path.read_bytes()]
    assert "sk-very-secret" not in said
    assert os.environ["OPENAI_API_KEY"] == "sk-very-secret"
