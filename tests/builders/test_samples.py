"""The samples: the files that ship are those that are drawn, every field of their records is described, and their
questions are answered where they say.
"""

import json
import re
from ast import literal_eval
from collections import Counter
from collections.abc import Callable
from itertools import chain
from pathlib import Path

import pymupdf
import pytest
import yaml
from hub_forms import json_lines_of
from one_dataset import write_lines
from PIL import Image
from samples import Sources, samples_of
from tiny import command, hashes

import mmlongbench as mm
import mmlongbench.task as mt
from tests.drawing.archives import FAMILIES, drawn, shipped

Sample = Callable[[str], Sources]


def listed(kind: str) -> list[str]:
    """The names of what is installed of a kind."""
    found = json.loads(command("list", "--kind", kind, "--json").out)
    return [each["name"] for each in found["plugins"]]


def described(builder: str) -> tuple[set[str], set[str]]:
    """(the fields of records that a builder describes, those that the engine adds and describes)."""
    (about,) = json.loads(command("list", builder, "--kind", "builder", "--json").out)["found"]
    names = {
        is_added: [f["name"] for f in about["record_fields"] if f["is_added"] is is_added] for is_added in (False, True)
    }
    assert Counter(chain(*names.values())).most_common(1)[0][1] == 1
    return {*names[False]}, {*names[True]}


def record_fields(release: Path) -> dict[str, set[str]]:
    """The fields of all records of each builder."""
    opened = mm.open_release(release)
    builders = {
        each["name"]: each["builder"] for each in json.loads((release / "build.lock.json").read_bytes())["manifest"]
    }
    fields: dict[str, set[str]] = {}
    for name in opened.datasets:
        for length in opened.lengths(name):
            for example in opened.examples(name, length):
                fields.setdefault(builders[name], set()).update(example.record)
    return fields


def test_every_field_of_a_record_is_described_once(families: Path) -> None:
    fields = record_fields(families)
    assert {*fields} == {*listed("builder")} != set()
    engine = set[str]()
    for builder, found in fields.items():
        own, added = described(builder)
        assert found - own - added == set()
        engine |= added
    assert {"length", "tokens", "depth", "permutation"} <= engine <= set().union(*fields.values())


@pytest.mark.rare
def test_every_described_field_is_in_a_record(sample: Sample, families: Path, forms: Path, tmp_path: Path) -> None:
    """In one of the samples, or of tasks that the samples do not have."""
    manifest = {**samples_of("quickstart"), "datasets": []}
    first = json_lines_of(sample("own_pages")["questions"])[0]
    signs = {"question": "How many are as <image> in each picture?", "shown": ["pictures/emblem02a.png"]}
    asked = {
        "counting": {**signs, "answer": [2, 1], "needles": ["pictures/emblem00a.png", "pictures/emblem01a.png"]},
        "retrieval": {**first, "question": "Which emblem is the first image, which is no view?"},
    }
    for task, row in asked.items():
        write_lines(tmp_path / f"{task}.jsonl", [row])
        source = {"questions": f"{task}.jsonl", "documents": str(sample("own_pages")["documents"])}
        own = {"name": f"own-{task}", "builder": "mm_niah", "reader": "own_pages", "source": source}
        manifest["datasets"].append({**own, "options": {"task": task, "needle": "image"}})
    text = {"name": "gov-text", "builder": "summary", "reader": "govreport", "options": {"pages_as": "text"}}
    manifest["datasets"].append({**text, "reference_length": "16K"})
    (tmp_path / "all.yaml").write_text(yaml.safe_dump(manifest), "utf-8")
    built = command("build", tmp_path / "all.yaml", "--out", tmp_path / "out", "--lengths", "8K", "--limit", "2", "-q")
    assert built.code == 0, built.err
    found = [record_fields(release) for release in (families, forms, tmp_path / "out")]
    for builder in found[0]:
        by_builder, by_engine = described(builder)
        fields = set[str]().union(*(release.get(builder, set()) for release in found))
        assert by_builder <= fields <= by_builder | by_engine, builder


def test_every_reader_has_a_sample_and_every_sample_a_reader() -> None:
    assert listed("sample") == listed("reader") != []


