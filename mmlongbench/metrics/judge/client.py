"""The client of a run's judges; its errors name judges and the options that start with `--judge-`."""

from mmlongbench.metrics.judge.errors import JudgeError
from mmlongbench.models.client import ModelClient
from mmlongbench.models.pace import Backoff
from mmlongbench.models.settings import Caller, EndpointSettings, above_zero
from mmlongbench.task.metric import Judge

_CALLER = Caller("judge", "--judge-", JudgeError)


class JudgeClient(ModelClient):
    """The client of a run's judges; several threads may use it."""

    def __init__(self, judge: Judge, backoff: Backoff) -> None:
        """Open the cache and the endpoint; no call is made yet.

        Raises:
            JudgeError: the settings make no sense, or the cache cannot be used.

        """
        _check(judge)
        self.judge = judge
        settings = EndpointSettings(
            judge.url, judge.cache, judge.concurrency, judge.timeout, judge.attempts, judge.prices, judge.is_dry
        )
        super().__init__(settings, backoff, _CALLER)


def _check(judge: Judge) -> None:
    """Refuse settings that make no sense."""
    if not judge.models or not all(model.strip() for model in judge.models):
        raise JudgeError("--judge-model: expected the name of a model that the endpoint serves, found none")
    if len(set(judge.models)) < len(judge.models):
        raise JudgeError(
            f"--judge-model: {', '.join(judge.models)}: one is named twice, and its grades would count twice; name "
            "each once, and ask it more often with --judge-samples"
        )
    above_zero("--judge-samples", 1 if judge.samples is None else judge.samples, JudgeError)
