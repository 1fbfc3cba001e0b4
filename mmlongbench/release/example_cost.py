"""The tokens of one example: as its release counts it, from the record and the sizes of its images, and on models."""

import os
import stat
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from mmlongbench.documents.pixels import header, oddities, unreadable
from mmlongbench.errors import ReleaseError
from mmlongbench.io.files import Links
from mmlongbench.io.locations import refuse_url
from mmlongbench.manifest.model import length_of
from mmlongbench.prompt import TEMPLATE, Prompt
from mmlongbench.release.layout import as_utf8
from mmlongbench.task.rows import Record
from tokenization import (
    CrossModalCounter,
    PatchRule,
    RefusedSizeError,
    TextTokenizer,
    TokenCount,
    TokenizationError,
    VisionRule,
    load_tokenizer,
    vision_rule,
    vision_rules,
)

ALL = "all"
"""The name that stands for all models, without those that are only a variant of another model."""
MAX_RESERVE = 2**40
MAX_PLACEMENT = 2**40
"""A number whose absolute value is not below this is no placement."""


class ImageSizes(dict[str, tuple[int, int]]):
    """(width, height) in pixels, after EXIF rotation, by path below the image root; a header is read when its image is
    first asked for.
    """

    def __init__(self, root: Path) -> None:
        """Look up images below this folder."""
        super().__init__()
        self._links = Links(root.resolve())
        self.turned: set[str] = set()
        """The images read so far whose EXIF orientation rotates or mirrors them."""
        self.odd: dict[str, tuple[str, ...]] = {}
        """What is odd about an image file, by path; only files with something odd are in it."""

    def __missing__(self, path: str) -> tuple[int, int]:
        """Read the size of an image; raises ReleaseError if there is no such image, or its path leaves the root."""
        if path.startswith("/") or ".." in path.split("/") or self._links.lead_out(path):
            raise ReleaseError(f"image {path!r}: the path leaves the image root")
        file = f"{self._links.root}/{path}"  # a `Path` takes longer than the header of a picture
        try:
            if not stat.S_ISREG(os.stat(file).st_mode):  # noqa: PTH116  (reading a pipe might never end)
                raise ReleaseError(f"image {path!r}: is no file")
            with open(file, "rb") as opened:  # noqa: PTH123
                size, orientation = header(opened)
                odd = oddities(opened, path)
        except FileNotFoundError as error:
            raise ReleaseError(f"image {path!r}: is missing") from error
        except unreadable() as error:
            raise ReleaseError(f"image {path!r}: cannot be read: {type(error).__name__}") from error
        if orientation != 1:
            self.turned.add(path)
        if odd:
            self.odd[path] = odd
        self[path] = size
        return size


def counted(prompt: Prompt, counter: CrossModalCounter, sizes: Mapping[str, tuple[int, int]]) -> TokenCount:
    """Return the tokens of a prompt."""
    return counter.prompt(prompt.sized(sizes.__getitem__))


def tokens_as(
    counters: Mapping[str, CrossModalCounter], prompt: Prompt, sizes: Mapping[str, tuple[int, int]]
) -> dict[str, dict[str, int] | None]:
    """Return the tokens of a prompt by further counters, as a record has them: None if a model refuses an image."""
    found: dict[str, dict[str, int] | None] = {}
    for name, counter in counters.items():
        try:
            count = counted(prompt, counter, sizes)
            found[name] = {"text": count.text, "image": count.image}
        except RefusedSizeError:
            found[name] = None
    return found


def small_reserve(prompt: Prompt, reserve: int, counter: CrossModalCounter) -> str:
    """Return how little a reserve is for a chat template that is not counted; empty if it is enough, or one turn."""
    turns = len(prompt.turns)
    if turns == 1 or counter.template is not None or reserve >= TEMPLATE * turns:
        return ""
    return f"with a reserve of {reserve:,}, less than the {TEMPLATE} tokens a turn of many chat templates"


@dataclass(frozen=True, slots=True)
class Model:
    """A model to count on, as plain values that can be sent to a process."""

    name: str
    window: int | None = None
    """The maximum number of tokens of prompt and answer together; None: not checked."""
    tokenizer: str | None = None
    """A path or hub id; None: text is counted as in the release."""

    @property
    def rule(self) -> VisionRule:
        """The rule that counts its images."""
        return _rule(self.name)

    @property
    def text(self) -> TextTokenizer | None:
        """Its tokenizer, which a process loads once; None if it has none, a `ReleaseError` if it cannot be loaded."""
        return _tokenizer(self.tokenizer) if self.tokenizer else None

    def counter(self, released: CrossModalCounter) -> CrossModalCounter:
        """Return what counts on it the prompts of a release, whose own counter is given.

        The release's chat template belongs to its tokenizer and its model: another model with a tokenizer of its own is
        counted without it.
        """
        rule = PatchRule() if self.rule.name == "mmlongbench" else self.rule
        ours = "" if isinstance(released.image, PatchRule) else released.image.name
        is_other = self.text is not None and self.text.sha256 != released.text.sha256 and self.rule.name != ours
        return CrossModalCounter(self.text or released.text, rule, None if is_other else released.template)


_rule = cache(vision_rule)


