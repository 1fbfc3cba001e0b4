"""What a release costs on models: windows, limits, tokenizers, the dearest examples, rows, how far to shrink."""

import csv
import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tiny import command, records

from mmlongbench.errors import ReleaseError
from mmlongbench.release.audit import Target
from mmlongbench.release.fitting import fit, resized
from mmlongbench.release.models import ask
from tokenization import TokenizationError, vision_rule

FILE = "documentQA/mmlongdoc_K1.jsonl"
PAGE = (400, 400)
"""Pixels of a page of the tiny release."""


def audited(*args: object) -> tuple[int, dict[str, Any]]:
    ran = command("audit", *args, "--json")
    return ran.code, {found["file"]: found for found in map(json.loads, ran.out.splitlines())}


def test_every_example_is_counted_on_every_model(finished: Path) -> None:
    code, found = audited(finished, "--models", "qwen2.5-vl,gemma3,gpt-4o")
    assert code == 0
    lines = records(finished, "1K")
    for model in ("qwen2.5-vl", "gemma3", "gpt-4o"):
        rule = vision_rule(model)
        totals = [line["tokens"]["text"] + len(line["page_list"]) * rule.tokens(*PAGE) for line in lines]
        tally = found[FILE]["models"][model]
        assert tally["tokens"]["mean"] == pytest.approx(sum(totals) / len(totals))
        assert tally["tokens"]["max"] == max(totals)
        dearest = sorted(((-total, line["id"]) for total, line in zip(totals, lines, strict=True)))[:5]
        assert [(worst["id"], worst["tokens"]) for worst in tally["worst"]] == [(id, -total) for total, id in dearest]


def test_a_window_counts_prompt_and_reserve_and_check_exits_with_1(finished: Path) -> None:
    totals = [record["length"] + 2 * len(record["page_list"]) + 64 for record in records(finished, "1K")]
    window = sorted(totals)[3]  # qwen adds two markers an image
    over = sum(total > window for total in totals)
    args = (finished, "--models", "qwen2.5-vl", "--window", f"qwen2.5-vl={window}")
    code, found = audited(*args)
    assert (code, found[FILE]["models"]["qwen2.5-vl"]["over_window"]) == (0, over)
    assert 0 < over < len(totals)
    assert found[FILE]["models"]["qwen2.5-vl"]["fits"] == pytest.approx(1 - over / len(totals))
    assert command("audit", *args, "--check", "-q").code == 1
    assert command("audit", finished, "--models", "qwen2.5-vl", "--window", "qwen2.5-vl=1M", "--check", "-q").code == 0


def test_a_file_with_more_images_than_a_request_may_hold_is_not_applicable(finished: Path, tmp_path: Path) -> None:
    release = tmp_path / "release"
    shutil.copytree(finished, release)
    path = release / "mmlb_data" / FILE
    lines = records(release, "1K")
    lines[0]["page_list"] = lines[0]["page_list"] * 30
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    _, found = audited(release, "--models", "claude,gemma3")
    assert found[FILE]["models"]["claude"]["over_images"] == 1
    assert found[FILE]["models"]["gemma3"]["over_images"] == 0
    shown = command("audit", release, "--models", "claude", "--html", tmp_path / "page.html").out
    assert "n/a" in shown
    assert '<td class="na"' in (tmp_path / "page.html").read_text()


def test_the_papers_table_11_is_arithmetic() -> None:
    """368.2 images of a 128K example: 2,358K tokens on Llama-3.2 and 996K on LLaVA-OneVision; Claude is left out."""
    assert round(368.2 * vision_rule("llama-3.2-vision").tokens(640, 480) / 1000) == 2358
    sizes = [(640, 480), (640, 427), (640, 428), (480, 640), (640, 425), (500, 375), (427, 640), (612, 612)]
    mean = sum(vision_rule("llava-onevision").tokens(*size) for size in sizes) / len(sizes)
    assert 368.2 * mean / 1000 == pytest.approx(996, rel=0.04)
    assert (vision_rule("claude").max_images or 0) < 368


