"""`mmlongbench list NAME` and `mmlongbench schema`, as a user sees them."""

import json
import re
import tarfile
from pathlib import Path

import pytest
from tiny import command

import mmlongbench as mm


def names() -> list[str]:
    listed = json.loads(command("list", "--json").out)
    return sorted({plugin["name"] for plugin in listed["plugins"]} | {*listed["manifests"], "openai", "hf"})


@pytest.mark.parametrize("every", [pytest.param(1, marks=pytest.mark.rare), 8])
def test_every_name_is_shown_in_eighty_columns(every: int) -> None:
    assert len(names()) > 40
    for name in names()[::every]:
        done = command("list", name)
        assert (done.code, done.err) == (0, ""), name
        assert name in done.out.splitlines()[0]
        assert [line for line in done.out.splitlines() if len(line) > 80 and " " in line.strip()] == [], name


def test_a_builder_is_shown_with_options_records_and_what_fits() -> None:
    shown = command("list", "docvqa").out
    assert "  max_answer_words: integer" in shown
    assert "  page_label: none | index | printed; by default none\n      Whether the line before a page" in shown
    assert "  readers: longdocurl, m_longdoc, mmlongbench_doc, own_documents, slidevqa\n" in shown
    assert "  mmlb_data/documentQA/{name}_K{k}.jsonl, one for each length: the records\n" in shown
    assert "fields that the engine adds to a record\n  length\n" in shown


def test_a_reader_is_shown_with_its_sources() -> None:
    shown = command("list", "photographs").out
    assert "\nsources\n  questions\n      JSON Lines; a line has question, answer (Yes or No)" in shown
    assert "\n  annotations (optional)\n" in shown
    place = re.search(r"With `source: sample`, small sources in this form are used: photographs/ in\s+(\S+)", shown)
    assert place
    with tarfile.open(place[1]) as archive:
        assert "photographs/questions.jsonl" in archive.getnames()


def test_a_task_file_is_shown_without_its_folder() -> None:
    manifest = Path(__file__).parents[2] / "examples/fables/fables.yaml"
    (found,) = json.loads(command("list", manifest, "--json").out)["found"]
    (dataset,) = found["datasets"]
    assert dataset["builder"] == dataset["reader"] == "fables.py:Fables"
    assert "builder fables.py:Fables; reader fables.py:Fables" in command("list", manifest).out


def test_a_name_of_several_kinds_is_shown_for_each_and_a_kind_chooses_one() -> None:
    def kinds(*more: str) -> list[str]:
        return [each["kind"] for each in json.loads(command("list", "infoseek", "--json", *more).out)["found"]]

    assert kinds() == ["reader", "manifest"]
    assert kinds("--kind", "sample") == ["sample"]
    assert kinds("--kind", "manifest") == ["manifest"]


def test_a_manifest_of_ones_own_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    path.write_text("datasets: [{name: a, builder: docvqa, reader: slidevqa, source: {decks: d}}]", "utf-8")
    shown = command("list", path).out
    assert "  source.questions: to be set: --set source.questions=PATH\n  source.decks: d\n" in shown


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["docva"], "no builder, reader, metric, export target, manifest or sample 'docva' is installed; did you mean"),
        (["docvqa", "--kind", "reader"], "no reader 'docvqa' is installed"),
        (["opnai"], "did you mean 'openai'?"),
    ],
)
def test_an_unknown_name_is_answered_in_one_line(words: list[str], said: str) -> None:
    done = command("list", *words)
    assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
    assert said in done.err


def test_an_unknown_name_cannot_move_the_cursor() -> None:
    assert "\x1b" not in command("list", "\x1b[2J").err


def test_the_whole_list_can_be_narrowed_to_a_kind() -> None:
    whole, metrics = command("list").out, command("list", "--kind", "metric").out
    assert "builders\n  docvqa" in whole
    assert "  docvqa " not in metrics
    assert "  smudge" in metrics
    assert {each["kind"] for each in json.loads(command("list", "--kind", "metric", "--json").out)["plugins"]} == {
        "metric"
    }
    plugins = json.loads(command("list", "--json").out)["plugins"]
    sentences = {each["name"]: each["summary"] for each in plugins if each["kind"] != "target"}
    assert [name for name, sentence in sentences.items() if not sentence.endswith(".")] == []


def test_every_key_of_a_manifest_is_shown_with_its_default_and_its_meaning() -> None:
    shown = command("schema", "manifest", "--text").out
    for key in mm.DatasetSpec.model_fields:
        assert f"\n  {key}" in shown
    assert '\n  lengths: list of integers; by default ["8K", "16K", "32K", "64K", "128K"]\n      The lengths' in shown
    assert (
        "\n  pages\n      How pages become images.\n  pages.dpi: integer, at least 10, at most 1200; by default 144\n"
        in shown
    )
    assert max(map(len, shown.splitlines())) <= 80


def test_the_schema_of_a_manifest_is_json() -> None:
    schema = json.loads(command("schema", "manifest").out)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["anyOf"] == [{"required": ["datasets"]}, {"required": ["include"]}]
