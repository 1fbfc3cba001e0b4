"""One example measured: its prompt rebuilt from the public record, its text counted, its images sized."""

from dataclasses import dataclass

from mmlongbench.errors import ReleaseError
from mmlongbench.prompt import Image, Prompt
from mmlongbench.release.images import ImageSizes
from mmlongbench.release.models import Model
from mmlongbench.task.rows import Record
from tokenization import CrossModalCounter, TokenCount

MAX_RESERVE = 2**40
"""Tokens: a bound for what is no reserve."""


@dataclass(frozen=True, slots=True)
class Measured:
    """What an example costs, by the release's own counter."""

    id: str
    placement: float | None
    """Depth or permutation, where it has one."""
    set: int | None
    """The set of exemplars it is asked with, where there are several (ICL)."""
    prompt: Prompt
    sizes: tuple[tuple[int, int], ...]
    """(width, height) of each image, in the order of the prompt."""
    count: TokenCount
    reserve: int
    """Tokens that the release keeps free for the answer."""

    @property
    def total(self) -> int:
        """Prompt and reserve."""
        return self.count.total + self.reserve

    def tokens(self, model: Model) -> tuple[int, int]:
        """(text, image) tokens on a model; text by the release's own counter where the model has none.

        Raises:
            TokenizationError: the model refuses an image.

        """
        text = model.text.count(self.prompt.text) if model.text else self.count.text
        return text, model.rule.total(self.sizes, adjacent(self.prompt) if model.rule.shared else 0)


def measure(
    id: str, record: Record, prompt: Prompt, counter: CrossModalCounter, sizes: ImageSizes, reserve: int | None
) -> Measured:
    """Measure a record; its own `tokens.reserve` is taken where it has one, else `reserve`.

    Raises:
        KeyError: neither is there.
        ReleaseError: an image is missing or broken, or the reserve is no number of tokens.

    """
    found = tuple(sizes[path] for path in prompt.images)
    kept = record["tokens"]["reserve"] if reserve is None else _own_reserve(record, reserve)
    if type(kept) is not int or not 0 <= kept <= MAX_RESERVE:
        raise ReleaseError(f"tokens.reserve: expected 0 to {MAX_RESERVE} tokens, found {str(kept)[:40]}")
    placement = record.get("depth", record.get("permutation"))
    is_placed = isinstance(placement, int | float) and not isinstance(placement, bool) and abs(placement) < MAX_RESERVE
    value, group = float(placement) if is_placed else None, record.get("set")  # type: ignore[arg-type]  # a number
    name = id.encode("utf-8", "backslashreplace").decode()
    count = counter.count(prompt.text, found)
    return Measured(name, value, group if type(group) is int else None, prompt, found, count, kept)


def _own_reserve(record: Record, otherwise: int) -> object:
    """What a record of others says is kept free, where it says so."""
    tokens = record.get("tokens")
    return tokens.get("reserve", otherwise) if isinstance(tokens, dict) else otherwise


def adjacent(prompt: Prompt) -> int:
    """How many images directly follow another, with no text between."""
    pairs = zip(prompt.parts, prompt.parts[1:], strict=False)
    return sum(isinstance(one, Image) and isinstance(other, Image) for one, other in pairs)
