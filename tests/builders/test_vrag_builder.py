"""Visual RAG as it is released: templates, fields, depths, variants, and a brute-force search for leaks."""

import json
import re
import string
import subprocess
import sys
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from real_text import draw_real
from tiny import command, rejects

from builders.samples.vrag.sources import draw_infoseek, draw_viquae
from builders.vrag import VRAG
from mmlongbench.corpus.making import make_corpus
from mmlongbench.errors import ReleaseError
from mmlongbench.io.progress import Progress
from mmlongbench.release.audit import audit_release
from tokenization import load_tokenizer

pytestmark = pytest.mark.slow

SHARED = Path(__file__).parents[3] / "shared"
DOCUMENTS = SHARED / "real" / "mmlongbench-doc" / "documents"
VALIDATOR = SHARED / "validate_release.py"
USE = "Use the given documents to write a concise and short answer to the question about "
WRITE = ". Write your answer in the following format:\nAnswer: [answer]\n\n"
ENOUGH = 300
"""Passages that are retrieved for a question; at most about 120 fit 16K."""
ENGINE = {"length", "tokens", "depth_achieved", "needle_start"}
Record = dict[str, Any]
FILES = {"infoseek": "infoseek_K{}_dep3.jsonl", "viquae": "viquae_K{}_dep6.jsonl"}


def build(made: dict[str, Any], folder: Path, *args: object) -> Path:
    (folder / "m.yaml").write_text(yaml.safe_dump(made))
    built = command("build", folder / "m.yaml", "--out", folder / "out", "--workers", 1, "-q", *args)
    assert built.code == 0, built.err
    return folder / "out"


Sources = dict[str, dict[str, str]]
"""Paths of the sources of each dataset, and of its corpus, by name."""


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Sources:
    """The samples of both readers and an index of their common encyclopedia; not to be changed."""
    folder = tmp_path_factory.mktemp("drawn")
    found = {"infoseek": draw_infoseek(folder / "i"), "viquae": draw_viquae(folder / "v")}
    make_corpus(str(found["viquae"]["corpus"]), folder / "corpus")
    named = {name: {each: str(path) for each, path in sources.items()} for name, sources in found.items()}
    return {name: {**sources, "corpus": str(folder / "corpus")} for name, sources in named.items()}


def manifest(sources: Sources, **more: object) -> dict[str, Any]:
    common: dict[str, Any] = {"builder": "vrag", "lengths": ["8K", "16K"], "retrieval": {"k": ENOUGH}, **more}
    made = []
    for name, gold in (("infoseek", "lead"), ("viquae", "span")):
        source = {each: path for each, path in sources[name].items() if each != "corpus"}
        own = {"name": name, "reader": name, "options": {"gold": gold}}
        made.append({**common, **own, "source": source, "corpus": sources[name]["corpus"]})
    return {"datasets": made}


