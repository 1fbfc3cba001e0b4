"""Measures one example: rebuilds its prompt from the public record, counts its text, and looks up its images' sizes."""

from dataclasses import dataclass

from mmlongbench.errors import ReleaseError
from mmlongbench.prompt import Image, Prompt
from mmlongbench.release.images import ImageSizes
from mmlongbench.release.models import Model
from mmlongbench.task.rows import Record
from tokenization import CrossModalCounter, TokenCount

MAX_RESERVE = 2**40
"""The maximum reserve in tokens; anything above it is an error."""
MAX_PLACEMENT = 2**40
"""A number whose absolute value is not below this is no placement."""


@dataclass(frozen=True, slots=True)
class Measured:
    """The cost of an example, as the counter of its release counts it."""

    id: str
    placement: float | None
    """The depth or permutation, if it has one."""
    set: int | None
    """The number of its set of exemplars, if there are several sets (many-shot learning)."""
    prompt: Prompt
    sizes: tuple[tuple[int, int], ...]
    """(width, height) of each image, in the order of the prompt."""
    count: TokenCount
    reserve: int
    """The tokens that the release keeps free for the answer."""

    @property
    def total(self) -> int:
        """The tokens of prompt and reserve."""
        return self.count.total + self.reserve

    def tokens(self, model: Model) -> tuple[int, int]:
        """Return (text, image) tokens on a model; text is counted as in the release if the model has no tokenizer.

        Raises:
            TokenizationError: the model refuses an image.

        """
        text = model.text.count(self.prompt.text) if model.text else self.count.text
        return text, model.rule.total(self.sizes, adjacent(self.prompt) if model.rule.shared else 0)


def measure(
    id: str, record: Record, prompt: Prompt, counter: CrossModalCounter, sizes: ImageSizes, reserve: int | None
) -> Measured:
    """Measure a record; the reserve is the record's own `tokens.reserve`, or `reserve` if it has none.

    Raises:
        KeyError: the record has no `tokens.reserve`, and `reserve` is None.
        ReleaseError: an image is missing or broken, or the reserve is not a number of tokens.

    """
    found = tuple(sizes[path] for path in prompt.images)
    kept = record["tokens"]["reserve"] if reserve is None else _own_reserve(record, reserve)
    if type(kept) is not int or not 0 <= kept <= MAX_RESERVE:
        raise ReleaseError(f"tokens.reserve: expected 0 to {MAX_RESERVE} tokens, found {str(kept)[:40]}")
    value, group = placement_of(record), record.get("set")
    name = id.encode("utf-8", "backslashreplace").decode()
    count = counter.count(prompt.text, found)
    return Measured(name, value, group if type(group) is int else None, prompt, found, count, kept)


def placement_of(record: Record) -> float | None:
    """Return the depth of a record, or the number of its permutation; None if it has neither.

    >>> placement_of({"depth": 0.2}), placement_of({"permutation": 1}), placement_of({})
    (0.2, 1.0, None)
    """
    found = record.get("depth", record.get("permutation"))
    is_number = isinstance(found, int | float) and not isinstance(found, bool) and abs(found) < MAX_PLACEMENT
    return float(found) if is_number else None  # type: ignore[arg-type]  # a number


def _own_reserve(record: Record, otherwise: int) -> object:
    """Return the reserve that a record of other origin states, or `otherwise` if it states none."""
    tokens = record.get("tokens")
    return tokens.get("reserve", otherwise) if isinstance(tokens, dict) else otherwise


def adjacent(prompt: Prompt) -> int:
    """Return how many images directly follow another image, without text in between."""
    pairs = zip(prompt.parts, prompt.parts[1:], strict=False)
    return sum(isinstance(one, Image) and isinstance(other, Image) for one, other in pairs)
