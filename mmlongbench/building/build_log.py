"""The log of a build, a file beside the release: what was started, which shards were done, how it ended."""

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
    """Return the path of the log of a release.

    >>> log_of(Path("releases/mine")).as_posix()
    'releases/mine.log'
    """
    return out.with_name(f"{out.name}.log")


@contextmanager
def logged(out: Path) -> Iterator[None]:
    """Append what a build does to the log of its release; if the log cannot be written, the build runs without it."""
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
    _log.info("started: %s; Python %s; %s", " ".join(sys.argv[1:]), platform.python_version(), made_by)
    try:
        yield
        _log.info("ended well")
    except (Interrupted, MMLongBenchError, OSError) as error:
        _log.info("ended: %s", error)
        raise
    finally:
        logger.setLevel(before)
        logger.removeHandler(handler)
        with suppress(OSError):  # the rest of the log could not be written
            handler.close()


class _Printable(logging.Formatter):
    """Formats log records for a terminal, and hides secrets, because a log is kept for long."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as one line."""
        return shown(super().format(record))


class _Quiet(logging.FileHandler):
    """A log handler that ignores its own errors: logging failures never stop a build."""

    def handleError(self, record: logging.LogRecord) -> None:
        """Do nothing."""
