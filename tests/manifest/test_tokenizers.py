"""Tokenizers of one's own: what a release says of them, and what an audit needs."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from once import linked
from one_dataset import write_lines
from tiny import build, command, hashes, lock, records, rejects, write_manifest

from tokenization import load_tokenizer, vision_rule

TEXT = (
    "\n\nDocument ash: \n\nDocument birch: \n\nDocument cedar: \n\nQuestion: Based on Document dogwood, "
    "answer the following"
)
REFUSING = """{% for m in messages %}{% for p in m.content %}{% if p.type == 'image' %}<image>{% else %}{{ p.text }}\
{% if 'bark' in p.text %}{{ raise_exception('no bark') }}{% endif %}{% endif %}{% endfor %}{% endfor %}"""


def train(path: Path, size: int) -> Path:
    """Write a byte-level BPE whose tokens span newlines and more."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=size, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False
    )
    tokenizer.train_from_iterator([TEXT] * 20, trainer)
    tokenizer.save(str(path))
    return path


@pytest.fixture(scope="module")
def merging(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny source with a tokenizer of its own, which merges newlines."""
    folder = tmp_path_factory.mktemp("merging") / "source"
    shutil.copytree(source, folder)
    train(folder / "mine.json", 330)
    write_manifest(folder / "tiny.yaml", counter={"tokenizer": "mine.json"})
    return folder


@pytest.fixture(scope="module")
def release(merging: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("merging") / "out"
    built = build(merging, out)
    assert built.code == 0, built.err
    return out


def test_a_tokenizer_that_merges_newlines_is_not_additive(merging: Path) -> None:
    text = load_tokenizer(str(merging / "mine.json"))
    parts = ["Document ash: ", "", "Document birch: "]
    assert text.count("\n".join(parts)) != text.count(parts[0]) + sum(1 + text.price(part) for part in parts[1:])


def test_a_release_counted_with_it_is_never_over_its_length(release: Path, merging: Path) -> None:
    for length in ("1K", "2K"):
        for record in records(release, length):
            assert record["length"] + record["tokens"]["reserve"] <= int(length[0]) * 1024
    audited = command("audit", release, "--tokenizer", merging / "mine.json", "--json")
    assert audited.code == 0, audited.out
    assert '"problems": []' in audited.out
    named = lock(release)["manifest"][0]["counter"]["tokenizer"]  # without its folder
    assert (named["name"], len(named["sha256"])) == ("mine.json", 64)


def test_an_audit_without_the_tokenizer_or_with_another_explains(
    release: Path, merging: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    release = linked(release, tmp_path / "without")
    shutil.rmtree(release / "tokenizers")
    without = command("audit", release)
    assert (without.code, without.err.count("\n")) == (2, 1)
    assert "the file of 'mine.json', is missing: put it back" in without.err
    assert "`audit --tokenizer`" in without.err
    other = command("audit", release, "--tokenizer", train(tmp_path / "other.json", 300))
    assert other.code == 2
    assert "the release was counted with 'mine.json', " in other.err
    shutil.copy(merging / "mine.json", tmp_path / "mine.json")  # what a name of the lock means here is not loaded
    assert "is missing" in command("audit", release).err
    assert "is not a tokenizer.json" in command("audit", release, "--tokenizer", __file__).err


def test_a_release_keeps_its_tokenizer_so_that_every_command_counts_anywhere(
    release: Path, finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    sha256 = lock(release)["manifest"][0]["counter"]["tokenizer"]["sha256"]
    assert [path.name for path in (release / "tokenizers").iterdir()] == [f"{sha256}.json"]
    assert f"tokenizers/{sha256}.json" in lock(release)["files"]
    assert not (finished / "tokenizers").exists()
    moved = linked(release, tmp_path / "moved")
    answers = [
        {"file": f"documentQA/mmlongdoc_K{length}.jsonl", "id": each["id"], "prediction": "x"}
        for length in (1, 2)
        for each in records(moved, f"{length}K")
    ]
    write_lines(tmp_path / "p.jsonl", answers)
    for words in (
        ("audit", moved, "-q"),
        ("verify", moved),
        ("score", moved, "p.jsonl", "--out", "scores"),
        ("show", moved),
        ("shortcuts", moved),
        ("stats", moved),
    ):
        done = command(*words)
        assert (done.code, done.err) == (0, ""), words


def test_a_tokenizer_that_a_release_was_not_counted_with_is_refused(finished: Path, merging: Path) -> None:
    refused = command("audit", finished, "--tokenizer", merging / "mine.json")
    assert refused.code == 2
    assert f"no dataset of {finished} was counted with it" in refused.err
    assert command("audit", finished, "--tokenizer", "llama2", "-q").code == 0


def test_another_tokenizer_is_another_manifest(merging: Path, source: Path, release: Path) -> None:
    refused = build(source, release)
    assert refused.code == 2
    assert "counter.tokenizer" in refused.err


def test_a_path_of_a_tokenizer_is_relative_to_the_manifest_or_to_where_it_is_typed(
    merging: Path, source: Path, release: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(merging / "mine.json", tmp_path / "mine.json")
    monkeypatch.chdir(tmp_path)
    assert build(source, tmp_path / "out", "--set", "counter.tokenizer=mine.json").code == 0
    made, expected = hashes(tmp_path / "out"), hashes(release)
    assert made == expected
    assert command("audit", tmp_path / "out", "-q").code == 0  # it is found by its name, and is the right one


def test_a_release_of_two_tokenizers_is_audited_with_both(merging: Path, tmp_path: Path) -> None:
    both = tmp_path / "source"
    shutil.copytree(merging, both)
    (mine,) = yaml.safe_load((both / "tiny.yaml").read_text())["datasets"]
    embedded = {**mine, "name": "embedded", "counter": {}}
    (both / "tiny.yaml").write_text(yaml.safe_dump({"datasets": [embedded, mine]}))
    assert build(both, tmp_path / "out").code == 0
    assert len(rejects(tmp_path / "out")) == 10
    audited = command("audit", tmp_path / "out", "--tokenizer", both / "mine.json", "-q")
    assert (audited.code, audited.err) == (0, "")


def test_a_tokenizer_that_is_not_found_is_one_line(source: Path, tmp_path: Path) -> None:
    for name, said in {
        "lama2": "counter.text: no tokenizer 'lama2': did you mean 'llama2'?",
        "absent/tokenizer.json": "there is no such file; give the path of a tokenizer.json",
        "''": "counter.text: no tokenizer ''",
        ".": "is a folder: give the path of the tokenizer.json in it",
    }.items():
        refused = build(source, tmp_path / "out", "--set", f"counter.tokenizer={name}")
        assert (refused.code, refused.err.count("\n")) == (2, 1)
        assert said in refused.err


def test_records_state_their_tokens_by_further_counters_and_an_audit_counts_them_again(
    source: Path, tmp_path: Path
) -> None:
    folder = linked(source, tmp_path / "source")
    train(folder / "mine.json", 330)
    counters = [{"image": "qwen2.5-vl", "text": "mine.json"}, {"image": "gemma3", "text": "llama2"}]
    write_manifest(folder / "tiny.yaml", count_as=counters)
    assert build(folder, tmp_path / "out").code == 0
    named = lock(tmp_path / "out")["manifest"][0]["count_as"]
    assert list(named) == ["qwen2.5-vl", "gemma3"]
    assert (tmp_path / "out" / "tokenizers" / f"{named['qwen2.5-vl']['tokenizer']['sha256']}.json").is_file()
    for record in records(tmp_path / "out", "1K"):
        stated = record["tokens"]["as"]
        assert stated["gemma3"]["image"] == len(record["page_list"]) * vision_rule("gemma3").tokens(800, 600)
        assert stated["qwen2.5-vl"]["text"] != stated["gemma3"]["text"]
    (folder / "mine.json").unlink()
    assert command("audit", tmp_path / "out", "-q").code == 0
    path = next((tmp_path / "out" / "mmlb_data").rglob("*K1.jsonl"))
    first, *others = path.read_text().splitlines(keepends=True)
    changed = json.loads(first)
    changed["tokens"]["as"]["gemma3"]["text"] += 1
    path.write_text("".join([json.dumps(changed) + "\n", *others]))
    assert "tokens.as differs from the recount: 1×" in command("audit", tmp_path / "out", "-q").err


def test_two_further_counters_of_one_name_are_refused(source: Path, tmp_path: Path) -> None:
    folder = linked(source, tmp_path / "source")
    patches = {"image": "mmlongbench", "text": "llama2"}, {"text": "llama2"}
    spellings = [{"image": name, "text": "llama2"} for name in ("qwen2.5-vl", "Qwen2.5_VL")]
    for name, counters in {"qwen2.5-vl": spellings, "patches": [*patches]}.items():
        write_manifest(folder / "tiny.yaml", count_as=counters)
        refused = build(folder, tmp_path / "out")
        assert (refused.code, f"two counters are called {name!r}" in refused.err) == (2, True)
        write_manifest(folder / "tiny.yaml", count_as=counters[-1:])
        assert build(folder, tmp_path / name).code == 0
        assert {*records(tmp_path / name, "1K")[0]["tokens"]["as"]} == {name}
        assert command("audit", tmp_path / name, "-q").code == 0


def test_only_a_refused_image_has_no_further_count(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = linked(source, tmp_path / "source")
    further = {"image": "gemma3", "text": "llama2", "template": "refusing.jinja"}
    (folder / "refusing.jinja").write_text(REFUSING)
    write_manifest(folder / "tiny.yaml", count_as=[further])
    assert build(folder, tmp_path / "first").code == 0
    found = {each["reason"]: each["found"] for each in rejects(tmp_path / "first")}
    assert found["not-countable"] == "chat template: it refuses the conversation: no bark"

    def refuse(width: int, height: int, **_: object) -> int:
        raise ValueError("too small")

    rule = replace(vision_rule("gemma3"), formula=refuse)
    monkeypatch.setattr("mmlongbench.manifest.model.vision_rule", lambda name: rule)
    write_manifest(folder / "tiny.yaml", count_as=[{"image": "gemma3", "text": "llama2"}])
    assert build(folder, tmp_path / "out").code == 0
    assert records(tmp_path / "out", "1K")[0]["tokens"]["as"] == {"gemma3": None}


def test_public_files_of_other_origin_are_not_compared_with_further_counters(source: Path, tmp_path: Path) -> None:
    folder = linked(source, tmp_path / "source")
    write_manifest(folder / "tiny.yaml", count_as=[{"image": "gemma3", "text": "llama2"}])
    assert build(folder, tmp_path / "out").code == 0
    public, images = next((tmp_path / "out/mmlb_data").rglob("*K1.jsonl")), tmp_path / "out/mmlb_image"
    shutil.copy(public, tmp_path)
    ran = command("audit", tmp_path / public.name, "--images", images, "--builder", "docvqa", "-q")
    assert (ran.code, ran.err) == (0, "")
