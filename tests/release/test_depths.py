"""Where needles stand in a prompt: the arithmetic that the audit compares with the depths of a record."""

import pytest

from mmlongbench.prompt import Prompt
from mmlongbench.release.depths import Haystack, placement_faults
from mmlongbench.release.positions import Found, NeedlePlaces


@pytest.mark.parametrize(
    ("start", "achieved", "depth", "said"),
    [
        (64, 0.5, 0.5, None),
        (64, 0.0, 0.5, "depth_achieved is 0.0, but in the prompt it is 0.5000"),
        (5, 0.5, 0.5, "needle_start is 5, but in the prompt the tokens before needles are 4, 64"),
        (64, 0.5, 0.57, "depth is 0.57, but in the prompt the needle is at 0.5000"),
        (64, 0.5, 0.53, None),
    ],
)
def test_of_several_needles_the_one_at_the_depth_is_looked_at(
    start: int, achieved: float, depth: float, said: str | None
) -> None:
    found = [Found(4, 10, is_sentence=False), Found(64, 10, is_sentence=False)]
    hay = Haystack(100, (0, 50), (0, 10, 20, 30, 40, 50, 60, 100), slack=0)
    record = {"needle_start": start, "depth_achieved": achieved, "depth": depth}
    assert list(placement_faults(record, found, hay, is_single=True)) == ([said] if said else [])


def test_a_sentence_between_two_units_may_stand_in_the_middle_of_either() -> None:
    found = [Found(844, 11, is_sentence=True)]
    hay = Haystack(1665, (844,), (0, 788, 819, 969, 1665), slack=2)
    record = {"needle_start": [844], "depth_achieved": [844 / 1665]}
    for place, is_near in ((818, True), (817, True), (810, False), (900, True), (960, False)):
        said = list(placement_faults({**record, "depth_requested": [place / 1665]}, found, hay, is_single=False))
        assert (not said) == is_near, place


def test_thousands_of_equal_needles_are_found_one_after_the_other() -> None:
    places = NeedlePlaces(Prompt.of(["Read.\n", "It is so. " * 20_000]), [0], 6)
    assert [places.take("It is so.") for _ in range(20_000)] == list(range(6, 6 + 10 * 20_000, 10))