@pytest.mark.parametrize("family", FAMILIES)
def test_the_archives_hold_what_is_drawn(family: str) -> None:
    """If only libraries have changed, `python -m tests.drawing` makes the archives anew."""
    before, now = shipped(family), drawn(family)
    assert [name for name in before.keys() | now.keys() if before.get(name) != now.get(name)] == []


# --- reports ----------------------------------------------------------------------------------------------------------


def test_every_answer_of_the_sample_reports_stands_on_its_pages_and_on_no_other(sample: Sample) -> None:
    texts: dict[str, list[str]] = {}
    for path in sorted(sample("mmlongbench_doc")["documents"].iterdir()):
        with pymupdf.open(path) as document:
            texts[path.name] = [" ".join(page.get_text().split()) for page in document]
    rows = json.loads(sample("mmlongbench_doc")["samples"].read_text("utf-8"))
    assert len({name[:15] for name in texts}) == len(texts) == 12
    assert len({(row["doc_id"], row["question"]) for row in rows}) == len(rows) == 48
    assert {row["answer_format"] for row in rows} == {"Int", "Float", "Str", "List", "None"}
    for row in rows:
        pages = literal_eval(row["evidence_pages"])
        assert (row["answer_format"] == "None") == (pages == []) == (row["answer"] == "Not answerable")
        others = " ".join(other["question"] for other in rows if other["doc_id"] == row["doc_id"] and other is not row)
        assert not re.search(rf"\b{re.escape(row['answer'])}\b", others)
        values = literal_eval(row["answer"]) if row["answer_format"] == "List" else [row["answer"]]
        where = {
            (name, number)
            for value in values
            for name, found in texts.items()
            for number, text in enumerate(found, 1)
            if value in text
        }
        if len(pages) == 1 and row["answer_format"] in ("Str", "List", "Float"):
            assert where <= {(row["doc_id"], page) for page in pages}, row["question"]
        if not pages:  # a page has nearly all words of the question: the words do not tell that it has no answer
            words = {word for word in re.findall(r"[a-z0-9]+", row["question"].lower()) if len(word) > 4}
            has = [words & set(re.findall(r"[a-z0-9]+", text.lower())) for text in texts[row["doc_id"]]]
            assert max(map(len, has)) >= len(words) - 2, row["question"]


# --- the encyclopedia -------------------------------------------------------------------------------------------------


def test_the_encyclopedia_is_in_the_form_of_kilt_and_names_its_entities_once(sample: Sample) -> None:
    rows = json_lines_of(sample("infoseek")["corpus"])
    assert (
        len(rows) == len({row["_id"] for row in rows}) == len({row["wikipedia_title"].lower() for row in rows}) == 300
    )
    for row in rows:
        title, *text = row["text"]
        assert (row["_id"], title) == (row["wikipedia_id"], row["wikipedia_title"] + "\n")
        assert not text[0].startswith(("Section::::", "BULLET::::"))
        assert all(paragraph.endswith("\n") and len(paragraph) > 10 for paragraph in text)
        assert not [paragraph for paragraph in text if any(mark in paragraph for mark in "{}<>|")]
        told = [sentence for paragraph in text for sentence in paragraph.split(". ") if "::::" not in paragraph]
        assert len(set(told)) == len(told), title
    assert sum(len(paragraph.split()) for row in rows for paragraph in row["text"]) > 60_000
    names = {row["entity_text"] for row in json_lines_of(sample("infoseek")["entities"])}
    for name in names:
        assert [row["wikipedia_title"] for row in rows if mt.contains(row["wikipedia_title"], name)] == [name]


