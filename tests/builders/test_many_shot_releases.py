"""Many-shot ICL as it is released: sets and labels, no names that tell, near-duplicates, odd and bad pictures."""

import io
import json
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
from class_sets import (
    CARS,
    COUNTS,
    FOODS,
    SHAPES,
    SPECIES,
    draw_cars,
    draw_folders,
    draw_food101,
    draw_inat,
    draw_parquet,
    draw_sun397,
    drawn_picture,
)
from hub_forms import json_lines_of
from once import linked
from one_dataset import OneDataset, built, ran
from PIL import Image
from tiny import command

import mmlongbench as mm
import mmlongbench.task as mt
from builders.many_shot.public import OneObject
from mmlongbench.lengths import K

ITEM = "<image>\nlabel: {label}"
USER = (
    "You need to recognize entities in images. Use the provided mapping from the image to label to assign a label "
    'to the test image. Only output "label: {{label}}" and nothing else.\n\nTraining examples:\n{context}\n\n'
    "Now classify this image: {question}"
)


def public(release: Path, length: int = 8, name: str = "sun397") -> dict[str, Any]:
    """The one domain of a public file."""
    (domain,) = json.loads((release / f"mmlb_data/ICL/{name}_K{length}.json").read_bytes()).values()
    return dict(domain)


