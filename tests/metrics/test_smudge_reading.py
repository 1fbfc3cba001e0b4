"""Where a string stands in a document: every search equals a plain one done literally."""

from functools import cache
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mmlongbench.metrics.smudge.matching import split
from mmlongbench.metrics.smudge.reading import LEAST_SIMILARITY, Reading, equal_runs
from mmlongbench.metrics.smudge.words import Word, Words, words_of

BOX = (0.1, 0.1, 0.2, 0.2)
WORDS = st.text("abc1", min_size=1, max_size=5)
PAGES = st.lists(st.lists(WORDS, max_size=7), min_size=1, max_size=3)


@cache
def literal_similarity(one: str, other: str) -> float:
    row = list(range(len(other) + 1))
    for number, letter in enumerate(one, 1):
        new = [number]
        for (left, above), wanted in zip(pairwise(row), other, strict=True):
            new.append(min(above + 1, new[-1] + 1, left + (letter != wanted)))
        row = new
    longest = max(len(one), len(other))
    return (longest - row[-1]) / longest


def document(*pages: str | list[str]) -> Words:
    """Words of pages, a line each ten words."""
    laid = []
    for page, text in enumerate(pages):
        words = text.split() if isinstance(text, str) else text
        for number, word in enumerate(words):
            x, y = number % 10 / 10, number // 10 / 20
            laid.append(Word(page, word, (x, y, x + 0.08, y + 0.03)))
    return words_of(laid, "document")


def brute(words: Words, needle: str, above: float) -> tuple[float, set[tuple[int, int]]]:
    """All best runs, each of (first word, last word)."""
    best, runs = above, set[tuple[int, int]]()
    for page in words.pages.tolist():
        inside = words.range_of(page)
        for first in inside:
            for last in range(first, inside.stop):
                run = " ".join(map(words.word, range(first, last + 1)))
                similar = literal_similarity(run, needle)
                if similar > best:
                    best, runs = similar, set()
                if similar == best > above:
                    runs.add((first, last))
    return best, runs


def found_runs(words: Words, needle: str, above: float) -> tuple[float, set[tuple[int, int]]]:
    ranges = [words.range_of(page) for page in words.pages.tolist()]
    best = Reading(words).best_runs(needle, ranges, above)
    ends = {end: number for number, end in enumerate(words.ends.tolist())}
    return best.similarity, {(first, ends[end]) for first, end in best.runs}


@settings(max_examples=50)
@given(PAGES, st.text("abc1 z", min_size=1, max_size=12), st.sampled_from([0.0, LEAST_SIMILARITY, 0.5, 0.75]))
def test_the_best_runs_of_short_needles_are_those_of_brute_force(
    pages: list[list[str]], needle: str, above: float
) -> None:
    words = document(*pages)
    assert found_runs(words, needle, above) == brute(words, needle, above)


@settings(max_examples=12)
@given(PAGES, st.text("abc1 z", min_size=60, max_size=140), st.sampled_from([0.05, LEAST_SIMILARITY]))
def test_the_best_runs_of_needles_of_several_machine_words_are_those_of_brute_force(
    pages: list[list[str]], needle: str, above: float
) -> None:
    words = document(*([word * 4 for word in page] for page in pages))
    assert found_runs(words, needle, above) == brute(words, needle, above)


@pytest.mark.parametrize("length", [63, 64, 65, 127, 128, 129])
def test_a_needle_of_whole_machine_words_is_found_with_one_letter_wrong(length: int) -> None:
    text = "".join("abcdefghij"[(number * number) % 10] for number in range(length))
    words = document(["other", text, "words"])
    for wrong in (0, length // 2, length - 1):
        needle = text[:wrong] + "Z" + text[wrong + 1 :]
        assert found_runs(words, needle, LEAST_SIMILARITY) == ((length - 1) / length, {(1, 1)})


@settings(max_examples=50)
@given(PAGES, st.lists(WORDS, min_size=1, max_size=3))
def test_equal_runs_are_all_that_spell_the_needle_within_a_page(pages: list[list[str]], sought: list[str]) -> None:
    words, needle = document(*pages), " ".join(sought)
    wanted = brute(words, needle, 1 - 1e-9)[1]
    found = [run for page in words.pages.tolist() for run in equal_runs(words, needle, words.range_of(page))]
    assert set(found) == wanted
    assert len(found) == len(wanted)


def test_no_run_crosses_a_page() -> None:
    words = document("it is Chapel", "Hill in 2019")
    found = Reading(words).best("chapel hill", (0, 1))
    assert found.similarity < 1
    assert all(place.page in (0, 1) for place in found.places)


def test_what_another_page_has_better_is_not_found_and_what_it_has_as_good_is() -> None:
    read = Reading(document("up to 12 mg", "up to 12 mgs", "up to 12 mg"))
    assert not read.best_near("up to 12 mgss", (0, 2)).places
    assert not read.best_near("up to 12 mgs", (0,)).places
    assert [place.page for place in read.best_near("up to 12 mgss", (1,)).places] == [1]
    same = Reading(document("up to 12 mg", "up to 12 mg"))
    assert [place.page for place in same.best_near("up to 12 mgs", (0,)).places] == [0]


def test_words_are_compared_without_case_brackets_stops_and_ligatures() -> None:
    words = document("The (ﬁrst) “Chapel Hill”, of 12\u00a0%. …")
    assert words.text == " the first chapel hill of 12 % ... "
    assert [words.word(n) for n in range(len(words))] == split("the first chapel hill of 12 % …")


def test_pages_without_words_and_pages_out_of_order_are_in_their_place() -> None:
    words = words_of([Word(4, "b", BOX), Word(1, "a", BOX), Word(4, "c", BOX)], "document")
    assert words.text == " a \n b c "
    assert [list(words.range_of(page)) for page in (0, 1, 2, 4, 9)] == [[], [0], [], [1, 2], []]
    assert [words.word(n) for n in range(3)] == ["a", "b", "c"]


def test_a_run_that_is_similar_by_no_more_than_the_bound_is_none() -> None:
    assert found_runs(document(["mgs"]), "milligrams", LEAST_SIMILARITY)[1] == set()  # 3 of 10 letters
