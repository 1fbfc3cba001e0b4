"""Where a string stands on a page: every search equals a plain one done literally; the graph; hostile pages."""

from collections.abc import Iterator, Sequence
from functools import cache
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mmlongbench.draws import Draws
from mmlongbench.metrics.smudge import paths as searched
from mmlongbench.metrics.smudge.paths import MAX_NEIGHBOURS, Paths, gabriel_edges, neighbours_on
from mmlongbench.metrics.smudge.reading import LEAST_SIMILARITY, Found, Reading, best_runs, equal_runs, letters_of
from mmlongbench.metrics.smudge.words import Array, Word, Words, split, words_of

POINTS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), unique=True, max_size=25)
COLUMNS = ("left one two three", "right four five six", "", "total 12 mgs")
DRAWS = Draws(("paths",))
Middles = set[tuple[int, float, float]]
BOX = (0.1, 0.1, 0.2, 0.2)
WORDS = st.text("abc1", min_size=1, max_size=5)
PAGES = st.lists(st.lists(WORDS, max_size=7), min_size=1, max_size=3)


def by_definition(points: Array) -> set[tuple[int, int]]:
    """Pairs whose circle holds no third point."""
    away = points[:, None] - points[None]  # from each point to each
    corners = np.einsum("aoi,boi->abo", away, away)
    numbers = np.arange(len(points))
    corners[numbers, :, numbers] = corners[:, numbers, numbers] = 0
    is_clear = (corners >= 0).all(axis=2)
    return {(a, b) for a, b in combinations(range(len(points)), 2) if is_clear[a, b]}


def literal_graph(boxes: Array) -> dict[int, set[int]]:
    """The β-skeleton of boxes by its definition: corners and the middles of the sides, every pair of points tried."""
    sides = [
        (box, x, y) for box, (x0, y0, x1, y1) in enumerate(boxes) for x in (x0, x1) for y in (y0, (y0 + y1) / 2, y1)
    ]
    joined: dict[int, set[int]] = {box: set() for box in range(len(boxes))}
    for one, other in by_definition(np.array([side[1:] for side in sides])):
        a, b = sides[one][0], sides[other][0]
        if a != b:
            joined[a].add(b)
            joined[b].add(a)
    return joined


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


def literal_paths(joined: dict[int, set[int]], path: list[int], ends: set[int]) -> Iterator[list[int]]:
    """Every path without a word twice from one word to any of some others."""
    if path[-1] in ends:
        yield path
    for near in joined[path[-1]] - set(path):
        yield from literal_paths(joined, [*path, near], ends)


def algorithm_1(words: Words, needle: str) -> tuple[float, Middles]:
    """Return the similarity of the best paths above T, and the middle of each path with this similarity."""
    best, middles = LEAST_SIMILARITY, Middles()
    for page in words.pages.tolist():
        numbers = words.range_of(page)
        texts, boxes = [words.word(number) for number in numbers], words.boxes[numbers.start : numbers.stop]
        joined, own = literal_graph(boxes), needle.split()
        firsts, lasts = (
            {at for at, text in enumerate(texts) if literal_similarity(text, end) >= LEAST_SIMILARITY}
            for end in (own[0], own[-1])
        )
        for path in (path for first in firsts for path in literal_paths(joined, [first], lasts)):
            similar = literal_similarity(" ".join(texts[at] for at in path), needle)
            if similar > best:
                best, middles = similar, Middles()
            if similar == best > LEAST_SIMILARITY:
                low, high = boxes[path, :2].min(axis=0), boxes[path, 2:].max(axis=0)
                middles.add((page, *((low + high) / 2).round(9).tolist()))
    return (best, middles) if middles else (0.0, middles)


