"""The questions of a build: which are drawn, which are rejected and why, and what is done if many are lost."""

import json
import shutil
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest
from halted import refused
from tiny import KEPT, REJECTED, ROWS, build, command, hashes, lock, records, rejects, row, write_rows

import mmlongbench as mm


def ids(release: Path, length: str) -> list[str]:
    return [record["id"] for record in records(release, length)]


def questions(release: Path) -> dict[str, int]:
    counts = lock(release)["datasets"]["mmlongdoc"]["questions"]
    assert counts["read"] == counts["kept"] + counts["not_sampled"] + sum(counts["rejected"].values())
    return {key: counts[key] for key in ("read", "kept", "not_sampled")}


def test_the_same_questions_are_in_the_file_of_every_length_in_source_order(finished: Path) -> None:
    assert ids(finished, "1K") == ids(finished, "2K") == [*KEPT]


def test_every_rejected_question_has_one_line_and_the_counts_add_up(finished: Path) -> None:
    lines = rejects(finished)
    assert {line["id"]: line["reason"] for line in lines} == REJECTED
    assert len(lines) == len(REJECTED)
    assert {line["length"] for line in lines} == {None}
    assert questions(finished) == {"read": len(ROWS), "kept": len(KEPT), "not_sampled": 0}
    assert lock(finished)["datasets"]["mmlongdoc"]["questions"]["rejected"] == Counter(REJECTED.values())


def test_a_reject_says_what_was_expected_and_found(finished: Path) -> None:
    (line,) = (line for line in rejects(finished) if line["id"] == "mmlongdoc_9")
    assert line["found"] == (
        "mmlongdoc_9: the question and its 5 required units need 1106 tokens, with a reserve of 64 that is 146 over 1K"
    )
    assert line["todo"] == "raise admission_length to keep it in longer files"


@pytest.mark.parametrize("lengths", ["1K", "2K,4K", "4K,1K,4K"])
def test_the_lengths_that_are_built_do_not_change_which_questions_are_in(
    lengths: str, source: Path, tmp_path: Path
) -> None:
    assert build(source, tmp_path, "--lengths", lengths, "--limit", "3").code == 0
    built = [ids(tmp_path, length) for length in dict.fromkeys(lengths.split(","))]
    assert built == [["mmlongdoc_1", "mmlongdoc_4", "mmlongdoc_10"]] * len(built)


def test_a_smaller_limit_is_the_start_of_a_larger_one_and_nothing_is_remembered(source: Path, tmp_path: Path) -> None:
    chosen = []
    for limit in (1, 4, 100):
        out = tmp_path / "out"
        shutil.rmtree(out, ignore_errors=True)
        assert build(source, out, "--lengths", "1K", "--limit", limit).code == 0
        chosen.append(set(ids(out, "1K")))
        counts = questions(out)
        assert (counts["read"], counts["kept"]) == (len(ROWS), min(limit, len(KEPT)))
    assert [len(found) for found in chosen] == [1, 4, 6]
    assert all(fewer <= more for fewer, more in pairwise(chosen))
    assert build(source, tmp_path / "new", "--lengths", "1K", "--limit", limit).code == 0
    assert hashes(out) == hashes(tmp_path / "new")


def test_the_limit_does_not_raise_the_sample_of_the_manifest(source: Path, tmp_path: Path) -> None:
    assert build(source, tmp_path, "--lengths", "1K", "--set", "sample.n=2", "--limit", "4").code == 0
    assert len(ids(tmp_path, "1K")) == 2


def test_another_seed_draws_another_sample_from_the_same_rows(source: Path, tmp_path: Path) -> None:
    samples = []
    for seed in range(3):
        out = tmp_path / str(seed)
        assert build(source, out, "--lengths", "1K", "--limit", "2", "--set", f"sample.seed={seed}").code == 0
        samples.append(tuple(ids(out, "1K")))
    assert len(set(samples)) > 1


def test_a_sample_by_document_keeps_its_questions_together(source: Path, finished: Path, tmp_path: Path) -> None:
    each = Counter(record["doc_name"] for record in records(finished, "1K"))
    for limit in (2, 4, 5):
        out = tmp_path / str(limit)
        assert build(source, out, "--lengths", "1K", "--set", "sample.by=doc", "--limit", limit).code == 0
        drawn = Counter(record["doc_name"] for record in records(out, "1K"))
        assert drawn.total() == limit
        assert sum(drawn[document] != each[document] for document in drawn) <= 1  # the last may be cut


