"""Publications after an earlier one: what stays, what is written, what is sent, what others read."""

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from exported import every_example, shown, tree
from tiny import command

import mmlongbench as mm
from mmlongbench.errors import ReleaseError
from mmlongbench.exports.row_groups import picture_of, picture_schema
from mmlongbench.manifest.builtin_manifests import find_manifest
from mmlongbench.manifest.loading import load_manifest
from mmlongbench.publishing.earlier import Earlier, keep_examples, row_digest
from mmlongbench.publishing.tables import example_schema

pytestmark = pytest.mark.slow
CHOSEN = ("mmlongdoc", "viquae")


def built(out: Path, limit: int) -> Path:
    manifest = load_manifest(find_manifest("quickstart"))
    chosen = tuple(dataset for dataset in manifest.datasets if dataset.name in CHOSEN)
    mm.build(manifest.model_copy(update={"datasets": chosen}), out, limit=limit, lengths=["8K", "16K"])
    return out


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release of a few questions; not to be changed."""
    return built(tmp_path_factory.mktemp("few") / "release", 4)


@pytest.fixture(scope="module")
def more(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release of the same and more questions; not to be changed."""
    return built(tmp_path_factory.mktemp("more") / "release", 6)


def published(release: Path, out: Path, *options: object) -> Path:
    done = command("publish", release, "--out", out, "--allow-unknown-licence", *options)
    assert done.code == 0, done.err
    return out