def drawn_page(case: int) -> tuple[Words, str]:
    """One or two pages of a few short words anywhere, and a string made of words like theirs."""
    draws = DRAWS.at(case)
    words = []
    for number in range(draws.integer("words", 1, 7)):
        at = draws.at(number)
        x, y = at.fraction("x"), at.fraction("y")
        width, height = 0.02 + 0.1 * at.fraction("width"), 0.02 + 0.03 * at.fraction("height")
        words.append(Word(at.integer("page", 0, 5) // 5, drawn_word(at), (x, y, x + width, y + height)))
    own = [drawn_word(draws.at("needle", n)) for n in range(draws.integer("needle", 1, 3))]
    if draws.integer("from the page", 0, 1):
        own[0] = draws.choice("word", words).text
    return words_of(words, "drawn"), " ".join(own)


@cache
def drawn_case(case: int) -> tuple[Words, str, tuple[float, Middles]]:
    """A drawn page, the string, and what Algorithm 1 finds done literally; not to be changed."""
    words, needle = drawn_page(case)
    return words, needle, algorithm_1(words, needle)


def drawn_word(draws: Draws) -> str:
    return "".join(draws.at(at).choice("letter", "aab1") for at in range(draws.integer("letters", 1, 4)))


@pytest.mark.parametrize("part", [0, 1, *(pytest.param(part, marks=pytest.mark.rare) for part in range(2, 16))])
def test_the_search_finds_what_algorithm_1_finds_done_literally(part: int) -> None:
    for case in range(250 * part, 250 * part + 250):
        words, needle, expected = drawn_case(case)
        found = Paths(letters_of(words)).best(needle, words.pages.tolist())
        assert (found.similarity, rounded(found)) == expected, (case, needle)
        assert found.is_exhaustive


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.rare) for part in range(1, 8))])
def test_on_some_pages_it_finds_what_algorithm_1_finds_there_unless_another_page_is_better(part: int) -> None:
    for case in range(125 * part, 125 * part + 125):
        words, needle, (best, middles) = drawn_case(case)
        paths = Paths(letters_of(words))
        for pages in ([0], [1], [0, 1], []):
            near = {middle for middle in middles if middle[0] in pages}
            found = paths.best_near(needle, pages)
            assert (found.similarity, rounded(found)) == ((best, near) if near else (0.0, set())), (case, pages)


def rounded(found: Found) -> Middles:
    return {(page, round(x, 9), round(y, 9)) for page, x, y in found.places}


def test_a_longer_path_that_is_as_similar_as_a_word_is_found_too() -> None:
    """Both spell nine letters of the string in fourteen, and 9 / (9 / 14) is below 14 in floating point."""
    word = Word(0, "abcdxxxxxefghi", (0.1, 0.1, 0.24, 0.12))
    row = [Word(0, "abcdxxxxe", (0.1, 0.8, 0.19, 0.82)), Word(0, "fghi", (0.2, 0.8, 0.24, 0.82))]
    words = words_of([word, *row], "tie")
    found = Paths(letters_of(words)).best("abcdefghi", (0,))
    assert (found.similarity, rounded(found)) == algorithm_1(words, "abcdefghi")
    assert (found.similarity, len(found.places)) == (9 / 14, 2)


def test_a_search_that_a_bound_cuts_says_so_and_still_finds_a_path(monkeypatch: pytest.MonkeyPatch) -> None:
    words, needle = grid(12, "abab"), "abba baba abaa bbab aaaa"
    monkeypatch.setattr(searched, "MAX_UNDER_WAY", 1 << 30)
    whole = Paths(letters_of(words)).best(needle, (0,))
    monkeypatch.setattr(searched, "MAX_UNDER_WAY", 1)
    cut = Paths(letters_of(words)).best(needle, (0,))
    assert (whole.is_exhaustive, cut.is_exhaustive) == (True, False)
    assert LEAST_SIMILARITY < cut.similarity <= whole.similarity


