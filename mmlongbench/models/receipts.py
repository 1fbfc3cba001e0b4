"""Token receipts: what a prompt should cost on a model, and what the difference to the endpoint's count means.

`prompt tokens = constant + ratio × text + Σ (image by the model's rule + wrapper) + turn × further turns`. The constant
(the chat template), the wrapper (markers around an image), the ratio (tokens of the model's tokenizer for each token
counted here) and what the template adds for each further turn come from about eight small calls, the probes, and never
from the calls that they are compared with: one call with almost nothing, one of three such turns if there are
conversations, three with one image of different size; and for each dataset, three with texts of different size and one
with several equal images between the dataset's own words. Probes are made of the release's texts and images: so the
texts are like those of the examples, and a server that may read only the folder of images can read them.
"""

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from mmlongbench.errors import ReleaseError
from mmlongbench.messages import Size
from mmlongbench.prompt import Image, Part, Prompt
from tokenization import CrossModalCounter, TokenizationError, VisionRule

FAULTS = {
    "image-lost": "images were lost",
    "image-shrunk": "images were made smaller",
    "prompt-cut": "the prompt was cut",
    "more-tokens": "something was added",
}
"""What a difference means, in words."""
LEAST_TOLERANCE = 2
"""A difference of this many tokens is never reported, unless the model's own tokenizer counts the text."""
NO_USAGE = "the endpoint does not say how many tokens a prompt has: there are no receipts"
"""What is said if the endpoint counts nothing."""
_NORMAL = 1.4826
"""The ratio of a normal distribution's standard deviation to its median absolute deviation."""
_NOTHING = "a"
"""The text of the probe with almost nothing."""
_TEXT_SIZES = (1_500, 6_000, 24_000)
"""About how many characters the three texts have, which are made of pieces of all given prompts."""
_SEVERAL, _SEVERAL_TOKENS = 32, 8_192
"""The maximum number of the several equal images, and about how many tokens they cost at most; there are two or more
of them."""
_AROUND = 100
"""The characters of a text that are kept on each side of one of the several images."""
_LEAST_WRAPPER, _MOST_WRAPPER = -2, 64
"""The tokens around an image that are plausible; anything else means that the rule is not the model's."""


@dataclass(frozen=True, slots=True)
class Cost:
    """The tokens of a prompt by a model's rules, without its chat template."""

    text: int
    """The tokens of the text, as the tokenizer here counts them."""
    images: tuple[int, ...]
    """The tokens of each image, in reading order."""
    saved: int = 0
    """The tokens that neighbouring images share."""
    turns: int = 1
    """The turns of the prompt."""


@dataclass(frozen=True, slots=True)
class Costs:
    """Counts prompts for one model."""

    rule: VisionRule
    counter: CrossModalCounter | None
    """Counts texts as the model does, and its chat template if it has one; None: `count_text` counts texts, and a
    calibrated ratio scales the counts."""
    count_text: Callable[[str], int]
    """Counts a text as the release does."""
    size: Callable[[str], Size]
    """Returns the size in which an image is sent."""

    def of(self, prompt: Prompt, text: int | None = None) -> Cost:
        """Return the cost of a prompt; `text` are the tokens of its text, if the release has counted them.

        Raises:
            ReleaseError: the model refuses an image of this size.

        """
        rule, sizes = self.rule, [self.size(path) for path in prompt.images]
        try:
            if self.counter:
                text = self.counter.prompt(prompt.sized(self.size)).text
            elif text is None:
                text = prompt.text_tokens(self.count_text)
            images = tuple(rule.each(sizes))
        except TokenizationError as error:
            raise ReleaseError(str(error)) from error
        return Cost(text, images, rule.shared * prompt.adjacent_images if rule.shared else 0, len(prompt.turns))


@dataclass(frozen=True, slots=True)
class Calibration:
    """What probes found out about an endpoint."""

    constant: float = 0.0
    """The tokens of the chat template."""
    wrapper: float = 0.0
    """The tokens around each image that the rule does not count."""
    ratio: float = 1.0
    """How many text tokens of the model there are for each text token that is counted here."""
    turn: float = 0.0
    """The tokens of the chat template for each turn after the first; the mean of those of the two speakers."""
    is_exact: bool = False
    """Whether the model's own tokenizer counts the text, so that every difference means something."""

    def tokens(self, cost: Cost) -> int:
        """Return the expected prompt tokens."""
        images = sum(cost.images) - cost.saved + self.wrapper * len(cost.images)
        return round(self.constant + self.turn * (cost.turns - 1) + self.ratio * cost.text + images)


