"""Probes against an endpoint that is a function: what is found out, and what is noted."""

from collections.abc import Callable

import pytest
from counting_server import RULE

from mmlongbench.models.probes import Probed, Probes
from mmlongbench.models.receipts import Costs, sizes_of
from mmlongbench.prompt import Image, Prompt
from tokenization import TextTokenizer, load_tokenizer

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
        sizes = [(resized(width), resized(height)) for width, height in sizes_of(prompt, SIZES.__getitem__)]
        return template + round(ratio * text) + RULE.total(sizes) + wrapper * len(sizes)

    return count, asked


def probed(count: Callable[[Prompt], int | None], tokenizer: TextTokenizer | None = None) -> Probed:
    return Probes(count, {"d": Costs(RULE, tokenizer, LLAMA.count)}, SIZES.__getitem__).run({"d": PROMPTS})


@pytest.mark.parametrize(("ratio", "template", "wrapper"), [(1.0, 18, 0), (0.9, 3, 2), (1.3, 250, 5)])
def test_eight_calls_find_template_ratio_and_wrapper(ratio: float, template: int, wrapper: int) -> None:
    count, asked = endpoint(ratio, template, wrapper)
    found = probed(count).calibrations["d"]
    assert len(asked) == 8
    assert found.ratio == pytest.approx(ratio, abs=0.002)
    assert found.constant == pytest.approx(template, abs=1)
    assert found.wrapper == pytest.approx(wrapper, abs=0.2)
    assert probed(count).notes == ()


def test_probes_are_made_of_the_prompts_own_texts_and_images() -> None:
    count, asked = endpoint()
    probed(count)
    assert {path for prompt in asked for path in prompt.images} == set(SIZES)
    assert all("harbour" in prompt.text for prompt in asked if len(prompt.text) > 200)
    several = max(asked, key=lambda prompt: len(prompt.images))
    assert set(several.images) == {"small.jpg"}
    assert "\n\n" in several.parts


def test_large_images_that_a_server_shrinks_are_noted() -> None:
    count, _ = endpoint(resized=lambda side: min(side, 280))
    (note,) = probed(count).notes
    assert note == (
        "the endpoint counts 102 tokens for an image of 1400 × 1400 pixels, the rule of qwen2.5-vl 2,502: "
        "it changes such images, or another rule fits (--count-as)"
    )


def test_a_rule_that_fits_no_image_is_noted_for_each_size_and_leaves_no_wrapper() -> None:
    count, _ = endpoint(wrapper=500)
    found = probed(count)
    assert len(found.notes) == 3
    assert found.calibrations["d"].wrapper == 0


def test_the_models_own_tokenizer_makes_the_calibration_exact() -> None:
    def by_parts(prompt: Prompt) -> int:
        text = sum(LLAMA.count(part) for part in prompt.parts if isinstance(part, str))
        return 18 + text + RULE.total(sizes_of(prompt, SIZES.__getitem__))

    found = probed(by_parts, LLAMA).calibrations["d"]
    assert (found.is_exact, found.constant, found.wrapper, found.ratio) == (True, 18, 0, 1)
    count, _ = endpoint(ratio=1.2)
    other = probed(count, LLAMA)
    assert not other.calibrations["d"].is_exact
    assert any("does not count texts as the endpoint does" in note for note in other.notes)


def test_an_endpoint_that_counts_nothing_is_asked_once() -> None:
    asked = []

    def count(prompt: Prompt) -> None:
        asked.append(prompt)

    assert probed(count) == Probed(
        {}, ("the endpoint does not say how many tokens a prompt has: there are no receipts",)
    )
    assert len(asked) == 1
