"""Token receipts: what a prompt should cost on a model, and what the difference to the endpoint's count means.

`prompt tokens = constant + ratio × text + Σ (image by the model's rule + wrapper)`. The constant (the chat template),
the wrapper (markers around an image) and the ratio (tokens of the model's tokenizer for each token counted here) come
from `probes`, never from the calls that they are compared with.
"""

import math
import statistics
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mmlongbench.errors import ReleaseError
from mmlongbench.messages import Size
from mmlongbench.prompt import Image, Prompt
from mmlongbench.release.example_cost import adjacent
from tokenization import TextTokenizer, TokenizationError, VisionRule

LEAST_TOLERANCE = 2
"""A difference of this many tokens is never reported, unless the model's own tokenizer counts the text."""
_NORMAL = 1.4826
"""The ratio of a normal distribution's standard deviation to its median absolute deviation."""
FAULTS = {
    "image-lost": "images were lost",
    "image-shrunk": "images were made smaller",
    "prompt-cut": "the prompt was cut",
    "more-tokens": "something was added",
}
"""What a difference means, in words."""


@dataclass(frozen=True, slots=True)
class Cost:
    """The tokens of a prompt by a model's rules, without its chat template."""

    text: int
    """The tokens of the text, as the tokenizer here counts them."""
    images: tuple[int, ...]
    """The tokens of each image, in reading order."""
    saved: int = 0
    """The tokens that neighbouring images share."""


@dataclass(frozen=True, slots=True)
class Costs:
    """Counts prompts for one model."""

    rule: VisionRule
    tokenizer: TextTokenizer | None
    """The model's tokenizer; None: `count_text` counts texts, and a calibrated ratio scales the counts."""
    count_text: Callable[[str], int]
    """Counts a text as the release does."""

    def of(self, prompt: Prompt, sizes: Sequence[Size], text: int | None = None) -> Cost:
        """Return the cost of a prompt.

        Args:
            prompt: the prompt.
            sizes: width and height of each image, as they are sent.
            text: the tokens of its text, if the release has counted them.

        Raises:
            ReleaseError: the model refuses an image of this size.

        """
        if self.tokenizer:  # servers encode the texts between images one by one
            text = sum(self.tokenizer.count(part) for part in prompt.parts if isinstance(part, str))
        elif text is None:
            text = self.count_text(prompt.text)
        rule = self.rule
        try:
            places = range(1, len(sizes) + 1) if rule.by_place else [len(sizes)] * len(sizes)
            images = tuple(rule.tokens(*size, place) for size, place in zip(sizes, places, strict=True))
        except TokenizationError as error:
            raise ReleaseError(str(error)) from error
        return Cost(text, images, rule.shared * adjacent(prompt) if rule.shared else 0)


@dataclass(frozen=True, slots=True)
class Calibration:
    """What probes found out about an endpoint."""

    constant: float = 0.0
    """The tokens of the chat template."""
    wrapper: float = 0.0
    """The tokens around each image that the rule does not count."""
    ratio: float = 1.0
    """How many text tokens of the model there are for each text token that is counted here."""
    is_exact: bool = False
    """Whether the model's own tokenizer counts the text, so that every difference means something."""

    def tokens(self, cost: Cost) -> int:
        """Return the expected prompt tokens."""
        images = sum(cost.images) - cost.saved + self.wrapper * len(cost.images)
        return round(self.constant + self.ratio * cost.text + images)


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

    Args:
        file: the name of the file.
        paid: its calls.
        calibration: what the probes found.

    """
    differences = [call.expected - call.usage for call in paid]
    cheapest = min((min(call.cost.images) + calibration.wrapper for call in paid if call.cost.images), default=None)
    tolerance, shift = 0, 0.0
    if differences and not calibration.is_exact:
        middle = statistics.median(differences)
        spread = statistics.median(abs(each - middle) for each in differences)
        texts = statistics.median(call.cost.text for call in paid)
        tolerance = max(LEAST_TOLERANCE, round(3 * _NORMAL * spread), round(math.sqrt(texts)))
        bound = statistics.median(call.expected for call in paid) / 100
        shift = middle if abs(middle) <= min(bound, bound if cheapest is None else cheapest / 2) else 0.0
    usages = Counter(call.usage for call in paid)
    off = []
    for call, difference in zip(paid, differences, strict=True):
        missing = round(difference - shift)
        if abs(difference - shift) > tolerance:
            is_bound = _is_bound(call, paid, usages[call.usage])
            off.append(OffCall(call.name, _fault(call, missing, calibration.wrapper, tolerance, is_bound), missing))
    shown = None if cheapest is None else round(cheapest)
    return Receipts(file, len(paid), tolerance, shift, tolerance + 1, shown, tuple(off))


def _is_bound(call: Paid, paid: Sequence[Paid], times: int) -> bool:
    """Return whether a count looks like a bound: calls of different cost have it, and no call has more."""
    same = {each.expected for each in paid if each.usage == call.usage} if times > 1 else set[int]()
    return len(same) > 1 and all(each.usage <= call.usage for each in paid if each.expected >= call.expected)


def _fault(call: Paid, missing: int, wrapper: float, tolerance: int, is_bound: bool) -> str:
    """Return the name of what most likely happened to a call."""
    if missing < 0:
        return "more-tokens"
    costs = sorted(each + wrapper for each in call.cost.images)
    if is_bound or not costs or missing > sum(costs) + tolerance:
        return "prompt-cut"
    slack = max(LEAST_TOLERANCE, tolerance) + abs(wrapper)  # words that an image separated may now be one token
    return "image-lost" if _is_sum(missing, costs, slack) else "image-shrunk"


def _is_sum(missing: int, costs: Sequence[float], slack: float) -> bool:
    """Return whether some tokens are what one image costs, or several images of one cost, or all images."""
    if abs(missing - sum(costs)) <= slack:
        return True
    times = Counter(costs)
    return any(
        number <= times[cost] and abs(missing - number * cost) <= slack
        for cost in times
        if (number := round(missing / cost) if cost else 0)
    )


def sizes_of(prompt: Prompt, size: Callable[[str], Size]) -> list[Size]:
    """Return the size of each image of a prompt, in reading order."""
    return [size(part.path) for part in prompt.parts if isinstance(part, Image)]
