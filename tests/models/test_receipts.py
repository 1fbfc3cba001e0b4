"""Receipts: what a difference between expected and counted tokens means; probes of an endpoint that is a function."""

from collections.abc import Callable, Sequence

import pytest
from counting_server import RULE
from hypothesis import given
from hypothesis import strategies as st

from mmlongbench.models.receipts import Calibration, Cost, Costs, Paid, Receipts, calibrate, receipts
from mmlongbench.prompt import Image, Prompt
from tokenization import CrossModalCounter, TextTokenizer, load_tokenizer, vision_rule

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


def test_the_smallest_visible_loss_is_said_a_cheaper_image_is_hidden_and_without_images_it_is_a_cut() -> None:
    found = checked(0, 0, images=(3, 300))
    assert (found.tolerance, found.smallest_loss, found.cheapest_image) == (7, 8, 5)
    assert found.hides_images
    assert not checked(0).hides_images
    assert [each.fault for each in checked(12, images=()).off] == ["prompt-cut"]
    assert checked(12, images=()).cheapest_image is None


def test_calls_of_different_cost_that_end_at_one_count_were_cut() -> None:
    costs = [Cost(50, (100,) * number) for number in range(4, 12)]
    paid = [Paid(str(n), cost, PLAIN.tokens(cost), min(PLAIN.tokens(cost), 800)) for n, cost in enumerate(costs)]
    found = receipts("f", paid, Calibration(18, 2, is_exact=True))
    assert {each.fault for each in found.off} == {"prompt-cut"}
    assert len(found.off) == 4  # 8 to 11 images


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
    costs = Costs(RULE, None, len, {"a": (56, 56), "b": (84, 56)}.__getitem__)
    assert costs.of(prompt) == Cost(len("Look:  Well?"), (6, 8))
    assert costs.of(prompt, text=7).text == 7
    shared = vision_rule("phi-3-vision")
    sizes = {"a": (336, 336), "b": (672, 336)}
    cost = Costs(shared, None, len, sizes.__getitem__).of(prompt)
    assert sum(cost.images) - cost.saved == shared.total(list(sizes.values()), 1 if shared.shared else 0)


SIZES = {"small.jpg": (56, 56), "middle.jpg": (280, 280), "large.jpg": (1400, 1400)}
WORDS = "The harbour opens at seven and closes at dusk. "
PROMPTS = [
    Prompt.of(["Read.\n", *(part for path in SIZES for part in (Image(path), "\n\n")), WORDS * number, "\nWhy?"])
    for number in (40, 200, 800)
]
LLAMA = load_tokenizer("llama2")


def endpoint(
    ratio: float = 1.0, template: int = 18, wrapper: int = 0, resized: Callable[[int], int] = lambda side: side
) -> tuple[Callable[[Prompt], int | None], list[Prompt]]:
    asked: list[Prompt] = []

    def count(prompt: Prompt) -> int:
        asked.append(prompt)
        text = LLAMA.count(prompt.text)
        sizes = [(resized(width), resized(height)) for width, height in map(SIZES.__getitem__, prompt.images)]
        return template + round(ratio * text) + RULE.total(sizes) + wrapper * len(sizes)

    return count, asked


def probed(
    count: Callable[[Prompt], int | None], tokenizer: TextTokenizer | None = None
) -> tuple[Calibration, list[str]]:
    costs = {
        "d": Costs(RULE, CrossModalCounter(tokenizer, RULE) if tokenizer else None, LLAMA.count, SIZES.__getitem__)
    }
    calibrations, notes = calibrate(count, costs, {"d": PROMPTS})
    return calibrations["d"], notes


@pytest.mark.parametrize(("ratio", "template", "wrapper"), [(1.0, 18, 0), (0.9, 3, 2), (1.3, 250, 5)])
def test_eight_calls_find_template_ratio_and_wrapper(ratio: float, template: int, wrapper: int) -> None:
    count, asked = endpoint(ratio, template, wrapper)
    found, notes = probed(count)
    assert (len(asked), notes) == (8, [])
    assert found.ratio == pytest.approx(ratio, abs=0.002)
    assert found.constant == pytest.approx(template, abs=1)
    assert found.wrapper == pytest.approx(wrapper, abs=0.2)


def test_probes_are_made_of_the_prompts_own_texts_and_images() -> None:
    count, asked = endpoint()
    probed(count)
    assert {path for prompt in asked for path in prompt.images} == set(SIZES)
    assert all("harbour" in prompt.text for prompt in asked if len(prompt.text) > 200)
    several = max(asked, key=lambda prompt: len(prompt.images))
    assert set(several.images) == {"small.jpg"}
    assert "\n\n" in several.parts


def test_what_an_endpoint_counts_otherwise_is_noted() -> None:
    shrinking, _ = endpoint(resized=lambda side: min(side, 280))
    assert probed(shrinking)[1] == [
        "the endpoint counts 102 tokens for an image of 1400 × 1400 pixels, the rule of qwen2.5-vl 2,502: "
        "it changes such images, or another rule fits (--count-as)",
    ]
    another, _ = endpoint(wrapper=500)
    found, notes = probed(another)
    assert (len(notes), found.wrapper) == (3, 0)  # a note for each size


def test_the_models_own_tokenizer_makes_the_calibration_exact() -> None:
    def by_parts(prompt: Prompt) -> int:
        text = sum(LLAMA.count(part) for part in prompt.parts if isinstance(part, str))
        return 18 + text + RULE.total([SIZES[path] for path in prompt.images])

    found, _ = probed(by_parts, LLAMA)
    assert (found.is_exact, found.constant, found.wrapper, found.ratio) == (True, 18, 0, 1)
    count, _ = endpoint(ratio=1.2)
    other, notes = probed(count, LLAMA)
    assert not other.is_exact
    assert any("does not count texts as the endpoint does" in note for note in notes)
