"""Many-shot ICL: bad input is named, classes and labels drawn once, near-duplicates kept out, loaders can read it."""

import io
import json
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import mmlongbench.task as mt
from builders.many_shot import ImageFolders, ImageTables, INaturalist
from builders.samples.many_shot.shapes import CLASSES, draw_shape
from builders.samples.many_shot.sources import draw_folders
from mmlongbench.building.build import build
from mmlongbench.building.executors.local import LocalExecutor
from mmlongbench.building.stages.rows import read_rows
from mmlongbench.documents.pixels import is_like_any, likeness
from mmlongbench.io.progress import Progress
from mmlongbench.lengths import K
from mmlongbench.manifest.model import DatasetSpec, Manifest
from mmlongbench.release.audit import audit_release

pytestmark = pytest.mark.slow

QUIET = Progress(is_shown=False)
drawn_shape = cache(draw_shape)
"""The bytes of a picture; the same ones are drawn for nearly every test."""


def built(out: Path, source: Any, reader: str = "image_folders", **more: Any) -> dict[str, Any]:
    """The lock of a release."""
    about = {"name": "sun397", "builder": "many_shot", "reader": reader, "source": source, "lengths": (8 * K,)}
    spec = DatasetSpec.model_validate({**about, "sample": {"stratify": "kind"}, **more})
    return build(Manifest(datasets=(spec,)), out, LocalExecutor(1, QUIET)).lock.public()


def frozen(out: Path, length: int = 8) -> list[dict[str, Any]]:
    lines = (out / f"mmlb_data/ICL/sun397_K{length}.frozen.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


def public(out: Path, length: int = 8) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((out / f"mmlb_data/ICL/sun397_K{length}.json").read_bytes())
    return found


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return draw_folders(tmp_path_factory.mktemp("drawn"))


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory, drawn: dict[str, Path]) -> Path:
    out = tmp_path_factory.mktemp("icl") / "release"
    built(out, drawn, lengths=(8 * K, 16 * K))
    return out


@pytest.fixture
def folders(tmp_path: Path) -> dict[str, Path]:
    """Three classes of nine exemplars and two tests."""
    for split, count in (("train", 9), ("test", 2)):
        for shape in CLASSES[:3]:
            for number in range(count):
                path = tmp_path / split / shape.name / f"{number}.jpg"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(drawn_shape(shape, f"{split} {number}"))
    return {"train": tmp_path / "train", "test": tmp_path / "test"}


def test_a_public_loader_makes_a_prompt_within_the_length_from_any_set_in_any_order(release: Path) -> None:
    """Load as the public loader does: choose a set at random, shuffle each round, format the template."""
    item = "<image>\nlabel: {label}"
    user = (
        "You need to recognize entities in images. Use the provided mapping from the image to label to assign a label "
        'to the test image. Only output "label: {{label}}" and nothing else.\n\nTraining examples:\n{context}\n\n'
        "Now classify this image: {question}"
    )
    turns = mt.Draws(("loader",))
    (domain,) = public(release).values()
    for test in domain["test_example"]:
        rounds = turns.choice(test["id"], domain["exemplar_list"])
        shots = [shot for turn in rounds for shot in turns.order(test["id"], turn, lambda shot: str(shot["image"]))]
        context = "\n\n".join(item.format(label=shot["id"]) for shot in shots)
        prompt = user.format(context=context, question="<image>") + "\nlabel:"
        assert prompt.count("<image>") == len(shots) + 1
        assert test["answer"] in {shot["id"] for shot in shots}
        assert (release / "mmlb_image" / test["image"]).is_file()
    assert all(count + 256 <= 8 * K for count in domain["all_token_count"])


def test_a_record_is_a_set_of_the_public_file_in_the_order_it_has_there(release: Path) -> None:
    (domain,) = public(release).values()
    assert len(domain["exemplar_list"]) == 4
    for record in frozen(release):
        shots = [shot for turn in domain["exemplar_list"][record["set"]] for shot in turn]
        assert record["exemplars"] == shots
        assert record["length"] <= domain["all_token_count"][record["set"]]
        assert domain["labels"] == record["labels"]
        assert record["labels"][record["answer"]] == record["name"]


