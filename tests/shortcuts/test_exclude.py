"""Questions that carry shortcuts: written as errata, and left out when the release is built again."""

import json
import shlex
from pathlib import Path

import numpy as np
import pytest
import yaml
from asked_questions import judged
from context_answers import FOUR, TWO, four, predictions, public_files, two
from line_task import TASK
from tiny import command

import mmlongbench as mm
from mmlongbench.io.progress import Progress
from mmlongbench.shortcuts.audit import audit_shortcuts, carriers, exclude_files, leaks_left
from mmlongbench.shortcuts.findings import PERMUTATIONS, Finding, Measured

ROWS, ASKED, USUAL = 70, 60, 20
MANIFEST = """datasets:
  - {name: lines, builder: "lines.py:Lines", source: {rows: lines.jsonl}, lengths: [1K], admission_length: 1K,
     sample: {n: 60}, reserve: 16, errata: known.yaml}
"""
KNOWN = {"line-59": {"source": "a reader", "set": {"text": "It ends with Ash"}}}


def test_the_questions_to_exclude_are_the_fewest_that_tell_most_and_at_most_a_tenth() -> None:
    def strongest(right: int) -> tuple[str, ...]:
        ids = tuple(f"q{number:03}" for number in range(100))
        scores, null = (np.arange(100) < right).astype(float), np.full(PERMUTATIONS, 0.05)
        return judged(Measured("kind", "measure", ids, ids, scores, null, "e", chance=0.0)).carriers

    assert strongest(9) == ("q000", "q001", "q002", "q003", "q004")  # 4 of 95 are under 5 %
    assert strongest(40) == tuple(f"q{number:03}" for number in range(10))


def leak(kind: str, *ids: str, dataset: str = "a", is_counted: bool = False) -> Finding:
    """A leak that these questions carry, the strongest first."""
    scores, null = np.ones(10), np.zeros(PERMUTATIONS)
    found = judged(Measured(kind, "measure", tuple(map(str, range(10))), ("c",) * 10, scores, null, "e", chance=0.0))
    return found.model_copy(update={"dataset": dataset, "carriers": ids, "p": None if is_counted else found.p})


def test_at_most_a_tenth_of_a_dataset_is_excluded_for_all_leaks_together() -> None:
    leaks = [
        leak("one", "x1", "x2", "both", "x3"),
        leak("two", "y1", "both", "y2"),
        leak("twice", "w1", "w2", is_counted=True),
        leak("three", "z1", "z2", dataset="b"),
        leak("four", "v1", dataset="small"),
    ]
    chosen = carriers(leaks, {"a": 59, "b": 200, "small": 9})
    assert chosen == {
        "a": {"w1": "twice", "w2": "twice", "both": "one, two", "x1": "one", "y1": "two"},
        "b": {"z1": "three", "z2": "three"},
    }
    assert [*carriers(leaks, {"a": 19, "b": 9, "small": 9})["a"]] == ["w1"]


def test_leaks_that_are_left_and_new_ones_are_named() -> None:
    before = [leak("one"), leak("two"), leak("three", dataset="b")]
    open = leak("one").model_copy(update={"verdict": "undecided", "found": 0.788, "chance": 0.507})
    clean = leak("five").model_copy(update={"verdict": "clean"})
    before.append(leak("counted", dataset="b").model_copy(update={"p": None}))
    after = [leak("two"), open, leak("four"), leak("one", dataset="c"), clean]
    assert leaks_left([*before, leak("five")], after) == {
        "a": "of 3 leaks 1 left (two), 1 undecided (one: found 79, chance 51), 1 clean (five); 1 new (four)",
        "b": "of 2 leaks 1 gone (counted), 1 not tried (three); none new",
        "c": "1 new (one)",
    }


