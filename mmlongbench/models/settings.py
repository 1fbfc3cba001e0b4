"""The settings of an endpoint, and the words for it in messages to the user."""

from dataclasses import dataclass
from pathlib import Path

from mmlongbench.errors import MMLongBenchError


class EndpointError(MMLongBenchError):
    """An endpoint cannot be called at all: its address or a setting is wrong, it cannot be reached, it refuses the key,
    or the file of answers cannot be used.
    """


@dataclass(frozen=True, slots=True)
class Caller:
    """How messages to the user name the model and the options of the command."""

    role: str = "model"
    """What the model is for the caller, such as `judge`."""
    options: str = "--"
    """The beginning of the names of the command's options; the names end in `url`, `model`, `cache` and so on."""
    error: type[EndpointError] = EndpointError
    """The error to raise if the endpoint cannot be called."""


DEFAULT_CALLER = Caller()
"""The caller for a command whose options are `--url`, `--model` and so on."""


@dataclass(frozen=True, slots=True)
class EndpointSettings:
    """An endpoint that speaks OpenAI's protocol, and how it may be used."""

    url: str
    """The address, such as `http://127.0.0.1:8000/v1`."""
    cache: Path | None = None
    """A file that keeps every answer; a call whose answer is in this file is not made again."""
    concurrency: int = 8
    """How many calls run at once."""
    timeout: float = 60.0
    """Seconds that one call may take."""
    attempts: int = 4
    """The maximum number of attempts for one call."""
    prices: tuple[float, float] | None = None
    """The prices of a million input tokens and of a million output tokens, to report the cost."""
    is_dry: bool = False
    """Whether to count the calls that would be made, without making any."""

    def check(self, caller: Caller) -> None:
        """Refuse numbers that make no sense.

        Raises:
            EndpointError: a number is not above 0, or is infinite.

        """
        for name, value in (
            (f"{caller.options}concurrency", self.concurrency),
            (f"{caller.options}timeout", self.timeout),
            ("the attempts of a call", self.attempts),
        ):
            above_zero(name, value, caller.error)
        if self.prices and not all(0 <= price < float("inf") for price in self.prices):
            raise caller.error(f"{caller.options}prices: expected two numbers, at least 0, found {self.prices}")


def above_zero(name: str, value: float, error: type[EndpointError]) -> None:
    """Refuse a number that is not above 0, or is infinite."""
    if not 0 < value < float("inf"):
        raise error(f"{name}: expected a number above 0, found {value}")
