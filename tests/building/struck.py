"""The command, whose process is sent the signal SIGNAL before a file appears whose path holds PART; for the tests.

Both are given by the environment, which the workers of a build share: whichever of its processes comes to it, the one
that was started is struck.
"""

import multiprocessing
import os

from mmlongbench.cli import main

rename = os.replace


def replace(source: str, target: str) -> None:
    if os.environ["PART"] in str(target):
        started = multiprocessing.parent_process()
        os.kill(os.getpid() if started is None else started.pid or 0, int(os.environ["SIGNAL"]))
    rename(source, target)


if __name__ in ("__main__", "__mp_main__"):  # the command, and its workers
    os.replace = replace  # type: ignore[assignment]

if __name__ == "__main__":
    main()
