"""What `audit` finds in a release that was changed, damaged or added to, and what it names."""

import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from once import linked
from PIL import Image
from tiny import Ran, command, records, relock, rewrite

DATA = Path("mmlb_data/documentQA")
FILE, LONGER = "documentQA/mmlongdoc_K1.jsonl", "documentQA/mmlongdoc_K2.jsonl"
PAGE = "mmlongbench-doc/ash/ash_page0.jpg"
IMAGE = f"mmlb_image/{PAGE}"
ITEMS = "items/documentQA/mmlongdoc_K1.parquet"
BYTES, UNREBUILT = "the bytes are not those of the lock", "the prompt cannot be rebuilt and counted"
Record = dict[str, Any]


@pytest.fixture
def release(finished: Path, tmp_path: Path) -> Path:
    return linked(finished, tmp_path / "release")


def change(release: Path, line: int, edit: Callable[[Record], object]) -> None:
    """Edit one record of the 1K file, lines from 1."""
    rewrite(release / DATA / "mmlongdoc_K1.jsonl", lambda lines: edit(lines[line - 1]))


def replace(path: Path, data: bytes) -> None:
    """Write another file in the place of one that may be linked."""
    path.unlink()
    path.write_bytes(data)


def drawn(size: tuple[int, int], form: str = "JPEG") -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", size).save(buffer, form)
    return buffer.getvalue()


def problems(release: Path) -> dict[tuple[str, str], str]:
    """(file, kind) → where first; the exit code and the lines for people agree."""
    audited = command("audit", release, "--json")
    assert audited.code == 1
    files = map(json.loads, audited.out.splitlines())
    found = {(file["file"], p["problem"]): (p["count"], p["first"]) for file in files for p in file["problems"]}
    lines = command("audit", release, "-q").err.splitlines()
    assert lines == [f"{file}: {kind}: {n}×, first {first}" for (file, kind), (n, first) in found.items()]
    return {key: first for key, (_, first) in found.items()}


def test_a_release_as_it_was_built_has_no_problem_and_a_line_a_public_file(finished: Path) -> None:
    assert command("audit", finished, "-q") == Ran(0, "", "")
    lines = [json.loads(line) for line in command("audit", finished, "--json").out.splitlines()]
    assert [(line["file"], line["examples"], line["problems"]) for line in lines] == [(FILE, 6, []), (LONGER, 6, [])]
    rows = [row.split()[2:5] for row in command("audit", finished).out.splitlines() if row.startswith((FILE, LONGER))]
    assert rows == [[f"{line['fill'][key]:.4f}" for key in ("mean", "min", "max")] for line in lines]


@pytest.mark.parametrize(("field", "part"), [("length", None), ("tokens.text", "text"), ("tokens.image", "image")])
def test_an_edited_count_differs_from_the_recount(field: str, part: str | None, release: Path) -> None:
    before = records(release, "1K")[1]
    right = before["tokens"][part] if part else before["length"]
    change(
        release,
        2,
        lambda record: record["tokens"].update({part: right + 1}) if part else record.update(length=right + 1),
    )
    assert problems(release) == {
        (FILE, BYTES): "the whole file",
        (FILE, f"{field} differs from the recount"): f"line 2, mmlongdoc_1: {right + 1} against {right}",
    }


def test_every_edited_record_is_counted_and_the_first_is_named(release: Path) -> None:
    for line in (2, 5):
        change(release, line, lambda record: record.update(length=1))
    audited = command("audit", release, "-q")
    assert "length differs from the recount: 2×, first line 2, mmlongdoc_1: 1 against " in audited.err


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
    kind = "the answer of a question differs between files"
    assert problems(release) == {
        (FILE, BYTES): "the whole file",
        (FILE, kind): f"mmlongdoc_2: from {LONGER}",
        (LONGER, kind): f"mmlongdoc_2: from {FILE}",
    }


def test_a_record_over_its_length_is_found_even_where_its_counts_are_right(release: Path) -> None:
    longer = records(release, "2K")[3]
    change(release, 4, lambda record: record.update(longer))
    found = problems(release)
    assert found[FILE, "over its length"] == f"line 4, mmlongdoc_3: {longer['length']} + 64 > 1024"
    assert {kind for _, kind in found} == {BYTES, "over its length", "the items differ from the prompt"}


def test_a_missing_image_is_found_in_every_file_that_shows_it(release: Path) -> None:
    (release / IMAGE).unlink()
    found = problems(release)
    assert found.pop(("mmlb_image", "missing file")) == IMAGE
    assert {file for file, _ in found} == {FILE, LONGER}
    assert all(f"image {PAGE!r}: is missing" in first for first in found.values())