@pytest.fixture(scope="module")
def first(few: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The publication of a few questions; not to be changed."""
    return published(few, tmp_path_factory.mktemp("first") / "out")


@pytest.fixture(scope="module")
def second(more: Path, first: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The publication of more questions after it; not to be changed."""
    return published(more, tmp_path_factory.mktemp("second") / "out", "--after", first)


def tables(folder: Path) -> dict[str, str]:
    """The digest of each table of examples and of images."""
    return {name: digest for name, digest in tree(folder).items() if name.startswith(("data/", "images/"))}


def images(folder: Path) -> dict[str, bytes]:
    rows = [row for path in (folder / "images").iterdir() for row in pq.read_table(path).to_pylist()]
    assert len({row["sha256"] for row in rows}) == len(rows)
    return {row["sha256"]: row["image"]["bytes"] for row in rows}


def test_more_questions_add_files_and_change_none(first: Path, second: Path) -> None:
    before, after = tables(first), tables(second)
    assert before.items() < after.items()
    sent = sum((second / name).stat().st_size for name in after.keys() - before.keys() if name.startswith("images/"))
    new = images(second).items() - images(first).items()
    assert new
    assert sent <= 1.02 * sum(len(data) for _, data in new) + 4096  # a small file has a foot of its own


def parts_of(turns: list[str], pictures: list[bytes]) -> list[str | bytes]:
    left, found = iter(pictures), list[str | bytes]()
    for turn in turns:
        head, *others = turn.split("<image>")
        found += [piece for piece in (head, *(each for text in others for each in (next(left), text))) if piece]
    return found


def check(release: Path, rows: list[dict[str, Any]], stored: dict[str, bytes]) -> None:
    """Compare rows in any order with all examples of a release."""
    examples = {example.digest + example.file + example.id: example for example in every_example(release)}
    assert sorted(row["digest"] + row["file"] + row["id"] for row in rows) == sorted(examples)
    for row in rows:
        example = examples[row["digest"] + row["file"] + row["id"]]
        assert parts_of(row["turns"], [stored[digest] for digest in row["images"]]) == shown(release, example)
        assert json.loads(row["answer"]) == example.answer


def test_every_configuration_opens_and_has_all_examples(more: Path, second: Path, tmp_path: Path) -> None:
    from datasets import disable_progress_bars, load_dataset

    disable_progress_bars()
    opened = [load_dataset(str(second), name, cache_dir=str(tmp_path)) for name in CHOSEN]
    check(more, [row for splits in opened for split in splits.values() for row in split], images(second))
    configs = yaml.safe_load((second / "README.md").read_text("utf-8").split("---\n")[1])["configs"]
    assert configs[0]["data_files"][0]["path"] == ["data/mmlongdoc/K8.parquet", "data/mmlongdoc/K8-00001.parquet"]


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")  # of the packages that it is made of
def test_croissant_reads_tables_of_several_files(more: Path, second: Path) -> None:
    mlcroissant = pytest.importorskip("mlcroissant", reason="mlcroissant is not installed; see the extra `test`")
    data = mlcroissant.Dataset(jsonld=str(second / "croissant.json"))
    assert not data.metadata.ctx.issues.errors
    rows = [
        {key.removeprefix(f"{name}/K{length}/"): text(value) for key, value in record.items()}
        for name in CHOSEN
        for length in (8, 16)
        for record in data.records(f"{name}/K{length}")
    ]
    check(more, rows, images(second))


def text(value: Any) -> Any:
    if isinstance(value, list):
        return [text(each) for each in value]
    return value.decode() if isinstance(value, bytes) else value


def test_the_same_state_keeps_every_table_and_gives_the_same_bytes(more: Path, second: Path, tmp_path: Path) -> None:
    again = published(more, tmp_path / "again", "--after", second)
    assert tables(again) == tables(second)
    assert tree(published(more, tmp_path / "once more", "--after", second)) == tree(again)


def test_what_is_no_longer_published_stays_in_no_table(few: Path, second: Path, tmp_path: Path) -> None:
    fewer = published(few, tmp_path / "fewer", "--after", second)
    examples = list(every_example(few))
    wanted = {row["sha256"] for path in (fewer / "images").iterdir() for row in pq.read_table(path).to_pylist()}
    plain = published(few, tmp_path / "plain")
    assert wanted == images(plain).keys()
    rows = [row for path in (fewer / "data").rglob("*.parquet") for row in pq.read_table(path).to_pylist()]
    assert len(rows) == len(examples)
    check(few, rows, images(fewer))


def test_a_folder_that_is_no_publication_is_refused(few: Path, tmp_path: Path) -> None:
    (tmp_path / "project/data").mkdir(parents=True)
    for folder in (few, tmp_path / "project"):
        done = command("publish", few, "--out", tmp_path / "out", "--allow-unknown-licence", "--after", folder)
        assert (done.code, "has no tables in data/; give a folder that publish made" in done.err) == (2, True)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("kind", ["broken", "changed", "other columns"])
def test_a_damaged_table_is_named_or_written_anew(few: Path, first: Path, tmp_path: Path, kind: str) -> None:
    import shutil

    earlier = tmp_path / "earlier"
    shutil.copytree(first, earlier)
    file = min((earlier / "images").iterdir())
    table = pq.read_table(file)
    if kind == "broken":
        file.write_bytes(file.read_bytes()[:-9])
    elif kind == "changed":
        rows = table.to_pylist()
        rows[0]["image"]["bytes"] += b"x"
        pq.write_table(pa.Table.from_pylist(rows, table.schema), file)
    else:
        pq.write_table(table.drop_columns(["path"]), file)
    done = command("publish", few, "--out", tmp_path / "out", "--allow-unknown-licence", "--after", earlier)
    if kind == "other columns":
        assert done.code == 0, done.err
        assert images(tmp_path / "out") == images(first)
    else:
        assert done.code == 2
        assert str(file) in done.err
        assert not (tmp_path / "out").exists()


def stored(folder: Path, table: pa.Table) -> Earlier:
    """A publication with a table of one image."""
    for name in ("data/a", "images"):
        (folder / name).mkdir(parents=True)
    pq.write_table(pa.table({}), folder / "data/a/K8.parquet")
    pq.write_table(table, folder / "images/K8-00000.parquet")
    return Earlier.open(folder)


@pytest.mark.parametrize("kind", ["same", "another name", "other metadata", "other types", "no text"])
def test_a_table_of_images_is_kept_only_if_it_is_what_would_be_written(tmp_path: Path, kind: str) -> None:
    schema, data = picture_schema("sha256", "path"), b"pixels"
    digest = sha256(data).hexdigest()
    name = "ash.jpg" if kind == "another name" else f"{digest}.jpg"
    row = {"sha256": digest, "image": {"bytes": data, "path": name}, "path": "ash/1.jpg"}
    assert kind == "another name" or row["image"] == picture_of(data, digest, "ash/1.jpg")
    table = pa.Table.from_pylist([row], schema)
    if kind == "other metadata":
        table = table.replace_schema_metadata({"note": "birch"})
    elif kind == "other types":
        table = table.cast(schema.set(2, pa.field("path", pa.binary())))
    elif kind == "no text":
        table = table.set_column(2, "path", pa.Array.from_buffers(pa.string(), 1, pa.array([b"\xff"]).buffers()))
        table = table.replace_schema_metadata(schema.metadata)
        with pytest.raises(ReleaseError, match=r"K8-00000\.parquet: cannot be read as Parquet"):
            list(stored(tmp_path, table).keep_images({digest: "ash/1.jpg"}))
        return
    kept = list(stored(tmp_path, table).keep_images({digest: "ash/1.jpg"}))
    assert [each.keys for each in kept] == [{digest}] * (kind == "same")


def test_a_table_of_examples_with_other_types_is_not_kept(tmp_path: Path) -> None:
    schema, file = example_schema(canary=False), tmp_path / "K8.parquet"
    (row,) = pa.Table.from_pylist([{"id": "a", "turns": ["b"]}], schema).to_pylist()
    pq.write_table(pa.Table.from_pylist([row], schema), file)
    assert [each.keys for each in keep_examples([file], schema, {row_digest(row)})] == [{row_digest(row)}]
    pq.write_table(pa.table({name: [b"a" if name == "id" else row[name]] for name in schema.names}), file)
    assert not list(keep_examples([file], schema, {row_digest(row)}))
