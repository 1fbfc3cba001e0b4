"""Questions that name their needle by an ordinal: right at every placement, neutral or stale on request; audited."""

import json
import re
import shutil
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tiny import command

import mmlongbench.task as mt
from builders.mm_niah import MMNIAH
from builders.mm_niah.asking import NeedlePlace, asked
from builders.mm_niah.builder import MMNIAHOptions
from builders.mm_niah.ordinals import MAX_PLACE, all_ordinals, pictures_named, renamed, without_ordinal
from builders.mm_niah.rows import HaystackQuestion, HiddenNeedle
from builders.samples.mm_niah.upstream import draw_upstream
from mmlongbench.building.build import build
from mmlongbench.building.executors.local import LocalExecutor
from mmlongbench.io.progress import Progress
from mmlongbench.manifest.model import Manifest

pytestmark = pytest.mark.slow

QUESTION = "Given the second image, whose lower right corner is missing, tell which of these is the missing part."
FILE = Path("mmlb_data/NIAH/reasoning-image_test_K2_dep6.jsonl")
STALE = "naming another picture than the needle"
UNKNOWN = "that cannot be compared: the record does not say which picture is the needle"
ORDINALS, FILLERS = "questions with an ordinal", "contexts with other pictures than needles"


def row(question: str = QUESTION, needles: int = 1) -> HaystackQuestion:
    hidden = tuple(HiddenNeedle(id=f"needle-{n}", image=f"{n}.png") for n in range(needles))
    return HaystackQuestion(id="q", question=question, needles=hidden, choices=("a.png", "b.png"), right=0)


def wording() -> NeedlePlace:
    found = asked(row(), "rewrite", ("a.png", "b.png")).wording
    assert found is not None
    return found


def context(pictures: int, place: int) -> list[mt.Unit]:
    """Units of which so many are pictures, the needle at a place from 1, texts between them."""
    return [
        unit
        for number in range(1, pictures + 1)
        for unit in (text(number), picture("needle-0" if number == place else f"u{number}"))
    ]


@cache
def text(number: int) -> mt.Unit:
    return mt.Unit(f"t{number}", "own", "Words.", ())


@cache
def picture(id: str) -> mt.Unit:
    return mt.Unit(id, "own", mt.Image(f"{id}.png"), ())