@pytest.fixture(scope="module")
def release(drawn: Sources, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(manifest(drawn), tmp_path_factory.mktemp("vrag"), "--limit", 6)


@pytest.fixture(scope="module")
def filled(drawn: Sources, tmp_path_factory: pytest.TempPathFactory) -> Path:
    asked = manifest(drawn, retrieval={"k": 20, "random_fill": True})
    return build(asked, tmp_path_factory.mktemp("filled"), "--limit", 4)


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release over the text of real PDFs."""
    if not (DOCUMENTS.is_dir() and VALIDATOR.is_file()):
        pytest.skip("the real PDFs and the validator are not beside this checkout")
    folder = tmp_path_factory.mktemp("real")
    (folder / "documents").mkdir()
    for path in sorted(DOCUMENTS.glob("*.pdf"))[:8]:
        (folder / "documents" / path.name).symlink_to(path)
    found = {name: str(path) for name, path in draw_real(folder / "documents", folder, 6).items()}
    shared = {"images": found["images"], "corpus": found["corpus"]}
    infoseek = {**shared, "questions": found["infoseek"], "entities": found["entities"]}
    return build(manifest({"infoseek": infoseek, "viquae": {**shared, "questions": found["viquae"]}}), folder)


def records(release: Path, name: str, k: int = 8) -> list[Record]:
    text = (release / "mmlb_data" / "vrag" / FILES[name].format(k)).read_text("utf-8")
    return [json.loads(line) for line in text.splitlines()]


def everything(release: Path) -> Iterator[Record]:
    for name in FILES:
        for k in (8, 16):
            yield from records(release, name, k)


def shown(passages: list[Record]) -> str:
    return "\n\n".join(f"Document (Title: {p['title']}): {p['text']}" for p in passages)


def builder(name: str) -> VRAG:
    return VRAG(name, VRAG.options_type.model_validate({"gold": "lead" if name == "infoseek" else "span"}))


@pytest.mark.parametrize("name", FILES)
def test_the_templates_are_the_published_ones_to_the_character(release: Path, name: str) -> None:
    for record in records(release, name):
        ask = f"\n\nQuestion: <image>{record['question']}\nAnswer:"
        for variant, passages in (
            ("plain", record["ctxs"]),
            ("oracle", [p for p in record["ctxs"] if p in record["positive_ctxs"]]),
            ("occluded", [p for p in record["ctxs"] if p not in record["positive_ctxs"]]),
        ):
            made = builder(name)
            prompt = made.prompt(record) if variant == "plain" else made.render_variant(record, variant)
            assert prompt.rendered() == f"{USE}the entity shown in the image{WRITE}{shown(passages)}{ask}"
            assert prompt.images == (record["image"],)


def test_the_named_variant_has_no_picture_and_the_question_that_names_the_entity(release: Path) -> None:
    for record in records(release, "viquae"):
        prompt = builder("viquae").render_variant(record, "with_name")
        ask = f"\n\nQuestion: {record['original_question']}\nAnswer:"
        assert prompt.rendered() == f"{USE}a named entity{WRITE}{shown(record['ctxs'])}{ask}"
        assert not prompt.images


@pytest.mark.parametrize("name", FILES)
def test_records_have_the_published_fields_and_one_type_a_column(release: Path, name: str) -> None:
    published = {"id", "question", "original_question", "image", "answer", "ctxs", "positive_ctxs", "entity_text"}
    for record in records(release, name):
        assert published | ENGINE | {"depth" if name == "viquae" else "permutation"} <= record.keys()
        assert re.fullmatch(rf"{name}-\d+", record["id"])
        assert record["image"].startswith(f"{name}/")
        assert all(isinstance(answer, str) for answer in record["answer"])
        assert {tuple(p) for p in (*record["ctxs"], *record["positive_ctxs"])} == {("doc_id", "title", "text")}
        low, _, high = record["answer_range"].partition(" to ")
        assert (low, high) == ("", "") or float(low) <= float(high)
    kinds: defaultdict[str, set[str]] = defaultdict(set)
    for record in records(release, name):
        for key, value in record.items():
            kinds[key].add(type(value).__name__)
    assert {key: found for key, found in kinds.items() if len(found) > 1} == {}


def test_placements_are_three_permutations_or_six_depths_of_one_id(release: Path) -> None:
    for name, field, values in (
        ("infoseek", "permutation", [0, 1, 2]),
        ("viquae", "depth", [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]),
    ):
        placed: dict[str, list[object]] = {}
        for record in records(release, name):
            placed.setdefault(record["id"], []).append(record[field])
            assert type(record[field]) is type(values[0])
        assert len(placed) == 6
        assert all(found == values for found in placed.values())


def worst_error(record: Record) -> float:
    """Return the distance of gold from its requested depth, in tokens, divided by the larger neighbouring passage."""
    tokenizer = load_tokenizer("llama2")
    gold = record["positive_ctxs"][0]
    costs = [tokenizer.price(shown([p])) + tokenizer.price("\n\n") for p in record["ctxs"] if p != gold]
    at = record["ctxs"].index(gold)
    return abs(sum(costs[:at]) - float(record["depth"]) * sum(costs)) / max(costs[max(0, at - 1) : at + 1])


def test_gold_stands_once_and_at_its_depth(release: Path) -> None:
    for name in FILES:
        for record in records(release, name, 16):
            ids = Counter(p["doc_id"] for p in record["ctxs"])
            assert set(ids.values()) == {1}
            assert all(gold in record["ctxs"] for gold in record["positive_ctxs"])
            if name == "viquae":
                hay = len(record["ctxs"]) - 1
                assert worst_error(record) <= 0.5 + 1e-9
                at = record["ctxs"].index(record["positive_ctxs"][0])
                assert (at == 0, at == hay) == (record["depth"] == 0, record["depth"] == 1)


@cache
def words(text: str) -> str:
    """Letters and digits of a text, folded, without articles: written apart from the engine's."""
    flat = "".join(c for c in unicodedata.normalize("NFKD", text.lower()) if not unicodedata.combining(c))
    bare = "".join(c for c in flat if not (c in string.punctuation or unicodedata.category(c)[0] == "P"))
    return f" {' '.join(word for word in bare.split() if word not in ('a', 'an', 'the'))} "


def leaks(record: Record) -> list[str]:
    gold = {p["doc_id"] for p in record["positive_ctxs"]}
    forbidden = [words(text) for text in (*record["answer"], record["entity_text"])]
    negatives = [p for p in record["ctxs"] if p["doc_id"] not in gold]
    return [p["doc_id"] for p in negatives if any(f in words(t) for f in forbidden for t in (p["title"], p["text"]))]


def test_no_negative_of_the_sample_holds_an_answer_or_the_entity(release: Path, filled: Path) -> None:
    found = [leaks(record) for made in (release, filled) for record in everything(made)]
    assert len(found) == (6 + 4) * (3 + 6) * 2
    assert not any(found)


def test_the_search_for_leaks_would_find_one(release: Path) -> None:
    record = records(release, "viquae")[0]
    record["ctxs"].append({"doc_id": "x", "title": "Of it", "text": f"It is {record['answer'][0].upper()}!"})
    assert leaks(record) == ["x"]


def test_random_passages_follow_only_where_they_are_allowed(drawn: Sources, filled: Path, tmp_path: Path) -> None:
    short = build(manifest(drawn, retrieval={"k": 20}), tmp_path, "--limit", 4)
    for name in FILES:
        for with_random, without in zip(records(filled, name), records(short, name), strict=True):
            assert without["random_passages"] == 0
            assert len(without["ctxs"]) <= 20 + len(without["positive_ctxs"])
            assert with_random["random_passages"] >= len(with_random["ctxs"]) - len(without["ctxs"]) > 0
            assert with_random["length"] + with_random["tokens"]["reserve"] > 0.999 * 8192
            hard, all_of_them = ({p["doc_id"] for p in r["ctxs"]} for r in (without, with_random))
            assert len(hard - all_of_them) <= 3


def test_shorter_contexts_are_nested_apart_from_the_closing_units(release: Path) -> None:
    for name in FILES:
        for short, long in zip(records(release, name), records(release, name, 16), strict=True):
            ids, more = ([p["doc_id"] for p in r["ctxs"]] for r in (short, long))
            assert len(set(ids) - set(more)) <= 3
            assert [id for id in more if id in ids and id not in {p["doc_id"] for p in short["positive_ctxs"]}] == [
                id for id in ids if id in more and id not in {p["doc_id"] for p in short["positive_ctxs"]}
            ]


def test_a_file_does_not_depend_on_the_other_lengths(drawn: Sources, release: Path, tmp_path: Path) -> None:
    alone = build(manifest(drawn), tmp_path, "--limit", 6, "--lengths", "16K")
    for name in FILES:
        assert records(alone, name, 16) == records(release, name, 16)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ("nowhere to be read", "gold-without-answer"),
        ("was", "common-answer"),
        ("a", "common-answer"),
        ("x", "common-answer"),
    ],
)
def test_a_question_without_a_usable_answer_is_rejected(
    drawn: Sources, tmp_path: Path, answer: str, reason: str | None
) -> None:
    questions = Path(drawn["infoseek"]["questions"]).read_text("utf-8").splitlines()
    rows = [json.loads(line) for line in questions[:2]]
    rows[0] |= {"answer": [answer], "answer_eval": [answer]}
    changed = tmp_path / "questions.jsonl"
    changed.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    made = manifest({**drawn, "infoseek": {**drawn["infoseek"], "questions": str(changed)}}, lengths=["8K"])
    made["datasets"] = made["datasets"][:1]
    found = {line["id"]: line["reason"] for line in rejects(build(made, tmp_path))}
    assert found == {"infoseek-0": reason}


