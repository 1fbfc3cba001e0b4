"""What a run asks: the chosen examples with their prompts in the chosen context, and what each should cost."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from pydantic import JsonValue

from mmlongbench.documents.image_urls import fitting_size
from mmlongbench.draws import digest
from mmlongbench.errors import ReleaseError
from mmlongbench.messages import Size
from mmlongbench.models.chat_call import ChatCall, Sampling
from mmlongbench.models.counting import counting
from mmlongbench.models.fences import encodable
from mmlongbench.models.prediction_lines import PredictionLine
from mmlongbench.models.receipts import Cost, Costs, sizes_of
from mmlongbench.prompt import Prompt
from mmlongbench.release.contexts import contextual
from mmlongbench.release.layout import IMAGES
from mmlongbench.release.lock import example_digest
from mmlongbench.release.measuring import ImageSizes
from mmlongbench.release.release import Example, Release
from mmlongbench.release.selection import Cell

_LONGEST_NAME = 200
_PROBED = 12
"""The maximum number of prompts of each dataset whose texts and images the probes use."""


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How a model is asked."""

    model: str
    """The name of the model in requests."""
    context: str = ""
    """The form of the prompts (see `contexts`); empty: the released form."""
    samples: int = 1
    """How many answers are drawn for each example."""
    temperature: float = 0.0
    """The temperature at which answers are drawn; several samples need one above 0."""
    max_tokens: int | None = None
    """The maximum number of tokens of an answer; None: the reserve of the example."""
    system: str | None = None
    """What the system message says; None: there is none."""
    images: str = "data-uri"
    """The form in which images are sent (see `Example.messages`)."""
    max_pixels: int | None = None
    """The maximum width × height of an image; a larger image is sent smaller. None: images are sent as they are."""
    count_as: str | None = None
    """The model whose rule counts images; `none`: there are no receipts; None: `model` itself."""
    text_tokenizer: str | None = None
    """The path or hub id of the model's own tokenizer; None: the release's counts of texts are scaled."""
    window: int | None = None
    """The tokens of prompt and answer that the model takes; None: as the endpoint says, if it does."""
    max_images: int | None = None
    """The images that the model takes; None: as the rule says, if it does."""
    skip_oversized: bool = False
    """Whether to leave out the examples that the model cannot take."""
    is_fresh: bool = False
    """Whether to ask again about examples whose answer is on file, as after a change of the server."""

    def check(self) -> None:
        """Refuse values that make no sense.

        Raises:
            ReleaseError: the error names the option, its value, and what was expected.

        """
        name = self.model
        if (
            not isinstance(name, str)
            or not name.strip()
            or not name.isprintable()
            or len(name.encode()) > _LONGEST_NAME
        ):
            raise ReleaseError(
                f"model {name!r:.80}: expected a name of at most {_LONGEST_NAME} printable bytes in UTF-8"
            )
        for option in ("context", "images", "system", "count_as", "text_tokenizer"):
            value = getattr(self, option)
            if not (isinstance(value, str) or (value is None and option not in ("context", "images"))):
                raise ReleaseError(f"{option} {value!r:.80}: expected a text")
            if value != encodable(value or "") and value is not None:
                raise ReleaseError(f"{option} {value!r:.80}: has characters that UTF-8 cannot encode")
        for option in ("samples", "max_tokens", "max_pixels", "window", "max_images"):
            value = getattr(self, option)
            if (type(value) is not int or value < 1) and (value is not None or option == "samples"):
                raise ReleaseError(f"{option} {value!r:.80}: expected a whole number, at least 1")
        heat = self.temperature
        if not isinstance(heat, int | float) or isinstance(heat, bool) or not 0 <= heat < math.inf:
            raise ReleaseError(f"temperature {heat!r:.80}: expected a number, at least 0")
        if self.samples > 1 and not heat:
            raise ReleaseError(f"{self.samples} samples: all answers would be alike; give a temperature above 0")

    @property
    def settings(self) -> dict[str, JsonValue]:
        """Return the options that change answers and are not at their default, besides model and context."""
        given: dict[str, JsonValue] = {
            "temperature": self.temperature or None,
            "max_tokens": self.max_tokens,
            "system": self.system,
            "max_pixels": self.max_pixels,
        }
        return {name: value for name, value in given.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Planned:
    """One example that a model will be asked, without its prompt."""

    dataset: str
    file: str
    name: str
    """Its file, id and placement."""
    max_tokens: int
    cost: Cost | None
    """What the prompt costs by the model's rule; None without a rule."""


class Spread:
    """Keeps some of many prompts, spread evenly over all of them."""

    def __init__(self) -> None:
        """Keep nothing yet."""
        self.kept: list[Prompt] = []
        self._every, self._seen = 1, 0

    def add(self, prompt: Prompt) -> None:
        """Keep the prompt if its turn has come. If too many are kept, every second one is given up."""
        if self._seen % self._every == 0:
            self.kept.append(prompt)
        self._seen += 1
        if len(self.kept) > _PROBED:
            self.kept = self.kept[::2]
            self._every *= 2


class Asking:
    """The examples of a run, in the order of the release."""

    def __init__(self, release: Release, cells: Sequence[Cell], options: RunOptions) -> None:
        """Choose examples and the form of their prompts; nothing is read yet.

        Raises:
            ReleaseError: the options do not fit each other, or no rule or tokenizer has the given name.

        """
        options.check()
        self.release, self.cells, self.options = release, cells, options
        self.rule, self.tokenizer = counting(options.model, options.count_as, options.text_tokenizer)
        self.urls = release.image_urls(options.images, options.max_pixels)
        self.without_context = 0
        """How many examples cannot be given the chosen context; known after `plan`."""
        self.unchanged = 0
        """How many prompts are those of the release, although another context is chosen; known after `plan`."""
        self.spread: dict[str, Spread] = {}
        """Some prompts of each dataset, of which probes are made; known after `plan`."""
        self._sizes = ImageSizes(release.path / IMAGES)
        self._lock = release.lock_id
        self._costs: dict[str, Costs] = {}

    @property
    def like(self) -> PredictionLine:
        """Return a line with what all lines of a run have in common."""
        options = self.options
        return PredictionLine(
            file="", id="", model=options.model, context=options.context, settings=options.settings, lock=self._lock
        )

    def plan(self) -> list[Planned]:
        """Count every prompt by the model's rule.

        Raises:
            ReleaseError: an example or an image cannot be read, or no example has the chosen context.

        """
        planned, self.without_context, self.unchanged = list[Planned](), 0, 0
        for cell in self.cells:
            for example, prompt in self._prompts(cell):
                if prompt is None:
                    self.without_context += 1
                else:
                    planned.append(self._planned(example, prompt))
                    self.unchanged += bool(self.options.context) and prompt == example.prompt
                    self.spread.setdefault(example.dataset, Spread()).add(prompt)
        if not planned:
            said = f"has the context {self.options.context!r}" if self.without_context else "is chosen"
            raise ReleaseError(f"{self.release.path.name}: no example {said}")
        return planned

    def calls(self) -> Iterator[tuple[PredictionLine, ChatCall]]:
        """Yield the calls for all examples of the plan, in its order: for each example and sample, the fields of its
        line that are known before the call, and the call.
        """
        for cell in self.cells:
            for example, prompt in self._prompts(cell):
                if prompt is not None:
                    line, call = self._line(example, prompt), self._call(example, prompt)
                    for number in range(self.options.samples):
                        sample = number if self.options.temperature else None
                        sampling = replace(call.sampling, sample=number)
                        yield line.model_copy(update={"sample": sample}), replace(call, sampling=sampling)

    def probe(self, prompt: Prompt) -> ChatCall:
        """Return a call that only shows how the endpoint counts a prompt."""
        return self._asked(prompt, 1)

    def costs(self, dataset: str) -> Costs | None:
        """Return what counts the prompts of a dataset; None without a rule."""
        if self.rule is None:
            return None
        if dataset not in self._costs:
            counter = self.release.dataset(dataset).counter
            self._costs[dataset] = Costs(self.rule, self.tokenizer, counter.text.count)
        return self._costs[dataset]

    def size(self, path: str) -> Size:
        """Return the size in which an image is sent."""
        size, most = self._sizes[path], self.options.max_pixels
        return size if most is None or size[0] * size[1] <= most else fitting_size(size, most)

    def _prompts(self, cell: Cell) -> Iterator[tuple[Example, Prompt | None]]:
        return contextual(self.release, cell.dataset, self.options.context, cell.examples())

    def _planned(self, example: Example, prompt: Prompt) -> Planned:
        sizes, costs = sizes_of(prompt, self.size), self.costs(example.dataset)
        known = None if self.options.context else example.tokens.text
        cost = costs.of(prompt, sizes, known) if costs else None
        return Planned(example.dataset, example.file, example.name, self._max_tokens(example), cost)

    def _max_tokens(self, example: Example) -> int:
        return self.options.max_tokens or example.reserve or 256

    def _line(self, example: Example, prompt: Prompt) -> PredictionLine:
        return PredictionLine.model_validate(
            {
                **example.key,
                "digest": example.digest,
                "lock": self._lock,
                "model": self.options.model,
                "context": self.options.context,
                "settings": self.options.settings,
                "sent": self._sent(prompt),
            }
        )

    def _call(self, example: Example, prompt: Prompt) -> ChatCall:
        return self._asked(prompt, self._max_tokens(example))

    def _asked(self, prompt: Prompt, max_tokens: int) -> ChatCall:
        options = self.options
        sampling = Sampling(max_tokens, options.temperature, 0, options.system)
        return ChatCall(options.model, prompt, self.urls, self._sent(prompt), sampling)

    def _sent(self, prompt: Prompt) -> str:
        """Return a digest of the messages that are sent, with the bytes of their images."""
        shown, system = example_digest(prompt, None, self.release.lock), self.options.system
        return digest("sent", shown, self.options.max_pixels or 0, "" if system is None else f"system {system}").hex()
