"""The schema of manifests accepts what the engine accepts, and finds what is misspelt."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from mmlongbench.manifest.builtin_manifests import installed_manifests
from mmlongbench.manifest.json_schema import manifest_schema
from mmlongbench.manifest.loading import load_manifest

jsonschema = pytest.importorskip("jsonschema")
ROOT = Path(__file__).parents[2]
SCHEMA = manifest_schema()
PAGES = (*ROOT.glob("*.md"), *ROOT.glob("*/README.md"), *ROOT.glob("*/*/README.md"))
FENCE = re.compile(r"^```yaml[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def faults(manifest: object) -> list[str]:
    return [error.message for error in jsonschema.Draft202012Validator(SCHEMA).iter_errors(manifest)]


def dataset(**keys: object) -> dict[str, Any]:
    return {"name": "a", "builder": "docvqa", "reader": "own_documents", "source": "sample", **keys}


def shown() -> Iterator[dict[str, Any]]:
    """Yield every manifest in the pages."""
    for page in PAGES:
        for body in FENCE.findall(page.read_text("utf-8")):
            found = yaml.safe_load(body)
            if isinstance(found, dict) and "datasets" in found:
                yield found


def test_the_schema_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("name", sorted(installed_manifests()))
def test_every_shipped_manifest_is_valid(name: str) -> None:
    assert faults(yaml.safe_load(installed_manifests()[name].read_text("utf-8"))) == []


def test_every_manifest_in_the_pages_is_valid() -> None:
    found = list(shown())
    assert len(found) >= 3
    assert [faults(manifest) for manifest in found] == [[]] * len(found)


@pytest.mark.parametrize(
    "keys",
    [
        {"lengths": "8K,32k"},
        {"lengths": 8192},
        {"lengths": ["8K", 16384, " 1M "]},
        {"placements": 0.5},
        {"placements": [0, 0.5]},
        {"exclude": 7},
        {"exclude": [7, "b"]},
        {"options": {"page_label": "index", "max_answer_words": 7}},
        {"corpus": None},
        {"sample": {"n": None}},
        {"counter": {"image": {"patch": 28}}},
        {"limits": {"seconds_a_page": 3}},
        {"source": {"questions": "q.csv", "documents": "pdfs"}},
        {"builder": "mine.py:Mine", "options": {"anything": 1}},
        {"reader": "of another package", "source": {"files": "a"}},
    ],
)
def test_what_the_engine_accepts_is_valid(keys: dict[str, object], tmp_path: Path) -> None:
    manifest = {"datasets": [dataset(**keys)]}
    path = tmp_path / "manifest.yaml"
    path.write_text(yaml.safe_dump(manifest), "utf-8")
    (tmp_path / "mine.py").write_text("")
    load_manifest(path)
    assert faults(manifest) == []


@pytest.mark.parametrize(
    "manifest",
    [
        {"dataset": [dataset()]},
        {"datasets": []},
        {"datasets": [dataset(lenghts=["8K"])]},
        {"datasets": [dataset(lengths=["8Q"])]},
        {"datasets": [dataset(lengths=[5000])]},
        {"datasets": [dataset(pages={"dip": 144})]},
        {"datasets": [dataset(limits={"page": 5})]},
        {"datasets": [dataset(options={"page_lable": "index"})]},
        {"datasets": [dataset(options={"page_label": "roman"})]},
        {"datasets": [dataset(source={"question": "q.csv"})]},
        {"datasets": [dataset(source="samples")]},
        {"datasets": [dataset(counter={"image": {"patches": 14}})]},
        {"datasets": [{"name": "a", "builder": "docvqa", "reader": "own_documents"}]},
        {"defaults": {"sead": 42}, "datasets": [dataset()]},
        {"datasets": [dataset(name="../a")]},
    ],
)
def test_what_is_misspelt_or_missing_is_found(manifest: dict[str, Any]) -> None:
    assert faults(manifest)


def test_keys_that_defaults_give_are_not_missing() -> None:
    common = {"builder": "docvqa", "reader": "own_documents", "source": "sample"}
    assert faults({"defaults": common, "datasets": [{"name": "a"}]}) == []


def test_every_key_has_a_description() -> None:
    def bare(part: object, where: str) -> Iterator[str]:
        for name, field in part.get("properties", {}).items() if isinstance(part, Mapping) else ():
            if not field.get("description"):
                yield f"{where}.{name}"

    assert [name for key, part in SCHEMA["$defs"].items() for name in bare(part, key)] == []
    assert [*bare(SCHEMA, "manifest")] == []
