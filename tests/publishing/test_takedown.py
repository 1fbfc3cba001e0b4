"""Takedown: nothing of an asset remains, and everything else keeps its bytes."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from taken_down import drawn_withdrawals, remains
from tiny import command, hashes, lock, records, rejects

from mmlongbench.io.progress import Progress
from mmlongbench.publishing import takedown
from mmlongbench.publishing.dropping import TAKEN_OUT, without_quotes
from mmlongbench.publishing.takedown import REASON, take_down
from mmlongbench.publishing.tombstones import read_tombstones
from mmlongbench.publishing.withdrawn import Withdrawal, Withdrawn
from mmlongbench.release.assets import ASSETS, read_assets, write_assets
from mmlongbench.release.layout import TOMBSTONES
from mmlongbench.task.formats import to_json

pytestmark = pytest.mark.slow
DAY = "2026-11-25"
MANIFEST = """
defaults: {source: sample, lengths: [8K], licence: CC0-1.0, sample: {n: 4}}
datasets:
  - {name: mmlongdoc, builder: docvqa, reader: mmlongbench_doc, options: {max_answer_words: 5}}
  - name: text_mmlongdoc
    builder: docvqa
    reader: mmlongbench_doc
    drawn_as: mmlongdoc
    options: {pages_as: text, text_fill: budget, max_answer_words: 5}
  - {name: retrieval-text, builder: mm_niah, reader: mm_niah, options: {task: retrieval, needle: text}}
  - {name: food101, builder: many_shot, reader: image_tables, sample: {n: 4, stratify: kind}}
