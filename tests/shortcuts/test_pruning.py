"""Drops that mend leaks: chosen and judged by learners that did not see them, written as errata, and built again."""

import json
import shlex
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest
import yaml
from context_answers import FOUR, TWO, four, predictions, public_files, two
from line_task import TASK
from once import once
from tiny import Ran, command

import mmlongbench as mm
from mmlongbench.io.progress import Progress
from mmlongbench.shortcuts.audit import ShortcutAudit
from mmlongbench.shortcuts.findings import Finding
from mmlongbench.shortcuts.guesses import GuessLesson, guess_answers
from mmlongbench.shortcuts.measured import FOLDS, Flags, Floats, Ints, Learner, Lesson, Measured, folds_of, uniforms
from mmlongbench.shortcuts.probes import Kept
from mmlongbench.shortcuts.pruning import release as of_release
from mmlongbench.shortcuts.pruning.choosing import (
    CHOOSING,
    JUDGING,
    MAX_SHARE,
    Leak,
    choose,
    judge_drops,
    known_to_judges,
)
from mmlongbench.shortcuts.pruning.dataset import DatasetDrops, leaks_of, prune_dataset
from mmlongbench.shortcuts.pruning.naming import errata_files, named, options, write_errata
from mmlongbench.shortcuts.pruning.results import Drop
from mmlongbench.shortcuts.verdicts import judge

# Choosing and judging.

FINDING = Finding(
    dataset="set",
    file="file",
    kind="answer from the question",
    verdict="leak",
    questions=0,
    clusters=0,
    measure="pairs",
    found=0.5,
    chance=0.5,
    low=0.0,
    high=0.0,
    p=0.001,
    smallest=None,
    needed=None,
    evidence="",
    examples=(),
)


def noise(seed: int, n: int = 150) -> tuple[Leak, list[str], Ints]:
    """Questions whose features tell nothing; with an aim of 0, as many are dropped as may be."""
    ids = [f"q{number}" for number in range(n)]
    features = uniforms(n * 4, "features", seed).reshape(n, 4) - 0.5
    labels = (uniforms(n, "labels", seed) < 0.5).astype(np.int64)
    return Leak(FINDING, GuessLesson(features, labels), np.arange(n), 0.0), ids, folds_of(ids)


def judged(seed: int, learner: Learner) -> tuple[float, float, float]:
    """The mean scores of noise before drops and after them by judges, and after them by those who chose."""
    leak, ids, folds = noise(seed)
    chosen = choose([leak], ids, folds, CHOOSING, MAX_SHARE)
    assert len(chosen) == 15
    dropped = np.isin(np.arange(len(ids)), list(chosen))
    known = known_to_judges([leak], ids, folds, MAX_SHARE)
    before, after = judge_drops(leak, folds, dropped, known, learner)
    naive = leak.scores(folds, CHOOSING, ~dropped, ~dropped)
    return float(np.nanmean(before)), float(np.nanmean(after)), float(np.nanmean(naive))


@pytest.mark.rare
@pytest.mark.parametrize(("learner", "runs"), [("own", 60), ("other", 4)])
def test_on_noise_the_second_audit_is_biased_neither_way(learner: Learner, runs: int) -> None:
    found = np.array([judged(seed, learner) for seed in range(runs)]) - 0.5
    errors = found.std(axis=0) / np.sqrt(runs)
    assert abs(found[:, 1].mean()) < 2.5 * errors[1]
    assert found[:, 2].mean() < -0.03  # who chose the drops would believe that they help
    if runs >= 60:
        assert 0.3 < float((found[:, 1] > found[:, 0]).mean()) < 0.7  # a drop is as often a harm as a help


@dataclass(frozen=True, slots=True)
class Spy(Lesson):
    """Records who learns from what."""

    n: int
    calls: list[tuple[frozenset[int], frozenset[int]]]

    def own(self, known: Flags, asked: Flags) -> Floats:
        self.calls.append((frozenset(np.flatnonzero(known).tolist()), frozenset(np.flatnonzero(asked).tolist())))
        found: Floats = uniforms(self.n, "spy")[asked]
        return found

    def other(self, known: Flags, asked: Flags) -> Floats:
        return self.own(known, asked)


