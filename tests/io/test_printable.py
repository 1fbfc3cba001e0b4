"""What is written to a terminal or a log: printable, without secrets of URLs, and bars that appear by the clock."""

import io
import json
import logging
import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from once import linked
from rich.progress import Progress as Bars
from rich.progress import TaskID
from tiny import (
    Ran,
    build,
    command,
    draw_pdf,
    environment,
    in_one_process,
    lock,
    mmlongbench,
    records,
    row,
    write_manifest,
    write_rows,
)

from mmlongbench.building.build import build as make
from mmlongbench.building.build import logged
from mmlongbench.building.executors import LocalExecutor
from mmlongbench.cli.console import print_table
from mmlongbench.io import progress
from mmlongbench.io.printable import has_secret, printable, shown, without_secrets
from mmlongbench.io.progress import Progress
from mmlongbench.manifest.loading import load_manifest
from mmlongbench.release.audit import Target, audit
from mmlongbench.table import Table
from tokenization import TokenizationError

ROOT = Path(__file__).parents[2]
EVIL = "a\x1b]0;title\x07\x1b[2J\x9b31m\u202ecod\u2066e\r\x00\u200b\u2028\ud800z"
"""A window's title, a cleared screen, a C1 control, bidi marks, CR, NUL, no width, a line separator, a surrogate."""
ESCAPED = "a\\x1b]0;title\\x07\\x1b[2J\\x9b31m\\u202ecod\\u2066e\\r\\x00\\u200b\\u2028\\ud800z"
NAME = EVIL.replace("\x00", "").replace("\ud800", os.fsdecode(b"\xff"))
"""The same as a file name."""
OBEYED = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b\u2028\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def harmless(ran: Ran) -> Ran:
    """Return the output of a command, after a check that it has no control characters."""
    assert not OBEYED.search(ran.out)
    assert not OBEYED.search(ran.err)
    return ran


# Texts


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (EVIL, ESCAPED),
        ("a\nb", "a\\nb"),
        ("a\u3164b\u034f\u115f\u1160\uffa0", "a\\u3164b\\u034f\\u115f\\u1160\\uffa0"),  # letters that are not seen
        ("Straße 家 😀 नमस्‍ते\u00a0x²", "Straße 家 😀 नमस्‍ते\u00a0x²"),
    ],
)
def test_escapes_stand_for_what_is_obeyed_or_not_seen(text: str, expected: str) -> None:
    assert printable(text) == expected


@given(st.text())
def test_nothing_that_is_obeyed_is_left_and_nothing_else_changes(text: str) -> None:
    found = printable(text)
    assert not OBEYED.search(found)
    assert "\n" not in found
    assert printable(found) == found
    if text.isprintable() and not re.search("[\u034f\u115f\u1160\u3164\uffa0]", text):
        assert found == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ftp://user:SECRET@host/x", "ftp://…@host/x"),
        ("s3://KEY:SEC/RET@bucket/release", "s3://…@bucket/release"),
        ("https://u:p@ss@host/x?sig=TOKEN: failed", "https://…@host/x?…: failed"),
        ("no such file: /a/https:/u:SECRET@host/x?sig=TOKEN", "no such file: /a/https:/…@host/x?…"),
        ("'https://u:SE'CRET@host/x?sig=TO\"KEN'.", "'https://…@host/x?…'."),
        ("(https://host/x?sig=TOKEN): failed", "(https://host/x?…): failed"),
        ("a_b://u:SECRET@host/x", "a_b://…@host/x"),
        ("('https://host/x?sig=TOKEN&a=b', 404)", "('https://host/x?…', 404)"),
        ("s3://bucket/release and hub:owner/name@rev", "s3://bucket/release and hub:owner/name@rev"),
        ("https://host:8080/v1", "https://host:8080/v1"),
    ],
)
def test_secrets_of_urls_are_left_out(text: str, expected: str) -> None:
    assert without_secrets(text) == shown(text) == expected


@pytest.mark.timeout(30)
@pytest.mark.parametrize("piece", ["a:/", ":", "a:/:", "a:/x:", "a:/x?", "@"])
@pytest.mark.parametrize("before", ["", "http://u:p@", "http://h?"], ids=["none", "user", "query"])
def test_secrets_are_looked_for_in_a_time_that_grows_with_the_text_alone(piece: str, before: str) -> None:
    found = without_secrets(f"{before}http://{piece * 200_000}")
    assert "u:p" not in found
    assert not found.startswith("http://h?h")
    assert has_secret(f"{before}http://{piece * 200_000}") in (True, False)