"""


@pytest.fixture(scope="module", name="release")
def _release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("takedown")
    (folder / "m.yaml").write_text(MANIFEST, "utf-8")
    ran = command("build", folder / "m.yaml", "--out", folder / "release", "-q")
    assert ran.code == 0, ran.err
    return folder / "release"


def test_nothing_of_drawn_assets_remains(release: Path, tmp_path: Path) -> None:
    for number, asked in enumerate(drawn_withdrawals(release, {"document": 2, "image": 2, "source": 1})):
        out = tmp_path / str(number)
        made = take_down(release, asked, out, DAY, Progress(False))
        found = remains(release, asked, made)
        assert not any((found.by_bytes, found.by_hash, found.by_text, found.by_name, found.changed)), (asked, found)
        assert command("audit", out, "-q").err == "", asked
        assert command("verify", out).code == 0


def test_the_command_says_what_went(release: Path, tmp_path: Path) -> None:
    document = next(asset.document for asset in read_assets(release, "mmlongdoc") if asset.kind == "image")
    said = command("takedown", release, "--document", document, "--out", tmp_path / "new", "--date", DAY)
    assert said.code == 0, said.err
    assert f'for a rebuild, in the manifest: exclude: ["{document}"] (in mmlongdoc' in said.out
    (stone,) = read_tombstones(tmp_path / "new")
    assert (stone.date, stone.kind, stone.id) == (DAY, "document", document)
    assert "date" not in (tmp_path / "new/build.lock.json").read_text("utf-8").partition('"files"')[2]
    dropped = sum(stone.examples.values())
    added = [line for line in rejects(tmp_path / "new") if line["reason"] == "taken-down"]
    assert dropped >= len(added) > 0
    again = command("takedown", release, "--document", document, "--out", tmp_path / "other", "--date", "2027-01-01")
    assert again.code == 0
    assert lock(tmp_path / "other") == lock(tmp_path / "new")


def test_a_second_takedown_keeps_the_tombstone_of_the_first(release: Path, tmp_path: Path) -> None:
    first, second = drawn_withdrawals(release, {"image": 2})
    one = take_down(release, first, tmp_path / "one", DAY, Progress(False))
    take_down(one.out, second, tmp_path / "two", DAY, Progress(False))
    assert [stone.id for stone in read_tombstones(tmp_path / "two")] == [first.id, second.id]
    assert command("audit", tmp_path / "two", "-q").err == ""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--source", "document"), "did you mean 'documents'?"),
        ((), "give one of --document, --image and --source"),
        (("--image", "x", "--source", "y"), "give one of"),
    ],
)
def test_what_is_not_there_is_refused(words: tuple[str, ...], said: str, release: Path, tmp_path: Path) -> None:
    ran = command("takedown", release, *words, "--out", tmp_path / "new")
    assert ran.code == 2
    assert said in ran.err
    assert not (tmp_path / "new").exists()


def test_an_extension_does_not_put_back_what_was_taken_out(release: Path, tmp_path: Path) -> None:
    asked = Withdrawal("document", next(drawn_withdrawals(release, {"document": 1})).id)
    made = take_down(release, asked, tmp_path / "new", DAY, Progress(False))
    (tmp_path / "m.yaml").write_text(MANIFEST.replace("[8K]", "[8K, 16K]"), "utf-8")
    ran = command("build", tmp_path / "m.yaml", "--out", made.out, "-q")
    assert ran.code == 2
    assert TOMBSTONES in ran.err


def test_json_has_the_tombstone(release: Path, tmp_path: Path) -> None:
    image = next(drawn_withdrawals(release, {"image": 1})).id
    ran = command("takedown", release, "--image", image, "--out", tmp_path / "new", "--date", DAY, "--json")
    assert json.loads(ran.out)["tombstone"]["id"] == image


def test_a_source_of_questions_takes_out_every_example_of_its_dataset(release: Path, tmp_path: Path) -> None:
    asked = Withdrawal("source", "mmlongdoc/samples")
    assert not [
        asset for asset in read_assets(release, "mmlongdoc") if asset.kind != "source" and asset.source == "samples"
    ]
    made = take_down(release, asked, tmp_path / "new", DAY, Progress(False))
    assert not [path for path in lock(made.out)["files"] if "/mmlongdoc" in path]
    assert [path for path in lock(made.out)["files"] if "text_mmlongdoc" in path]
    found = remains(release, asked, made)
    assert not any((found.by_bytes, found.by_text, found.by_name, found.changed)), found
    assert command("audit", made.out, "-q").err == ""
    assert command("verify", made.out).code == 0


def test_a_source_takes_out_what_may_be_of_it(release: Path, tmp_path: Path) -> None:
    shutil.copytree(release, tmp_path / "old")
    assets = [replace(a, source="") if a.source and a.dataset == "mmlongdoc" else a for a in read_assets(release)]
    write_assets(tmp_path / "old" / ASSETS, assets)
    ran = command("takedown", tmp_path / "old", "--source", "mmlongdoc/documents", "--out", tmp_path / "new")
    assert ran.code == 0, ran.err
    unknown = sum(a.dataset == "mmlongdoc" and a.kind != "source" for a in assets)
    assert f"{unknown} images and texts went because it is not known which source they are of" in ran.out
    left = {a.name for a in read_assets(tmp_path / "new")}
    assert not {a.name for a in assets if a.dataset == "mmlongdoc" and a.kind == "image"} & left


def test_a_takedown_does_not_write_into_its_release(release: Path) -> None:
    before = hashes(release)
    document = next(drawn_withdrawals(release, {"document": 1})).id
    for inside in (release, release / "new", release / "mmlb_data/new"):
        ran = command("takedown", release, "--document", document, "--out", inside)
        assert ran.code == 2
        assert "the folder is not empty" in ran.err or "lies inside the release" in ran.err
    assert hashes(release) == before


def test_a_takedown_of_everything_is_refused(release: Path, tmp_path: Path) -> None:
    first = take_down(release, Withdrawal("source", "samples"), tmp_path / "1", DAY, Progress(False))
    second = take_down(first.out, Withdrawal("source", "food101/data"), tmp_path / "2", DAY, Progress(False))
    ran = command("takedown", second.out, "--source", "questions", "--out", tmp_path / "3")
    assert ran.code == 2
    assert "so nothing would be left" in ran.err
    assert not (tmp_path / "3").exists()


def test_a_takedown_appears_whole_or_not_at_all(release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, out = next(drawn_withdrawals(release, {"document": 1})), tmp_path / "new"

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(takedown, "_write_claims", stop)
        with pytest.raises(KeyboardInterrupt):
            take_down(release, asked, out, DAY, Progress(False))
    assert not out.exists()
    take_down(release, asked, out, DAY, Progress(False))
    assert command("verify", out).code == 0


def test_rejects_that_name_a_document_quote_nothing_once_it_is_taken_out(finished: Path, tmp_path: Path) -> None:
    made = take_down(finished, Withdrawal("document", "ash"), tmp_path / "new", DAY, Progress(False))
    before, after = rejects(finished), [line for line in rejects(made.out) if line["reason"] != REASON]
    naming = [line["id"] for line in before if "ash" in f"{line['expected']} {line['found']}"]
    assert naming == ["mmlongdoc_7"]
    nothing = {"expected": TAKEN_OUT, "found": TAKEN_OUT}
    assert after == [{**line, **nothing} if line["id"] in naming else line for line in before]


@pytest.mark.parametrize(
    ("gone", "is_of_it"),
    [
        (Withdrawn(folders={"ash"}), True),
        (Withdrawn(folders={"as", "sh"}), False),
        (Withdrawn(datasets={"d"}), True),
        (Withdrawn(datasets={"e"}), False),
    ],
)
def test_rejects_of_other_documents_and_datasets_stay_as_they_are(gone: Withdrawn, is_of_it: bool) -> None:
    said = {"dataset": "d", "id": "d_1", "expected": "pages from 1 to 2 of ash", "found": "page 9"}
    line = to_json(said)
    expected = to_json({**said, "expected": TAKEN_OUT, "found": TAKEN_OUT}) if is_of_it else line
    assert without_quotes(line, gone) == expected
    assert without_quotes(b"no JSON\n", gone) == b"no JSON\n"


def test_claims_of_examples_that_stay_are_kept(release: Path, tmp_path: Path) -> None:
    shutil.copytree(release, tmp_path / "old")
    ids = [record["id"] for record in records(release, "8K")]
    lines = [json.dumps({"id": id, "claims": ["It is so."]}) + "\n" for id in ids]
    for name in ("mmlongdoc", "text_mmlongdoc"):
        (tmp_path / f"old/mmlb_data/documentQA/{name}_claims.jsonl").write_text("".join(lines), "utf-8")
    take_down(tmp_path / "old", Withdrawal("source", "mmlongdoc/samples"), tmp_path / "new", DAY, Progress(False))
    data = tmp_path / "new/mmlb_data/documentQA"
    assert not (data / "mmlongdoc_claims.jsonl").exists()
    assert (data / "text_mmlongdoc_claims.jsonl").read_text("utf-8") == "".join(lines)


def test_the_tombstone_counts_the_second_file_of_a_task_too(release: Path, tmp_path: Path) -> None:
    image = next(asset.name for asset in read_assets(release, "food101") if asset.kind == "image")
    made = take_down(release, Withdrawal("image", image), tmp_path / "new", DAY, Progress(False))
    public = next(path for path in lock(release)["files"] if path.startswith("mmlb_data/ICL/food101_K8.json"))
    assert lock(made.out)["files"].get(public) != lock(release)["files"][public]
    assert made.tombstone.examples[public] > 0


def test_the_licences_of_a_dataset_that_is_gone_do_not_count(release: Path, tmp_path: Path) -> None:
    made = take_down(release, Withdrawal("source", "food101/data"), tmp_path / "new", DAY, Progress(False))
    assert "food101" not in {asset.dataset for asset in read_assets(made.out)}
    said = command("rights", made.out)
    assert said.code == 0
    assert "food101" not in said.out
    assert command("audit", made.out, "-q").err == ""


def test_only_documents_with_pages_have_a_line_for_the_manifest(release: Path, tmp_path: Path) -> None:
    article = next(asset.document for asset in read_assets(release, "retrieval-text") if asset.kind == "text")
    made = take_down(release, Withdrawal("document", article), tmp_path / "article", DAY, Progress(False))
    assert made.exclude == "take the article or web page out of the sources: `exclude` is for documents with pages"
    page = next(asset.document for asset in read_assets(release, "text_mmlongdoc") if asset.kind == "text")
    made = take_down(release, Withdrawal("document", page), tmp_path / "page", DAY, Progress(False))
    assert made.exclude == f'exclude: ["{page}"]'
    assert "text_mmlongdoc" in made.exclude_from
    assert "retrieval-text" not in made.exclude_from


def test_rejects_of_a_dataset_that_is_gone_quote_nothing(release: Path, tmp_path: Path) -> None:
    shutil.copytree(release, tmp_path / "old")
    common = {"length": None, "reason": "long-form-answer", "expected": "at most 5 words", "field": "answer"}
    made = [{"dataset": name, "id": "x", **common, "found": "as old as hills"} for name in ("mmlongdoc", "food101")]
    kept = (release / "rejects.jsonl").read_text("utf-8")
    lines = kept + "".join(json.dumps(line) + "\n" for line in made)
    (tmp_path / "old/rejects.jsonl").write_text(lines, "utf-8")
    take_down(tmp_path / "old", Withdrawal("source", "mmlongdoc/samples"), tmp_path / "new", DAY, Progress(False))
    found = {line["dataset"]: line["found"] for line in rejects(tmp_path / "new") if line["id"] == "x"}
    assert found == {"mmlongdoc": "taken out", "food101": "as old as hills"}
