"""The target `mteb`: the forms that mteb reads. `tests/loaders/check_mteb.py` reads an export with mteb itself."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from exported import every_example, tree

import mmlongbench as mm
from mmlongbench.exports.mteb import _page, _Retrieval

pytestmark = pytest.mark.slow


def table(out: Path, config: str) -> pa.Table:
    return pq.read_table(out / config / "test-00000.parquet")


def rows(out: Path, config: str) -> list[dict[str, Any]]:
    return table(out, config).to_pylist()


def test_pages_and_questions_have_the_forms_of_mteb(mixed: Path, tmp_path: Path) -> None:
    done = mm.export(mixed, "mteb", tmp_path / "out")
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"README.md", "mmlongdoc", "text_mmlongdoc"}
    out = tmp_path / "out/mmlongdoc"
    head = yaml.safe_load((out / "README.md").read_text("utf-8").split("---\n")[1])
    configs = {each["config_name"]: each["data_files"] for each in head["configs"]}
    assert configs == {
        name: [{"split": "test", "path": f"{name}/test-*"}] for name in ("corpus", "queries", "qrels", "top_ranked")
    }
    examples = [each for each in every_example(mixed) if each.dataset == "mmlongdoc"]
    corpus = {row["id"]: row for row in rows(out, "corpus")}
    assert corpus.keys() == {image for each in examples for image in each.prompt.images}
    for id, row in corpus.items():
        assert row["image"]["bytes"] == (mixed / "mmlb_image" / id).read_bytes()
    queries = {row["id"]: row["text"] for row in rows(out, "queries")}
    assert queries == {each.id: each.record["question"] for each in examples if each.id in queries}
    pairs = {(row["query-id"], row["corpus-id"]) for row in rows(out, "qrels")}
    evidence = [(each.id, each.evidence) for each in examples if each.evidence]
    assert pairs == {(id, found.images[page]) for id, found in evidence for page in found.pages if page in found.shown}
    assert table(out, "qrels").schema.names == ["query-id", "corpus-id", "score"]
    candidates = {row["query-id"]: set(row["corpus-ids"]) for row in rows(out, "top_ranked")}
    assert candidates.keys() == queries.keys()
    assert all(page in candidates[id] <= corpus.keys() for id, page in pairs)
    assert "viquae: its examples do not say on which page of a document the answer is" in done.left_out
    assert done.bytes_copied == sum(len(row["image"]["bytes"]) for row in corpus.values())


def test_pages_that_are_shown_as_text_are_a_corpus_of_texts(mixed: Path, tmp_path: Path) -> None:
    mm.export(mixed, "mteb", tmp_path / "out", datasets="text_mmlongdoc")
    corpus = {row["id"]: row for row in rows(tmp_path / "out/text_mmlongdoc", "corpus")}
    assert all(row["text"] in "".join(each.prompt.text for each in every_example(mixed)) for row in corpus.values())
    assert {row["corpus-id"] for row in rows(tmp_path / "out/text_mmlongdoc", "qrels")} <= corpus.keys()


def test_every_configuration_opens_with_datasets(mixed: Path, tmp_path: Path) -> None:
    from datasets import disable_progress_bars, load_dataset

    disable_progress_bars()
    mm.export(mixed, "mteb", tmp_path / "out", datasets="mmlongdoc")
    folder, options = str(tmp_path / "out/mmlongdoc"), {"split": "test", "cache_dir": str(tmp_path / "cache")}
    assert load_dataset(folder, "corpus", **options)[0]["image"].size > (0, 0)
    assert str(load_dataset(folder, "qrels", **options).features["score"].dtype) == "int32"
    assert len(load_dataset(folder, "top_ranked", **options)) == len(load_dataset(folder, "queries", **options))


def test_the_same_choices_give_the_same_bytes(mixed: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        mm.export(mixed, "mteb", tmp_path / name)
    assert tree(tmp_path / "a") == tree(tmp_path / "b")


def test_choices_that_mean_nothing_are_refused(mixed: Path, tmp_path: Path) -> None:
    for choice in ({"model": "m"}, {"max_tokens": 5}, {"images": "data-uri"}):
        with pytest.raises(mm.ReleaseError, match="leave it out"):
            mm.export(mixed, "mteb", tmp_path / "out", **choice)
    with pytest.raises(mm.ReleaseError, match="no chosen example says on which page"):
        mm.export(mixed, "mteb", tmp_path / "out", datasets="viquae")


def test_ids_are_shown_as_they_are() -> None:
    kept = {"trees": _Retrieval(queries={"a": ("", "")})}
    page = _page(kept, ("trees: <b>*q*|1</b>: no page holds its answer",))
    assert "- trees: &lt;b&gt;\\*q\\*\\|1&lt;/b&gt;: no page holds its answer" in page
