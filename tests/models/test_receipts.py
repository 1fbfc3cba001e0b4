"""What a difference between expected and counted tokens means; costs that fit in the head."""

from collections.abc import Sequence

import pytest
from counting_server import RULE
from hypothesis import given
from hypothesis import strategies as st

from mmlongbench.models.receipts import Calibration, Cost, Costs, Paid, Receipts, receipts
from mmlongbench.prompt import Image, Prompt
from tokenization import vision_rule

PLAIN = Calibration(constant=18, wrapper=2)
IMAGES = (100, 200, 200, 300)
EXPECTED = 18 + 50 + sum(IMAGES) + 4 * 2
"""The tokens of a prompt with these images and 50 tokens of text."""


def checked(*missing: int, calibration: Calibration = PLAIN, images: Sequence[int] = IMAGES) -> Receipts:
    """Receipts of calls that miss some tokens each, and of ten that miss none."""
    cost = Cost(50, tuple(images))
    expected = calibration.tokens(cost)
    calls = [Paid(f"call {number}", cost, expected, expected - each) for number, each in enumerate(missing)]
    return receipts("f", [*calls, *(Paid(f"good {n}", cost, expected, expected) for n in range(10))], calibration)


def test_a_prompt_costs_template_text_images_and_wrappers() -> None:
    assert PLAIN.tokens(Cost(50, IMAGES)) == EXPECTED
    assert Calibration(18, 2, ratio=1.5).tokens(Cost(50, (100,), saved=1)) == 18 + 75 + 100 + 2 - 1


@pytest.mark.parametrize(
    ("missing", "name"),
    [
        (102, "image-lost"),
        (202, "image-lost"),
        (404, "image-lost"),  # both images of 200
        (808, "image-lost"),  # all of them
        (150, "image-shrunk"),
        (600, "image-shrunk"),
        (840, "prompt-cut"),  # more than all images cost
        (-30, "more-tokens"),
    ],
)
def test_a_difference_is_named_by_what_most_likely_happened(missing: int, name: str) -> None:
    found = checked(missing)
    assert [(each.name, each.fault, each.missing) for each in found.off] == [("call 0", name, missing)]


def test_without_images_fewer_tokens_mean_a_cut() -> None:
    assert [each.fault for each in checked(12, images=()).off] == ["prompt-cut"]
    assert checked(12, images=()).cheapest_image is None


def test_calls_of_different_cost_that_end_at_one_count_were_cut() -> None:
    costs = [Cost(50, (100,) * number) for number in range(4, 12)]
    paid = [Paid(str(n), cost, PLAIN.tokens(cost), min(PLAIN.tokens(cost), 800)) for n, cost in enumerate(costs)]
    found = receipts("f", paid, Calibration(18, 2, is_exact=True))
    assert {each.fault for each in found.off} == {"prompt-cut"}
    assert len(found.off) == 4  # 8 to 11 images


def test_the_smallest_visible_loss_is_said_and_a_cheaper_image_is_hidden() -> None:
    found = checked(0, 0, images=(3, 300))
    assert (found.tolerance, found.smallest_loss, found.cheapest_image) == (7, 8, 5)
    assert found.hides_images
    assert not checked(0).hides_images


def test_an_image_lost_in_every_call_is_no_error_of_the_probes() -> None:
    cost = Cost(50, IMAGES)
    paid = [Paid(str(n), cost, EXPECTED, EXPECTED - 102) for n in range(20)]
    assert len(receipts("f", paid, PLAIN).off) == 20
    slightly = [Paid(str(n), cost, EXPECTED, EXPECTED - 8) for n in range(20)]
    assert (receipts("f", slightly, PLAIN).shift, receipts("f", slightly, PLAIN).off) == (8, ())


def test_with_the_models_own_tokenizer_every_token_counts() -> None:
    exact = Calibration(18, 2, is_exact=True)
    assert [each.missing for each in checked(1, 0, -1, calibration=exact).off] == [1, -1]
    assert checked(1, calibration=exact).smallest_loss == 1


@given(st.lists(st.integers(0, 3_000), min_size=1, max_size=30), st.data())
def test_calls_as_expected_are_never_reported(texts: list[int], data: st.DataObject) -> None:
    costs = [Cost(text, tuple(data.draw(st.lists(st.integers(1, 3_000), max_size=6)))) for text in texts]
    paid = [Paid(str(n), cost, PLAIN.tokens(cost), PLAIN.tokens(cost)) for n, cost in enumerate(costs)]
    assert receipts("f", paid, PLAIN).off == ()


@given(st.lists(st.integers(60, 3_000), min_size=1, max_size=12), st.data())
def test_a_lost_image_that_can_be_seen_is_seen(images: list[int], data: st.DataObject) -> None:
    cost = data.draw(st.sampled_from(images))
    found = checked(cost + 2, images=images)
    assert ("call 0" in {each.name for each in found.off}) == (cost + 2 >= found.smallest_loss)


def test_images_are_counted_as_the_rule_says_by_place_and_by_neighbours() -> None:
    prompt = Prompt.of(["Look: ", Image("a"), Image("b"), " Well?"])
    costs = Costs(RULE, None, len)
    assert costs.of(prompt, [(56, 56), (84, 56)]) == Cost(len("Look:  Well?"), (6, 8))
    assert costs.of(prompt, [(56, 56), (84, 56)], text=7).text == 7
    shared = vision_rule("phi-3-vision")
    sizes = [(336, 336), (672, 336)]
    made = Costs(shared, None, len).of(prompt, sizes)
    assert sum(made.images) - made.saved == shared.total(sizes, 1 if shared.shared else 0)
