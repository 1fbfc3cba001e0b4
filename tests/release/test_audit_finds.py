import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from tiny import Ran, command, records

pytestmark = pytest.mark.slow
DATA = Path("mmlb_data") / "documentQA"
FILE = "documentQA/mmlongdoc_K1.jsonl"
IMAGES = Path("mmlb_image") / "mmlongbench-doc"
BYTES = "the bytes are not those of the lock"


@pytest.fixture
def release(finished: Path, tmp_path: Path) -> Path:
    shutil.copytree(finished, tmp_path / "release")
    return tmp_path / "release"


def change(release: Path, line: int, edit: Callable[[dict[str, Any]], object]) -> None:
    """Edit one record of the 1K file, lines from 1."""
    found = records(release, "1K")
    edit(found[line - 1])
    text = "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in found)
    (release / DATA / "mmlongdoc_K1.jsonl").write_text(text, "utf-8")


def problems(release: Path) -> dict[tuple[str, str], str]:
    """(file, kind) → where first; the exit code and the lines for people agree."""
    audited = command("audit", release, "--json")
    assert audited.code == 1
    files = map(json.loads, audited.out.splitlines())
    found = {(file["file"], p["problem"]): (p["count"], p["first"]) for file in files for p in file["problems"]}
    lines = command("audit", release, "-q").err.splitlines()
    assert lines == [f"{file}: {kind}: {n}×, first {first}" for (file, kind), (n, first) in found.items()]
    return {key: first for key, (_, first) in found.items()}


def test_a_release_as_it_was_built_has_no_problem(release: Path) -> None:
    assert command("audit", release, "-q") == Ran(0, "", "")


@pytest.mark.parametrize(("field", "part"), [("length", None), ("tokens.text", "text"), ("tokens.image", "image")])
def test_an_edited_count_differs_from_the_recount(field: str, part: str | None, release: Path) -> None:
    (before,) = (record for record in records(release, "1K")[1:2])
    right = before["tokens"][part] if part else before["length"]

    def edit(record: dict[str, Any]) -> None:
        if part:
            record["tokens"][part] += 1
        else:
            record["length"] += 1

    change(release, 2, edit)
    found = problems(release)
    assert found == {
        (FILE, BYTES): "the whole file",
        (FILE, f"{field} differs from the recount"): f"line 2, mmlongdoc_1: {right + 1} against {right}",
    }


def test_an_edited_reserve_differs_from_the_lock(release: Path) -> None:
    change(release, 1, lambda record: record["tokens"].update(reserve=0))
    assert problems(release)[FILE, "tokens.reserve differs from the lock"] == "line 1, mmlongdoc_0: 0 against 64"


def test_an_edited_question_differs_from_the_recount(release: Path) -> None:
    change(release, 3, lambda record: record.update(question=record["question"] + " Please."))
    found = problems(release)
    assert (FILE, "length differs from the recount") in found
    assert found[FILE, "tokens.text differs from the recount"].startswith("line 3, mmlongdoc_2: ")


def test_an_edited_answer_changes_the_bytes_and_differs_from_other_lengths(release: Path) -> None:
    change(release, 3, lambda record: record.update(answer='["green"]'))
    other, kind = FILE.replace("K1", "K2"), "the answer of a question differs between files"
    assert problems(release) == {
        (FILE, BYTES): "the whole file",
        (FILE, kind): f"mmlongdoc_2: from {other}",
        (other, kind): f"mmlongdoc_2: from {FILE}",
    }


def test_a_record_over_its_length_is_found_even_where_its_counts_are_right(release: Path) -> None:
    longer = records(release, "2K")[3]
    change(release, 4, lambda record: record.update(longer))
    found = problems(release)
    assert found[FILE, "over its length"] == f"line 4, mmlongdoc_3: {longer['length']} + 64 > 1024"
    assert {kind for _, kind in found} == {BYTES, "over its length", "the items differ from the prompt"}


def test_a_missing_image_is_found_in_every_file_that_shows_it(release: Path) -> None:
    path = records(release, "1K")[0]["page_list"][0]
    (release / "mmlb_image" / path).unlink()
    found = problems(release)
    assert found.pop(("mmlb_image", "missing file")) == f"mmlb_image/{path}"
    assert {file for file, _ in found} == {FILE, "documentQA/mmlongdoc_K2.jsonl"}
    assert all(f"image {path!r}: is missing" in first for first in found.values())


def test_a_swapped_image_of_another_size_is_found(release: Path) -> None:
    path = records(release, "1K")[0]["page_list"][0]
    Image.new("RGB", (800, 400)).save(release / "mmlb_image" / path)
    found = problems(release)
    assert found[FILE, "tokens.image differs from the recount"].endswith(": 784 against 994")
    assert (FILE, "over its length") in found


def test_a_file_that_is_no_image_is_found(release: Path) -> None:
    path = records(release, "1K")[0]["page_list"][0]
    (release / "mmlb_image" / path).write_bytes(b"none")
    said = f"image {path!r}: cannot be read: UnidentifiedImageError"
    assert said in problems(release)[FILE, "the prompt cannot be rebuilt and counted"]