@pytest.mark.parametrize("most", range(50, 601, 50))
def test_the_ordinal_names_the_needle_among_1_to_600_pictures(most: int) -> None:
    builder, how = MMNIAH("reasoning-image", MMNIAHOptions(task="reasoning", needle="image")), wording()
    for pictures in range(most - 49, most + 1):
        for place in {1, pictures, 1 + 7 * (pictures - 1) // 10, (pictures + 1) // 2}:
            units = context(pictures, place)
            chosen = how.choose(units)
            assert chosen == place - 1
            question = how.asked(how.texts[chosen])
            assert question == QUESTION.replace("second", mt.ordinal_words(place))
            assert [named.place for named in pictures_named(question)] == [place]
        record = {
            "question": question,
            "choices_image": ["a.png", "b.png"],
            "image_list": [unit.body.path for unit in units if isinstance(unit.body, mt.Image)],
            "ctxs": [
                {"text": "<image>", "has_ans": unit.id == "needle-0"}
                if isinstance(unit.body, mt.Image)
                else {"text": "."}
                for unit in units
            ],
        }
        assert {remark.fault for remark in builder.remarks(record)} == {""}
        stale = {**record, "question": QUESTION.replace("second", mt.ordinal_words(place + 1))}
        assert next(iter(builder.remarks(stale))).fault == STALE


def test_every_ordinal_is_found_again() -> None:
    for place in [*range(1, 1300), *range(1300, MAX_PLACE, 131), MAX_PLACE]:
        words = all_ordinals()[place - 1]
        assert [named.place for named in pictures_named(f"Is it the {words} picture?")] == [place]


@pytest.mark.parametrize(
    ("question", "places"),
    [
        ("Given the 3rd image, which is it?", [3]),
        ("Given the 22th photo, which is it?", [22]),
        ("Given the fourth photograph, which is it?", [4]),
        ("Given the 0th image, which is it?", []),
        ("Given THE Third Image, which is it?", [3]),
        ("The first and second image are frames.", [1, 2]),
        ("the first, the second and the one hundred and third images", [103]),
        ("Is the one hundred first image it?", [101]),
        ("Which of the following images appears first?", []),
        ("Is it the last image, or the missing image?", []),
        ("In the twenty images there is one.", []),
        ("a second image", []),
        ("the " + "first " * 5_000 + "picture", []),
    ],
    ids=[
        "digits",
        "a wrong ending",
        "a photograph",
        "none of that number",
        "capitals",
        "two",
        "a list",
        "no and",
        "none",
        "last",
        "a number",
        "no article",
        "endless",
    ],
)
def test_pictures_are_named_by_ordinals_and_by_nothing_else(question: str, places: list[int]) -> None:
    assert [named.place for named in pictures_named(question)] == places


def test_an_ordinal_keeps_its_place_in_the_sentence() -> None:
    question = "The Second image, whose corner is missing: which is it?"
    (named,) = pictures_named(question)
    assert renamed(question, named, "one hundred and first") == question.replace("Second", "One hundred and first")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("the second image, whose corner is missing, which", "the image whose corner is missing, which"),
        ("the second image with the corner missing, tell", "the image with the corner missing, tell"),
        ("the twenty-first picture which has no corner", "the picture which has no corner"),
        (
            "the second photo, which has its corner cut out, can you say which of these fits?",
            "the photo which has its corner cut out, can you say which of these fits?",
        ),
        ("the second image, where a corner is missing, tell", "the image where a corner is missing, tell"),
        ("the second image, in which a corner is cut, tell", "the image in which a corner is cut, tell"),
        ("the second image, having no corner, tell", "the image having no corner, tell"),
        ("the second image, missing its corner, tell", "the image missing its corner, tell"),
        ("the second image (whose corner is missing), tell", "the image (whose corner is missing), tell"),
        ("the second image of the document, whose corner", "the image of the document whose corner"),
        ("the second image, which of these is missing?", None),
        ("the second image, which is the missing part?", None),
        ("the second image, in which of these is it?", None),
        ("the second image, where is the missing part?", None),
        ("the second image. Which one is it?", None),
        ("the second image of the document. Whose is it?", None),
    ],
    ids=[
        "whose",
        "with",
        "which has",
        "as in the paper",
        "where",
        "in which",
        "having",
        "missing",
        "in brackets",
        "of the document",
        "which of",
        "which is the",
        "in which of",
        "where is",
        "nothing",
        "another sentence",
    ],
)
def test_without_its_ordinal_a_picture_is_told_by_its_description(before: str, after: str | None) -> None:
    (named,) = pictures_named(before)
    assert without_ordinal(before, named) == after


def test_a_question_without_an_ordinal_is_asked_as_it_is() -> None:
    for ordinal in ("rewrite", "neutral", "source"):
        found = asked(row("Which cartoon is seen?"), ordinal, ())
        assert (found.text, found.wording, found.named) == ("Which cartoon is seen?", None, ())


@pytest.mark.parametrize("ordinal", ["rewrite", "neutral"])
@pytest.mark.parametrize(
    "asks",
    [row("Which of the second image or the third image is the part of the first image?"), row(needles=2)],
    ids=["several ordinals", "several needles"],
)
def test_ordinals_that_cannot_be_the_needles_are_named(ordinal: Any, asks: HaystackQuestion) -> None:
    with pytest.raises(mt.Rejected, match="several-ordinals: expected one ordinal and one needle"):
        asked(asks, ordinal, ())
    assert asked(asks, "source", ()).text == asks.question


def test_a_needle_that_nothing_else_describes_keeps_its_ordinal() -> None:
    with pytest.raises(mt.Rejected, match=r"ordinal-without-description: .*; set options\.ordinal to rewrite"):
        asked(row("What is missing in the second image?"), "neutral", ())


