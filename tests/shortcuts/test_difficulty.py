"""How far down a search finds gold."""

import importlib.util
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from asked_questions import asked, unit
from numpy.typing import NDArray

from mmlongbench.corpus.retrieval.dense import Reranker
from mmlongbench.corpus.retrieval.models import ModelError
from mmlongbench.shortcuts.difficulty import MAX_QUESTIONS, Difficulties, Search, drawn_questions, enough, searches_of
from mmlongbench.shortcuts.reading import AskedQuestion


def context(number: int, rank: int) -> AskedQuestion:
    """A question whose gold has a rank among ten units: the units above it have more of the question's words."""
    better = [unit("negative", f"the old ferry crossed in {at}") for at in range(rank - 1)]
    worse = [unit("padding", f"nothing of note in {at}") for at in range(10 - rank)]
    return asked(f"q{number}", "When was the old ferry built?", *worse, unit("gold", "a ferry, 1821"), *better)


def of_ranks(ranks: Sequence[int], *searches: Search) -> Difficulties:
    found = Difficulties("x", 8192, searches or (Search(),))
    for number, rank in enumerate(ranks):
        found.add(context(number, rank))
    return found


def test_ranks_and_the_units_to_read_are_counted() -> None:
    [line] = of_ranks([1, 1, 1, 2, 2, 3, 3, 4, 6, 9]).lines()
    assert (line.kind, line.search, line.length, line.questions, line.golds) == ("difficulty", "BM25", 8192, 10, 10)
    assert (line.units, line.found, line.median_rank, line.k_50, line.k_90) == (10, 1, 2.5, 2, 6)


def test_a_gold_without_a_word_of_its_question_ranks_last() -> None:
    found = Difficulties("x", 8192, (Search(),))
    found.add(asked("q", "Who?", unit("gold", "Nobody"), unit("padding", "Something"), unit("padding", "More")))
    [line] = found.lines()
    assert (line.median_rank, line.found) == (3, 0)


def test_contexts_whose_gold_is_an_image_or_that_ask_nothing_are_left_out() -> None:
    found = Difficulties("x", 8192, (Search(),))
    found.add(asked("a", "Who?", unit("needle", image="a.jpg"), unit("padding", "text")))
    found.add(asked("b", "", unit("gold", "text"), unit("padding", "text")))
    assert list(found.lines()) == []


@pytest.mark.parametrize(("ranks", "per_cent", "k"), [([5], 90, 5), ([1, 2], 50, 1), ([1] * 9 + [7], 90, 1)])
def test_enough_units_are_the_fewest(ranks: list[int], per_cent: int, k: int) -> None:
    assert enough(ranks, per_cent) == k


def test_the_same_questions_are_searched_for_at_each_length() -> None:
    ids = [f"q{number}" for number in range(3 * MAX_QUESTIONS)]
    assert len(drawn_questions("x", ids)) == MAX_QUESTIONS
    assert drawn_questions("x", ids) == drawn_questions("x", ids[::-1])


class Letters:
    """An encoder: the vector of a text says how often it has each letter."""

    fingerprint, dtype, width = "letters", "float32", 26

    def queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return self.passages(texts)

    def passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = np.array([[text.count(chr(97 + at)) for at in range(26)] for text in texts], np.float32)
        found: NDArray[np.float32] = rows / np.maximum(1, np.linalg.norm(rows, axis=1, keepdims=True))
        return found


def test_a_search_by_meaning_has_lines_of_its_own(tmp_path: Path) -> None:
    by_letters = Search(Reranker(Letters(), tmp_path), "letters")
    found = Difficulties("x", 8192, (Search(), by_letters))
    found.add(asked("a", "zzz?", unit("gold", "Zürich, zoo, zz"), unit("padding", "other"), unit("padding", "more")))
    by_letters.close()
    words, meaning = found.lines()
    assert (words.search, words.found, words.median_rank) == ("BM25", 0, 3)
    assert (meaning.search, meaning.found, meaning.median_rank) == ("letters", 1, 1)
    assert math.isclose(meaning.units, 3)


@pytest.mark.skipif(importlib.util.find_spec("sentence_transformers") is not None, reason="the extra is installed")
def test_without_the_extra_a_search_by_meaning_names_it() -> None:
    with pytest.raises(ModelError, match=r"mmlongbench\[dense\]"), searches_of("some/model"):
        pass
