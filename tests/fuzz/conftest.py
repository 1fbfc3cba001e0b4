"""What every fuzz test is held to: it ends, and its memory is bounded."""

import faulthandler
import resource
from collections.abc import Iterator

import pytest
from mutated import MOST

_SECONDS = 300 + 2 * MOST
"""Against a hang only: a test takes seconds, a long run of it a fraction of a second an example."""
_KILOBYTES = 2 * 1024 * 1024


@pytest.fixture(autouse=True)
def _bounded() -> Iterator[None]:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    faulthandler.dump_traceback_later(_SECONDS, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < _KILOBYTES