@pytest.mark.parametrize("name", ["MAX_EQUAL", "MAX_STARTS"])
def test_the_other_bounds_say_so_too(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    words, needle = grid(8, "ab"), {"MAX_EQUAL": "abba abba", "MAX_STARTS": "aaabz baba"}[name]
    assert Paths(letters_of(words)).best(needle, (0,)).is_exhaustive
    monkeypatch.setattr(searched, name, 1)
    assert not Paths(letters_of(words)).best(needle, (0,)).is_exhaustive


def grid(side: int, letters: str) -> Words:
    """A page of words of drawn letters in rows and columns."""
    words = []
    for number in range(side * side):
        text = "".join(DRAWS.at("grid", number, at).choice("letter", letters) for at in range(4))
        x, y = number % side / side, number // side / side
        words.append(Word(0, text, (x, y, x + 0.6 / side, y + 0.5 / side)))
    return words_of(words, "grid")


@pytest.mark.parametrize(
    ("texts", "needle", "similarity", "is_exhaustive"),
    [
        (["a"] * 2499 + ["b"], "a " * 200 + "b", 1, False),
        (["a", "b"] * 1250, " ".join("ab" * 100), 1, False),
        (["x" * 60_000, "a"] * 20, "a a", 1 / 3, True),
        (["the"] * 2500, "the answer is the answer that is on the last line of the", 26 / 56, False),
    ],
    ids=["one letter", "two letters", "words without end", "one word"],
)
def test_hostile_pages_are_searched_within_bounds(
    texts: Sequence[str], needle: str, similarity: float, is_exhaustive: bool
) -> None:
    side = 50
    words = words_of(
        (
            Word(0, text, (n % side / side, n // side / side, (n % side + 0.9) / side, (n // side + 0.9) / side))
            for n, text in enumerate(texts)
        ),
        "hostile",
    )
    found = Paths(letters_of(words)).best(needle, (0,))
    assert found.similarity == pytest.approx(similarity)
    assert found.is_exhaustive == is_exhaustive


def test_a_word_has_no_more_neighbours_than_the_bound_and_the_nearest_stand_first() -> None:
    around = [(0.5 + 0.4 * np.cos(angle), 0.5 + 0.4 * np.sin(angle)) for angle in np.linspace(0, 6.2, 60)]
    boxes = [(0.499, 0.499, 0.501, 0.501), *((x, y, x + 0.001, y + 0.001) for x, y in around)]
    words = words_of((Word(0, "a", box) for box in boxes), "star")
    table = neighbours_on(words, 0)
    assert table.shape == (61, MAX_NEIGHBOURS)
    near = [number for number in table[0].tolist() if number >= 0]
    assert len(near) == MAX_NEIGHBOURS
    gaps = [float(np.abs(words.boxes[number, :2] - words.boxes[0, :2]).sum()) for number in near]
    assert gaps == pytest.approx(sorted(gaps), abs=0.005)


def test_words_of_a_page_with_too_many_are_neighbours_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    words = table()
    assert Paths(letters_of(words)).best("left one", (0,)).is_exhaustive
    monkeypatch.setattr(searched, "MAX_WORDS", len(words) - 1)
    paths = Paths(letters_of(words))
    assert not paths.best("left one", (0,)).is_exhaustive
    assert not paths.best("left ones", (0,)).is_exhaustive
    assert paths.best("one", (0,)).is_exhaustive
    assert not paths.best_near("mgs one", (1,)).is_exhaustive  # it is on another page, whose search was cut
    near = [{number for number in row if number >= 0} for row in neighbours_on(words, 0).tolist()]
    assert near == [{n for n in (number - 1, number + 1) if 0 <= n < len(words)} for number in range(len(words))]


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
    found = Paths(letters_of(table(order))).best(needle, (0,))
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
    paths = Paths(letters_of(table()))
    for needle, page in (("zzzz qqqq", 0), ("", 0), ("left", 7)):
        assert not paths.best(needle, (page,)).is_located
        assert not paths.best_near(needle, (page,)).is_located


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
    best = best_runs(letters_of(words), needle, ranges, above)
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
    found = Reading(letters_of(words)).best("chapel hill", (0, 1))
    assert found.similarity < 1
    assert all(place.page in (0, 1) for place in found.places)


@pytest.mark.parametrize("find", [Reading, Paths])
def test_what_another_page_has_better_is_not_found_and_what_it_has_as_good_is(find: type[Reading | Paths]) -> None:
    locator = find(letters_of(document("up to 12 mg", "up to 12 mgs", "up to 12 mg")))
    assert not locator.best_near("up to 12 mgss", (0, 2)).is_located
    assert not locator.best_near("up to 12 mgs", (0,)).is_located
    assert [place.page for place in locator.best_near("up to 12 mgss", (1,)).places] == [1]
    same = find(letters_of(document("up to 12 mg", "up to 12 mg")))
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
