"""The command `show`: what it prints of an example, as JSON, and what it answers to wrong words."""

import json
from pathlib import Path
from typing import Any

import pytest
from tiny import Ran, command, records

import mmlongbench as mm

PICTURES = """\
example  tile-0, depth 0.4
file     tiles/headed_K1.jsonl (headed, 1K)
tokens   270 = 180 text + 90 images; 256 kept for the answer; fill 0.5137
context  12 units, 12 images
needle   depth 0.3810 (0.4 requested) at token 96

         0 instruction Look at the tiles.
         8 negative    A tile: 1.png
                       tiles/1.png  84 × 56  6 tokens
                       So far.
        27 negative    A tile: 2.png
                       tiles/2.png  112 × 56  8 tokens
                       So far.
        48 negative    A tile: 3.png
                       tiles/3.png  140 × 56  10 tokens
                       So far.
        71 negative    A tile: 4.png
                       tiles/4.png  168 × 56  12 tokens
                       So far.
>>      96 needle      A tile: 0.png
                       tiles/0.png  56 × 56  4 tokens
                       So far.
       113 negative    A tile: 5.png
                       tiles/5.png  56 × 56  4 tokens
                       So far.
       130 negative    A tile: 6.png
                       tiles/6.png  84 × 56  6 tokens
                       So far.
           negative    … 4 more units, 83 tokens, 4 images …
       236 negative    A tile: 11.png
                       tiles/11.png  84 × 56  6 tokens
                       So far.
       255 question    Question: which one is 0.png?
                       Answer:

answer  ["0.png"]
metric  sub_em
more of tile-0: --dataset blanks, shown, inline
"""


@pytest.fixture(autouse=True)
def _width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


def show(release: Path, *args: object) -> str:
    ran = command("show", release, *args)
    assert (ran.code, ran.err) == (0, "")
    return ran.out


def edit(release: Path, dataset: str, **changes: Any) -> None:
    """Change fields of the first record of a dataset."""
    path = release / f"mmlb_data/tiles/{dataset}_K1.jsonl"
    first, *others = path.read_text("utf-8").splitlines()
    path.write_text("\n".join([json.dumps({**json.loads(first), **changes}), *others]), "utf-8")


def test_an_example_is_one_screen(tiles: Path) -> None:
    assert show(tiles, "tile-0", "--placement", "0.4") == PICTURES


def test_without_an_id_it_is_the_first_example_of_the_dataset_and_length(tiles: Path, finished: Path) -> None:
    assert show(tiles).startswith("example  tile-0, depth 0\nfile     tiles/headed_K1.jsonl")
    assert show(tiles, "--dataset", "inline").startswith("example  tile-0, depth 0\nfile     tiles/inline_K1.jsonl")
    out = show(finished, "--length", "2K")
    assert "\nfile      documentQA/mmlongdoc_K2.jsonl (mmlongdoc, 2K)\n" in out
    assert out.endswith("\nmore of mmlongdoc_0: --length 1K\n")


def test_needles_inside_a_text_are_marked_without_colour(tiles: Path) -> None:
    out = show(tiles, "--dataset", "blanks")
    assert ">>The secret number 0 is 222.<<" in " ".join(out.split())
    assert ">>The secret number 1 is 333.<<" in " ".join(show(tiles, "--dataset", "blanks", "--full").split())
    assert ">>      86 negative " in out
    assert "\x1b" not in out


def test_pages_with_the_answer_are_marked_and_counted_from_1(finished: Path) -> None:
    out = show(finished, "mmlongdoc_1", "--length", "1K")
    assert records(finished, "1K")[1]["ans_page_list"] == [1]
    assert "\nevidence  page 2 of birch\n" in out
    marked = [number for number, line in enumerate(out.splitlines()) if line.startswith(">>")]
    assert len(marked) == 1
    after = out.splitlines()[marked[0] + 1]
    assert after.split()[0] == "evidence"
    assert "birch_page1.jpg" in after


def test_full_shows_every_unit_and_every_text(tiles: Path) -> None:
    out = show(tiles, "--full")
    assert " more units" not in out
    assert [f"tiles/{number}.png  " in out for number in range(12)] == [True] * 12
    assert "A tile:\n                       0.png\n" in out


