"""What a release costs on models: windows, limits, tokenizers, the costliest examples, rows, how far to shrink."""

import csv
import io
import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from once import linked
from PIL import Image
from tiny import command, on_model, records

from tokenization import vision_rules

FILE = "documentQA/mmlongdoc_K1.jsonl"


def audited(*args: object) -> tuple[int, dict[str, Any]]:
    ran = command("audit", *args, "--json")
    return ran.code, {found["file"]: found for found in map(json.loads, ran.out.splitlines())}


def test_every_example_is_counted_on_every_model(finished: Path) -> None:
    code, found = audited(finished, "--count-as", "qwen2.5-vl,gemma3,gpt-4o")
    assert code == 0
    for model in ("qwen2.5-vl", "gemma3", "gpt-4o"):
        tokens = on_model(finished, "1K", model)
        totals = [*tokens.values()]
        tally = found[FILE]["models"][model]
        assert tally["tokens"]["mean"] == pytest.approx(sum(totals) / len(totals))
        assert tally["tokens"]["max"] == max(totals)
        costliest = sorted((-total, id) for id, total in tokens.items())[:5]
        assert [(worst["id"], worst["tokens"]) for worst in tally["worst"]] == [(id, -total) for total, id in costliest]


def test_a_window_counts_prompt_and_reserve_and_check_exits_with_1(finished: Path) -> None:
    totals = [total + 64 for total in on_model(finished, "1K", "qwen2.5-vl").values()]
    window = sorted(totals)[3]
    over = sum(total > window for total in totals)
    args = (finished, "--count-as", "qwen2.5-vl", "--fits", f"qwen2.5-vl={window}")
    code, found = audited(*args)
    assert (code, found[FILE]["models"]["qwen2.5-vl"]["over_window"]) == (0, over)
    assert 0 < over < len(totals)
    assert found[FILE]["models"]["qwen2.5-vl"]["fits"] == pytest.approx(1 - over / len(totals))
    checked = command("audit", *args, "--check", "-q")
    assert checked.code == 1
    worst = found[FILE]["models"]["qwen2.5-vl"]["worst"][0]
    said = f"6 examples, {over} over the window; the costliest is {worst['id']} ({worst['tokens'] + 64:,} tokens with"
    assert f"{FILE}: qwen2.5-vl: {said} the reserve)\n" in checked.err
    assert command("audit", finished, "--count-as", "qwen2.5-vl", "--fits", "qwen2.5-vl=1M", "--check", "-q").code == 0


def test_a_folder_that_holds_public_files_of_others_is_audited(finished: Path, tmp_path: Path) -> None:
    for part in ("mmlb_data", "mmlb_image"):
        shutil.copytree(finished / part, tmp_path / "download" / part)
    code, found = audited(tmp_path / "download")
    assert code == 0
    assert found[FILE]["examples"] == 6
    (tmp_path / "download" / "items").mkdir()  # of a build that was stopped
    assert "no build.lock.json" in command("audit", tmp_path / "download").err


def test_a_file_with_more_images_than_a_request_may_hold_is_not_applicable(finished: Path, tmp_path: Path) -> None:
    release = linked(finished, tmp_path / "release")
    path = release / "mmlb_data" / FILE
    lines = records(release, "1K")
    lines[0]["page_list"] = lines[0]["page_list"] * 30
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    _, found = audited(release, "--count-as", "claude,gemma3")
    assert found[FILE]["models"]["claude"]["over_images"] == 1
    assert found[FILE]["models"]["gemma3"]["over_images"] == 0
    shown = command("audit", release, "--count-as", "claude", "--html", tmp_path / "page.html").out
    assert "n/a" in shown
    assert re.search(r'<td class="[^"]*\bna\b', (tmp_path / "page.html").read_text())