def calibrate(
    ask: Callable[[Prompt], int | None], costs: Mapping[str, Costs], prompts: Mapping[str, Sequence[Prompt]]
) -> tuple[dict[str, Calibration], list[str]]:
    """Find out by probes how an endpoint counts, from some prompts of each dataset, which `costs` count by one rule and
    one tokenizer of the model.

    `ask` sends a prompt, and returns the endpoint's count of its tokens; None if it gives none. Return the calibration
    of each dataset, none if the endpoint counts nothing; and sentences about what is not as the model's rule says.
    """
    nothing = ask(Prompt.of([_NOTHING]))
    if nothing is None:
        return {}, [NO_USAGE]
    notes: list[str] = []
    first = next(iter(costs.values()))
    base = first.of(Prompt.of([_NOTHING])).text
    ratios = {name: _ratio(ask, costs[name], shown, nothing, base) for name, shown in prompts.items()}
    is_exact = first.counter is not None and all(ratio is None for ratio in ratios.values())
    if first.counter is not None and not is_exact:
        notes.append(f"{first.counter.text.name} does not count texts as the endpoint does; the ratio is calibrated")
    talk, said = None, Prompt.of_turns([("user", [_NOTHING]), ("assistant", [_NOTHING]), ("user", [_NOTHING])])
    if any(len(prompt.turns) > 1 for shown in prompts.values() for prompt in shown):
        talk = ask(said)
    usual = statistics.median([ratio for ratio in ratios.values() if ratio is not None] or [1.0])

    def over(prompt: Prompt, cost: Cost, calibration: Calibration) -> float:
        """Return how many tokens the endpoint counts beyond the expected ones."""
        usage = ask(prompt)
        expected = calibration.constant + calibration.ratio * cost.text + sum(cost.images) - cost.saved
        return 0.0 if usage is None else usage - expected

    alone = {
        path: first.of(Prompt.of([Image(path), _NOTHING]))
        for path in sorted({path for shown in prompts.values() for prompt in shown for path in prompt.images})
    }
    by_cost = sorted(alone, key=lambda path: alone[path].images[0])
    if by_cost:  # note those of three sizes whose count is not that of the rule
        plain = Calibration(nothing - usual * base, 0.0, usual)
        sizes = dict.fromkeys((by_cost[0], by_cost[len(by_cost) // 2], by_cost[-1]))
        beyond = {path: over(Prompt.of([Image(path), _NOTHING]), alone[path], plain) for path in sizes}
        least = beyond[by_cost[0]]
        wrapper = least if _LEAST_WRAPPER <= least <= _MOST_WRAPPER else 0.0
        for path, tokens in beyond.items():
            if abs(tokens - wrapper) > LEAST_TOLERANCE + 1:
                width, height = first.size(path)
                expected = alone[path].images[0]
                notes.append(
                    f"the endpoint counts {expected + tokens:,.0f} tokens for an image of {width} × {height} pixels, "
                    f"the rule of {first.rule.name} {expected + wrapper:,.0f}: it changes such images, or another rule "
                    "fits (--count-as)"
                )

    calibrations = {}
    for name, shown in prompts.items():
        ratio = usual if (own := ratios[name]) is None else own
        turn = 0.0 if talk is None else (talk - nothing - ratio * (costs[name].of(said).text - base)) / 2
        known = Calibration(nothing - ratio * base, 0.0, ratio, turn, is_exact)
        most = max(shown, key=lambda prompt: len(prompt.images))
        wrapper = 0.0
        if most.images:
            # the markers of an image, and the change in the tokens of the text that it splits
            small = next(path for path in by_cost if any(path in prompt.images for prompt in shown))
            number = max(2, _SEVERAL_TOKENS // max(1, alone[small].images[0]))
            several = Prompt.of(_around_images(most, small, number))
            wrapper = over(several, costs[name].of(several), known) / len(several.images)
            if not _LEAST_WRAPPER <= wrapper <= _MOST_WRAPPER:  # not counted by the rule, which is noted
                wrapper = 0.0
        calibrations[name] = replace(known, wrapper=round(wrapper) if is_exact else wrapper)
    return calibrations, notes


def _ratio(
    ask: Callable[[Prompt], int | None], costs: Costs, prompts: Sequence[Prompt], nothing: int, base: int
) -> float | None:
    """Return the tokens of the endpoint for each token here; None if it counts each text as the tokenizer here."""
    points = []
    for size in _TEXT_SIZES:
        piece = size // len(prompts)  # from the middle of each prompt
        texts = [text[max(0, (len(text) - piece) // 2) :][:piece] for text in (prompt.text for prompt in prompts)]
        shown = Prompt.of(["\n".join(texts)])
        usage, here = ask(shown), costs.of(shown).text
        if usage is not None and here > base:
            points.append((here - base, usage - nothing))
    if not points or (costs.counter and all(here == there for here, there in points)):
        return None
    return sum(here * there for here, there in points) / sum(here * here for here, _ in points)


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
            if number >= min(most, _SEVERAL):
                return


@dataclass(frozen=True, slots=True)
class Paid:
    """A call whose prompt tokens the endpoint counted."""

    name: str
    """The name of the example."""
    cost: Cost
    expected: int
    usage: int
    """The endpoint's count."""


@dataclass(frozen=True, slots=True)
class OffCall:
    """A call whose count is not as expected."""

    name: str
    fault: str
    """A key of `FAULTS`."""
    missing: int
    """The expected tokens minus the counted ones."""


@dataclass(frozen=True, slots=True)
class Receipts:
    """The receipts of one file."""

    file: str
    """The public file, below `mmlb_data/`."""
    calls: int
    """The calls that the endpoint counted."""
    tolerance: int
    """The difference in tokens up to which a call is as expected."""
    shift: float
    """By how many tokens all calls of the file differ from what the probes let expect; a call is as expected if it
    differs from this by no more than `tolerance`."""
    smallest_loss: int
    """The smallest number of lost tokens that can be seen."""
    cheapest_image: int | None
    """The tokens of the cheapest image of the file; None if there is no image."""
    off: tuple[OffCall, ...]
    """The calls that are not as expected."""

    @property
    def hides_images(self) -> bool:
        """Whether the loss of an image could not be seen."""
        return self.cheapest_image is not None and self.cheapest_image < self.smallest_loss


def receipts(file: str, paid: Sequence[Paid], calibration: Calibration) -> Receipts:
    """Compare the counts of an endpoint with the expected ones.

    The tolerance is three times the median absolute deviation of the differences (in the form that estimates a standard
    deviation), at least `LEAST_TOLERANCE`, and at least the square root of the text tokens: texts differ in how many
    tokens of the model a token here is, also in a file where most calls have the same text, so that the deviation is 0.
    The median of the differences is taken as an error of the probes (`shift`), but only if it is smaller than half of
    the cheapest image and than a hundredth of a prompt: so an image that is lost in every call is seen. Tolerance and
    shift are 0 if the model's own tokenizer counts the text.
    """
    differences = [call.expected - call.usage for call in paid]
    cheapest = min((min(call.cost.images) + calibration.wrapper for call in paid if call.cost.images), default=None)
    tolerance, shift = 0, 0.0
    if differences and not calibration.is_exact:
        middle = statistics.median(differences)
        spread = statistics.median(abs(difference - middle) for difference in differences)
        texts = statistics.median(call.cost.text for call in paid)
        tolerance = max(LEAST_TOLERANCE, round(3 * _NORMAL * spread), round(math.sqrt(texts)))
        bound = statistics.median(call.expected for call in paid) / 100
        shift = middle if abs(middle) <= min(bound, bound if cheapest is None else cheapest / 2) else 0.0
    expected_at = defaultdict[int, set[int]](set)
    for call in paid:
        expected_at[call.usage].add(call.expected)
    off = []
    for call, difference in zip(paid, differences, strict=True):
        if abs(difference - shift) > tolerance:
            missing = round(difference - shift)
            # a count looks like a bound if calls of different cost have it, and none that should cost as much has more
            is_bound = len(expected_at[call.usage]) > 1 and all(
                other.usage <= call.usage for other in paid if other.expected >= call.expected
            )
            off.append(OffCall(call.name, _fault(call, missing, calibration.wrapper, tolerance, is_bound), missing))
    shown = None if cheapest is None else round(cheapest)
    return Receipts(file, len(paid), tolerance, shift, tolerance + 1, shown, tuple(off))


def _fault(call: Paid, missing: int, wrapper: float, tolerance: int, is_bound: bool) -> str:
    """Return the name of what most likely happened to a call."""
    if missing < 0:
        return "more-tokens"
    costs = [tokens + wrapper for tokens in call.cost.images]
    if is_bound or not costs or missing > sum(costs) + tolerance:
        return "prompt-cut"
    # the tokens of one image, of several images of one cost, or of all images; words that an image separated may now be
    # one token
    slack = max(LEAST_TOLERANCE, tolerance) + abs(wrapper)
    is_lost = abs(missing - sum(costs)) <= slack
    for cost, times in Counter(costs).items():
        number = round(missing / cost) if cost else 0
        is_lost = is_lost or (0 < number <= times and abs(missing - number * cost) <= slack)
    return "image-lost" if is_lost else "image-shrunk"
