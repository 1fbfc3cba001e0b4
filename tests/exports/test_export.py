"""What holds for the export to any target: the folder, what is checked first, what a user is told."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from exported import tree
from tiny import command

import mmlongbench as mm

PLUGIN = '''
from mmlongbench.exports.target import Exported, Target


class Raising(Target):
    """Fails after it wrote a file."""

    summary = "fails"

    def write(self, export):
        (export.out / "half.jsonl").write_text("half")
        raise ERROR


class Racing(Target):
    summary = "writes while another command writes"

    def write(self, export):
        (export.out.parent / "out").mkdir()
        (export.out.parent / "out/theirs.txt").write_text("theirs")
        return Exported(0)


class Wrong(Target):
    summary = "returns something else"

    def write(self, export):
        return 3


class Lacking(Target):
    summary = "has no method"


class Silent(Target):
    def write(self, export):
        return Exported(0)


stranger = 3
ERROR = ValueError("no such thing")
'''
POINTS = """
[mmlongbench.exports]
raising = strange_exports:Raising
racing = strange_exports:Racing
wrong = strange_exports:Wrong
lacking = strange_exports:Lacking
silent = strange_exports:Silent
stranger = strange_exports:stranger
absent = exports_that_are_not_there:Target
"""


@pytest.fixture
def strange(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package of strange targets is installed."""
    site = tmp_path / "site"
    info = site / "strange_exports-0.1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: strange-exports\nVersion: 0.1\n")
    (info / "entry_points.txt").write_text(POINTS)
    (site / "strange_exports.py").write_text(PLUGIN)
    monkeypatch.syspath_prepend(str(site))


def left(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.name != "site")


TARGETS = ("hf", "inspect", "lmms-eval", "mteb", "openai", "openai-batch", "training", "vllm-batch", "vlmevalkit")


def listed() -> dict[str, dict[str, str]]:
    plugins = json.loads(command("list", "--json").out)["plugins"]
    return {plugin["name"]: plugin for plugin in plugins if plugin["kind"] == "target"}


def test_every_target_that_ships_can_be_used_and_is_listed() -> None:
    assert (*listed(),) == TARGETS
    shown = command("list").out
    assert "targets of export\n" in shown
    for name, target in listed().items():
        assert target["summary"]
        assert "\n" not in target["summary"]
        assert f"  {name} " in shown


def test_an_unknown_target_is_answered_with_the_nearest_and_the_list(finished: Path, tmp_path: Path) -> None:
    ran = command("export", finished, "--to", "vlm-batch", "--out", tmp_path / "out")
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "did you mean 'vllm-batch'?" in ran.err
    assert left(tmp_path) == []


def test_every_file_of_an_export_is_on_the_disk_before_the_folder_gets_its_name(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    monkeypatch.setattr("os.fsync", lambda file: synced.append(os.fstat(file).st_ino))
    mm.export(finished, "openai", tmp_path / "out")
    files = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert files
    assert {path.stat().st_ino for path in files} <= {*synced}


@pytest.mark.usefixtures("strange")
@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("raising", "export target 'raising': write: ValueError: no such thing"),
        ("wrong", "export target 'wrong': write returned a int, expected an Exported"),
        ("lacking", "strange_exports:Lacking of strange-exports.* lacks write, which a target needs"),
        ("silent", "strange_exports:Silent of strange-exports.* lacks summary"),
        ("stranger", "3 is not a subclass of mmlongbench.exports.target.Target"),
        ("absent", "ModuleNotFoundError: No module named 'exports_that_are_not_there'"),
    ],
)
def test_a_broken_target_is_named_and_leaves_nothing(name: str, problem: str, finished: Path, tmp_path: Path) -> None:
    with pytest.raises(mm.PluginError, match=problem):
        mm.export(finished, name, tmp_path / "out")
    assert left(tmp_path) == []
    assert bool(listed()[name].get("problem")) == (name not in ("raising", "wrong"))


