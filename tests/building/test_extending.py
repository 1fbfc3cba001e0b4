"""More lengths, datasets and questions for a finished release: nothing is made again, the bytes are those of one build
of all, and whatever stops the move of the new files, the same command completes it.
"""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from halted import interrupted, noted, refused
from samples import Sources, from_samples
from tiny import ROWS, Ran, build, command, draw_pdf, hashes, leftovers, lock, rejects, row, write_rows

FILLED = r'''
"""Questions about one sentence among the texts of their own row."""
import mmlongbench.task as mt


class FilledRow(mt.Row):
    """A question, and the texts around its sentence."""

    question: str
    answer: str
    fill: tuple[str, ...]


class Filled(mt.Task[FilledRow]):
    """Ask about the sentence."""

    metric = "sub_em"

    def draft(self, row, sources, draws):
        """Take the texts of the row in order."""
        texts = tuple(mt.Unit(f"f{n}", text, (n + 1,)) for n, text in enumerate(row.fill))
        asked = mt.advanced.Question(row.id, (row.question,), {"question": row.question, "answer": row.answer})
        needle = mt.Unit("gold", f"It is {row.answer}.", (0,))
        return mt.advanced.ContextDraft((needle,), mt.InOrder(texts), row.id, ("Read.\n\n",), (asked,))

    def record(self, example):
        """Return the texts, the question and the answer."""
        return {"id": example.id, **example.question.data, "texts": [unit.body for unit in example.units]}

    def prompt(self, record):
        """Put the question after the texts."""
        units = [mt.Unit(f"{n}", text, ()) for n, text in enumerate(record["texts"])]
        return mt.advanced.assemble(("Read.\n\n",), units, "\n\n", (record["question"],))
'''
"""A task file whose examples depend on their own rows alone."""
MORE = row("ash.pdf", "How old is it?", "80", "[2]", answer_format="Int")


LONGER = ("--lengths", "1K,2K,4K")


@pytest.fixture
def out(finished: Path, tmp_path: Path) -> Path:
    """The release of the tiny source, to be changed."""
    return shutil.copytree(finished, tmp_path / "out")


@pytest.fixture
def two(own: Path) -> Callable[..., Path]:
    """Write a manifest of the tiny source with the given datasets: changes of the first one, by name."""
    (dataset,) = yaml.safe_load((own / "tiny.yaml").read_text())["datasets"]

    def written(**changes: dict[str, Any]) -> Path:
        datasets = [{**dataset, "name": name, **change} for name, change in changes.items()]
        (own / "two.yaml").write_text(yaml.safe_dump({"datasets": datasets}))
        return own / "two.yaml"

    return written


def same(out: Path, *words: object) -> None:
    """Check that a folder has the bytes of one build in a new folder."""
    other = out.with_name(f"{out.name}-at-once")
    ran = command("build", *words, "--out", other, "-q")
    assert ran.code == 0, ran.err
    assert hashes(out) == hashes(other)
    assert not leftovers(out)
    assert command("verify", out).code == 0
    shutil.rmtree(other)


def at(out: Path, *words: object) -> Ran:
    return command("build", *words, "--out", out)


@pytest.mark.parametrize("history", [("1K", "1K,2K", "1K,2K,4K"), ("4K", "4K,1K", "1K,2K,4K")])
def test_lengths_are_added(history: tuple[str, ...], own: Path, tmp_path: Path) -> None:
    with noted() as written:
        for lengths in history:
            ran = build(own, tmp_path / "out", "--lengths", lengths)
            assert (ran.code, "is complete" in ran.out) == (0, True), ran.err
    made = [name for name in written if name.endswith(".jpg")]
    assert len(made) == len(set(made)) > 4
    same(tmp_path / "out", own / "tiny.yaml", "--lengths", history[-1])


def test_questions_are_added_by_a_larger_sample(own: Path, tmp_path: Path) -> None:
    """At 1K one question does not fit, and at 4K all units are shown."""
    out, always = tmp_path / "out", (own / "tiny.yaml", "--lengths", "1K,4K", "--set", "admission_length=2K")
    for words in (("--limit", 1), ("--limit", 4), ()):
        ran = at(out, *always, *words)
        assert (ran.code, "is complete" in ran.out) == (0, True), ran.err
        if words != ("--limit", 1):
            same(out, *always, *words)
    assert "was complete already" in at(out, *always).out
    cells = lock(out)["datasets"]["mmlongdoc"]["cells"]
    assert (cells["1K"]["rejected"], cells["4K"]["ran_dry"]) == (1, 7)


