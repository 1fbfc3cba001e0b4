"""Probes: about eight small calls that show how an endpoint counts, before the examples are sent.

One call with almost nothing, three with one image of different size; and for each dataset, three with texts of
different size and one with several equal images between the dataset's own words. They are made of the release's texts
and images: so the texts are like those of the examples, and a server that may read only the folder of images can read
them.
"""

import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from mmlongbench.messages import Size
from mmlongbench.models.receipts import LEAST_TOLERANCE, Calibration, Cost, Costs
from mmlongbench.prompt import Image, Part, Prompt

NOTHING = "a"
"""The text of the call with almost nothing."""
TEXT_SIZES = (1_500, 6_000, 24_000)
"""About how many characters the three texts have, which are made of pieces of all given prompts."""
SEVERAL = 32
"""The maximum number of images of the call with several equal images."""
SEVERAL_TOKENS = 8_192
"""About how many tokens these images cost at most; there are at least two of them."""
NO_USAGE = "the endpoint does not say how many tokens a prompt has: there are no receipts"
"""What is said if the endpoint counts nothing."""
_AROUND = 100
"""The characters of a text that are kept on each side of an image, in the call with several images."""
_LEAST_WRAPPER, _MOST_WRAPPER = -2, 64
"""The tokens around an image that are plausible; anything else means that the rule is not the model's."""

Asked = Callable[[Prompt], int | None]
"""Sends a prompt, and returns the endpoint's count of its tokens; None if it gives none."""


@dataclass(frozen=True, slots=True)
class Probed:
    """What the probes found."""

    calibrations: Mapping[str, Calibration]
    """The calibration of each dataset; empty if the endpoint counts nothing."""
    notes: tuple[str, ...] = ()
    """Sentences about what is not as the model's rule says."""


@dataclass(slots=True)
class Probes:
    """Calibrates an endpoint for the datasets of a run."""

    ask: Asked
    costs: Mapping[str, Costs]
    """Counts the prompts of each dataset, all by one rule and one tokenizer of the model."""
    size: Callable[[str], Size]
    """Returns the size in which an image is sent."""
    notes: list[str] = field(default_factory=list)

    def run(self, prompts: Mapping[str, Sequence[Prompt]]) -> Probed:
        """Ask the endpoint, and return what was found; `prompts` are some prompts of each dataset."""
        nothing = self.ask(Prompt.of([NOTHING]))
        if nothing is None:
            return Probed({}, (NO_USAGE,))
        any_of_them = self.costs[next(iter(prompts))]
        base, tokenizer = any_of_them.of(Prompt.of([NOTHING]), []).text, any_of_them.tokenizer
        ratios = {
            name: self._ratio(self.costs[name], [each.text for each in shown], nothing, base)
            for name, shown in prompts.items()
        }
        exact = tokenizer is not None and all(ratio is None for ratio in ratios.values())
        if tokenizer is not None and not exact:
            self.notes.append(f"{tokenizer.name} does not count texts as the endpoint does; the ratio is calibrated")
        found = [ratio for ratio in ratios.values() if ratio is not None]
        usual = statistics.median(found) if found else 1.0
        images = sorted({path for shown in prompts.values() for each in shown for path in each.images})
        by_cost = sorted(images, key=lambda path: (self._one(path).images[0], path))
        plain = Calibration(nothing - usual * base, 0.0, usual)
        if by_cost:
            self._check_sizes(by_cost, plain)
        calibrations = {}
        for name, ratio in ((name, usual if ratio is None else ratio) for name, ratio in ratios.items()):
            known = Calibration(nothing - ratio * base, 0.0, ratio, exact)
            calibrations[name] = replace(known, wrapper=self._wrapper(self.costs[name], prompts[name], by_cost, known))
        return Probed(calibrations, tuple(self.notes))

    def _ratio(self, costs: Costs, texts: Sequence[str], nothing: int, base: int) -> float | None:
        """Return the tokens of the endpoint for each token here; None if it counts each text as the tokenizer here."""
        points = []
        for size in TEXT_SIZES:
            shown = _pieces(texts, size)
            usage, here = self.ask(Prompt.of([shown])), costs.of(Prompt.of([shown]), []).text
            if usage is not None and here > base:
                points.append((here - base, usage - nothing))
        if not points or (costs.tokenizer and all(here == there for here, there in points)):
            return None
        return sum(here * there for here, there in points) / sum(here * here for here, _ in points)

    def _check_sizes(self, by_cost: Sequence[str], calibration: Calibration) -> None:
        """Note the images of three sizes whose count is not that of the rule."""
        rule, over = next(iter(self.costs.values())).rule.name, dict[str, float]()
        for path in dict.fromkeys((by_cost[0], by_cost[len(by_cost) // 2], by_cost[-1])):
            over[path] = self._over(Prompt.of([Image(path), NOTHING]), self._one(path), calibration)
        usual = over[by_cost[0]] if _LEAST_WRAPPER <= over[by_cost[0]] <= _MOST_WRAPPER else 0.0
        for path, tokens in over.items():
            if abs(tokens - usual) > LEAST_TOLERANCE + 1:
                expected = self._one(path).images[0]
                self.notes.append(
                    f"the endpoint counts {expected + tokens:,.0f} tokens for {_said(self.size(path))}, the rule of "
                    f"{rule} {expected + usual:,.0f}: it changes such images, or another rule fits (--count-as)"
                )

    def _wrapper(
        self, costs: Costs, prompts: Sequence[Prompt], by_cost: Sequence[str], calibration: Calibration
    ) -> float:
        """Return the tokens that each image of a dataset adds beyond the rule: its markers, and the change in the
        tokens of the text that it splits.
        """
        most = max(prompts, key=lambda prompt: len(prompt.images))
        if not most.images:
            return 0.0
        small = next(path for path in by_cost if any(path in prompt.images for prompt in prompts))
        several = Prompt.of(_around_images(most, small, max(2, SEVERAL_TOKENS // max(1, self._one(small).images[0]))))
        number = len(several.images)
        cost = costs.of(several, [self.size(small)] * number)
        wrapper = self._over(several, cost, calibration) / number
        if not _LEAST_WRAPPER <= wrapper <= _MOST_WRAPPER:  # the images are not counted by the rule, which is noted
            return 0.0
        return round(wrapper) if calibration.is_exact else wrapper

    def _one(self, path: str) -> Cost:
        return next(iter(self.costs.values())).of(Prompt.of([Image(path), NOTHING]), [self.size(path)])

    def _over(self, prompt: Prompt, cost: Cost, calibration: Calibration) -> float:
        """Return how many tokens the endpoint counts beyond the expected ones."""
        usage = self.ask(prompt)
        expected = calibration.constant + calibration.ratio * cost.text + sum(cost.images) - cost.saved
        return 0.0 if usage is None else usage - expected


def _said(size: Size) -> str:
    return f"an image of {size[0]} × {size[1]} pixels"


def _pieces(texts: Sequence[str], size: int) -> str:
    """Return a text of about some characters, made of equal pieces from the middle of some texts."""
    each = size // len(texts)
    return "\n".join(text[max(0, (len(text) - each) // 2) :][:each] for text in texts)


def _around_images(prompt: Prompt, image: str, most: int) -> Iterator[Part]:
    """Yield the beginning of a prompt, at most some images long, with one image in the place of each, and with only the
    words near images.
    """
    number = 0
    for part in prompt.parts:
        if isinstance(part, Image):
            number += 1
            yield Image(image)
        else:
            yield part if len(part) <= 2 * _AROUND else f"{part[:_AROUND]}{part[-_AROUND:]}"
            if number >= min(most, SEVERAL):
                return
