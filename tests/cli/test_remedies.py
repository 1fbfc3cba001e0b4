"""Messages that name what exists and what to do: sources, keys, files of other origin, folders, models."""

import json
import shutil
from pathlib import Path

import pytest
from tiny import command

from tokenization import vision_rules


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("datasets: []\nlengths: [8K]", "unknown key 'lengths': it is a key of a dataset; write it into an entry of"),
        (
            "datasets: []\nname: a",
            "unknown key 'name': it is a key of a dataset; write it into an entry of 'datasets'\n",
        ),
        ("name: a\nbuilder: docvqa", "unknown key 'name': it is a key of a dataset; write 'datasets:' and, indented"),
        ("dataset: []", "unknown key 'dataset'; did you mean 'datasets'?\n"),
    ],
)
def test_a_key_beside_datasets_is_answered_with_its_place(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(text)
    ran = command("build", path, "--out", tmp_path / "out")
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert said in ran.err


@pytest.mark.parametrize(
    ("manifest", "setting", "said"),
    [
        (
            "mmlongdoc",
            "report.seed=7",
            "unknown key 'report'; the manifest has the datasets mmlongdoc, and a dataset the",
        ),
        ("mmlongdoc", "sead=7", "unknown key 'sead'; did you mean 'seed'?; the manifest has the datasets mmlongdoc"),
        (
            "quickstart",
            "slidevq.seed=7",
            "unknown key 'slidevq'; did you mean 'slidevqa'?; the manifest has the datasets",
        ),
        ("quickstart", "slidevqa=7", "unknown key 'slidevqa': it is a dataset; add a key of it, as in slidevqa.seed"),
        ("quickstart", "seed=7", "must begin with the name of a dataset, one of mmlongdoc, text_mmlongdoc"),
    ],
)
def test_a_setting_of_nothing_is_answered_with_datasets_and_keys(
    manifest: str, setting: str, said: str, tmp_path: Path
) -> None:
    ran = command("build", manifest, "--out", tmp_path / "out", "--set", setting)
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert said in ran.err


@pytest.fixture
def download(finished: Path, tmp_path: Path) -> Path:
    """A release without its lock and with a name of one's own."""
    folder = tmp_path / "download"
    (folder / "mmlb_data").mkdir(parents=True)
    (folder / "mmlb_image").symlink_to(finished / "mmlb_image")
    shutil.copy(next((finished / "mmlb_data").rglob("*_K1.jsonl")), folder / "mmlb_data/reports_K1.jsonl")
    return folder


def test_a_folder_without_a_lock_is_audited_as_public_files_and_says_so(download: Path) -> None:
    (download / "mmlb_data/documentQA").mkdir()
    shutil.move(download / "mmlb_data/reports_K1.jsonl", download / "mmlb_data/documentQA/mmlongdoc_K1.jsonl")
    ran = command("audit", download)
    said = f"{download}: no build.lock.json: its mmlb_data/ is audited as public files of other origin\n"
    assert (ran.code, ran.err) == (0, said)
    assert command("audit", download, "-q").err == ""


def test_a_builder_reads_files_with_names_of_ones_own(download: Path, finished: Path) -> None:
    without = command("audit", download)
    assert without.code == 2
    assert "name their builder with --builder" in without.err
    ran = command("audit", download, "--builder", "docvqa", "--json")
    (line,) = map(json.loads, ran.out.splitlines())
    (whole, *_) = map(json.loads, command("audit", finished, "--json").out.splitlines())
    assert ran.code == 0
    assert (line["file"], line["examples"]) == ("mmlb_data/reports_K1.jsonl", whole["examples"])
    assert line["image"] == whole["image"]


@pytest.mark.parametrize(
    ("name", "words", "said"),
    [
        ("reports.jsonl", ("--builder", "docvqa"), "--builder needs a name with a length, such as reports_K8.jsonl"),
        ("a_K1.jsonl", ("--builder", "docva"), "no builder 'docva' is installed"),
    ],
)
def test_what_a_builder_cannot_read_is_refused(name: str, words: tuple[str, ...], said: str, download: Path) -> None:
    file = download / "mmlb_data" / name
    shutil.move(download / "mmlb_data/reports_K1.jsonl", file)
    ran = command("audit", file, *words)
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert said in ran.err


def test_a_release_with_a_lock_takes_no_builder(finished: Path) -> None:
    ran = command("audit", finished, "--builder", "docvqa")
    assert (ran.code, "the lock of" in ran.err) == (2, True)


def test_every_builder_can_be_named(download: Path) -> None:
    builders = [each["name"] for each in json.loads(command("list", "--kind", "builder", "--json").out)["plugins"]]
    assert len(builders) >= 6
    for name in builders:
        assert command("audit", download, "--builder", name).code in (0, 1)


def test_an_unknown_model_is_answered_with_all_names(finished: Path) -> None:
    ran = command("audit", finished, "--count-as", "qwen25-vl")
    assert (ran.code, ran.err.count("\n")) == (2, 1)
    assert "no model 'qwen25-vl' is known; did you mean 'qwen2.5-vl'" in ran.err
    assert "vision_rules()" not in ran.err
    assert all(name in ran.err for name, rule in vision_rules().items() if not rule.variant_of)


def test_the_table_of_all_models_fits_eighty_columns(finished: Path) -> None:
    ran = command("audit", finished, "--count-as", "all")
    lines = ran.out.splitlines()
    table = lines[next(n for n, line in enumerate(lines) if line.startswith("tokens on models")) :]
    rows = [line for line in table if line.startswith(("file ", "documentQA/"))]
    assert max(map(len, rows)) <= 80
    heads = [name for line in rows if line.startswith("file ") for name in line.split()[1:]]
    assert heads == [name for name, rule in vision_rules().items() if not rule.variant_of]


def test_a_folder_is_counted_as_one_thing(finished: Path, tmp_path: Path) -> None:
    folder = tmp_path / "things"
    folder.mkdir()
    for number, picture in enumerate(sorted((finished / "mmlb_image").rglob("*.jpg"))[:3]):
        shutil.copy(picture, folder / f"{number}.jpg")
    (folder / "notes.txt").write_text("Which bell rings at the mill?")
    (folder / "blob").write_bytes(b"\xff\xfe\x00")
    (folder / ".hidden").write_text("not counted")
    ran = command("count", folder, "--count-as", "gemma3", "--json")
    (row,) = map(json.loads, ran.out.splitlines())
    assert row["what"] == "3 images, 1 text, 1 other file, not counted"
    assert row["tokens"] == {"mmlongbench": 3 * 196 + 7, "gemma3": 3 * 260 + 7}


def test_a_folder_with_nothing_to_count_is_refused(tmp_path: Path) -> None:
    assert "nothing-to-count: expected pictures, PDFs or texts" in command("count", tmp_path).err
    (tmp_path / "a.jpg").write_bytes(b"\xff\xd8 broken")
    assert "broken-image" in command("count", tmp_path).err


def test_a_path_that_does_not_exist_is_named_and_the_others_are_counted(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("Which bell rings at the mill?")
    ran = command("count", tmp_path / "b.txt", tmp_path / "a.txt", "--json")
    assert (ran.code, len(ran.out.splitlines())) == (1, 1)
    assert f"{tmp_path / 'b.txt'}: no such file or folder" in ran.err
    assert command("count", tmp_path / "b.txt").code == 2


def test_too_many_files_and_too_much_text_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in "abc":
        (tmp_path / f"{name}.txt").write_text("bell")
    monkeypatch.setattr("mmlongbench.cli.count.MAX_TEXT", 8)
    refused = command("count", tmp_path)
    assert refused.code == 2
    assert "too-much-to-count: expected at most 256 MiB of text, found more; count its parts" in refused.err
    monkeypatch.setattr("mmlongbench.cli.count.MAX_TEXT", 3)
    refused = command("count", tmp_path / "a.txt")
    assert "a.txt: too-much-to-count: expected at most 256 MiB of text, found 4 bytes" in refused.err
    (tmp_path / "b.txt").write_bytes(b"\xff\xfe\x00 no text")
    monkeypatch.setattr("mmlongbench.cli.count.MAX_FILES", 2)
    assert "expected a folder of at most 2 files, found 3; count its parts" in command("count", tmp_path).err


def test_predictions_in_another_folder_are_answered_with_the_file(finished: Path, tmp_path: Path) -> None:
    line = {"file": "mmlongdoc_K1.jsonl", "id": "mmlongdoc_0", "prediction": "hard"}
    (tmp_path / "said.jsonl").write_text(json.dumps(line) + "\n")
    ran = command("score", finished, tmp_path / "said.jsonl", "--out", tmp_path / "scores")
    assert "mmlongdoc_K1.jsonl; did you mean 'documentQA/mmlongdoc_K1.jsonl'?" in ran.out + ran.err


def test_a_repeated_id_names_the_first_line(source: Path, tmp_path: Path) -> None:
    table = (
        "id,doc,question,answer,pages\na,ash,Which wood?,hard,1\nb,birch,Which bark?,white,2\na,cedar,Which?,red,1\n"
    )
    (tmp_path / "questions.csv").write_text(table)
    (tmp_path / "own.yaml").write_text(
        "datasets:\n  - {name: own, builder: docvqa, reader: own_documents, lengths: [1K], admission_length: 1K,\n"
        f"     source: {{questions: questions.csv, documents: {source / 'documents'}}}}}\n"
    )
    assert command("build", tmp_path / "own.yaml", "--out", tmp_path / "out", "-q").code == 0
    (reject,) = map(json.loads, (tmp_path / "out/rejects.jsonl").read_text("utf-8").splitlines())
    assert (reject["reason"], reject["found"]) == ("duplicate-id", "first on line 2")
    assert reject["todo"] == "remove one of the two rows, or give it another id"