def frozen(release: Path, length: int = 8, name: str = "sun397") -> list[dict[str, Any]]:
    lines = (release / f"mmlb_data/ICL/{name}_K{length}.frozen.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


def paths_of(records: Iterable[dict[str, Any]]) -> list[str]:
    """The pictures that records show."""
    return [path for each in records for path in (each["image"], *(shot["image"] for shot in each["exemplars"]))]


@pytest.mark.parametrize(("length", "classes"), [(8, 5), (16, 10)])
def test_a_public_loader_makes_a_prompt_within_the_length_from_any_set_in_any_order(
    families: Path, length: int, classes: int
) -> None:
    """Load as the public loader does: choose a set at random, shuffle each round, format the template."""
    turns = mt.Draws(("loader",))
    domain = public(families, length)
    assert len(domain["exemplar_list"]) == len(domain["all_token_count"]) == 4
    assert len(domain["labels"]) == classes
    assert domain["labels"] != sorted(domain["labels"])
    assert all(count + 256 <= length * K for count in domain["all_token_count"])
    for test in domain["test_example"]:
        assert domain["labels"][test["answer"]] == test["name"]
        rounds = turns.choice(test["id"], domain["exemplar_list"])
        shots = [shot for turn in rounds for shot in turns.order(test["id"], turn, lambda shot: str(shot["image"]))]
        context = "\n\n".join(ITEM.format(label=shot["id"]) for shot in shots)
        prompt = USER.format(context=context, question="<image>") + "\nlabel:"
        assert prompt.count("<image>") == len(shots) + 1
        assert test["answer"] in {shot["id"] for shot in shots}
        assert (families / "mmlb_image" / test["image"]).is_file()
    for example in mm.open_release(families).examples("sun397", length * K):
        record = example.record
        shots = [shot for turn in domain["exemplar_list"][record["set"]] for shot in turn]
        assert (record["exemplars"], record["labels"]) == (shots, domain["labels"])
        assert record["length"] <= domain["all_token_count"][record["set"]]
        assert record["labels"][record["answer"]] == record["name"]
        context = "\n\n".join(ITEM.format(label=shot["id"]) for shot in shots)
        assert example.prompt.rendered() == USER.format(context=context, question="<image>") + "\nlabel:"
    assert {*public(families, 8)["labels"]} <= {*domain["labels"]}


def test_sets_and_tests_are_taken_out_of_files_without_further_fields_too(families: Path, tmp_path: Path) -> None:
    own = {**public(families), "source": "a key of others"}
    sparse: dict[str, Any] = {key: own[key] for key in ("exemplar_list", "all_token_count", "source")}
    sparse["test_example"] = [{key: test[key] for key in ("id", "image", "answer")} for test in own["test_example"]]
    gone, tests = own["test_example"][0]["id"], len(own["test_example"])
    for number, domain in enumerate((own, sparse)):
        path = tmp_path / f"{number}.json"
        path.write_text(json.dumps({"birds": domain}), "utf-8")
        left = b"".join(OneObject().without(path, lambda record: record["set"] == 1 or record["id"] == gone))
        path.write_bytes(left)
        (kept,) = json.loads(left).values()
        assert ({*kept}, kept["sets"]) == ({*domain, "sets"}, [0, 2, 3])
        assert kept["exemplar_list"] == [domain["exemplar_list"][place] for place in (0, 2, 3)]
        assert kept["test_example"] == domain["test_example"][1:]
        assert len(list(OneObject().unbundle(path))) == 3 * (tests - 1)
        assert b"".join(OneObject().without(path, lambda record: True)) == b""


def test_neither_prompts_nor_image_paths_tell_a_class(families: Path) -> None:
    words = {word for name in public(families, 16)["labels"] for word in name.split()}
    records = frozen(families, 16)
    told = [*paths_of(records), *(record["id"] for record in records)]
    assert not [text for text in told if any(word in text for word in words)]


def test_the_audit_counts_every_pair_of_set_and_test_and_finds_a_wrong_sum(families: Path, tmp_path: Path) -> None:
    copy = linked(families, tmp_path / "copy")
    changed = json.loads((copy / "mmlb_data/ICL/sun397_K8.json").read_bytes())
    changed["sun397"]["all_token_count"][2] += 1
    (copy / "mmlb_data/ICL/sun397_K8.json").write_text(json.dumps(changed), "utf-8")
    for release, wrong in ((families, 0), (copy, 1)):
        audited = mm.audit([release / "mmlb_data/ICL/sun397_K8.json", release / "mmlb_data/ICL/sun397_K8.frozen.jsonl"])
        lines = {line.file: line for line in audited}
        bundle, records = (next(line for file, line in lines.items() if file.endswith(end)) for end in ("K8.json", "l"))
        assert bundle.examples == 4 * records.examples
        assert [(problem.problem, problem.count) for problem in bundle.problems] == [
            ("length differs from the recount", len(changed["sun397"]["test_example"]))
        ] * wrong
        assert not records.problems


# --- forms ------------------------------------------------------------------------------------------------------------

TWO = {"data/train-00000-of-00001.parquet": "train", "data/test-00000-of-00001.parquet": "test"}
PLAIN = ("abbey", "airplane cabin", "apartment building outdoor")
FORMS: dict[str, tuple[Callable[[Path], Path], tuple[str, ...]]] = {
    "food101": (draw_food101, FOODS),
    "sun397": (draw_sun397, PLAIN),
    "cars196": (draw_cars, CARS),
}


def many_shot(reader: str, source: Any, name: str = "sun397", **more: Any) -> dict[str, Any]:
    common = {"name": name, "builder": "many_shot", "reader": reader, "source": source}
    return {**common, "sample": {"stratify": "kind"}, **more}


@pytest.mark.parametrize("name", FORMS)
def test_releases_of_both_forms_show_the_same_pictures_and_no_names(name: str, tmp_path: Path) -> None:
    draw, names = FORMS[name]
    drawn = {"original": draw(tmp_path / "original"), "parquet": draw_parquet(tmp_path / "parquet", names, TWO)}
    original, parquet = (
        frozen(built(tmp_path / f"{form}-out", many_shot("image_tables", {"data": data}, name)).folder, 8, name)
        for form, data in drawn.items()
    )
    assert original == parquet
    assert len(original) == 6
    for path in paths_of(original):
        assert (Path(path).parent.name, len(Path(path).stem) >= 16) == ("image-tables", True)


def test_inaturalist_is_asked_by_domain_and_does_not_show_the_names_of_its_folders(tmp_path: Path) -> None:
    source = draw_inat(tmp_path / "inat")
    dataset = many_shot("inaturalist", source, "inat2021", options={"domains": ["Plants"]})
    records = frozen(built(tmp_path / "out", dataset).folder, 8, "inat2021")
    words = {word for name, _ in SPECIES for word in name.split("_")}
    assert len(records) == 4
    assert not [path for path in paths_of(records) if any(word in path for word in words)]
    refused = ran(tmp_path / "none", {**dataset, "options": {"domains": ["Birds", "Plant"]}})
    assert refused.code == 2
    assert "has no domain 'Plant'; it has Birds, Plants" in refused.err


def test_a_build_names_every_hostile_entry_and_keeps_the_rest(tmp_path: Path) -> None:
    folder = draw_food101(tmp_path / "food")
    hostile = {"\ud800": ["\ud800/1", "\ud800"], "..": ["../x"], "a\0b": ["a\0b/1", None], "\x1b[31m": ["\x1b[31m/1"]}
    for split in COUNTS:
        path = folder / f"meta/{split}.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **hostile}))
    release = built(tmp_path / "out", many_shot("image_tables", {"data": folder}, "food101"))
    rejects = Counter(reject["reason"] for reject in release.rejects())
    assert len(frozen(release.folder, 8, "food101")) == 6
    assert rejects == {"invalid-unicode": 2, "unknown-class": 4, "path-outside-source": 2, "missing-image": 4}


# --- pictures in folders ----------------------------------------------------------------------------------------------


@pytest.fixture
def folders(tmp_path: Path) -> dict[str, Path]:
    """Three classes of nine exemplars and two tests."""
    return draw_folders(tmp_path / "drawn")


def of_folders(out: Path, folders: dict[str, Path], **more: Any) -> OneDataset:
    return built(out, many_shot("image_folders", folders, **more))


def test_a_release_with_further_counters_has_them_in_the_file_of_all_prompts(
    folders: dict[str, Path], tmp_path: Path
) -> None:
    release = of_folders(tmp_path / "out", folders, count_as=[{"image": "gemma3", "text": "llama2"}]).folder
    assert frozen(release)[0]["tokens"]["as"]["gemma3"]["image"] > 0
    assert (command("audit", release, "-q").code, command("verify", release, "-q").code) == (0, 0)


def saved(picture: Image.Image, form: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, form, **options)
    return buffer.getvalue()


def test_bad_test_images_are_rejected_and_bad_exemplars_and_near_duplicates_passed_over(
    folders: dict[str, Path], tmp_path: Path
) -> None:
    """A class of one split is never shown, and is named."""
    picture = Image.open(io.BytesIO(drawn_picture(0, "bad")))
    bad = {
        f"{SHAPES[0]}/0.jpg": saved(picture, "JPEG")[:4000],
        f"{SHAPES[0]}/1.jpg": b"",
        f"{SHAPES[1]}/0.jpg": b"<html>404</html>",
        f"{SHAPES[1]}/1.jpg": saved(picture, "GIF", save_all=True, append_images=[picture.rotate(90)]),
        f"{SHAPES[2]}/0.jpg": b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 100 100\n%%EndComments\nshowpage\n",
    }
    for name, data in bad.items():
        for split in folders:
            (folders[split] / name).write_bytes(data)
    with Image.open(folders["test"] / SHAPES[2] / "1.jpg") as original:
        original.resize((300, 300)).save(folders["train"] / SHAPES[2] / "copy.jpg", quality=40)
    for split, name in (("train", "only shown"), ("test", "only asked")):
        (folders[split] / name).mkdir()
        (folders[split] / name / "a.jpg").write_bytes(drawn_picture(9, name))
    release = of_folders(tmp_path / "out", folders, options={"most_classes": 3}, lengths=["8K"])
    assert {(row["file"], row["reason"]) for row in release.rejects()} == {
        (name.split("/")[1], "broken-image") for name in bad
    }
    assert (len(release.rejects()), release.questions["kept"], release.questions["not_selected"]) == (5, 1, 1)
    (domain,) = release.lock["classes"]["domains"].values()
    assert (domain["without_tests"], domain["without_exemplars"]) == (["only shown"], ["only asked"])
    assert (domain["classes"], domain["exemplars"], domain["tests"]) == (5, 29, 7)
    assert release.lock["classes"]["splits"] == {"exemplars": "train", "tests": "test"}
    left_out = release.lock["cells"]["8K"]["left_out"]
    assert left_out["near-duplicate-of-a-test-image"] >= 1
    assert left_out["broken-image"] >= 1


def test_odd_pictures_look_the_same_and_large_ones_are_shrunk_or_rejected(
    folders: dict[str, Path], tmp_path: Path
) -> None:
    picture = Image.open(io.BytesIO(drawn_picture(0, "odd")))
    deep = picture.convert("L").point(lambda v: v * 257, "I").convert("I;16")
    odd = {
        f"{SHAPES[0]}/0.jpg": ("PNG", picture.convert("P")),
        f"{SHAPES[0]}/1.jpg": ("JPEG", picture.convert("CMYK")),
        f"{SHAPES[1]}/0.jpg": ("PNG", deep),
        f"{SHAPES[1]}/1.jpg": ("PNG", picture.convert("LA")),
    }
    for name, (form, changed) in odd.items():
        (folders["test"] / name).write_bytes(saved(changed, form))
    large = folders["test"] / SHAPES[2] / "0.jpg"
    with Image.open(large) as drawn:
        drawn.resize((1200, 900)).save(large)
    shrunk, rejected = (
        of_folders(tmp_path / above, folders, pictures={"most_tokens": 300, "above": above})
        for above in ("shrink", "reject")
    )
    assert (shrunk.questions["kept"], shrunk.questions["rejected"]) == (6, {})
    assert (rejected.questions["kept"], rejected.questions["rejected"]) == (5, {"image-above-cap": 1})
    records = frozen(shrunk.folder)
    assert sorted(record["image_tokens"] for record in records)[:5] == [225] * 5
    assert 280 <= max(record["image_tokens"] for record in records) <= 300
    grey = picture.convert("L").resize((8, 8)).tobytes()
    for record in (record for record in records if record["name"] != SHAPES[2]):
        with Image.open(shrunk.folder / "mmlb_image" / record["image"]) as released:
            assert released.mode in ("1", "L", "LA", "P", "RGB", "RGBA")
            found = released.convert("L").resize((8, 8)).tobytes()
        assert max(abs(a - b) for a, b in zip(grey, found, strict=True)) < 12


def test_a_length_that_needs_more_pictures_than_there_are_says_so_and_a_copy_is_no_further_picture(
    folders: dict[str, Path], tmp_path: Path
) -> None:
    for path in sorted(folders["train"].rglob("*.jpg")):
        path.with_name(f"copy of {path.name}").write_bytes(path.read_bytes())
    release = of_folders(tmp_path / "out", folders, lengths=["8K", "16K"])
    cell = release.lock["cells"]["16K"]
    assert (cell["ran_dry"], cell["examples"]) == (6, 6)
    assert cell["missing_units"] > 0
    assert any(reason.startswith("no more pictures of ") for reason in cell["left_out"])
    assert release.lock["cells"]["8K"]["missing_classes"] == 2
    for record in frozen(release.folder, 16):
        assert len({shot["image"] for shot in record["exemplars"]}) == len(record["exemplars"]) == 27


def test_pictures_too_large_for_a_round_are_refused_in_numbers_and_a_class_without_pictures_by_name(
    folders: dict[str, Path], tmp_path: Path
) -> None:
    more = {"lengths": ["1K", "8K"], "reserve": 100, "options": {"classes_per_8k": 24}}
    rejects = of_folders(tmp_path / "out", folders, **more).rejects()
    assert {(reject["id"], reject["length"]) for reject in rejects} == {(f"test-{n}", K) for n in range(6)}
    assert all("1K has room for 2 of the 3 groups it must show" in reject["found"] for reject in rejects)
    for path in (folders["train"] / SHAPES[1]).iterdir():
        path.write_bytes(b"")
    none = ran(tmp_path / "none", many_shot("image_folders", folders))
    assert none.code == 1
    assert none.err.splitlines()[-1].startswith("error: dataset 'sun397': no question was kept: 6 read, 0 rejected, ")
    rejects = json_lines_of(tmp_path / "none" / "rejects.jsonl")
    assert len(rejects) == 6
    assert all(f"9 × broken-image, 1 × no more pictures of {SHAPES[1]}" in reject["found"] for reject in rejects)


def test_above_128k_there_are_more_classes_only_where_pictures_run_out() -> None:
    def rounds(pictures: int, classes: int) -> mt.advanced.Rounds:
        def unit(kind: str, name: str, label: int, turn: int) -> mt.Unit:
            return mt.Unit(name, f"label {label}", (), "exemplar", group=kind)

        kinds = tuple(f"c{number:03}" for number in range(classes))
        return mt.advanced.Rounds(
            kinds, lambda kind: [f"{kind}/{n}" for n in range(pictures)], unit, lambda _, order: order
        )

    plenty, short = rounds(9, 60), 128 * K
    assert plenty.wider(short) is None
    wider = plenty.wider(256 * K)
    assert wider is not None
    assert wider.more == ("c050",)
    assert (len(wider.shown(256 * K)), len(wider.shown(short))) == (51, 50)  # up to 128K the table does not change
    assert rounds(9, 50).wider(256 * K) is None
    last = list(plenty.units(256 * K))[-1]
    assert last.excluded.startswith("no more pictures of c0")
    shown = Counter(unit.group for unit in plenty.units(256 * K) if not unit.excluded)
    assert shown == dict.fromkeys(plenty.classes[:50], 9)
