"""The same sources in all their forms give the same release; nothing secret of a URL is kept."""

import gzip
import json
import os
import shutil
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import fsspec
import pytest
from halted import refused
from hub_server import hub
from tiny import command, hashes, in_one_process, write_manifest

import mmlongbench as mm

Sources = Mapping[str, object]
SECRET = "user:SECRET@host"


def tarred(folder: Path, path: Path, mode: str = "w") -> Path:
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
        archive.add(folder, folder.name)
    return path


def zipped(folder: Path, path: Path) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in folder.rglob("*"):
            archive.write(file, file.relative_to(folder.parent))
    return path


def tars(source: Path, there: Path) -> Sources:
    return {
        "samples": gzipped(source / "samples.json", there),
        "documents": tarred(source / "documents", there / "d.tar.gz", "w:gz"),
    }


def gzipped(file: Path, there: Path) -> Path:
    (there / f"{file.name}.gz").write_bytes(gzip.compress(file.read_bytes()))
    return there / f"{file.name}.gz"


def zips(source: Path, there: Path) -> Sources:
    """One archive with everything, and two paths inside it."""
    whole = zipped(source, there / "all.zip")
    return {"samples": whole / "source/samples.json", "documents": whole / "source/documents"}


def several(source: Path, there: Path) -> Sources:
    """The documents in three places: files of a folder, a single file, an archive."""
    for name in ("here", "packed"):
        (there / name).mkdir()
    ash, birch, *others = sorted((source / "documents").iterdir())
    shutil.copy(ash, there / "here")
    for other in others:
        shutil.copy(other, there / "packed")
    with tarfile.open(there / "packed.tar", "w") as archive:
        for other in others:
            archive.add(other, other.name)
    return {"samples": source / "samples.json", "documents": [there / "here", birch, there / "packed.tar"]}


def urls(source: Path, there: Path) -> Sources:
    archive = zipped(source / "documents", there / "documents.zip")
    return {"samples": f"file://{source}/samples.json", "documents": f"file://{archive}"}


FORMS = {"tar.gz and gz": tars, "inside a zip": zips, "several": several, "urls": urls}


def settings(sources: Sources) -> list[str]:
    said = {
        name: value if not isinstance(value, list) else json.dumps([*map(str, value)])
        for name, value in sources.items()
    }
    return [word for name, value in said.items() for word in ("--set", f"source.{name}={value}")]


def but_origins(release: Path) -> dict[str, str]:
    """The hashes of all files but the table of assets, which says where sources come from, and the lock."""
    return {
        name: found
        for name, found in hashes(release).items()
        if name not in ("items/assets.parquet", "build.lock.json")
    }


@pytest.mark.parametrize("make", FORMS.values(), ids=FORMS)
def test_the_same_sources_in_another_form_give_the_same_bytes(
    make: Callable[[Path, Path], Sources], source: Path, finished: Path, tmp_path: Path
) -> None:
    given = settings(make(source, tmp_path))
    built = command("build", source / "tiny.yaml", *given, "--out", tmp_path / "out")
    assert built.code == 0, built.err
    assert but_origins(tmp_path / "out") == but_origins(finished)


@pytest.mark.rare
def test_sources_of_the_hub_are_downloaded_by_the_hubs_own_client(source: Path, finished: Path, tmp_path: Path) -> None:
    archive = zipped(source / "documents", tmp_path / "documents.zip")
    places = {"samples": "hub:owner/name@main/data/samples.json", "documents": "hub:owner/name/documents.zip"}
    words = ("build", source / "tiny.yaml", *settings(places), "--out", tmp_path / "out", "-q", "--workers", 1)
    files = {"data/samples.json": (source / "samples.json").read_bytes(), "documents.zip": archive.read_bytes()}
    with hub() as server:
        server.put("owner/name", {**files, "large.bin": b"-"})
        surroundings = {**os.environ, "HF_ENDPOINT": server.url, "HF_HOME": f"{tmp_path}/hub", "HF_TOKEN": "SECRET"}
        (ran,) = in_one_process(words, env=surroundings)
        assert (ran.code, ran.out, ran.err) == (0, "", "")
        assert not any("large.bin" in address for address, _ in server.requests)
    assert but_origins(tmp_path / "out") == but_origins(finished)


def test_a_stopped_build_and_an_extension_find_what_was_unpacked(source: Path, finished: Path, tmp_path: Path) -> None:
    words = ("build", source / "tiny.yaml", *settings(tars(source, tmp_path)), "--out", tmp_path / "out")
    for stage in ("prepare", "records"):
        assert command(*words, "--stage", stage).code == 0
    there = tmp_path / "out" / ".build" / "opened"
    unpacked = {path: path.stat().st_ino for path in there.rglob("*")}
    (tmp_path / "d.tar.gz").rename(tmp_path / "elsewhere")  # the other stages need what was unpacked, not the archive
    assert command(*words, "--stage", "images").code == 0
    assert {path: path.stat().st_ino for path in there.rglob("*")} == unpacked
    (tmp_path / "elsewhere").rename(tmp_path / "d.tar.gz")
    assert (ran := command(*words)).code == 0, ran.err
    assert hashes(tmp_path / "out") == hashes(finished)
    short = ("build", source / "tiny.yaml", *settings(zips(source, tmp_path)), "--out", tmp_path / "extended")
    assert command(*short, "--lengths", "1K").code == 0
    assert command(*short).code == 0
    assert hashes(tmp_path / "extended") == hashes(finished)
    assert not (tmp_path / "extended" / ".build").exists()


