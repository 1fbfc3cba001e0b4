"""Walks without reading order: the graph, and strings whose words come in no order."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mmlongbench.scoring.smudge.graph import gabriel_edges, neighbours_on
from mmlongbench.scoring.smudge.walking import Walking
from mmlongbench.scoring.smudge.words import Array, Word, Words, words_of

POINTS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), unique=True, max_size=25)
COLUMNS = ("left one two three", "right four five six", "", "total 12 mgs")


def by_definition(points: Array) -> set[tuple[int, int]]:
    """Pairs whose circle holds no third point."""
    numbers = range(len(points))
    return {
        (a, b)
        for a in numbers
        for b in range(a + 1, len(points))
        if not any(
            np.dot(points[a] - points[other], points[b] - points[other]) < 0 for other in numbers if other not in (a, b)
        )
    }


@given(POINTS)
def test_the_graph_is_that_of_its_definition_but_for_points_on_a_circle(points: list[tuple[int, int]]) -> None:
    # whole numbers on a spiral of their own, so that no four of them lie on one circle
    moved = np.array([(x + 0.001 * n * n, y + 0.0007 * n**3) for n, (x, y) in enumerate(points)]).reshape(-1, 2)
    found = {(min(pair), max(pair)) for pair in gabriel_edges(moved).tolist()}
    assert found == by_definition(moved)


def test_points_at_one_place_and_in_one_line_are_joined() -> None:
    line = np.array([[0.0, 0], [3, 0], [1, 0], [1, 0], [2, 0], [4, 0]])
    found = {tuple(sorted(pair)) for pair in gabriel_edges(line).tolist()}
    assert {(1, 4), (1, 5), (2, 3)} <= found
    assert len(found) == 5
    assert not len(gabriel_edges(np.zeros((0, 2))))


def table(order: int = 1) -> Words:
    """Rows of words, the second column far from the first; the words in any order."""
    words = []
    for row, line in enumerate(COLUMNS):
        for number, text in enumerate(line.split()):
            x, y = 0.1 + number * 0.1, 0.1 + row * 0.05
            words.append(Word(0, text, (x, y, x + 0.09, y + 0.03)))
    shuffled = sorted(words, key=lambda word: (len(word.text) * order, word.text[::order]))
    return words_of(shuffled, "table")


@pytest.mark.parametrize("order", [1, -1])
@pytest.mark.parametrize("needle", [*filter(None, COLUMNS), "four five", "mgs"])
def test_lines_are_found_whatever_order_the_words_come_in(needle: str, order: int) -> None:
    found = Walking(table(order)).best(needle, (0,))
    assert found.similarity == 1
    assert found.places[0].y == pytest.approx(0.115 + 0.05 * next(n for n, c in enumerate(COLUMNS) if needle in c))


def test_words_of_a_line_are_neighbours() -> None:
    words = table()
    numbers = {words.word(number): number for number in range(len(words))}
    near = neighbours_on(words, 0)
    for line in COLUMNS:
        for one, other in pairwise(line.split()):
            assert numbers[other] in near[numbers[one]]


def test_what_no_word_resembles_is_not_found() -> None:
    walking = Walking(table())
    assert not walking.best("zzzz qqqq", (0,)).places
    assert not walking.best("", (0,)).places
    assert not walking.best("left", (7,)).places
    assert walking.is_better_on("left", (0,), 0.9)
    assert not walking.is_better_on("left", (0,), 1.0)