def test_an_image_of_another_size_or_of_other_pixels_and_a_file_that_is_none_are_found(release: Path) -> None:
    with Image.open(release / IMAGE) as picture:
        size = picture.size
    replace(release / IMAGE, drawn(size))
    assert {key: at for key, at in problems(release).items() if "/" not in key[0]} == {("mmlb_image", BYTES): IMAGE}
    replace(release / IMAGE, drawn((800, 400)))
    found = problems(release)
    assert found[FILE, "tokens.image differs from the recount"].endswith(": 784 against 994")
    assert (FILE, "over its length") in found
    replace(release / IMAGE, b"none")
    assert f"image {PAGE!r}: cannot be read: UnidentifiedImageError" in problems(release)[FILE, UNREBUILT]


@pytest.mark.parametrize(
    "path", ["../../ash_page0.jpg", "/etc/ash/ash_page0.jpg", "link/ash_page0.jpg", "ash/../ash_page0.jpg"]
)
def test_an_image_path_that_leaves_the_root_is_not_followed(path: str, release: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/ash_page0.jpg").write_bytes(drawn((400, 400)))
    (release / "mmlb_image/link").symlink_to(tmp_path / "outside")
    change(release, 1, lambda record: record["page_list"].__setitem__(0, path))
    found = problems(release)[FILE, UNREBUILT]
    assert found.startswith(f"line 1, mmlongdoc_0: image {path!r}: ")
    assert "leaves the image root" in found


WRONG_PATHS: list[Any] = [3, None, [], "x.jpg", "a/page", "\0/page0.jpg", {}]
WRONG_TOKENS: list[Any] = [3, "x", None, [], {"reserve": "x"}, {"reserve": None}]


@pytest.mark.parametrize(
    "fields", [{"page_list": [path]} for path in WRONG_PATHS] + [{"tokens": tokens} for tokens in WRONG_TOKENS]
)
def test_a_field_of_another_type_is_a_problem_and_no_crash(fields: Record, release: Path) -> None:
    change(release, 5, lambda record: record.update(fields))
    assert problems(release)[FILE, UNREBUILT].startswith("line 5, mmlongdoc_4")


@pytest.mark.parametrize("field", ["tokens", "question", "doc_name", "page_list", "reserve"])
def test_a_missing_field_is_named_with_file_and_line(field: str, release: Path) -> None:
    change(release, 5, lambda record: (record["tokens"] if field == "reserve" else record).pop(field))
    assert problems(release)[FILE, f"the field {field!r} is missing"] == "line 5, mmlongdoc_4"


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


def test_a_dropped_line_is_missed_by_items_lengths_and_counts_and_an_empty_file_has_no_examples(release: Path) -> None:
    path = release / DATA / "mmlongdoc_K1.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    assert problems(release) == {
        (FILE, BYTES): "the whole file",
        (FILE, "items of examples that the file does not have"): "mmlongdoc_10, None",
        (FILE, "a question of another length is missing"): "mmlongdoc_10",
        (FILE, "the number of examples differs from the lock"): "5 against 6",
    }
    path.write_bytes(b"")
    assert (FILE, "no examples") in problems(release)


@pytest.mark.parametrize("name", ["mmlongdoc_K4.jsonl", "other_K1.jsonl", "mmlongdoc_K0.jsonl", "notes.txt"])
def test_an_extra_public_file_is_found(name: str, release: Path) -> None:
    shutil.copy(release / DATA / "mmlongdoc_K1.jsonl", release / DATA / name)
    is_known = name == "mmlongdoc_K4.jsonl"
    kind = "file is not in the lock" if is_known else "no dataset of the lock has a file of this name"
    assert problems(release) == {(f"documentQA/{name}", kind): "the whole file"}


def test_a_missing_public_file_is_found(release: Path) -> None:
    (release / DATA / "mmlongdoc_K1.jsonl").unlink()
    assert problems(release) == {(FILE, "missing file"): "the lock names it"}
    shutil.rmtree(release / "mmlb_data")
    assert problems(release) == {(file, "missing file"): "the lock names it" for file in (FILE, LONGER)}


@pytest.mark.parametrize("path", [ITEMS, "rejects.jsonl", IMAGE])
def test_any_other_file_that_is_changed_or_missing_is_found(path: str, release: Path) -> None:
    data, part = (release / path).read_bytes(), path.split("/")[0]
    replace(release / path, data + b"\n")
    assert {at: first for at, first in problems(release).items() if "/" not in at[0]} == {(part, BYTES): path}
    (release / path).unlink()
    assert problems(release)[part, "missing file"] == path


