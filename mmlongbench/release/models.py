"""The models that a release may be used with: how they count images and texts, and how much they accept."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from mmlongbench.errors import ReleaseError
from mmlongbench.io.locations import refuse_url
from mmlongbench.manifest.model import length_of
from tokenization import TextTokenizer, TokenizationError, VisionRule, load_tokenizer, vision_rule, vision_rules

ALL = "all"
"""The name that stands for all models, without those that are only a variant of another model."""


@dataclass(frozen=True, slots=True)
class ModelOptions:
    """What to count for one model, as plain values that can be sent to a process."""

    name: str
    """The model's name as the user gives it."""
    window: int | None = None
    """The maximum number of tokens of prompt and answer together; None: not checked."""
    tokenizer: str | None = None
    """A path or hub id; None: text is counted as in the release."""

    def open(self) -> "Model":
        """Return the model with its rule and tokenizer; a process loads each tokenizer once."""
        rule = vision_rule(self.name)
        text = _tokenizer(self.tokenizer) if self.tokenizer else None
        return Model(self.name, rule, self.window, rule.max_images, text)


@dataclass(frozen=True, slots=True)
class Model:
    """A model that is ready to count."""

    name: str
    rule: VisionRule
    window: int | None
    max_images: int | None
    """The maximum number of images in a request, if known."""
    text: TextTokenizer | None


def ask(names: str, windows: Sequence[str] = (), tokenizers: Sequence[str] = ()) -> tuple[ModelOptions, ...]:
    """Return the options of models, as the command line gives them.

    Args:
        names: model names separated by commas, or `all`.
        windows: texts such as `model=128K` or `model=128000`.
        tokenizers: texts such as `model=PATH` or `model=hub id`.

    Raises:
        ReleaseError: a name is unknown (the nearest are listed), or a window or a tokenizer is given for a model that
            is not among the names.

    """
    listed = [name.strip() for name in names.split(",") if name.strip()]
    try:
        if listed == [ALL]:
            listed = [name for name, rule in vision_rules().items() if not rule.variant_of]
        for name in listed:
            vision_rule(name)
    except TokenizationError as error:
        known = [each for each, rule in vision_rules().items() if not rule.variant_of]
        near = str(error).partition("did you mean ")[2].partition("?")[0]
        hint = f"; did you mean {near}?" if near else ""
        raise ReleaseError(f"no model {name!r:.80} is known{hint}; known are {', '.join(known)}") from error
    window = _by_model("window", windows, listed)
    tokenizer = _by_model("text tokenizer", tokenizers, listed)
    lengths = {name: _window(name, text) for name, text in window.items()}
    return tuple(ModelOptions(name, lengths.get(name), tokenizer.get(name)) for name in dict.fromkeys(listed))


def _by_model(option: str, given: Sequence[str], names: Sequence[str]) -> Mapping[str, str]:
    found = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not equals or not value.strip():
            raise ReleaseError(f"{option} {each!r}: expected MODEL=VALUE, such as qwen2.5-vl=128K")
        if name not in names:
            raise ReleaseError(f"{option} {each!r}: {name!r} is not among the models ({', '.join(names) or 'none'})")
        found[name] = value.strip()
    return found


def _window(name: str, text: str) -> int:
    """Return the tokens of a window, given as a plain number or as a length such as 128K."""
    if text.isdecimal() and len(text) < 12 and int(text):
        return int(text)
    try:
        return length_of(text)
    except Exception as error:
        raise ReleaseError(f"window {name}={text}: expected tokens, such as 128000 or 128K") from error


@cache
def _tokenizer(name: str) -> TextTokenizer:
    refuse_url(name, "text tokenizer", ReleaseError)
    try:
        return load_tokenizer(name)
    except TokenizationError as error:
        raise ReleaseError(f"text {error}") from error