def test_a_table_has_texts_for_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    with redirect_stdout(io.StringIO()) as out:
        print_table(Table(("head",), [(f"[red]{EVIL}",)]), usual=300)
    assert f"[red]{ESCAPED}" in out.getvalue()


def test_the_log_of_a_build_is_printable_and_has_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = EVIL.replace("\ud800", "")  # which reports of tests cannot hold
    monkeypatch.setattr(sys, "argv", ["mmlongbench", "build", "--out", f"s3://KEY:SECRET@bucket/{text}"])
    with logged(tmp_path / "out"):
        logging.getLogger("mmlongbench").info("%s", text)
    text = (tmp_path / "out.log").read_text()
    assert not OBEYED.search(text)
    assert "s3://…@bucket/a\\x1b" in text


def test_only_the_console_writes() -> None:
    """Any other way to print could print control characters."""
    writing = ("__init__", "console")
    allowed = {*(f"cli/{name}.py" for name in writing), "io/progress.py", "io/printable.py"}
    for path in (ROOT / "mmlongbench").rglob("*.py"):
        name = path.relative_to(ROOT / "mmlongbench").as_posix()
        text = "\n".join(line for line in path.read_text("utf-8").splitlines() if ">>> " not in line)
        writes = r"Console\(|rich\.table|std(?:out|err)\.write|\bprint\(|click\.secho|click\.echo\((?!\s*json\.dumps)"
        assert name in allowed or re.findall(writes, text) == [], name