def test_labels_are_the_same_in_all_sets_and_the_classes_nested(release: Path) -> None:
    shown = {}
    for length in (8, 16):
        (domain,) = public(release, length).values()
        shown[length] = domain["labels"]
        label = {name: number for number, name in enumerate(domain["labels"])}
        assert all(test["answer"] == label[test["name"]] for test in domain["test_example"])
    assert (len(shown[8]), len(shown[16])) == (5, 10)
    assert set(shown[8]) < set(shown[16])
    assert shown[16] != sorted(shown[16])


def test_neither_prompts_nor_image_paths_tell_a_class(release: Path) -> None:
    words = {word for shape in CLASSES for word in shape.name.split()}
    for record in frozen(release, 16):
        paths = [record["image"], *(shot["image"] for shot in record["exemplars"])]
        assert not [path for path in paths if any(word in path for word in words)]
        assert not any(word in record["id"] for word in words)


def test_the_audit_counts_every_pair_of_set_and_test_and_finds_a_wrong_sum(release: Path, tmp_path: Path) -> None:
    import shutil

    found = {audit.file: audit for audit in audit_release(release, QUIET)}
    assert not [audit.first for audit in found.values() if audit.problems]
    assert found["ICL/sun397_K8.json"].examples == 4 * found["ICL/sun397_K8.frozen.jsonl"].examples
    copy = tmp_path / "copy"
    shutil.copytree(release, copy)
    changed = public(copy)
    changed["sun397"]["all_token_count"][2] += 1
    (copy / "mmlb_data/ICL/sun397_K8.json").write_text(json.dumps(changed))
    problems = next(a for a in audit_release(copy, QUIET) if a.file == "ICL/sun397_K8.json").problems
    assert problems["length differs from the recount"] == len(changed["sun397"]["test_example"])


def test_near_duplicates_of_a_test_image_are_kept_out_and_counted(folders: dict[str, Path], tmp_path: Path) -> None:
    name = CLASSES[0].name
    with Image.open(folders["test"] / name / "0.jpg") as picture:
        picture.resize((300, 300)).save(folders["train"] / name / "copy.jpg", quality=40)
    lock = built(tmp_path / "out", folders, options={"most_classes": 3}, lengths=(4 * K,))
    assert lock["datasets"]["sun397"]["cells"]["4K"]["left_out"]["near-duplicate-of-a-test-image"] >= 1