def test_no_question_is_chosen_or_judged_by_who_saw_it_and_no_fold_is_judged_by_who_chose_in_it() -> None:
    clusters = [f"d{number // 4}" for number in range(200)]
    ids, folds, spy = [str(number) for number in range(200)], folds_of(clusters), Spy(200, [])
    leak = Leak(FINDING, spy, np.arange(200), 0.0)
    dropped = np.isin(np.arange(200), list(choose([leak], ids, folds, CHOOSING, MAX_SHARE)))
    teachers: dict[int, set[int]] = {}
    for known, asked in spy.calls:
        (fold,) = {int(folds[at]) for at in asked}
        teachers.setdefault(fold, set()).update(int(folds[at]) for at in known)
        assert not {clusters[at] for at in known} & {clusters[at] for at in asked}
    assert teachers == {fold: set(others) for fold, others in CHOOSING.items()}
    known_by_fold = known_to_judges([leak], ids, folds, MAX_SHARE)
    spy.calls.clear()
    judge_drops(leak, folds, dropped, known_by_fold, "other")
    for known, asked in spy.calls:
        (fold,) = {int(folds[at]) for at in asked}
        learned = {int(folds[at]) for at in known}
        assert learned == set(JUDGING[fold])
        assert not learned & teachers[fold]
    assert sorted([*CHOOSING[0], *JUDGING[0], 0]) == list(range(FOLDS))


def told(share: float, n: int = 600) -> DatasetDrops:
    """Prune questions in which a word tells the answer in a share of them."""
    ids = [f"q{number}" for number in range(n)]
    answers = ["Yes" if each < 0.5 else "No" for each in uniforms(n, "answers")]
    features = uniforms(n * 3, "features").reshape(n, 3) - 0.5
    features[: int(share * n), 0] = [6.0 if answer == "Yes" else -6.0 for answer in answers[: int(share * n)]]
    measured = guess_answers("answer from the question", ids, ids, answers, features, "words")
    assert measured is not None
    findings = judge([("set", "file", measured)]).findings
    assert findings[0].verdict == "leak"
    return prune_dataset(*leaks_of(findings, [measured], ids), ids, ids, MAX_SHARE)


def test_a_word_in_few_questions_is_mended_by_dropping_them() -> None:
    found = told(0.06)
    (effect,) = found.effects
    assert effect.verdict == "mended"
    assert effect.advice == ""
    assert effect.after is not None
    assert effect.after < effect.before / 2
    assert effect.other_before is not None
    assert effect.other_after is not None
    assert effect.other_after < effect.other_before / 2
    carriers = {f"q{number}" for number in range(36)}
    assert len({drop.id for drop in found.drops} & carriers) >= 27
    assert len(found.drops) <= 60
    assert found.drops[0].reason.startswith("mmlongbench shortcuts: answer from the question: ")


def test_a_word_in_many_questions_is_not_mended_and_nothing_is_dropped() -> None:
    found = told(0.5)
    assert found.drops == ()
    (effect,) = found.effects
    assert (effect.verdict, effect.after, effect.drops) == ("not mended", None, 0)
    assert "balance the answers of each wording" in effect.advice


def test_duplicates_are_dropped_but_for_the_first_of_each() -> None:
    ids = [f"q{number}" for number in range(40)]
    counted = FINDING.model_copy(
        update={
            "kind": "question asked twice",
            "questions": 40,
            "found": 0.1,
            "chance": 0.0,
            "carriers": ("q1", "q3"),
        }
    )
    found = prune_dataset(*leaks_of([counted], [], ids), ids, ids, MAX_SHARE)
    assert [drop.id for drop in found.drops] == ["q1", "q3"]
    without = prune_dataset(*leaks_of([counted], [], ids), ids, ids, 0.0)
    assert (without.drops, without.effects[0].verdict) == ((), "not mended")