def test_a_needle_behind_the_last_ordinal_is_named() -> None:
    pictures = [mt.Unit(f"u{n}", "own", mt.Image("x.png"), ()) for n in range(MAX_PLACE)]
    needle = mt.Unit("needle-0", "needle", mt.Image("n.png"), None)
    assert wording().choose([*pictures[1:], needle]) == MAX_PLACE - 1
    with pytest.raises(mt.Rejected, match="more-pictures-than-ordinals"):
        wording().choose([*pictures, needle])


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The same four Jigsaw rows with their ordinals rewritten, left out, and as they were."""
    folder = tmp_path_factory.mktemp("ordinals")
    sources = draw_upstream(folder / "drawn", rows=5, pictures=20, pages=3)["reasoning-image"]
    source = {key: str(path) for key, path in sources.items()}
    made = {}
    for ordinal in ("rewrite", "neutral", "source"):
        options = {"task": "reasoning", "needle": "image", "ordinal": ordinal}
        common = {"name": "reasoning-image", "builder": "mm_niah", "reader": "mm_niah", "source": source}
        dataset = {**common, "lengths": ["2K"], "admission_length": "2K", "options": options}
        made[ordinal] = folder / ordinal
        build(
            Manifest.model_validate({"datasets": [dataset]}), made[ordinal], LocalExecutor(1, Progress(is_shown=False))
        )
    return made


def records(release: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (release / FILE).read_text("utf-8").splitlines()]


def noticed(*args: object) -> tuple[int, list[dict[str, Any]]]:
    """(exit code, remarks on ordinals) of an audit of one file."""
    code, found = noticed_of_all(*args)
    return code, [remark for remark in found if remark["subject"] == ORDINALS]


def noticed_of_all(*args: object) -> tuple[int, list[dict[str, Any]]]:
    """(exit code, remarks) of an audit of one file."""
    audited = command("audit", *args, "--json")
    (line,) = audited.out.splitlines()
    return audited.code, json.loads(line)["remarks"]


def foreign(release: Path, folder: Path) -> Path:
    """The public files alone, in the form in which others publish them: without what this engine adds."""
    shutil.copytree(release / "mmlb_image", folder / "mmlb_image")
    path = folder / FILE
    path.parent.mkdir(parents=True)
    added = ("length", "tokens", "depth_achieved", "needle_start", "question_source", "ordinal", "ordinal_source")
    lines = [{key: value for key, value in record.items() if key not in added} for record in records(release)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return path


def test_neutral_questions_have_the_same_words_at_every_depth(releases: dict[str, Path]) -> None:
    found = records(releases["neutral"])
    for id in {record["id"] for record in found}:
        (question,) = {record["question"] for record in found if record["id"] == id}
        assert not pictures_named(question)
        assert re.search(r"the image (whose|with the|which has its) lower right corner", question)
    assert {record["ordinal"] for record in found} == {None}
    assert all(record["ordinal_source"] > 0 and pictures_named(record["question_source"]) for record in found)
    assert noticed(releases["neutral"]) == (0, [])


def test_source_questions_are_stale_and_the_audit_says_how_many(releases: dict[str, Path]) -> None:
    found = records(releases["source"])
    assert all(record["question"] == record["question_source"] for record in found)
    assert all(record["ordinal"] == record["ordinal_source"] for record in found)
    stale = sum(needle_place(record) != record["ordinal_source"] for record in found)
    code, (remark,) = noticed(releases["source"])
    assert code == 0
    assert (remark["subject"], remark["examples"]) == ("questions with an ordinal", len(found))
    assert [(fault["fault"], fault["count"]) for fault in remark["faults"]] == [(STALE, stale)]
    assert 0 < stale <= len(found)


@pytest.mark.parametrize("ordinal", ["source", "rewrite", "neutral"])
def test_a_wrong_ordinal_of_the_source_is_counted_and_is_no_repair(ordinal: str, tmp_path: Path) -> None:
    sources = draw_upstream(tmp_path / "drawn", rows=2, pictures=4, pages=1)["reasoning-image"]
    lines = [json.loads(line) for line in sources["questions"].read_text("utf-8").splitlines()]
    (named,) = pictures_named(lines[0]["question"])
    lines[0]["question"] = renamed(lines[0]["question"], named, mt.ordinal_words(named.place + 1))
    sources["questions"].write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    dataset = {
        "name": "reasoning-image",
        "builder": "mm_niah",
        "reader": "mm_niah",
        "source": {key: str(path) for key, path in sources.items()},
        "lengths": ["2K"],
        "admission_length": "2K",
        "placements": [0],
        "options": {"task": "reasoning", "needle": "image", "ordinal": ordinal},
    }
    manifest = Manifest.model_validate({"datasets": [dataset]})
    lock = build(manifest, tmp_path / "out", LocalExecutor(1, Progress(is_shown=False))).lock.public()
    counts = lock["datasets"]["reasoning-image"]["questions"]
    assert (counts["kept"], counts["repaired"]) == (2, {})
    assert counts["noted"] == {"ordinal of another picture in the source": 1}


def needle_place(record: dict[str, Any]) -> int:
    """The place of the needle among the pictures of the context, from 1."""
    marks = [bool(ctx["has_ans"]) for ctx in record["ctxs"] if ctx["text"] == "<image>"]
    return 1 + marks.index(True)


def test_the_audit_of_a_download_says_how_many_are_stale_and_does_not_fail(
    releases: dict[str, Path], tmp_path: Path
) -> None:
    counts = {}
    for kind in ("rewrite", "source"):
        path = foreign(releases[kind], tmp_path / kind)
        code, (remark,) = noticed(path)
        assert (code, remark["examples"]) == (0, 24)
        counts[kind] = sum(fault["count"] for fault in remark["faults"])
        said = command("audit", path).out
        assert ("24, all right" if kind == "rewrite" else f"24, {counts[kind]} {STALE} (first line ") in said
    assert counts["rewrite"] == 0 < counts["source"]


def test_needles_of_a_download_are_told_by_their_paths_where_no_unit_is_marked(
    releases: dict[str, Path], tmp_path: Path
) -> None:
    path = foreign(releases["source"], tmp_path)
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    with_marks = noticed(path)
    for line in lines:
        for ctx in line["ctxs"]:
            del ctx["has_ans"]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    assert noticed(path) == with_marks
    for line in lines:
        line["positive_ctxs"] = []
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    (remark,) = noticed(path)[1]
    assert [fault["fault"] for fault in remark["faults"]] == [UNKNOWN]
    assert [[fault["fault"] for fault in each["faults"]] for each in noticed_of_all(path)[1]] == [[UNKNOWN]] * 2


@pytest.mark.parametrize(
    ("filler", "fault"),
    [
        ("mm-niah/obelics_paste/find-image/x.png", "filled with a picture that was made for a question"),
        ("mm-niah/abnormal_pic_val/x.png", "filled with a picture that was made for a question"),
        ("", "filled with a picture that is shown beside the question"),
    ],
    ids=["pasted", "cartoon", "an option"],
)
def test_the_audit_of_any_file_says_where_a_picture_of_a_question_is_filler(
    filler: str, fault: str, releases: dict[str, Path], tmp_path: Path
) -> None:
    path = foreign(releases["rewrite"], tmp_path)
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    at = 0 if needle_place(lines[0]) > 1 else 1
    wrong = filler or lines[0]["choices_image"][0]
    if filler:
        (tmp_path / "mmlb_image" / filler).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(tmp_path / "mmlb_image" / lines[0]["image_list"][at], tmp_path / "mmlb_image" / filler)
    lines[0]["image_list"][at] = wrong
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    code, found = noticed_of_all(path)
    (remark,) = [each for each in found if each["subject"] == FILLERS]
    assert (code, remark["examples"]) == (0, 24)
    assert [(each["fault"], each["count"]) for each in remark["faults"]] == [(fault, 1)]


def test_a_release_of_ours_with_such_filler_is_wrong(releases: dict[str, Path], tmp_path: Path) -> None:
    shutil.copytree(releases["rewrite"], tmp_path / "release")
    found = records(tmp_path / "release")
    found[0]["image_list"][0 if needle_place(found[0]) > 1 else 1] = found[0]["choices_image"][0]
    (tmp_path / "release" / FILE).write_text("".join(json.dumps(line) + "\n" for line in found), "utf-8")
    audited = command("audit", tmp_path / "release", "-q")
    assert audited.code == 1
    assert f"{FILLERS}: filled with a picture that is shown beside the question: 1×, first line 1" in audited.err


def test_a_stale_ordinal_in_a_release_that_promised_none_is_a_problem(
    releases: dict[str, Path], tmp_path: Path
) -> None:
    shutil.copytree(releases["rewrite"], tmp_path / "release")
    found = records(tmp_path / "release")
    words = [mt.ordinal_words(record["ordinal"]) for record in found]
    found[0]["question"] = found[0]["question"].replace(words[0], words[3])
    (tmp_path / "release" / FILE).write_text("".join(json.dumps(line) + "\n" for line in found), "utf-8")
    audited = command("audit", tmp_path / "release", "-q")
    assert audited.code == 1
    assert f"questions with an ordinal: {STALE}: 1×, first line 1, mm-niah-0" in audited.err


def test_the_page_of_an_audit_says_it_too(releases: dict[str, Path], tmp_path: Path) -> None:
    assert command("audit", releases["source"], "-q", "--html", tmp_path / "page.html").code == 0
    text = (tmp_path / "page.html").read_text("utf-8")
    assert "questions with an ordinal" in text
    assert STALE in text