def test_text_is_counted_by_the_models_own_tokenizer_or_the_header_says_so(finished: Path, tmp_path: Path) -> None:
    without = command("audit", finished, "--models", "gpt-4o")
    assert "text of gpt-4o is counted by the release's own tokenizer" in without.out
    path = tmp_path / "tokenizer.json"
    _write_letters(path)
    shown = command("audit", finished, "--models", "gpt-4o", "--text-tokenizer", f"gpt-4o={path}")
    assert "is counted by the release's own" not in shown.out
    _, own = audited(finished, "--models", "gpt-4o")
    _, letters = audited(finished, "--models", "gpt-4o", "--text-tokenizer", f"gpt-4o={path}")
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
        (("--models", "qwen2.6-vl"), "qwen2.5-vl"),
        (("--models", "gpt-4o", "--window", "gpt-5=1K"), "is not among --models"),
        (("--models", "gpt-4o", "--window", "gpt-4o"), "expected MODEL=VALUE"),
        (("--models", "gpt-4o", "--window", "gpt-4o=many"), "expected tokens"),
        (("--models", "gpt-4o", "--fit", "gpt-4o"), "how much it holds is not said"),
        (("--models", "gpt-4o", "--fit", "gemma3"), "is not among --models"),
        (("--per-example", "out.txt"), "ends in .csv"),
    ],
)
def test_what_cannot_be_asked_is_refused_in_a_line(args: tuple[str, ...], said: str, finished: Path) -> None:
    ran = command("audit", finished, "-q", *args)
    assert ran.code == 2
    assert said in ran.err
    assert "Traceback" not in ran.err


def test_all_is_every_family_once() -> None:
    names = [asked.name for asked in ask("all")]
    assert len(names) == len(set(names)) > 30
    assert "llama-3.2-vision" in names
    assert "llama-3.2-vision-prompt" not in names


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_a_row_an_example_and_a_row_a_unit(finished: Path, tmp_path: Path, ending: str) -> None:
    examples, units = tmp_path / f"examples.{ending}", tmp_path / f"units.{ending}"
    args = ("--models", "gemma3", "--per-example", examples, "--items", units, "-q")
    assert command("audit", finished, *args).code == 0
    rows, parts = read_rows(examples), read_rows(units)
    lines = {(FILE, line["id"]): line for line in records(finished, "1K")}
    assert len(rows) == sum(len(records(finished, length)) for length in ("1K", "2K"))
    for row in rows:
        if line := lines.get((row["file"], row["id"])):
            assert int(row["total"]) == line["length"]
            assert int(row["gemma3_total"]) == line["tokens"]["text"] + 260 * len(line["page_list"])
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
    ran = command("audit", finished, "--models", "gemma3", "--csv")
    rows = list(csv.DictReader(ran.out.splitlines()))
    assert [row["file"] for row in rows] == ["documentQA/mmlongdoc_K1.jsonl", "documentQA/mmlongdoc_K2.jsonl"]
    assert float(rows[0]["gemma3_mean"]) > 0


def test_fitting_finds_the_largest_factor_that_fits(finished: Path) -> None:
    (asked,) = ask("qwen2.5-vl", ("qwen2.5-vl=1024",))
    found = fit(Target((finished,)), asked)
    assert found.factor is not None
    assert 0 < found.factor < 1
    assert found.most_tokens <= 1024 < found.as_it_is

    def most(hundredths: int) -> int:
        rule, size = vision_rule("qwen2.5-vl"), resized(PAGE, hundredths)
        every = [line for length in ("1K", "2K") for line in records(finished, length)]
        return max(int(line["tokens"]["text"]) + len(line["page_list"]) * rule.tokens(*size) + 64 for line in every)

    assert most(round(found.factor * 100)) == found.most_tokens
    assert most(round(found.factor * 100) + 1) > 1024
    said = command("audit", finished, "--fit", "qwen2.5-vl", "--window", "qwen2.5-vl=1024", "-q")
    assert f"resize images by {found.factor:.2f}" in said.out
    no_room = command("audit", finished, "--fit", "qwen2.5-vl", "--window", "qwen2.5-vl=90", "-q")
    assert "no factor makes all fit" in no_room.out