def test_text_is_counted_by_the_models_own_tokenizer_or_the_header_says_so(finished: Path, tmp_path: Path) -> None:
    without = command("audit", finished, "--count-as", "gpt-4o")
    assert "text of gpt-4o is counted by the release's tokenizer, llama2" in without.out
    path = tmp_path / "tokenizer.json"
    _write_letters(path)
    shown = command("audit", finished, "--count-as", "gpt-4o", "--text-tokenizer", f"gpt-4o={path}")
    assert "is counted by the release's" not in shown.out
    _, own = audited(finished, "--count-as", "gpt-4o")
    _, letters = audited(finished, "--count-as", "gpt-4o", "--text-tokenizer", f"gpt-4o={path}")
    more = letters[FILE]["models"]["gpt-4o"]["tokens"]["mean"] - own[FILE]["models"]["gpt-4o"]["tokens"]["mean"]
    assert more > 2 * own[FILE]["text"]["mean"]  # a Llama 2 token has three letters and more


def _write_letters(path: Path) -> None:
    """A tokenizer of single characters."""
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers

    vocabulary = {"[UNK]": 0}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex("."), "isolated")
    tokenizer.save(str(path))


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("--count-as", "internvll"), "did you mean 'internvl"),
        (("--count-as", "gpt-4o", "--fits", "gpt-4o="), "--fits gpt-4o=: expected [MODEL=]TOKENS"),
        (("--count-as", "gpt-4o", "--text-tokenizer", "x.json"), "--text-tokenizer x.json: expected MODEL=PATH|ID"),
        (("--count-as", "gpt-4o", "--fits", "gpt-5=1K"), "is not among the models"),
        (("--count-as", "gpt-4o", "--fits", "gpt-4o"), "expected tokens"),
        (("--fits", "128K"), "--fits 128K: needs --count-as"),
        (("--count-as", "gpt-4o", "--fits", "gpt-4o=many"), "expected tokens"),
        (("--count-as", "gemma3", "--shrink"), "the window of gemma3 is not known; give it with --fits gemma3=TOKENS"),
        (("--cut", "here"), "--cut needs --count-as"),
        (("--per-example", "out.txt"), "ends in .csv"),
        (("--check",), "--check needs --count-as"),
        (("--check", "--count-as", "llama-3.2-vision"), "the window of llama-3.2-vision is not known"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_a_line(args: tuple[str, ...], said: str, finished: Path) -> None:
    ran = command("audit", finished, "-q", *args)
    assert ran.code == 2
    assert said in ran.err
    assert "Traceback" not in ran.err


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("kind", ["release", "files"])
def test_a_wrong_tokenizer_or_fit_is_named_before_an_example_is_read(
    kind: str, workers: int, finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unread(*_: object) -> None:
        pytest.fail("an example was read")

    monkeypatch.setattr("mmlongbench.release.audit.audit_file", unread)
    path = finished if kind == "release" else finished / "mmlb_data" / FILE
    given = (path, "--count-as", "gpt-4o,gemma3", "--workers", workers)
    (tmp_path / "tokenizer.json").write_text("{}")
    for name in ("gone.json", "tokenizer.json"):
        ran = command("audit", *given, "--text-tokenizer", f"gemma3={tmp_path / name}")
        assert (ran.code, name in ran.err, ran.err.count("\n")) == (2, True, 1)
    assert "the window of gemma3 is not known" in command("audit", *given, "--shrink").err
    refused = command("audit", *given, "--tokenizer", "other.json")
    assert (refused.code, "other.json" in refused.err) == (2, True)


def test_all_is_every_family_once_and_no_variant(finished: Path) -> None:
    _, found = audited(finished, "--count-as", "all")
    names = [*found[FILE]["models"]]
    assert names == [name for name, rule in vision_rules().items() if not rule.variant_of]
    assert len(names) > 30
    assert "llama-3.2-vision-prompt" not in names


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_a_row_an_example_and_a_row_a_unit(finished: Path, tmp_path: Path, ending: str) -> None:
    examples, units = tmp_path / f"examples.{ending}", tmp_path / f"units.{ending}"
    args = ("--count-as", "gemma3", "--per-example", examples, "--items", units, "-q")
    assert command("audit", finished, *args).code == 0
    rows, parts = read_rows(examples), read_rows(units)
    lines = {(FILE, line["id"]): line for line in records(finished, "1K")}
    on_gemma = on_model(finished, "1K", "gemma3")
    assert len(rows) == sum(len(records(finished, length)) for length in ("1K", "2K"))
    for row in rows:
        if line := lines.get((row["file"], row["id"])):
            assert int(row["total"]) == line["length"]
            assert int(row["gemma3_total"]) == on_gemma[line["id"]]
            own = [part for part in parts if (part["file"], part["id"]) == (row["file"], row["id"])]
            assert [part["unit"] for part in own] == line["page_list"]
            assert {part["role"] for part in own} <= {"own", "padding"}
            starts = [int(part["start"]) for part in own]
            assert starts == sorted(starts)
            assert {int(part["gemma3"]) for part in own} == {260}


def read_rows(path: Path) -> list[dict[str, Any]]:
    if path.suffix == ".parquet":
        found: list[dict[str, Any]] = pq.read_table(path).to_pylist()
        return found
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file)) if path.suffix == ".csv" else [json.loads(line) for line in file]


