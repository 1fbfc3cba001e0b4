import ctypes
import fcntl
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from crash_harness import started
from tiny import (
    ROWS,
    build,
    command,
    draw_pdf,
    hashes,
    in_one_process,
    leftovers,
    lock,
    rejects,
    write_manifest,
    write_rows,
)

from mmlongbench.building.build_dir import BuildDir, Shard
from mmlongbench.building.saved_plan import load_plans, save_page_seconds
from mmlongbench.io.atomic import file_lock

pytestmark = pytest.mark.slow

HOLDER = """
import sys
from pathlib import Path
from mmlongbench.io.atomic import file_lock
with file_lock(Path(sys.argv[1]), "it"):
    print("held", flush=True)
    sys.stdin.read()
"""


@contextmanager
def held_by_another(path: Path) -> Iterator[None]:
    """Run the block while another process holds the lock on a file; the process ends by SIGKILL."""
    command = [sys.executable, "-c", HOLDER, str(path)]
    with started(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        yield


def interrupted(source: Path, out: Path, *args: object) -> None:
    """A build that was stopped when all its shards were done, before a file of the release was written."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mmlongbench.building.build.finish", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        assert build(source, out, *args).code == 130


@pytest.fixture(scope="module")
def stopped(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A build of the tiny source that was stopped; not to be changed."""
    out = tmp_path_factory.mktemp("stopped") / "out"
    interrupted(source, out)
    return out


def copied(source: Path, to: Path) -> Path:
    shutil.copytree(source, to)
    return to


def test_a_second_build_of_a_release_is_refused_while_the_first_one_lives(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with held_by_another(out / ".build" / "claims" / "build"):
        refused = build(source, out)
    assert refused.code == 2
    assert refused.err == f"error: the release {out} is being written by another process; wait for it or stop it\n"
    assert build(source, out).code == 0  # the lock died with its owner


def test_a_shard_that_another_process_writes_is_refused_by_name(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    shard = Shard("images", "mmlongdoc", "pages/cedar")
    with held_by_another(out / ".build" / "claims" / "images--mmlongdoc--pages--cedar"):
        refused = build(source, out)
    assert refused.code == 2
    assert f"shard {shard} of {out} is being written by another process" in refused.err
    assert build(source, out).code == 0


def test_a_claim_is_given_back_when_its_block_ends(tmp_path: Path) -> None:
    with file_lock(tmp_path / "claim", "it"), (tmp_path / "claim").open("rb") as other, pytest.raises(BlockingIOError):
        fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
    with file_lock(tmp_path / "claim", "it"):
        pass


@pytest.mark.parametrize("name", ["notes.txt", ".hidden", ".build/Package.swift", "mmlb_data/documentQA/x_K8.jsonl"])
def test_a_folder_of_somebody_elses_is_refused_and_left_alone(name: str, source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    (out / name).parent.mkdir(parents=True)
    (out / name).write_text("mine")
    refused = build(source, out)
    assert refused.code == 2
    assert "is not empty and holds no build of mmlongbench; give an empty or a new folder" in refused.err
    assert [*hashes(out)] == [name]


def test_a_file_is_no_folder(source: Path, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("mine")
    assert f"--out {tmp_path / 'out'}: is a file; give a folder" in build(source, tmp_path / "out").err
    assert "cannot be written: Not a directory" in build(source, tmp_path / "out" / "below").err
    assert (tmp_path / "out").read_text() == "mine"


def drop_privileges() -> None:
    """Root ignores file modes unless two capabilities are dropped (PR_CAPBSET_DROP, which lasts until the exec)."""
    if not os.geteuid():
        for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
            ctypes.CDLL(None).prctl(24, capability, 0, 0, 0)


def test_a_folder_that_cannot_be_written_is_refused(source: Path, tmp_path: Path) -> None:
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o555)
    outs = (locked, locked / "new")
    commands = [("build", source / "tiny.yaml", "--out", out) for out in outs]
    for out, refused in zip(outs, in_one_process(*commands, preexec_fn=drop_privileges), strict=True):
        assert (refused.code, refused.err) == (2, f"error: --out {out}: cannot be written: Permission denied\n")
    assert not [*locked.iterdir()]


def test_a_finished_release_is_complete_and_is_not_touched(source: Path, finished: Path, tmp_path: Path) -> None:
    out = copied(finished, tmp_path / "out")
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*")}
    again = build(source, out)
    assert again.code == 0
    assert "was complete already" in again.out
    assert {path: path.stat().st_mtime_ns for path in out.rglob("*")} == before
    assert json.loads(build(source, out, "--json").out)["was_complete"]
    (out / "build.lock.json").write_text("{")
    assert "expected JSON" in build(source, out).err


@pytest.mark.parametrize("state", ["finished", "interrupted"])
@pytest.mark.parametrize(
    ("setting", "key"),
    [
        ("seed=7", "seed: 42 → 7"),
        ("admission_length=2K", "admission_length: 1K → 2K"),
        ("lengths=[1K]", "lengths: 1K, 2K → 1K"),
        ("options.page_label=index", "options.page_label: not set → index"),
        ("name=other", "name: mmlongdoc → other"),
    ],
)
def test_a_release_of_another_manifest_is_refused_by_the_key_that_differs(
    state: str, setting: str, key: str, source: Path, finished: Path, stopped: Path, tmp_path: Path
) -> None:
    out = copied(finished if state == "finished" else stopped, tmp_path / "out")
    before = hashes(out)
    refused = build(source, out, "--set", setting)
    assert refused.code == 2
    what = "a finished release" if state == "finished" else "already holds an unfinished build"
    assert f"{what} that differs ({key}); " in refused.err
    assert "use another folder, or " in refused.err
    assert {path: sha for path, sha in hashes(out).items() if "claims" not in path} == {
        path: sha for path, sha in before.items() if "claims" not in path
    }
    assert (out / ".build").exists() == (state == "interrupted")
    assert build(source, out).code == 0  # the right one is as it was, or goes on
    assert hashes(out) == hashes(finished)


def test_an_interrupted_build_whose_sources_changed_is_refused(source: Path, finished: Path, tmp_path: Path) -> None:
    changed, out = copied(source, tmp_path / "source"), tmp_path / "out"
    interrupted(changed, out)
    changes: dict[str, Callable[[], None]] = {
        "documents: ash.pdf changed": lambda: draw_pdf(changed / "documents" / "ash.pdf", 3),
        "documents: elm.pdf is new": lambda: draw_pdf(changed / "documents" / "elm.pdf", 1),
        "documents: birch.pdf is gone": lambda: (changed / "documents" / "birch.pdf").unlink(),
        "samples.json changed": lambda: write_rows(changed, ROWS[:3]),
    }
    for said, change in changes.items():
        change()
        refused = build(changed, out)
        assert refused.code == 2
        assert f"already holds an unfinished build that differs ({said}); use another folder, or --rest" in refused.err
        shutil.rmtree(changed)
        copied(source, changed)
    assert build(changed, out).code == 0
    assert hashes(out) == hashes(finished)


def test_an_interrupted_build_goes_on_from_sources_that_moved(source: Path, finished: Path, tmp_path: Path) -> None:
    moved = copied(source, tmp_path / "source")
    interrupted(moved, tmp_path / "out")
    shutil.rmtree(tmp_path / "out" / ".build" / "images")
    shutil.rmtree(tmp_path / "out" / "mmlb_image")
    moved.rename(tmp_path / "there")
    assert build(tmp_path / "there", tmp_path / "out").code == 0
    assert hashes(tmp_path / "out") == hashes(finished)


def test_an_interrupted_build_of_other_versions_is_refused(source: Path, tmp_path: Path) -> None:
    interrupted(source, tmp_path / "out")
    plan = BuildDir(tmp_path / "out").plan
    saved = json.loads(plan.read_text())
    saved["versions"]["pymupdf"] = "1.0"
    plan.write_text(json.dumps(saved))
    assert "already holds an unfinished build that differs (pymupdf 1.0 → " in build(source, tmp_path / "out").err


@pytest.mark.parametrize("format", [None, 3, 5])
def test_an_interrupted_build_of_another_format_is_refused_and_kept(
    format: int | None, source: Path, tmp_path: Path
) -> None:
    interrupted(source, tmp_path / "out")
    plan = BuildDir(tmp_path / "out").plan
    saved = json.loads(plan.read_text())
    plan.write_text(json.dumps({**{key: saved[key] for key in saved if key != "format"}, "format": format}))
    before = hashes(tmp_path / "out")
    said = f"--out {tmp_path / 'out'}: holds an unfinished build of another version of mmlongbench; finish it with that"
    for ran in (
        build(source, tmp_path / "out"),
        build(source, tmp_path / "out", "--stage", "records"),
        command("finish", tmp_path / "out"),
    ):
        assert ran.code == 2
        assert said in ran.err
    assert hashes(tmp_path / "out").items() >= {key: before[key] for key in before if ".log" not in key}.items()


def test_paths_below_the_working_folder_move_with_it_as_often_as_it_moves(source: Path, tmp_path: Path) -> None:
    interrupted(source, tmp_path / "a")
    plan = BuildDir(tmp_path / "a").plan
    saved = json.loads(plan.read_text())
    saved["datasets"][0]["plan"]["sources"]["documents"] = f"{saved['root']}/sample/documents"
    plan.write_text(json.dumps(saved))
    for name in ("b", "c", "d"):
        (tmp_path / "a").rename(tmp_path / name)
        moved = BuildDir(tmp_path / name)
        save_page_seconds(moved, {"mmlongdoc": float(ord(name))})
        found = load_plans(moved)["mmlongdoc"]
        assert found.sources["documents"] == moved.root / "sample" / "documents"
        assert found.spec.limits.seconds_a_page == ord(name)
        (tmp_path / name).rename(tmp_path / "a")


def test_a_build_of_another_format_is_refused_before_its_sample_is_drawn_anew(tmp_path: Path) -> None:
    words = ("build", "mmlongdoc", "--set", "source=sample", "--out", tmp_path / "out", "--lengths", "4K", "-q")
    assert command(*words, "--stage", "prepare").code == 0
    plan = BuildDir(tmp_path / "out").plan
    plan.write_text(json.dumps({**json.loads(plan.read_text()), "format": 5}))
    drawn = next((tmp_path / "out" / ".build" / "sample").rglob("samples.json"))
    drawn.write_text("of another version")
    assert "holds an unfinished build of another version" in command(*words).err
    assert drawn.read_text() == "of another version"


def test_a_build_that_could_not_begin_leaves_a_folder_that_can_be_used(source: Path, tmp_path: Path) -> None:
    refused = build(source, tmp_path / "out", "--set", "source.documents=nowhere")
    assert refused.code == 2
    assert "source.documents: no such file or folder" in refused.err
    assert build(source, tmp_path / "out").code == 0


def test_what_killed_writers_left_is_swept(source: Path, finished: Path, tmp_path: Path) -> None:
    interrupted(source, tmp_path / "out")
    (tmp_path / "out" / ".tmp-1-build.lock.json").write_text("{")
    (tmp_path / "out" / "mmlb_image" / "mmlongbench-doc" / "ash" / ".tmp-1-ash_page0.jpg").write_text("half")
    assert build(source, tmp_path / "out").code == 0
    assert not leftovers(tmp_path / "out")
    assert hashes(tmp_path / "out") == hashes(finished)


def test_other_things_beside_the_documents_are_no_documents(source: Path, finished: Path, tmp_path: Path) -> None:
    messy = copied(source, tmp_path / "source")
    documents = messy / "documents"
    (documents / "README.md").write_text("about")
    (documents / ".DS_Store").write_bytes(b"\0")
    (documents / "more").mkdir()
    draw_pdf(documents / "more" / "ash.pdf", 1)
    (documents / "folder.pdf").mkdir()
    assert build(messy, tmp_path / "out").code == 0
    made, expected = hashes(tmp_path / "out"), hashes(finished)
    differing = {path for path in made if made[path] != expected.get(path)}
    assert differing == {"build.lock.json", "items/assets.parquet"}  # both have the fingerprint of the folder
    assert lock(tmp_path / "out")["manifest"][0]["source"]["documents"]["files"] == 6  # all that is visible
    (documents / ".DS_Store").write_bytes(b"\1")
    assert "was complete already" in build(messy, tmp_path / "out").out


def test_a_document_whose_name_is_no_text_can_be_built(source: Path, tmp_path: Path) -> None:
    strange = copied(source, tmp_path / "source")
    name = os.fsdecode(b"\xff")
    try:
        (strange / "documents" / "ash.pdf").rename(strange / "documents" / f"{name}.pdf")
    except (OSError, UnicodeError):
        pytest.skip("this file system takes names that are text only")
    built = build(strange, tmp_path / "out")
    assert built.code == 0, built.err
    assert command("audit", tmp_path / "out", "-q").code == 0
    documents = lock(tmp_path / "out")["datasets"]["mmlongdoc"]["documents"]
    assert name in {**documents["renamed"], **documents["refused"]}


def test_two_datasets_share_pages_only_where_they_are_the_same(source: Path, tmp_path: Path) -> None:
    both = copied(source, tmp_path / "source")
    one = write_manifest(both / "tiny.yaml").read_text().removeprefix("datasets:\n")
    (both / "tiny.yaml").write_text("datasets:\n" + one + one.replace("name: mmlongdoc", "name: other"))
    assert build(both, tmp_path / "out").code == 0
    assert command("audit", tmp_path / "out", "-q").code == 0
    assert len(rejects(tmp_path / "out")) == 10
    refused = build(both, tmp_path / "second", "--set", "other.pages.dpi=72")
    assert refused.code == 2
    assert (
        "'mmlongdoc' and 'other': both show mmlongbench-doc/ash, and pages.dpi or pages.quality differs" in refused.err
    )