def test_a_leak_that_cannot_be_learned_again_says_what_mends_it() -> None:
    ids = [f"q{number}" for number in range(40)]
    found = prune_dataset(*leaks_of([FINDING], [], ids), ids, ids, MAX_SHARE)
    assert (found.drops, [effect.verdict for effect in found.effects]) == ((), ["not mended"])


# The errata of a pruned set.

ERRATA = {"q7": {"source": "a letter", "set": {"answer": "007"}, "was": {"answer": "7"}}}
LOCK = mm.Lock.model_validate(
    {
        "format": 1,
        "manifest": [{"name": "walks_pruned", "drawn_as": "walks", "sample": {"n": 9}}],
        "datasets": {
            "walks_pruned": {
                "questions": {"read": 9, "kept": 9, "not_sampled": 0},
                "cells": {},
                "documents": {"usable": 0, "refused": {}, "renamed": {}},
                "errata": ERRATA,
            }
        },
        "files": {},
    }
)


def test_a_set_that_is_pruned_again_keeps_its_errata_its_draws_and_has_a_name_of_its_own(tmp_path: Path) -> None:
    drop = Drop(id="true", kind="k", reason='mmlongbench shortcuts: k: "quoted": # and\nmore ☂')
    pruned = named(LOCK, "walks_pruned", 9, [drop])
    assert (pruned.name, pruned.drawn_as, pruned.sample) == ("walks_pruned2", "walks", 8)
    assert options(pruned, Path("my errata.yaml")) == (
        "--set 'walks_pruned.errata=my errata.yaml' --set walks_pruned.drawn_as=walks "
        "--set walks_pruned.sample.n=8 --set walks_pruned.name=walks_pruned2"
    )
    write_errata(pruned, LOCK, tmp_path / "e.yaml")
    written = yaml.safe_load((tmp_path / "e.yaml").read_text("utf-8"))
    assert written == {**ERRATA, "true": {"source": drop.reason, "drop": True}}


def test_several_datasets_have_files_of_their_own_and_none_is_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "e.yaml"
    assert errata_files(path, ["a"]) == {"a": path}
    assert errata_files(path, ["a", "b"]) == {"a": tmp_path / "e.a.yaml", "b": tmp_path / "e.b.yaml"}
    (tmp_path / "e.b.yaml").write_text("{}", "utf-8")
    with pytest.raises(mm.ReleaseError, match=r"e\.b\.yaml: already exists, and is not overwritten"):
        errata_files(path, ["a", "b"])


QUESTION, SHAPE = "answer from the question", "answer from the shape of the context"


def test_each_leak_is_learned_at_its_own_length_and_what_is_left_at_another_one_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """At 1K a word tells the answer of some questions, at 2K the shape of the context that of others."""
    ids = [f"q{number}" for number in range(600)]
    answers = ["Yes" if each < 0.5 else "No" for each in uniforms(600, "answers")]
    carriers = {(QUESTION, 1024): range(36), (SHAPE, 2048): range(300, 336)}
    cells: dict[int, list[Measured]] = {1024: [], 2048: []}
    for length in cells:
        for kind in (QUESTION, SHAPE):
            own = carriers.get((kind, length), range(0))
            features = uniforms(1800, "a" if own else "c").reshape(600, 3) - 0.5
            for at in own:
                features[at, 0] = 6.0 if answers[at] == "Yes" else -6.0
            measured = guess_answers(kind, ids, ids, answers, features, "words")
            assert measured is not None
            cells[length].append(replace(measured, length=length))
    findings = judge([("walks_pruned", "file", each) for cell in cells.values() for each in cell]).findings
    assert {(each.kind, each.length, each.verdict) for each in findings} == {(*at, "leak") for at in carriers}
    left = next(each for each in findings if each.kind == QUESTION).model_copy(update={"length": 2048})
    monkeypatch.setattr(of_release, "_kept", lambda *given: Kept(ids=ids, clusters=ids, shapes=[(given[-1],)]))
    monkeypatch.setattr(of_release, "measure", lambda kept: cells[int(kept.shapes[0][0])])
    monkeypatch.setattr(of_release, "audit_shortcuts", lambda *_, **__: ShortcutAudit((left,), None, ()))
    (found,) = of_release.prune_shortcuts(Opened(), ShortcutAudit(findings, None, ()), Progress(False))  # type: ignore[arg-type]
    for (kind, _), own in carriers.items():
        dropped = {drop.id for drop in found.drops if drop.kind == kind}
        assert len(dropped & {f"q{at}" for at in own}) > len(dropped) / 5  # 6 % of all questions
    assert {effect.kind: effect.verdict for effect in found.effects} == {QUESTION: "reduced", SHAPE: "mended"}
    assert all(bool(effect.advice) == (effect.kind == QUESTION) for effect in found.effects)
    (note,) = found.notes
    assert QUESTION in note
    assert "2K" in note


