"""The folder that `publish` wrote is read again: by show, score, run, view, audit and verify, as the release is."""

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from counting_server import counting
from once import once
from runs import asked
from tiny import command

import mmlongbench as mm
from mmlongbench.models.settings import RunOptions
from mmlongbench.release.published_folder import is_publication
from mmlongbench.release.release import Release
from mmlongbench.release.selection import Selection
from mmlongbench.web.viewer.viewed import open_viewed


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The user's cache, in which publications are made releases again."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def _in_cache(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))


@pytest.fixture(scope="module")
def publication(families: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A publication of releases of every family, with all of their examples; not to be changed."""

    def make(folder: Path) -> None:
        ran = command("publish", families, "--out", folder / "published")
        assert ran.code == 0, ran.err

    return once(tmp_path_factory, "published_families", make) / "published"


def test_every_example_of_a_publication_is_that_of_the_release(families: Path, publication: Path) -> None:
    release, published = mm.open_release(families), mm.open_release(publication)
    assert is_publication(publication)
    assert published.lock_id == release.lock_id
    assert published.datasets == release.datasets
    shown = set[str]()
    for name in release.datasets:
        for length in release.lengths(name):
            ours, theirs = (list(opened.examples(name, length)) for opened in (release, published))
            shown.update(path for each in ours for path in each.prompt.images)
            assert [each.record for each in theirs] == [each.record for each in ours]
            assert [(each.prompt, each.digest, each.answer) for each in theirs] == [
                (each.prompt, each.digest, each.answer) for each in ours
            ]
    for file in published.files:
        assert file.path.read_bytes() == (families / "mmlb_data" / file.name).read_bytes()
        assert not file.is_part
    paths = [path for path in (published.path / "mmlb_image").rglob("*") if path.is_file()]
    for path in paths:
        assert path.read_bytes() == (families / path.relative_to(published.path)).read_bytes()
    assert {path.relative_to(published.path / "mmlb_image").as_posix() for path in paths} >= shown


def test_a_publication_is_audited_and_verified(families: Path, publication: Path) -> None:
    audited = command("audit", publication, "--json")
    assert audited.code == 0, audited.err
    lines = {line["file"]: line for line in map(json.loads, audited.out.splitlines())}
    of_release = map(json.loads, command("audit", families, "--json").out.splitlines())
    assert lines == {line["file"]: line for line in of_release if line["file"] in lines}
    assert sum(line["examples"] for line in lines.values()) > 0
    verified = command("verify", publication, "--json")
    assert (verified.code, json.loads(verified.out)["problems"]) == (0, [])


def test_a_publication_is_scored_as_the_release_is(families: Path, publication: Path, tmp_path: Path) -> None:
    release, lines = mm.open_release(families), list[str]()
    for name in release.datasets:
        for example in release.examples(name, release.lengths(name)[0]):
            said = example.answer[0] if isinstance(example.answer, list) and example.answer else example.answer
            lines.append(json.dumps({**example.key, "prediction": str(said), "digest": example.digest}))
    (tmp_path / "m.jsonl").write_text("\n".join(lines), "utf-8")
    ours, theirs = (
        mm.score(folder, tmp_path / "m.jsonl", partial=True, only_answered=True) for folder in (families, publication)
    )
    assert theirs.cells == ours.cells
    assert theirs.cells
    assert any(cell.score for cell in theirs.cells)


def test_a_publication_is_shown_and_viewed(publication: Path) -> None:
    shown = command("show", publication)
    assert (shown.code, "the release has no items" in shown.out) == (0, True)
    viewed = open_viewed(publication)
    assert viewed.name == "published"
    assert all(file.path.is_file() for file in viewed.files)


def test_a_model_is_asked_what_the_release_asks(families: Path, publication: Path, tmp_path: Path) -> None:
    selection = Selection(datasets=("mmlongdoc", "vh_single", "viquae"), lengths=("8K",))
    options = RunOptions("m", count_as="none")
    sent = []
    for number, folder in enumerate((families, publication)):
        out = tmp_path / f"{number}.jsonl"
        _, requests, _ = asked(folder, out, counting("Answer: hard"), options, selection)
        sent.append(sorted(json.dumps(each["messages"]) for each in requests))
        if number:
            assert mm.score(publication, out, only_answered=True).cells
    assert sent[0] == sent[1] != []


def test_a_changed_example_of_a_publication_is_named(publication: Path, tmp_path: Path) -> None:
    folder = tmp_path / "published"
    shutil.copytree(publication, folder)
    table = next((folder / "data/mmlongdoc").glob("*.parquet"))
    rows = pq.read_table(table)
    records = [json.loads(text) for text in rows["record"].cast(pa.string()).to_pylist() if text]
    records[0]["answer"] = "a forged answer"
    texts = pa.array([json.dumps(record, ensure_ascii=False) for record in records], pa.string())
    pq.write_table(rows.set_column(rows.schema.get_field_index("record"), "record", texts), table)
    verified = command("verify", folder, "--json")
    assert verified.code == 1
    problems = {(each["file"], each["problem"]) for each in json.loads(verified.out)["problems"]}
    name = table.relative_to(folder).as_posix()
    assert {(name, "is not the file that was made")} < problems
    audited = command("audit", folder, "-q")
    assert (audited.code, "the bytes are not those of the lock" in audited.err + audited.out) == (1, True)


def test_a_publication_without_some_examples_is_read(publication: Path, tmp_path: Path) -> None:
    folder = tmp_path / "published"
    shutil.copytree(publication, folder)
    table = next((folder / "data/mmlongdoc").glob("*.parquet"))
    rows = pq.read_table(table)
    ids = [str(id) for id in rows["id"].to_pylist()]
    pq.write_table(rows.filter(pa.array([id != ids[0] for id in ids])), table)
    opened = Release.open(folder)
    (part,) = (file for file in opened.files if file.is_part)
    assert part.dataset
    assert ids[0] not in opened.ids("mmlongdoc", part.length)
    audited = command("audit", folder, "--json")
    assert audited.code == 0, audited.out


def test_a_publication_of_an_older_version_is_refused_in_words(publication: Path, tmp_path: Path) -> None:
    folder = tmp_path / "published"
    shutil.copytree(publication, folder)
    for table in (folder / "data").glob("*/*.parquet"):
        pq.write_table(pq.read_table(table).drop_columns(["record"]), table)
    refused = command("show", folder)
    assert (refused.code, "publish the release again" in refused.err) == (2, True)


@pytest.mark.parametrize("name", ["mmlb_image/../../outside.jpg", "/tmp/outside.jpg"])
def test_an_image_never_leaves_the_cache(publication: Path, tmp_path: Path, name: str) -> None:
    folder = tmp_path / "published"
    shutil.copytree(publication, folder)
    lock = json.loads((folder / "build.lock.json").read_text("utf-8"))
    image = next(path for path in lock["files"] if path.startswith("mmlb_image/"))
    lock["files"][name] = lock["files"].pop(image)
    (folder / "build.lock.json").write_text(json.dumps(lock), "utf-8")
    refused = command("audit", folder, "-q")
    assert refused.code == 2
    assert "has an image that the lock does not have" in refused.err


def test_a_publication_is_neither_published_again_nor_taken_down(publication: Path, tmp_path: Path) -> None:
    again = command("publish", publication, "--out", tmp_path / "again")
    assert (again.code, "is a publication already" in again.err) == (2, True)
