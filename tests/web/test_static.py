"""The pages as files, and the command that writes or serves them."""

import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

import pytest
from tiny import command
from viewing import static

PREDICTION = {
    "file": "documentQA/mmlongdoc_K1.jsonl",
    "usage": {"prompt_tokens": 812},
    "receipt": "image-lost",
    "finish_reason": "length",
    "prediction": "Answer: <b>hard</b>",
}
FINDING = {
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


def written(path: Path, *lines: object) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return path


def values(path: Path) -> object:
    """The value of a data file."""
    found = re.fullmatch(r'\(window\.viewData \?\?= \{\}\)\["[^"]+"\] = (.*);\n', path.read_text("utf-8"), re.DOTALL)
    assert found
    return json.loads(found[1])


def test_every_link_of_a_site_is_a_file_and_nothing_is_asked_of_a_host(finished: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    ran = static(finished, site, "--count-as", "qwen2.5-vl", "--limit", 2)
    files = [path for path in site.rglob("*") if path.is_file()]
    size = sum(path.stat().st_size for path in files)
    assert f"4 examples, {len(files)} files, {size:,} bytes; 8 more have no page (--limit)" in ran.out
    pages = [*site.glob("*.html")]
    assert len([page for page in pages if page.name.startswith("example-")]) == 4
    for page in pages:
        text = page.read_text("utf-8")
        for link in re.findall(r'(?:href|src)="([^"#]+)', text):
            assert (site / link).is_file(), link
        assert not re.search(r"https?://", text)


def test_data_are_whole_images_are_copies_and_old_pages_are_removed(finished: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    static(finished, site, "--limit", 1)
    rows = values(site / "data/example-0-0-rows-0.js")
    assert isinstance(rows, list)
    numbers = [piece["image"] for row in rows for piece in row["pieces"] if "image" in piece]
    assert len(numbers) == 4
    for number in numbers:
        for kind in ("small", "large"):
            assert (site / f"images/{kind}-0-{number}.jpg").read_bytes().startswith(b"\xff\xd8\xff")
    for number in (0, 1):
        table = values(site / f"data/rows-{number}.js")
        assert isinstance(table, list)
        assert [row["url"] for row in table] == [f"example-{number}-1.html", *[""] * 5]
    (site / "example-9-10.html").write_text("old")
    assert static(finished, site, "--limit", 1).code == 0
    assert not (site / "example-9-10.html").exists()


def test_the_bound_stops_a_site_and_other_folders_are_not_touched(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/index.html").write_text("mine")
    refused = static(finished, tmp_path / "mine")
    assert refused.code == 2
    assert "has other files" in refused.err
    assert (tmp_path / "mine/index.html").read_text() == "mine"
    refused = static(finished, finished / "site")
    assert refused.code == 2
    assert "site: lies inside the release release; give a folder outside of it" in refused.err
    assert not (finished / "site").exists()
    monkeypatch.setattr("mmlongbench.web.viewer.serve.MAX_BYTES", 100_000)
    refused = static(finished, tmp_path / "site")
    assert refused.code == 2
    assert "would have more than 100,000 bytes; write fewer examples with --limit" in refused.err


@pytest.mark.parametrize("name", ["data", "images", "assets", "index.html"])
def test_an_older_site_in_which_files_and_folders_are_swapped_is_refused_before_anything_is_removed(
    finished: Path, tmp_path: Path, name: str
) -> None:
    site = tmp_path / "site"
    (site / "assets").mkdir(parents=True)
    for path in ("assets/view.js", "index.html", "review.html"):
        (site / path).write_text("old")
    for folder in ("data", "images"):
        (site / folder).mkdir()
    if (site / name).is_dir():
        (site / name).rename(tmp_path / "moved")
        (site / name).write_text("mine")
    else:
        (site / name).unlink()
        (site / name).mkdir()
    before = sorted(site.rglob("*"))
    refused = static(finished, site)
    assert refused.code == 2
    assert f"site: has other files ({name}); give a new folder" in refused.err
    assert sorted(site.rglob("*")) == before


def test_a_site_has_answers_scores_differences_and_findings(finished: Path, tmp_path: Path) -> None:
    records = [json.loads(line) for line in (finished / "mmlb_data" / str(PREDICTION["file"])).read_text().splitlines()]
    answers = written(tmp_path / "model-a.jsonl", *({**PREDICTION, "id": each["id"]} for each in records))
    found = written(tmp_path / "found.jsonl", FINDING)
    given = ("--predictions", answers, "--against", finished, "--count-as", "all", "--shortcuts", found)
    ran = static(finished, tmp_path / "site", "--limit", 1, *given, "-q")
    assert (ran.code, ran.out, ran.err) == (0, "", "")
    page = (tmp_path / "site/example-0-1.html").read_text("utf-8")
    for part in (
        "&lt;b&gt;hard&lt;/b&gt;",
        "model-a",
        "doc_qa",
        "images were lost",
        "<dt>prompt tokens</dt><dd>812</dd>",
        "<dt>finish reason</dt><dd>length</dd>",
    ):
        assert part in page
    index = (tmp_path / "site/index.html").read_text("utf-8")
    for part in ("nothing differs", "■ leak", "the word colour"):
        assert part in index
    other = written(tmp_path / "other.jsonl", [])
    assert "has no finding" in static(finished, tmp_path / "other", "--shortcuts", other).err


def test_the_command_serves_on_a_free_port_until_it_is_interrupted(finished: Path) -> None:
    words = [sys.executable, "-m", "mmlongbench", "view", str(finished), "--port", "0"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout
        line = process.stdout.readline()
        found = re.match(r"(http://127\.0\.0\.1:\d+/[\w-]{22}/) shows release", line)
        assert found, line
        with urlopen(found[1]) as answer:
            assert b"mmlongdoc" in answer.read()
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (0, "")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--limit", "3"], ("--limit is for --static",)),
        (["--count-as", "qwen9"], ("no model 'qwen9' is known",)),
        (["--fits", "gemma3=1K"], ("--fits gemma3=1K: needs --count-as",)),
    ],
)
def test_options_that_cannot_be_used_are_refused(finished: Path, words: list[str], said: tuple[str, ...]) -> None:
    ran = command("view", finished, *words)
    assert ran.code == 2
    assert all(fact in ran.err for fact in said), ran.err


def test_without_the_extra_one_line_says_how_to_install_it(finished: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mmlongbench.cli.view.find_spec", lambda name: None)
    ran = command("view", finished)
    assert (ran.code, ran.err) == (2, 'error: view needs starlette: pip install "mmlongbench[view]"\n')
