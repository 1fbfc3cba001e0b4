"""A release cut for models: a whole release of the questions that fit them all."""

import json
from pathlib import Path

import pytest
from counting_server import counting
from once import linked
from runs import asked
from tiny import build, command, lock, on_model, records, rejects

import mmlongbench as mm
from mmlongbench.release.selection import Selection


@pytest.fixture(scope="module")
def cut(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny release, cut to the smaller examples of 1K."""
    totals = sorted(total + 64 for total in on_model(finished, "1K", "qwen2.5-vl").values())
    out = tmp_path_factory.mktemp("cut") / "cut"
    ran = command("audit", finished, "--count-as", "qwen2.5-vl", "--fits", totals[3], "--cut", out, "-q")
    assert ran.code == 0, ran.err
    return out


def test_a_cut_release_is_a_whole_release_of_the_questions_that_fit(finished: Path, tmp_path: Path) -> None:
    totals = {id: total + 64 for id, total in on_model(finished, "1K", "qwen2.5-vl").items()}
    window = sorted(totals.values())[3]
    fitting = [id for id, total in totals.items() if total <= window]
    assert 0 < len(fitting) < len(totals)
    asked = ("--count-as", "qwen2.5-vl,gemma3", "--fits", window, "--fits", "gemma3=64K")
    found = [json.loads(line) for line in command("audit", finished, *asked, "--json").out.splitlines()]
    assert [line["fit_all"] for line in found] == [len(fitting), 0]
    assert found[0]["models"]["gemma3"]["fit"] == len(totals)
    shown = command("audit", finished, *asked, "--cut", tmp_path / "cut").out
    assert f"{len(fitting)} of {len(totals) + len(records(finished, '2K'))} examples" in shown
    cut = tmp_path / "cut"
    assert [each["id"] for each in records(cut, "1K")] == fitting
    assert not list((cut / "mmlb_data").rglob("*K2.jsonl"))
    for words in (("audit", cut, "-q"), ("verify", cut, "-q")):
        ran = command(*words)
        assert (ran.code, ran.err) == (0, "")
    assert command("audit", cut, *asked, "--check", "-q").code == 0
    assert lock(cut)["cut"]["fits"] == {"qwen2.5-vl": {"window": window}, "gemma3": {"window": 65536}}
    said = next(each for each in rejects(cut) if each["reason"] == "does-not-fit")
    assert f"tokens with the reserve, qwen2.5-vl takes {window:,}" in said["found"]


def test_a_cut_release_reads_as_any_other(finished: Path, cut: Path, tmp_path: Path) -> None:
    examples = list(mm.open_release(cut).examples("mmlongdoc", "1K"))
    whole = {each.name: each for each in mm.open_release(finished).examples("mmlongdoc", "1K")}
    assert [each.digest for each in examples] == [whole[each.name].digest for each in examples]
    assert 0 < len(examples) < len(whole)
    number = len(examples)
    selection = Selection(lengths=("1K",))
    result, requests, _ = asked(cut, tmp_path / "m.jsonl", counting("Answer: hard"), selection=selection)
    assert (result.examples, len(requests), result.failures) == (number, number, ())
    assert [cell.examples for cell in mm.score(cut, tmp_path / "m.jsonl").cells] == [number]
    exported = command("export", cut, "--to", "openai", "--out", tmp_path / "lines", "--json")
    assert json.loads(exported.out)["examples"] == number
    published = command("publish", cut, "--out", tmp_path / "public", "--allow-unknown-licence")
    assert (published.code, lock(tmp_path / "public")) == (0, lock(cut))
    assert len(list(mm.open_release(tmp_path / "public").examples("mmlongdoc", "1K"))) == number


def test_a_cut_release_is_neither_extended_nor_cut_again(source: Path, cut: Path, tmp_path: Path) -> None:
    release, before = linked(cut, tmp_path / "cut"), lock(cut)
    ran = build(source, release, "--set", "lengths=[1K, 2K, 4K]")
    assert (ran.code, "was cut for models" in ran.err, lock(release)) == (2, True, before)
    assert build(source, release).code == 0  # it is finished, and nothing is to be added
    again = ("--count-as", "gemma3", "--fits", "64K", "--cut")
    ran = command("audit", release, *again, tmp_path / "again")
    assert (ran.code, "cut the release that it was cut from" in ran.err) == (2, True)
    for folder in ("without", "public"):
        what = ("takedown", "--document", "ash") if folder == "without" else ("publish", "--allow-unknown-licence")
        assert command(what[0], release, *what[1:], "--out", tmp_path / folder).code == 0
        assert lock(tmp_path / folder)["cut"] == before["cut"]
        assert command("audit", tmp_path / folder, *again, tmp_path / "again").code == 2
    assert not (tmp_path / "again").exists()


def test_a_cut_of_a_takedown_keeps_what_was_taken_out_away(source: Path, finished: Path, tmp_path: Path) -> None:
    taken = command("takedown", finished, "--document", "ash", "--out", tmp_path / "taken", "--date", "2026-11-25")
    assert taken.code == 0, taken.err
    ran = command("audit", tmp_path / "taken", "--count-as", "gemma3", "--fits", "64K", "--cut", tmp_path / "cut", "-q")
    assert ran.code == 0, ran.err
    stones = (tmp_path / "taken/takedowns.jsonl").read_bytes()
    published = command("publish", tmp_path / "cut", "--out", tmp_path / "public", "--allow-unknown-licence")
    assert published.code == 0, published.err
    assert [(tmp_path / folder / "takedowns.jsonl").read_bytes() for folder in ("cut", "public")] == [stones] * 2
    assert build(source, tmp_path / "cut", "--set", "lengths=[1K, 2K, 4K]").code == 2
    again = command("takedown", tmp_path / "cut", "--document", "birch", "--out", tmp_path / "again")
    assert again.code == 0, again.err
    lines = (tmp_path / "again/takedowns.jsonl").read_bytes().splitlines(keepends=True)
    assert (lines[0], json.loads(lines[1])["id"]) == (stones, "birch")


def test_a_cut_names_a_used_folder_first_and_says_what_became_empty(finished: Path, tmp_path: Path) -> None:
    (tmp_path / "used").mkdir()
    (tmp_path / "used/file").touch()
    asked = ("--count-as", "qwen2.5-vl", "--fits", "1024")
    refused = command("audit", finished, *asked, "--cut", tmp_path / "used")
    assert (refused.code, refused.out) == (2, "")
    assert f"--cut {tmp_path / 'used'}: the folder is not empty" in refused.err
    shown = command("audit", finished, *asked, "--cut", tmp_path / "cut").out
    assert "nothing fits of 1 of 2 files, which are left out" in shown
