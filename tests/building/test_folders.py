"""The folder of a build: whose it is, what goes on in it, what starts again, and what a log beside it tells."""

import ctypes
import fcntl
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml
from halted import interrupted, refused
from samples import Sources
from tiny import (
    ROWS,
    Ran,
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

import mmlongbench as mm

STARTED = "note: the unfinished build in this folder was started again, because it differed ({})\n"


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Run the block while somebody else holds the lock on a file."""
    path.parent.mkdir(parents=True)
    with path.open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def but_claims(folder: Path) -> dict[str, str]:
    return {path: sha for path, sha in hashes(folder).items() if "claims" not in path and ".log" not in path}


@pytest.mark.parametrize(
    ("claim", "what"),
    [
        ("build", "the release {out}"),
        ("images--mmlongdoc--pages--cedar", "shard images/mmlongdoc/pages/cedar of {out}"),
    ],
)
def test_what_somebody_else_writes_is_refused_by_name(claim: str, what: str, source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with held(out / ".build" / "claims" / claim):
        said = f"error: {what.format(out=out)} is being written by another process; wait for it or stop it"
        refused(build(source, out), said)
    assert build(source, out).code == 0  # the lock ended with its owner, and those of the first build with it


@pytest.mark.parametrize("name", ["notes.txt", ".hidden", ".build/Package.swift", "mmlb_data/documentQA/x_K8.jsonl"])
def test_a_folder_of_somebody_elses_is_refused_and_left_alone(name: str, source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    (out / name).parent.mkdir(parents=True)
    (out / name).write_text("mine")
    refused(build(source, out), "is not empty and holds no build of mmlongbench; give an empty or a new folder")
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
    for out, ran in zip(outs, in_one_process(*commands, preexec_fn=drop_privileges), strict=True):
        assert (ran.code, ran.err) == (2, f"error: --out {out}: cannot be written: Permission denied\n")
    assert not [*locked.iterdir()]


def test_a_finished_release_is_complete_and_is_not_touched(source: Path, finished: Path, tmp_path: Path) -> None:
    out = Path(shutil.copytree(finished, tmp_path / "out"))
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*")}
    again = build(source, out)
    assert again.code == 0
    assert "was complete already" in again.out
    assert {path: path.stat().st_mtime_ns for path in out.rglob("*")} == before
    assert json.loads(build(source, out, "--json").out)["was_complete"]
    (out / "build.lock.json").write_text("{")
    assert "expected JSON" in build(source, out).err


DIFFERENT = [
    ("seed=7", "seed: 42 → 7"),
    ("admission_length=2K", "admission_length: 1K → 2K"),
    ("lengths=[1K]", "lengths: 1K, 2K → 1K"),
    ("options.page_label=index", "options.page_label: not set → index"),
    ("name=other", "name: mmlongdoc → other"),
]


@pytest.mark.parametrize("state", ["finished", "unfinished"])
def test_a_release_of_another_manifest_is_refused_by_the_key_that_differs(
    state: str, source: Path, finished: Path, stopped: Path, tmp_path: Path
) -> None:
    out = Path(shutil.copytree(finished, tmp_path / "out")) if state == "finished" else stopped
    before = but_claims(out)
    what = "a finished release" if state == "finished" else "already holds an unfinished build"
    for setting, key in DIFFERENT:
        refused(build(source, out, "--set", setting), f"{what} that differs ({key}); ", "use another folder, or ")
        assert but_claims(out) == before
        assert (out / ".build").exists() == (state == "unfinished")
    assert build(source, out).code == 0  # the right one is as it was, or goes on
    assert hashes(out) == hashes(finished)


def test_an_interrupted_build_whose_sources_changed_is_refused(source: Path, finished: Path, tmp_path: Path) -> None:
    changed, out = Path(shutil.copytree(source, tmp_path / "source")), tmp_path / "out"
    interrupted(changed, out)
    changes: dict[str, Callable[[], None]] = {
        "source.documents: ash.pdf changed": lambda: draw_pdf(changed / "documents" / "ash.pdf", 3),
        "source.documents: elm.pdf is new": lambda: draw_pdf(changed / "documents" / "elm.pdf", 1),
        "source.documents: birch.pdf is gone": lambda: (changed / "documents" / "birch.pdf").unlink(),
        "source.samples: samples.json changed": lambda: write_rows(changed, ROWS[:3]),
    }
    for said, change in changes.items():
        change()
        known = f"already holds an unfinished build that differs ({said}); use another folder, or --restart"
        refused(build(changed, out), known)
        shutil.rmtree(changed)
        shutil.copytree(source, changed)
    assert build(changed, out).code == 0
    assert hashes(out) == hashes(finished)


def test_an_interrupted_build_goes_on_from_sources_that_moved(source: Path, finished: Path, tmp_path: Path) -> None:
    moved = Path(shutil.copytree(source, tmp_path / "source"))
    interrupted(moved, tmp_path / "out")
    shutil.rmtree(tmp_path / "out" / ".build" / "images")
    shutil.rmtree(tmp_path / "out" / "mmlb_image")
    moved.rename(tmp_path / "there")
    assert build(tmp_path / "there", tmp_path / "out").code == 0
    assert hashes(tmp_path / "out") == hashes(finished)


def test_an_unfinished_build_of_other_versions_is_refused_and_kept(stopped: Path, source: Path) -> None:
    plan = stopped / ".build/plan.json"
    saved = json.loads(plan.read_text())
    plan.write_text(json.dumps({**saved, "versions": {**saved["versions"], "pymupdf": "1.0"}}))
    refused(build(source, stopped), "already holds an unfinished build that differs (pymupdf 1.0 → ")
    for number in (None, 3, saved["format"] + 1):
        plan.write_text(json.dumps({**saved, "format": number}))
        before = but_claims(stopped)
        said = f"--out {stopped}: holds an unfinished build of another version of mmlongbench; finish it with that"
        for ran in (build(source, stopped), build(source, stopped, "--stage", "records"), command("finish", stopped)):
            refused(ran, said)
        assert but_claims(stopped) == before
    assert mm.build(source / "tiny.yaml", stopped, restart=True).lock.counts("mmlongdoc")


@pytest.mark.rare
def test_a_build_of_another_format_is_refused_before_its_sample_is_drawn_anew(tmp_path: Path) -> None:
    words = ("build", "mmlongdoc", "--set", "source=sample", "--out", tmp_path / "out", "--lengths", "4K", "-q")
    assert command(*words, "--stage", "prepare").code == 0
    plan = tmp_path / "out/.build/plan.json"
    plan.write_text(json.dumps({**json.loads(plan.read_text()), "format": 99}))
    drawn = next((tmp_path / "out" / ".build" / "sample").rglob("samples.json"))
    drawn.write_text("of another version")
    assert "holds an unfinished build of another version" in command(*words).err
    assert drawn.read_text() == "of another version"


def test_what_killed_writers_left_is_swept(stopped: Path, source: Path, finished: Path, tmp_path: Path) -> None:
    stopped.rename(tmp_path / "out")
    (tmp_path / "out" / ".tmp-1-build.lock.json").write_text("{")
    (tmp_path / "out" / "mmlb_image" / "mmlongbench-doc" / "ash" / ".tmp-1-ash_page0.jpg").write_text("half")
    assert build(source, tmp_path / "out").code == 0
    assert not leftovers(tmp_path / "out")
    assert hashes(tmp_path / "out") == hashes(finished)


def test_other_things_beside_the_documents_are_no_documents(source: Path, finished: Path, tmp_path: Path) -> None:
    messy = Path(shutil.copytree(source, tmp_path / "source"))
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
    strange = Path(shutil.copytree(source, tmp_path / "source"))
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
    both = Path(shutil.copytree(source, tmp_path / "source"))
    one = write_manifest(both / "tiny.yaml").read_text().removeprefix("datasets:\n")
    (both / "tiny.yaml").write_text("datasets:\n" + one + one.replace("name: mmlongdoc", "name: other"))
    assert build(both, tmp_path / "out").code == 0
    assert command("audit", tmp_path / "out", "-q").code == 0
    assert len(rejects(tmp_path / "out")) == 10
    said = "'mmlongdoc' and 'other': both show mmlongbench-doc/ash, and pages.dpi or pages.quality differs"
    refused(build(both, tmp_path / "second", "--set", "other.pages.dpi=72"), said)


@pytest.mark.parametrize("is_moved_first", [True, False])
def test_a_half_built_release_may_be_moved(
    is_moved_first: bool, prepared: Path, source: Path, finished: Path, tmp_path: Path
) -> None:
    """The plan names its own files by the place of the folder when it was saved."""
    prepared.rename(tmp_path / "after")
    if is_moved_first:
        assert build(source, tmp_path / "after", "--stage", "records").code == 0
        (tmp_path / "after").rename(tmp_path / "again")
        (tmp_path / "again").rename(tmp_path / "after")
    assert build(source, tmp_path / "after").code == 0
    assert hashes(tmp_path / "after") == hashes(finished)


# Builds that start again: by themselves if only cheap work is lost, otherwise they say what differs


def test_a_table_that_could_not_be_read_is_corrected_in_the_same_folder(own: Path, tmp_path: Path) -> None:
    """The build has read all documents before it fails at the rows."""
    out = tmp_path / "out"
    text = (own / "samples.json").read_text()
    (own / "samples.json").write_text("[{")
    assert build(own, out).code == 2
    assert (out / ".build" / "documents").is_dir()
    (own / "samples.json").write_text(text)
    again = build(own, out)
    assert (again.code, again.err.startswith(STARTED.format("source.samples: samples.json changed"))) == (0, True)
    assert build(own, tmp_path / "other").code == 0
    assert hashes(out) == hashes(tmp_path / "other")
    assert not leftovers(out)


def test_a_prepared_build_starts_again_with_another_plan(
    prepared: Path, source: Path, seed_7: Path, tmp_path: Path
) -> None:
    for number, (settings, said) in enumerate(
        (
            (("--lengths", "1K"), "lengths: 1K, 2K → 1K"),
            (("--limit", 2), "sample.n: not set → 2"),
            (("--set", "exclude=[ash]"), "exclude: [] → ash"),
            (("--set", "seed=7"), "seed: 42 → 7"),
        )
    ):
        out = Path(shutil.copytree(prepared, tmp_path / str(number)))
        again = build(source, out, "--stage", "prepare", *settings)
        assert (again.code, again.err) == (0, STARTED.format(said))
    assert "was started again" not in build(source, out, *settings).err
    assert hashes(out) == hashes(seed_7)


def test_each_file_that_differs_is_named(prepared: Path, own: Path) -> None:
    out = prepared
    for name in ("elm", "fir", "hazel"):
        draw_pdf(own / "documents" / f"{name}.pdf", 1)
    (own / "documents" / "ash.pdf").unlink()
    write_rows(own, ROWS[1:])
    changed, gone = "source.samples: samples.json changed", "source.documents: {}.pdf is gone"
    new = "; ".join(f"source.documents: {name}.pdf is new" for name in ("elm", "fir", "hazel"))
    said = f"{changed}; {gone.format('ash')}; {new}; seed: 42 → 1"
    assert build(own, out, "--stage", "prepare", "--set", "seed=1").err == STARTED.format(said)
    assert build(own, out, "--stage", "records", "--set", "seed=1").code == 0
    write_rows(own, ROWS)
    (own / "documents" / "elm.pdf").unlink()
    (own / "documents" / "fir.pdf").unlink()
    said = f"{changed}; {gone.format('elm')}; {gone.format('fir')}; seed: 1 → 42"
    assert f"already holds an unfinished build that differs ({said}); use another" in build(own, out).err


def test_records_are_expensive_and_restart_discards_them(stopped: Path, source: Path, seed_7: Path) -> None:
    out, own = stopped, source
    before = hashes(out)
    said = "already holds an unfinished build that differs (seed: 42 → 7); use another folder, or --restart"
    refused(build(own, out, "--set", "seed=7"), f"error: --out {out}: {said}")
    kept = {path: found for path, found in hashes(out).items() if "claims" not in path}
    assert kept == {path: found for path, found in before.items() if "claims" not in path}
    assert "--restart and --min-kept are options of --stage prepare" in (
        build(own, out, "--stage", "images", "--restart").err
    )
    assert build(own, out, "--set", "seed=7", "--restart").code == 0
    assert hashes(out) == hashes(seed_7)
    assert not leftovers(out)


@pytest.mark.parametrize("stage", [(), ("--stage", "prepare")], ids=["build", "prepare"])
def test_a_restart_that_cannot_be_planned_discards_nothing(stage: tuple[str, ...], stopped: Path, source: Path) -> None:
    before = hashes(stopped)
    for setting, said in (
        ("source.documents=nowhere", "no such file or folder"),
        ("reader=nowhere", "nowhere"),
        ("source.samples=documents/ash.pdf", ""),  # a file of another kind
    ):
        ran = build(source, stopped, *stage, "--restart", "--set", setting)
        assert (ran.code, said in ran.err) == (2, True), ran
        assert hashes(stopped).items() >= before.items()


def test_other_articles_are_another_corpus(sample: Callable[[str], Sources], tmp_path: Path) -> None:
    """Only cheap results were made with the corpus of the articles before."""
    articles, out = tmp_path / "articles.jsonl", tmp_path / "out"
    about = {"name": "made", "builder": "vrag", "reader": "viquae", "licence": "none", "lengths": ["8K"]}
    source = {name: str(path) for name, path in sample("viquae").items() if name != "corpus"}
    dataset = {**about, "source": source, "corpus": str(articles), "sample": {"n": 1}, "options": {"gold": "span"}}
    (tmp_path / "made.yaml").write_text(yaml.safe_dump({"datasets": [dataset]}))

    def prepare(*more: str) -> Ran:
        return command("build", tmp_path / "made.yaml", "--out", out, "--stage", "prepare", *more)

    def write(text: str) -> None:
        lines = [{"id": f"{number}", "title": f"T{number}", "text": text} for number in range(9)]
        articles.write_text("".join(json.dumps(each) + "\n" for each in lines))

    write("The harbour is near. ")
    assert (ran := prepare()).code == 0, ran.err
    before = hashes(out / ".build" / "corpus")
    write("The harbour is far. ")
    assert prepare("--restart", "--set", "exclude=[nothing]").code == 2
    assert hashes(out / ".build" / "corpus").items() >= before.items()
    ran = prepare()
    assert (ran.code, ran.err) == (0, STARTED.format("corpus changed"))
    assert len([*(out / ".build" / "corpus").iterdir()]) == 2
    assert prepare("--restart").code == 0
    assert before.keys() & hashes(out / ".build" / "corpus").keys() == set()
    assert len([*(out / ".build" / "corpus").iterdir()]) == 1


@pytest.mark.parametrize("text", ["{", None])
def test_a_lost_plan_discards_cheap_results_alone(text: str | None, prepared: Path, source: Path) -> None:
    out, own = prepared, source
    plan = out / ".build/plan.json"

    def lose() -> None:
        plan.unlink() if text is None else plan.write_text(text)

    lose()
    assert build(own, out, "--stage", "prepare").code == 0
    assert build(own, out, "--stage", "records").code == 0
    lose()
    before = hashes(out)
    said = f"holds an unfinished build whose plan is {'gone' if text is None else 'damaged'} ({plan})"
    refused(build(own, out, "--stage", "prepare"), said, "put the plan back, use another folder, or --restart")
    assert hashes(out).items() >= before.items()
    assert build(own, out, "--stage", "prepare", "--restart").code == 0
    assert not (out / ".build" / "records").exists()


def test_documents_read_by_ocr_are_expensive(prepared: Path, source: Path) -> None:
    out, own = prepared, source
    plan = out / ".build/plan.json"
    saved = json.loads(plan.read_text())
    saved["datasets"][0]["plan"]["spec"]["pages"]["ocr"] = True
    plan.write_text(json.dumps(saved))
    assert "differs (seed: 42 → 7)" in build(own, out, "--set", "seed=7").err


def test_restart_leaves_a_finished_release(own: Path, finished: Path, tmp_path: Path) -> None:
    out = Path(shutil.copytree(finished, tmp_path / "out"))
    before = hashes(out)
    assert "was complete already" in build(own, out, "--restart").out
    said = "holds a finished release that differs (seed: 42 → 7); dataset 'mmlongdoc': only lengths, datasets and quest"
    refused(build(own, out, "--restart", "--set", "seed=7"), said, "(--restart discards unfinished builds only)")
    assert hashes(out) == before


# The log beside a release, and what no release holds


LINE = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ \d+ (.+)")


def said(log: Path) -> list[str]:
    matches = [LINE.fullmatch(line) for line in log.read_text("utf-8").splitlines()]
    return [match[1] for match in matches if match]


def test_a_log_beside_the_release_tells_every_stage_and_shard(source: Path, finished: Path, tmp_path: Path) -> None:
    assert build(source, tmp_path / "out").code == 0
    lines = said(tmp_path / "out.log")
    assert lines[0].startswith("started: build ")
    assert "mmlongbench " in lines[0]
    assert "records: 2 shards, 0 of them already done" in lines
    assert any(re.fullmatch(r"records/mmlongdoc/2K/00000: done in \d+\.\d\d s", line) for line in lines)
    assert lines[-1] == "ended well"
    assert hashes(tmp_path / "out") == hashes(finished)


def test_a_build_that_goes_on_goes_on_in_the_same_log(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert build(source, out, "--strict").code == 1
    assert said(tmp_path / "out.log")[-1].startswith("ended: --strict: ")
    assert build(source, out).code == 0
    lines = said(tmp_path / "out.log")
    assert [line.split(":")[0] for line in lines if line.startswith(("started", "ended"))] == [
        "started",
        "ended",
        "started",
        "ended well",
    ]
    assert "documents: 4 shards, 4 of them already done" in lines


def test_where_no_log_can_be_written_the_build_goes_on_without(source: Path, finished: Path, tmp_path: Path) -> None:
    (tmp_path / "out.log").mkdir()
    assert build(source, tmp_path / "out").code == 0
    assert hashes(tmp_path / "out") == hashes(finished)
    shutil.rmtree(tmp_path / "out.log")


def test_a_log_that_cannot_be_written_to_its_end_is_no_fault(source: Path, finished: Path, tmp_path: Path) -> None:
    (tmp_path / "out.log").symlink_to("/dev/full")
    assert build(source, tmp_path / "out").code == 0
    assert hashes(tmp_path / "out") == hashes(finished)


def test_no_released_file_holds_an_absolute_path(source: Path, finished: Path, tmp_path: Path) -> None:
    broken = Path(shutil.copytree(source, tmp_path / "source"))
    (broken / "documents" / "ash.pdf").write_bytes(b"%PDF-1.7\nno more")
    (broken / "documents" / "birch.pdf").write_bytes(b"nothing of the kind")
    (broken / "documents" / "cedar.pdf").write_bytes((source / "documents" / "cedar.pdf").read_bytes()[:700])
    assert build(broken, tmp_path / "out").code == 0
    for release in (finished, tmp_path / "out"):
        for path in (path for path in release.rglob("*") if path.is_file()):
            data = path.read_bytes()
            if path.suffix == ".parquet":
                data = json.dumps(
                    [pq.read_table(path).to_pylist(), str(pq.read_schema(path).metadata)], default=str
                ).encode()
            for secret in (tmp_path, source, source.parents[1], Path.cwd(), Path.home()):
                assert str(secret).encode() not in data, path
    assert {line["reason"] for line in rejects(tmp_path / "out")} > {"not-a-pdf", "truncated-document"}
