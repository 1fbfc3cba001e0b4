"""A build whose plan changed: it starts again by itself if only cheap work is lost, otherwise it says what differs."""

import json
import shutil
from pathlib import Path

import pytest
from tiny import ROWS, Ran, build, command, draw_pdf, hashes, leftovers, write_rows

import mmlongbench as mm
from mmlongbench.building.build_dir import BuildDir
from mmlongbench.building.differences import Described, differences, joined
from mmlongbench.building.remote import Mirrored, Remote

STARTED = "note: the unfinished build in this folder was started again, because it differed ({})\n"


@pytest.fixture
def own(source: Path, tmp_path: Path) -> Path:
    """The tiny source in a folder of the test."""
    return shutil.copytree(source, tmp_path / "source")


def test_a_table_that_could_not_be_read_is_corrected_in_the_same_folder(own: Path, tmp_path: Path) -> None:
    """The build has read all documents before it fails at the rows."""
    out = tmp_path / "out"
    text = (own / "samples.json").read_text()
    (own / "samples.json").write_text("[{")
    assert build(own, out).code == 2
    assert (out / ".build" / "documents").is_dir()
    (own / "samples.json").write_text(text)
    again = build(own, out)
    assert (again.code, again.err.startswith(STARTED.format("samples.json changed"))) == (0, True)
    assert build(own, tmp_path / "other").code == 0
    assert hashes(out) == hashes(tmp_path / "other")
    assert not leftovers(out)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (("--set", "seed=7"), "seed: 42 → 7"),
        (("--lengths", "1K"), "lengths: 1K, 2K → 1K"),
        (("--limit", 2), "sample.n: not set → 2"),
        (("--set", "exclude=[ash]"), "exclude: [] → ash"),
    ],
)
def test_a_prepared_build_starts_again_with_another_plan(
    settings: tuple[object, ...], said: str, own: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    assert build(own, out, "--stage", "prepare").code == 0
    again = build(own, out, "--stage", "prepare", *settings)
    assert (again.code, again.err) == (0, STARTED.format(said))
    assert "was started again" not in build(own, out, *settings).err
    assert build(own, tmp_path / "other", *settings).code == 0
    assert hashes(out) == hashes(tmp_path / "other")


def test_several_files_are_counted_and_two_are_named(own: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert build(own, out, "--stage", "prepare").code == 0
    for name in ("elm", "fir", "hazel"):
        draw_pdf(own / "documents" / f"{name}.pdf", 1)
    (own / "documents" / "ash.pdf").unlink()
    write_rows(own, ROWS[1:])
    said = "samples.json changed; documents: 3 files are new, ash.pdf is gone; seed: 42 → 1"
    assert build(own, out, "--stage", "prepare", "--set", "seed=1").err == STARTED.format(said)
    assert build(own, out, "--stage", "records", "--set", "seed=1").code == 0
    write_rows(own, ROWS)
    (own / "documents" / "elm.pdf").unlink()
    (own / "documents" / "fir.pdf").unlink()
    said = "samples.json changed; documents: elm.pdf and fir.pdf are gone; seed: 1 → 42"
    assert f"already holds an unfinished build that differs ({said}); use another" in build(own, out).err


def test_records_are_expensive_and_restart_discards_them(own: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert [build(own, out, "--stage", stage).code for stage in ("prepare", "records", "images")] == [0, 0, 0]
    before = hashes(out)
    refused = build(own, out, "--set", "seed=7")
    assert (refused.code, refused.err) == (
        2,
        f"error: --out {out}: already holds an unfinished build that differs (seed: 42 → 7); use another folder, or "
        "--restart to discard the unfinished build\n",
    )
    kept = {path: found for path, found in hashes(out).items() if "claims" not in path}
    assert kept == {path: found for path, found in before.items() if "claims" not in path}
    assert "--restart and --min-kept are options of --stage prepare" in (
        build(own, out, "--stage", "images", "--restart").err
    )
    assert build(own, out, "--set", "seed=7", "--restart").code == 0
    assert build(own, tmp_path / "other", "--set", "seed=7").code == 0
    assert hashes(out) == hashes(tmp_path / "other")
    assert not leftovers(out)


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("source.documents=nowhere", "no such file or folder"),
        ("reader=nowhere", "nowhere"),
        ("source.samples=documents/ash.pdf", ""),  # a file of another kind
    ],
)
@pytest.mark.parametrize("stage", [(), ("--stage", "prepare")])
def test_a_restart_that_cannot_be_planned_discards_nothing(
    setting: str, said: str, stage: tuple[str, ...], own: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    assert [build(own, out, "--stage", name).code for name in ("prepare", "records", "images")] == [0, 0, 0]
    before = hashes(out)
    refused = build(own, out, *stage, "--restart", "--set", setting)
    assert (refused.code, said in refused.err) == (2, True)
    assert hashes(out).items() >= before.items()


def test_a_restart_with_other_articles_builds_the_corpus_anew(tmp_path: Path) -> None:
    """The corpus in the working folder is one of the articles before."""
    articles, out = tmp_path / "articles.jsonl", tmp_path / "out"
    words = ("infoseek", "--set", "source=sample", "--set", f"corpus={articles}", "--set", "retrieval.reranker=null")

    def prepare(*more: str) -> Ran:
        return command("build", *words, "--lengths", "8K", "--limit", 1, "--out", out, "--stage", "prepare", *more)

    def write(text: str) -> None:
        lines = [{"id": f"{number}", "title": f"T{number}", "text": text} for number in range(9)]
        articles.write_text("".join(json.dumps(each) + "\n" for each in lines))

    write("The harbour is near. ")
    assert (ran := prepare()).code == 0, ran.err
    write("The harbour is far. ")
    assert "holds a corpus whose source is" in prepare().err
    before = hashes(out / ".build" / "corpus")
    assert prepare("--restart", "--set", "exclude=[nothing]").code == 2
    assert hashes(out / ".build" / "corpus") == before
    assert (ran := prepare("--restart")).code == 0, ran.err


@pytest.mark.parametrize("text", ["{", None])
def test_a_lost_plan_discards_cheap_results_alone(text: str | None, own: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    plan = BuildDir(out).plan

    def lose() -> None:
        plan.unlink() if text is None else plan.write_text(text)

    assert build(own, out, "--stage", "prepare").code == 0
    lose()
    assert build(own, out, "--stage", "prepare").code == 0
    assert build(own, out, "--stage", "records").code == 0
    lose()
    before = hashes(out)
    refused = build(own, out, "--stage", "prepare")
    state = "gone" if text is None else "damaged"
    assert (refused.code, refused.err) == (
        2,
        f"error: --out {out}: holds an unfinished build whose plan is {state} ({plan}), so that its results cannot be "
        "continued; put the plan back, use another folder, or --restart to discard them\n",
    )
    assert hashes(out).items() >= before.items()
    assert build(own, out, "--stage", "prepare", "--restart").code == 0
    assert not (out / ".build" / "records").exists()


def test_documents_read_by_ocr_are_expensive(own: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert build(own, out, "--stage", "prepare").code == 0
    plan = BuildDir(out).plan
    saved = json.loads(plan.read_text())
    saved["datasets"][0]["plan"]["spec"]["pages"]["ocr"] = True
    plan.write_text(json.dumps(saved))
    assert "differs (seed: 42 → 7)" in build(own, out, "--set", "seed=7").err


def test_restart_discards_a_plan_of_another_format(own: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert build(own, out, "--stage", "prepare").code == 0
    plan = BuildDir(out).plan
    plan.write_text(json.dumps({**json.loads(plan.read_text()), "format": 2}))
    assert "holds an unfinished build of another version" in build(own, out).err
    assert mm.build(own / "tiny.yaml", out, restart=True).lock.counts("mmlongdoc")


def test_restart_leaves_a_finished_release(own: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert build(own, out).code == 0
    before = hashes(out)
    assert "was complete already" in build(own, out, "--restart").out
    refused = build(own, out, "--restart", "--set", "seed=7")
    assert refused.code == 2
    assert refused.err == (
        f"error: --out {out}: holds a finished release that differs (seed: 42 → 7); dataset 'mmlongdoc': only lengths, "
        "datasets and questions can be added to it; use another folder, or remove this one to build it again "
        "(--restart discards unfinished builds only)\n"
    )
    assert hashes(out) == before


def test_an_unfinished_build_at_a_url_starts_again_there_too(own: Path, tmp_path: Path) -> None:
    url = f"file://{tmp_path / 'there'}"
    words = ("build", own / "tiny.yaml", "--out", url)
    assert command(*words, "--stage", "prepare").code == 0
    assert "seed: 42 → 7" in command(*words, "--set", "seed=7").err
    assert build(own, tmp_path / "other", "--set", "seed=7").code == 0
    assert hashes(tmp_path / "there") == hashes(tmp_path / "other")


def test_what_is_elsewhere_is_discarded_by_name(own: Path, tmp_path: Path) -> None:
    there = tmp_path / "there"
    for name in (".build/plan.json", "mmlb_data/a", "notes.txt"):
        (there / name).parent.mkdir(parents=True, exist_ok=True)
        (there / name).write_text("x")
    from mmlongbench.building.executors.local import LocalExecutor
    from mmlongbench.io.progress import Progress

    mirrored = Mirrored(LocalExecutor(1, Progress(is_shown=False)), Remote(f"file://{there}"))
    mirrored.discard_elsewhere(BuildDir(tmp_path / "here"))
    assert [*hashes(there)] == ["notes.txt"]


def data(name: str = "a", **more: object) -> dict[str, object]:
    """A dataset as a lock has it."""
    return {"name": name, "source": {"rows": fingerprint("1")}, "seed": 42, **more}


def fingerprint(sha256: str, files: int = 1) -> dict[str, object]:
    return {"files": files, "bytes": 1, "sha256": sha256}


OURS = {"name": "docvqa", "distribution": "mmlongbench", "version": "0.1.0", "sha256": ""}
FILE = {"name": "fables.py:Fables", "distribution": "", "version": "", "sha256": "1"}


@pytest.mark.parametrize(
    ("before", "now", "said"),
    [
        ([data()], [data()], ""),
        ([data()], [data(seed=7)], "seed: 42 → 7"),
        ([data(), data("b")], [data(seed=7), data("c")], "a: seed: 42 → 7; dataset 'c' is new; dataset 'b' is gone"),
        ([data("b"), data()], [data(), data("b")], "the datasets have another order"),
        ([data(lengths=[8192])], [data(lengths=[8192, 16384])], "lengths: 8K → 8K, 16K"),
        ([data(lengths="x")], [data(lengths=[8192])], "lengths: x → 8K"),
        ([data(options={"a": {"b": None}})], [data(options={"a": {"b": [1, 2]}})], "options.a.b: not set → 1, 2"),
        ([data(options={"a": True})], [data(options={})], "options.a: true → not set"),
        ([data(source="sample")], [data()], "source: a drawn sample before, now files"),
        ([data(source={})], [data()], "source.rows is new"),
        ([data()], [data(source={})], "source.rows is gone"),
        ([data()], [data(source={"rows": fingerprint("2", 4)})], "rows: 1 → 0 files"),
        ([data(corpus="1")], [data(corpus="2")], "the corpus changed"),
        ([data(corpus=None)], [data(corpus="2")], "corpus is new"),
        ([data(errata="2")], [data(errata=None)], "errata is gone"),
        ([data(reranker_sha256="1")], [data(reranker_sha256="2")], "the model of the reranker changed"),
        (
            [data(counter={"tokenizer": {"name": "llama2", "sha256": "1"}})],
            [data(counter={"tokenizer": {"name": "own", "sha256": "2"}})],
            "counter.tokenizer: llama2 → own",
        ),
        ([data()], [data(code={"builder": FILE})], ""),  # a lock without the key is not compared
        ([data(code={"builder": FILE})], [data(code={"builder": {**FILE, "sha256": "2"}})], "task code changed: fab"),
        (
            [data(code={"builder": OURS, "reader": OURS})],
            [data(code={"builder": {**OURS, "version": "0.2.0"}, "reader": OURS})],
            "task code changed: docvqa (0.1.0 → 0.2.0)",
        ),
    ],
)
def test_differences_are_words(before: list[dict[str, object]], now: list[dict[str, object]], said: str) -> None:
    found = joined(differences(Described(before), Described(now)))
    assert found.startswith(said)
    assert bool(found) == bool(said)


def test_versions_are_named_and_many_differences_are_counted() -> None:
    before, now = {"mmlongbench": "0.1.0"}, {"mmlongbench": "0.2.0"}
    assert differences(Described([], before), Described([], now)) == ["mmlongbench 0.1.0 → 0.2.0"]
    assert joined([str(number) for number in range(10)]) == "0; 1; 2; 3; 4; 5; 6; 7; and 2 more"
    long = differences(Described([data(licence="x" * 99)]), Described([data(licence="y" * 99)]))
    assert long == [f"licence: {'x' * 60}… → {'y' * 60}…"]
