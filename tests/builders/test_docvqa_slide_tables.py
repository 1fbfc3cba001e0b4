"""SlideVQA as the hub has it: decks are written once, gaps are left out of contexts, hostile cells are named."""

import json
import shutil
import tracemalloc
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hub_forms import PAGE, slide_rows, write_slides

import mmlongbench.task as mt
from builders.docvqa import SlideVQA
from builders.docvqa.slide_tables import written_decks
from builders.samples.docvqa.others import draw_slidevqa
from mmlongbench.building.build import build
from mmlongbench.building.build_dir import BuildDir
from mmlongbench.building.build_plan import plan_datasets
from mmlongbench.building.executors.local import LocalExecutor
from mmlongbench.building.stages.rows import read_rows
from mmlongbench.errors import MMLongBenchError, SourceError
from mmlongbench.io.progress import Progress
from mmlongbench.lengths import K
from mmlongbench.manifest.model import DatasetSpec, Manifest

pytestmark = pytest.mark.slow

QUIET = Progress(is_shown=False)
Rows = list[dict[str, Any]]


def manifest_of(sources: dict[str, Path], **more: Any) -> Manifest:
    about = {"name": "slidevqa", "builder": "docvqa", "reader": "slidevqa", "source": sources, "lengths": (8 * K,)}
    return Manifest(datasets=(DatasetSpec.model_validate({**about, **more}),))


def built(out: Path, sources: dict[str, Path], **more: Any) -> dict[str, Any]:
    """The lock's account of the dataset."""
    lock = build(manifest_of(sources, **more), out, LocalExecutor(1, QUIET)).lock.public()
    found: dict[str, Any] = lock["datasets"]["slidevqa"]
    return found


def records(out: Path) -> list[dict[str, Any]]:
    (path,) = sorted(out.glob("mmlb_data/documentQA/*_K8.jsonl"))
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def rejects(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "rejects.jsonl").read_text("utf-8").splitlines()]


def images(out: Path) -> dict[str, bytes]:
    return {f"{file.relative_to(out)}": file.read_bytes() for file in sorted(out.rglob("mmlb_image/**/*.jpg"))}


def extracted(source: Path, folder: Path) -> dict[str, mt.Pages | mt.Fault]:
    """The decks of Parquet files, as a build finds them."""
    reader = SlideVQA()
    folder.mkdir()
    reader.extract({"questions": source}, folder)
    return dict(reader.documents({"questions": source, **{path.name: path for path in folder.iterdir()}}))


