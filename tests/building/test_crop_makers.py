"""The lock of a dataset with crops of pages names the packages that find the crops."""

from importlib.metadata import version

from mmlongbench.building.build_plan import DatasetPlan
from mmlongbench.building.differences import Described, differences
from mmlongbench.manifest.builtin_manifests import find_manifest
from mmlongbench.manifest.loading import load_manifest
from mmlongbench.release.loading import locked_dataset
from tokenization import load_tokenizer

SPECS = load_manifest(find_manifest("quickstart-forms")).datasets
TOKENIZER = {"name": "llama2", "sha256": load_tokenizer("llama2").sha256}
PLANS = {spec.name: DatasetPlan(spec, {}, {}, {}, {}, TOKENIZER) for spec in SPECS}
MAKERS = {name: version(name) for name in ("pymupdf_layout", "onnxruntime")}


def test_a_lock_names_what_finds_crops_only_where_there_are_crops() -> None:
    assert PLANS["interleaved"].public()["pages"]["crops"] == MAKERS
    assert "crops" not in PLANS["joined"].public()["pages"]


def test_another_version_is_named_and_a_locked_dataset_with_crops_can_be_read() -> None:
    now = PLANS["interleaved"].public()
    before = {**now, "pages": {**now["pages"], "crops": {**MAKERS, "onnxruntime": "0.1"}}}
    found = differences(Described([before]), Described([now]))
    assert found == [f"pages.crops.onnxruntime: 0.1 → {version('onnxruntime')}"]
    assert locked_dataset(now, None).spec == SPECS[0].model_copy(update={"source": "sample"})