@pytest.mark.parametrize("path", ["../../ash/ash_page0.jpg", "/etc/ash/ash_page0.jpg", "link/ash_page0.jpg"])
def test_an_image_path_that_leaves_the_root_is_not_followed(path: str, release: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    Image.new("RGB", (400, 400)).save(tmp_path / "outside" / "ash_page0.jpg")
    (release / "mmlb_image" / "link").symlink_to(tmp_path / "outside")
    change(release, 1, lambda record: record["page_list"].__setitem__(0, path))
    said = f"line 1, mmlongdoc_0: image {path!r}: the path leaves the image root"
    assert problems(release)[FILE, "the prompt cannot be rebuilt and counted"] == said


@pytest.mark.parametrize("value", [3, None, [], "x.jpg", "a/page", "\0/page0.jpg", {}])
def test_an_image_path_that_is_none_is_a_problem_and_no_crash(value: object, release: Path) -> None:
    change(release, 1, lambda record: record["page_list"].__setitem__(0, value))
    assert (FILE, "the prompt cannot be rebuilt and counted") in problems(release)


@pytest.mark.parametrize("name", ["mmlongdoc_K4.jsonl", "other_K1.jsonl", "mmlongdoc_K0.jsonl", "notes.txt"])
def test_an_extra_file_is_found(name: str, release: Path) -> None:
    shutil.copy(release / DATA / "mmlongdoc_K1.jsonl", release / DATA / name)
    kind = (
        "file is not in the lock" if name == "mmlongdoc_K4.jsonl" else "no dataset of the lock has a file of this name"
    )
    assert problems(release) == {(f"documentQA/{name}", kind): "the whole file"}


def test_a_missing_file_is_found(release: Path) -> None:
    (release / DATA / "mmlongdoc_K1.jsonl").unlink()
    assert problems(release) == {(FILE, "missing file"): "the lock names it"}
    shutil.rmtree(release / "mmlb_data")
    assert len(problems(release)) == 2


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"{", "expected one JSON object, found Expecting property name"),
        (b"[1]", "expected a JSON object, found list"),
        (b'{"a": "\xff"}', "expected one JSON object, found 'utf-8' codec can't decode"),
    ],
)
def test_a_line_that_is_no_record_is_named(line: bytes, said: str, release: Path) -> None:
    path = release / DATA / "mmlongdoc_K1.jsonl"
    lines = path.read_bytes().splitlines()
    path.write_bytes(b"\n".join([*lines[:2], line, *lines[2:]]) + b"\n")
    assert problems(release)[FILE, "the record cannot be read"].startswith(f"mmlongdoc_K1.jsonl, line 3: {said}")


def test_a_dropped_line_changes_the_bytes_and_an_empty_file_has_no_examples(release: Path) -> None:
    path = release / DATA / "mmlongdoc_K1.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    found = problems(release)
    assert {kind for _, kind in found} == {
        BYTES,
        "items of examples that the file does not have",
        "a question of another length is missing",
        "the number of examples differs from the lock",
    }
    assert found[FILE, "the number of examples differs from the lock"] == "5 against 6"
    path.write_bytes(b"")
    assert (FILE, "no examples") in problems(release)


@pytest.mark.parametrize("field", ["tokens", "question", "doc_name", "page_list"])
def test_a_missing_field_is_named_with_file_and_line(field: str, release: Path) -> None:
    change(release, 5, lambda record: record.pop(field))
    assert problems(release)[FILE, f"the field {field!r} is missing"] == "line 5, mmlongdoc_4"


def test_a_missing_reserve_is_named(release: Path) -> None:
    change(release, 5, lambda record: record["tokens"].pop("reserve"))
    assert problems(release)[FILE, "the field 'reserve' is missing"] == "line 5, mmlongdoc_4"


@pytest.mark.parametrize("tokens", [3, "x", None, [], {"reserve": "x"}, {"reserve": None}])
def test_tokens_of_another_type_are_a_problem_and_no_crash(tokens: object, release: Path) -> None:
    change(release, 5, lambda record: record.update(tokens=tokens))
    assert (FILE, "the prompt cannot be rebuilt and counted") in problems(release)


def test_only_the_edited_record_is_named_first_and_all_are_counted(release: Path) -> None:
    for line in (2, 5):
        change(release, line, lambda record: record.update(length=1))
    audited = command("audit", release, "-q")
    assert "length differs from the recount: 2×, first line 2, mmlongdoc_1: 1 against " in audited.err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "no build.lock.json: this is no release of mmlongbench, or its build has not finished"),
        ("", "expected JSON, found Expecting value"),
        ("[]", "expected a lock of format 1"),
        ('{"format": 2}', "expected a lock of format 1"),
        ('{"format": 1}', "the key 'manifest' is missing"),
        (
            '{"format": 1, "manifest": [], "datasets": {}, "files": 3}',
            "files: Input should be a valid dict",
        ),
        ('{"format": 1, "manifest": [{}], "datasets": {}, "files": {}}', "manifest: cannot be read: 'counter'"),
        ('{"format": 1, "manifest": [3], "datasets": {}, "files": {}}', "manifest: Input should be a valid dict"),
    ],
)
def test_a_release_without_a_lock_or_with_none_that_can_be_read_is_refused(
    text: str | None, said: str, release: Path
) -> None:
    if text is None:
        (release / "build.lock.json").unlink()
    else:
        (release / "build.lock.json").write_text(text)
    refused = command("audit", release)
    assert refused.code == 2
    assert said in refused.err
    assert refused.err.count("\n") == 1


def test_a_lock_of_a_builder_that_is_not_installed_is_refused(release: Path) -> None:
    path = release / "build.lock.json"
    path.write_text(path.read_text("utf-8").replace('"builder": "docvqa"', '"builder": "docvqb"'), "utf-8")
    assert "no builder 'docvqb' is installed" in command("audit", release).err