@pytest.mark.usefixtures("strange")
def test_an_interrupted_export_leaves_nothing(finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import strange_exports  # type: ignore[import-not-found]

    monkeypatch.setattr(strange_exports, "ERROR", KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        mm.export(finished, "raising", tmp_path / "out")
    assert left(tmp_path) == []


@pytest.mark.usefixtures("strange")
def test_a_folder_that_another_command_wrote_meanwhile_is_not_replaced(finished: Path, tmp_path: Path) -> None:
    with pytest.raises(mm.ReleaseError, match="another command wrote into it meanwhile"):
        mm.export(finished, "racing", tmp_path / "out")
    assert left(tmp_path) == ["out"]
    assert (tmp_path / "out/theirs.txt").read_text() == "theirs"


def test_what_a_killed_export_left_is_removed_by_the_next(finished: Path, tmp_path: Path) -> None:
    script = """
import os, signal, sys, mmlongbench as mm
from mmlongbench.exports.openai_lines import OpenAILines
OpenAILines.write = lambda self, export: os.kill(os.getpid(), signal.SIGKILL)
mm.export(sys.argv[1], "openai", sys.argv[2])
"""
    words = [sys.executable, "-c", script, str(finished), str(tmp_path / "out")]
    assert subprocess.run(words, check=False).returncode == -signal.SIGKILL
    (killed,) = left(tmp_path)
    assert killed.startswith(".tmp-")
    running = tmp_path / f".tmp-{socket.gethostname()}-{os.getppid()}-out"
    running.mkdir()
    mm.export(finished, "openai", tmp_path / "out", limit=1)
    assert left(tmp_path) == [running.name, "out"]


def test_a_folder_that_is_not_empty_stays_as_it_is(finished: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/mine.txt").write_text("mine")
    with pytest.raises(mm.ReleaseError, match="the folder is not empty; give a new one, or empty it first"):
        mm.export(finished, "openai", tmp_path / "out")
    with pytest.raises(mm.ReleaseError, match="is a file"):
        mm.export(finished, "openai", tmp_path / "out/mine.txt")
    assert tree(tmp_path).keys() == {"out/mine.txt"}


def test_a_folder_inside_the_release_is_refused(finished: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(finished)
    for out in (finished / "exports", tmp_path / "link/exports", finished / "mmlb_data/../x", finished):
        with pytest.raises(mm.ReleaseError, match=r"lies inside the release|is not empty"):
            mm.export(finished, "openai", out)
    assert mm.verify(finished).problems == ()


def test_an_empty_folder_a_link_to_one_and_new_parents_are_used(finished: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "empty")
    mm.export(finished, "openai", tmp_path / "link", limit=1)
    mm.export(finished, "openai", tmp_path / "a/b/c", limit=1)
    assert tree(tmp_path / "empty") == tree(tmp_path / "a/b/c") != {}
    assert left(tmp_path) == ["a", "empty", "link"]


@pytest.mark.parametrize("fault", ["missing", "cut", "a folder", "a link out of the release"])
def test_an_image_that_is_not_as_the_lock_says_stops_before_anything_is_written(
    fault: str, finished: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "release"
    shutil.copytree(finished, copy)
    image = sorted((copy / "mmlb_image").rglob("*.jpg"))[-1]
    data = image.read_bytes()
    image.unlink()
    if fault == "cut":
        image.write_bytes(data[:-1])
    elif fault == "a folder":
        image.mkdir()
    elif fault == "a link out of the release":
        (tmp_path / "elsewhere.jpg").write_bytes(data)
        image.symlink_to(tmp_path / "elsewhere.jpg")
    for target in TARGETS:
        model = "m" if target == "openai-batch" else ""
        with pytest.raises(mm.ReleaseError, match=rf"{image.name}': "):
            mm.export(copy, target, tmp_path / "exports/out", model=model)
    assert not (tmp_path / "exports").exists()


@pytest.mark.parametrize("target", TARGETS)
def test_the_same_choices_give_the_same_bytes(target: str, finished: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        mm.export(finished, target, tmp_path / name, model="m" if target == "openai-batch" else "")
    assert tree(tmp_path / "a") == tree(tmp_path / "b") != {}


def test_examples_are_chosen_by_dataset_length_and_number(finished: Path, tmp_path: Path) -> None:
    done = mm.export(finished, "openai", tmp_path / "one", datasets="mmlongdoc", lengths="2K", limit=3)
    assert (done.examples, done.left_out) == (3, ())
    assert sorted(tree(tmp_path / "one")) == ["README.md", "documentQA/mmlongdoc_K2.jsonl"]
    assert done.files == 2
    assert done.bytes == sum(path.stat().st_size for path in (tmp_path / "one").rglob("*") if path.is_file())
    for name, choice in {"datasets": ["oak"], "lengths": ["64K"], "limit": 0, "subset": "all", "max_tokens": 0}.items():
        with pytest.raises(mm.ReleaseError, match=r"oak|64K|limit 0|subset 'all'|max_tokens 0"):
            mm.export(finished, "openai", tmp_path / "none", **{name: choice})  # type: ignore[arg-type]
    with pytest.raises(mm.ReleaseError, match="images 'gopher'"):
        mm.export(finished, "openai", tmp_path / "none", images="gopher")
    assert left(tmp_path) == ["one"]


def test_the_command_says_what_it_wrote(finished: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    ran = command("export", finished, "--to", "openai", "--out", out, "--length", "1K", "--limit", "2")
    size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    assert ran.out == (
        f"{out}: 2 examples; 2 files, {size:,} bytes; no image copied\n{out}/README.md says how to run them\n"
    )
    ran = command("export", finished, "--to", "openai", "--out", tmp_path / "b", "--images", "data-uri", "--json")
    said = json.loads(ran.out)
    assert (said["examples"], said["left_out"]) == (12, [])
    assert said["bytes_copied"] > 0


def test_a_release_that_nobody_may_write_can_be_exported(finished: Path, tmp_path: Path) -> None:
    before = {path: path.stat() for path in finished.rglob("*")}
    for target in ("openai", "hf", "vllm-batch"):
        mm.export(finished, target, tmp_path / target)
    for path, old in before.items():
        new = path.stat()
        assert (new.st_mtime_ns, new.st_ctime_ns, new.st_nlink) == (old.st_mtime_ns, old.st_ctime_ns, old.st_nlink)


CHOICES: list[tuple[str, dict[str, Any], str]] = [
    *((target, choice, "leave it out") for target in ("hf", "mteb") for choice in ({"model": "m"}, {"max_tokens": 5})),
    *((target, {"images": "data-uri"}, "leave it out") for target in ("hf", "mteb")),
    *(("openai", choice, "requests; leave it out") for choice in ({"model": "m"}, {"max_tokens": 5})),
    ("training", {"form": "lava"}, "openai, sharegpt, llava.*did you mean 'llava'"),
    ("hf", {"form": "llava"}, "only one form.*leave it out"),
    ("vllm-batch", {"images": "path"}, "--images path: vLLM takes no plain paths"),
    ("openai-batch", {}, "--model"),
    *(
        ("openai-batch", {"model": "m", "images": form}, f"--images {form}: .*cannot read files of this machine")
        for form in ("file-url", "path", "file:///srv/images")
    ),
]


def test_choices_that_mean_nothing_to_a_target_are_refused(finished: Path, tmp_path: Path) -> None:
    for target, choice, said in CHOICES:
        with pytest.raises(mm.ReleaseError, match=said):
            mm.export(finished, target, tmp_path / "out", **choice)
    assert left(tmp_path) == []


@pytest.mark.parametrize("target", ["inspect", "lmms-eval"])
def test_two_task_files_of_one_name_are_refused_and_one_given_twice_is_not(
    target: str, finished: Path, tmp_path: Path
) -> None:
    files = [tmp_path / folder / "lines.py" for folder in "abc"]
    for file, text in zip(files, ("x = 1", "x = 1", "x = 2"), strict=True):
        file.parent.mkdir()
        file.write_text(text)
    with pytest.raises(mm.ReleaseError, match=r"c/lines.py: another --task file is called lines.py too; rename"):
        mm.export(finished, target, tmp_path / "out", tasks=files)
    assert not (tmp_path / "out").exists()
    mm.export(finished, target, tmp_path / "out", tasks=files[:2])
    assert (tmp_path / "out/tasks/lines.py").read_text() == "x = 1"
