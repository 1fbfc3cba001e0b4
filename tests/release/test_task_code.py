"""A release that was built with a task file: who runs the file, what the lock says of it, and who refuses it."""

import hashlib
import importlib.metadata
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from line_task import TASK, write
from once import linked, once
from tiny import Ran, command, hashes, lock

import mmlongbench as mm

SAID = "note: the code of lines.py runs, because the manifest names it\n"
RUNS = "import pathlib; pathlib.Path({!r}).write_text('')\n"


@pytest.fixture(scope="session")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The task, its rows and its manifest, and their release `out`; not to be changed."""

    def make(folder: Path) -> None:
        ran = command("build", write(folder / "lines") / "lines.yaml", "--out", folder / "lines/out", "--workers", 1)
        assert (ran.code, ran.err) == (0, SAID)

    return once(tmp_path_factory, "lines", make) / "lines"


@pytest.fixture
def built(source: Path) -> Path:
    """A release of the lines; not to be changed."""
    return source / "out"


def test_the_lock_names_the_file_without_its_folder_and_its_bytes(source: Path, built: Path) -> None:
    (dataset,) = lock(built)["manifest"]
    assert (dataset["builder"], dataset["reader"]) == ("lines.py:Lines", "lines.py:Lines")
    assert dataset["code"]["builder"]["sha256"] == hashlib.sha256((source / "lines.py").read_bytes()).hexdigest()
    assert dataset["code"]["metric"] == {
        "name": "sub_em",
        "distribution": "mmlongbench",
        "version": importlib.metadata.version("mmlongbench"),
        "sha256": "",
    }
    assert str(source) not in (built / "build.lock.json").read_text()
    assert not (built / ".build").exists()


def test_more_workers_and_another_folder_give_the_same_bytes(source: Path, built: Path, tmp_path: Path) -> None:
    moved = write(tmp_path / "other/place")
    ran = command("build", moved / "lines.yaml", "--out", tmp_path / "out", "--workers", 2, "-q")
    assert ran == Ran(0, "", SAID)
    assert hashes(tmp_path / "out") == hashes(built)


def test_the_audit_with_the_file_finds_nothing(source: Path, built: Path) -> None:
    assert command("audit", built, "--task", source / "lines.py", "-q").code == 0
    assert command("verify", built, "--task", source / "lines.py").out.endswith("of them images\n")
    (line, _) = mm.audit(built, tasks=source / "lines.py")
    assert (line.examples, line.problems) == (40, [])


COMMANDS: tuple[tuple[str, ...], ...] = (
    ("audit", "{out}"),
    ("stats", "{out}"),
    ("show", "{out}"),
    ("score", "{out}", "{said}"),
    ("export", "{out}", "--to", "openai", "--out", "{tmp}/exported"),
    ("collect", "{out}", "{said}", "--model", "m"),
    ("run", "{out}", "--url", "http://127.0.0.1:9/v1", "--model", "m", "--out", "{tmp}/m.jsonl"),
    ("claims", "{out}", "--judge-url", "http://127.0.0.1:9/v1", "--judge-model", "m"),
)


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
@pytest.mark.parametrize("name", ["lines.py:Lines", "{tmp}/lines.py:Lines"], ids=["beside", "absolute"])
def test_no_command_runs_a_file_because_a_release_names_it(
    words: tuple[str, ...], name: str, built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    linked(built, tmp_path / "out")
    hostile = RUNS.format(str(tmp_path / "ran")) + TASK
    for folder in (tmp_path, tmp_path / "out"):
        (folder / "lines.py").write_text(hostile)
    forge(tmp_path / "out", name.format(tmp=tmp_path))
    (tmp_path / "said.jsonl").write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    values = {"out": tmp_path / "out", "said": tmp_path / "said.jsonl", "tmp": tmp_path}
    ran = command(*(word.format(**values) for word in words))
    assert "builder 'lines.py:Lines' is a task file, and a release never makes its code run by itself" in ran.err
    assert "give it with --task lines.py" in ran.err
    assert ran.code == 2
    changed = command(*(word.format(**values) for word in words), "--task", tmp_path / "lines.py")
    assert "is not the file that the release was built with" in changed.err
    assert not (tmp_path / "ran").exists()


def forge(release: Path, name: str) -> None:
    """Write another name of the builder into the lock."""
    data = lock(release)
    data["manifest"][0]["builder"] = name
    (release / "build.lock.json").write_text(json.dumps(data))


def test_a_changed_file_is_used_if_the_user_says_so(built: Path, tmp_path: Path) -> None:
    (tmp_path / "lines.py").write_text(TASK + "\n# a remark\n")
    assert command("audit", built, "--task", tmp_path / "lines.py", "--allow-changed-task", "-q").code == 0
    changed = TASK.replace("What is the last word", "In a single word, tell me the end")
    (tmp_path / "lines.py").write_text(changed)
    ran = command("audit", built, "--task", tmp_path / "lines.py", "--allow-changed-task")
    assert ran.code == 1


def test_a_release_is_not_extended_with_a_changed_file_and_the_error_says_which_to_restore(
    built: Path, tmp_path: Path
) -> None:
    source, out = write(tmp_path / "lines"), linked(built, tmp_path / "out")
    before = hashes(out)
    (source / "lines.py").write_text(TASK + "\n# a remark\n")
    ran = command("build", source / "lines.yaml", "--out", out, "-q")
    assert (ran.code, "(task code changed: lines.py); dataset 'lines': restore lines.py to extend it; " in ran.err) == (
        2,
        True,
    )
    assert hashes(out) == before


def test_verify_without_the_file_checks_all_but_the_counts(built: Path) -> None:
    ran = command("verify", built)
    assert ran.code == 0
    assert "were not checked: builder 'lines.py:Lines' is a task file" in ran.err


OTHER_FILE = "is not the file that the release was built with"
FORGERIES: dict[str, tuple[Callable[[Any], object], str]] = {
    "no code": (lambda code: code.clear(), f"{OTHER_FILE} (SHA-256 none…)"),
    "no code of the metric": (lambda code: code.pop("metric"), "lines: none is named for the metric"),
    "the code of another task": (
        lambda code: code["builder"].update(name="other.py:Other"),
        "lines: builder 'lines.py:Lines', found 'other.py:Other'",
    ),
    "another version of the engine": (
        lambda code: code["metric"].update(version="9.9"),
        f"lines: metric: expected version {importlib.metadata.version('mmlongbench')} of the engine, found 9.9",
    ),
    "no fingerprint": (lambda code: code["reader"].update(sha256=""), OTHER_FILE),
    "a fingerprint of another file": (lambda code: code["builder"].update(sha256="0" * 64), OTHER_FILE),
    "code that is no object": (lambda code: code.update(builder=5), OTHER_FILE),
    "more than the lock has": (lambda code: code["metric"].update(more=1), "lines: code: unknown key"),
}


def test_forged_code_in_a_lock_is_found_by_the_audit(source: Path, built: Path, tmp_path: Path) -> None:
    out = linked(built, tmp_path / "out")
    for name, (edit, said) in FORGERIES.items():
        data = lock(built)
        edit(data["manifest"][0]["code"])
        (out / "build.lock.json").write_text(json.dumps(data))
        ran = command("audit", out, "--task", source / "lines.py")
        assert (ran.code in (1, 2), said in " ".join((ran.out + ran.err).split())) == (True, True), (name, ran)
    data = lock(built)
    del data["manifest"][0]["code"]
    (out / "build.lock.json").write_text(json.dumps(data))
    ran = command("audit", out, "--task", source / "lines.py", "--allow-changed-task")
    assert ran.code == 1
    assert "the code of the plug-ins is not that of the manifest" in " ".join((ran.out + ran.err).split())


def test_a_variant_that_no_builder_offers_is_refused_in_words(source: Path, built: Path) -> None:
    ran = command("audit", built, "--task", source / "lines.py", "--variant", "oracle")
    said = "error: --variant oracle: no builder of this release offers it; none is offered\n"
    assert (ran.code, ran.err) == (2, said)


def test_shares_use_the_prepared_file_and_refuse_a_changed_one(built: Path, tmp_path: Path) -> None:
    folder, out = write(tmp_path / "source"), tmp_path / "out"
    share = ("build", folder / "lines.yaml", "--out", out, "--workers", 1, "-q", "--stage")
    assert command(*share, "prepare").code == 0
    (folder / "lines.py").write_text(TASK + "\n# changed\n")
    ran = command(*share, "records")
    assert (ran.code, ran.err.count("\n")) == (2, 2)
    assert f"--out {out}: task code changed: lines.py; restore the file" in ran.err
    (folder / "lines.py").write_text(TASK)
    other = command("build", "quickstart", "--out", out, "-q", "--stage", "records")
    assert other.err == (
        f"error: --out {out}: this folder was prepared with the task file lines.py; give the manifest that names "
        "lines.py\n"
    )
    assert [command(*share, stage).err for stage in ("negatives", "records", "images")] == [SAID] * 3
    assert command("finish", out, "-q").err == (
        f"error: --out {out}: this folder was prepared with the task file lines.py; add --task lines.py to the "
        "command\n"
    )
    assert command("finish", out, "-q", "--task", folder / "lines.py").err == ""
    assert hashes(out) == hashes(built)


def test_a_changed_copy_of_the_file_in_an_unfinished_build_is_not_run(tmp_path: Path) -> None:
    folder, out = write(tmp_path / "source"), tmp_path / "out"
    share = ("build", folder / "lines.yaml", "--out", out, "--workers", 1, "-q", "--stage")
    assert command(*share, "prepare").code == 0
    (kept,) = (out / ".build/code").rglob("lines.py")
    kept.write_text(RUNS.format(str(tmp_path / "ran")) + TASK)
    for ran in (command(*share, "records"), command("finish", out, "--task", folder / "lines.py")):
        assert "was changed after the build kept it" in ran.err
    assert not (tmp_path / "ran").exists()


def test_scores_of_the_gold_answers_are_full(source: Path, built: Path, tmp_path: Path) -> None:
    release = mm.open_release(built, tasks=[source / "lines.py"])
    lines = [{**each.key, "digest": each.digest, "prediction": each.answer} for each in release.examples("lines", "1K")]
    (tmp_path / "m.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    scores = mm.score(built, tmp_path / "m.jsonl", partial=True, tasks=source / "lines.py")
    assert [cell.score for cell in scores.cells] == [1.0]
    scorer = mm.scorer(built, tasks=source / "lines.py")
    assert scorer.score(next(release.examples("lines", "1K")).key, "nothing").score == 0.0
