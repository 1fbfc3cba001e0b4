"""When the next request may go out: waits that grow, and what an endpoint asks for with `Retry-After`."""

import email.utils
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from mmlongbench.draws import Draws


@dataclass(frozen=True, slots=True)
class Backoff:
    """How long is waited before a call is made again, in seconds."""

    first: float = 1.0
    """Before the second attempt; doubled before each that follows."""
    most: float = 30.0
    asked: float = 300.0
    """The longest `Retry-After` that is waited for; a call that is asked to wait longer fails."""


@dataclass(slots=True)
class RateLimiter:
    """The waits of all threads that ask one endpoint."""

    backoff: Backoff
    _stopped: threading.Event = field(default_factory=threading.Event)
    _open_at: float = 0.0

    def hold(self, seconds: float) -> bool:
        """Let no request go out for so long: the endpoint has asked for it; False where that is too long."""
        if seconds > self.backoff.asked:
            return False
        self._open_at = max(self._open_at, time.monotonic() + seconds)
        return True

    def pass_gate(self) -> bool:
        """Wait until requests may go out; False when all was stopped."""
        while (left := self._open_at - time.monotonic()) > 0:
            if self._stopped.wait(left):
                return False
        return not self._stopped.is_set()

    def rest(self, key: str, attempt: int) -> bool:
        """Wait before an attempt, from 1, for a time that differs from call to call; False when all was stopped."""
        longest = min(self.backoff.first * 2.0 ** (attempt - 1), self.backoff.most)
        share = 0.75 + 0.25 * Draws(("judge", key)).fraction(f"wait {attempt}")
        return not self._stopped.wait(longest * share)

    def stopped_within(self, seconds: float) -> bool:
        """Wait so long, or until all is stopped; whether it is."""
        return self._stopped.wait(seconds)

    def stop(self) -> None:
        """Wake whoever waits, for good."""
        self._stopped.set()


def retry_after(headers: Mapping[str, str]) -> float | None:
    """The seconds an endpoint asks to be left alone, as milliseconds, seconds or a date; None where it does not.

    >>> retry_after({"retry-after": "1.5"}), retry_after({"retry-after-ms": "20"}), retry_after({"retry-after": "soon"})
    (1.5, 0.02, None)
    """
    for name, parts in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            seconds = float(headers[name]) / parts
        except (KeyError, ValueError):
            continue
        return seconds if 0 <= seconds < float("inf") else None
    try:
        date = email.utils.parsedate_to_datetime(headers["retry-after"])
    except (KeyError, ValueError, OverflowError):
        return None
    return max(0.0, date.timestamp() - time.time())
