"""Measures one example: rebuilds its prompt from the public record, counts its text, and looks up its images' sizes."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath

from mmlongbench.documents.pixels import header, oddities, unreadable
from mmlongbench.errors import ReleaseError
from mmlongbench.io.locations import refuse_url
from mmlongbench.manifest.model import length_of
from mmlongbench.prompt import Image, Prompt
from mmlongbench.task.rows import Record
from tokenization import (
    CrossModalCounter,
    TextTokenizer,
    TokenCount,
    TokenizationError,
    VisionRule,
    load_tokenizer,
    vision_rule,
    vision_rules,
)


class ImageSizes(Mapping[str, tuple[int, int]]):
    """(width, height) in pixels, after EXIF rotation, by path below the image root; each header is read once."""

    def __init__(self, root: Path) -> None:
        """Look up images below this folder."""
        self._root = root.resolve()
        self._known: dict[str, tuple[int, int]] = {}
        self.turned: set[str] = set()
        """The images read so far whose EXIF orientation rotates or mirrors them."""
        self.odd: dict[str, tuple[str, ...]] = {}
        """What is odd about an image file, by path; only files with something odd are in it."""

    def __getitem__(self, path: str) -> tuple[int, int]:
        """Return the size of one image.

        Raises:
            ReleaseError: the image is missing, is not an image, or its path leaves the root.

        """
        if path not in self._known:
            self._known[path] = self._read(path)
        return self._known[path]

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)

    def _read(self, path: str) -> tuple[int, int]:
        pure = PurePosixPath(path)
        if pure.is_absolute() or ".." in pure.parts or not (self._root / path).resolve().is_relative_to(self._root):
            raise ReleaseError(f"image {path!r}: the path leaves the image root")
        if (self._root / path).exists() and not (self._root / path).is_file():  # reading a pipe might never end
            raise ReleaseError(f"image {path!r}: is no file")
        try:
            size, turned = header(self._root / path)
            found = oddities(self._root / path)
        except FileNotFoundError as error:
            raise ReleaseError(f"image {path!r}: is missing") from error
        except unreadable() as error:
            raise ReleaseError(f"image {path!r}: cannot be read: {type(error).__name__}") from error
        if turned != 1:
            self.turned.add(path)
        if found:
            self.odd[path] = found
        return size


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
    if reserve is None:
        kept = record["tokens"]["reserve"]
    else:  # a record of other origin may state none
        tokens = record.get("tokens")
        kept = tokens.get("reserve", reserve) if isinstance(tokens, dict) else reserve
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


def adjacent(prompt: Prompt) -> int:
    """Return how many images directly follow another image, without text in between."""
    pairs = zip(prompt.parts, prompt.parts[1:], strict=False)
    return sum(isinstance(one, Image) and isinstance(other, Image) for one, other in pairs)