@pytest.mark.parametrize("path", ["items/a.parquet", "items/b/c", "mmlb_image/other/x_page0.jpg"])
def test_any_other_extra_file_is_found(path: str, release: Path) -> None:
    (release / path).parent.mkdir(exist_ok=True)
    (release / path).write_text("extra")
    assert problems(release) == {(path.split("/")[0], "file is not in the lock"): path}


def test_problems_of_one_part_are_one_line_with_their_number(release: Path) -> None:
    shutil.rmtree(release / "items")
    (release / "items").mkdir()
    (release / "items/new").touch()
    lines = command("audit", release, "-q").err.splitlines()
    assert "items: missing file: 3×, first items/assets.parquet" in lines
    assert "items: file is not in the lock: 1×, first items/new" in lines


def test_rejects_that_the_lock_does_not_name_are_extra(release: Path) -> None:
    relock(release, lambda lock: lock["files"].pop("rejects.jsonl"))
    assert problems(release) == {
        ("build.lock.json", "the lock names no file of rejects, which every build writes"): "rejects.jsonl",
        ("rejects.jsonl", "file is not in the lock"): "rejects.jsonl",
    }


REFUSED: dict[str, tuple[str, ...]] = {
    "": ("expected JSON",),
    "[]": ("expected a lock of format 1",),
    '{"format": 2}': ("expected a lock of format 1",),
    '{"format": 1.0, "manifest": [], "datasets": {}, "files": {}}': ("expected a lock of format 1",),
    '{"format": true, "manifest": [], "datasets": {}, "files": {}}': ("expected a lock of format 1",),
    '{"format": 1}': ("the key 'manifest' is missing",),
    '{"format": 1, "format": 1, "manifest": [], "datasets": {}, "files": {}}': ("'format' twice",),
    '{"format": 1, "manifest": [], "datasets": {}, "files": 3}': ("files: ",),
    '{"format": 1, "manifest": [{}], "datasets": {}, "files": {}}': ("manifest: ", "'counter'"),
    '{"format": 1, "manifest": [3], "datasets": {}, "files": {}}': ("manifest: ",),
    **{
        f'{{"format": 1, "manifest": [], "datasets": {{}}, "files": {{"rejects.jsonl": {file}}}}}': (
            "files.rejects.jsonl",
        )
        for file in ("3", "{}", '{"bytes": 3}', '{"bytes": "3", "sha256": ""}', '{"bytes": 3, "sha256": null}')
    },
}


@pytest.mark.parametrize("tool", ["audit", "verify"])
def test_a_lock_that_is_missing_or_cannot_be_read_is_refused_in_one_line(tool: str, release: Path) -> None:
    for text, facts in REFUSED.items():
        if tool == "verify" and facts[0] == "manifest: ":  # it checks the files all the same
            continue
        (release / "build.lock.json").write_text(text)
        refused = command(tool, release)
        assert (refused.code, refused.err.count("\n")) == (2, 1), (text, refused)
        assert all(fact in refused.err for fact in ("build.lock.json: ", *facts)), (text, refused)
    (release / "build.lock.json").unlink()
    refused = command(tool, release)
    assert (refused.code, refused.err.count("\n")) == (2, 1)
    assert "no build.lock.json" in refused.err


UNUSABLE: dict[str, tuple[bool, str, Callable[[Record], object]]] = {
    "an unknown builder": (True, "no builder 'docvqb' is installed", lambda f: f.update(builder="docvqb")),
    "a tokenizer that is gone": (True, "gone.json", lambda f: f["counter"]["tokenizer"].update(name="gone.json")),
    "lengths that are none": (False, "lengths", lambda f: f.update(lengths=["many"])),
    "a key that is unknown": (False, "unknown key 'colour'", lambda f: f.update(colour="red")),
}
"""Whether it may be right on another machine, what is named, and the change to the dataset in the lock."""


@pytest.mark.parametrize("name", UNUSABLE)
def test_a_manifest_of_a_lock_that_cannot_be_used_is_one_line(name: str, release: Path) -> None:
    is_elsewhere, said, edit = UNUSABLE[name]
    relock(release, lambda lock: edit(lock["manifest"][0]))
    refused = command("audit", release, "-q")
    assert (refused.code, refused.err.count("\n"), said in refused.err) == (2, 1, True)
    verified = command("verify", release, "-q")
    assert said in verified.err
    assert verified.code == (0 if is_elsewhere else 1)
    assert verified.err.startswith("note: " if is_elsewhere else "build.lock.json: the manifest cannot be used: ")


