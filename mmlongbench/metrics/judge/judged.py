"""The base of all metrics with judges: a profile, a client for the judges, and shared parts of prompts."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

from mmlongbench.metrics.judge.client import JudgeClient
from mmlongbench.metrics.judge.errors import JudgeError
from mmlongbench.metrics.judge.public_prompts import FILES, Places, PublicPrompts, public_prompts
from mmlongbench.models.client import Failed
from mmlongbench.models.pace import Backoff
from mmlongbench.task.metric import Judge, Metric, Profile, Score, ScoringInput, Settings

MAX_CHARACTERS = 200_000
"""The maximum characters of a text that is shown whole; about 50,000 tokens."""


class Judged(Metric):
    """A metric that uses judges; `close` closes the cache and the connections.

    Raises:
        JudgeError: no judge is named, or a judge cannot be called; or `official` is requested, but the public code's
            prompts are missing.

    """

    places: ClassVar[Places] = {}
    """The prompts of the public code that `official` needs, each with the places to fill in (see `Places`)."""
    prompts_file: ClassVar[str] = ""
    """The file in which the public code keeps these prompts."""
    public_model: ClassVar[str] = ""
    """The judge of the public code; it is used under `official` if no model is named."""

    def __init__(self, settings: Settings, backoff: Backoff | None = None) -> None:
        """Read the public code's prompts if they are given, and open the client."""
        if settings.judge is None:
            raise JudgeError(f"{self.name}: no judge is named; name one with --judge-url and --judge-model")
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
        """Return the profiles; `official` is left out if it needs the public code's prompts and they are not given."""
        if not self.places:
            return self.profiles
        found = dict(self.profiles)
        code = found.pop("official")
        return found | {"official": f"{code}, prompts {self.public.source}"} if self.public else found

    @property
    def model(self) -> str:
        """The judge, or the first of several."""
        return self.judge.models[0]

    @property
    def _asked(self) -> tuple[str, ...]:
        """Return the judges that this metric uses."""
        return self.judge.models[:1]

    def full_answer(self, asked: ScoringInput) -> None:
        """Return None: the judge decides."""

    def usage(self) -> Mapping[str, float]:
        """Return how many calls, tokens and failures there were so far."""
        return self.client.usage()

    def stop(self) -> None:
        """Make no more calls; threads that wait for an answer stop waiting soon."""
        self.client.stop()

    def close(self) -> None:
        """Close the cache and the connections."""
        self.client.close()

    def _public_prompts(self, settings: Settings) -> PublicPrompts | None:
        """Return the public code's prompts if the user gives them and requests no other profile."""
        if not self.places or settings.profile not in (None, "official"):
            return None
        if settings.judge_prompts:
            return public_prompts(settings.judge_prompts, self.name, self.places)
        if settings.profile is None:
            return None
        raise JudgeError(
            f"--profile official: {self.name} needs the prompts of the public code, which are no part of this project; "
            f"give --judge-prompts the public code's {self.prompts_file}, or the folder of its checkout (with "
            f"{' and '.join(FILES)}); without --profile official, its scores are `ours`"
        )

    def _with_model(self, judge: Judge) -> Judge:
        """Return the settings with the public code's model if no model is named."""
        has_default = self.public is not None and self.public_model and not judge.models
        return replace(judge, models=(self.public_model,)) if has_default else judge


def unscored(failed: Failed) -> Score:
    """Return the score of an example whose judge gave no usable answer."""
    return Score(None, failure=failed.why)


def too_long(name: str, texts: Sequence[str]) -> Failed:
    """Return the failure that some texts are too long for a judge; `name` says what they are."""
    return Failed(f"too long to be judged: {len(texts):,} {name}, {sum(map(len, texts)):,} characters")
