"""What an executor is: it maps shards to processes."""

from abc import ABC, abstractmethod
from collections.abc import Generator, Sequence
from typing import TypeAlias

from mmlongbench.building.build_dir import Shard
from mmlongbench.building.session import Session
from mmlongbench.io.progress import Progress

Done: TypeAlias = tuple[Shard, float]
"""A shard that is done, and the seconds it took."""


class Executor(ABC):
    """Maps shards to processes."""

    progress: Progress
    """Where bars are shown."""

    @property
    @abstractmethod
    def has_all_files(self) -> bool:
        """Whether all files of the release are in its folder here, not only what this machine has made."""

    @abstractmethod
    def run(self, session: Session, shards: Sequence[Shard]) -> Generator[Done, None, None]:
        """Do all shards, each told as it ends; or raise the first error."""

    @abstractmethod
    def close(self) -> None:
        """End what it has started; a later `run` starts it again."""
