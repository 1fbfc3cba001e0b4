"""Releases that are counted for a model: what their lock says, and that they hold all that counts them."""

import hashlib
import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pymupdf
import pytest
from once import linked
from one_dataset import write_lines
from own_model import TEMPLATE, write_own
from tiny import build, command, lock, records, rejects, relock, write_manifest

import mmlongbench as mm
from mmlongbench.prompt import Prompt
from tokenization import CrossModalCounter, load_template, load_tokenizer, vision_rule

COUNTER = {"image": "qwen2.5-vl", "text": "own/tokenizer.json", "template": "own"}


@pytest.fixture(scope="module")
def own(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny source with a manifest that counts for a model."""
    folder = tmp_path_factory.mktemp("own") / "source"
    shutil.copytree(source, folder)
    write_own(folder / "own")
    write_manifest(folder / "tiny.yaml", counter=COUNTER)
    return folder


@pytest.fixture(scope="module")
def moved(own: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The release, whose tokenizer and template are nowhere but in it."""
    folder = tmp_path_factory.mktemp("moved")
    copy = folder / "source"
    shutil.copytree(own, copy)
    built = build(copy, folder / "out")
    assert (built.code, built.err.count("Traceback")) == (0, 0), built.err
    shutil.rmtree(copy)
    return (folder / "out").rename(folder / "elsewhere")


def test_every_prompt_is_counted_as_the_model_counts_it(own: Path, moved: Path) -> None:
    text, template = load_tokenizer(str(own / "own/tokenizer.json")), load_template(str(own / "own"))
    counter = CrossModalCounter(text, vision_rule("qwen2.5-vl"), template)
    for length in ("1K", "2K"):
        for example in mm.open_release(moved).examples("mmlongdoc", length):
            assert example.tokens == counter.prompt(example.prompt.sized(lambda _: (400, 400)))
            assert example.tokens.image == 198 * len(example.prompt.images)
            assert example.tokens.total + example.reserve <= int(length[0]) * 1024
    assert counter.prompt(Prompt.of([""]).sized(dict[str, tuple[int, int]]().__getitem__)).text > 0  # the template's


def test_the_lock_has_the_whole_rule_and_the_release_its_files(moved: Path) -> None:
    counter = lock(moved)["manifest"][0]["counter"]
    assert counter["image"] == {
        "model": "qwen2.5-vl",
        "formula": "native_grid",
        "numbers": dict(vision_rule("qwen2.5-vl").parameters),
    }
    assert (counter["tokenizer"]["name"], counter["template"]["name"]) == ("tokenizer.json", "own")
    assert "exact" not in counter
    kept = {f"{counter['tokenizer']['sha256']}.json", f"{counter['template']['sha256']}.jinja"}
    assert {path.name for path in (moved / "tokenizers").iterdir()} == kept
    assert {f"tokenizers/{name}" for name in kept} <= lock(moved)["files"].keys()


@pytest.mark.parametrize(
    "words",
    [
        ("audit", "RELEASE"),
        ("verify", "RELEASE"),
        ("show", "RELEASE"),
        ("stats", "RELEASE"),
        ("shortcuts", "RELEASE"),
        ("rights", "RELEASE"),
        ("diff", "RELEASE", "RELEASE"),
        ("audit", "RELEASE", "--count-as", "qwen2.5-vl", "--items", "units.csv"),
        ("view", "RELEASE", "--static", "site", "-q"),
        ("score", "RELEASE", "p.jsonl", "--out", "scores"),
        ("export", "RELEASE", "--to", "openai", "--out", "lines"),
    ],
    ids=" ".join,
)
def test_every_command_works_where_the_files_of_the_counter_are_gone(
    words: Sequence[str], moved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    asked = [
        {"file": f"documentQA/mmlongdoc_K{length}.jsonl", "id": each["id"], "prediction": "x"}
        for length in (1, 2)
        for each in records(moved, f"{length}K")
    ]
    write_lines(tmp_path / "p.jsonl", asked)
    done = command(*(moved if word == "RELEASE" else word for word in words))
    assert done.code == 0, done.err
    assert "tokenizer.json" not in done.err


def test_what_is_made_of_it_is_counted_alike(moved: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    published = command("publish", moved, "--out", "public", "--allow-unknown-licence")
    assert published.code == 0, published.err
    assert "tokens are counted as qwen2.5-vl, texts by tokenizer.json" in Path("public/README.md").read_text()
    taken = command("takedown", moved, "--document", "ash", "--out", "without")
    assert taken.code == 0, taken.err
    for words in (("audit", "public", "-q"), ("verify", "public"), ("audit", "without", "-q"), ("verify", "without")):
        done = command(*words)
        assert (done.code, done.err) == (0, ""), words


def test_audit_show_and_card_say_for_which_model_it_was_counted(
    moved: Path, tmp_path: Path, finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = "counted as qwen2.5-vl, texts by tokenizer.json, with the chat template own"
    assert said in command("audit", moved).out
    assert said.partition(" ")[2] in command("show", moved).out
    lines = [json.loads(line) for line in command("audit", moved, "--json").out.splitlines()]
    assert {line["counted_as"] for line in lines} == {said.removeprefix("counted as ")}
    assert "counted_as" not in command("audit", finished, "--json").out


def test_counts_that_are_estimates_are_named_so(own: Path, tmp_path: Path) -> None:
    built = build(own, tmp_path / "out", "--set", "counter={image: claude-sonnet-4, text: llama2}")
    assert built.code == 0, built.err
    assert "tokens are estimates for claude: what claude counts is not known exactly" in built.out + built.err
    assert lock(tmp_path / "out")["manifest"][0]["counter"]["exact"] is False
    audited = command("audit", tmp_path / "out")
    assert audited.code == 0
    assert "these are estimates" in audited.out
    built = build(own, tmp_path / "texts", "--set", "counter={image: qwen2.5-vl, text: llama2}")
    said = "tokens are estimates for qwen2.5-vl: texts are counted by llama2, not by its own tokenizer"
    assert said in built.out + built.err


@pytest.mark.parametrize("target", ["vllm-batch", "training"])
def test_exports_say_by_what_tokens_are_counted(target: str, moved: Path, finished: Path, tmp_path: Path) -> None:
    for release, said in (
        (moved, "counted as qwen2.5-vl, texts by tokenizer.json, with the chat template own"),
        (finished, "counted as texts by llama2, images by their patches"),
    ):
        out = tmp_path / release.name
        ran = command("export", release, "--to", target, "--out", out)
        assert ran.code == 0, ran.err
        page = " ".join((out / "README.md").read_text("utf-8").split())
        assert said.removeprefix("counted as ") in page
        assert release == finished or "lama" not in page.lower()


def test_a_publication_has_no_file_that_a_release_only_links_to(moved: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    release = linked(moved, tmp_path / "release")
    (release / "takedowns.jsonl").symlink_to(tmp_path / "secret")
    (release / "tokenizers/x.json").symlink_to(tmp_path / "secret")
    publish = ("publish", release, "--allow-unknown-licence", "--out")
    assert command(*publish, tmp_path / "public").code == 0
    assert {path.name for path in (tmp_path / "public/tokenizers").iterdir()} == {
        path.name for path in (moved / "tokenizers").iterdir()
    }
    assert not (tmp_path / "public/takedowns.jsonl").exists()
    template = next((release / "tokenizers").glob("*.jinja"))
    template.rename(tmp_path / "same")
    template.symlink_to(tmp_path / "same")
    refused = command(*publish, tmp_path / "other")
    assert (refused.code, f"{template.name}: is a link out of the release" in refused.err) == (2, True)


def test_a_rule_that_this_version_does_not_know_is_named(moved: Path, tmp_path: Path) -> None:
    release = linked(moved, tmp_path / "release")
    relock(release, lambda found: found["manifest"][0]["counter"]["image"].update(formula="later"))
    refused = command("audit", release)
    assert (refused.code, refused.err.count("\n")) == (2, 1)
    assert "'qwen2.5-vl' cannot be made from what was recorded" in refused.err


NUMBERS = {"tile": 1, "max_tiles": 10**8, "per_tile": 1, "overview": 1}
ENDLESS = "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}"


@pytest.mark.parametrize(
    ("part", "values", "template", "said"),
    [
        ("tokenizer", {"name": "evil:x.json", "sha256": "0" * 64}, "", "the file of 'evil:x.json', is missing"),
        ("template", {"name": "/dev/zero", "sha256": "0" * 64}, "", "the file of '/dev/zero', is missing"),
        ("template", {"name": "x", "sha256": "../../x"}, "", "the file of 'x', is missing"),
        ("image", {"formula": "closest_aspect", "numbers": NUMBERS}, "", "a value is too large"),
        ("image", {"formula": "fixed", "numbers": {"tokens": 1}, "shared": "x"}, "", "of another type"),
        ("image", {"package": "x"}, "", "another one is installed"),
        ("template", {"name": "loop"}, ENDLESS, "'loop' takes too much time or memory"),
        ("template", {"name": "bomb"}, "{{ 'a' * 3000000000 }}", "'bomb' takes too much time or memory"),
        ("template", {"name": "long"}, "{{ 'ab ' * 3000000 }}", "'long' takes too much time or memory"),
    ],
)
def test_a_lock_of_others_runs_nothing_and_takes_bounded_time_and_memory(
    part: str, values: dict[str, object], template: str, said: str, moved: Path, tmp_path: Path
) -> None:
    release = linked(moved, tmp_path / "release")
    if template:
        values = {**values, "sha256": hashlib.sha256(template.encode()).hexdigest()}
        (release / "tokenizers" / f"{values['sha256']}.jinja").write_text(template)
    relock(release, lambda found: found["manifest"][0]["counter"][part].update(values))
    refused = command("audit", release)
    assert refused.code in (1, 2)
    assert said in refused.out + refused.err


def test_an_unknown_model_is_one_line_with_the_nearest(own: Path, tmp_path: Path) -> None:
    refused = build(own, tmp_path / "out", "--set", "counter=qwen2.6-vl")
    assert (refused.code, refused.err.count("\n")) == (2, 1)
    assert "counter.image: no vision rule 'qwen2.6-vl': did you mean " in refused.err
    unknown = build(own, tmp_path / "out", "--set", "counter=claude-sonnet-4")
    assert (unknown.code, unknown.err.count("\n")) == (2, 1)
    for part in (
        "texts of claude-sonnet-4;",
        "counter.text",
        "the path of a tokenizer.json",
        "a hub id",
        "tiktoken:o200k_base",
    ):
        assert part in unknown.err


def test_a_context_ends_where_the_model_takes_no_more_images(
    own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule = replace(vision_rule("qwen2.5-vl"), max_images=3)
    monkeypatch.setattr("mmlongbench.manifest.model.vision_rule", lambda name: rule)
    built = build(own, tmp_path / "out")
    assert built.code == 0, built.err
    assert "a prompt has at most 3 images" in built.err
    assert "a unit with more images than the counted model takes" in built.out
    examples = mm.open_release(tmp_path / "out").examples("mmlongdoc", "2K")
    assert max(len(example.prompt.images) for example in examples) == 3
    assert command("audit", tmp_path / "out", "-q").code == 0


def test_an_image_that_the_model_refuses_is_a_reject_or_left_out(own: Path, tmp_path: Path) -> None:
    folder = tmp_path / "source"
    shutil.copytree(own, folder)
    with pymupdf.open(folder / "documents/birch.pdf") as document:
        long = document.new_page(width=10, height=2500)  # 20 x 5000 pixels: more than 200 to 1
        long.insert_text((1, 20), "a")
        document.save(folder / "documents/other.pdf", no_new_id=True)
    (folder / "documents/other.pdf").replace(folder / "documents/birch.pdf")
    rows = json.loads((folder / "samples.json").read_text())
    asked = [{**row, "evidence_pages": "[4]"} if "bark" in row["question"] else row for row in rows]
    (folder / "samples.json").write_text(json.dumps(asked))
    built = build(folder, tmp_path / "out")
    assert built.code == 0, built.err
    refused = {each["id"]: each for each in rejects(tmp_path / "out") if each["reason"] == "refused-image"}
    assert [*refused] == ["mmlongdoc_1"]
    assert "rule 'qwen2.5-vl' refuses it" in refused["mmlongdoc_1"]["found"]
    assert "an image that the counted model refuses" in built.out
    assert command("audit", tmp_path / "out", "-q").code == 0


def test_a_model_is_counted_alike_by_the_release_and_by_an_audit(own: Path, moved: Path) -> None:
    said = ("--count-as", "qwen2.5-vl,gemma3", "--text-tokenizer", f"qwen2.5-vl={own / 'own' / 'tokenizer.json'}")
    first = json.loads(command("audit", moved, *said[:2], "--json").out.splitlines()[0])
    totals = [record["length"] for record in records(moved, "1K")]
    assert first["models"]["qwen2.5-vl"]["tokens"]["max"] == max(totals)
    given = json.loads(command("audit", moved, *said, "--json").out.splitlines()[0])
    assert given["models"]["qwen2.5-vl"]["tokens"] == first["models"]["qwen2.5-vl"]["tokens"]  # with the template
    other = command("audit", moved, "--count-as", "gemma3", "--text-tokenizer", "gemma3=llama2")
    assert "tokens of gemma3 are without a chat template" in other.out


def test_a_model_is_counted_alike_by_count_as_and_by_an_audit(source: Path, tmp_path: Path) -> None:
    folder = linked(source, tmp_path / "source")
    write_manifest(folder / "tiny.yaml", count_as=[{"image": "gemma3", "text": "llama2"}])
    assert build(folder, tmp_path / "out").code == 0
    totals = [sum(record["tokens"]["as"]["gemma3"].values()) for record in records(tmp_path / "out", "1K")]
    for given in ((), ("--text-tokenizer", "gemma3=llama2")):
        audited = command("audit", tmp_path / "out", "--count-as", "gemma3", *given, "--json")
        tokens = json.loads(audited.out.splitlines()[0])["models"]["gemma3"]["tokens"]
        assert (tokens["max"], tokens["min"]) == (max(totals), min(totals))
    assert "so these are estimates" in command("audit", tmp_path / "out", "--count-as", "gemma3").out


def test_a_text_that_holds_what_the_template_writes_for_an_image_rejects_its_question(
    own: Path, tmp_path: Path
) -> None:
    folder = shutil.copytree(own, tmp_path / "source")
    (folder / "own/chat_template.jinja").write_text(
        TEMPLATE.replace("<|vision_start|><|image_pad|><|vision_end|>", "[PIC]")
    )
    rows = json.loads((folder / "samples.json").read_text())
    rows[1]["question"] += " [PIC]"
    (folder / "samples.json").write_text(json.dumps(rows))
    built = build(folder, tmp_path / "out")
    assert built.code == 0, built.err
    refused = {each["id"]: each for each in rejects(tmp_path / "out") if each["reason"] == "not-countable"}
    assert [*refused] == ["mmlongdoc_1"]
    assert refused["mmlongdoc_1"]["todo"] == "take it out of the texts, or use another template"
    assert refused["mmlongdoc_1"]["found"].startswith("chat template: ")
    assert "[PIC]" in refused["mmlongdoc_1"]["found"]
    assert {each["id"] for each in records(tmp_path / "out", "2K")} >= {"mmlongdoc_0"}


def test_special_tokens_of_a_template_that_the_tokenizer_lacks_are_named(own: Path, tmp_path: Path) -> None:
    built = build(own, tmp_path / "out", "--set", f"counter={{template: {own / 'own'}}}")
    said = " ".join((built.out + built.err).split())
    assert "writes <|im_start|>, <|im_end|>: no special tokens of the tokenizer llama2" in said
    assert "no special tokens" not in command("plan", own / "tiny.yaml").out


def test_further_counters_are_named_in_plan_audit_and_card_as_estimates(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = linked(source, tmp_path / "source")
    said = "in `tokens.as`, as claude, texts by llama2; these are estimates"
    write_manifest(folder / "tiny.yaml", count_as=[{"image": "claude", "text": "llama2"}])
    built = build(folder, tmp_path / "out")
    assert said in " ".join((built.out + built.err).split())
    assert said in command("audit", tmp_path / "out").out
    monkeypatch.chdir(tmp_path)
    assert command("publish", "out", "--out", "public", "--allow-unknown-licence").code == 0
    assert "`tokens.as` has the tokens as claude" in Path("public/README.md").read_text()


def test_places_are_said_to_be_about_right_where_texts_cannot_be_counted_apart(moved: Path, finished: Path) -> None:
    assert "start tokens are about right" in command("show", moved).out
    assert "start tokens are about right" not in command("show", finished).out