def test_lengths_questions_and_datasets_are_added_at_once(own: Path, two: Callable[..., Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert at(out, two(b={"lengths": ["2K"], "sample": {"n": 2}})).code == 0
    manifest = two(a={"seed": 1}, b={"lengths": ["1K", "2K"], "sample": {"n": 5}})
    assert at(out, manifest).code == 0
    same(out, manifest)
    assert at(out, two(b={"lengths": ["1K", "2K"], "sample": {"n": 5}}, a={"seed": 1})).code == 0  # another order
    same(out, own / "two.yaml")


OTHERS: dict[str, dict[str, Any]] = {
    "needles at depths": {
        "builder": "mm_niah",
        "reader": "mm_niah",
        "options": {"task": "retrieval", "needle": "text"},
    },
    "photographs": {"builder": "visual_haystack", "reader": "photographs", "options": {"needles": "several"}},
    "a corpus": {"builder": "vrag", "reader": "viquae", "options": {"gold": "span"}},
    "shared contexts": {"builder": "many_shot", "reader": "image_tables"},
}


def drawn(dataset: dict[str, Any], sample: Callable[[str], Sources], folder: Path) -> Path:
    """Write a manifest of one dataset of a drawn sample."""
    named = {"name": "drawn", "lengths": ["8K"], "admission_length": "8K", "licence": "none", **dataset}
    (folder / "drawn.yaml").write_text(yaml.safe_dump(from_samples({"datasets": [named]}, sample)))
    return folder / "drawn.yaml"


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[] if kind == "a corpus" else [pytest.mark.rare]) for kind in OTHERS]
)
def test_other_tasks_are_extended_too(kind: str, sample: Callable[[str], Sources], tmp_path: Path) -> None:
    out, manifest = tmp_path / "out", drawn(OTHERS[kind], sample, tmp_path)
    assert at(out, manifest, "--limit", 2).code == 0
    questions = 2 if kind == "shared contexts" else 3
    ran = at(out, manifest, "--lengths", "8K,16K", "--limit", questions)
    assert ran.code == 0, ran.err
    same(out, manifest, "--lengths", "8K,16K", "--limit", questions)


def test_questions_that_share_contexts_are_not_added(sample: Callable[[str], Sources], tmp_path: Path) -> None:
    out, manifest = tmp_path / "out", drawn(OTHERS["shared contexts"], sample, tmp_path)
    assert at(out, manifest, "--limit", 2).code == 0
    before_it = hashes(out)
    said = "its questions share contexts, so that further questions change the existing examples"
    refused(at(out, manifest, "--limit", 3), said)
    assert hashes(out) == before_it


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (("--lengths", "1K"), "(lengths: 1K, 2K → 1K); dataset 'mmlongdoc': the length 2K would be removed"),
        (("--limit", 2), "(sample.n: not set → 2); dataset 'mmlongdoc': another sample does not contain all"),
        (("--set", "sample.seed=1"), "(sample.seed: not set → 1); dataset 'mmlongdoc': another sample does not"),
        (("--set", "name=a"), "(name: mmlongdoc → a); dataset 'mmlongdoc' would be removed"),
        (("--set", "reserve=65", "--lengths", "1K,2K,4K"), "reserve: 64 → 65); dataset 'mmlongdoc': only lengths, da"),
    ],
)
def test_what_would_change_examples_is_refused_before_anything_is_made(
    settings: tuple[str, ...], said: str, own: Path, out: Path, finished: Path
) -> None:
    refused(build(own, out, *settings), said)
    assert hashes(out) == hashes(finished)


def test_rows_are_added_where_nothing_else_reads_the_table(own: Path, out: Path) -> None:
    """The row numbers of the source are its ids, so only rows at the end leave the ids of the others."""
    write_rows(own, (*ROWS, MORE))
    ran = build(own, out, *LONGER)
    assert ran.code == 0, ran.err
    same(out, own / "tiny.yaml", *LONGER)
    assert lock(out)["datasets"]["mmlongdoc"]["questions"]["kept"] == 7


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ((MORE, *ROWS), "question 'mmlongdoc_10' would no longer be in the release"),
        ((*ROWS[:4], MORE, *ROWS[4:]), "question 'mmlongdoc_10' would no longer be in the release"),
        ((*ROWS[:3], MORE, *ROWS[4:]), "question 'mmlongdoc_3' changed (source.samples: samples.json changed)"),
        (ROWS[:3], "question 'mmlongdoc_3' would no longer be in the release"),
        (
            ({**ROWS[0], "answer": "soft"}, *ROWS[1:]),
            "question 'mmlongdoc_0' changed (source.samples: samples.json changed)",
        ),
    ],
)
def test_rows_that_change_the_others_are_refused(
    rows: tuple[dict[str, str], ...], said: str, own: Path, out: Path, finished: Path
) -> None:
    write_rows(own, rows)
    ran = build(own, out)
    refused(ran, f"dataset 'mmlongdoc': the finished release cannot be extended: {said}; nothing was changed")
    assert ("most readers number rows without an id" in ran.err) == (" changed (" in said)
    assert hashes(out) == hashes(finished)  # nothing is left in the working folder either