def test_a_stratified_sample_is_spread_evenly(source: Path, tmp_path: Path) -> None:
    for limit in (2, 4):
        out = tmp_path / str(limit)
        assert build(source, out, "--lengths", "1K", "--set", "sample.stratify=doc_type", "--limit", limit).code == 0
        assert Counter(record["doc_type"] for record in records(out, "1K")) == {"Tree": limit / 2, "Bark": limit / 2}


def test_a_sample_by_a_field_that_rows_have_not_names_the_nearest(source: Path, tmp_path: Path) -> None:
    ran = build(source, tmp_path, "--set", "sample.stratify=doctype")
    refused(ran, "error: dataset 'mmlongdoc': sample: ", "'doctype'; did you mean 'doc_type'?")


def test_a_length_below_the_admission_gives_rejects_with_that_length(source: Path, tmp_path: Path) -> None:
    assert build(source, tmp_path, "--set", "admission_length=2K").code == 0
    assert ids(tmp_path, "2K") == sorted([*KEPT, "mmlongdoc_9"], key=lambda id: int(id.split("_")[1]))
    assert ids(tmp_path, "1K") == [*KEPT]
    (line,) = (line for line in rejects(tmp_path) if line["length"] is not None)
    assert (line["id"], line["length"], line["reason"]) == ("mmlongdoc_9", 1024, "does-not-fit")
    assert lock(tmp_path)["datasets"]["mmlongdoc"]["cells"] == {
        "1K": {"examples": 6, "rejected": 1, "ran_dry": 0},
        "2K": {"examples": 7, "rejected": 0, "ran_dry": 0},
    }
    assert questions(tmp_path) == {"read": 11, "kept": 7, "not_sampled": 0}


def test_a_length_that_nothing_fits_gets_no_file_and_that_is_said(source: Path, tmp_path: Path) -> None:
    built = build(source, tmp_path, "--set", "admission_length=2K", "--set", "reserve=950")
    assert built.code == 0
    assert "no file at 1K: no question fits it" in built.out
    assert [path.name for path in (tmp_path / "mmlb_data" / "documentQA").iterdir()] == ["mmlongdoc_K2.jsonl"]
    assert lock(tmp_path)["datasets"]["mmlongdoc"]["cells"]["1K"]["examples"] == 0
    assert len([line for line in rejects(tmp_path) if line["length"] == 1024]) == len(ids(tmp_path, "2K"))


def test_a_source_of_which_nothing_can_be_kept_still_ends_with_a_lock(source: Path, tmp_path: Path) -> None:
    built = build(source, tmp_path, "--set", "reserve=1000")
    assert built.code == 1
    assert questions(tmp_path) == {"read": 11, "kept": 0, "not_sampled": 0}
    assert len(rejects(tmp_path)) == 11
    assert not (tmp_path / "mmlb_data").exists()


def test_strict_stops_at_the_first_reject_and_names_it(source: Path, finished: Path, tmp_path: Path) -> None:
    stopped = build(source, tmp_path / "out", "--strict")
    assert stopped.code == 1
    assert stopped.err.startswith(
        "error: --strict: mmlongdoc, mmlongdoc_5: samples.json, row 5, doc: missing-document: "
        "expected a document 'oak' among the sources, found none"
    )
    assert not (tmp_path / "out" / "build.lock.json").exists()
    assert build(source, tmp_path / "out").code == 0  # without it, the same build goes on
    assert hashes(tmp_path / "out") == hashes(finished)


def test_strict_stops_at_a_question_that_does_not_fit_a_length(own: Path, tmp_path: Path) -> None:
    good = own
    write_rows(good, (ROWS[0], ROWS[9]))
    stopped = build(good, tmp_path / "out", "--strict", "--set", "admission_length=2K")
    assert stopped.code == 1
    assert (
        "--strict: mmlongdoc, mmlongdoc_1: samples.json, row 1: does-not-fit: "
        "expected a prompt within 1K, found mmlongdoc_1" in stopped.err
    )


