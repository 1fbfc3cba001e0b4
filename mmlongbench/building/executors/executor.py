"""The base class of executors, which run shards in processes."""

from abc import ABC, abstractmethod
from collections.abc import Generator, Sequence
from typing import TypeAlias

from mmlongbench.building.build_dir import BuildDir, Shard
from mmlongbench.building.session import Session
from mmlongbench.io.progress import Progress

Done: TypeAlias = tuple[Shard, float]
"""A finished shard, and the seconds that it took."""


class Executor(ABC):
    """Runs shards in processes."""

    progress: Progress
    """Shows progress bars."""

    @property
    @abstractmethod
    def has_all_files(self) -> bool:
        """Return whether the folder of the release on this machine has all files, not only the files that this machine
        made.
        """

    @abstractmethod
    def run(self, session: Session, shards: Sequence[Shard]) -> Generator[Done, None, None]:
        """Run all shards, and yield (shard, seconds) whenever a shard is done; raise the first error."""

    @abstractmethod
    def close(self) -> None:
        """End the processes that this executor started; a later `run` starts them again."""

    def discard_elsewhere(self, build_dir: BuildDir) -> None:  # noqa: B027  (most executors have nothing elsewhere)
        """Discard copies of an unfinished build that are not in its folder; the folder itself is discarded already."""
