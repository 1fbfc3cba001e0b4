"""The run log: a file beside the release that says what was done when. No part of the release: it has times."""

import logging
import platform
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from mmlongbench.errors import Interrupted, MMLongBenchError
from mmlongbench.io.printable import shown
from mmlongbench.release.lock import versions

_log = logging.getLogger(__name__)


def log_of(out: Path) -> Path:
    """Where the log of a release stands: beside it.

    >>> log_of(Path("releases/mine")).as_posix()
    'releases/mine.log'
    """
    return out.with_name(f"{out.name}.log")


@contextmanager
def logged(out: Path) -> Iterator[None]:
    """Append what a build does to the log of its release; where no log can be written, the build goes on without."""
    handler: logging.Handler = logging.NullHandler()
    with suppress(OSError):
        handler = _Quiet(log_of(out), encoding="utf-8", errors="backslashreplace")
    form = _Printable("%(asctime)s %(process)d %(message)s", "%Y-%m-%dT%H:%M:%SZ")
    form.converter = time.gmtime
    handler.setFormatter(form)
    logger = logging.getLogger("mmlongbench")
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    made_by = ", ".join(f"{name} {version}" for name, version in versions().items())
    _log.info("begun: %s; Python %s; %s", " ".join(sys.argv[1:]), platform.python_version(), made_by)
    try:
        yield
        _log.info("ended well")
    except (Interrupted, MMLongBenchError, OSError) as error:
        _log.info("ended: %s", error)
        raise
    finally:
        logger.setLevel(before)
        logger.removeHandler(handler)
        with suppress(OSError):  # what could not be written
            handler.close()


class _Printable(logging.Formatter):
    """A log is looked at in a terminal too, and kept for longer than a secret is good."""

    def format(self, record: logging.LogRecord) -> str:
        """Give a record as one line."""
        return shown(super().format(record))


class _Quiet(logging.FileHandler):
    """A full disk ends the build by itself; a log that cannot go on is no reason to."""

    def handleError(self, record: logging.LogRecord) -> None:
        """Say nothing."""
