"""Offered answers: a record whose right answer is not among them is refused, with what was found."""

import pytest

from mmlongbench.prompt import Image
from mmlongbench.task.choices import Choices


@pytest.mark.parametrize("right", [-1, 2, "A", None])
def test_a_right_answer_that_is_not_offered_is_refused(right: object) -> None:
    with pytest.raises(ValueError, match=rf"the right answer is {right!r}, expected a place from 0 to 1"):
        Choices(("yes", "no"), right)  # type: ignore[arg-type]


def test_texts_beside_images_are_refused() -> None:
    with pytest.raises(ValueError, match="texts beside images"):
        Choices(("yes", Image("no.jpg")), 0)


def test_the_chance_is_one_of_those_offered() -> None:
    assert Choices(("a", "b", "c", "d"), 3).chance == 0.25
