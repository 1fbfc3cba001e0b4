"""The end of an extension: its files are moved to their places, whatever stops it and whatever the folder holds."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tiny import build, command, hashes

from mmlongbench.building import extending

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def short(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release of one length; do not change it."""
    out = tmp_path_factory.mktemp("short") / "out"
    assert build(source, out, "--lengths", "1K", "-q").code == 0
    return out


class Stopped(BaseException):
    """The process is killed."""


def stopped_at(step: int, patch: pytest.MonkeyPatch) -> None:
    """Kill the process before a step of the move: a rename, a removed file, or a removed folder."""
    left = [step]

    def counted(call: Callable[..., Any]) -> Callable[..., Any]:
        def counting(*args: Any, **options: Any) -> Any:
            left[0] -= 1
            if left[0] < 0:
                raise Stopped
            return call(*args, **options)

        return counting

    move = extending.move_into_place

    def moving(build_dir: Any) -> None:
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(Path, "replace", counted(Path.replace))
            inner.setattr(Path, "unlink", counted(Path.unlink))
            inner.setattr(shutil, "rmtree", counted(shutil.rmtree))
            move(build_dir)

    patch.setattr("mmlongbench.building.build.move_into_place", moving)


def killed(source: Path, out: Path, step: int) -> bool:
    """Extend a release, killed before a step of the move; return whether there was such a step."""
    with pytest.MonkeyPatch.context() as patch:
        stopped_at(step, patch)
        try:
            build(source, out, "-q")
        except Stopped:
            return True
        return False


def test_a_move_that_is_killed_at_any_step_is_completed_by_the_same_command(
    source: Path, short: Path, finished: Path, tmp_path: Path
) -> None:
    steps = 0
    while True:
        out = tmp_path / str(steps)
        shutil.copytree(short, out)
        is_killed = killed(source, out, steps)
        assert build(source, out, "-q").code == 0
        assert hashes(out) == hashes(finished), steps
        if not is_killed:
            break
        steps += 1
    assert steps > 5


@pytest.mark.parametrize("more", [(), ("--restart",)])
def test_no_other_command_touches_a_release_that_is_being_moved(
    more: tuple[str, ...], source: Path, short: Path, finished: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    shutil.copytree(short, out)
    assert killed(source, out, 1)
    before = hashes(out)
    prepare = ("build", source / "tiny.yaml", "--out", out, "--stage", "prepare", *more)
    for ran in (command(*prepare), command("finish", out)):
        assert (ran.code, "complete it" in ran.err) == (2, True), ran.err
    assert hashes(out).items() >= before.items()
    assert build(source, out, "-q", *more).code == 0
    assert hashes(out) == hashes(finished)


@pytest.mark.parametrize("name", ["../../victim/precious", "/etc/passwd", "build.lock.json", "mmlb_data/../../x", "x"])
@pytest.mark.parametrize("which", ["before", "extension"])
def test_a_forged_lock_moves_and_removes_nothing_outside_the_release(
    which: str, name: str, source: Path, short: Path, tmp_path: Path
) -> None:
    out, victim = tmp_path / "host/out", tmp_path / "victim"
    shutil.copytree(short, out)
    victim.mkdir()
    (victim / "precious").write_text("mine")
    assert killed(source, out, 1)
    lock = out / ".build" / which / "build.lock.json"
    data = json.loads(lock.read_text())
    data["files"][name] = {"bytes": 4, "sha256": "0" * 64}
    lock.write_text(json.dumps(data))
    ran = build(source, out, "-q")
    assert ran.code == 2
    assert f"names {name!r}, which leads out of the release" in ran.err
    assert (victim / "precious").read_text() == "mine"


def test_a_torn_lock_of_the_old_release_is_one_line(source: Path, short: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    shutil.copytree(short, out)
    assert killed(source, out, 1)
    (out / ".build/before/build.lock.json").write_text('{"format": 1, "fil')
    ran = build(source, out, "-q")
    assert (ran.code, ran.err.count("\n")) == (2, 1)


@pytest.mark.parametrize("link", [".build", ".build/extension", ".build/records", ".build/claims"])
def test_a_working_folder_that_is_a_link_is_refused(link: str, source: Path, short: Path, tmp_path: Path) -> None:
    out, victim = tmp_path / "out", tmp_path / "victim"
    shutil.copytree(short, out)
    victim.mkdir()
    (victim / "precious").write_text("mine")
    (out / link).parent.mkdir(exist_ok=True)
    (out / link).symlink_to(victim)
    (out / ".build/plan.json").write_text("{}")
    there = hashes(victim)
    for words in (("--restart",), ("--stage", "prepare", "--restart"), ("--stage", "records")):
        (out / "build.lock.json").unlink(missing_ok=True)
        ran = build(source, out, "-q", *words)
        assert (ran.code, "is a link; remove it" in ran.err) == (2, True), ran.err
    assert hashes(victim) == there
