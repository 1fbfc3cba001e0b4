"""Text and images together."""

from dataclasses import replace

import pytest

from tokenization import (
    CrossModalCounter,
    PatchRule,
    TokenCount,
    TokenizationError,
    Turns,
    load_tokenizer,
    vision_rule,
)

COUNTER = CrossModalCounter(load_tokenizer("llama2"), PatchRule(patch=2, unshuffle=1, min_pixels=0))


def test_counts_add_up_by_kind() -> None:
    assert TokenCount(1, 20) + TokenCount(3, 400) == TokenCount(text=4, image=420)
    assert TokenCount(4, 420).total == 424


def test_text_and_images() -> None:
    assert COUNTER.count("Hello, world!", []) == TokenCount(text=4, image=0)
    assert COUNTER.count("Hello, world!", iter([(4, 4), (6, 4)])) == TokenCount(text=4, image=10)
    assert COUNTER.count("", [(4, 4)]).total == 4


def test_errors_pass_through() -> None:
    with pytest.raises(TokenizationError, match="image size 0 x 4"):
        COUNTER.count("", [(4, 4), (0, 4)])
    with pytest.raises(TokenizationError, match=r"U\+D800 at position 0"):
        COUNTER.count("\ud800", [])


def test_a_prompt_of_the_benchmark_is_one_text_a_turn() -> None:
    prompt: Turns = [("user", ["Hello, ", (4, 4), "world!"]), ("assistant", ["Hello, world!"])]
    assert COUNTER.prompt(prompt) == TokenCount(text=8, image=4)
    assert COUNTER.additive


def test_a_prompt_of_a_model_is_counted_text_by_text_and_its_images_together() -> None:
    counter = CrossModalCounter(load_tokenizer("llama2"), vision_rule("qwen2.5-vl"))
    assert not counter.additive
    size = (1224, 1584)
    whole = counter.prompt([("user", ["Hello, ", size, size, "world!"])])
    assert whole.text == sum(map(counter.text.count, ("Hello, ", "world!")))
    assert whole.image == 2 * 2510 == 2 * counter.image_price(*size)
    crowded = CrossModalCounter(counter.text, vision_rule("nvila"))
    assert crowded.image_price(*size) == 257 < crowded.prompt([("user", [size])]).image


def test_images_that_share_tokens_are_neighbours_in_one_turn() -> None:
    shares = replace(vision_rule("qwen2.5-vl"), shared=1)
    counter, size = CrossModalCounter(load_tokenizer("llama2"), shares), (28, 28)
    one = counter.prompt([("user", [size])]).image
    assert counter.prompt([("user", [size, size])]).image == 2 * one - 1
    assert (
        counter.prompt([("user", ["a", size, "b"]), ("assistant", ["c"]), ("user", [size, size])]).image == 3 * one - 1
    )
