"""Every field of a released record is described by its builder or by the engine, and every described field exists."""

import json

import pytest
import yaml
from every_sample import every_sample_as_written
from tiny import command

from builders.samples.mm_niah.upstream import draw_upstream
from mmlongbench.manifest.registry import builder_type, installed
from mmlongbench.packing.place import Depth, Permutation
from mmlongbench.release.loading import load_release
from mmlongbench.task.added_fields import added_fields

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """The fields of all records of each builder: those of the quickstart, and of tasks that it does not have."""
    folder = tmp_path_factory.mktemp("fields")
    manifest = every_sample_as_written()
    upstream = draw_upstream(folder / "upstream", rows=2, pictures=12, pages=4)
    for name, sources in upstream.items():
        task, needle = name.split("-")
        source = {key: str(path) for key, path in sources.items()}
        dataset = {"name": f"of-{name}", "builder": "mm_niah", "reader": "mm_niah", "source": source}
        manifest["datasets"].append({**dataset, "options": {"task": task, "needle": needle}})
    text = {"name": "gov-text", "builder": "summary", "reader": "govreport", "options": {"pages_as": "text"}}
    manifest["datasets"].append({**text, "reference_length": "16K"})
    (folder / "fields.yaml").write_text(yaml.safe_dump(manifest), "utf-8")
    built = command("build", folder / "fields.yaml", "--out", folder / "out", "--lengths", "8K", "--limit", "2", "-q")
    assert built.code == 0, built.err
    fields: dict[str, set[str]] = {}
    for file in load_release(folder / "out").files:
        if file.is_bundle or file.dataset is None or file.dataset.spec is None:
            continue  # a bundle has the same records in another form
        records = map(json.loads, file.path.read_text("utf-8").splitlines())
        fields.setdefault(file.dataset.spec.builder, set()).update(name for record in records for name in record)
    return fields


ADDED = {**added_fields(Depth), **added_fields(Permutation)}
every = pytest.mark.parametrize("name", [plugin.name for plugin in installed("builder")])


@every
def test_every_field_of_a_record_is_described_once(found: dict[str, set[str]], name: str) -> None:
    own = builder_type(name).record_fields
    assert found[name] - {*own, *ADDED} == set()
    assert {*own} & {*ADDED} == set()


@every
def test_every_described_field_is_in_a_record(found: dict[str, set[str]], name: str) -> None:
    assert {*builder_type(name).record_fields} - found[name] == set()


def test_every_field_that_the_engine_adds_is_in_a_record(found: dict[str, set[str]]) -> None:
    assert {*ADDED} <= set().union(*found.values())