@pytest.fixture(scope="module")
def github(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return draw_slidevqa(tmp_path_factory.mktemp("slides") / "drawn")


@pytest.fixture(scope="module")
def drawn(github: dict[str, Path]) -> Rows:
    """The rows of the hub's form; not to be changed."""
    return slide_rows(github)


@pytest.fixture
def rows(drawn: Rows) -> Rows:
    return [dict(row) for row in drawn]


def in_files(rows: Sequence[dict[str, Any]], folder: Path, split: str = "test", count: int = 3) -> Path:
    """Write a split as the hub does, as several files."""
    size = -(-len(rows) // count)
    for number in range(count):
        part = rows[number * size : (number + 1) * size]
        write_slides(part, folder / f"data/{split}-{number:05d}-of-{count:05d}.parquet")
    return folder / "data"


# --- the same data in both forms --------------------------------------------------------------------------------------


def test_parquet_files_give_the_examples_and_images_of_the_repositorys_form(
    github: dict[str, Path], rows: Rows, tmp_path: Path
) -> None:
    hub = manifest_of({"questions": in_files(rows, tmp_path)})
    lock = build(hub, tmp_path / "hub", LocalExecutor(2, QUIET)).lock.public()
    built(tmp_path / "github", github)
    found, expected = records(tmp_path / "hub"), records(tmp_path / "github")
    assert {record.pop("question_type") for record in expected} == {"Single-Hop"}  # the hub's rows do not have it
    assert found == expected
    assert images(tmp_path / "hub") == images(tmp_path / "github")
    assert lock["datasets"]["slidevqa"]["questions"]["rejected"] == {}
    (dataset,) = lock["manifest"]
    assert {name: found["files"] for name, found in dataset["source"].items()} == {"questions": 3}


def test_each_deck_is_written_once_however_often_rows_repeat_it(rows: Rows, tmp_path: Path) -> None:
    found = extracted(in_files([*rows, *rows], tmp_path), tmp_path / "out")
    files = list((tmp_path / "out").rglob("*.jpg"))
    pages = {row["deck_name"]: sum(1 for n in range(1, 21) if row[f"page_{n}"]) for row in rows}
    assert {deck: len(found[deck].files) for deck in found} == pages  # type: ignore[union-attr]
    assert len(files) == sum(pages.values())


def test_a_second_plan_uses_written_pages_again_unless_a_source_changed(rows: Rows, tmp_path: Path) -> None:
    source, build_dir = in_files(rows, tmp_path), BuildDir(tmp_path / "out")

    def planned() -> dict[Path, int]:
        plan_datasets(manifest_of({"questions": source}), build_dir, QUIET)
        return {file: file.stat().st_mtime_ns for file in sorted(build_dir.extracted("slidevqa").rglob("*.jpg"))}

    first = planned()
    assert first
    assert planned() == first
    build_dir.extracted("slidevqa.json").unlink()  # as after a killed process
    assert planned() != first
    shutil.rmtree(source)
    in_files(rows[-1:], tmp_path, count=1)
    assert {file.parent for file in planned()} == {build_dir.extracted("slidevqa") / "pages/00000"}


def test_a_page_without_a_name_is_named_by_its_deck_number_and_format(github: dict[str, Path], tmp_path: Path) -> None:
    slide = sorted(github["decks"].rglob("*.jpg"))[0].read_bytes()
    png = b"\x89PNG\r\n\x1a\n"
    names = {1: None, 2: "x.jpg", 3: "tea-9-1024.jpg", 4: 'te"a-4-1024.jpg', 5: "tea-5-638.jpg"}
    row: dict[str, Any] = {"deck_name": "Tea / 茶", "question": "Who?", "answer": "x", "evidence_pages": [1]}
    row |= {f"page_{number}": {"bytes": slide, "path": name} for number, name in names.items()}
    row["page_6"] = {"bytes": png, "path": None}
    (deck,) = extracted(write_slides([row], tmp_path / "x.parquet"), tmp_path / "out").values()
    assert isinstance(deck, mt.PageImages)
    slugs = ["tea-1-1024.jpg", "tea-2-1024.jpg", "tea-3-1024.jpg", "tea-4-1024.jpg", "tea-5-638.jpg"]
    assert deck.names == (*slugs, "tea-6-1024.png")


def test_pages_may_be_plain_bytes(rows: Rows, tmp_path: Path) -> None:
    for row in rows:
        row |= {f"page_{n}": row[f"page_{n}"] and row[f"page_{n}"]["bytes"] for n in range(1, 21)}
    plain = {f"page_{number}": pa.large_binary() for number in range(1, 21)}
    source = write_slides(rows, tmp_path / "test.parquet", plain)
    assert built(tmp_path / "out", {"questions": source})["questions"]["rejected"] == {}


# --- splits -----------------------------------------------------------------------------------------------------------


def test_of_several_splits_test_is_read_and_a_note_says_so(rows: Rows, tmp_path: Path) -> None:
    source = in_files(rows, tmp_path)
    in_files(rows[:3], tmp_path, "val", 1)
    in_files(rows[:6], tmp_path, "train", 2)
    reader = SlideVQA()
    assert len([*reader.raw_rows({"questions": source})]) == len(rows)
    done = build(manifest_of({"questions": source}), tmp_path / "out", LocalExecutor(1, QUIET))
    assert done.notes == (
        "dataset 'slidevqa': of the splits test, train, validation, only test is read; to read another one, name its "
        "files alone, as in data/train-*.parquet",
        "dataset 'slidevqa': slides that the source lacks are shown in no context: " + GAPS,
    )


GAPS = (
    "harbour_dredging_2019 (13, 14, 15, 16, 17 …), lighthouse_walks (7, 8, 9, 10, 11 …), "
    "solar_workshop (15, 16, 17, 18, 19 …)"
)
"""The drawn decks have fewer slides than the table has columns."""


def test_one_file_of_a_split_is_read_alone_and_a_note_says_so(rows: Rows, tmp_path: Path) -> None:
    source = in_files(rows, tmp_path) / "test-00001-of-00003.parquet"
    reader = SlideVQA()
    ids = [raw.id for raw in reader.raw_rows({"questions": source})]
    assert ids == [f"slideVQA_{number}" for number in range(-(-len(rows) // 3))]
    folder = tmp_path / "out"
    folder.mkdir()
    reader.extract({"questions": source}, folder)
    notes = reader.notes({"questions": source, "pages": folder / "pages"}, mt.Options())
    assert notes[0] == "only 1 of the 3 files of the split test are there; rows are numbered in these"


@pytest.mark.parametrize(
    ("names", "said"),
    [
        (("train-00000-of-00001", "val-00000-of-00001"), "several-splits: .*found files of train, validation"),
        (("a/test-0", "b/test-0"), "several-splits: .*found a/test-0.parquet and b/test-0.parquet"),
        ((), "missing-split: .*found none"),
    ],
)
def test_a_folder_without_a_clear_split_is_named(names: Sequence[str], said: str, rows: Rows, tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    for name in names:
        write_slides(rows[:1], tmp_path / f"data/{name}.parquet")
    with pytest.raises(SourceError, match=said):
        [*SlideVQA().raw_rows({"questions": tmp_path / "data"})]


# --- decks with gaps --------------------------------------------------------------------------------------------------


def test_a_question_keeps_its_deck_if_only_other_slides_are_missing(rows: Rows, tmp_path: Path) -> None:
    deck = rows[0]["deck_name"]
    asked = {number for row in rows if row["deck_name"] == deck for number in row["evidence_pages"]}
    gap = next(number for number in range(2, 10) if number not in asked)
    for row in rows:
        row[f"page_{gap}"] = None if row["deck_name"] == deck else row[f"page_{gap}"]
    lock = built(tmp_path / "out", {"questions": in_files(rows, tmp_path)})
    assert lock["questions"]["rejected"] == {}
    for record in records(tmp_path / "out"):
        own = [path for path in record["page_list"] if path.split("/")[1] == deck]
        numbers = [int(path.split("-")[-2]) for path in own]
        assert gap not in numbers
        assert numbers == sorted(numbers)
        if record["doc_name"] == deck:
            evidence = {number + 1 for number in record["ans_page_list"]}
            assert evidence <= set(numbers)
            assert (f"{gap - 1}-{gap - 1}" in record["gaps"].split(", ")) == (gap - 1 in numbers and gap + 1 in numbers)
    shown = {path.rpartition("/")[2] for path in images(tmp_path / "out") if f"/{deck}/" in path}
    assert not [name for name in shown if f"-{gap}-" in name]


def test_only_questions_about_missing_slides_are_rejected(rows: Rows, tmp_path: Path) -> None:
    deck, page = rows[0]["deck_name"], rows[0]["evidence_pages"][0]
    about = [row for row in rows if row["deck_name"] == deck and page in row["evidence_pages"]]
    for row in rows:
        row[f"page_{page}"] = None if row["deck_name"] == deck else row[f"page_{page}"]
    lock = built(tmp_path / "out", {"questions": in_files(rows, tmp_path)})
    assert lock["questions"]["rejected"] == {"missing-answer-page": len(about)}
    assert lock["questions"]["kept"] == len(rows) - len(about)
    (first, *_) = rejects(tmp_path / "out")
    assert (first["id"], first["expected"], first["found"]) == (
        "slideVQA_0",
        f"page {page} of {deck}",
        "no image of it among the sources",
    )


def test_questions_without_an_answer_are_asked_about_decks_with_gaps(rows: Rows, tmp_path: Path) -> None:
    for row in rows:
        row |= {"answer": "Not answerable", "evidence_pages": [], "page_1": None, "page_3": None}
    for options in ({}, {"unanswerable_anchor": "middle"}, {"context": "natural"}):
        out = tmp_path / f"out-{len([*tmp_path.iterdir()])}"
        lock = built(out, {"questions": write_slides(rows, tmp_path / "test.parquet")}, options=options)
        assert lock["questions"]["rejected"] == {}
        for record in records(out):
            shown = {(path.split("/")[1], int(path.split("-")[-2])) for path in record["page_list"]}
            assert {(record["doc_name"], page + 1) for page in record["anchor_page_list"]} <= shown
            assert not {number for _, number in shown} & {1, 3}


def test_decks_of_the_manifest_are_read_instead_of_the_pages_in_rows(
    github: dict[str, Path], rows: Rows, tmp_path: Path
) -> None:
    sources = {**github, "questions": write_slides(rows, tmp_path / "test.parquet")}
    (tmp_path / "out").mkdir()
    SlideVQA().extract(sources, tmp_path / "out")
    assert [*(tmp_path / "out").iterdir()] == []
    found = SlideVQA().documents(sources)
    assert found == SlideVQA().documents(github)


def test_both_forms_treat_gaps_alike(github: dict[str, Path], tmp_path: Path) -> None:
    folder = shutil.copytree(github["decks"].parent, tmp_path / "drawn")
    sources = {name: folder / path.name for name, path in github.items()}
    for deck in sorted(sources["decks"].iterdir()):
        sorted(deck.iterdir())[2].unlink()
    built(tmp_path / "github", sources)
    built(tmp_path / "hub", {"questions": in_files(slide_rows(sources), tmp_path)})
    expected = [
        {key: value for key, value in row.items() if key != "question_type"} for row in records(tmp_path / "github")
    ]
    assert records(tmp_path / "hub") == expected
    assert images(tmp_path / "hub") == images(tmp_path / "github")
    assert [row["reason"] for row in rejects(tmp_path / "hub")] == [
        row["reason"] for row in rejects(tmp_path / "github")
    ]


def test_a_deck_without_any_slide_is_named(rows: Rows, tmp_path: Path) -> None:
    for number in range(1, 21):
        rows[0][f"page_{number}"] = None
    (deck,) = extracted(write_slides(rows[:1], tmp_path / "x.parquet"), tmp_path / "out").values()
    assert isinstance(deck, mt.Fault)
    assert str(deck).startswith(f"{rows[0]['deck_name']}: missing-pages: expected at least one page, found none")


# --- rows -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        (pa.list_(pa.int64()), [4, 5], (3, 4)),
        (pa.list_(pa.int32(), 2), [5, 4], (3, 4)),
        (pa.string(), "[4, 5]", (3, 4)),
        (pa.list_(pa.string()), ["4"], (3,)),
        (pa.list_(pa.int64()), None, "answer-pages-not-a-list"),
        (pa.list_(pa.int64()), [], "no-answer-pages"),
        (pa.list_(pa.int64()), [0], "answer-page-out-of-range"),
        (pa.string(), "4", "answer-pages-not-a-list"),
        (pa.list_(pa.float64()), [4.5], "answer-pages-not-a-list"),
    ],
)
def test_evidence_pages_are_a_list_an_array_or_a_text(
    kind: pa.DataType, value: object, expected: object, tmp_path: Path
) -> None:
    row = {"deck_name": "tea", "question": "Who?", "answer": "x", "evidence_pages": value, "page_1": None}
    source = write_slides([row], tmp_path / "x.parquet", {"evidence_pages": kind})
    (found,) = read_rows(SlideVQA(), {"questions": source})
    assert (found.fault.reason if isinstance(found, mt.RowFault) else found.pages) == expected  # type: ignore[attr-defined]


@pytest.mark.parametrize(("kind", "value"), [(pa.string(), None), (pa.float64(), float("nan"))])
def test_a_question_without_an_answer_is_rejected_by_name(kind: pa.DataType, value: object, tmp_path: Path) -> None:
    row = {"deck_name": "tea", "question": "Who?", "answer": value, "evidence_pages": [1], "page_1": None}
    source = write_slides([row], tmp_path / "x.parquet", {"answer": kind})
    (found,) = read_rows(SlideVQA(), {"questions": source})
    assert isinstance(found, mt.RowFault)
    assert (found.id, found.fault.reason, found.fault.file, found.fault.place) == (
        "slideVQA_0",
        "empty-answer",
        "x.parquet",
        "row 0",
    )


# --- hostile files ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "reason"),
    [(b"no picture", "broken-page"), (b"\xff\xd8\xff\xe0 cut", "broken-page"), (b"x" * 3_000_000, "size-of-a-page")],
)
def test_a_cell_that_is_no_picture_or_too_large_refuses_its_deck_by_name(
    data: bytes, reason: str, rows: Rows, tmp_path: Path
) -> None:
    deck = rows[0]["deck_name"]
    rows[0]["page_2"] = {"bytes": data, "path": None}
    source = write_slides(rows, tmp_path / "test.parquet")
    lock = built(tmp_path / "out", {"questions": source}, limits={"bytes": 2_000_000})
    assert lock["questions"]["rejected"] == {reason: sum(1 for row in rows if row["deck_name"] == deck)}
    assert {row["file"] for row in rejects(tmp_path / "out")} == {f"{deck.replace('_', '-')}-2-1024.jpg"}


@pytest.mark.parametrize("cell", [{"bytes": b"", "path": "x"}, {"bytes": None, "path": "x"}])
def test_an_empty_cell_is_a_missing_page(cell: dict[str, object], rows: Rows, tmp_path: Path) -> None:
    rows[0]["page_2"] = cell
    (deck,) = extracted(write_slides(rows[:1], tmp_path / "x.parquet"), tmp_path / "out").values()
    assert isinstance(deck, mt.PageImages)
    assert deck.missing[0] == 1


@pytest.mark.parametrize(
    ("types", "said"),
    [
        ({"page_3": pa.string()}, "test.parquet, page_3: wrong-columns: expected pictures: bytes.*found string"),
        ({"page_3": pa.list_(pa.binary())}, "page_3: wrong-columns: .*found list"),
        ({"page_3": pa.struct([("path", pa.string())])}, "page_3: wrong-columns: .*found struct"),
    ],
)
def test_columns_of_other_types_are_named(types: dict[str, pa.DataType], said: str, tmp_path: Path) -> None:
    row: dict[str, Any] = {"deck_name": "tea", "question": "Who?", "answer": "x", "page_3": None}
    source = write_slides([row], tmp_path / "test.parquet", types)
    with pytest.raises(SourceError, match=said):
        extracted(source, tmp_path / "out")


@pytest.mark.parametrize("lost", ["deck_name", "page_1"])
def test_a_file_without_decks_or_pages_is_named(lost: str, tmp_path: Path) -> None:
    row: dict[str, Any] = {"deck_name": "tea", "question": "Who?", "page_1": None}
    del row[lost]
    source = write_slides([row], tmp_path / "test.parquet")
    with pytest.raises(SourceError, match=r"test.parquet: wrong-columns: .*give the Parquet files of SlideVQA"):
        extracted(source, tmp_path / "out")


def renamed(file: Path, names: dict[str, str]) -> Path:
    """Give columns of a Parquet file other names, and return its folder."""
    table = pq.read_table(file)
    pq.write_table(table.rename_columns([names.get(name, name) for name in table.column_names]), file)
    return file.parent


def test_numbers_of_pages_may_have_leading_zeros(rows: Rows, tmp_path: Path) -> None:
    plain = extracted(write_slides(rows, tmp_path / "a/test.parquet").parent, tmp_path / "plain")
    padded = renamed(
        write_slides(rows, tmp_path / "b/test.parquet"), {f"page_{n}": f"page_{n:02}" for n in range(1, 10)}
    )
    found = extracted(padded, tmp_path / "padded")
    assert {deck: pages.missing for deck, pages in found.items() if isinstance(pages, mt.PageImages)} == {
        deck: pages.missing for deck, pages in plain.items() if isinstance(pages, mt.PageImages)
    }
    first = next(iter(SlideVQA().raw_rows({"questions": padded})))
    assert isinstance(first, mt.RawRow)
    assert not [name for name in first.fields if name.startswith("page_")]


def test_two_columns_of_one_page_are_named(rows: Rows, tmp_path: Path) -> None:
    folder = renamed(write_slides(rows, tmp_path / "a/test.parquet"), {"page_3": "page_02"})
    with pytest.raises(SourceError, match=r"test.parquet, page_02: wrong-columns: expected one column for each page"):
        extracted(folder, tmp_path / "out")


def test_a_file_that_is_cut_short_is_named(rows: Rows, tmp_path: Path) -> None:
    source = write_slides(rows, tmp_path / "test.parquet")
    source.write_bytes(source.read_bytes()[:-100])
    with pytest.raises(SourceError, match=r"test.parquet: broken-parquet"):
        extracted(source, tmp_path / "out")


def test_names_of_decks_cannot_lead_out_of_the_folder(github: dict[str, Path], tmp_path: Path) -> None:
    slide = sorted(github["decks"].rglob("*.jpg"))[0].read_bytes()
    decks = ["../../up", "/etc/x", "a\nb", "x" * 300, ""]
    rows = [{"deck_name": deck, "page_1": {"bytes": slide, "path": "../../y-1-1024.jpg"}} for deck in decks]
    found = extracted(write_slides(rows, tmp_path / "x.parquet"), tmp_path / "out")
    assert list(found) == decks
    for deck in found.values():
        assert isinstance(deck, mt.PageImages)
        assert all(file.resolve().is_relative_to(tmp_path / "out/pages") for file in deck.files)
    assert {path.name for path in tmp_path.iterdir()} == {"x.parquet", "out"}


def test_only_a_few_pages_are_in_memory_at_a_time(tmp_path: Path) -> None:
    page = bytes(1_000_000)
    rows = [{"deck_name": f"d{n}", **{f"page_{p}": {"bytes": page, "path": None} for p in (1, 2)}} for n in range(60)]
    source = write_slides(rows, tmp_path / "x.parquet", groups=60)
    tracemalloc.start()
    try:
        extracted(source, tmp_path / "out")
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert most < 20_000_000


def test_decks_of_the_authors_repository_need_a_folder(github: dict[str, Path]) -> None:
    with pytest.raises(MMLongBenchError, match=r"missing-source: expected source.decks: .*; set it, or give the hub's"):
        SlideVQA().documents({"questions": github["questions"]})


def test_a_list_of_decks_that_is_damaged_leaves_decks_out(tmp_path: Path) -> None:
    (tmp_path / "decks.jsonl").write_text('{"deck_name": "a", "pages": ["x-1-1024.jpg", null]}\n{"deck_name": 3}\nx\n')
    found = written_decks(tmp_path)
    assert found == {"a": mt.PageImages((tmp_path / "x-1-1024.jpg",), ("x-1-1024.jpg",), missing=(1,))}
    assert PAGE.get_field_index("bytes") == 0
