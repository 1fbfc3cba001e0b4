"""Mixes of a built release: receipts, the same bytes, names of tasks, and a manifest that has a mix."""

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from once import linked, once
from samples import Sources, from_samples
from tiny import command

import mmlongbench as mm

NAMES = ("mmlongdoc", "text_mmlongdoc", "vh_single")
MIX: dict[str, Any] = {
    "tokens": 400_000,
    "tokens_by_task": {"documentQA": 0.7, "vh_single": 0.3},
    "tokens_by_length": {"8K": 0.5, "16K": 0.5},
}


@pytest.fixture(scope="session")
def built(sample: Callable[[str], Sources], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Questions with pages as images, the same ones with pages as texts, and haystacks at six depths."""

    def make(folder: Path) -> None:
        docs = {"builder": "docvqa", "reader": "mmlongbench_doc"}
        photos = {"builder": "visual_haystack", "reader": "visual_haystacks", "options": {"needles": "single"}}
        texts = {"pages_as": "text", "text_fill": "budget", "max_answer_words": 5}
        datasets = [
            {"name": "mmlongdoc", **docs, "options": {"max_answer_words": 5}},
            {"name": "text_mmlongdoc", **docs, "drawn_as": "mmlongdoc", "options": texts},
            {"name": "vh_single", **photos},
        ]
        defaults = {"lengths": ["8K", "16K"], "licence": "CC0-1.0"}
        manifest = from_samples({"defaults": defaults, "datasets": datasets}, sample)
        (folder / "m.yaml").write_text(yaml.safe_dump(manifest, sort_keys=False), "utf-8")
        ran = command("build", folder / "m.yaml", "--out", folder / "release", "-q")
        assert ran.code == 0, ran.err

    return once(tmp_path_factory, "mixable", make) / "release"


def written(folder: Path, **changes: Any) -> Path:
    path = folder / "mix.yaml"
    path.write_text(json.dumps({"mix": {**MIX, **changes}}), "utf-8")
    return path


def made(release: Path, out: Path, mix: Path, form: str = "sharegpt") -> mm.MixReceipt:
    return mm.export_mix(release, mix, "training", out, form=form).receipt


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def test_the_receipt_says_what_the_files_hold(built: Path, tmp_path: Path) -> None:
    receipt = made(built, tmp_path / "out", written(tmp_path))
    index = [json.loads(line) for line in (tmp_path / "out/examples.jsonl").read_text("utf-8").splitlines()]
    assert receipt.tokens == sum(each["tokens"] for each in index)
    assert abs(receipt.tokens / MIX["tokens"] - 1) <= 0.01
    assert receipt.examples == len(index) == sum(cell.examples for cell in receipt.cells)
    assert {(each.kind, each.name): each.asked for each in receipt.shares} == {
        ("task", "documentQA"): 0.7,
        ("task", "vh_single"): 0.3,
        ("length", "8K"): 0.5,
        ("length", "16K"): 0.5,
    }
    for each in receipt.shares:
        folder = "NIAH/" if each.name == "vh_single" else f"{each.name}/"
        found = [line for line in index if line["file"].startswith(folder) or f"_K{each.name[:-1]}" in line["file"]]
        assert (each.examples, each.tokens) == (len(found), sum(line["tokens"] for line in found))
        assert each.reached == pytest.approx(each.tokens / receipt.tokens, abs=1e-6)
        assert abs(each.reached - each.asked) <= 0.01
    for name, file in receipt.files.items():
        data = (tmp_path / "out" / name).read_bytes()
        assert (file.bytes, file.sha256) == (len(data), hashlib.sha256(data).hexdigest())
    assert {*receipt.files, "mix.json"} == {*files(tmp_path / "out")}
    assert mm.MixReceipt.model_validate_json((tmp_path / "out/mix.json").read_text("utf-8")) == receipt
    assert str(tmp_path) not in (tmp_path / "out/mix.json").read_text("utf-8")


def test_a_question_of_two_datasets_is_there_once(built: Path, tmp_path: Path) -> None:
    made(built, tmp_path / "out", written(tmp_path))
    index = [json.loads(line) for line in (tmp_path / "out/examples.jsonl").read_text("utf-8").splitlines()]
    docs = [each["id"] for each in index if each["file"].startswith("documentQA/")]
    assert {each["dataset"] for each in index} == set(NAMES)
    assert len(set(docs)) == len(docs)


def test_the_same_mix_has_the_same_bytes_and_another_seed_others(built: Path, tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    linked(built, tmp_path / "b/moved")
    for path in (tmp_path / "b/moved/mmlb_data").rglob("*.jsonl"):  # the order of a file has no effect on the draws
        path.write_text("".join(reversed(path.read_text("utf-8").splitlines(keepends=True))), "utf-8")
    one, other = (
        made(built, tmp_path / "one", written(tmp_path)),
        made(tmp_path / "b/moved", tmp_path / "two", written(tmp_path)),
    )
    assert one == other
    assert files(tmp_path / "one") == files(tmp_path / "two")
    assert made(built, tmp_path / "three", written(tmp_path, seed=7)).digest != one.digest
    assert made(built, tmp_path / "four", written(tmp_path), "openai").digest == one.digest


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"tokens_by_task": {"documentqa": 1}}, "no such dataset or folder; there are documentQA, NIAH, mmlongdoc"),
        ({"tokens_by_task": {"documentQA": 0.5, "mmlongdoc": 0.5}}, "belongs to 'documentQA' and to 'mmlongdoc'"),
        (
            {"tokens_by_length": {"8K": 0.5, "32K": 0.5}},
            "no dataset of the mix has examples of 32K; release has 8K",
        ),
        ({"tokens": "8M"}, "task vh_single has at most 193,"),
        ({"disjoint_from": ["nowhere"]}, "nowhere"),
    ],
)
def test_a_mix_that_cannot_be_made_is_named_and_nothing_is_written(
    changes: dict[str, Any], said: str, built: Path, tmp_path: Path
) -> None:
    done = command(
        "export", built, "--to", "training", "--mix", written(tmp_path, **changes), "--out", tmp_path / "out"
    )
    assert done.code != 0
    assert said in done.err
    assert [path.name for path in tmp_path.iterdir()] == ["mix.yaml"]


def test_no_placement_of_an_overlapping_question_is_taken(built: Path, tmp_path: Path) -> None:
    """A question that is dropped at its drawn placement is not taken at another one, which is shared too."""
    mix = written(tmp_path, tokens=40_000, tokens_by_task={"vh_single": 1}, disjoint_from=[str(built)])
    examples = sum(len(path.read_text("utf-8").splitlines()) for path in built.glob("mmlb_data/NIAH/vh_single*_K*"))
    with pytest.raises(mm.ReleaseError, match=rf"no example can be taken.*; {examples:,} examples were left out"):
        mm.export_mix(built, mix, "training", tmp_path / "out", drop_overlap=True)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("blank", ["", " ", [""], []])
def test_an_example_with_a_blank_answer_is_not_taken_and_counted(blank: object, built: Path, tmp_path: Path) -> None:
    linked(built, tmp_path / "release")
    (path,) = (tmp_path / "release").glob("mmlb_data/documentQA/mmlongdoc_K8.jsonl")
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    half = {line["id"] for line in lines[::2]}
    changed = ({**line, "answer": blank} if line["id"] in half else line for line in lines)
    path.write_text("".join(f"{json.dumps(line)}\n" for line in changed), "utf-8")
    tokens = sum(sum(line["tokens"][kind] for kind in ("text", "image")) for line in lines if line["id"] not in half)
    mix = written(tmp_path, tokens=tokens, tokens_by_task={"mmlongdoc": 1}, tokens_by_length={"8K": 1})
    receipt = made(tmp_path / "release", tmp_path / "out", mix)
    index = [json.loads(line) for line in (tmp_path / "out/examples.jsonl").read_text("utf-8").splitlines()]
    assert (receipt.examples, receipt.tokens) == (len(index), sum(each["tokens"] for each in index))
    assert receipt.unanswered == len(half)
    assert not half & {each["id"] for each in index}


def test_a_target_that_leaves_out_examples_of_a_mix_is_refused(
    built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    left_out = mm.Exported(1, ("mmlongdoc_0: too large",))
    monkeypatch.setattr("mmlongbench.exports.training.Training.write", lambda *_: left_out)
    with pytest.raises(mm.ReleaseError, match=r"1 of \d+ examples were written, .*: mmlongdoc_0: too large"):
        made(built, tmp_path / "out", written(tmp_path))
    assert not (tmp_path / "out").exists()


def test_a_folder_that_is_not_empty_is_refused(built: Path, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/own.txt").write_text("mine")
    done = command("export", built, "--to", "training", "--mix", written(tmp_path), "--out", tmp_path / "out")
    assert "the folder is not empty" in done.err
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["own.txt"]


def test_options_that_choose_examples_are_refused_beside_a_mix(built: Path, tmp_path: Path) -> None:
    mix, out = written(tmp_path), tmp_path / "out"
    done = command("export", built, "--to", "training", "--mix", mix, "--out", out, "--length", "8K", "--limit", 2)
    assert "--length, --limit cannot be given with --mix" in done.err
    done = command("export", built, "--to", "training", "--out", out, "--drop-overlap")
    assert "--drop-overlap needs --mix" in done.err


def test_a_manifest_may_have_the_mix(built: Path, tmp_path: Path) -> None:
    manifest = yaml.safe_load((built.parent / "m.yaml").read_text("utf-8"))
    path = tmp_path / "manifest.yaml"
    path.write_text(yaml.safe_dump({**manifest, "mix": MIX}), "utf-8")
    assert made(built, tmp_path / "out", path).tokens == made(built, tmp_path / "two", written(tmp_path)).tokens
    assert command("build", path, "--out", linked(built, tmp_path / "release"), "-q").code == 0  # nothing is new
    path.write_text(yaml.safe_dump({**manifest, "mix": {"token": 5}}), "utf-8")
    ran = command("build", path, "--out", tmp_path / "release", "-q")
    assert (ran.code, "mix: the key 'tokens' is missing" in ran.err) == (2, True)


def test_the_schema_of_manifests_accepts_a_mix() -> None:
    import jsonschema

    schema = json.loads(command("schema", "manifest").out)
    whole = {"include": ["vh_single.yaml"], "mix": {**MIX, "disjoint_from": ["evaluation"]}}
    jsonschema.validate(whole, schema)
    jsonschema.validate({**whole, "mix": {"tokens": "2M"}}, schema)
    for wrong in (
        {"tokens": 0},
        {"tokens": "2M", "once": "never"},
        {"tokens_by_task": {"a": 1}},
        {"tokens": 5, "x": 1},
    ):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({**whole, "mix": wrong}, schema)