@cache
def _tokenizer(name: str) -> TextTokenizer:
    refuse_url(name, "text tokenizer", ReleaseError)
    try:
        return load_tokenizer(name)
    except TokenizationError as error:
        raise ReleaseError(f"text {error}") from error


def models_of(names: str, windows: Sequence[str] = (), tokenizers: Sequence[str] = ()) -> tuple[Model, ...]:
    """Return models, as the command line gives them: `names` separated by commas, or `all`; `windows` such as `128K`
    (for all models), `model=128K` or `model=128000`; `tokenizers` such as `model=PATH` or `model=hub id`.
    """
    listed = [name.strip() for name in names.split(",") if name.strip()]
    families = [name for name, rule in vision_rules().items() if not rule.variant_of]
    if listed == [ALL]:
        listed = families
    for name in listed:
        try:
            vision_rule(name)
        except TokenizationError as error:
            nearest = str(error).partition("did you mean ")[2].partition("?")[0]
            hint = f"; did you mean {nearest}?" if nearest else ""
            raise ReleaseError(f"no model {name!r:.80} is known{hint}; known are {', '.join(families)}") from error
    fits, texts = dict[str, str](), dict[str, str]()
    for option, pairs, given in (("--fits", windows, fits), ("--text-tokenizer", tokenizers, texts)):
        for pair in pairs:
            if not listed:
                raise ReleaseError(f"{option} {pair}: needs --count-as, the models that it is for")
            if given is fits and "=" not in pair:
                fits |= {**dict.fromkeys(listed, pair.strip()), **fits}
                continue
            name, equals, value = pair.partition("=")
            if not equals or not value.strip():
                form = "[MODEL=]TOKENS, such as qwen2.5-vl=128K" if given is fits else "MODEL=PATH|ID"
                raise ReleaseError(f"{option} {pair}: expected {form}")
            if name not in listed:
                raise ReleaseError(f"{option} {pair}: {name!r} is not among the models ({', '.join(listed)})")
            given[name] = value.strip()
    tokens: dict[str, int] = {}
    for name, text in fits.items():
        try:
            tokens[name] = int(text) if text.isdecimal() and len(text) < 12 and int(text) else length_of(text)
        except Exception as error:
            raise ReleaseError(f"--fits {name}={text}: expected tokens, such as 128000 or 128K") from error
    return tuple(Model(name, tokens.get(name), texts.get(name)) for name in dict.fromkeys(listed))


@dataclass(frozen=True, slots=True)
class ExampleCost:
    """The cost of an example, as the counter of its release counts it."""

    id: str
    placement: float | None
    set: int | None
    """The number of its set of exemplars, if there are several sets (many-shot learning)."""
    prompt: Prompt
    sizes: tuple[tuple[int, int], ...]
    """(width, height) of each image, in the order of the prompt."""
    count: TokenCount
    reserve: int
    """The tokens that the release keeps free for the answer."""
    counter: CrossModalCounter
    _texts: dict[object, int] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(
        cls,
        record: Record,
        prompt: Prompt,
        counter: CrossModalCounter,
        sizes: Mapping[str, tuple[int, int]],
        reserve: int | None,
    ) -> "ExampleCost":
        """Count a record; the reserve is the record's own `tokens.reserve`, or `reserve` if it has none. If both are
        missing, raise KeyError.
        """
        image_sizes = tuple(map(sizes.__getitem__, prompt.images))
        if reserve is None:
            kept = record["tokens"]["reserve"]
        else:  # a record of other origin may state none
            tokens = record.get("tokens")
            kept = tokens.get("reserve", reserve) if isinstance(tokens, dict) else reserve
        if type(kept) is not int or not 0 <= kept <= MAX_RESERVE:
            raise ReleaseError(f"tokens.reserve: expected 0 to {MAX_RESERVE} tokens, found {str(kept)[:40]}")
        id, group = as_utf8(str(record.get("id"))), record.get("set")
        number = group if type(group) is int else None
        count = counted(prompt, counter, sizes)
        return cls(id, placement_of(record), number, prompt, image_sizes, count, kept, counter)

    @property
    def total(self) -> int:
        """The tokens of prompt and reserve."""
        return self.count.total + self.reserve

    def tokens(self, model: Model) -> tuple[int, int]:
        """Return (text, image) tokens on a model, as a manifest that names it counts; by the release's tokenizer if the
        model has none. Raises TokenizationError if the model refuses an image.
        """
        rule, sizes, counter = model.rule, iter(self.sizes), model.counter(self.counter)
        image = rule.total(self.sizes, self.prompt.adjacent_images if rule.shared else 0)
        # the texts of many models are counted alike
        alike = (counter.text, counter.template, rule.around, isinstance(counter.image, PatchRule))
        if alike not in self._texts:
            self._texts[alike] = counter.prompt(self.prompt.sized(lambda _: next(sizes))).text
        return self._texts[alike], image


def placement_of(record: Record) -> float | None:
    """Return the depth of a record, or the number of its permutation; None if it has neither.

    >>> placement_of({"depth": 0.2}), placement_of({"permutation": 1}), placement_of({})
    (0.2, 1.0, None)
    """
    found = record.get("depth", record.get("permutation"))
    is_number = isinstance(found, int | float) and not isinstance(found, bool) and abs(found) < MAX_PLACEMENT
    return float(found) if is_number else None  # type: ignore[arg-type]  # a number
