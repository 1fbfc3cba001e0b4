"""What all judged metrics have: a profile, a client for their judges, and the parts of prompts that they share."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

from mmlongbench.metrics.judge.client import Failed, JudgeClient
from mmlongbench.metrics.judge.errors import JudgeError
from mmlongbench.metrics.judge.pace import Backoff
from mmlongbench.metrics.judge.public_prompts import FILES, Places, PublicPrompts, public_prompts
from mmlongbench.task.metric import Judge, Metric, Profile, Score, Settings

MAX_CHARACTERS = 200_000
"""Of one text that is shown whole; about 50,000 tokens."""


class Judged(Metric):
    """A metric that asks judges; `close` lets go of the cache and the connections.

    Raises:
        JudgeError: no judge is named, or it cannot be asked; `official` is asked for, and the public code's prompts
            are missing.

    """

    places: ClassVar[Places] = {}
    """The public code's prompts without which there is no `official`, each with its places."""
    prompts_file: ClassVar[str] = ""
    """Where the public code keeps them."""
    public_model: ClassVar[str] = ""
    """The judge of the public code, which is asked under `official` where no model is named."""

    def __init__(self, settings: Settings, backoff: Backoff | None = None) -> None:
        """Read the public code's prompts where they are given, and open the client."""
        if settings.judge is None:
            raise JudgeError(f"{self.name}: no judge is named: --judge-url and --judge-model do")
        self.public = self._public_prompts(settings)
        super().__init__(settings)
        self.judge = self._with_model(settings.judge)
        self.client = JudgeClient(self.judge, backoff or Backoff())
        wording = () if self.public else ("own wording",)
        self.choices = (*wording, f"judge{'s' if len(self._asked) > 1 else ''} {', '.join(self._asked)}")
        self.concurrency = self.judge.concurrency
        if self.public and self.public_model not in ("", self.model):
            other = f"the public code asks {self.public_model}, this run {self.model}"
            self.notes = (f"{other}; scores of other judges may differ",)

    def offered(self) -> Mapping[Profile, str]:
        """Return the profiles; where `official` has prompts of its own, only if they are given, with their digest."""
        if not self.places:
            return self.profiles
        found = dict(self.profiles)
        code = found.pop("official")
        return found | {"official": f"{code}, prompts {self.public.source}"} if self.public else found

    @property
    def model(self) -> str:
        """The judge, where one is asked: the first."""
        return self.judge.models[0]

    @property
    def _asked(self) -> tuple[str, ...]:
        """Return the judges that this metric asks."""
        return self.judge.models[:1]

    def usage(self) -> Mapping[str, float]:
        """Return how many calls, tokens and failures there have been so far."""
        return self.client.usage()

    def stop(self) -> None:
        """Ask nothing any more; who waits for an answer gets none, soon."""
        self.client.stop()

    def close(self) -> None:
        """Let go of the cache and the connections."""
        self.client.close()

    def _public_prompts(self, settings: Settings) -> PublicPrompts | None:
        """Return the public code's prompts where the user gives them and asks for no other profile."""
        if not self.places or settings.profile not in (None, "official"):
            return None
        if settings.judge_prompts:
            return public_prompts(settings.judge_prompts, self.name, self.places)
        if settings.profile is None:
            return None
        raise JudgeError(
            f"--profile official: {self.name} needs the public code's own prompts, which are no part of this project; "
            f"give --judge-prompts its {self.prompts_file} or its checkout ({' and '.join(FILES)} in it); without "
            "them its scores are `ours`"
        )

    def _with_model(self, judge: Judge) -> Judge:
        """Return the judge with the public code's model where none is named."""
        has_default = self.public is not None and self.public_model and not judge.models
        return replace(judge, models=(self.public_model,)) if has_default else judge


def unscored(failed: Failed) -> Score:
    """An example whose judge gave no usable answer."""
    return Score(None, failure=failed.why)


def too_long(name: str, texts: Sequence[str]) -> Failed:
    """Why texts are not judged that a judge cannot be shown whole."""
    return Failed(f"too long to be judged: {len(texts):,} {name}, {sum(map(len, texts)):,} characters")
