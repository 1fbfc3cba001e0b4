"""Takedown: nothing of an asset remains, and everything else keeps its bytes."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from once import linked
from taken_down import asked_for, assets, change_assets, remains
from tiny import command, hashes, lock, records, rejects

import mmlongbench.task as mt

DAY = "2026-11-25"
PAGE = "mmlongbench-doc/birch/birch_page1.jpg"


def take_down(release: Path, kind: str, id: str, out: Path) -> dict[str, Any]:
    """Take something out; what the command says as JSON."""
    ran = command("takedown", release, f"--{kind}", id, "--out", out, "--date", DAY, "--json")
    assert ran.code == 0, ran.err
    said: dict[str, Any] = json.loads(ran.out)
    return said


def is_whole(release: Path) -> bool:
    return (command("audit", release, "-q").err, command("verify", release, "-q").err) == ("", "")


def tombstones(release: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (release / "takedowns.jsonl").read_bytes().splitlines()]


@pytest.mark.parametrize(
    ("kind", "id"),
    [
        ("document", "ash"),
        ("document", "dogwood"),
        ("image", PAGE),
        ("image", "mmlongbench-doc/cedar/cedar_page0.jpg"),
    ],
)
def test_nothing_of_what_is_taken_out_remains(kind: str, id: str, trees: Path, tmp_path: Path) -> None:
    gone = asked_for(trees, kind, id)
    assert gone
    said = take_down(trees, kind, id, tmp_path / "new")
    assert remains(trees, tmp_path / "new", said, gone) == []
    assert is_whole(tmp_path / "new")
    assert said["tombstone"].items() >= {"kind": kind, "id": id, "date": DAY}.items()
    assert tombstones(tmp_path / "new") == [said["tombstone"]]


def test_of_many_shots_both_public_files_lose_what_a_picture_was_in(two_tasks: Path, tmp_path: Path) -> None:
    image = assets(two_tasks, "food101", "image")[0]["name"]
    said, out = take_down(two_tasks, "image", image, tmp_path / "new"), tmp_path / "new"
    public = "mmlb_data/ICL/food101_K8.json"
    assert lock(out)["files"].get(public) != lock(two_tasks)["files"][public]
    assert said["tombstone"]["examples"][public] > 0
    assert remains(two_tasks, out, said, asked_for(two_tasks, "image", image)) == []
    assert is_whole(out)
    article = next(row["document"] for row in assets(two_tasks, "retrieval-text", "text") if row["document"])
    told = take_down(out, "document", article, tmp_path / "next")
    assert told["exclude_from"] == []
    assert "exclude: [" not in told["exclude"]
    assert [stone["id"] for stone in tombstones(tmp_path / "next")] == [image, article]


def test_a_source_takes_out_all_of_it_and_what_may_be_of_it(two_tasks: Path, tmp_path: Path) -> None:
    old = linked(two_tasks, tmp_path / "old")
    change_assets(old, lambda rows: [{**row, "source": ""} if row["dataset"] == "food101" else row for row in rows])
    unknown = [row for row in assets(old, "food101") if row["kind"] != "source"]
    said = take_down(old, "source", "food101/data", tmp_path / "other")
    assert said["sourceless"] == len(unknown) > 0
    assert remains(old, tmp_path / "other", said, unknown) == []
    assert command("verify", tmp_path / "other", "-q").err == ""


def test_the_command_says_what_went_and_the_day_is_in_no_lock(trees: Path, tmp_path: Path) -> None:
    out = tmp_path / "new"
    said = command("takedown", trees, "--document", "ash", "--out", out, "--date", DAY)
    assert said.code == 0, said.err
    assert 'for a rebuild, in the manifest: exclude: ["ash"] (in mmlongdoc, text_mmlongdoc)' in said.out
    (stone,) = tombstones(out)
    assert (stone["date"], stone["kind"], stone["id"]) == (DAY, "document", "ash")
    dropped = sum(stone["examples"].values())
    added = [line for line in rejects(out) if line["reason"] == "taken-down"]
    assert dropped >= len(added) > 0
    assert command("takedown", trees, "--document", "ash", "--out", tmp_path / "b", "--date", "2027-01-01").code == 0
    assert lock(tmp_path / "b") == lock(out)


def test_a_second_takedown_keeps_the_tombstone_of_the_first(trees: Path, tmp_path: Path) -> None:
    take_down(trees, "image", PAGE, tmp_path / "one")
    take_down(tmp_path / "one", "document", "ash", tmp_path / "two")
    assert [stone["id"] for stone in tombstones(tmp_path / "two")] == [PAGE, "ash"]
    assert is_whole(tmp_path / "two")


REFUSED: list[tuple[tuple[str, ...], str]] = [
    (("--source", "document"), "did you mean 'documents'?"),
    ((), "--document, --image and --source"),
    (("--image", "x", "--source", "y"), "--document, --image and --source"),
    (("--source", "documents"), "nothing would be left"),
]


def test_what_is_not_there_and_a_takedown_of_everything_are_refused(trees: Path, tmp_path: Path) -> None:
    for words, said in REFUSED:
        ran = command("takedown", trees, *words, "--out", tmp_path / "new")
        assert (ran.code, said in ran.err) == (2, True), (words, ran)
    assert not (tmp_path / "new").exists()


def test_an_extension_does_not_put_back_what_was_taken_out(trees: Path, tmp_path: Path) -> None:
    take_down(trees, "document", "ash", tmp_path / "new")
    manifest = yaml.safe_load((trees.parent / "m.yaml").read_text("utf-8"))
    for dataset in manifest["datasets"]:
        dataset["lengths"] = ["1K", "2K", "4K"]
    (tmp_path / "m.yaml").write_text(yaml.safe_dump(manifest), "utf-8")
    ran = command("build", tmp_path / "m.yaml", "--out", tmp_path / "new", "-q")
    assert (ran.code, "takedowns.jsonl" in ran.err) == (2, True)


def test_a_source_of_questions_takes_out_every_example_of_its_dataset_and_its_licences(
    trees: Path, tmp_path: Path
) -> None:
    """No image or text is of this source; the other dataset and its claims stay."""
    assert asked_for(trees, "source", "mmlongdoc/samples") == []
    old, new = linked(trees, tmp_path / "old"), tmp_path / "new"
    data = Path("mmlb_data/documentQA")
    claims = "".join(json.dumps({"id": each["id"], "claims": ["So."]}) + "\n" for each in records(trees, "1K"))
    for name in ("mmlongdoc", "text_mmlongdoc"):
        (old / data / f"{name}_claims.jsonl").write_text(claims, "utf-8")
    common = {"length": None, "reason": "long-form-answer", "expected": "at most 5 words", "field": "answer"}
    with (old / "rejects.jsonl").open("a", encoding="utf-8") as file:
        for name in ("mmlongdoc", "text_mmlongdoc"):
            file.write(json.dumps({"dataset": name, "id": "x", **common, "found": "as old as hills"}) + "\n")
    take_down(old, "source", "mmlongdoc/samples", new)
    assert not [path for path in lock(new)["files"] if "/mmlongdoc_" in path]
    assert [path for path in lock(new)["files"] if "/text_mmlongdoc_" in path]
    assert not (new / data / "mmlongdoc_claims.jsonl").exists()
    assert (new / data / "text_mmlongdoc_claims.jsonl").read_text("utf-8") == claims
    found = {line["dataset"]: line["found"] for line in rejects(new) if line["id"] == "x"}
    assert found == {"mmlongdoc": "taken out", "text_mmlongdoc": "as old as hills"}
    assert {row["dataset"] for row in assets(new)} == {"text_mmlongdoc"}
    rights = command("rights", new, "--json")
    assert (rights.code, "mmlongdoc/" in rights.out.replace("text_mmlongdoc/", "")) == (0, False)


def test_a_line_that_is_no_object_is_not_passed_on(trees: Path, tmp_path: Path) -> None:
    path = tmp_path / "lines.jsonl"
    path.write_text('{"id": "a"}\n\n{"id": "b"}\n[]\n', "utf-8")
    kept = mt.readers.JsonLines().without(path, lambda record: record["id"] == "a")
    assert [next(kept), next(kept)] == [b"\n", b'{"id": "b"}\n']
    with pytest.raises(mt.metrics.ReleaseError, match=r"lines\.jsonl, line 4: expected a JSON object"):
        next(kept)


def test_a_question_about_a_withdrawn_document_goes_though_it_shows_another(finished: Path, tmp_path: Path) -> None:
    old, file = linked(finished, tmp_path / "old"), "mmlb_data/documentQA/mmlongdoc_K1.jsonl"
    lines = [{**each, "doc_name": "ash"} if each["id"] == "mmlongdoc_10" else each for each in records(old, "1K")]
    (old / file).unlink()
    (old / file).write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), "utf-8")
    take_down(old, "document", "ash", tmp_path / "new")
    assert "mmlongdoc_10" not in [each["id"] for each in records(tmp_path / "new", "1K")]


def test_a_takedown_does_not_write_into_its_release(trees: Path) -> None:
    before = hashes(trees)
    for inside in (trees, trees / "new", trees / "mmlb_data/new"):
        ran = command("takedown", trees, "--document", "ash", "--out", inside)
        assert ran.code == 2
        assert "not empty" in ran.err or "inside the release" in ran.err
    assert hashes(trees) == before


def test_a_takedown_appears_whole_or_not_at_all(trees: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is stopped near its end; then it is done in the same place."""

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    words = ("takedown", trees, "--document", "ash", "--out", tmp_path / "new")
    with monkeypatch.context() as patched:
        patched.setattr("mmlongbench.publishing.takedown.near_images", stop)
        assert command(*words).code == 130
    assert [*tmp_path.iterdir()] == []
    assert command(*words).code == 0
    assert is_whole(tmp_path / "new")


def test_rejects_that_name_a_document_quote_nothing_once_it_is_taken_out(finished: Path, tmp_path: Path) -> None:
    """A document whose name is a part of another one's is not that one, and a line that is no JSON stays."""
    old = linked(finished, tmp_path / "old")
    more = {"dataset": "mmlongdoc", "id": "y", "length": None, "reason": "r", "field": "f", "expected": "ashes"}
    with (old / "rejects.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps({**more, "found": "page 9 of mash"}) + "\n")
    take_down(old, "document", "ash", tmp_path / "new")
    before, after = rejects(old), [line for line in rejects(tmp_path / "new") if line["reason"] != "taken-down"]
    nothing = {"expected": "taken out", "found": "taken out"}
    assert after == [{**line, **nothing} if line["id"] == "mmlongdoc_7" else line for line in before]
