"""Text and images together."""

import pytest

from tokenization import CrossModalCounter, PatchRule, TokenCount, TokenizationError, load_tokenizer

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