@pytest.mark.parametrize("change", ["smaller", "re-encoded", "cropped"])
def test_copies_are_alike_and_other_pictures_are_not(change: str) -> None:
    data = drawn_shape(CLASSES[7], "original")
    with Image.open(io.BytesIO(data)) as picture:
        width, height = picture.size
        copies: dict[str, Callable[[], Image.Image]] = {
            "smaller": lambda: picture.resize((width // 2, height // 2)),
            "re-encoded": lambda: picture.copy(),
            "cropped": lambda: picture.crop((3, 3, width - 3, height - 3)),
        }
        buffer = io.BytesIO()
        copies[change]().save(buffer, "JPEG", quality=30)
    assert is_like_any(likeness(data), [likeness(buffer.getvalue())])
    assert not is_like_any(likeness(data), [likeness(drawn_shape(shape, "another")) for shape in CLASSES])


def test_above_128k_there_are_more_classes_only_where_pictures_run_out() -> None:
    def rounds(pictures: int, classes: int) -> mt.Rounds:
        def unit(kind: str, name: str, label: int, turn: int) -> mt.Unit:
            return mt.Unit(name, "exemplar", f"label {label}", (), group=kind)

        kinds = tuple(f"c{number:03}" for number in range(classes))
        return mt.Rounds(kinds, lambda kind: [f"{kind}/{n}" for n in range(pictures)], unit, lambda _, order: order)

    plenty, short = rounds(9, 60), 128 * K
    assert plenty.wider(short) is None
    wider = plenty.wider(256 * K)
    assert wider is not None
    assert wider.more == ("c050",)
    assert len(wider.shown(256 * K)) == 51
    assert len(wider.shown(short)) == 50  # up to 128K the table does not change
    assert rounds(9, 50).wider(256 * K) is None
    last = list(plenty.units(256 * K))[-1]
    assert last.excluded.startswith("no more pictures of c0")
    assert Counter(unit.group for unit in plenty.units(256 * K) if not unit.excluded) == dict.fromkeys(
        plenty.classes[:50], 9
    )


def test_a_length_that_needs_more_pictures_than_there_are_says_so(folders: dict[str, Path], tmp_path: Path) -> None:
    lock = built(tmp_path / "out", folders)
    cell = lock["datasets"]["sun397"]["cells"]["8K"]
    assert cell["ran_dry"] == cell["examples"] == 6
    assert cell["missing_units"] > 0
    assert any(reason.startswith("no more pictures of ") for reason in cell["left_out"])
    assert cell["missing_classes"] == 2


def test_a_class_of_one_split_is_never_shown_and_is_named(folders: dict[str, Path], tmp_path: Path) -> None:
    for split, name in (("train", "only shown"), ("test", "only asked")):
        (folders[split] / name).mkdir()
        (folders[split] / name / "a.jpg").write_bytes(drawn_shape(CLASSES[9], name))
    lock = built(tmp_path / "out", folders, lengths=(4 * K,))["datasets"]["sun397"]
    (domain,) = lock["classes"]["domains"].values()
    assert (domain["without_tests"], domain["without_exemplars"]) == (["only shown"], ["only asked"])
    assert lock["questions"]["not_selected"] == 1
    assert lock["classes"]["splits"] == {"exemplars": "train", "tests": "test"}
    assert (domain["classes"], domain["exemplars"], domain["tests"]) == (5, 28, 7)


def _saved(form: str, **options: Any) -> Callable[[Image.Image], bytes]:
    def save(picture: Image.Image) -> bytes:
        buffer = io.BytesIO()
        picture.save(buffer, form, **options)
        return buffer.getvalue()

    return save


def _frames(picture: Image.Image) -> bytes:
    return _saved("GIF", save_all=True, append_images=[picture.rotate(90)])(picture)


BAD: dict[str, Callable[[Image.Image], bytes]] = {
    "truncated": lambda picture: _saved("JPEG")(picture)[:4000],
    "zero bytes": lambda picture: b"",
    "no picture": lambda picture: b"<html>404</html>",
    "animated": _frames,
}


@pytest.mark.parametrize("kind", BAD)
def test_a_bad_test_image_is_rejected_and_a_bad_exemplar_passed_over(
    folders: dict[str, Path], tmp_path: Path, kind: str
) -> None:
    for split in ("train", "test"):
        path = folders[split] / CLASSES[0].name / "0.jpg"
        with Image.open(path) as picture:
            picture.load()
        path.write_bytes(BAD[kind](picture))
    lock = built(tmp_path / "out", folders, lengths=(4 * K,))["datasets"]["sun397"]
    assert lock["questions"]["rejected"] == {"broken-image": 1}
    (reject,) = map(json.loads, (tmp_path / "out/rejects.jsonl").read_text().splitlines())
    assert reject["file"] == "0.jpg"
    assert reject["found"]
    assert lock["cells"]["4K"]["left_out"].get("broken-image", 0) in range(5)


ODD: dict[str, Callable[[Image.Image], bytes]] = {
    "palette": lambda picture: _saved("PNG")(picture.convert("P")),
    "CMYK": lambda picture: _saved("JPEG")(picture.convert("CMYK")),
    "16 bits": lambda picture: _saved("PNG")(picture.convert("L").point(lambda v: v * 257, "I").convert("I;16")),
    "grey with alpha": lambda picture: _saved("PNG")(picture.convert("LA")),
}


@pytest.mark.parametrize("kind", ODD)
def test_an_odd_picture_looks_the_same_in_the_release(folders: dict[str, Path], tmp_path: Path, kind: str) -> None:
    path = folders["test"] / CLASSES[0].name / "0.jpg"
    with Image.open(path) as picture:
        picture.load()
    path.write_bytes(ODD[kind](picture))
    built(tmp_path / "out", folders)
    record = next(record for record in frozen(tmp_path / "out") if record["name"] == CLASSES[0].name)
    with Image.open(tmp_path / "out/mmlb_image" / record["image"]) as released:
        assert released.mode in ("1", "L", "LA", "P", "RGB", "RGBA")
        smaller = [each.convert("L").resize((8, 8)).tobytes() for each in (picture, released)]
    assert max(abs(a - b) for a, b in zip(*smaller, strict=True)) < 12


@pytest.mark.parametrize(("above", "kept"), [("reject", 5), ("shrink", 6)])
def test_a_picture_above_the_cap_is_rejected_or_shrunk(
    folders: dict[str, Path], tmp_path: Path, above: str, kept: int
) -> None:
    path = folders["test"] / CLASSES[0].name / "0.jpg"
    with Image.open(path) as picture:
        picture.resize((1200, 900)).save(path)
    lock = built(tmp_path / "out", folders, pictures={"most_tokens": 300, "above": above})["datasets"]["sun397"]
    assert lock["questions"]["kept"] == kept
    assert lock["questions"]["rejected"] == ({"image-above-cap": 1} if above == "reject" else {})
    if above == "shrink":
        record = next(record for record in frozen(tmp_path / "out") if record["name"] == CLASSES[0].name)
        assert 280 <= record["image_tokens"] <= 300


def test_pictures_too_large_for_a_round_are_refused_in_numbers(folders: dict[str, Path], tmp_path: Path) -> None:
    built(tmp_path / "out", folders, lengths=(K, 8 * K), reserve=100, options={"classes_per_8k": 24})
    rejects = [json.loads(line) for line in (tmp_path / "out/rejects.jsonl").read_text().splitlines()]
    assert {reject["length"] for reject in rejects} == {K}
    assert all("1K has room for 2 of the 3 groups it must show" in reject["found"] for reject in rejects)
    assert {reject["id"] for reject in rejects} == {f"test-{number}" for number in range(6)}


def test_a_class_of_broken_exemplars_is_named_as_the_reason(folders: dict[str, Path], tmp_path: Path) -> None:
    for path in (folders["train"] / CLASSES[1].name).iterdir():
        path.write_bytes(b"")
    built(tmp_path / "out", folders)
    rejects = [json.loads(line) for line in (tmp_path / "out/rejects.jsonl").read_text().splitlines()]
    said = f"9 × broken-image, 1 × no more pictures of {CLASSES[1].name}"
    assert len(rejects) == 6
    assert all(said in reject["found"] for reject in rejects)


def test_the_same_picture_under_two_names_is_one_and_workers_do_not_matter(
    folders: dict[str, Path], tmp_path: Path
) -> None:
    for path in sorted(folders["train"].rglob("*.jpg")):
        path.with_name(f"copy of {path.name}").write_bytes(path.read_bytes())
    locks = []
    for workers in (1, 2):
        about = {"name": "sun397", "builder": "many_shot", "reader": "image_folders", "source": folders}
        spec = DatasetSpec.model_validate({**about, "lengths": (4 * K, 8 * K, 16 * K)})
        locks.append(build(Manifest(datasets=(spec,)), tmp_path / f"{workers}", LocalExecutor(workers, QUIET)).lock)
    assert locks[0] == locks[1]
    for record in frozen(tmp_path / "1", 16):
        assert len({shot["image"] for shot in record["exemplars"]}) == len(record["exemplars"]) == 27


def test_a_domain_that_is_not_there_is_named(tmp_path: Path) -> None:
    from builders.samples.many_shot.sources import draw_inaturalist

    (tmp_path / "source").mkdir()
    source = draw_inaturalist(tmp_path / "source")
    with pytest.raises(mt.DraftError, match=r"has no domain 'Plant'; it has Birds, Plants"):
        built(tmp_path / "out", source, "inaturalist", options={"domains": ["Birds", "Plant"]})


def test_a_picture_in_a_format_that_is_not_opened_is_named(folders: dict[str, Path], tmp_path: Path) -> None:
    path = folders["test"] / CLASSES[0].name / "0.jpg"
    path.write_bytes(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 100 100\n%%EndComments\nshowpage\n")
    lock = built(tmp_path / "out", folders)["datasets"]["sun397"]
    assert lock["questions"]["rejected"] == {"broken-image": 1}


def tables(folder: Path, labels: list[Any], kind: Any = "int64", names: tuple[str, ...] = ("a", "b", "c")) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    features = {"image": {"_type": "Image"}, "label": {"_type": "ClassLabel", "names": list(names)}}
    metadata = {"huggingface": json.dumps({"info": {"features": features}})}
    for split in ("train", "validation"):
        images = [{"bytes": drawn_shape(CLASSES[0], f"{split} {n}"), "path": None} for n in range(len(labels))]
        columns = {"image": pa.array(images), "label": pa.array(labels, kind)}
        table = pa.table(columns).replace_schema_metadata(metadata)
        pq.write_table(table, folder / f"{split}-00000-of-00001.parquet", row_group_size=2)
    return folder


def test_labels_of_a_table_that_are_none_are_named(tmp_path: Path) -> None:
    found = list(read_rows(ImageTables(), {"data": tables(tmp_path, [0, None, -1, 3, 2])}))
    rows = [row for row in found if isinstance(row, mt.Row)]
    faults = [fault for fault in found if isinstance(fault, mt.RowFault)]
    assert [(row.id, row.kind) for row in rows] == [("validation-0", "00000"), ("validation-4", "00002")]  # type: ignore[attr-defined]
    assert [fault.id for fault in faults] == [f"{split}-{n}" for split in ("validation", "train") for n in (1, 2, 3)]
    assert {(fault.fault.reason, fault.fault.expected) for fault in faults} == {
        ("no-label", "a whole number from 0 to 2")
    }
    assert faults[0].fault.place == "row 1"


def test_labels_that_are_no_integers_and_missing_splits_are_refused(tmp_path: Path) -> None:
    with pytest.raises(mt.SourceError, match=r"labels-not-integers: expected a column of integers, found string"):
        list(read_rows(ImageTables(), {"data": tables(tmp_path, ["x", "y"], "string")}))
    (tmp_path / "validation-00000-of-00001.parquet").rename(tmp_path / "other.parquet")
    with pytest.raises(
        mt.SourceError, match=r"expected files of a split `train`, and of `test` or `validation`, found"
    ):
        list(read_rows(ImageTables(), {"data": tmp_path.parent / tmp_path.name}))


def test_a_picture_of_a_table_is_the_cell_of_its_row(tmp_path: Path) -> None:
    sources = {"data": tables(tmp_path, [0, 1, 2, 0, 1])}
    cell = ImageTables().image(sources, "tests/3")
    assert cell is not None
    assert cell.read_bytes() == drawn_shape(CLASSES[0], "validation 3")
    assert [ImageTables().image(sources, name) for name in ("tests/5", "others/1", "tests/-1", "../x")] == [None] * 4


def test_a_dataset_of_the_hub_is_read_from_the_hubs_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files are in the cache of the hub's client, which is set to work offline."""
    import huggingface_hub.constants as constants

    commit = "0" * 40
    repository = tmp_path / "cache" / "datasets--owner--shapes"
    data = repository / "snapshots" / commit / "data"
    data.mkdir(parents=True)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(commit)
    for split in ("train", "validation"):
        draw_tables_of(data, split)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    from mmlongbench.io.hub import downloaded
    from mmlongbench.io.locations import HubFiles, parse_location

    def hub(text: str) -> HubFiles:
        found = parse_location(f"hub:{text}")
        assert isinstance(found, HubFiles)
        return found

    monkeypatch.setattr("huggingface_hub.snapshot_download", _offline(str(tmp_path / "cache")))
    found = downloaded(hub("owner/shapes"), "", ImageTables.hub_files, "source.data")
    assert len(list(read_rows(ImageTables(), {"data": found}))) == 3
    with pytest.raises(mt.SourceError, match=r"source.data: unreachable-dataset: .* found .*; download it"):
        downloaded(hub("owner/missing@v1"), "", ImageTables.hub_files, "source.data")
    with pytest.raises(mt.SourceError, match=r"source\.images: unknown-source: expected hub:owner/shapes/<path>"):
        downloaded(hub("owner/shapes"), "", (), "source.images")


def _offline(cache: str) -> Callable[..., str]:
    from huggingface_hub import snapshot_download

    def get(name: str, **options: Any) -> str:
        return str(snapshot_download(name, cache_dir=cache, local_files_only=True, **options))

    return get


def draw_tables_of(folder: Path, split: str) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    images = [{"bytes": drawn_shape(CLASSES[n], split), "path": None} for n in range(3)]
    pq.write_table(pa.table({"image": pa.array(images), "label": [0, 1, 2]}), folder / f"{split}-0.parquet")


def test_inaturalist_without_supercategory_or_image_is_named(tmp_path: Path) -> None:
    categories = [{"id": 0, "name": "a", "supercategory": "Birds"}, {"id": 1, "name": "b"}]
    images = [{"id": n, "file_name": f"val/{n}.jpg"} for n in range(2)]
    pairs = [(0, 0), (1, 1), (2, 0)]  # the last image cannot be read
    annotations = [{"image_id": image, "category_id": category} for image, category in pairs]
    for split in ("train", "test"):
        data = {"images": images, "annotations": annotations, "categories": categories}
        (tmp_path / f"{split}.json").write_text(json.dumps(data))
    sources = {"images": tmp_path, "train": tmp_path / "train.json", "test": tmp_path / "test.json"}
    found = list(read_rows(INaturalist(), sources))
    assert [row.id for row in found if isinstance(row, mt.Row)] == ["inat-0"]
    faults = [(f.id, f.fault.reason, f.fault.place) for f in found if isinstance(f, mt.RowFault)]
    assert faults[:2] == [
        ("inat-1", "no-supercategory", "annotation 1"),
        ("inat-2", "no-such-image", "annotation 2"),
    ]
    assert {id for id, _, _ in faults[2:]} == {"train-1", "train-2"}


@pytest.mark.parametrize("text", ["", "[]", '{"images": []}', '{"images": [], "annotations": [{}], "categories": []}'])
def test_annotations_that_are_none_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "test.json"
    path.write_text(text)
    with pytest.raises(mt.SourceError, match=r"test\.json"):
        list(read_rows(INaturalist(), {"images": tmp_path, "train": path, "test": path}))


def test_a_picture_in_no_class_is_named_and_no_name_leads_out(folders: dict[str, Path]) -> None:
    (folders["test"] / "stray.jpg").write_bytes(b"")
    faults = [found for found in read_rows(ImageFolders(), folders) if isinstance(found, mt.RowFault)]
    assert [(fault.id, fault.fault.reason) for fault in faults] == [("test/stray.jpg", "no-class")]
    (folders["test"] / "a" / "abbey").mkdir(parents=True)
    (folders["test"] / "a" / "abbey" / "1.jpg").write_bytes(b"")
    (folders["train"] / CLASSES[0].name / "notes.jfif").write_bytes(b"")
    found = list(read_rows(ImageFolders(), folders))
    assert "a/abbey" in {getattr(row, "kind", "") for row in found}
    assert "unknown-ending" in {row.fault.reason for row in found if isinstance(row, mt.RowFault)}
    names = ("../x.jpg", "test/../../x.jpg", "other/a.jpg", "test")
    assert [ImageFolders().image(folders, name) for name in names] == [None] * 4