def test_a_question_can_have_any_text(own: Path, tmp_path: Path) -> None:
    texts = ("an <image> in it", "line\nbreak\r\n\t", "🌲 ▁ \u2028 é e\u0301", "{braces} %s \\", "x" * 300, "\u0000")
    write_rows(own, tuple({**ROWS[0], "question": text} for text in texts))
    assert build(own, tmp_path / "out").code == 0
    assert [record["question"] for record in records(tmp_path / "out", "1K")] == [
        "an < image > in it",
        *texts[1:],
    ]
    audited = command("audit", tmp_path / "out", "--json")
    assert audited.code == 0
    assert [json.loads(line)["examples"] for line in audited.out.splitlines()] == [6, 6]


# Questions that are lost


LOST = row("oak.pdf", "Where is it?", "nowhere", "[1]")
SAID = """\
warning: mmlongdoc: kept 1 of 9 questions
  rejected 8: missing-document
  mmlongdoc_1: {first}
  mmlongdoc_2: {first2}
  mmlongdoc_3: {first3}
  {out}/rejects.jsonl lists all; --min-kept SHARE stops such a build
"""


@pytest.fixture
def few(own: Path) -> Path:
    """The tiny source with a table of which only the first row can be asked."""
    write_rows(own, (ROWS[0], *[LOST] * 8))
    return own


def words(out: Path) -> list[str]:
    """The rejects as sentences."""
    told = []
    for line in rejects(out):
        place = ", ".join(part for part in (line["file"], line["place"], line["field"]) if part)
        told.append(f"{place}: {line['reason']}: expected {line['expected']}, found {line['found']}; {line['todo']}")
    return told


