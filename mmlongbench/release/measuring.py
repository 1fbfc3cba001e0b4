"""One example measured: its prompt rebuilt from the public record, its text counted, its images sized."""

from dataclasses import dataclass

from mmlongbench.prompt import Image, Prompt
from mmlongbench.release.images import ImageSizes
from mmlongbench.release.models import Model
from mmlongbench.task import Record
from tokenization import CrossModalCounter, TokenCount


@dataclass(frozen=True, slots=True)
class Measured:
    """What an example costs, by the release's own counter."""

    id: str
    placement: float | None
    """Depth or permutation, where it has one."""
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
        ReleaseError: an image is missing or broken.

    """
    found = tuple(sizes[path] for path in prompt.images)
    tokens = record.get("tokens")
    kept = reserve if tokens is None and reserve is not None else int(record["tokens"]["reserve"])
    placement = record.get("depth", record.get("permutation"))
    value = float(placement) if isinstance(placement, int | float) else None
    return Measured(id, value, prompt, found, counter.count(prompt.text, found), kept)


def adjacent(prompt: Prompt) -> int:
    """How many images directly follow another, with no text between."""
    pairs = zip(prompt.parts, prompt.parts[1:], strict=False)
    return sum(isinstance(one, Image) and isinstance(other, Image) for one, other in pairs)
