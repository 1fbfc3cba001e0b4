"""Builds that lose many questions: they say so, and stop if the user wants that."""

import json
import shutil
from pathlib import Path

import pytest
from tiny import ROWS, build, command, hashes, lock, row, write_rows

import mmlongbench as mm
from mmlongbench.building.rejects import read_rejects
from mmlongbench.building.shortfalls import refuse_losses_of, shortfalls_of
from mmlongbench.release.lock import read_lock

LOST = row("oak.pdf", "Where is it?", "nowhere", "[1]")
SAID = """\
warning: mmlongdoc: kept 1 of 9 questions
  rejected 8: missing-document
  mmlongdoc_1: {first}
  mmlongdoc_2: {first2}
  mmlongdoc_3: {first3}
  {out}/rejects.jsonl lists all with what to do; --min-kept SHARE stops such a build
"""


@pytest.fixture
def few(source: Path, tmp_path: Path) -> Path:
    """The tiny source with a table of which only the first row can be asked."""
    own = Path(shutil.copytree(source, tmp_path / "source"))
    write_rows(own, (ROWS[0], *[LOST] * 8))
    return own


def words(out: Path) -> list[str]:
    """The rejects as sentences."""
    return [str(reject.fault) for reject in read_rejects(out / "rejects.jsonl")]


def rejected(out: Path) -> list[dict[str, str]]:
    return [json.loads(line) for line in (out / "rejects.jsonl").read_text().splitlines()]


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
    assert stopped.err == (
        "error: --min-kept 0.5: dataset 'mmlongdoc' kept 1 of 9 questions (8 × missing-document); first "
        f"mmlongdoc_1: {words(out)[0]}; {out}/rejects.jsonl lists all with what to do; correct these, or give a "
        "smaller share to go on\n"
    )
    assert not (out / "build.lock.json").exists()
    assert len(rejected(out)) == 8
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
    refused = build(few, out, "--min-kept", 0.5)
    assert (refused.code, "kept 1 of 9 questions" in refused.err) == (1, True)
    assert hashes(out) == before


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


def test_questions_that_do_not_fit_at_a_length_are_lost_there(source: Path, tmp_path: Path) -> None:
    own, out = Path(shutil.copytree(source, tmp_path / "source")), tmp_path / "out"
    write_rows(own, (*ROWS[:4], ROWS[9]))
    ran = build(own, out, *LONGER)
    assert ran.code == 0
    assert ran.err.startswith(
        "warning: mmlongdoc: kept 4 of 5 questions\n  rejected 1: does-not-fit at 1K\n  mmlongdoc_4: "
    )
    refused = build(own, out, *LONGER, "--min-kept", 0.9)
    assert (refused.code, "kept 4 of 5 questions (1 × does-not-fit at 1K); first mmlongdoc_4: " in refused.err) == (
        1,
        True,
    )
    assert build(own, out, *LONGER, "--min-kept", 0.8).code == 0


def test_min_kept_stops_after_the_records_before_images_are_made(source: Path, tmp_path: Path) -> None:
    own, out = Path(shutil.copytree(source, tmp_path / "source")), tmp_path / "out"
    write_rows(own, (*ROWS[:4], ROWS[9]))
    stopped = build(own, out, *LONGER, "--min-kept", 0.9)
    assert (stopped.code, "kept 4 of 5 questions (1 × does-not-fit at 1K); first mmlongdoc_4: " in stopped.err) == (
        1,
        True,
    )
    assert [line["id"] for line in rejected(out)] == ["mmlongdoc_4"]
    assert not (out / "mmlb_image").exists()
    assert build(own, out, *LONGER).code == 0
    assert build(own, tmp_path / "other", *LONGER).code == 0
    assert hashes(out) == hashes(tmp_path / "other")


def test_min_kept_counts_the_lengths_that_an_extension_takes_whole(source: Path, tmp_path: Path) -> None:
    own, out = Path(shutil.copytree(source, tmp_path / "source")), tmp_path / "out"
    write_rows(own, (*ROWS[:4], ROWS[9]))
    assert build(own, out, *LONGER).code == 0
    stopped = build(own, out, *LONGER, "--lengths", "1K,2K,4K", "--min-kept", 0.9)
    assert (stopped.code, "(1 × does-not-fit at 1K)" in stopped.err) == (1, True)
    inner = out / ".build" / "extension"
    assert f"; {inner / 'rejects.jsonl'} lists all" in stopped.err
    assert [line["id"] for line in rejected(inner)] == ["mmlongdoc_4"]
    assert list((inner / ".build" / "records").rglob("*.jsonl"))  # the next build does not make them again
    assert build(own, out, *LONGER, "--lengths", "1K,2K,4K", "--min-kept", 0.8).code == 0


def test_a_release_whose_rejects_are_not_listed_is_refused_without_them(few: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert build(few, out).code == 0
    (out / "rejects.jsonl").write_text("")
    (lost,) = shortfalls_of(read_lock(out), out)
    assert (lost.kept, lost.of, lost.first) == (1, 9, ())
    with pytest.raises(mm.TooFewKept, match=r"kept 1 of 9 questions \(8 × missing-document\); .* lists all"):
        refuse_losses_of(read_lock(out), out, 0.5)
