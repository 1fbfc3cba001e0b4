"""Reads how long a server asks a client to wait."""

import email.utils
import re
import time
from collections.abc import Mapping

_EXHAUSTED = re.compile(r";\s*r=0\s*;\s*t=(\d{1,9})\b")
"""Matches a `RateLimit` header that says that no request is left, and in how many seconds there are some again."""


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that an endpoint asks to wait, given as milliseconds, seconds or a date, or as the time until
    its rate limit allows requests again; None if it gives no valid time.

    >>> retry_after({"retry-after": "1.5"}), retry_after({"retry-after-ms": "20"}), retry_after({"retry-after": "soon"})
    (1.5, 0.02, None)
    >>> retry_after({"ratelimit": '"api";r=0;t=55'})
    55.0
    """
    for name, parts in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            seconds = float(headers[name]) / parts
        except (KeyError, ValueError):
            continue
        return seconds if 0 <= seconds < float("inf") else None
    if exhausted := _EXHAUSTED.search(headers.get("ratelimit", "")):
        return float(exhausted[1])
    try:
        date = email.utils.parsedate_to_datetime(headers["retry-after"])
    except (KeyError, ValueError, OverflowError):
        return None
    return max(0.0, date.timestamp() - time.time())