def test_questions_about_entities_are_as_published_and_answered_in_their_articles(sample: Sample) -> None:
    infoseek, viquae = sample("infoseek"), sample("viquae")
    assert infoseek["corpus"].read_bytes() == viquae["corpus"].read_bytes()
    pages = {row["_id"]: row for row in json_lines_of(infoseek["corpus"])}
    leads = {row["wikipedia_title"]: row["text"] for row in pages.values()}
    rows, entities = json_lines_of(infoseek["questions"]), json_lines_of(infoseek["entities"])
    assert [row["data_id"] for row in rows] == [row["data_id"] for row in entities]
    assert len(rows) == len({row["image_id"] for row in rows}) == 40
    for row, entity in zip(rows, entities, strict=True):
        title, *lead = leads[entity["entity_text"]]
        section = next((at for at, text in enumerate(lead) if text.startswith("Section::::")), len(lead))
        assert any(mt.contains(paragraph, row["answer"][0]) for paragraph in lead[:section])
        assert not mt.contains(title, row["answer"][0])
    measured = [
        value
        for row in rows
        for value in (row["answer_eval"] if isinstance(row["answer_eval"], list) else [row["answer_eval"]])
    ]
    numbers = [value for value in measured if isinstance(value, dict)]
    assert len(numbers) == 10
    assert all(value["range"][0] < value["wikidata"] < value["range"][1] for value in numbers)
    asked = json_lines_of(viquae["questions"])
    assert len(asked) == len({row["id"] for row in asked}) == 36
    assert sorted(row["image"] for row in asked) == sorted(path.name for path in viquae["images"].iterdir())
    for row in asked:
        for entry in row["output"]["provenance"]:
            page = pages[entry["wikipedia_id"][0]]
            assert page["wikipedia_title"] == entry["title"][0]
            assert entry["title"][0] in row["original_question"]
            assert entry["title"][0] not in row["input"]
            paragraph = page["text"][entry["start_paragraph_id"][0]]
            found = paragraph[entry["start_character"][0] : entry["end_character"][0]]
            assert found == row["output"]["original_answer"] == row["output"]["answer"][0]


# --- pictures ---------------------------------------------------------------------------------------------------------


def test_photographs_have_cocos_sizes_and_annotations_within_them(sample: Sample) -> None:
    single, several = sample("visual_haystacks"), sample("photographs")
    digests = [hashes(sources["images"].parent) for sources in (single, several)]
    assert {name for name, digest in digests[0].items() if digests[1].get(name) != digest} == {
        "visual_haystack_10.json"
    }
    data = json.loads(single["annotations"].read_bytes())
    images = {image["id"]: image for image in data["images"]}
    assert len(images) == 330
    for image in images.values():
        with Image.open(single["images"] / "train2017" / image["file_name"]) as picture:
            assert picture.size == (image["width"], image["height"])
    share = {size: many / 330 for size, many in Counter((i["width"], i["height"]) for i in images.values()).items()}
    assert share[640, 480] == pytest.approx(0.23, abs=0.02)
    assert share[640, 427] == pytest.approx(0.28, abs=0.02)
    shown: dict[int, set[str]] = {id: set() for id in images}
    for instance in data["annotations"]:
        left, top, width, height = instance["bbox"]
        image = images[instance["image_id"]]
        assert 0 <= left <= left + width <= image["width"]
        assert 0 <= top <= top + height <= image["height"]
        assert instance["area"] == width * height
        shown[image["id"]].add(instance["category_id"])
    for thing in set().union(*shown.values()):  # far more photographs without it than 32K holds
        assert sum(thing not in found for found in shown.values()) > 250


def test_nothing_but_its_sign_tells_the_picture_that_a_question_is_about(sample: Sample) -> None:
    def facts(names: set[str]) -> set[tuple[object, ...]]:
        found = set[tuple[object, ...]]()
        for name in names:
            with Image.open(files[name]) as picture:
                tables = str(getattr(picture, "quantization", {}))
                found.add((picture.format, picture.mode, picture.size, tables, tuple(sorted(picture.info))))
        return found

    sources = sample("own_pages")
    rows = json_lines_of(sources["questions"])
    asked = {name for row in rows for name in row["needles"]}
    files = {path.relative_to(sources["documents"]).as_posix(): path for path in sources["documents"].rglob("*.jpg")}
    others = files.keys() - asked - {name for row in rows for name in row["choices"]}
    assert len(others) > len(asked)
    assert facts(asked) == facts(others)
    assert {len(name) for name in asked} == {len(name) for name in others}
    assert min(others) < min(asked) < max(asked) < max(others)
