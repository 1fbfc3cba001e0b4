"""The settings of an endpoint, and the words for it in messages to the user."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from pydantic import JsonValue

from mmlongbench.errors import MMLongBenchError, ReleaseError
from mmlongbench.models.calls import encodable


class EndpointError(MMLongBenchError):
    """An endpoint cannot be called at all: its address or a setting is wrong, it cannot be reached, it refuses the key,
    or the file of answers cannot be used.
    """

    role: ClassVar[str] = "model"
    """What messages call the model, such as `judge`."""
    options: ClassVar[str] = "--"
    """The beginning of the names of the command's options; the names end in `url`, `model`, `cache` and so on."""


@dataclass(frozen=True, slots=True)
class EndpointSettings:
    """An endpoint that speaks OpenAI's protocol, and how it may be used."""

    url: str
    """An endpoint that speaks OpenAI's protocol: http://…/v1."""
    cache: Path | None = None
    """A file that keeps every answer; no call is made twice."""
    concurrency: int = 8
    """The number of calls at the same time."""
    timeout: float = 60.0
    """The seconds that one call may take."""
    attempts: int = 4
    """The maximum number of attempts for a call that fails in a way that may pass."""
    prices: tuple[float, float] | None = None
    """Prices of a million tokens of prompt and of answer, to report the cost."""
    is_dry: bool = False
    """Count the calls, without making any."""

    def check(self, error: type[EndpointError]) -> None:
        """Raise EndpointError if a number is not above 0, or is infinite."""
        for name, value in (
            (f"{error.options}concurrency", self.concurrency),
            (f"{error.options}timeout", self.timeout),
            ("the attempts of a call", self.attempts),
        ):
            if not 0 < value < math.inf:
                raise error(f"{name}: expected a number above 0, found {value}")
        if self.prices and not all(0 <= price < math.inf for price in self.prices):
            raise error(f"{error.options}prices: expected two numbers, at least 0, found {self.prices}")


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How a model is asked."""

    model: str
    """The name of the model, as the endpoint lists it."""
    context: str = ""
    """Another context: none, text-only, images-only, shuffled, wrong, oracle, or a form that the task offers."""
    samples: int = 1
    """The number of answers to each example; several need a temperature above 0."""
    temperature: float = 0.0
    """The temperature at which answers are drawn."""
    max_tokens: int | None = None
    """The maximum number of tokens of an answer; by default the reserve of the example."""
    system: str | None = None
    """A system message before the prompt."""
    images: str = "data-uri"
    """How images are sent: data-uri, file-url, path, or the URL at which mmlb_image/ is served."""
    max_pixels: int | None = None
    """Send images with more pixels (width × height) smaller."""
    count_as: str | None = None
    """The model whose rule counts images, if the name of the model does not tell; `none`: no receipts."""
    text_tokenizer: str | None = None
    """The path or hub id of the model's tokenizer; then every difference is reported. Without it, counts of texts are
    scaled."""
    window: int | None = None
    """The tokens of prompt and answer that the model takes, if known."""
    max_images: int | None = None
    """The images that the model takes in a request, if known."""
    skip_oversized: bool = False
    """Leave out the examples that the model cannot take; `score` shows them as skipped."""
    is_fresh: bool = False
    """Ask again also where the answer is known, as after a change of the server; to continue, leave it out."""

    def check(self) -> None:
        """Refuse values that make no sense; the `ReleaseError` names the option, its value, and what was expected."""
        name = self.model
        is_name = isinstance(name, str) and bool(name.strip()) and name.isprintable()
        if not is_name or len(name.encode()) > 200:
            raise ReleaseError(f"model {name!r:.80}: expected a name of at most 200 printable bytes in UTF-8")
        needed = ("context", "images", "samples")
        for option in ("context", "images", "system", "count_as", "text_tokenizer"):
            value = getattr(self, option)
            if not isinstance(value, str) and (value is not None or option in needed):
                raise ReleaseError(f"{option} {value!r:.80}: expected a text")
            if value and value != encodable(value):
                raise ReleaseError(f"{option} {value!r:.80}: has characters that UTF-8 cannot encode")
        for option in ("samples", "max_tokens", "max_pixels", "window", "max_images"):
            value = getattr(self, option)
            if (type(value) is not int or value < 1) and (value is not None or option in needed):
                raise ReleaseError(f"{option} {value!r:.80}: expected a whole number, at least 1")
        heat = self.temperature
        if isinstance(heat, bool) or not isinstance(heat, int | float) or not 0 <= heat < math.inf:
            raise ReleaseError(f"temperature {self.temperature!r:.80}: expected a number, at least 0")
        if self.samples > 1 and not self.temperature:
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