def test_two_workers_find_the_same(finished: Path) -> None:
    args = (finished, "--models", "qwen2.5-vl,claude", "--window", "qwen2.5-vl=900")
    assert audited(*args) == audited(*args, "--workers", "2")


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
        code, found = audited(path, "--models", "gemma3")
        assert code == 0
        counted = found["documentQA/mmlongdoc_K8.jsonl"]
        assert counted["examples"] == len(lines)
        assert counted["image"]["mean"] == pytest.approx(sum(line["tokens"]["image"] for line in lines) / len(lines))
        assert counted["text"]["mean"] == pytest.approx(sum(line["tokens"]["text"] for line in lines) / len(lines))
    shutil.move(tmp_path / "mmlb_image", tmp_path / "elsewhere")
    refused = command("audit", data / "mmlongdoc_K8.jsonl")
    assert (refused.code, "--images" in refused.err) == (2, True)
    assert command("audit", data / "mmlongdoc_K8.jsonl", "--images", tmp_path / "elsewhere", "-q").code == 0


def test_a_record_that_lacks_a_field_is_named_with_file_and_line(finished: Path, tmp_path: Path) -> None:
    data = tmp_path / "mmlb_data/documentQA"
    data.mkdir(parents=True)
    lines = records(finished, "1K")
    del lines[1]["page_list"]
    (data / "mmlongdoc_K8.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    ran = command("audit", data / "mmlongdoc_K8.jsonl", "--images", finished / "mmlb_image", "-q")
    assert ran.code == 1
    id = lines[1]["id"]
    assert f"documentQA/mmlongdoc_K8.jsonl: the field 'page_list' is missing: 1×, first line 2, {id}" in ran.err


def test_a_file_of_no_known_name_is_named(finished: Path, tmp_path: Path) -> None:
    path = tmp_path / "mmlb_data/documentQA/strange_K8.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text("{}\n")
    ran = command("audit", path, "--images", finished / "mmlb_image")
    assert (ran.code, "no public file whose name is known" in ran.err) == (2, True)


def test_stats_stand_beside_the_papers(finished: Path) -> None:
    shown = command("stats", finished, "--table3")
    assert shown.code == 0
    assert "paper" in shown.out
    (row,) = map(json.loads, command("stats", finished, "--json").out.splitlines())
    pages = [len(line["page_list"]) for line in records(finished, "2K")]
    assert row["images"]["2048"]["mean"] == pytest.approx(sum(pages) / len(pages))
    assert row["paper"]["131072"] == 56.4


def test_the_price_of_a_picture_a_document_and_a_text(finished: Path, source: Path, tmp_path: Path) -> None:
    picture = next((finished / "mmlb_image").rglob("*.jpg"))
    document = source / "documents/ash.pdf"
    (tmp_path / "notes.txt").write_text("Which bell rings at the mill?")
    ran = command("count", picture, document, tmp_path / "notes.txt", "--models", "gemma3,qwen2.5-vl", "--json")
    priced = [json.loads(line)["tokens"] for line in ran.out.splitlines()]
    assert [row["mmlongbench"] for row in priced] == [196, 2 * 196, 7]
    assert [row["gemma3"] for row in priced] == [260, 520, 7]
    assert [row["qwen2.5-vl"] for row in priced] == [198, 396, 7]
    shown = command("count", picture)
    assert shown.code == 0
    assert "llava-onevision" in shown.out
    (tmp_path / "blob").write_bytes(b"\xff\xfe\x00")
    assert command("count", tmp_path / "blob").code == 2


def test_an_unknown_model_lists_the_near_ones() -> None:
    with pytest.raises(TokenizationError, match="internvl"):
        ask("internvll")
    with pytest.raises(ReleaseError, match="none"):
        ask("", ("gpt-4o=1K",))