@dataclass(frozen=True)
class Opened:
    """A release with a lock alone."""

    lock: mm.Lock = LOCK


# From a release with leaks over `--prune` to the set that is left.

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


def word(number: int) -> str:
    """The last word of a line: one word of 24 lines, and words of their own of the others."""
    return "maple" if number < USUAL else f"tree{'abcdefghij'[number % 10]}{'abcdefghij'[number // 10 % 10]}{number}"


def build(source: Path, out: Path, *options: str) -> Path:
    ran = command("build", source / "lines.yaml", "--out", out, *options)
    assert ran.code == 0, ran.err
    return out


@dataclass(frozen=True)
class Pruning:
    """The sources of a release with two leaks, and what `--prune` printed and wrote; not to be changed."""

    source: Path
    ran: Ran
    errata: Path

    def drops(self) -> dict[str, dict[str, object]]:
        found: dict[str, dict[str, object]] = yaml.safe_load(self.errata.read_text("utf-8"))
        return found

    def cells(self, kind: str) -> list[str]:
        """The row of a finding in the table of effects."""
        _, table = self.ran.out.split("points above chance, before and after the drops")
        (row,) = [line for line in table.splitlines() if line.startswith(f"lines    {kind} ")]
        return row.removeprefix(f"lines    {kind} ").split()