def test_a_release_built_without_them_tells_less_and_keeps_its_errata(tmp_path: Path) -> None:
    words = ["maple" if n < USUAL else f"tree{'abcdefghij'[n % 10]}{n}" for n in range(ROWS)]
    rows = [
        {"id": f"line-{n}", "number": n, "text": f"A story of {3 * n} words ends with {words[n]}"} for n in range(ROWS)
    ]
    (tmp_path / "lines.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    (tmp_path / "lines.py").write_text(TASK, "utf-8")
    (tmp_path / "lines.yaml").write_text(MANIFEST, "utf-8")
    (tmp_path / "known.yaml").write_text(yaml.safe_dump(KNOWN), "utf-8")
    build = ("build", tmp_path / "lines.yaml")
    ran = command(*build, "--out", tmp_path / "release")
    assert ran.code == 0, ran.err
    audit = ("shortcuts", tmp_path / "release", "--task", tmp_path / "lines.py", "--write-exclude")
    ran = command(*audit, tmp_path / "exclude.yaml")
    assert ran.code == 0, ran.err
    errata = yaml.safe_load((tmp_path / "exclude.yaml").read_text("utf-8"))
    assert {id: erratum for id, erratum in errata.items() if "drop" not in erratum} == KNOWN
    dropped = {id: erratum["source"] for id, erratum in errata.items() if "drop" in erratum}
    assert any("answer from priors" in source for source in dropped.values())
    assert len(dropped) <= ASKED // 10
    said, build_line, sample, left = ran.out.splitlines()[-4:]
    assert said.endswith(f"exclude.yaml: {len(dropped)} of {ASKED} questions of lines; build without them:")
    given, size = shlex.split(build_line)[3:], ASKED - len(dropped)
    errata_option = f"lines.errata={tmp_path / 'exclude.yaml'}"
    assert given == ["--set", errata_option, "--set", f"lines.sample.n={size}"]
    assert "without sample.n, the sample would be filled again" in sample
    releases = [mm.open_release(tmp_path / "release", tasks=tmp_path / "lines.py")]
    without = audit_shortcuts(releases[0], Progress(), without={"lines": {*dropped}})
    assert max(finding.questions for finding in without.findings) == size
    kinds = sorted(finding.kind for finding in without.leaks)
    assert all(kind in left for kind in kinds)
    assert left.startswith("  audited without them: of ")
    assert f" {len(kinds)} left (" in left or not kinds
    assert command(*build, "--out", tmp_path / "again", *given).code == 0
    releases.append(mm.open_release(tmp_path / "again", tasks=tmp_path / "lines.py"))
    before_ids, ids = ({*release.ids("lines", 1024)} for release in releases)
    assert ids == before_ids - {*dropped}
    found = [mm.find_shortcuts(tmp_path / name, tasks=tmp_path / "lines.py").findings for name in ("release", "again")]
    before, after = (next(each.found for each in findings if "priors" in each.kind) for findings in found)
    assert after < before - 0.05
    refused = command(*audit, tmp_path / "exclude.yaml")
    assert refused.code == 2
    assert "exclude.yaml: already exists, and is not overwritten; give --write-exclude another file" in refused.err


def test_several_datasets_have_files_of_their_own_and_none_is_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "e.yaml"
    assert exclude_files(path, ["a"]) == {"a": path}
    assert exclude_files(path, ["a", "b"]) == {"a": tmp_path / "e.a.yaml", "b": tmp_path / "e.b.yaml"}
    (tmp_path / "e.b.yaml").write_text("{}", "utf-8")
    with pytest.raises(mm.ReleaseError, match=r"e\.b\.yaml: already exists, and is not overwritten"):
        exclude_files(path, ["a", "b"])


def test_questions_that_are_listed_as_blind_are_excluded_and_binary_ones_never(tmp_path: Path) -> None:
    fours, twos = [four(number, 0.0) for number in range(60)], [two(number, 0.0) for number in range(60)]
    public, answers = public_files(tmp_path, {FOUR: fours, TWO: twos}), tmp_path / "predictions"
    for model in ("a", "b", "c", "d"):
        for file, records, blind in ((FOUR, fours, 5), (TWO, twos, 60)):
            for context, right in (("", 60), ("none", blind)):
                path = answers / f"{model}.{context or 'full'}.{blind}.jsonl"
                predictions(path, file, records, lambda number, depth, n=right: number < n, context, model)  # type: ignore[misc]
    out = tmp_path / "out"
    out.mkdir()
    ran = command("shortcuts", public, "--predictions", answers, "--write-exclude", out / "e.yaml")
    assert ran.code == 0, ran.err
    assert [path.name for path in out.iterdir()] == ["e.retrieval-image.yaml"]
    assert "e.retrieval-image.yaml: 5 of 60 questions of retrieval-image; build without them:" in ran.out
    said = "mmlongbench shortcuts: answered without the context by a, b, c, d: 4 of 4 answers are right, luck 0.0039"
    written = yaml.safe_load((out / "e.retrieval-image.yaml").read_text("utf-8"))
    assert written == {f"mm-niah-{number}": {"source": said, "drop": True} for number in range(5)}
