"""What all judged metrics have: a client for their judges, and the rubrics' common parts."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from mmlongbench.scoring.judge.client import Failed, JudgeClient
from mmlongbench.scoring.judge.errors import JudgeError
from mmlongbench.scoring.judge.pace import Waits
from mmlongbench.scoring.metric import Asked, Scored, Settings


class Judged:
    """A metric that asks judges; `close` lets go of the cache and the connections."""

    name: ClassVar[str]

    def __init__(self, settings: Settings, waits: Waits | None = None) -> None:
        """Open the client.

        Raises:
            JudgeError: no judge is named, or it cannot be asked.

        """
        if settings.judge is None:
            raise JudgeError(f"{self.name}: no judge is named: --judge-url and --judge-model do")
        self.judge = settings.judge
        self.client = JudgeClient(settings.judge, waits or Waits())

    @property
    def concurrency(self) -> int:
        """How many examples may be scored at once."""
        return self.judge.concurrency

    @property
    def model(self) -> str:
        """The judge, where one is asked: the first."""
        return self.judge.models[0]

    def usage(self) -> Mapping[str, float]:
        """Calls, tokens and failures so far."""
        return self.client.usage()

    def stop(self) -> None:
        """Ask nothing any more; who waits for an answer gets none, soon."""
        self.client.stop()

    def close(self) -> None:
        """Let go of the cache and the connections."""
        self.client.close()


def unscored(failed: Failed) -> Scored:
    """An example whose judge gave no usable answer."""
    return Scored(None, failure=failed.why)


def too_long(name: str, texts: Sequence[str]) -> Failed:
    """Why texts are not judged that a judge cannot be shown whole."""
    return Failed(f"too long to be judged: {len(texts):,} {name}, {sum(map(len, texts)):,} characters")


def question_of(asked: Asked) -> str:
    """The question of a record, or nothing."""
    question: Any = asked.record.get("question")
    return question if isinstance(question, str) else ""


def reason_of(reason: str) -> str:
    """A judge's reason, short enough for a line of scores."""
    shown = " ".join(reason.split())
    return shown if len(shown) <= 300 else f"{shown[:299]}…"
