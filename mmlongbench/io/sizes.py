"""Numbers of bytes in words."""

_UNITS = ((10**9, "GB"), (10**6, "MB"), (10**3, "kB"))


def said_bytes(size: int) -> str:
    """Return a number of bytes in words.

    >>> said_bytes(44_300_000_000), said_bytes(1200), said_bytes(7)
    ('44.3 GB', '1.2 kB', '7 bytes')
    """
    return next((f"{size / unit:,.1f} {name}" for unit, name in _UNITS if size >= unit), f"{size} bytes")
