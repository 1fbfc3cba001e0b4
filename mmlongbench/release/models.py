"""Models that a release may be shown to: how they count images and texts, and what they can hold."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from mmlongbench.errors import ReleaseError
from mmlongbench.manifest.model import length_of
from tokenization import TextTokenizer, VisionRule, load_tokenizer, vision_rule, vision_rules

ALL = "all"
"""Every family, each with its usual setting."""


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """What is asked about one model, as plain values that a process can be sent."""

    name: str
    """As the user calls it."""
    window: int | None = None
    """Tokens of prompt and answer that it holds; not asked where None."""
    tokenizer: str | None = None
    """Path or hub id; the release's own counter of text where None."""

    def open(self) -> "Model":
        """The model with its rule and tokenizer; those of a process are opened once."""
        rule = vision_rule(self.name)
        text = _tokenizer(self.tokenizer) if self.tokenizer else None
        return Model(self.name, rule, self.window, rule.max_images, text)


@dataclass(frozen=True, slots=True)
class Model:
    """A model, ready to count."""

    name: str
    rule: VisionRule
    window: int | None
    max_images: int | None
    """The most images of a request, where that is known."""
    text: TextTokenizer | None


def ask(names: str, windows: Sequence[str] = (), tokenizers: Sequence[str] = ()) -> tuple[ModelOptions, ...]:
    """What is asked, as the command line has it.

    Args:
        names: models between commas, or `all`.
        windows: `model=128K` or `model=128000` each.
        tokenizers: `model=PATH` or `model=hub id` each.

    Raises:
        ReleaseError: a model has a window or a tokenizer and is not among the names.
        TokenizationError: a name is unknown; the nearest are listed.

    """
    listed = [name.strip() for name in names.split(",") if name.strip()]
    if listed == [ALL]:
        listed = [name for name, rule in vision_rules().items() if not rule.variant_of]
    window = _by_model("--window", windows, listed)
    tokenizer = _by_model("--text-tokenizer", tokenizers, listed)
    for name in listed:
        vision_rule(name)
    lengths = {name: _window(name, text) for name, text in window.items()}
    return tuple(ModelOptions(name, lengths.get(name), tokenizer.get(name)) for name in dict.fromkeys(listed))


def _by_model(option: str, given: Sequence[str], names: Sequence[str]) -> Mapping[str, str]:
    found = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not equals or not value.strip():
            raise ReleaseError(f"{option} {each!r}: expected MODEL=VALUE, such as qwen2.5-vl=128K")
        if name not in names:
            raise ReleaseError(f"{option} {each!r}: {name!r} is not among --models ({', '.join(names) or 'none'})")
        found[name] = value.strip()
    return found


def _window(name: str, text: str) -> int:
    """Tokens of a window: a plain number, or a length such as 128K."""
    if text.isdecimal() and 0 < len(text) < 12:
        return int(text)
    try:
        return length_of(text)
    except Exception as error:
        raise ReleaseError(f"--window {name}={text}: expected tokens, such as 128000 or 128K") from error


@cache
def _tokenizer(name: str) -> TextTokenizer:
    return load_tokenizer(name)
