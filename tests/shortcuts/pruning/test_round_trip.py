"""From a release with leaks over `--prune` to the set that is left: what drops can mend is mended, under a new name."""

import json
import shlex
from dataclasses import dataclass
from pathlib import Path

import pytest
from line_task import TASK
from tiny import Ran, command

from mmlongbench.manifest.errata import load_errata

pytestmark = pytest.mark.slow

QUESTIONS, USUAL = 200, 24
MANIFEST = """datasets:
  - {name: lines, builder: "lines.py:Lines", source: {rows: lines.jsonl}, lengths: [1K], admission_length: 1K,
     sample: {n: 200}, reserve: 16}
"""
SHOWN = "for other in self.others(row, sources)"
DIFFERS = "abs(other.number - row.number) < 8 and other.text.split()[-1] != row.text.split()[-1]"
"""Near lines are shown beside gold, without those that have the answer. Gold is the last line of all contexts or the
first, which no drop mends.
"""


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """200 lines, of which 24 end with one word and the others with words of their own."""
    folder = tmp_path_factory.mktemp("lines")
    rows = [{"number": n, "text": f"A story of {3 * n} words ends with {word(n)}"} for n in range(QUESTIONS)]
    (folder / "lines.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    (folder / "lines.py").write_text(TASK.replace(SHOWN, f"{SHOWN} if {DIFFERS}"), "utf-8")
    (folder / "lines.yaml").write_text(MANIFEST, "utf-8")
    return folder


def word(number: int) -> str:
    """The last word of a line."""
    return "maple" if number < USUAL else f"tree{'abcdefghij'[number % 10]}{'abcdefghij'[number // 10 % 10]}{number}"


@pytest.fixture(scope="module")
def release(source: Path) -> Path:
    """The release of these lines; not to be changed."""
    return built(source, source / "release")


def built(source: Path, out: Path, *options: str) -> Path:
    ran = command("build", source / "lines.yaml", "--out", out, *options)
    assert ran.code == 0, ran.err
    return out


@dataclass(frozen=True)
class Pruning:
    """What `--prune` printed and wrote."""

    ran: Ran
    errata: Path


@pytest.fixture(scope="module")
def pruning(source: Path, release: Path) -> Pruning:
    """The release with its drops; not to be changed."""
    out = source / "errata.yaml"
    ran = command("shortcuts", release, "--task", source / "lines.py", "--prune", out)
    assert ran.code == 0, ran.err
    return Pruning(ran, out)


def cells(pruning: Pruning, kind: str) -> list[str]:
    """The row of a finding in the table of effects."""
    _, table = pruning.ran.out.split("points above chance, before and after the drops")
    (row,) = [line for line in table.splitlines() if line.startswith(f"lines    {kind} ")]
    return row.removeprefix(f"lines    {kind} ").split()


def test_what_drops_mend_is_under_five_points_by_both_learners(pruning: Pruning) -> None:
    before, after, other_before, other_after, drops, verdict = cells(pruning, "answer from priors")
    assert (before, other_before, verdict) == ("+12.0", "+12.0", "mended")
    assert float(after) < 5
    assert float(other_after) < 5
    errata = load_errata(pruning.errata)
    assert int(drops) == len(errata) <= QUESTIONS // 10
    assert all(each.drop for each in errata.values())
    assert all("answer from priors: 12.0 of 100 questions answered right" in each.source for each in errata.values())


def test_what_drops_cannot_mend_is_said_with_what_would(pruning: Pruning) -> None:
    assert cells(pruning, "gold from its place")[1:] == ["–", "–", "–", "0", "not", "mended"]
    said = "gold from its place: drops of at most 10% of the questions do not mend it; instead: draw the place of gold"
    assert said in pruning.ran.out


def test_the_pruned_set_is_built_under_its_new_name_and_tells_less(
    source: Path, pruning: Pruning, tmp_path: Path
) -> None:
    left = QUESTIONS - len(load_errata(pruning.errata))
    said = pruning.ran.out.splitlines()
    assert f"drops {QUESTIONS - left} questions of 200; the set that is left is lines_pruned:" in said[-2]
    options = shlex.split(said[-1])[3:]
    assert options[1::2] == [
        f"lines.errata={pruning.errata}",
        "lines.drawn_as=lines",
        f"lines.sample.n={left}",
        "lines.name=lines_pruned",
    ]
    again = built(source, tmp_path / "pruned", *options)
    ran = command("shortcuts", again, "--task", source / "lines.py", "--json")
    found = {each["kind"]: each for each in map(json.loads, ran.out.splitlines())}
    assert {each["dataset"] for each in found.values()} == {"lines_pruned"}
    assert max(each["questions"] for each in found.values()) == left
    assert found["answer from priors"]["found"] < 0.06
    assert found["answer from priors"]["verdict"] != "leak"
    assert found["gold from its place"]["verdict"] == "leak"


def test_the_errata_say_under_which_name_they_are_used_and_are_not_overwritten(
    source: Path, release: Path, pruning: Pruning
) -> None:
    written = pruning.errata.read_text("utf-8")
    assert "#   errata: errata.yaml\n#   drawn_as: lines\n" in written
    assert "#   name: lines_pruned\n" in written
    refused = command("shortcuts", release, "--task", source / "lines.py", "--prune", pruning.errata)
    assert refused.code == 2
    assert "errata.yaml: already exists, and is not overwritten; give --prune another file" in refused.err
    assert pruning.errata.read_text("utf-8") == written
