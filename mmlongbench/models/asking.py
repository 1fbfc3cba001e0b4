"""What a run asks: the chosen examples with their prompts in the chosen context, and what each should cost."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from mmlongbench.documents.image_urls import fitting_size
from mmlongbench.draws import digest
from mmlongbench.errors import ReleaseError
from mmlongbench.messages import Size
from mmlongbench.models.chat_call import ChatCall, Sampling
from mmlongbench.models.counting import counting
from mmlongbench.models.prediction_lines import PredictionLine
from mmlongbench.models.receipts import Cost, Costs, sizes_of
from mmlongbench.models.settings import RunOptions
from mmlongbench.prompt import Prompt
from mmlongbench.release.changed_contexts import contextual
from mmlongbench.release.example_cost import ImageSizes
from mmlongbench.release.layout import IMAGES
from mmlongbench.release.lock import example_digest
from mmlongbench.release.release import Example, Release
from mmlongbench.release.selection import Cell

_PROBED = 12
"""The maximum number of prompts of each dataset whose texts and images the probes use."""


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
