"""The manifest of the whole benchmark, built from small sources in the forms in which their authors publish them."""

from pathlib import Path

import pytest
import yaml
from drawn_downloads import draw_data
from tiny import command

import mmlongbench as mm

MANIFESTS = Path(__file__).parents[2] / "manifests"
INCLUDED = [MANIFESTS / name for name in yaml.safe_load((MANIFESTS / "benchmark.yaml").read_text("utf-8"))["include"]]
NAMES = [each["name"] for path in INCLUDED for each in yaml.safe_load(path.read_text("utf-8"))["datasets"]]
SMALL: dict[str, object] = {
    "infoseek.retrieval.reranker": None,  # the paper's model is not on this machine
    "viquae.retrieval.reranker": None,
    "gov.reference_length": "16K",  # the drawn reports are short
    "lexsum.reference_length": "16K",
    "inat2021.options.domains": [],  # the drawn shapes are neither birds nor plants
}
FILES = {
    *(
        f"ICL/{name}_K8.{form}"
        for name in ("cars196", "food101", "inat2021", "sun397")
        for form in ("json", "frozen.jsonl")
    ),
    *(
        f"NIAH/{task}-{kind}_test_K8_dep{3 if task == 'counting' else 6}.jsonl"
        for task in ("counting", "retrieval")
        for kind in ("image", "text")
    ),
    *("NIAH/reasoning-image_test_K8_dep6.jsonl", "NIAH/reasoning-text_test_K8_dep3.jsonl"),
    *("NIAH/vh_multi_test_2_K8_dep3.jsonl", "NIAH/vh_single_test_2_K8_dep6.jsonl"),
    *(
        f"documentQA/{name}_K8.jsonl"
        for name in ("longdocurl", "mmlongdoc", "slidevqa", "text_longdocurl", "text_mmlongdoc")
    ),
    *("summ/gov_K8.jsonl", "summ/lexsum_K8.jsonl", "vrag/infoseek_K8_dep3.jsonl", "vrag/viquae_K8_dep6.jsonl"),
}


@pytest.mark.rare
def test_the_whole_benchmark_is_built_from_what_its_authors_publish(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    draw_data(tmp_path / "data")
    built = mm.build("benchmark", tmp_path / "release", data=tmp_path / "data", overrides=SMALL, lengths="8K", limit=2)
    assert len(NAMES) == 21
    assert [dataset["name"] for dataset in built.lock.manifest] == NAMES
    assert {path for path in built.lock.files if path.startswith("mmlb_data/")} == {
        f"mmlb_data/{path}" for path in FILES
    }
    lines = mm.audit(tmp_path / "release")
    assert {line.file for line in lines} == FILES
    assert [problem for line in lines for problem in line.problems] == []
    assert all(line.examples >= 2 for line in lines)
    assert not mm.verify(tmp_path / "release").problems


@pytest.mark.rare
def test_every_manifest_of_public_sources_is_built_from_samples(tmp_path: Path) -> None:
    """`--set source=sample` is the only setting."""
    others = [
        path for path in sorted(MANIFESTS.glob("*.yaml")) if not path.stem.startswith(("quickstart", "benchmark"))
    ]
    (tmp_path / "all.yaml").write_text(yaml.safe_dump({"include": list(map(str, others))}), "utf-8")
    names = [each["name"] for path in others for each in yaml.safe_load(path.read_text("utf-8"))["datasets"]]
    samples = {f"{name}.source": "sample" for name in names}
    mm.build(tmp_path / "all.yaml", tmp_path / "release", overrides=samples, lengths="8K", limit=1)
    release = mm.open_release(tmp_path / "release")
    assert set(NAMES) < set(names)
    assert [name for name in names if not any(release.ids(name, 8 * 1024))] == []


def test_a_plan_without_sources_says_how_to_get_each(tmp_path: Path) -> None:
    ran = command("plan", "benchmark", "--data", tmp_path)
    lines = ran.out.splitlines()
    assert ran.code == 1
    assert [line.partition(":")[0] for line in lines if "cannot be built" in line] == NAMES
    assert all(f"mmlongbench fetch {name} --to {tmp_path}" in ran.out for name in ("mmlongdoc", "food101", "gov"))
