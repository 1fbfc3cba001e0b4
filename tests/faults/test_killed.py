"""Builds that are killed go on to the same bytes: before and after renames, again and again, with workers."""

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from crash_harness import Lives, held_locks, lives_of, of_session, signalled, wait_for
from samples import Sources
from tiny import build, hashes, leftovers

from mmlongbench.draws import Draws

FEW, MANY = 3, int(os.environ.get("MMLONGBENCH_KILLS", "10"))
"""Renames that are drawn, beside the first and the last; the second number is that of the rare tests."""
how_many = pytest.mark.parametrize("drawn", [FEW, pytest.param(MANY, marks=pytest.mark.rare)])
OF_TWO = ("records/mmlongdoc/2K", "documents/mmlongdoc/cedar", "cedar_page1.jpg", "mmlongdoc_K1.parquet")
"""Files before which a build of two workers is killed: one of each stage, and one of the release."""


@pytest.fixture(scope="module")
def lives(source: Path) -> Iterator[Lives]:
    with lives_of(source / "tiny.yaml") as forked:
        yield forked


def goes_on(lives: Lives, out: Path, expected: dict[str, str]) -> int:
    """Build again after a kill, and return the number of renames that were left to do."""
    again = lives.one(out)
    assert again.code == 0, again.said
    assert hashes(out) == expected
    assert not leftovers(out)
    return again.renames


@how_many
def test_a_build_killed_at_any_rename_goes_on_to_the_same_bytes(
    drawn: int, lives: Lives, finished: Path, tmp_path: Path
) -> None:
    expected = hashes(finished)
    whole = lives.one(tmp_path / "whole")
    assert (whole.code, hashes(tmp_path / "whole")) == (0, expected)
    last, draws = whole.renames, Draws(("kills",))
    numbers = draws.order("renames", range(2, last - 1))[:drawn]
    kills = [(number, draws.choice(f"{number}", ("before", "after"))) for number in numbers]
    kills += [(1, "before"), (last, "before"), (last, "after")]
    kills += [(1, "after"), (last - 1, "before"), (last - 1, "after")] if drawn == MANY else []
    for number, kind in kills:
        out = tmp_path / f"{number}-{kind}"
        assert lives.one(out, kind, number).was_killed, number
        left = {path: sha for path, sha in hashes(out).items() if not path.startswith(".") and ".tmp-" not in path}
        assert left.items() <= expected.items()  # a file under its final name is complete
        assert ("build.lock.json" in left) == ((number, kind) == (last, "after"))
        assert goes_on(lives, out, expected) < whole.renames or number <= 3


def test_a_build_killed_again_and_again_ends_with_the_same_bytes(lives: Lives, finished: Path, tmp_path: Path) -> None:
    for _ in range(8):  # the two files of the plan, and one shard each
        assert lives.one(tmp_path / "out", "after", 3).was_killed
    goes_on(lives, tmp_path / "out", hashes(finished))


@pytest.mark.parametrize("kills", [1, pytest.param(3, marks=pytest.mark.rare)])
def test_a_build_that_cuts_and_indexes_a_corpus_goes_on_too(
    kills: int, sample: Callable[[str], Sources], tmp_path: Path
) -> None:
    """Its corpus, index and prices are files, a folder and a database that other libraries write."""
    source = {name: str(path) for name, path in sample("viquae").items()}
    about = {"name": "viquae", "builder": "vrag", "reader": "viquae", "options": {"gold": "span"}, "licence": "none"}
    dataset = {**about, "corpus": source.pop("corpus"), "source": source, "lengths": ["8K"], "sample": {"n": 2}}
    (tmp_path / "manifest.yaml").write_text(yaml.safe_dump({"datasets": [dataset]}))
    with lives_of(tmp_path / "manifest.yaml") as lives:
        whole = lives.one(tmp_path / "whole")
        assert whole.code == 0, whole.said
        for number in Draws(("kills of a corpus",)).order("rename", range(1, 9))[:kills]:
            assert lives.one(tmp_path / f"{number}", "after", number).was_killed
            goes_on(lives, tmp_path / f"{number}", hashes(tmp_path / "whole"))


@how_many
def test_an_extension_killed_at_a_rename_leaves_the_release_or_goes_on(
    drawn: int, source: Path, finished: Path, tmp_path: Path
) -> None:
    """With a lock the folder holds the old release or the new one; without, the same command completes the new one."""
    (dataset,) = yaml.safe_load((source / "tiny.yaml").read_text())["datasets"]
    dataset["source"] = {name: str(source / path) for name, path in dataset["source"].items()}
    longer = [{**dataset, "lengths": ["1K", "2K", "4K"]}, {**dataset, "name": "second", "lengths": ["1K"]}]
    (tmp_path / "longer.yaml").write_text(yaml.safe_dump({"datasets": longer}))
    before = hashes(finished)
    with lives_of(tmp_path / "longer.yaml") as lives:
        assert lives.one(tmp_path / "at-once").code == 0
        expected = hashes(tmp_path / "at-once")
        whole = lives.one(shutil.copytree(finished, tmp_path / "whole"))
        assert whole.code == 0, whole.said
        assert hashes(tmp_path / "whole") == expected
        moves = set()
        numbers, last = range(1, whole.renames + 1), 5 if drawn == MANY else 2
        order = Draws(("kills of an extension",)).order("rename", numbers[:-last])
        for number in (*order[: drawn - 1], *numbers[-last:]):
            out = shutil.copytree(finished, tmp_path / f"{number}")
            assert lives.one(out, "after" if number % 2 else "before", number).was_killed, number
            left = {path: sha for path, sha in hashes(out).items() if not path.startswith(".")}
            if "build.lock.json" in left:
                assert left in (before, expected)
            else:
                moves.add(number)
            goes_on(lives, out, expected)
            shutil.rmtree(out)
    assert len(moves) > (3 if drawn == MANY else 0)  # it was killed while it moved files


@pytest.mark.parametrize("part", [OF_TWO[0], *(pytest.param(part, marks=pytest.mark.rare) for part in OF_TWO[1:])])
def test_workers_of_a_killed_build_end_free_their_locks_and_it_goes_on(
    part: str, source: Path, finished: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    with signalled(source, out, part, signal.SIGKILL, "--workers", 2) as process:
        assert process.wait() == -signal.SIGKILL
        wait_for(lambda: not of_session(process.pid))
    assert not held_locks(out)
    assert not (out / "build.lock.json").exists()
    assert build(source, out).code == 0
    assert hashes(out) == hashes(finished)
    assert not leftovers(out)
