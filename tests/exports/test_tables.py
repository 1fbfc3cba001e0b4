"""The targets `hf` and `mteb`: tables, opened by `datasets` and read as Parquet.

`tests/loaders/check_mteb.py` reads an export with mteb itself.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from exported import MIXED, Shown, every_example, shown

import mmlongbench as mm

pytestmark = pytest.mark.usefixtures("without_bars")


def loaded(out: Path, name: str, cache: Path) -> Any:
    from datasets import load_dataset

    return load_dataset(str(out), name, cache_dir=str(cache))


def parts_of(row: dict[str, Any]) -> Shown:
    """What a row shows; images are the bytes of their files."""
    content = [part for turn in json.loads(row["parts"]) for part in turn["content"]]
    return [p if isinstance(p, str) else Path(row["images"][p["image"]]["path"]).read_bytes() for p in content]


def test_every_configuration_and_split_opens_and_no_image_is_copied(families: Path, tmp_path: Path) -> None:
    from datasets import Image, List

    done, release = mm.export(families, "hf", tmp_path / "out", datasets=MIXED), mm.open_release(families)
    count, features = 0, set()
    for name in MIXED:
        data = loaded(tmp_path / "out", name, tmp_path / "cache")
        assert list(data) == [f"K{length // 1024}" for length in release.lengths(name)]
        for split, length in zip(data.values(), release.lengths(name), strict=True):
            features.add(str(split.features))
            plain = split.cast_column("images", List(Image(decode=False)))
            assert [picture.size > (0, 0) for picture in split[0]["images"]] == [True] * len(split[0]["images"])
            for row, example in zip(plain, release.examples(name, length), strict=True):
                assert parts_of(row) == shown(families, example)
                assert row["prompt"] == example.prompt.rendered()
                assert json.loads(row["answer"]) == example.answer
                assert row["answer_type"] == {str: "text", list: "list", int: "number"}[type(example.answer)]
                key = {field: row[field] for field in ("file", "id", "depth", "permutation")}
                assert {field: value for field, value in key.items() if value is not None} == example.key
                assert (row["digest"], row["length"]) == (example.digest, length)
                count += 1
    assert count == done.examples == len(list(every_example(families, MIXED)))
    assert len(features) == 1
    links = [path for path in (tmp_path / "out").rglob("*") if path.is_symlink()]
    images = {image for example in every_example(families, MIXED) for image in example.prompt.images}
    assert {str(path.relative_to(tmp_path / "out/mmlb_image")) for path in links} == images
    assert len({path.resolve() for path in links}) == len(links)
    assert all(path.resolve().is_relative_to(families.resolve()) for path in links)
    own = [path for path in (tmp_path / "out").rglob("*") if path.is_file() and not path.is_symlink()]
    assert {path.suffix for path in own} == {".parquet", ".md"}
    assert (done.bytes, done.bytes_copied) == (sum(path.stat().st_size for path in own), 0)


@pytest.mark.parametrize("choice", [["text_mmlongdoc"], ["text_mmlongdoc", "vh_multi"]])
def test_prompts_without_images_open_too(choice: list[str], families: Path, tmp_path: Path) -> None:
    mm.export(families, "hf", tmp_path / "out", datasets=choice)
    rows = loaded(tmp_path / "out", "text_mmlongdoc", tmp_path / "cache")["K8"]
    assert [row["images"] for row in rows] == [[]] * len(rows)
    assert rows[0]["prompt"]


def test_a_folder_with_a_single_image_opens_with_it(families: Path, tmp_path: Path) -> None:
    mm.export(families, "hf", tmp_path / "out", datasets="viquae", limit=1)
    assert len([path for path in (tmp_path / "out").rglob("*") if path.is_symlink()]) == 1
    data = loaded(tmp_path / "out", "viquae", tmp_path / "cache")
    assert [split[0]["images"][0].size[0] > 0 for split in data.values()] == [True, True]


def test_odd_names_are_found_also_in_a_copy_elsewhere(odd: Path, tmp_path: Path) -> None:
    mm.export(odd, "hf", tmp_path / "out x é")
    shutil.copytree(tmp_path / "out x é", tmp_path / "far/away/copy")
    for folder in (tmp_path / "out x é", tmp_path / "far/away/copy"):
        data = loaded(folder, "mmlongdoc", tmp_path / "cache")
        assert [data[split][0]["images"][0].size for split in ("K1", "K2")] == [(400, 400)] * 2
    for name in ("a [x]", "a::b"):
        with pytest.raises(mm.ReleaseError, match="datasets opens no folder with"):
            mm.export(odd, "hf", tmp_path / name)
        assert not (tmp_path / name).exists()


def table(out: Path, config: str) -> pa.Table:
    return pq.read_table(out / config / "test-00000.parquet")


def rows(out: Path, config: str) -> list[dict[str, Any]]:
    return table(out, config).to_pylist()


def test_pages_and_questions_have_the_forms_of_mteb(families: Path, tmp_path: Path) -> None:
    done = mm.export(families, "mteb", tmp_path / "out", datasets=MIXED)
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"README.md", "mmlongdoc", "text_mmlongdoc"}
    out = tmp_path / "out/mmlongdoc"
    head = yaml.safe_load((out / "README.md").read_text("utf-8").split("---\n")[1])
    assert {each["config_name"]: each["data_files"] for each in head["configs"]} == {
        name: [{"split": "test", "path": f"{name}/test-*"}] for name in ("corpus", "queries", "qrels", "top_ranked")
    }
    examples = list(every_example(families, ["mmlongdoc"]))
    corpus = {row["id"]: row for row in rows(out, "corpus")}
    assert corpus.keys() == {image for each in examples for image in each.prompt.images}
    for id, row in corpus.items():
        assert row["image"]["bytes"] == (families / "mmlb_image" / id).read_bytes()
    queries = {row["id"]: row["text"] for row in rows(out, "queries")}
    assert queries == {each.id: each.record["question"] for each in examples if each.id in queries}
    pairs = {(row["query-id"], row["corpus-id"]) for row in rows(out, "qrels")}
    evidence = [(each.id, each.evidence) for each in examples if each.evidence]
    assert pairs == {(id, found.images[page]) for id, found in evidence for page in found.pages if page in found.shown}
    assert table(out, "qrels").schema.names == ["query-id", "corpus-id", "score"]
    assert {str(table(out, "qrels").schema.field("score").type)} == {"int32"}
    candidates = {row["query-id"]: set(row["corpus-ids"]) for row in rows(out, "top_ranked")}
    assert candidates.keys() == queries.keys()
    assert all(page in candidates[id] <= corpus.keys() for id, page in pairs)
    assert any(left.startswith("viquae: ") for left in done.left_out)
    assert done.bytes_copied == sum(len(row["image"]["bytes"]) for row in corpus.values())
    texts = {row["id"]: row for row in rows(tmp_path / "out/text_mmlongdoc", "corpus")}
    shown_texts = "".join(each.prompt.text for each in every_example(families, ["text_mmlongdoc"]))
    assert texts
    assert all(row["text"] in shown_texts for row in texts.values())
    assert {row["corpus-id"] for row in rows(tmp_path / "out/text_mmlongdoc", "qrels")} <= texts.keys()
    folder = tmp_path / "out/mmlongdoc"
    assert loaded(folder, "corpus", tmp_path / "cache")["test"][0]["image"].size > (0, 0)
    assert len(loaded(folder, "top_ranked", tmp_path / "cache")["test"]) == len(queries)
    with pytest.raises(mm.ReleaseError, match="no chosen example says on which page"):
        mm.export(families, "mteb", tmp_path / "none", datasets="viquae")


def test_ids_are_shown_as_they_are_on_the_page_of_mteb(finished: Path, tmp_path: Path) -> None:
    """The question that no page answers is left out, and named."""
    copy = shutil.copytree(finished, tmp_path / "release")
    for path in (copy / "mmlb_data/documentQA").iterdir():
        path.write_text(path.read_text("utf-8").replace('"mmlongdoc_4"', '"<b>*q*|1</b>"'), "utf-8")
    done = mm.export(copy, "mteb", tmp_path / "out")
    assert any("<b>*q*|1</b>" in left for left in done.left_out)
    page = (tmp_path / "out/README.md").read_text("utf-8")
    assert "&lt;b&gt;\\*q\\*\\|1&lt;/b&gt;" in page
    assert "<b>" not in page