def test_a_build_that_fails_keeps_what_was_unpacked(source: Path, finished: Path, tmp_path: Path) -> None:
    sources = tars(source, tmp_path)
    words = ("build", source / "tiny.yaml", "--out", tmp_path / "out")
    wrong = command(*words, *settings({**sources, "samples": source / "documents" / "ash.pdf"}))
    assert wrong.code == 2
    there = tmp_path / "out" / ".build" / "opened"
    unpacked = {path.stat().st_ino for path in there.rglob("*.pdf")}
    assert len(unpacked) == 4
    assert command(*words, *settings(sources), "--stage", "prepare").code == 0
    assert {path.stat().st_ino for path in there.rglob("*.pdf")} == unpacked
    assert command(*words, *settings(sources)).code == 0
    assert hashes(tmp_path / "out") == hashes(finished)


@pytest.mark.parametrize("words", [(), ("--stage", "prepare")], ids=["build", "prepare"])
def test_no_secret_of_a_url_is_written_or_printed(words: tuple[str, ...], source: Path, tmp_path: Path) -> None:
    files = fsspec.filesystem("memory")
    for path in (source / "samples.json", *(source / "documents").iterdir()):
        files.pipe_file(f"/{SECRET}/{path.relative_to(source)}", path.read_bytes())
    places = {"samples": f"memory://{SECRET}/samples.json", "documents": f"memory://{SECRET}/documents"}
    ran = command("build", source / "tiny.yaml", *settings(places), "--out", tmp_path / "out", *words)
    assert ran.code == 0, ran.err
    assert "SECRET" not in ran.out + ran.err
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(written) > 5
    assert [path for path in written if b"SECRET" in path.read_bytes() or "SECRET" in str(path)] == []
    if words:
        missing = settings({**places, "documents": f"memory://{SECRET}/none"})
        ran = command("build", source / "tiny.yaml", *missing, "--out", tmp_path / "o")
        refused(ran, "error: source.documents: unreachable-source: expected a source at memory://…@host/none")
        assert "SECRET" not in ran.err


@pytest.mark.rare
def test_sources_at_a_url_can_be_checked(source: Path, tmp_path: Path) -> None:
    places = urls(source, tmp_path)
    checked = command("check", source / "tiny.yaml", *settings(places), "--limit", "1", "-q")
    assert (checked.code, checked.out) == (0, ""), checked.err


def test_the_plan_says_how_much_is_unpacked(source: Path, tmp_path: Path) -> None:
    ran = command("plan", source / "tiny.yaml", *settings(tars(source, tmp_path)))
    files = [source / "samples.json", *(source / "documents").iterdir()]
    size = sum(path.stat().st_size for path in files)
    assert (
        f"sources: {size:,} bytes unpacked or downloaded, kept in OUT/.build until the release is finished" in ran.out
    )
    assert "unpacked" not in command("plan", source / "tiny.yaml").out


def test_relative_sources_are_in_the_folder_of_the_data(source: Path, finished: Path, tmp_path: Path) -> None:
    manifest = write_manifest(tmp_path / "own.yaml")
    missing = command("build", manifest, "--out", tmp_path / "out")
    assert (missing.code, "no such file or folder" in missing.err) == (2, True)
    assert command("build", manifest, "--data", source, "--out", tmp_path / "out").code == 0
    assert hashes(tmp_path / "out") == hashes(finished)
    built = mm.build(manifest, tmp_path / "other", data=source, overrides={"lengths": "1K"})
    assert built.lock.manifest[0]["lengths"] == [1024]
    assert command("plan", manifest, "--data", tmp_path / "nowhere").code == 2


def test_a_manifest_includes_others(source: Path, finished: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(source, tmp_path / "source")
    (folder / "all.yaml").write_text("include: [tiny.yaml]\n")
    (folder / "more.yaml").write_text(
        "include: [all.yaml]\ndefaults: {source: {data: none}, lengths: [1K]}\n"
        "datasets: [{name: food101, builder: many_shot, reader: image_tables}]\n"
    )
    assert command("build", folder / "all.yaml", "--out", tmp_path / "out").code == 0
    assert hashes(tmp_path / "out") == hashes(finished)
    planned = mm.plan(folder / "more.yaml", overrides={"mmlongdoc.seed": 7})
    assert [dataset.name for dataset in planned.datasets] == ["mmlongdoc", "food101"]
    (folder / "shipped.yaml").write_text("include: [gov, slidevqa]\n")
    (tmp_path / "data").mkdir()
    said = command("plan", folder / "shipped.yaml", "--data", tmp_path / "data").out
    assert [f"{name}: cannot be built: " in said for name in ("gov", "slidevqa")] == [True, True], said
    assert str(tmp_path / "data") in said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("include: [a.yaml]", "include: no such file beside it, and no installed manifest: a.yaml"),
        (
            "include: [all.yml]",
            "include: no such file beside it, and no installed manifest: all.yml; did you mean 'all.yaml'?",
        ),
        ("include: [all.yaml]", "includes itself; take it out of 'include'"),
        ("include: tiny.yaml", "include: expected a list of files, such as [mmlongdoc.yaml]"),
        ("include: ['https://user:SECRET@host/x.yaml']", "found a URL (https://…)"),
        ("inclde: [tiny.yaml]", "unknown key 'inclde'"),
        ("include: [tiny.yaml, tiny.yaml]", "two datasets are called 'mmlongdoc'"),
        ("include: []", "expected 'datasets' to be a list of mappings"),
    ],
)
def test_an_include_that_cannot_be_is_named(text: str, said: str, source: Path, tmp_path: Path) -> None:
    folder = tmp_path / "manifests"
    folder.mkdir()
    shutil.copy(source / "tiny.yaml", folder)
    (folder / "all.yaml").write_text(text)
    ran = command("plan", folder / "all.yaml")
    refused(ran, said)
    assert "SECRET" not in ran.err
