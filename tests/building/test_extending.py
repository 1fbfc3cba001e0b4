"""More lengths, datasets and questions for a finished release: nothing is made again, and the bytes are those of one
build of all.
"""

import json
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from tiny import ROWS, Ran, build, command, draw_pdf, hashes, leftovers, lock, rejects, row, write_rows

from mmlongbench.io.atomic import sha256_of, write_whole

pytestmark = pytest.mark.slow

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
        texts = tuple(mt.Unit(f"f{n}", "padding", text, (n + 1,)) for n, text in enumerate(row.fill))
        asked = mt.Question(row.id, (row.question,), {"question": row.question, "answer": row.answer})
        needle = mt.Unit("gold", "gold", f"It is {row.answer}.", (0,))
        return mt.Draft(row.id, ("Read. ",), (asked,), (needle,), mt.InOrder(texts))

    def record(self, example):
        """Return the texts, the question and the answer."""
        return {"id": example.id, **example.question.data, "texts": [unit.body for unit in example.units]}

    def prompt(self, record):
        """Put the question after the texts."""
        units = [mt.Unit(f"{n}", "padding", text, ()) for n, text in enumerate(record["texts"])]
        return mt.assemble(("Read. ",), units, "\n\n", (record["question"],))
'''
"""A task file whose examples depend on their own rows alone."""
MORE = row("ash.pdf", "How old is it?", "80", "[2]", answer_format="Int")


@pytest.fixture
def own(source: Path, tmp_path: Path) -> Path:
    """The tiny source in a folder of the test."""
    return Path(shutil.copytree(source, tmp_path / "source"))


@pytest.fixture
def two(own: Path) -> Callable[..., Path]:
    """Write a manifest of the tiny source with the given datasets: changes of the first one, by name."""
    (dataset,) = yaml.safe_load((own / "tiny.yaml").read_text())["datasets"]

    def written(**changes: dict[str, Any]) -> Path:
        datasets = [{**dataset, "name": name, **change} for name, change in changes.items()]
        (own / "two.yaml").write_text(yaml.safe_dump({"datasets": datasets}))
        return own / "two.yaml"

    return written


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the images that are written."""
    written: list[str] = []

    def write(path: Path, pieces: Iterable[bytes]) -> None:
        written.append(path.name)
        write_whole(path, pieces)

    monkeypatch.setattr("mmlongbench.building.stages.images.write_whole", write)
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


def test_lengths_are_added_in_three_histories(own: Path, tmp_path: Path, made: list[str]) -> None:
    manifest = own / "tiny.yaml"
    histories = (("1K", "1K,2K", "1K,2K,4K"), ("2K", "1K,2K,4K"), ("4K", "4K,1K", "1K,2K,4K"))
    for number, history in enumerate(histories):
        out = tmp_path / f"{number}"
        made.clear()
        for lengths in history:
            ran = at(out, manifest, "--lengths", lengths)
            assert (ran.code, "is complete" in ran.out) == (0, True), ran.err
        assert len(made) == len(set(made)) > 0  # no image is made twice
        same(out, manifest, "--lengths", "1K,2K,4K")


def test_questions_are_added_by_a_larger_sample(own: Path, tmp_path: Path, made: list[str]) -> None:
    """At 1K one question does not fit, and at 4K all units are shown."""
    out, always = tmp_path / "out", (own / "tiny.yaml", "--lengths", "1K,4K", "--set", "admission_length=2K")
    for words in (("--limit", 1), ("--limit", 2), ("--limit", 4), ()):
        ran = at(out, *always, *words)
        assert (ran.code, "is complete" in ran.out) == (0, True), ran.err
        same(out, *always, *words)
    assert "was complete already" in at(out, *always).out
    cells = lock(out)["datasets"]["mmlongdoc"]["cells"]
    assert (cells["1K"]["rejected"], cells["4K"]["ran_dry"]) == (1, 7)


def test_lengths_questions_and_datasets_are_added_at_once(
    own: Path, two: Callable[..., Path], tmp_path: Path, made: list[str]
) -> None:
    out = tmp_path / "out"
    assert at(out, two(b={"lengths": ["2K"], "sample": {"n": 2}})).code == 0
    first = len(made)
    manifest = two(a={"seed": 1}, b={"lengths": ["1K", "2K"], "sample": {"n": 5}})
    assert at(out, manifest).code == 0
    assert len(made) == len(set(made)) > first
    same(out, manifest)
    assert at(out, two(b={"lengths": ["1K", "2K"], "sample": {"n": 5}}, a={"seed": 1})).code == 0  # another order
    same(out, own / "two.yaml")


@pytest.mark.parametrize("manifest", ["mm_niah_retrieval_text", "vh_multi", "infoseek", "food101"])
def test_other_tasks_are_extended_too(manifest: str, tmp_path: Path) -> None:
    """Needles at depths, photographs, a corpus, shared contexts."""
    sample = ("--set", "source=sample", *(("--set", "retrieval.reranker=null") if manifest == "infoseek" else ()))
    out = tmp_path / "out"
    assert at(out, manifest, *sample, "--lengths", "8K", "--limit", 2).code == 0
    questions = 2 if manifest == "food101" else 3  # its questions share contexts
    words = (manifest, *sample, "--lengths", "8K,16K", "--limit", questions)
    ran = at(out, *words)
    assert ran.code == 0, ran.err
    same(out, *words)


def test_questions_that_share_contexts_are_not_added(tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ("food101", "--set", "source=sample", "--lengths", "8K")
    assert at(out, *words, "--limit", 2).code == 0
    before = hashes(out)
    refused = at(out, *words, "--limit", 3)
    assert refused.code == 2
    assert "its questions share contexts, so that further questions change the existing examples" in refused.err
    assert hashes(out) == before


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
    settings: tuple[str, ...], said: str, own: Path, finished: Path, tmp_path: Path
) -> None:
    out = Path(shutil.copytree(finished, tmp_path / "out"))
    refused = build(own, out, *settings)
    assert (refused.code, said in refused.err) == (2, True), refused.err
    assert hashes(out) == hashes(finished)


def test_rows_are_added_where_nothing_else_reads_the_table(own: Path, tmp_path: Path, made: list[str]) -> None:
    """The row numbers of the source are its ids, so only rows at the end leave the ids of the others."""
    out, manifest = tmp_path / "out", own / "tiny.yaml"
    assert build(own, out).code == 0
    write_rows(own, (*ROWS, MORE))
    ran = build(own, out, "--lengths", "1K,2K,4K")
    assert ran.code == 0, ran.err
    assert len(made) == len(set(made))
    same(out, manifest, "--lengths", "1K,2K,4K")
    kept = lock(out)["datasets"]["mmlongdoc"]["questions"]["kept"]
    assert kept == 7


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ((MORE, *ROWS), "question 'mmlongdoc_10' would no longer be in the release"),
        ((*ROWS[:4], MORE, *ROWS[4:]), "question 'mmlongdoc_10' would no longer be in the release"),
        ((*ROWS[:3], MORE, *ROWS[4:]), "question 'mmlongdoc_3' changed (samples.json changed)"),
        (ROWS[:3], "question 'mmlongdoc_3' would no longer be in the release"),
        (({**ROWS[0], "answer": "soft"}, *ROWS[1:]), "question 'mmlongdoc_0' changed (samples.json changed)"),
    ],
)
def test_rows_that_change_the_others_are_refused(
    rows: tuple[dict[str, str], ...], said: str, own: Path, finished: Path, tmp_path: Path
) -> None:
    out = Path(shutil.copytree(finished, tmp_path / "out"))
    write_rows(own, rows)
    refused = build(own, out)
    assert refused.code == 2
    assert f"dataset 'mmlongdoc': the finished release cannot be extended: {said}; nothing was changed" in refused.err
    assert hashes(out) == hashes(finished)  # nothing is left in the working folder either


def test_a_changed_row_whose_examples_stay_and_whose_counts_change_is_refused(tmp_path: Path) -> None:
    """A text that fits nowhere is added to a row: the row did run out of texts before, and does not any more."""
    (tmp_path / "filled.py").write_text(FILLED)
    rows = [
        {"id": f"r{number}", "question": "What?", "answer": "red", "fill": ["the harbour is near " * 20] * 3}
        for number in range(3)
    ]
    dataset = {
        "name": "filled",
        "builder": "filled.py:Filled",
        "source": {"rows": "rows.jsonl"},
        "lengths": ["1K", "2K", "4K"],
        "admission_length": "1K",
        "licence": "none",
    }
    manifest, out = tmp_path / "filled.yaml", tmp_path / "out"
    manifest.write_text(yaml.safe_dump({"datasets": [dataset]}))

    def write(changed: list[dict[str, Any]]) -> None:
        (tmp_path / "rows.jsonl").write_text("".join(json.dumps(each) + "\n" for each in changed))

    write(rows)
    ran = at(out, manifest)
    assert ran.code == 0, ran.err
    before = hashes(out)
    longer = {**rows[0], "fill": [*rows[0]["fill"], "the harbour is far " * 2000]}
    more = {**rows[0], "id": "r3"}
    write([longer, *rows[1:], more])
    refused = at(out, manifest)
    assert refused.code == 2
    said = "the count ran_dry of the examples at 1K changed (rows.jsonl changed); nothing was changed"
    assert f"dataset 'filled': the finished release cannot be extended: {said}" in refused.err
    assert hashes(out) == before
    write([*rows, more])
    assert at(out, manifest).code == 0
    same(out, manifest)


def test_documents_that_may_pad_the_others_are_refused(own: Path, finished: Path, tmp_path: Path) -> None:
    out = Path(shutil.copytree(finished, tmp_path / "out"))
    draw_pdf(own / "documents" / "elm.pdf", 2)
    refused = build(own, out)
    assert refused.code == 2
    said = "documents: 4 → 5 files; every context may show something from source.documents; nothing was changed"
    assert f"dataset 'mmlongdoc': the finished release cannot be extended: {said}" in refused.err


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


def test_a_damaged_release_is_not_extended(own: Path, finished: Path, tmp_path: Path) -> None:
    for name in ("mmlb_data/documentQA/mmlongdoc_K1.jsonl", "mmlb_image/mmlongbench-doc/ash/ash_page1.jpg"):
        out = Path(shutil.copytree(finished, tmp_path / Path(name).name))
        data = (out / name).read_bytes()
        (out / name).write_bytes(data[:-2] + b"  ")
        refused = build(own, out, "--lengths", "1K,2K,4K")
        assert refused.code == 2
        assert f"the release is damaged: {name}: its content is not what the lock says; put the file ba" in refused.err
        (out / name).write_bytes(data)
        assert build(own, out, "--lengths", "1K,2K,4K").code == 0


def test_an_unfinished_extension_is_continued_discarded_or_left(
    own: Path, finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = Path(shutil.copytree(finished, tmp_path / "out"))
    longer = ("--lengths", "1K,2K,4K")
    with monkeypatch.context() as patch:
        patch.setattr("mmlongbench.building.build.finish", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        assert build(own, out, *longer).code == 130
    assert hashes(out).items() >= hashes(finished).items()  # the old release is whole
    assert command("audit", out).code == 0
    assert "was complete already" in build(own, out).out
    assert (out / ".build" / "extension").is_dir()
    refused = build(own, out, "--lengths", "1K,2K,8K")
    assert "already holds an unfinished build that differs (lengths: 1K, 2K, 4K → 1K, 2K, 8K)" in refused.err
    assert "the release is finished, and --stage cannot change it" in build(own, out, "--stage", "prepare").err
    assert build(own, out, *longer).code == 0
    same(out, own / "tiny.yaml", *longer)


def test_restart_discards_an_unfinished_extension(
    own: Path, finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = Path(shutil.copytree(finished, tmp_path / "out"))
    with monkeypatch.context() as patch:
        patch.setattr("mmlongbench.building.build.finish", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        assert build(own, out, "--lengths", "1K,2K,4K").code == 130
    assert build(own, out, "--lengths", "1K,2K,8K", "--restart").code == 0
    same(out, own / "tiny.yaml", "--lengths", "1K,2K,8K")


def test_an_unfinished_extension_is_discarded_only_by_a_restart_that_can_be_planned(
    own: Path, finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = Path(shutil.copytree(finished, tmp_path / "out"))
    longer, inner = ("--lengths", "1K,2K,4K"), out / ".build" / "extension"
    with monkeypatch.context() as patch:
        patch.setattr("mmlongbench.building.build.finish", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        assert build(own, out, *longer).code == 130
    before = hashes(inner)
    assert build(own, out, *longer, "--restart", "--set", "source.documents=nowhere").code == 2
    assert hashes(inner).items() >= before.items()
    (inner / ".build" / "plan.json").unlink()
    assert "holds an unfinished build whose plan is gone" in build(own, out, *longer).err
    assert "was complete already" in build(own, out).out
    assert (inner / ".build" / "records").is_dir()
    assert build(own, out, *longer, "--restart").code == 0
    same(out, own / "tiny.yaml", *longer)


def test_a_release_at_a_url_is_not_extended(own: Path, finished: Path, tmp_path: Path) -> None:
    out = Path(shutil.copytree(finished, tmp_path / "out"))
    refused = command("build", own / "tiny.yaml", "--out", f"file://{out}", "--lengths", "1K,2K,4K")
    assert refused.code == 2
    assert (
        "the finished release at this URL differs (lengths: 1K, 2K → 1K, 2K, 4K), and a release is ext" in refused.err
    )
    assert hashes(out) == hashes(finished)


def test_min_kept_stops_an_extension_before_the_release_changes(own: Path, finished: Path, tmp_path: Path) -> None:
    out = Path(shutil.copytree(finished, tmp_path / "out"))
    stopped = build(own, out, "--lengths", "1K,2K,4K", "--min-kept", 0.9)
    assert (stopped.code, "kept 6 of 11 questions" in stopped.err) == (1, True)
    assert hashes(out).items() >= hashes(finished).items()
    assert build(own, out, "--lengths", "1K,2K,4K").code == 0


def test_an_extension_that_stops_before_anything_expensive_leaves_nothing(
    own: Path, finished: Path, tmp_path: Path
) -> None:
    out = Path(shutil.copytree(finished, tmp_path / "out"))
    stopped = build(own, out, "--lengths", "1K,2K,4K", "--strict")
    assert (stopped.code != 0, "--strict: " in stopped.err) == (True, True)
    assert hashes(out) == hashes(finished)
    assert not (out / ".build").exists()


def test_a_lock_of_other_types_is_not_extended(own: Path, finished: Path, tmp_path: Path) -> None:
    for key, value in (("lengths", "1K"), ("sample", {"n": "x"}), ("name", 5), ("source", [])):
        out = Path(shutil.copytree(finished, tmp_path / f"of-{key}"))
        found = lock(out)
        found["manifest"][0][key] = value
        (out / "build.lock.json").write_text(json.dumps(found))
        refused = build(own, out, "--lengths", "1K,2K,4K")
        assert (refused.code, refused.err.count("\n")) == (2, 1)
        assert "holds a finished release that differs" in refused.err


@pytest.mark.parametrize("text", [b"", b"not Parquet", b"other"])
def test_items_that_a_forged_lock_names_are_refused(text: bytes, own: Path, finished: Path, tmp_path: Path) -> None:
    out = Path(shutil.copytree(finished, tmp_path / "out"))
    name = "items/documentQA/mmlongdoc_K1.parquet"
    if text == b"other":
        pq.write_table(pa.table({"other": [1]}), out / name)
    else:
        (out / name).write_bytes(text)
    found = lock(out)
    found["files"][name] = {"bytes": (out / name).stat().st_size, "sha256": sha256_of(out / name)}
    (out / "build.lock.json").write_text(json.dumps(found))
    write_rows(own, (*ROWS, MORE))
    refused = build(own, out)
    assert (refused.code, refused.err.count("\n")) == (2, 1)
    assert f"{out / name}: the release cannot be extended: " in refused.err
