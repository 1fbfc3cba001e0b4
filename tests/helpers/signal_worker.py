"""The command, whose process is sent the signal SIGNAL before a file appears whose path holds PART; for the tests.

Both are given by the environment, which the workers of a build share: whichever of its processes comes to it, the one
that was started is struck; with GROUP, all of its process group are. A worker that has struck waits for its end, so
that the build is still at that file when the signal is heard.
"""

import multiprocessing
import os
import runpy
import signal

rename = os.replace


def replace(source: str, target: str) -> None:
    if os.environ["PART"] in str(target):
        started = multiprocessing.parent_process()
        strike = os.killpg if "GROUP" in os.environ else os.kill
        strike(os.getpid() if started is None else started.pid or 0, int(os.environ["SIGNAL"]))
        if started is not None:
            signal.pause()
    rename(source, target)


if __name__ in ("__main__", "__mp_main__"):  # the command, and its workers
    os.replace = replace  # type: ignore[assignment]

if __name__ == "__main__":
    runpy.run_module("mmlongbench", run_name="__main__")