# Bars


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set when a bar is shown."""
    event = threading.Event()
    monkeypatch.setattr(Bars, "start", lambda self: event.set())
    return event


def test_a_bar_appears_before_the_first_step_is_done(started: threading.Event, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    with Progress(is_shown=True).bar("waiting", 3):
        assert started.wait(60)


def test_no_bar_appears_where_the_work_ended_before(started: threading.Event) -> None:
    before = set(threading.enumerate())
    with Progress(is_shown=True).bar("quick", 3) as advance:
        advance()
    assert not started.is_set()
    assert set(threading.enumerate()) <= before  # others of earlier tests may have ended


def test_no_bar_appears_where_none_is_asked_for(started: threading.Event, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    before = set(threading.enumerate())
    with Progress(is_shown=False).meter("hidden", 3) as advance:
        advance(2)
        assert set(threading.enumerate()) <= before
    assert not started.is_set()


def test_the_label_of_a_bar_is_a_text(monkeypatch: pytest.MonkeyPatch) -> None:
    added: list[str] = []

    def add(bars: Bars, label: str, **more: Any) -> TaskID:
        added.append(label)
        return add_task(bars, label, **more)

    add_task = Bars.add_task
    monkeypatch.setattr(Bars, "add_task", add)
    with Progress(is_shown=True).bar(EVIL, 1):
        pass
    assert added == [ESCAPED]


def test_a_build_shows_a_line_for_each_cell_that_is_under_way(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved: dict[str, float] = {}
    visible: list[int] = []
    advance = Bars.advance

    def watched(self: Bars, task: TaskID, by: float = 1) -> None:
        label = self.tasks[task].description
        moved[label] = moved.get(label, 0) + by
        visible.append(sum(each.visible for each in self.tasks))
        advance(self, task, by)

    monkeypatch.setattr(Bars, "advance", watched)
    make(load_manifest(source / "tiny.yaml"), tmp_path / "out", LocalExecutor(1, Progress(is_shown=True)))
    assert {label: steps for label, steps in moved.items() if ":" not in label} == {
        "mmlongdoc documents": 4,
        "mmlongdoc rows": 1,
        "mmlongdoc questions": 1,
        "mmlongdoc 1K": 6,
        "mmlongdoc 2K": 6,
        "mmlongdoc pages": 4,
        "mmlongdoc files": 2,
    }
    assert {*visible} <= {1, 2}  # the two lengths are made side by side


def test_the_bar_of_an_audit_moves_by_records(finished: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    moved: list[tuple[str, float]] = []
    monkeypatch.setattr(Bars, "advance", lambda self, task, by=1: moved.append((self.tasks[task].description, by)))
    audit(Target((finished,)), Progress(is_shown=True))
    assert [by for label, by in moved if label == "audit: examples"] == [1] * 12
    assert sum(label == "audit: files" for label, _ in moved) > 4


# Commands


def test_an_error_of_a_tokenizer_is_one_line(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise TokenizationError("this text cannot be tokenized")

    monkeypatch.setattr("mmlongbench.building.build.finish", fail)
    failed = build(source, tmp_path / "out")
    assert (failed.code, failed.err) == (2, "error: this text cannot be tokenized\n")
    with pytest.raises(TokenizationError):
        command("--debug", "build", source / "tiny.yaml", "--out", tmp_path / "out")


@pytest.mark.parametrize("key", ["corpus", "errata"])
def test_a_url_in_place_of_a_path_is_refused_without_its_secrets(key: str, source: Path, tmp_path: Path) -> None:
    url = "https://user:SECRET@host/x?sig=SECRET"
    manifest = write_manifest(tmp_path / "own.yaml", **{key: url})
    for words, where in (((source / "tiny.yaml", "--set", f"{key}={url}"), "--set"), ((manifest,), str(manifest))):
        refused = command("build", *words, "--out", tmp_path / "out")
        assert (refused.code, refused.err.count("\n")) == (2, 1)
        assert refused.err.startswith(f"error: {where}: {key}: expected a file or folder of this machine")
        assert "(https://…); download it first" in refused.err
        assert "SECRET" not in refused.err


@pytest.fixture
def evil(source: Path, tmp_path: Path) -> Path:
    """The tiny source with control characters in names and texts."""
    folder = tmp_path / "source"
    shutil.copytree(source, folder)
    (folder / "documents" / f"{NAME}.pdf").write_bytes(b"no PDF")
    draw_pdf(folder / "documents" / "elm\x1b[2J.pdf", 2)
    rows = (
        row("ash.pdf", "What\x1b[2J?", "wood\x9b", "[1]"),
        row(f"{EVIL}.pdf".replace("\ud800", ""), "Who?", "me", "[1]"),
        row("elm\x1b[2J.pdf", "Where?", "Not answerable", "[]", answer_format="None"),
        row("birch.pdf", "Which\x07?", "bark", "[9\x1b]"),
    )
    write_rows(folder, rows)
    write_manifest(folder / "tiny.yaml", licence=EVIL.replace("\ud800", "").replace("\x00", ""))
    return folder


def test_a_build_a_plan_and_doctor_show_what_they_find(evil: Path, tmp_path: Path) -> None:
    built = harmless(build(evil, tmp_path / "out"))
    assert "document a\\x1b]0;title\\x07\\x1b[2J" in built.out
    assert any("\x1b" in id for id in lock(tmp_path / "out")["datasets"]["mmlongdoc"]["documents"]["refused"])
    strict = harmless(build(evil, tmp_path / "strict", "--strict"))
    assert (strict.code, "\\x1b" in strict.err) == (1, True)
    public = (tmp_path / "out" / "mmlb_data/documentQA/mmlongdoc_K1.jsonl").read_text()
    assert ("\\x1b" in public, "\\u001b[2J" in public) == (False, True)
    assert "1K" in harmless(command("plan", evil / "tiny.yaml")).out
    for options in ((), ("--json",)):
        found = harmless(command("doctor", evil / "tiny.yaml", *options))
        assert "Traceback" not in found.err
        assert found.out


@pytest.mark.parametrize(
    "words",
    [
        ("build", "{source}/{name}.yaml", "--out", "{tmp}/out"),
        ("build", "{source}/tiny.yaml", "--out", "{tmp}/{name}", "--set", "source.documents=/{name}"),
        ("build", "{source}/tiny.yaml", "--out", "{tmp}/out", "--set", "name={name}"),
        ("build", "{source}/tiny.yaml", "--out", "{tmp}/out", "--{name}"),
        ("build", "{source}/tiny.yaml", "--out", "nowhere://{name}"),
        ("audit", "{tmp}/{name}"),
        ("verify", "{tmp}/{name}"),
        ("count", "{tmp}/{name}"),
        ("corpus", "build", "/{name}", "--out", "{tmp}/corpus"),
        ("{name}",),
    ],
)
def test_an_error_shows_what_was_given(words: tuple[str, ...], evil: Path, tmp_path: Path) -> None:
    given = [word.format(source=evil, tmp=tmp_path, name=NAME) for word in words]
    refused = harmless(command(*given))
    assert refused.code == 2
    assert "\\x1b" in refused.err


def test_a_manifest_shows_its_wrong_values(source: Path, tmp_path: Path) -> None:
    manifest = yaml.safe_load((source / "tiny.yaml").read_text())
    manifest["datasets"][0]["unknown\u202e"] = "x\u2066"
    (tmp_path / "tiny.yaml").write_text(yaml.safe_dump(manifest, allow_unicode=True))
    refused = harmless(command("build", tmp_path / "tiny.yaml", "--out", tmp_path / "out"))
    assert (refused.code, "unknown\\u202e" in refused.err) == (2, True)


def test_counts_and_a_corpus_show_names_and_passages(tmp_path: Path) -> None:
    (tmp_path / f"{NAME}.txt").write_text("a text")
    draw_pdf(tmp_path / "x\x1b[2J.pdf", 1)
    article = {"id": "1", "title": f"Title {EVIL[:-2]}", "text": f"A text\x1b[2J of grass {EVIL[:-2]}"}
    (tmp_path / "a.jsonl").write_text(json.dumps(article) + "\n")
    assert harmless(command("corpus", "build", tmp_path / "a.jsonl", "--out", tmp_path / "corpus")).code == 0
    for options in ((), ("--json",)):
        counted = harmless(command("count", tmp_path / f"{NAME}.txt", tmp_path / "x\x1b[2J.pdf", *options))
        assert counted.code == 0
        assert "\\x1b[2J" in counted.out or "\\u001b[2J" in counted.out
        assert "grass" in harmless(command("corpus", "search", tmp_path / "corpus", "grass", *options)).out


@pytest.fixture
def tampered(finished: Path, tmp_path: Path) -> Path:
    """A release with control characters in names and texts."""
    out = linked(finished, tmp_path / "release")
    lines = records(out, "1K")
    lines[0]["id"], lines[1]["page_list"] = EVIL, [f"x/{EVIL}_page0.jpg"]
    public = out / "mmlb_data" / "documentQA" / "mmlongdoc_K1.jsonl"
    public.write_text("".join(json.dumps(line) + "\n" for line in lines))
    (out / "mmlb_image" / NAME).write_bytes(b"")
    return out


def test_a_release_that_was_tampered_with_is_shown(tampered: Path, finished: Path) -> None:
    both = (("diff", tampered, finished), ("diff", finished, tampered))
    for words in (("audit", tampered), ("verify", tampered), *both):
        for options in ((), ("--json",)):
            found = harmless(command(*words, *options))
            assert found.code == 1
            assert found.out + found.err


def test_scores_and_reports_show_predictions(finished: Path, tmp_path: Path) -> None:
    said, file = tmp_path / f"{NAME}.jsonl", "documentQA/mmlongdoc_K1.jsonl"
    lines = [{"file": file, "id": line["id"], "prediction": EVIL} for line in records(finished, "1K")]
    lines += [{"file": f"documentQA/{EVIL}.jsonl", "id": EVIL, "prediction": "x"}]
    lines += [{"file": EVIL, "id": EVIL, "prediction": 3}]
    said.write_text("".join(json.dumps(line) + "\n" for line in lines))
    for options in ((), ("--json",), ("--model", NAME), ("--metrics", NAME)):
        scored = harmless(command("score", finished, said, "--out", tmp_path / "scores", "--partial", *options))
        assert scored.code in (1, 2)
    for options in ((), ("--json",)):
        harmless(command("report", tmp_path / "scores", *options))


def test_statistics_show_what_they_count(tampered: Path) -> None:
    public = tampered / "mmlb_data" / "documentQA"
    other = public / f"{NAME}_K1.jsonl"
    line = json.dumps({"id": EVIL, "page_list": [f"{EVIL}.jpg"]})
    other.write_bytes((public / "mmlongdoc_K1.jsonl").read_bytes() + f"{line}\n".encode())
    for path in (tampered, other):
        for options in ((), ("--table3",), ("--json",)):
            found = harmless(command("stats", path, *options))
            assert found.code in (1, 2), found
            assert "Traceback" not in found.err
            assert "\\x1b" in found.out + found.err


def test_a_traceback_is_shown_too(source: Path, tmp_path: Path) -> None:
    out = "s3://KEY:SECRET@bu\x1b[2Jcket/x"
    ran = harmless(mmlongbench("--debug", "build", source / "tiny.yaml", "--out", out, cwd=tmp_path))
    assert "Traceback" in ran.err
    assert "SECRET" not in ran.err


def test_a_url_s_secrets_are_in_no_error_and_no_log(source: Path, tmp_path: Path) -> None:
    urls = (
        "ftp://user:SECRET@127.0.0.1:1/release",
        "https://user:SECRET@127.0.0.1:1/release?sig=SECRET",
        "s3://KEY:SECRET@bucket/release",
        "nowhere://KEY:SECRET@bucket/SECRETS?sig=SECRET",
    )
    builds = [("build", source / "tiny.yaml", "--out", url) for url in urls]
    words = [(*build, *more) for build in builds for more in ((), ("--json",), ("--stage", "prepare"))]
    for refused in in_one_process(*words, cwd=tmp_path):
        assert refused.code == 2
        assert not re.search("SECRET@|sig=", refused.err + refused.out)
    assert "SECRET" not in "".join(path.read_text() for path in tmp_path.rglob("*.log"))


# Streams

WORDS = [("audit", "{0}", "--histogram"), ("stats", "{0}"), ("list",), ("verify", "{0}")]


@pytest.fixture(scope="module")
def in_encodings(finished: Path) -> Callable[[str], dict[tuple[str, ...], Ran]]:
    """A function that runs the commands once in a process whose streams have an encoding."""

    @cache
    def run(encoding: str) -> dict[tuple[str, ...], Ran]:
        commands = [[word.format(finished) for word in words] for words in WORDS]
        given = environment(PYTHONIOENCODING=encoding)
        ran = in_one_process(*commands, env=given, encoding=encoding, text=None)
        return dict(zip(WORDS, ran, strict=True))

    return run


@pytest.mark.parametrize(
    "encoding", ["ascii", *(pytest.param(name, marks=pytest.mark.rare) for name in ("latin-1", "utf-8"))]
)
@pytest.mark.parametrize("words", WORDS)
def test_any_encoding_of_the_output_will_do(
    words: tuple[str, ...], encoding: str, in_encodings: Callable[[str], dict[tuple[str, ...], Ran]]
) -> None:
    ran = harmless(in_encodings(encoding)[words])
    assert (ran.code, ran.err) == (0, "")
    if "--histogram" in words:
        assert ("@" in ran.out) == (encoding != "utf-8")


RARELY_CLOSED = [pytest.param(words, marks=pytest.mark.rare) for words in ("<&-", ">&-", "2>&-", ">&- 2>&-")]


@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.rare)])  # workers inherit what is closed
@pytest.mark.parametrize("closed", [*RARELY_CLOSED, "<&- >&- 2>&-"])
def test_streams_that_are_closed_are_done_without(
    closed: str, workers: int, source: Path, finished: Path, tmp_path: Path
) -> None:
    words = [sys.executable, "-m", "mmlongbench", "build", str(source / "tiny.yaml"), "--out", str(tmp_path / "out")]
    words += ["--workers", str(workers)]
    ran = subprocess.run(["sh", "-c", f'exec "$@" {closed}', "sh", *words], capture_output=True, text=True, check=False)
    warned = [] if "2>&-" in closed else ["warning: mmlongdoc: kept 6 of 11 questions"]
    assert (ran.returncode, ran.stderr.splitlines()[:1]) == (0, warned)
    assert lock(tmp_path / "out") == lock(finished)


def test_a_reader_that_stops_listening_is_no_error(finished: Path) -> None:
    words = [sys.executable, "-m", "mmlongbench", "audit", str(finished), "--json"]
    ran = subprocess.run(["sh", "-c", '"$@" | true', "sh", *words], capture_output=True, text=True, check=False)
    assert ran.stderr == ""
