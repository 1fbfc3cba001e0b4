"""Every fuzz test must end, in bounded memory."""

import faulthandler
import resource
from collections.abc import Iterator

import pytest
from mutated import MOST

_SECONDS = 300 + 2 * MOST
"""Only for tests that hang: a test takes seconds, and a long run takes a fraction of a second for each example."""
_KILOBYTES = 2 * 1024 * 1024


@pytest.fixture(autouse=True)
def _bounded() -> Iterator[None]:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    faulthandler.dump_traceback_later(_SECONDS, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < _KILOBYTES