def test_a_refused_extension_keeps_what_was_read_of_the_documents(own: Path, tmp_path: Path) -> None:
    """An archive takes long to open, so its extension is not removed; the documents are not read again."""
    shutil.make_archive(str(own / "packed"), "zip", own, "documents")
    words = (own / "tiny.yaml", "--set", f"source.documents={own / 'packed.zip' / 'documents'}")
    out, inner = tmp_path / "out", tmp_path / "out/.build/extension/.build"
    assert at(out, *words).code == 0
    before_it = hashes(out)
    write_rows(own, ({**ROWS[0], "answer": "soft"}, *ROWS[1:]))
    refused(
        at(out, *words), "question 'mmlongdoc_0' changed (source.samples: samples.json changed); nothing was changed"
    )
    results = {path: path.stat().st_ino for path in (inner / "documents").rglob("*.jsonl")}
    assert len(results) == 4
    assert not [*(inner / "questions").rglob("*.jsonl"), *(inner / "records").rglob("*.jsonl")]
    refused(
        at(out, *words), "question 'mmlongdoc_0' changed (source.samples: samples.json changed); nothing was changed"
    )
    assert {path: path.stat().st_ino for path in results} == results
    assert hashes(out).items() >= before_it.items()


def filled(folder: Path, rows: list[dict[str, Any]], code: str = FILLED) -> Path:
    """Write a manifest of rows of texts, with its task file."""
    (folder / "filled.py").write_text(code)
    (folder / "rows.jsonl").write_text("".join(json.dumps(each) + "\n" for each in rows))
    dataset = {
        "name": "filled",
        "builder": "filled.py:Filled",
        "source": {"rows": "rows.jsonl"},
        "lengths": ["1K", "2K", "4K"],
        "admission_length": "1K",
        "licence": "none",
    }
    (folder / "filled.yaml").write_text(yaml.safe_dump({"datasets": [dataset]}))
    return folder / "filled.yaml"


def row_of_texts(id: str, *texts: str) -> dict[str, Any]:
    return {"id": id, "question": "What?", "answer": "red", "fill": texts or ["the harbour is near " * 20] * 3}


def test_counts_are_those_of_one_build_if_a_row_changes_and_its_examples_stay(tmp_path: Path) -> None:
    """A text that fits nowhere is added to a row: the row did run out of texts before, and does not any more."""
    rows, out = [row_of_texts(id) for id in ("r0", "r1", "r2")], tmp_path / "out"
    assert at(out, filled(tmp_path, rows)).code == 0
    longer = row_of_texts("r0", *rows[0]["fill"], "the harbour is far " * 2000)
    manifest = filled(tmp_path, [longer, *rows[1:], row_of_texts("r3")])
    assert at(out, manifest).code == 0
    same(out, manifest)
    assert lock(out)["datasets"]["filled"]["cells"]["1K"]["ran_dry"] == 3
    before_it = hashes(out)
    other = row_of_texts("r0", "the harbour is far " * 20)
    said = "the finished release cannot be extended: question 'r0' changed (source.rows: rows.jsonl changed); nothing"
    refused(at(out, filled(tmp_path, [other, *rows[1:], row_of_texts("r3")])), f"dataset 'filled': {said} was changed")
    assert hashes(out) == before_it


def test_rows_are_added_for_a_builder_of_all_rows_if_no_example_changes(tmp_path: Path) -> None:
    """It shows the texts of the last row in every context."""
    code = FILLED.replace("enumerate(row.fill)", "enumerate(sources.rows[-1].fill)")
    rows, out = [row_of_texts("r0"), row_of_texts("r1")], tmp_path / "out"
    assert at(out, filled(tmp_path, rows, code)).code == 0
    before_it = hashes(out)
    ran = at(out, filled(tmp_path, [*rows, row_of_texts("r2", "the harbour is far " * 20)], code))
    refused(ran, "question 'r0' changed (source.rows: rows.jsonl changed)")
    assert hashes(out) == before_it
    manifest = filled(tmp_path, [*rows, row_of_texts("r2")], code)
    assert at(out, manifest).code == 0
    same(out, manifest)


