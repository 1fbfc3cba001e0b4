"""The pages as files, and the command that writes or serves them."""

import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from urllib.request import urlopen

import pytest
from starlette.testclient import TestClient
from starlette.types import ASGIApp
from tiny import command
from viewing import site_of

from mmlongbench.errors import ReleaseError
from mmlongbench.web.viewer.static_site import write_site


def values(path: Path) -> object:
    """The value of a data file."""
    found = re.fullmatch(r'\(window\.viewData \?\?= \{\}\)\["[^"]+"\] = (.*);\n', path.read_text("utf-8"), re.DOTALL)
    assert found
    return json.loads(found[1])


def test_every_link_of_a_site_is_a_file_and_nothing_is_asked_of_a_host(finished: Path, tmp_path: Path) -> None:
    done = write_site(site_of(finished, "qwen2.5-vl"), tmp_path / "site", limit=2)
    files = [path for path in (tmp_path / "site").rglob("*") if path.is_file()]
    assert (done.pages, done.files) == (4, len(files))
    assert done.bytes == sum(path.stat().st_size for path in files)
    assert done.left_out > 0
    for page in (tmp_path / "site").glob("*.html"):
        text = page.read_text("utf-8")
        for link in re.findall(r'(?:href|src)="([^"#]+)', text):
            assert (tmp_path / "site" / link).is_file(), link
        assert not re.search(r"https?://", text)


def test_data_are_whole_and_images_are_copies(finished: Path, tmp_path: Path) -> None:
    write_site(site_of(finished), tmp_path / "site", limit=1)
    rows = values(tmp_path / "site/data/example-0-0-rows-0.js")
    assert isinstance(rows, list)
    numbers = [piece["image"] for row in rows for piece in row["pieces"] if "image" in piece]
    for number in numbers:
        for kind in ("small", "large"):
            assert (tmp_path / f"site/images/{kind}-0-{number}.jpg").read_bytes().startswith(b"\xff\xd8\xff")
    table = values(tmp_path / "site/data/dataset-0-rows.js")
    assert isinstance(table, dict)
    assert [bool(row["url"]) for row in table["rows"]].count(True) == 2


def test_the_bound_stops_a_site_and_other_folders_are_not_touched(finished: Path, tmp_path: Path) -> None:
    site = site_of(finished)
    with pytest.raises(ReleaseError, match="would have more than 100,000 bytes; write fewer examples with --limit"):
        write_site(site, tmp_path / "site", most=100_000)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/index.html").write_text("mine")
    with pytest.raises(ReleaseError, match="has other files"):
        write_site(site, tmp_path / "mine")
    write_site(site, tmp_path / "site", limit=1)
    (tmp_path / "site/example-9-10.html").write_text("old")
    write_site(site, tmp_path / "site", limit=1)
    assert not (tmp_path / "site/example-9-10.html").exists()


