"""Mistakes in a task of another package: none builds a release; each gives one line that names the place to correct."""

import json
from pathlib import Path

import pytest
from tiny import Ran, command

HERE = Path(__file__).parent / "mistakes"
METADATA = "Metadata-Version: 2.1\nName: mmlongbench-mistakes\nVersion: 0.1\n"
ROW = "row 'tile-0' (tiles.txt, line 1): "
ROW_1 = "row 'tile-1' (tiles.txt, line 2): "  # the first that is drafted
NOT_PACKED = "prompt(record) is not the prompt that was packed: "
BUILDERS = {
    "Reversed": f"prompt(), {ROW}{NOT_PACKED}image 1 of 8 is 'tiles/0.png' in the packed prompt, 'tiles/7.png' in",
    "OtherWords": f"prompt(), {ROW}{NOT_PACKED}the text at character 45 is …': which one is 0.png?\\nAn'… in the",
    "OneMore": f"prompt(), {ROW}{NOT_PACKED}only the rebuilt one has part 18, the image 'tiles/0.png'",
    "NoPrompt": f"prompt(), {ROW}{NOT_PACKED}it is a str, expected a Prompt",
    "NoId": f"record(), {ROW}the record's id must be the row's, found none",
    "OtherId": f"record(), {ROW}the record's id must be the row's, found 'tile'",
    "NoAnswer": f"record(), {ROW}the record has no 'answer', and answer_of() gives none",
    "EmptyAnswer": f"record(), {ROW}the answer is empty: [' ']",
    "OddAnswer": f"record(), {ROW}metric 'cls_acc' cannot score the answer 'red': the answer is 'red', expected",
    "ASet": f"record(), {ROW}record['more']['colours'][1] is a set, which JSON cannot hold",
    "NotANumber": f"record(), {ROW}record['share'] is nan, which JSON cannot hold",
    "Neadle": f"draft(), {ROW}unit '0.png' has the role 'neadle'; roles are exemplar, gold, needle, negative, own",
    "PlacedNeedle": f"draft(), {ROW}unit '0.png' has the role needle and a place: what is put at a depth has `place=No",
    "NoPlace": f"draft(), {ROW}unit '0.png' has the role negative and no place: only units of the roles gold and need",
    "NoNeedle": f"draft(), {ROW}the task has placements, and no required unit is a needle; give one the role needle",
    "Twice": f"draft(), {ROW}the units '6.png' and '7.png' show the same picture, tiles/6.png",
    "OtherQuestion": f"draft(), {ROW_1}expected one question with the id of the row, found 'other'",
    "UnknownImage": ".png' is shown that is neither the path of a page nor that of a picture; take it fr",
    "UnknownMetric": "spec.metric: no metric 'sub_emm' is installed",
    "AnswerOfPlacement": f"record(), {ROW}the answer is ['0'] at depth 0.0 and ['7'] at depth 1.0; a task whose",
    "OtherNeedles": f"needles(), {ROW}the needles at depth 0.0 differ from those at depth 1.0",
    "NeedlesOfRow": f"needles(), {ROW}AttributeError: 'dict' object has no attribute 'tile' (mistakes.py, line ",
    "UnshownNeedle": f"needles(), {ROW}the image 'tiles/none.png' is not in the prompt",
    "NeedlesOfText": f"needles(), {ROW}TypeError: expected a list of texts, images, and tuples of them, found 'tile'",
    "NeedlesOfNumbers": f"needles(), {ROW}TypeError: expected a list of texts, images, and tuples of them, found [5]",
    "OddGold": f"record(), {ROW}metric 'picky' cannot score the answer 'red': expected a list",
    "FacetsKey": f"a method that scoring calls, {ROW}KeyError: 'boo' (mistakes.py, line ",
    "DraftKey": f"draft(), {ROW_1}KeyError: 'boo' (mistakes.py, line ",
    "LazyKey": f"draft(), {ROW}KeyError: 'boo' (mistakes.py, line ",
    "RecordKey": f"record(), {ROW}KeyError: 'boo' (mistakes.py, line ",
    "PromptKey": f"prompt(), {ROW}KeyError: 'boo' (mistakes.py, line ",
    "SpecKey": "spec, dataset 'tiles': KeyError: 'boo' (mistakes.py, line ",
    "InitKey": "__init__(), dataset 'tiles': KeyError: 'boo' (mistakes.py, line ",
    "OtherVariant": f"render_variant('other'), {ROW}it shows 'tiles/other.png', which the packed prompt does not",
    "Forgetful": "the format of its files: the prompt of example 'tile-0' cannot be rebuilt from mmlb_data/tiles/",
    "NoTakeOrder": f"draft(), {ROW_1}take_order is a list, expected a TakeOrder such as mt.InOrder(units)",
    "NoSpec": "spec: it is a str, expected a TaskSpec",
    "NoFormat": "spec: format: _Lines is not an object of a subclass of mmlongbench.task.file_formats.FileFormat",
    "NoBundleFormat": "spec: bundle.format: _Forgetful is not an object of a subclass of mmlongbench.task.file_formats",
    "Unannotated": "AttributeError: 'TileRow' object has no attribute 'needles' (mistakes.py, line ",
}
READERS = {
    "Dicts": "raw_rows(): item 1 is a dict, expected RawRow or RowFault",
    "NoRow": f"row(), {ROW}returned a dict, expected TileRow (`row_type`) or Fault",
    "OtherRowId": f"row(), {ROW}the row's id must be the raw row's, found '0.png'",
    "RowKey": f"row(), {ROW}KeyError: 'boo' (mistakes.py, line ",
    "RowsKey": "raw_rows(): KeyError: 'boo' (mistakes.py, line ",
    "DocumentsKey": "documents(): KeyError: 'boo' (mistakes.py, line ",
    "NumberedDocuments": "documents(): the id of a document is 5, expected a text",
    "ImageKey": "image(), picture '",
    "PooledTiles": "shows(): returned a list, expected Mapping",
    "MixedPool": "shows(): TypeError: '<' not supported between instances of 'int' and 'str'",
    "NoWebPages": "web_pages(): returned a NoneType, expected Mapping",
    "ClassesKey": "image_classes(): KeyError: 'boo' (mistakes.py, line ",
    "DictOfClasses": "image_classes(): returned a dict, expected ImageClasses or NoneType",
    "OnlyInPython": f"row(), {ROW}the row changes when it is written as JSON and read again: field 'repairs': Inp",
    "Forgets": f"row(), {ROW}the row changes when it is written as JSON and read again: field 'secret' was 'known'",
    "GivesMore": f"row(), {ROW}returned a SecretTile, expected TileRow (`row_type`) or Fault",
    "LongNumber": f"row(), {ROW}ValueError: Exceeds the limit (4300 digits) for integer string conversion",
    "NoText": f"row(), {ROW}UnicodeDecodeError: ",
}
SAMPLES = {
    "draw_boo": "draw(): KeyError: 'boo' (mistakes.py, line ",
    "draw_none": "draw(): returned a NoneType, expected the paths of the sources by name",
    "draw_empty": "draw(): returned no source 'tiles', which the reader needs",
    "draw_others": "draw(): returned a source 'tile', but the sources of the reader are: tiles, corpus",
    "draw_text": "draw(): source 'tiles' is a str, expected a Path",
    "draw_nowhere": "draw(): source 'tiles': no such file or folder: ",
    "draw_between": "is broken: it cannot be called with a folder alone: missing a required argument: 'tiles'",
    "draw_nothing": "is broken: AttributeError: module 'mistakes' has no attribute 'draw_nothing'",
    "TILES": "is broken: 8 is not a function that draws a sample into a folder",
    "TileRow": "is broken: <class 'mistakes.TileRow'> is not a function that draws a sample into a folder",
}
"""What is installed as the sample of a reader of the same name."""


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the mistakes be an installed package, as far as Python can tell."""
    info = tmp_path / "site" / "mmlongbench_mistakes-0.1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(METADATA)
    builders = ("Tiles", "UnknownFurther", "Judging", *BUILDERS)
    readers = ("TileReader", *READERS)
    groups = {
        "builders": {name: name for name in builders},
        "readers": {**{name: name for name in readers}, **dict.fromkeys((*SAMPLES, "NoSample"), "TileReader")},
        "samples": {**dict.fromkeys(readers, "draw_tiles"), **{name: name for name in SAMPLES}},
        "metrics": {"picky": "Picky", "wayward": "Wayward"},
    }
    points = [
        f"[mmlongbench.{group}]\n" + "".join(f"{name} = mistakes:{found}\n" for name, found in named.items())
        for group, named in groups.items()
    ]
    (info / "entry_points.txt").write_text("\n".join(points))
    monkeypatch.syspath_prepend(str(info.parent))
    monkeypatch.syspath_prepend(str(HERE))


def build(tmp_path: Path, builder: str, reader: str, *options: object) -> Ran:
    text = (
        f"datasets:\n  - {{name: tiles, builder: {builder}, reader: {reader}, source: sample, lengths: [1K], "
        "admission_length: 1K}\n"
    )
    (tmp_path / "tiles.yaml").write_text(text)
    return command(*options, "build", tmp_path / "tiles.yaml", "--out", tmp_path / "out", "--workers", 1, "-q")


def refused(ran: Ran, out: Path, said: str, who: str) -> None:
    assert said in ran.err
    assert who in ran.err
    assert (ran.code, ran.err.count("\n"), ran.out) == (2, 1, "")
    assert not (out / "build.lock.json").exists()


def test_the_task_without_a_mistake_builds_and_passes_the_audit(installed: None, tmp_path: Path) -> None:
    assert build(tmp_path, "Tiles", "TileReader") == Ran(0, "", "")
    assert command("audit", tmp_path / "out", "-q") == Ran(0, "", "")
    lines = (tmp_path / "out/mmlb_data/tiles/tiles_K1.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line)["depth_achieved"] for line in lines] == [0.0, 1.0, 0.0, 1.0]


@pytest.mark.parametrize("name", BUILDERS)
def test_a_mistake_in_a_builder_ends_the_build_with_one_line(name: str, installed: None, tmp_path: Path) -> None:
    who = f"builder {name!r} (mistakes:{name} of mmlongbench-mistakes): "
    refused(build(tmp_path, name, "TileReader"), tmp_path / "out", BUILDERS[name], who)


def test_a_further_metric_that_is_not_installed_is_a_note(installed: None, tmp_path: Path) -> None:
    assert build(tmp_path, "UnknownFurther", "TileReader") == Ran(0, "", "")
    ran = command("build", tmp_path / "tiles.yaml", "--out", tmp_path / "anew", "--workers", 1)
    assert ran.code == 0
    assert ran.err.startswith(
        "note: dataset 'tiles': metric 'judge-nothing' of builder 'UnknownFurther' is not installed; the release can "
        "be built, but not scored by this metric\n"
    )


def test_a_metric_of_a_stranger_ends_no_build_by_what_it_does_not_promise(installed: None, tmp_path: Path) -> None:
    assert build(tmp_path, "Judging", "TileReader") == Ran(0, "", "")


@pytest.mark.parametrize(
    ("method", "gives", "fault"),
    [
        ("evidence", {"pages": [1]}, "evidence() returned a dict, expected mt.Evidence or None"),
        ("facets", KeyError("boo"), "KeyError: 'boo'"),
    ],
)
def test_a_mistake_that_only_scoring_meets_is_named(
    method: str, gives: object, fault: str, installed: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert build(tmp_path, "Tiles", "TileReader") == Ran(0, "", "")

    def broken(self: object, record: object) -> object:
        if isinstance(gives, Exception):
            raise gives
        return gives

    (tmp_path / "said").mkdir()
    (tmp_path / "said/tiles_K1.jsonl").write_text("")
    monkeypatch.setattr(f"mistakes.Tiles.{method}", broken)
    ran = command("score", tmp_path / "out", tmp_path / "said", "--out", tmp_path / "scores")
    who = "builder 'Tiles' (mistakes:Tiles of mmlongbench-mistakes): a method that scoring calls, example 'tile-0': "
    assert ran.code == 2
    assert ran.err.startswith(f"error: {who}{fault}")
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize("name", READERS)
def test_a_mistake_in_a_reader_ends_the_build_with_one_line(name: str, installed: None, tmp_path: Path) -> None:
    who = f"reader {name!r} (mistakes:{name} of mmlongbench-mistakes): "
    refused(build(tmp_path, "Tiles", name), tmp_path / "out", READERS[name], who)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_mistake_in_a_sample_ends_the_build_with_one_line(name: str, installed: None, tmp_path: Path) -> None:
    who = f"sample {name!r} (mistakes:{name} of mmlongbench-mistakes)"
    refused(build(tmp_path, "Tiles", name), tmp_path / "out", SAMPLES[name], who)


def test_a_reader_without_a_sample_is_named_with_both_ways_out(installed: None, tmp_path: Path) -> None:
    said = (
        "error: dataset 'tiles': source: sample: no sample is installed for reader 'NoSample'; name its sources, "
        "source: {tiles: PATH}, or install a function that draws one as the entry point 'NoSample' of the group "
        "'mmlongbench.samples'\n"
    )
    assert build(tmp_path, "Tiles", "NoSample") == Ran(2, "", said)
    given = command("build", tmp_path / "tiles.yaml", "--out", tmp_path / "out", "--set", "source.tiles=PATH")
    assert "source.tiles: no such file or folder: " in given.err


def test_a_reader_whose_rows_the_builder_does_not_take_is_refused_at_start(installed: None, tmp_path: Path) -> None:
    said = (
        "error: dataset 'tiles': builder 'docvqa' takes rows of DocumentQuestion, reader 'TileReader' gives rows of "
        "TileRow; choose a reader and a builder that fit\n"
    )
    assert build(tmp_path, "docvqa", "TileReader") == Ran(2, "", said)
    assert not (tmp_path / "out").exists()


def test_the_failing_line_is_shown_by_debug(installed: None, tmp_path: Path) -> None:
    with pytest.raises(Exception, match="KeyError: 'boo'") as raised:
        build(tmp_path, "RecordKey", "TileReader", "--debug")
    assert isinstance(raised.value.__cause__, KeyError)
