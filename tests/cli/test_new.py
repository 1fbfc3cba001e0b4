"""`mmlongbench new task` writes a folder that builds, passes its test, and is refused where it could do harm."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from tiny import Ran, command, environment, in_one_process

ROOT = Path(__file__).parents[2]
NAME = "dated_notes"
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FILES = {f"{NAME}.py", f"{NAME}.yaml", f"test_{NAME}.py", "README.md", "questions.csv", "documents"}


@pytest.fixture(scope="module")
def file_task(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("new") / "file"
    assert command("new", "task", NAME, "--out", folder).code == 0
    return folder


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("new") / "package"
    assert command("new", "task", NAME, "--package", "--out", folder).code == 0
    return folder


@pytest.fixture(scope="module")
def site(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package, installed into a folder."""
    site = tmp_path_factory.mktemp("site")
    options = ["--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--target", str(site)]
    subprocess.run([sys.executable, "-m", "pip", "install", *options, str(package)], check=True)
    return site


def commands_of(readme: Path) -> Iterator[tuple[list[list[str]], str]]:
    """The commands of each block of the README, and the output that is shown below it."""
    commands: list[list[str]] = []
    for language, body in FENCE.findall(readme.read_text("utf-8")):
        if language == "sh":
            commands += [shlex.split(line) for line in body.splitlines()]
        else:
            yield commands, body
            commands = []
    yield commands, ""


def test_the_folder_has_these_files_alone(file_task: Path, package: Path) -> None:
    assert {path.name for path in file_task.iterdir()} == FILES
    assert {path.name for path in package.iterdir()} == {*FILES, "pyproject.toml"}
    assert len([*(file_task / "documents").glob("*.pdf")]) == 6


def test_a_package_differs_in_its_manifest_and_its_readme_alone(file_task: Path, package: Path) -> None:
    texts = [path for path in file_task.rglob("*") if path.is_file()]
    same = {path.name for path in texts if path.read_bytes() == (package / path.relative_to(file_task)).read_bytes()}
    assert {path.name for path in texts} - same == {f"{NAME}.yaml", "README.md"}
    assert f"builder: {NAME}.py:DatedNotes\n" in (file_task / f"{NAME}.yaml").read_text("utf-8")
    assert f"builder: {NAME}\n" in (package / f"{NAME}.yaml").read_text("utf-8")