@pytest.fixture(scope="module")
def pruning(tmp_path_factory: pytest.TempPathFactory) -> Pruning:
    def make(folder: Path) -> None:
        rows = [{"number": n, "text": f"A story of {3 * n} words ends with {word(n)}"} for n in range(QUESTIONS)]
        (folder / "lines.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
        (folder / "lines.py").write_text(TASK.replace(SHOWN, f"{SHOWN} if {DIFFERS}"), "utf-8")
        (folder / "lines.yaml").write_text(MANIFEST, "utf-8")
        build(folder, folder / "release")

    source = once(tmp_path_factory, "leaky-lines", make)
    errata = tmp_path_factory.mktemp("pruning") / "errata.yaml"
    ran = command("shortcuts", source / "release", "--task", source / "lines.py", "--prune", errata)
    assert ran.code == 0, ran.err
    return Pruning(source, ran, errata)


def test_what_drops_mend_is_under_five_points_by_both_learners(pruning: Pruning) -> None:
    before, after, other_before, other_after, drops, verdict = pruning.cells("answer from priors")
    assert (before, other_before, verdict) == ("+12.0", "+12.0", "mended")
    assert float(after) < 5
    assert float(other_after) < 5
    errata = pruning.drops()
    assert int(drops) == len(errata) <= QUESTIONS // 10
    assert all(each["drop"] for each in errata.values())
    said = "answer from priors: 12.0 of 100 questions answered right"
    assert all(said in str(each["source"]) for each in errata.values())


def test_what_drops_cannot_mend_is_said_with_what_would(pruning: Pruning) -> None:
    assert pruning.cells("gold from its place")[1:] == ["–", "–", "–", "0", "not", "mended"]
    said = "gold from its place: drops of at most 10% of the questions do not mend it; instead: draw the place of gold"
    assert said in pruning.ran.out


def test_the_pruned_set_is_built_under_its_new_name_and_tells_less(pruning: Pruning, tmp_path: Path) -> None:
    left = QUESTIONS - len(pruning.drops())
    said = pruning.ran.out.splitlines()
    assert f"drops {QUESTIONS - left} questions of 200; the set that is left is lines_pruned:" in said[-2]
    given = shlex.split(said[-1])[3:]
    assert given[1::2] == [
        f"lines.errata={pruning.errata}",
        "lines.drawn_as=lines",
        f"lines.sample.n={left}",
        "lines.name=lines_pruned",
    ]
    again = build(pruning.source, tmp_path / "pruned", *given)
    ran = command("shortcuts", again, "--task", pruning.source / "lines.py", "--json")
    found = {each["kind"]: each for each in map(json.loads, ran.out.splitlines())}
    assert {each["dataset"] for each in found.values()} == {"lines_pruned"}
    assert max(each["questions"] for each in found.values()) == left
    assert found["answer from priors"]["found"] < 0.06
    assert found["answer from priors"]["verdict"] != "leak"
    assert found["gold from its place"]["verdict"] == "leak"


def test_the_errata_say_under_which_name_they_are_used_and_are_not_overwritten(pruning: Pruning) -> None:
    written = pruning.errata.read_text("utf-8")
    assert "#   errata: errata.yaml\n#   drawn_as: lines\n" in written
    assert "#   name: lines_pruned\n" in written
    given = ("--task", pruning.source / "lines.py", "--prune", pruning.errata)
    refused = command("shortcuts", pruning.source / "release", *given)
    assert refused.code == 2
    assert "errata.yaml: already exists, and is not overwritten; give --prune another file" in refused.err
    assert pruning.errata.read_text("utf-8") == written


# Questions that models solve blind.


def test_questions_that_are_listed_as_blind_are_dropped_and_binary_ones_never(tmp_path: Path) -> None:
    fours, twos = [four(number, 0.0) for number in range(60)], [two(number, 0.0) for number in range(60)]
    public, answers = public_files(tmp_path, {FOUR: fours, TWO: twos}), tmp_path / "predictions"
    for model in ("a", "b", "c", "d"):
        for file, records, blind in ((FOUR, fours, 5), (TWO, twos, 60)):
            for context, right in (("", 60), ("none", blind)):
                path = answers / f"{model}.{context or 'full'}.{blind}.jsonl"
                predictions(path, file, records, lambda number, depth, n=right: number < n, context, model)  # type: ignore[misc]
    out = tmp_path / "out"
    out.mkdir()
    given = ("shortcuts", public, "--predictions", answers, "--prune")
    ran = command(*given, out / "errata.yaml")
    assert ran.code == 0, ran.err
    assert [path.name for path in out.iterdir()] == ["errata.retrieval-image.yaml"]
    assert "errata.retrieval-image.yaml: drops 5 questions of 60; the set that is left is retrieval-image_pruned:" in (
        ran.out
    )
    said = "mmlongbench shortcuts: answered without the context by a, b, c, d: 4 of 4 answers are right, luck 0.0039"
    written = yaml.safe_load((out / "errata.retrieval-image.yaml").read_text("utf-8"))
    assert written == {f"mm-niah-{number}": {"source": said, "drop": True} for number in range(5)}
    again = command(*given, out / "errata.yaml")
    assert again.code == 2
    assert "errata.retrieval-image.yaml: already exists, and is not overwritten" in again.err
    ran = command(*given, out / "others.yaml", "--json")
    pruned = [json.loads(line)["pruned"] for line in ran.out.splitlines()[1:]]
    assert {each["dataset"]: len(each["drops"]) for each in pruned} == {"retrieval-image": 5, "vh_single": 0}
    assert {each["name"] for each in pruned} == {"retrieval-image_pruned", "vh_single_pruned"}