def test_two_datasets_of_one_name_are_refused(release: Path) -> None:
    relock(release, lambda lock: lock["manifest"].append(lock["manifest"][0]))
    for tool in ("audit", "verify"):
        refused = command(tool, release)
        assert (refused.code, "two datasets have the name 'mmlongdoc'" in refused.err) == (2, True)


def test_audit_and_verify_say_the_same_whatever_the_workers(release: Path) -> None:
    """The extra files are so many that a process is given more than one portion of them."""
    change(release, 2, lambda record: record.update(length=record["length"] + 1))
    (release / IMAGE).unlink()
    for number in range(130):
        (release / f"mmlb_image/{number}.jpg").touch()
    asked = ("--count-as", "qwen2.5-vl,claude", "--fits", "qwen2.5-vl=900")
    for words in (("audit", release, *asked), ("verify", release, "--json")):
        one = command(*words, "--workers", 1)
        assert (one.code, command(*words, "--workers", 2)) == (1, one)
        assert words[0] == "verify" or one.out.index("mmlongdoc_K1") < one.out.index("mmlongdoc_K2")


def test_claims_of_gold_summaries_that_were_made_later_are_no_fault(release: Path) -> None:
    (release / "mmlb_data/summ").mkdir(parents=True)
    (release / "mmlb_data/summ/gov_claims.jsonl").write_text('{"id": "a", "claims": ["It is so."]}\n')
    assert command("audit", release, "-q") == command("verify", release, "-q") == Ran(0, "", "")


ENDINGS = {"JPEG": ".jpg", "PNG": ".png", "GIF": ".gif", "WEBP": ".webp"}
ODD_ENDING = "with an image whose ending names another format"
ODD_END = "with an image with bytes after its end, or without its end"


def test_odd_images_are_a_remark_and_no_problem(finished: Path, tmp_path: Path) -> None:
    """An image whose ending names another format, or that has bytes after its end, is counted all the same."""
    release = tmp_path / "download"
    shutil.copytree(finished / "mmlb_data", release / "mmlb_data")
    (release / "mmlb_image/odd").mkdir(parents=True)
    pages = []
    for form, ending in ENDINGS.items():
        data = drawn((400, 400), form)
        cut = {"right": ending, "upper": ending.upper(), "more": ending, "cut": ending, "other": ".tiff"}
        for kind, end in cut.items():
            pages.append(f"odd/{form.lower()}-{kind}_page0{end}")
            added = data + b"more of it" if kind == "more" else data[:-9] if kind == "cut" else data
            (release / "mmlb_image" / pages[-1]).write_bytes(added)
    for form, ending in (("BMP", ".bmp"), ("TIFF", ".tif"), ("JPEG", ".jpeg"), ("JPEG", ".JPE"), ("JPEG", ".jfif")):
        pages.append(f"odd/right_page0{ending}")
        (release / "mmlb_image" / pages[-1]).write_bytes(drawn((400, 400), form))
    lines = [
        {**records(finished, "1K")[0], "id": f"q{number}", "page_list": [page]} for number, page in enumerate(pages)
    ]
    path = release / DATA / "mmlongdoc_K1.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    audited = command("audit", path, "--json")
    (found,) = map(json.loads, audited.out.splitlines())
    (remark,) = found["remarks"]
    faults = {fault["fault"]: (fault["count"], fault["first"]) for fault in remark["faults"]}
    assert faults == {ODD_ENDING: (4, "line 5, q4"), ODD_END: (7, "line 3, q2")}  # a WebP that is cut cannot be read
    shown = command("audit", path).out
    assert "examples of odd images: 11" in shown
    assert f"4 {ODD_ENDING} (first line 5" in shown
    assert "odd images" not in command("audit", finished).out


def test_a_prompt_that_names_more_images_than_the_record_has_is_a_problem_and_no_crash(
    families: Path, tmp_path: Path
) -> None:
    path = tmp_path / "mmlb_data/NIAH/retrieval-text_test_K8_dep6.jsonl"
    path.parent.mkdir(parents=True)
    (tmp_path / "mmlb_image").symlink_to(families / "mmlb_image")
    record = json.loads((families / path.relative_to(tmp_path)).read_text("utf-8").splitlines()[0])
    path.write_text(json.dumps({**record, "image_list": record["image_list"][:-1]}) + "\n", "utf-8")
    audited = command("audit", path, "-q")
    assert (audited.code, UNREBUILT in audited.err, "Traceback" in audited.err) == (1, True, False)