def test_the_table_as_csv(finished: Path) -> None:
    ran = command("audit", finished, "--count-as", "gemma3", "--csv")
    rows = list(csv.DictReader(ran.out.splitlines()))
    assert [row["file"] for row in rows] == ["documentQA/mmlongdoc_K1.jsonl", "documentQA/mmlongdoc_K2.jsonl"]
    assert float(rows[0]["gemma3_mean"]) > 0


def test_fitting_finds_the_largest_factor_that_fits(finished: Path) -> None:
    """The factor is a number of hundredths; the costliest example fits with it, and not with one more."""

    def most(hundredths: int) -> int:
        counts = (on_model(finished, length, "qwen2.5-vl", 400 * hundredths // 100) for length in ("1K", "2K"))
        return max(total for tokens in counts for total in tokens.values()) + 64

    said = command("audit", finished, "--count-as", "qwen2.5-vl", "--shrink", "--fits", "qwen2.5-vl=1024", "-q").out
    (factor,) = re.findall(r"resize images by 0\.(\d\d)", said)
    assert most(int(factor)) <= 1024 < most(int(factor) + 1)
    assert f"{most(int(factor)):,}" in said
    no_room = command("audit", finished, "--count-as", "qwen2.5-vl", "--shrink", "--fits", "qwen2.5-vl=90", "-q")
    assert "no factor makes all fit" in no_room.out


# --- files that others made -------------------------------------------------------------------------------------------


def test_a_downloaded_file_is_known_by_its_place_and_counted_by_the_builders_prompt(
    finished: Path, tmp_path: Path
) -> None:
    """As a public release has it: no lock, no counts of ours, fields that we do not know."""
    shutil.copytree(finished / "mmlb_image", tmp_path / "mmlb_image")
    data = tmp_path / "mmlb_data/documentQA"
    data.mkdir(parents=True)
    lines = records(finished, "1K")
    kept = ("id", "doc_name", "question", "answer", "answer_format", "ans_page_list", "page_list")
    text = "".join(json.dumps({**{key: line[key] for key in kept}, "extra": 1}) + "\n" for line in lines)
    (data / "mmlongdoc_K8.jsonl").write_text(text)
    for path in (data / "mmlongdoc_K8.jsonl", tmp_path / "mmlb_data", data):
        code, found = audited(path, "--count-as", "gemma3")
        assert code == 0
        counted = found["documentQA/mmlongdoc_K8.jsonl"]
        assert counted["examples"] == len(lines)
        assert counted["image"]["mean"] == pytest.approx(sum(line["tokens"]["image"] for line in lines) / len(lines))
        assert counted["text"]["mean"] == pytest.approx(sum(line["tokens"]["text"] for line in lines) / len(lines))
    shutil.move(tmp_path / "mmlb_image", tmp_path / "elsewhere")
    refused = command("audit", data / "mmlongdoc_K8.jsonl")
    assert (refused.code, "--images" in refused.err) == (2, True)
    assert command("audit", data / "mmlongdoc_K8.jsonl", "--images", tmp_path / "elsewhere", "-q").code == 0


def test_a_file_of_no_known_name_is_named(finished: Path, tmp_path: Path) -> None:
    path = tmp_path / "mmlb_data/documentQA/strange_K8.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text("{}\n")
    ran = command("audit", path, "--images", finished / "mmlb_image")
    assert (ran.code, "no public file with a known name" in ran.err) == (2, True)


def test_stats_stand_beside_the_papers(finished: Path) -> None:
    shown = command("stats", finished, "--table3")
    assert shown.code == 0
    assert "paper" in shown.out
    (row,) = map(json.loads, command("stats", finished, "--json").out.splitlines())
    pages = [len(line["page_list"]) for line in records(finished, "2K")]
    assert row["images"]["2048"]["mean"] == pytest.approx(sum(pages) / len(pages))
    assert row["paper"]["131072"] == 56.4


def test_stats_have_the_papers_images_of_each_dataset_that_are_known(families: Path) -> None:
    rows = map(json.loads, command("stats", families, "--json").out.splitlines())
    paper = {row["dataset"]: [*row["paper"].values()] for row in rows}
    assert (paper["infoseek"], paper["viquae"]) == ([1, 1, 1, 1, 1], [1, 1, 1, 1, 1])
    assert paper["vh_single"][1:3] == [44.7, 90.9]
    assert paper["vh_multi"][1:3] == [44.8, 91.0]
    assert (paper["retrieval-text"], paper["longdocurl"]) == ([], [])
    known = {name: numbers for name, numbers in paper.items() if numbers}
    assert {len(numbers) for numbers in known.values()} == {5}
    assert all(numbers == sorted(numbers) for numbers in known.values())


def test_the_price_of_a_picture_a_document_and_a_text(finished: Path, source: Path, tmp_path: Path) -> None:
    picture = next((finished / "mmlb_image").rglob("*.jpg"))
    document = source / "documents/ash.pdf"
    (tmp_path / "notes.txt").write_text("Which bell rings at the mill?")
    ran = command("count", picture, document, tmp_path / "notes.txt", "--count-as", "gemma3,qwen2.5-vl", "--json")
    priced = [json.loads(line)["tokens"] for line in ran.out.splitlines()]
    assert [row["mmlongbench"] for row in priced] == [196, 2 * 196, 7]
    assert [row["gemma3"] for row in priced] == [260, 520, 7]
    assert [row["qwen2.5-vl"] for row in priced] == [198, 396, 7]
    shown = command("count", picture)
    assert shown.code == 0
    assert "llava-onevision" in shown.out
    (tmp_path / "blob").write_bytes(b"\xff\xfe\x00")
    assert command("count", tmp_path / "blob").code == 2


def test_a_file_that_cannot_be_counted_is_named_and_the_others_are_counted(tmp_path: Path) -> None:
    folder = tmp_path / "pictures"
    folder.mkdir()
    Image.new("RGB", (280, 560)).save(folder / "good.png")
    whole = (folder / "good.png").read_bytes()
    (folder / "cut.png").write_bytes(whole[:20])
    Image.new("L", (28, 28)).save(folder / "moving.gif", save_all=True, append_images=[Image.new("L", (28, 28), 9)])
    for things in ((folder,), (folder / "cut.png", folder / "good.png")):
        ran = command("count", *things, "--count-as", "qwen2.5-vl", "--json")
        assert ran.code == 1
        assert [json.loads(line)["tokens"]["mmlongbench"] for line in ran.out.splitlines()] == [200]
        assert "cut.png" in ran.err
    assert "moving.gif" in command("count", folder).err
    for name in ("drawn.eps", "grey.ppm", "icon.xpm", "a.dds", "a.qoi"):
        (tmp_path / name).write_text("P3 1 1 255 0 0 0\n")  # such pictures may have only letters and digits
        assert (command("count", tmp_path / name).code, name in command("count", tmp_path / name).err) == (2, True)
    only = command("count", folder / "cut.png")
    assert (only.code, only.out, "broken-image" in only.err) == (2, "", True)


def test_every_family_can_be_counted_as_others_have_released_it(families: Path, tmp_path: Path) -> None:
    """A download has no lock, no items and no counts of ours, and fields that we do not know."""
    ours = {"tokens", "length", "needle_start", "depth_achieved", "depth_requested"}
    (tmp_path / "mmlb_image").symlink_to(families / "mmlb_image")
    for path in (families / "mmlb_data").rglob("*.json*"):
        text = path.read_text("utf-8")
        if path.suffix == ".jsonl":
            public = [
                {key: value for key, value in json.loads(line).items() if key not in ours} for line in text.splitlines()
            ]
            text = "".join(json.dumps({**line, "more": [1]}) + "\n" for line in public)
        copy = tmp_path / path.relative_to(families)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(text, "utf-8")
    code, found = audited(tmp_path / "mmlb_data", "--count-as", "gemma3")
    assert code == 0
    assert {*found} == {
        str(path.relative_to(tmp_path / "mmlb_data")) for path in (tmp_path / "mmlb_data").rglob("*.json*")
    }
    for name, file in found.items():
        if name.endswith(".jsonl"):
            lines = [json.loads(line) for line in (families / "mmlb_data" / name).read_bytes().splitlines()]
            assert file["examples"] == len(lines)
            for kind in ("text", "image"):
                mean = sum(line["tokens"][kind] for line in lines) / len(lines)
                assert file[kind]["mean"] == pytest.approx(mean)
        assert file["models"]["gemma3"]["tokens"]["mean"] >= file["text"]["mean"] + 260 * file["images"]["mean"]


def of_one(finished: Path, folder: Path, lines: list[str]) -> Path:
    """A public file with its images."""
    path = folder / "mmlb_data/documentQA/mmlongdoc_K8.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes("".join(lines).encode("utf-8", "surrogatepass"))
    if not (folder / "mmlb_image").exists():
        (folder / "mmlb_image").symlink_to(finished / "mmlb_image")
    return path


def test_two_files_of_one_name_are_both_counted(finished: Path, tmp_path: Path) -> None:
    good = [json.dumps(line) + "\n" for line in records(finished, "1K")]
    paths = [of_one(finished, tmp_path / name, lines) for name, lines in (("a", ['{"id": "x"}\n']), ("b", good))]
    ran = command("audit", *paths, paths[1].parent, "--json")
    found = [json.loads(line) for line in ran.out.splitlines()]
    assert ran.code == 1
    assert sorted(each["examples"] for each in found) == [1, len(good)]


def test_a_lock_is_not_passed_over(finished: Path) -> None:
    for args in ((finished, "--images", finished / "mmlb_image"), (finished, finished / "mmlb_data")):
        ran = command("audit", *args)
        assert (ran.code, "a release with a lock is audited alone" in ran.err) == (2, True)


def test_an_image_that_a_model_refuses_is_said_wherever_the_file_is(finished: Path, tmp_path: Path) -> None:
    lines = records(finished, "1K")
    path = of_one(finished, tmp_path, [json.dumps(line) + "\n" for line in lines])
    (tmp_path / "mmlb_image").unlink()
    shutil.copytree(finished / "mmlb_image", tmp_path / "mmlb_image")
    Image.new("RGB", (2000, 3)).save(tmp_path / "mmlb_image" / lines[0]["page_list"][0])
    args = (path, "--count-as", "qwen2.5-vl", "--fits", "qwen2.5-vl=8K", "--html", tmp_path / "page.html")
    ran = command("audit", *args, "--shrink")
    assert "refused" in ran.out
    assert "hold an image that the model refuses: not fitted" in ran.out
    assert "refused)</td>" in (tmp_path / "page.html").read_text()
    assert command("audit", *args, "--check", "-q").code == 1


@pytest.mark.parametrize(
    "changed",
    [
        {"depth": 10**400},
        {"tokens": {"reserve": 1e999}},
        {"tokens": {"reserve": 10**400}},
        {"tokens": 5},
        {"id": "\ud800"},
        {"page_list": 7},
        {"question": {"a": 1}},
        {"doc_name": None},
    ],
)
def test_a_hostile_record_is_one_problem_or_none(finished: Path, tmp_path: Path, changed: dict[str, Any]) -> None:
    lines = [dict(line) for line in records(finished, "1K")]
    lines[1] |= changed
    text = [json.dumps(line) + "\n" for line in lines]
    path = of_one(finished, tmp_path, [text[0], "\n", '{"a":' * 50_000 + "\n", "{\n", *text[1:]])
    ran = command("audit", path, "--json", "--per-example", tmp_path / "rows.csv", "--items", tmp_path / "i.parquet")
    (found,) = map(json.loads, ran.out.splitlines())
    assert ran.code == 1
    assert "Traceback" not in ran.err
    assert found["examples"] == len(lines) + 2
    kinds = {problem["problem"]: problem["count"] for problem in found["problems"]}
    assert kinds.pop("the record cannot be read") == 2
    assert sum(kinds.values()) <= 1
    assert len(read_rows(tmp_path / "rows.csv")) >= len(lines) - 1


def test_a_units_image_costs_what_it_costs_at_its_place(finished: Path, tmp_path: Path) -> None:
    """MiniCPM writes the number of an image before it: from the tenth on with one token more."""
    lines = records(finished, "1K")[:1]
    pages = [page for line in records(finished, "2K") for page in line["page_list"]]
    lines[0]["page_list"] = list(dict.fromkeys(pages))[:12]
    path = of_one(finished, tmp_path, [json.dumps(line) + "\n" for line in lines])
    rows, units = tmp_path / "rows.jsonl", tmp_path / "units.jsonl"
    command("audit", path, "--count-as", "minicpm-v-2.6,idefics3", "--per-example", rows, "--items", units, "-q")
    (row,), parts = read_rows(rows), read_rows(units)
    assert len(parts) == 12
    for model in ("minicpm-v-2.6", "idefics3"):
        assert sum(part[model] for part in parts) == row[f"{model}_image"]


@pytest.mark.parametrize("fault", ["missing", "no item"])
def test_items_of_one_example_that_are_missing_or_none_change_no_other(
    fault: str, finished: Path, tmp_path: Path
) -> None:
    release = linked(finished, tmp_path / "release")
    path = release / "items" / Path(FILE).with_suffix(".parquet")
    table = pq.read_table(path)
    rows, of_one = table.to_pylist(), records(finished, "1K")[1]["id"]
    first = next(at for at, row in enumerate(rows) if row["id"] == of_one)
    if fault == "missing":
        rows = [row for row in rows if row["id"] != of_one]
    else:
        rows[first]["role"] = None
    pq.write_table(pa.Table.from_pylist(rows, table.schema), path)
    ran = command("audit", release, "--items", tmp_path / "units.jsonl", "-q")
    assert ran.code == 1
    assert fault == "missing" or f"{of_one}: unit 0: role: " in ran.err
    written = [row for row in read_rows(tmp_path / "units.jsonl") if row["file"] == FILE]
    assert {row["id"] for row in written if not row["role"]} == {of_one}
    assert {row["id"] for row in written} == {record["id"] for record in records(finished, "1K")}


@pytest.mark.parametrize("data", [b"", b"no table", None], ids=["empty", "another file", "no column"])
def test_items_that_cannot_be_read_are_a_finding_also_where_they_are_asked_for(
    data: bytes | None, finished: Path, tmp_path: Path
) -> None:
    release = linked(finished, tmp_path / "release")
    path = release / "items" / Path(FILE).with_suffix(".parquet")
    if data is None:
        pq.write_table(pq.read_table(path).drop_columns("placement"), path)
    else:
        path.write_bytes(data)
    for options in ((), ("--items", tmp_path / "units.jsonl")):
        audited = command("audit", release, "-q", *options)
        assert audited.code == 1
        assert "the items of the file cannot be read" in audited.err


def test_a_release_in_a_folder_whose_name_is_no_utf_8_is_read_like_any_other(finished: Path, tmp_path: Path) -> None:
    release = tmp_path / os.fsdecode(b"caf\xe9")
    shutil.copytree(finished, release)
    audited = command("audit", release, "-q", "--items", tmp_path / "units.jsonl")
    assert (audited.code, audited.err) == (0, "")
    assert all(row["role"] for row in read_rows(tmp_path / "units.jsonl"))
    for each in (release / "items").rglob("*.parquet"):
        table = pq.read_table(io.BytesIO(each.read_bytes()))
        with each.open("wb") as file:
            pq.write_table(table, file, compression="none")
    assert "the same values, written otherwise" in command("diff", finished, release).out


def test_whole_numbers_of_an_audit_are_printed_as_such(finished: Path) -> None:
    (line, *_) = map(json.loads, command("audit", finished, "--json", "--count-as", "qwen2.5-vl").out.splitlines())
    spreads = [line["text"], line["image"], line["images"], line["models"]["qwen2.5-vl"]["tokens"]]
    assert all(isinstance(spread[key], int) for spread in spreads for key in ("min", "max"))
    assert isinstance(line["fill"]["min"], float)


def test_rows_that_cannot_be_written_leave_the_file_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("mine")
    (tmp_path / "empty").mkdir()
    assert command("audit", tmp_path / "empty", "--per-example", path).code == 2
    assert path.read_text() == "mine"


def test_stats_of_what_cannot_be_read_exit_with_1(finished: Path, tmp_path: Path) -> None:
    path = of_one(finished, tmp_path, ['{"id": "x"}\n'])
    ran = command("stats", path, "--json")
    assert (ran.code, "is missing" in ran.err) == (1, True)


def test_a_broken_picture_is_named_and_an_odd_orientation_is_none(tmp_path: Path) -> None:
    text = b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x02\0\0\0\x026\0\0\0\0\0\0\0"  # the orientation as a text
    Image.new("RGB", (280, 560)).save(tmp_path / "odd.jpg", exif=b"Exif\0\0" + text)
    ran = command("count", tmp_path / "odd.jpg", "--count-as", "qwen2.5-vl", "--json")
    assert json.loads(ran.out)["what"] == "280 × 560"
    (tmp_path / "cut.jpg").write_bytes((tmp_path / "odd.jpg").read_bytes()[:100])
    ran = command("count", tmp_path / "cut.jpg")
    assert (ran.code, "broken-image" in ran.err) == (2, True)


def test_what_is_over_a_window_is_said_with_the_reserve_in_few_lines(finished: Path) -> None:
    over = {id: total + 64 for id, total in on_model(finished, "1K", "qwen2.5-vl").items()}
    window = sorted(over.values())[-2]
    shown = command("audit", finished, "--count-as", "qwen2.5-vl", "--fits", window).out
    worst = max(over, key=lambda id: (over[id], id))
    assert f"{FILE}: 1 over {window:,}; the costliest: {worst} {over[worst]:,}\n" in shown
    every = command("audit", finished, "--count-as", "all", "--fits", "16").out
    assert every.count("; the costliest: ") == 10
    assert "more lines of what does not fit" in every
