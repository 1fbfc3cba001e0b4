"""Decides when the next request may be sent: the waits between attempts grow, and an endpoint may ask for a wait with
`Retry-After`.
"""

import threading
import time
from dataclasses import dataclass, field

from mmlongbench.draws import Draws


@dataclass(frozen=True, slots=True)
class Backoff:
    """The seconds to wait before a call is made again."""

    first: float = 1.0
    """The wait before the second attempt; it doubles for each further attempt."""
    most: float = 30.0
    """The longest of the waits that double."""
    asked: float = 300.0
    """The longest `Retry-After` that is accepted; a call that should wait longer fails."""


@dataclass(slots=True)
class RateLimiter:
    """The waits of all threads that call one endpoint."""

    backoff: Backoff
    _stopped: threading.Event = field(default_factory=threading.Event)
    _open_at: float = 0.0

    def hold(self, seconds: float) -> bool:
        """Let no request through for some seconds, as the endpoint asks; return False if that is too long."""
        if seconds > self.backoff.asked:
            return False
        self._open_at = max(self._open_at, time.monotonic() + seconds)
        return True

    def pass_gate(self) -> bool:
        """Wait until requests may be sent; return False if everything was stopped."""
        while (left := self._open_at - time.monotonic()) > 0:
            if self._stopped.wait(left):
                return False
        return not self._stopped.is_set()

    def rest(self, key: str, attempt: int) -> bool:
        """Wait before a further attempt (1 is the second attempt), for a time that differs from call to call. Return
        False if everything was stopped.
        """
        longest = min(self.backoff.first * 2.0 ** (attempt - 1), self.backoff.most)
        share = 0.75 + 0.25 * Draws(("model", key)).fraction(f"wait {attempt}")
        return not self._stopped.wait(longest * share)

    def stopped_within(self, seconds: float) -> bool:
        """Wait some seconds, or until everything is stopped; return whether it is stopped."""
        return self._stopped.wait(seconds)

    def stop(self) -> None:
        """Wake all waiting threads; from now on no thread waits."""
        self._stopped.set()