def test_documents_that_may_pad_the_others_are_refused(own: Path, out: Path) -> None:
    draw_pdf(own / "documents" / "elm.pdf", 2)
    said = "source.documents: 4 → 5 files; every context may show something from source.documents; nothing was changed"
    refused(build(own, out), f"dataset 'mmlongdoc': the finished release cannot be extended: {said}")


def test_rows_inserted_in_the_middle_are_taken_where_rows_have_ids(own: Path, tmp_path: Path) -> None:
    """A table of own documents has a column of ids."""
    table, manifest = own / "questions.csv", own / "own.yaml"
    head, *rows = ("id,doc,question,answer,pages", "a,ash,What?,hard,1", "b,dogwood,How many?,5,1;2;3;4;5")
    dataset = {
        "name": "own",
        "builder": "docvqa",
        "reader": "own_documents",
        "source": {"questions": "questions.csv", "documents": "documents"},
        "lengths": ["1K", "2K"],
        "admission_length": "2K",
        "reserve": 64,
    }
    manifest.write_text(yaml.safe_dump({"datasets": [dataset]}))
    table.write_text("\n".join((head, *rows)))
    out = tmp_path / "out"
    assert at(out, manifest).code == 0
    table.write_text("\n".join((head, rows[0], "c,cedar,Who?,nobody,1", rows[1])))
    ran = at(out, manifest)
    assert ran.code == 0, ran.err
    same(out, manifest)
    (reject,) = rejects(out)
    assert (reject["id"], reject["length"]) == ("b", 1024)  # it stands in another line of the table now
    table.write_text("\n".join((head, rows[1], "c,cedar,Who?,nobody,1", rows[0])))
    assert "the order of its questions would change" in at(out, manifest).err


def test_an_unfinished_extension_is_continued_discarded_or_left(own: Path, out: Path, finished: Path) -> None:
    interrupted(own, out, *LONGER)
    assert hashes(out).items() >= hashes(finished).items()  # the old release is whole
    assert command("audit", out).code == 0
    assert "was complete already" in build(own, out).out
    assert (out / ".build" / "extension").is_dir()
    said = "already holds an unfinished build that differs (lengths: 1K, 2K, 4K → 1K, 2K, 8K)"
    refused(build(own, out, "--lengths", "1K,2K,8K"), said)
    refused(build(own, out, "--stage", "prepare"), "the release is finished, and --stage cannot change it")
    discarded = out.with_name("discarded")
    shutil.copytree(out, discarded)
    assert build(own, out, *LONGER).code == 0
    same(out, own / "tiny.yaml", *LONGER)
    assert build(own, discarded, "--lengths", "1K,2K,8K", "--restart").code == 0
    same(discarded, own / "tiny.yaml", "--lengths", "1K,2K,8K")


def test_an_unfinished_extension_is_discarded_only_by_a_restart_that_can_be_planned(own: Path, out: Path) -> None:
    interrupted(own, out, *LONGER)
    inner = out / ".build" / "extension"
    before_it = hashes(inner)
    assert build(own, out, *LONGER, "--restart", "--set", "source.documents=nowhere").code == 2
    assert hashes(inner).items() >= before_it.items()
    (inner / ".build" / "plan.json").unlink()
    refused(build(own, out, *LONGER), "holds an unfinished build whose plan is gone")
    assert "was complete already" in build(own, out).out
    assert (inner / ".build" / "records").is_dir()
    assert build(own, out, *LONGER, "--restart").code == 0
    same(out, own / "tiny.yaml", *LONGER)


def test_a_release_at_a_url_is_not_extended(own: Path, out: Path, finished: Path) -> None:
    ran = command("build", own / "tiny.yaml", "--out", f"file://{out}", *LONGER)
    refused(ran, "the finished release at this URL differs (lengths: 1K, 2K → 1K, 2K, 4K), and a release is extended")
    assert hashes(out) == hashes(finished)


def test_min_kept_stops_an_extension_before_the_release_changes(own: Path, out: Path, finished: Path) -> None:
    refused(build(own, out, *LONGER, "--min-kept", 0.9), "kept 6 of 11 questions", code=1)
    assert hashes(out).items() >= hashes(finished).items()
    assert build(own, out, *LONGER).code == 0


def test_an_extension_that_stops_before_anything_expensive_leaves_nothing(own: Path, out: Path, finished: Path) -> None:
    refused(build(own, out, *LONGER, "--strict"), "--strict: ", code=1)
    assert hashes(out) == hashes(finished)
    assert not (out / ".build").exists()


# The move of the files of an extension to their places