def test_the_command_writes_a_site_with_answers_scores_and_differences(finished: Path, tmp_path: Path) -> None:
    records = [json.loads(line) for line in next((finished / "mmlb_data").rglob("*_K1.jsonl")).read_text().splitlines()]
    said = {"file": "documentQA/mmlongdoc_K1.jsonl", "usage": {"prompt_tokens": 812}, "receipt": "image-lost"}
    lines = [{**said, "id": each["id"], "prediction": "Answer: <b>hard</b>"} for each in records]
    (tmp_path / "model-a.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    out = tmp_path / "site"
    given = ["--predictions", tmp_path / "model-a.jsonl", "--against", finished, "--models", "all"]
    ran = command("view", finished, "--static", out, "--limit", "1", *given)
    assert (ran.code, ran.err) == (0, "")
    assert re.search(r"2 examples, \d+ files, [\d,]+ bytes; \d+ more have no page", ran.out)
    page = (out / "example-0-1.html").read_text("utf-8")
    assert "&lt;b&gt;hard&lt;/b&gt;" in page
    assert "model-a" in page
    assert "doc_qa" in page
    assert "images were lost" in page
    assert "<dt>prompt tokens</dt><dd>812</dd>" in page
    assert "nothing differs" in (out / "index.html").read_text("utf-8")


def test_the_command_serves_on_a_free_port_until_it_is_interrupted(finished: Path) -> None:
    words = [sys.executable, "-m", "mmlongbench", "view", str(finished), "--port", "0"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout
        line = process.stdout.readline()
        found = re.match(r"http://127\.0\.0\.1:(\d+)/ shows release", line)
        assert found, line
        with urlopen(f"http://127.0.0.1:{found[1]}/") as answer:
            assert b"mmlongdoc" in answer.read()
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (0, "")


@pytest.mark.parametrize("token", ["a-token-of-sixteen", "".join(map(chr, range(32, 127)))])
def test_the_address_that_the_command_prints_lets_its_reader_in(
    finished: Path, monkeypatch: pytest.MonkeyPatch, token: str
) -> None:
    asked = list[TestClient]()

    def serve(app: ASGIApp, host: str, port: int, ready: Callable[[int], None]) -> None:
        asked.append(TestClient(app, base_url=f"http://{host}:{port}"))
        ready(port)

    monkeypatch.setattr("mmlongbench.web.viewer.serving.serve", serve)
    ran = command("view", finished, "--token", token)
    assert (ran.code, ran.err) == (0, "")
    address = ran.out.split(" shows ")[0]
    assert asked[0].get("/").status_code == 401
    assert asked[0].get(address).status_code == 200
    assert asked[0].get("/").status_code == 200


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--host", "0.0.0.0"], "others could read the release; give a --token"),
        (["--host", "0.0.0.0", "--token", "short"], "expected at least 16"),
        (["--token", "ein Schlüssel für Leser"], "has a character that no cookie can hold; use printable ASCII"),
        (["--token", "sixteen characters\n"], "has a character that no cookie can hold; use printable ASCII"),
        (["--limit", "3"], "--limit is for --static"),
        (["--models", "qwen9"], "no model 'qwen9' is known"),
        (["--window", "gemma3=1K"], "is not among the models"),
    ],
)
def test_options_that_cannot_be_used_are_refused(finished: Path, words: list[str], said: str) -> None:
    ran = command("view", finished, *words)
    assert ran.code == 2
    assert said in ran.err


def test_findings_of_shortcuts_are_shown_and_other_files_refused(finished: Path, tmp_path: Path) -> None:
    found = {
        "dataset": "mmlongdoc",
        "file": "documentQA/mmlongdoc_K1.jsonl",
        "kind": "answer from the question",
        "verdict": "leak",
        "questions": 6,
        "clusters": 4,
        "measure": "answers guessed right",
        "found": 0.9,
        "chance": 0.2,
        "low": 0.5,
        "high": 0.9,
        "p": 0.001,
        "smallest": None,
        "needed": None,
        "evidence": "the word colour",
        "examples": ["mmlongdoc_0"],
    }
    (tmp_path / "found.jsonl").write_text(json.dumps(found) + "\n", "utf-8")
    out = tmp_path / "site"
    ran = command("view", finished, "--static", out, "--limit", "1", "--shortcuts", tmp_path / "found.jsonl", "-q")
    assert (ran.code, ran.out) == (0, "")
    text = (out / "index.html").read_text("utf-8")
    assert "■ leak" in text
    assert "the word colour" in text
    (tmp_path / "other.jsonl").write_text("[]\n", "utf-8")
    ran = command("view", finished, "--static", out, "--shortcuts", tmp_path / "other.jsonl")
    assert "has no finding" in ran.err


def test_without_the_extra_one_line_says_how_to_install_it(finished: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    ran = command("view", finished)
    assert (ran.code, ran.err) == (2, 'error: view needs starlette: pip install "mmlongbench[view]"\n')