def test_a_release_over_real_text_is_sound(real: Path) -> None:
    every = list(everything(real))
    assert min((r["length"] + r["tokens"]["reserve"]) / k for r, k in _with_length(real)) >= 0.999
    assert sum(len(leaks(record)) for record in every) == 0
    assert command("audit", real, "-q").code == 0
    checked = subprocess.run([sys.executable, VALIDATOR, real], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def _with_length(release: Path) -> list[tuple[Record, int]]:
    return [(record, 1024 * k) for name in FILES for k in (8, 16) for record in records(release, name, k)]


def test_the_audit_counts_a_variant_and_refuses_one_that_nobody_offers(release: Path) -> None:
    plain, oracle = (audit_release(release, Progress(is_shown=False), variant=name) for name in ("", "oracle"))
    assert not [audit.first for audit in (*plain, *oracle) if audit.problems]
    assert all(few.text.mean < all_.text.mean for few, all_ in zip(oracle, plain, strict=True))
    with pytest.raises(ReleaseError, match="offered: occluded, oracle, with_name"):
        audit_release(release, Progress(is_shown=False), variant="x")


def test_every_example_is_full_where_passages_suffice(release: Path) -> None:
    for audit in audit_release(release, Progress(is_shown=False)):
        assert audit.fill.least >= 0.999, audit.file