@pytest.mark.parametrize("width", [20, 40, 80, 120, 300])
def test_no_line_is_wider_than_the_screen(copy: Path, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    units = [[f"{'word ' * 400}", "x" * 3000, ""], ["", "漢字" * 900, "y"], *[["", "z", ""]] * 10]
    edit(copy, "inline", units=units)
    for dataset in ("headed", "inline", "blanks"):
        lines = show(copy, "--dataset", dataset).splitlines()[8:-1]
        assert max(len(line) + sum(char > "一" for char in line) for line in lines) <= max(width, 50)


def test_control_characters_of_data_are_shown_as_escapes(copy: Path) -> None:
    record = json.loads((copy / "mmlb_data/tiles/inline_K1.jsonl").read_text("utf-8").splitlines()[0])
    units = record["units"]
    units[1][1] = "\x1b[2Jcleared \u202e[bold]reversed[/bold]\x07"
    edit(copy, "inline", units=units, answer=["\x1b]0;title\x07"], depth_achieved="\x1b[1m")
    for options in ([], ["--full"]):
        out = show(copy, "--dataset", "inline", *options)
        assert "\\x1b[2Jcleared \\u202e[bold]reversed[/bold]\\x07" in out
        assert out.isprintable() or not set(out) & set("\x1b\x07\u202e")
        assert "\\u001b]0;title\\u0007" in out


def test_messages_are_those_of_the_example(tiles: Path) -> None:
    example = next(mm.open_release(tiles).examples("headed", "1K"))
    assert json.loads(show(tiles, "--messages")) == example.messages()
    for form in ("path", "file-url", "data-uri", "http://127.0.0.1:8080/images"):
        assert json.loads(show(tiles, "--messages", "--images", form)) == example.messages(form)


def test_messages_stay_json_whatever_the_texts_hold(copy: Path) -> None:
    hostile = "".join(map(chr, range(0xA0))) + "\u200b\u202e\ud800</script>"
    edit(copy, "inline", units=[["", hostile, ""], *[["", "z", ""]] * 11])
    read = json.loads(show(copy, "--dataset", "inline", "--messages"))
    assert hostile in read[0]["content"][0]["text"]


def test_images_that_were_made_smaller_are_named(tiles: Path) -> None:
    ran = command("show", tiles, "--messages", "--images", "data-uri", "--max-pixels", "8000")
    assert ran.code == 0
    assert json.loads(ran.out)
    assert ran.err.splitlines() == [
        "note: tiles/4.png: 168 × 56 made smaller, 154 × 51",
        "note: tiles/9.png: 168 × 56 made smaller, 154 × 51",
    ]


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["tile-7"], "error: release: no example 'tile-7' in headed, blanks, shown, inline; did you mean 'tile-"),
        (["--placement", "0.5"], "error: release: 'tile-0' is not at placement 0.5; placements: 0, 0.4, 1\n"),
        (["--length", "64K"], "error: release: no examples of 64K in headed, blanks, shown, inline; lengths: 1K\n"),
        (["zzz"], "error: release: no example 'zzz' in headed, blanks, shown, inline\n"),
        (["tile-0", "--length", "2K"], "error: release: 'tile-0' is not at 2K; lengths: 1K\n"),
        (["--length", "long"], "error: length 'long': expected "),
        (["--dataset", "inlin"], "error: release: no dataset 'inlin'; there are "),
        (
            ["--messages", "--images", "pictures"],
            "error: images 'pictures': expected path, file-url, data-uri, or a URL",
        ),
        (
            ["--messages", "--max-pixels", "9"],
            "error: max_pixels: images as path are files, which are not changed; use",
        ),
    ],
)
def test_wrong_words_are_one_line_and_exit_with_2(tiles: Path, args: list[str], said: str) -> None:
    ran = command("show", tiles, *args)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(said)
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize(
    "args", [["--images", "path"], ["--max-pixels", "9"], ["--messages", "--full"], ["--messages", "--html", "x.html"]]
)
def test_options_that_do_not_fit_each_other_are_refused(tiles: Path, args: list[str]) -> None:
    ran = command("show", tiles, *args)
    assert (ran.code, ran.out) == (2, "")
    assert "Error: --" in ran.err


def test_a_missing_image_is_named_and_exits_with_2(copy: Path) -> None:
    (copy / "mmlb_image/tiles/3.png").unlink()
    for options in ([], ["--messages"], ["--html", copy / "page.html"]):
        ran = command("show", copy, *options)
        assert (ran.code, ran.out) == (2, "")
        assert "image 'tiles/3.png': is missing; see `mmlongbench verify`" in ran.err
    assert not (copy / "page.html").exists()


def test_a_file_without_items_is_shown_and_it_is_said(copy: Path) -> None:
    (copy / "items/tiles/headed_K1.parquet").unlink()
    out = " ".join(show(copy).split())
    assert "note the release has no items of this file: start tokens and roles are not known" in out
    assert "tiles/0.png 56 × 56 4 tokens" in out


def test_a_record_that_lacks_a_field_is_named(copy: Path) -> None:
    edit(copy, "inline", units=7)
    ran = command("show", copy, "--dataset", "inline")
    assert ran.code == 2
    assert "inline_K1.jsonl, line 1" in ran.err
    assert ran.err.count("\n") == 1
    assert show(copy, "tile-1", "--dataset", "inline")


def test_a_folder_that_is_no_release_is_refused(tmp_path: Path) -> None:
    ran: Ran = command("show", tmp_path)
    assert (ran.code, ran.out) == (2, "")
    assert "this is no release" in ran.err
