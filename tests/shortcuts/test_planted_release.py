"""Duplicates and leakage of a built release, as it is and with planted faults."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tiny import command

import mmlongbench as mm
from mmlongbench.io.progress import Progress
from mmlongbench.manifest.builtin_manifests import find_manifest
from mmlongbench.manifest.loading import load_manifest
from mmlongbench.release.opened import Release, open_release
from mmlongbench.shortcuts.audit import audit_shortcuts
from mmlongbench.shortcuts.findings import Finding
from mmlongbench.shortcuts.leakage import NEGATIVE
from mmlongbench.shortcuts.leakage import TWICE as TEXT_TWICE
from mmlongbench.shortcuts.overlap import ASKED_WITH, GOLD, TWICE
from mmlongbench.shortcuts.reading import asked_questions

pytestmark = pytest.mark.slow

NAMES = ("text_mmlongdoc", "infoseek", "vh_multi", "food101")
COUNTED = {TWICE, ASKED_WITH, GOLD, NEGATIVE, TEXT_TWICE}
Records = list[dict[str, Any]]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One dataset of four families, at 8K."""
    folder = tmp_path_factory.mktemp("shortcuts")
    specs = [each for each in load_manifest(find_manifest("quickstart")).datasets if each.name in NAMES]
    manifest = mm.Manifest.model_validate({"datasets": [each.model_dump(exclude_unset=True) for each in specs]})
    mm.build(manifest, folder / "release", lengths="8K", limit=6)
    return folder / "release"


def planted(built: Path, folder: Path, file: str, plant: Callable[[Records], None]) -> Path:
    """Return a copy of the release in which the records of a file are changed."""
    release = folder / "planted"
    shutil.copytree(built, release)
    path = next((release / "mmlb_data").glob(file))
    records = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    plant(records)
    path.write_text("".join(f"{json.dumps(each)}\n" for each in records), "utf-8")
    return release


def leaks(findings: list[Finding]) -> dict[tuple[str, str], tuple[str, ...]]:
    return {(each.dataset, each.kind): each.examples for each in findings if each.verdict == "leak"}


def counted(release: Release, against: Path | None = None) -> list[Finding]:
    """The findings that are counted, not estimated."""
    return [each for each in audit_shortcuts(release, Progress(False), against=against).findings if each.p is None]


def test_each_question_is_read_once_with_the_roles_of_its_units(built: Path) -> None:
    release = open_release(built)
    asked = list(asked_questions(release, "infoseek"))
    assert len({each.id for each in asked}) == len(asked) == 6
    for each in asked:
        assert {unit.role for unit in each.units} >= {"gold", "negative"}
        assert all(unit.is_gold == (unit.role == "gold") for unit in each.units)
        assert each.images
        assert each.question
    for each in asked_questions(release, "text_mmlongdoc"):
        assert all(unit.is_gold == unit.is_evidence for unit in each.units)
        assert any(unit.role == "own" for unit in each.units)


def test_some_questions_are_read_with_their_own_contexts(built: Path) -> None:
    release = open_release(built)
    every = {each.id: each for each in asked_questions(release, "infoseek")}
    some = frozenset(list(every)[1::2])
    read = list(asked_questions(release, "infoseek", 8192, some))
    assert [each.id for each in read] == [id for id in every if id in some]
    assert read == [every[each.id] for each in read]
    assert all(each.placements == (0, 1, 2) for each in read)


def test_the_difficulty_of_texts_is_told_by_length_and_printed(built: Path) -> None:
    ran = command("shortcuts", built, "--json", "--dataset", "infoseek", "--dataset", "vh_multi")
    lines = [each for each in map(json.loads, ran.out.splitlines()) if each["kind"] == "difficulty"]
    assert [(each["dataset"], each["length"], each["search"], each["questions"]) for each in lines] == [
        ("infoseek", 8192, "BM25", 6)
    ]
    assert 1 <= lines[0]["k_50"] <= lines[0]["k_90"] <= lines[0]["units"] + 1
    shown = command("shortcuts", built, "--dataset", "infoseek").out
    assert "difficulty: units to read to have half" in shown


def test_a_release_as_built_has_no_duplicates_and_no_answer_in_a_negative(built: Path) -> None:
    release = open_release(built)
    found = counted(release)
    assert {each.kind for each in found} >= COUNTED
    assert not {kind for _, kind in leaks(found)} & COUNTED


def test_a_test_image_among_the_exemplars_is_found(built: Path, tmp_path: Path) -> None:
    def plant(records: Records) -> None:
        records[2]["exemplars"][3]["image"] = records[2]["image"]

    release = open_release(planted(built, tmp_path, "ICL/food101*", plant))
    id = [each.id for each in asked_questions(release, "food101")][2]
    assert leaks(counted(release)) == {("food101", ASKED_WITH): (id,)}


def test_an_answer_in_a_negative_and_a_gold_that_is_there_twice_are_found(built: Path, tmp_path: Path) -> None:
    def plant(records: Records) -> None:
        first = next(each for each in records if any(len(answer) > 6 and answer.isalpha() for answer in each["answer"]))
        gold = first["positive_ctxs"][0]
        for record in (each for each in records if each["id"] == first["id"]):
            negative = next(each for each in record["ctxs"] if each["doc_id"] != gold["doc_id"])
            negative["text"] = gold["text"]

    release = open_release(planted(built, tmp_path, "vrag/infoseek*", plant))
    assert {kind for _, kind in leaks(counted(release))} >= {NEGATIVE, TEXT_TWICE}


def test_a_question_that_is_asked_twice_is_found(built: Path, tmp_path: Path) -> None:
    def plant(records: Records) -> None:
        records[1]["question"] = records[0]["question"].upper()
        records[1]["doc_name"] = records[0]["doc_name"]

    release = open_release(planted(built, tmp_path, "documentQA/text_mmlongdoc*", plant))
    ids = {each.id for each in list(asked_questions(release, "text_mmlongdoc"))[:2]}
    assert set(leaks(counted(release))["text_mmlongdoc", TWICE]) == ids


def test_a_release_shares_everything_with_itself(built: Path) -> None:
    shared = [each for each in counted(open_release(built), built) if "shared" in each.kind]
    assert {(each.verdict, each.found) for each in shared} == {("leak", 1)}
    assert {each.kind.split()[0] for each in shared} == {"question", "picture", "passage"}


def test_records_that_were_taken_out_by_hand_leave_the_others_their_roles(built: Path, tmp_path: Path) -> None:
    def take_out(records: Records) -> None:
        del records[:2], records[-1]

    release = planted(built, tmp_path, "*/text_mmlongdoc_K8.jsonl", take_out)
    left = list(asked_questions(open_release(release), "text_mmlongdoc"))
    assert left
    assert all(unit.role for asked in left for unit in asked.units)