def test_a_build_that_keeps_one_of_nine_says_so_with_reasons_and_questions(few: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    ran = build(few, out)
    assert ran.code == 0
    first, first2, first3 = words(out)[:3]
    assert ran.err == SAID.format(out=out, first=first, first2=first2, first3=first3)
    assert build(few, out).err == ran.err  # a release that was complete already says it too
    assert build(few, out, "-q").err == ""


def test_a_build_that_keeps_nearly_all_says_nothing(few: Path, tmp_path: Path) -> None:
    write_rows(few, (*[ROWS[0]] * 9, LOST))  # 9 of 10
    assert build(few, tmp_path / "out").err == ""
    write_rows(few, (*[ROWS[0]] * 8, LOST))
    assert build(few, tmp_path / "other").err.startswith("warning: mmlongdoc: kept 8 of 9 questions\n")


def test_rows_that_are_skipped_or_not_sampled_are_not_lost(few: Path, tmp_path: Path) -> None:
    write_rows(few, ROWS[:5])
    ran = build(few, tmp_path / "out", "--set", "exclude=[ash]", "--limit", 2, "--min-kept", 1)
    assert (ran.code, ran.err) == (0, "")


def test_min_kept_stops_a_build_and_a_smaller_share_lets_it_go_on(few: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    stopped = build(few, out, "--min-kept", 0.5)
    assert stopped.code == 1
    refused(
        stopped,
        "error: --min-kept 0.5: dataset 'mmlongdoc' kept 1 of 9 questions (8 × missing-document); first ",
        f"mmlongdoc_1: {words(out)[0]}; {out}/rejects.jsonl lists all",
        "give a smaller share to go on",
        code=1,
    )
    assert not (out / "build.lock.json").exists()
    assert len(rejects(out)) == 8
    assert build(few, out, "--min-kept", 0.1).code == 0
    assert build(few, tmp_path / "other").code == 0
    assert hashes(out) == hashes(tmp_path / "other")


def test_a_corrected_table_completes_the_build_that_min_kept_stopped(few: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert build(few, out, "--min-kept", 1).code == 1
    write_rows(few, ROWS[:5])
    assert build(few, out, "--min-kept", 1).code == 0
    assert lock(out)["datasets"]["mmlongdoc"]["questions"]["kept"] == 5


def test_min_kept_refuses_a_finished_release_and_leaves_it(few: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert build(few, out).code == 0
    before = hashes(out)
    refused(build(few, out, "--min-kept", 0.5), "kept 1 of 9 questions (8 × missing-document)", code=1)
    (out / "rejects.jsonl").write_text("")
    refused(build(few, out, "--min-kept", 0.5), "rejects.jsonl: expected ")
    (out / "rejects.jsonl").unlink()
    assert hashes(out).items() <= before.items()


def test_strict_stops_the_stages_that_reject(source: Path, own: Path, tmp_path: Path) -> None:
    refused(
        build(source, tmp_path / "rows", "--stage", "prepare", "--strict"), "--strict: mmlongdoc, mmlongdoc_5", code=1
    )
    write_rows(own, (ROWS[0], ROWS[9]))
    words = (own, tmp_path / "out", "--set", "admission_length=2K", "--strict", "--stage")
    assert build(*words, "prepare").code == 0
    refused(build(*words, "records"), "--strict: ", "does-not-fit", code=1)


def test_min_kept_belongs_to_the_stage_that_chooses(few: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert build(few, out, "--stage", "prepare", "--min-kept", 0.5).code == 1
    assert build(few, out, "--stage", "prepare").code == 0
    assert "options of --stage prepare" in build(few, out, "--stage", "records", "--min-kept", 0.5).err
    assert [build(few, out, "--stage", name).code for name in ("records", "images")] == [0, 0]
    assert "warning: mmlongdoc: kept 1 of 9 questions\n" in command("finish", out).err


@pytest.mark.parametrize("share", [-0.1, 1.1, "0.5", True, None])
def test_a_share_outside_0_to_1_is_refused(share: object, few: Path, tmp_path: Path) -> None:
    with pytest.raises(mm.ManifestError, match=r"min_kept .*: expected a share from 0 to 1"):
        mm.build(few / "tiny.yaml", tmp_path / "out", min_kept=share)  # type: ignore[arg-type]


def test_the_door_says_what_was_lost(few: Path, tmp_path: Path) -> None:
    with pytest.raises(mm.TooFewKept, match="kept 1 of 9"):
        mm.build(few / "tiny.yaml", tmp_path / "out", min_kept=0.5)
    (lost,) = mm.build(few / "tiny.yaml", tmp_path / "out").shortfalls
    assert (lost.dataset, lost.kept, lost.of, lost.rejected) == ("mmlongdoc", 1, 9, {"missing-document": 8})


LONGER = ("--set", "admission_length=2K")
"""One of the seven questions fits 2K, and not 1K."""


def test_questions_that_do_not_fit_at_a_length_are_lost_there(own: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    write_rows(own, (*ROWS[:4], ROWS[9]))
    said = "kept 4 of 5 questions (1 × does-not-fit at 1K); first mmlongdoc_4: "
    refused(build(own, out, *LONGER, "--min-kept", 0.9), said, code=1)
    assert [line["id"] for line in rejects(out)] == ["mmlongdoc_4"]
    assert not (out / "mmlb_image").exists()  # it stops before they are made
    ran = build(own, out, *LONGER)
    assert ran.code == 0
    assert ran.err.startswith(
        "warning: mmlongdoc: kept 4 of 5 questions in the smallest file\n"
        "  rejected 1: does-not-fit at 1K\n  mmlongdoc_4: "
    )
    refused(build(own, out, *LONGER, "--min-kept", 0.9), said, code=1)
    assert build(own, out, *LONGER, "--min-kept", 0.8).code == 0
    assert build(own, tmp_path / "other", *LONGER).code == 0
    assert hashes(out) == hashes(tmp_path / "other")


def test_min_kept_counts_the_lengths_that_an_extension_takes_whole(own: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    write_rows(own, (*ROWS[:4], ROWS[9]))
    assert build(own, out, *LONGER).code == 0
    stopped = build(own, out, *LONGER, "--lengths", "1K,2K,4K", "--min-kept", 0.9)
    inner = out / ".build" / "extension"
    refused(stopped, "(1 × does-not-fit at 1K)", f"; {inner / 'rejects.jsonl'} lists all", code=1)
    assert [line["id"] for line in rejects(inner)] == ["mmlongdoc_4"]
    assert list((inner / ".build" / "records").rglob("*.jsonl"))  # the next build does not make them again
    assert build(own, out, *LONGER, "--lengths", "1K,2K,4K", "--min-kept", 0.8).code == 0