def test_the_commands_of_the_readme_run_and_print_what_it_shows(
    file_task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = Path(shutil.copytree(file_task, tmp_path / file_task.name))
    monkeypatch.chdir(own)
    for commands, shown in commands_of(own / "README.md"):
        ran = [command(*words[1:]) for words in commands if words[0] == "mmlongbench"]
        assert [each.code for each in ran] == [0] * len(ran), ran
        assert f"\n{shown}" in "\n" + "".join(each.out for each in ran)


@pytest.mark.rare
def test_the_written_test_passes(file_task: Path) -> None:
    """That of a package is the same to the byte."""
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    where = environment(PYTHONPATH=ROOT)
    ran = subprocess.run(words, cwd=file_task, env=where, capture_output=True, text=True, check=False)
    assert "5 passed" in ran.stdout


@pytest.mark.rare
def test_the_package_is_installed_listed_built_and_audited(package: Path, site: Path, tmp_path: Path) -> None:
    build = ["build", package / f"{NAME}.yaml", "--out", tmp_path / "out", "--workers", "1"]
    where = environment(PYTHONPATH=os.pathsep.join((str(site), str(ROOT))))
    ran: list[Ran] = in_one_process(["list"], build, ["audit", tmp_path / "out"], env=where)
    assert [each.code for each in ran] == [0, 0, 0], ran
    assert re.search(rf"{NAME} .*\(mmlongbench-dated-notes\)", ran[0].out)
    assert f"`mmlongbench audit {tmp_path}/out` counts it again" in ran[1].out


@pytest.mark.rare
def test_the_linter_and_mypy_find_nothing_in_what_is_written(file_task: Path, package: Path, tmp_path: Path) -> None:
    longest = tmp_path / "longest"
    assert command("new", "task", "a" * 36, "--out", longest).code == 0
    ruff, config = [sys.executable, "-m", "ruff"], ["--config", str(ROOT / "pyproject.toml"), "--no-cache"]
    folders = [str(folder) for folder in (file_task, package, longest)]
    mypy = [sys.executable, "-m", "mypy"]
    for words in (
        [*ruff, "format", "--check", *config, *folders],
        # RUF012 and S101 are off for examples and tests of the repository too
        [*ruff, "check", *config, "--extend-ignore", "RUF012,S101", *folders],
        [*mypy, str(file_task / f"{NAME}.py"), str(file_task / f"test_{NAME}.py")],
    ):
        done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_it_says_what_to_run_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    said = command("new", "task", "notes").out
    commands = ["cd notes", "mmlongbench build notes.yaml --out release", "mmlongbench audit release --task notes.py"]
    assert said.splitlines()[1:] == [
        "run:",
        *(f"  {line}" for line in [*commands, "mmlongbench check notes.yaml", "pytest"]),
    ]
    said = command("new", "task", "other", "--package", "--out", "a b/c").out
    commands = ["cd 'a b/c'", "pip install -e .", "mmlongbench build other.yaml --out release"]
    assert said.splitlines()[2:] == [
        f"  {line}" for line in [*commands, "mmlongbench audit release", "mmlongbench check other.yaml", "pytest"]
    ]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("", "expected a word"),
        ("1st", "expected a word"),
        ("_x", "expected a word"),
        ("a-b", "expected a word"),
        ("a b", "expected a word"),
        ("a/b", "expected a word"),
        ("../x", "expected a word"),
        ("a\n", "expected a word"),
        ("ünder", "expected a word"),
        ("a" * 37, "expected a word"),
        ("class", "it is a keyword"),
        ("none", "it is a keyword"),  # the class would be called None
        ("docvqa", "a builder of this name is installed"),
        ("slidevqa", "a reader of this name is installed"),
        ("json", "Python has a module of this name"),
        ("numpy", "Python has a module of this name"),
        ("builders", "Python has a module of this name"),
        ("conftest", "pytest would take it"),
        ("test_x", "pytest would take it"),
    ],
)
def test_a_name_that_cannot_be_used_is_refused(
    name: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = command("new", "task", "--", name)
    assert ran.code == 2
    assert said in " ".join(ran.err.split())
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize("made", ["folder", "file", "link"])
def test_what_exists_is_refused_and_left_as_it_is(made: str, tmp_path: Path) -> None:
    out = tmp_path / "notes"
    if made == "folder":
        out.mkdir()
    elif made == "file":
        out.write_text("mine")
    else:
        out.symlink_to(tmp_path / "nowhere")
    ran = command("new", "task", "notes", "--out", out)
    assert ran.code == 2
    assert "exists already" in ran.err
    assert [path.name for path in tmp_path.iterdir()] == ["notes"]
    assert not out.is_dir() or not [*out.iterdir()]


@pytest.mark.parametrize(
    ("out", "said"),
    [("s3://user:secret@bucket/x", "found a URL (s3://…)"), ("-x", "write ./-x"), (" ", "expected a folder")],
)
def test_an_output_that_is_no_folder_is_refused(
    out: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = command("new", "task", "notes", f"--out={out}")
    assert ran.code == 2
    assert said in " ".join(ran.err.split())
    assert "secret" not in ran.err
    assert not [*tmp_path.iterdir()]


def test_a_name_that_yaml_reads_as_another_value_builds(tmp_path: Path) -> None:
    assert command("new", "task", "on", "--out", tmp_path / "on").code == 0
    ran = command("build", tmp_path / "on/on.yaml", "--out", tmp_path / "out", "--limit", "1", "--workers", "1")
    assert ran.code == 0, ran.err
