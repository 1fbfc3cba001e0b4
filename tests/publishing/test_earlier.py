"""Publications after an earlier one: what stays, what is written, what is sent, what others read."""

import shutil
from collections.abc import Callable, Iterable
from hashlib import sha256, shake_256
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from exported import check_rows, croissant_rows, every_example, read_images, tree
from needs import library
from once import once
from samples import Sources, from_samples, left_out
from tiny import command

from mmlongbench.errors import ReleaseError
from mmlongbench.exports.row_groups import picture_of, picture_schema, write_rows
from mmlongbench.publishing.publish import upload
from mmlongbench.publishing.tables import example_schema, keep_examples, keep_images, row_digest


@pytest.fixture(scope="session")
def releases(sample: Callable[[str], Sources], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Releases of three questions (`few`) and of the same and two more (`more`); not to be changed."""

    def make(folder: Path) -> None:
        dataset = {"name": "mmlongdoc", "builder": "docvqa", "reader": "mmlongbench_doc", "lengths": ["8K", "16K"]}
        dataset["exclude"] = left_out()
        manifest = from_samples({"datasets": [{**dataset, "options": {"max_answer_words": 5}}]}, sample)
        (folder / "m.yaml").write_text(yaml.safe_dump(manifest), "utf-8")
        for name, limit in (("few", 3), ("more", 5)):
            assert command("build", folder / "m.yaml", "--out", folder / name, "--limit", limit).code == 0
        published(folder / "few", folder / "first")
        published(folder / "more", folder / "second", "--after", folder / "first")

    return once(tmp_path_factory, "publications", make)


@pytest.fixture
def few(releases: Path) -> Path:
    return releases / "few"


@pytest.fixture
def more(releases: Path) -> Path:
    return releases / "more"


@pytest.fixture
def first(releases: Path) -> Path:
    """The publication of a few questions; not to be changed."""
    return releases / "first"


@pytest.fixture
def second(releases: Path) -> Path:
    """The publication of more questions after it; not to be changed."""
    return releases / "second"


def published(release: Path, out: Path, *options: object) -> Path:
    done = command("publish", release, "--out", out, "--allow-unknown-licence", *options)
    assert done.code == 0, done.err
    return out


def tables(folder: Path) -> dict[str, str]:
    """The digest of each table of examples and of images."""
    return {name: digest for name, digest in tree(folder).items() if name.startswith(("data/", "images/"))}


def test_more_questions_add_files_and_change_none(first: Path, second: Path) -> None:
    before, after = tables(first), tables(second)
    assert before.items() < after.items()
    sent = sum((second / name).stat().st_size for name in after.keys() - before.keys() if name.startswith("images/"))
    new = read_images(second).items() - read_images(first).items()
    assert new
    assert sent <= 1.02 * sum(len(data) for _, data in new) + 4096  # a small file has a foot of its own


def test_every_configuration_opens_and_has_all_examples(more: Path, second: Path, tmp_path: Path) -> None:
    from datasets import disable_progress_bars, load_dataset

    disable_progress_bars()
    opened = load_dataset(str(second), "mmlongdoc", cache_dir=str(tmp_path))
    check_rows(more, [row for split in opened.values() for row in split], read_images(second))
    configs = yaml.safe_load((second / "README.md").read_text("utf-8").split("---\n")[1])["configs"]
    assert configs[0]["data_files"][0]["path"] == ["data/mmlongdoc/K8.parquet", "data/mmlongdoc/K8-00001.parquet"]


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")  # of the packages that it is made of
def test_croissant_reads_tables_of_several_files(more: Path, second: Path) -> None:
    library("mlcroissant", "test")
    import mlcroissant

    data = mlcroissant.Dataset(jsonld=str(second / "croissant.json"))
    assert not data.metadata.ctx.issues.errors
    check_rows(
        more, [row for name in ("K8", "K16") for row in croissant_rows(data, f"mmlongdoc/{name}")], read_images(second)
    )


def test_the_same_state_keeps_every_table_and_gives_the_same_bytes(more: Path, second: Path, tmp_path: Path) -> None:
    again = published(more, tmp_path / "again", "--after", second)
    assert tables(again) == tables(second)
    assert tree(published(more, tmp_path / "once more", "--after", second)) == tree(again)


def test_what_is_no_longer_published_stays_in_no_table(few: Path, second: Path, tmp_path: Path) -> None:
    fewer = published(few, tmp_path / "fewer", "--after", second)
    examples = list(every_example(few))
    wanted = {row["sha256"] for path in (fewer / "images").iterdir() for row in pq.read_table(path).to_pylist()}
    plain = published(few, tmp_path / "plain")
    assert wanted == read_images(plain).keys()
    rows = [row for path in (fewer / "data").rglob("*.parquet") for row in pq.read_table(path).to_pylist()]
    assert len(rows) == len(examples)
    check_rows(few, rows, read_images(fewer))


def test_a_folder_that_is_no_publication_is_refused(few: Path, tmp_path: Path) -> None:
    (tmp_path / "project/data").mkdir(parents=True)
    for folder in (few, tmp_path / "project"):
        done = command("publish", few, "--out", tmp_path / "out", "--allow-unknown-licence", "--after", folder)
        assert (done.code, "has no tables in data/; give a folder that publish made" in done.err) == (2, True)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("kind", ["broken", "changed", "other columns"])
def test_a_damaged_table_is_named_or_written_anew(few: Path, first: Path, tmp_path: Path, kind: str) -> None:
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
        assert read_images(tmp_path / "out") == read_images(first)
    else:
        assert done.code == 2
        assert str(file) in done.err
        assert not (tmp_path / "out").exists()


def test_a_folder_that_was_changed_is_not_uploaded(first: Path, tmp_path: Path) -> None:
    shutil.copytree(first, tmp_path / "copy")
    (tmp_path / "copy/secret.txt").write_text("a secret", "utf-8")
    with pytest.raises(ReleaseError, match=r"secret.txt: is not in the list"):
        upload(tmp_path / "copy", "me/harbours")


def stored(folder: Path, table: pa.Table) -> Path:
    """A publication with a table of one image."""
    (folder / "images").mkdir()
    pq.write_table(table, folder / "images/K8-00000.parquet")
    return folder


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
            list(keep_images(stored(tmp_path, table), {digest: "ash/1.jpg"}))
        return
    kept = list(keep_images(stored(tmp_path, table), {digest: "ash/1.jpg"}))
    assert [sizes for _, sizes in kept] == [{digest: len(data)}] * (kind == "same")


def test_a_table_of_examples_with_other_types_is_not_kept(tmp_path: Path) -> None:
    schema, file = example_schema(canary=False), tmp_path / "K8.parquet"
    (row,) = pa.Table.from_pylist([{"id": "a", "turns": ["b"]}], schema).to_pylist()
    pq.write_table(pa.Table.from_pylist([row], schema), file)
    assert list(keep_examples([file], schema, {row_digest(row)})) == [(file, {row_digest(row)})]
    pq.write_table(pa.table({name: [b"a" if name == "id" else row[name]] for name in schema.names}), file)
    assert not list(keep_examples([file], schema, {row_digest(row)}))


SIZE = 100_000
HEADER = 20
"""The bytes before an image that are compared: its length, and the end of the header of its chunk."""


def image(number: int) -> bytes:
    return shake_256(b"image %d" % number).digest(SIZE)


def written(path: Path, numbers: Iterable[int]) -> bytes:
    cells = ((str(n), image(n)) for n in numbers)
    rows = (({"sha256": name, "image": picture_of(data, name, "a.jpg"), "path": name}, SIZE) for name, data in cells)
    write_rows(path, picture_schema("sha256", "path"), rows, is_packed=True)
    return path.read_bytes()


def test_an_image_has_the_same_bytes_around_it_wherever_it_is(tmp_path: Path) -> None:
    before = written(tmp_path / "before.parquet", range(30))
    after = written(tmp_path / "after.parquet", (30, *range(0, 30, 2), 31, *range(1, 30, 2)))
    for number in range(30):
        first, second = (data.index(image(number)) for data in (before, after))
        assert before[first - HEADER : first] == after[second - HEADER : second]