@pytest.fixture(scope="module")
def short(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release of one length; do not change it."""
    out = tmp_path_factory.mktemp("short") / "out"
    assert build(source, out, "--lengths", "1K", "-q").code == 0
    return out


class Stopped(BaseException):
    """The process is killed."""


def killed(source: Path, out: Path, step: int) -> bool:
    """Extend a release, killed before a step of the move: a rename, a removed file, or a removed folder; return whether
    there was such a step.
    """
    left = step
    states = (out / ".build/extension/build.lock.json", out / ".build/before")

    def counted(call: Callable[..., Any]) -> Callable[..., Any]:
        def counting(*args: Any, **options: Any) -> Any:
            nonlocal left
            left -= any(state.exists() for state in states)
            if left < 0:
                raise Stopped
            return call(*args, **options)

        return counting

    with pytest.MonkeyPatch.context() as patch:
        for owner, name in ((Path, "replace"), (Path, "unlink"), (shutil, "rmtree")):
            patch.setattr(owner, name, counted(getattr(owner, name)))
        try:
            build(source, out, "-q")
        except Stopped:
            return True
        return False


@pytest.fixture(scope="module")
def half_moved(source: Path, short: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release whose extension was killed when the old lock was put aside; do not change it."""
    out = shutil.copytree(short, tmp_path_factory.mktemp("moving") / "out")
    assert killed(source, out, 1)
    assert not (out / "build.lock.json").exists()
    return out


@pytest.mark.parametrize("every", [pytest.param(1, marks=pytest.mark.rare), 5])
def test_a_move_that_is_killed_at_a_step_is_completed_by_the_same_command(
    every: int, source: Path, short: Path, finished: Path, tmp_path: Path
) -> None:
    step, is_killed = 0, True
    while is_killed:
        out = Path(shutil.copytree(short, tmp_path / str(step)))
        is_killed = killed(source, out, step)
        assert build(source, out, "-q").code == 0
        assert hashes(out) == hashes(finished), step
        step += every
    assert step > 5


@pytest.mark.parametrize("more", [(), ("--restart",)])
def test_no_other_command_touches_a_release_that_is_being_moved(
    more: tuple[str, ...], source: Path, half_moved: Path, finished: Path, tmp_path: Path
) -> None:
    out = Path(shutil.copytree(half_moved, tmp_path / "out"))
    before_it = hashes(out)
    for ran in (build(source, out, "--stage", "prepare", *more), command("finish", out)):
        refused(ran, "complete it")
    assert hashes(out).items() >= before_it.items()
    assert build(source, out, "-q", *more).code == 0
    assert hashes(out) == hashes(finished)


@pytest.mark.parametrize("name", ["../../victim/precious", "/etc/passwd", "build.lock.json", "mmlb_data/../../x", "x"])
@pytest.mark.parametrize("which", ["before", "extension"])
def test_a_forged_lock_moves_and_removes_nothing_outside_the_release(
    which: str, name: str, source: Path, half_moved: Path, tmp_path: Path
) -> None:
    out, victim = Path(shutil.copytree(half_moved, tmp_path / "host/out")), tmp_path / "victim"
    victim.mkdir()
    (victim / "precious").write_text("mine")
    forged = lock(out / ".build" / which)
    forged["files"][name] = {"bytes": 4, "sha256": "0" * 64}
    (out / ".build" / which / "build.lock.json").write_text(json.dumps(forged))
    refused(build(source, out, "-q"), f"names {name!r}, which leads out of the release")
    assert (victim / "precious").read_text() == "mine"


def test_a_torn_lock_of_the_old_release_is_one_line(source: Path, half_moved: Path, tmp_path: Path) -> None:
    out = Path(shutil.copytree(half_moved, tmp_path / "out"))
    (out / ".build/before/build.lock.json").write_text('{"format": 1, "fil')
    refused(build(source, out, "-q"))


@pytest.mark.parametrize("link", [".build", ".build/extension", ".build/records", ".build/claims"])
def test_a_working_folder_that_is_a_link_is_refused(link: str, source: Path, short: Path, tmp_path: Path) -> None:
    out, victim = Path(shutil.copytree(short, tmp_path / "out")), tmp_path / "victim"
    victim.mkdir()
    (victim / "precious").write_text("mine")
    (out / link).parent.mkdir(exist_ok=True)
    (out / link).symlink_to(victim)
    (out / ".build/plan.json").write_text("{}")
    there = hashes(victim)
    for words in (("--restart",), ("--stage", "prepare", "--restart"), ("--stage", "records")):
        (out / "build.lock.json").unlink(missing_ok=True)
        refused(build(source, out, "-q", *words), "is a link; remove it")
    assert hashes(victim) == there
