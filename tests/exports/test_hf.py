"""The target `hf`, read back by `datasets.load_dataset`."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from exported import Shown, every_example, shown, tree

import mmlongbench as mm

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    import datasets

    datasets.disable_progress_bars()
    yield
    datasets.enable_progress_bars()


def loaded(out: Path, name: str, cache: Path) -> Any:
    from datasets import load_dataset

    return load_dataset(str(out), name, cache_dir=str(cache))


def parts_of(row: dict[str, Any]) -> Shown:
    """What a row shows; images are the bytes of their files."""
    content = [part for turn in json.loads(row["parts"]) for part in turn["content"]]
    return [
        part if isinstance(part, str) else Path(row["images"][part["image"]]["path"]).read_bytes() for part in content
    ]


def test_every_configuration_and_split_opens_with_pictures(mixed: Path, tmp_path: Path) -> None:
    from datasets import Image, List

    done, release = mm.export(mixed, "hf", tmp_path / "out"), mm.open_release(mixed)
    count, features = 0, set()
    for name in release.datasets:
        data = loaded(tmp_path / "out", name, tmp_path / "cache")
        assert list(data) == [f"K{length // 1024}" for length in release.lengths(name)]
        for split, length in zip(data.values(), release.lengths(name), strict=True):
            raw = split.cast_column("images", List(Image(decode=False)))
            features.add(str(split.features))
            for row, plain, example in zip(split, raw, release.examples(name, length), strict=True):
                assert parts_of(plain) == shown(mixed, example)
                assert [picture.size > (0, 0) for picture in row["images"]] == [True] * len(example.prompt.images)
                assert row["prompt"] == example.prompt.rendered()
                assert json.loads(row["answer"]) == example.answer
                assert row["answer_type"] == {str: "text", list: "list", int: "number"}[type(example.answer)]
                key = {field: row[field] for field in ("file", "id", "depth", "permutation")}
                assert {field: value for field, value in key.items() if value is not None} == example.key
                assert (row["digest"], row["length"]) == (example.digest, length)
                count += 1
    assert count == done.examples == len(list(every_example(mixed)))
    assert len(features) == 1


def test_no_image_is_copied_or_there_twice(mixed: Path, tmp_path: Path) -> None:
    done = mm.export(mixed, "hf", tmp_path / "out")
    links = [path for path in (tmp_path / "out").rglob("*") if path.is_symlink()]
    shown_images = {image for example in every_example(mixed) for image in example.prompt.images}
    assert {str(path.relative_to(tmp_path / "out/mmlb_image")) for path in links} == shown_images
    assert len({path.resolve() for path in links}) == len(links)
    assert all(path.resolve().is_relative_to(mixed.resolve()) for path in links)
    assert done.bytes_copied == 0
    own = [path for path in (tmp_path / "out").rglob("*") if path.is_file() and not path.is_symlink()]
    assert {path.suffix for path in own} == {".parquet", ".md"}
    assert done.bytes == sum(path.stat().st_size for path in own)


@pytest.mark.parametrize("choice", [{"datasets": "text_mmlongdoc"}, {"datasets": ["text_mmlongdoc", "vh_multi"]}])
def test_prompts_without_images_open_too(choice: dict[str, Any], mixed: Path, tmp_path: Path) -> None:
    mm.export(mixed, "hf", tmp_path / "out", **choice)
    rows = loaded(tmp_path / "out", "text_mmlongdoc", tmp_path / "cache")["K8"]
    assert [row["images"] for row in rows] == [[]] * len(rows)
    assert rows[0]["prompt"]


def test_a_folder_with_a_single_image_opens_with_it(mixed: Path, tmp_path: Path) -> None:
    mm.export(mixed, "hf", tmp_path / "out", datasets="viquae", limit=1)
    assert len([path for path in (tmp_path / "out").rglob("*") if path.is_symlink()]) == 1
    data = loaded(tmp_path / "out", "viquae", tmp_path / "cache")
    assert [split[0]["images"][0].size[0] > 0 for split in data.values()] == [True, True]


def test_odd_names_of_images_are_found(odd: Path, tmp_path: Path) -> None:
    mm.export(odd, "hf", tmp_path / "out x é")
    data = loaded(tmp_path / "out x é", "mmlongdoc", tmp_path / "cache")
    assert data["K1"][0]["images"][0].size == (400, 400)


@pytest.mark.parametrize("name", ["a [x]", "a::b"])
def test_a_path_that_datasets_does_not_open_is_refused(name: str, odd: Path, tmp_path: Path) -> None:
    with pytest.raises(mm.ReleaseError, match="datasets opens no folder with"):
        mm.export(odd, "hf", tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_was_copied_with_its_images_opens_elsewhere(odd: Path, tmp_path: Path) -> None:
    import shutil

    mm.export(odd, "hf", tmp_path / "out")
    shutil.copytree(tmp_path / "out", tmp_path / "far/away/copy")
    data = loaded(tmp_path / "far/away/copy", "mmlongdoc", tmp_path / "cache")
    assert data["K2"][0]["images"][0].size == (400, 400)


def test_the_same_choices_give_the_same_bytes(mixed: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        mm.export(mixed, "hf", tmp_path / name)
    assert tree(tmp_path / "a") == tree(tmp_path / "b")


def test_choices_of_requests_are_refused(odd: Path, tmp_path: Path) -> None:
    for choice in ({"model": "m"}, {"max_tokens": 5}, {"images": "data-uri"}):
        with pytest.raises(mm.ReleaseError, match="leave it out"):
            mm.export(odd, "hf", tmp_path / "out", **choice)
