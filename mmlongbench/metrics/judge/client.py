"""Calls made with care: from the cache, else in a bounded number of attempts; counted; not more at once than allowed.

A call that failed is not made again by the same run; a later run tries it anew.
"""

import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mmlongbench.metrics.judge.cache import Answer, Cache
from mmlongbench.metrics.judge.calls import AnyCall
from mmlongbench.metrics.judge.endpoint import Endpoint
from mmlongbench.metrics.judge.errors import JudgeError
from mmlongbench.metrics.judge.pace import Backoff, RateLimiter
from mmlongbench.metrics.judge.replies import RequestError
from mmlongbench.metrics.judge.verdicts import Unusable, V
from mmlongbench.task.metric import Judge

MAX_LOST = 40
"""Calls that may fail one after another, with no answer between them, before an endpoint is given up."""
DRY = "not asked: this is a dry run"
_STOPPED = RequestError("stopped", "never")
_COUNTS = ("calls", "from_cache", "failed_calls", "requests", "input_tokens", "output_tokens")


@dataclass(frozen=True, slots=True)
class Failed:
    """A call without a usable answer, and why."""

    why: str


class JudgeClient:
    """The judges of a run; threads may share it."""

    def __init__(self, judge: Judge, backoff: Backoff) -> None:
        """Open the cache and the endpoint; nothing is asked yet."""
        _check(judge)
        self.judge = judge
        self._endpoint = None if judge.is_dry else Endpoint(judge.url, judge.timeout)
        is_there = judge.cache is not None and (judge.cache.exists() or not judge.is_dry)
        self._cache = Cache(judge.cache if is_there else None)
        self._pace = RateLimiter(backoff)
        self._slots = threading.BoundedSemaphore(judge.concurrency)
        self._guard = threading.Lock()
        self._counts = Counter(dict.fromkeys(_COUNTS, 0))
        self._failed: dict[str, Failed] = {}
        self._lost = 0
        self._over: JudgeError | None = None
        """Why no call is made any more."""

    def stop(self) -> None:
        """Make no call any more; those under way end at once, as failed."""
        self._pace.stop()
        if self._endpoint:
            self._endpoint.stop()

    def close(self) -> None:
        """Stop, and let go of files and connections."""
        self.stop()
        if self._endpoint:
            self._endpoint.close()
        self._cache.close()

    def usage(self) -> Mapping[str, float]:
        """What was asked so far: calls answered by a judge, answers from the cache, requests, tokens, their cost."""
        with self._guard:
            found: dict[str, float] = dict(self._counts)
        if self.judge.prices:
            tokens = (found["input_tokens"], found["output_tokens"])
            found["cost"] = sum(count * price / 1e6 for count, price in zip(tokens, self.judge.prices, strict=True))
        return found

    def ask(self, call: AnyCall[V]) -> V | Failed:
        """The verdict of a judge.

        Raises:
            JudgeError: the endpoint is not there, refuses the key, or gives no answer to anything any more.

        """
        key = call.key
        with self._cache.alone(key, self._pace.stopped_within):
            kept = self._cache.get(key)
            known = call.restored(kept.verdict) if kept else Unusable("none is kept")
            if not isinstance(known, Unusable):
                self._count(from_cache=1)
                return known
            if key not in self._failed:
                found = Failed(DRY) if self.judge.is_dry else self._made(call, key)
                if not isinstance(found, Failed):
                    return found
                self._failed[key] = found
                self._count(**{"planned_calls" if self.judge.is_dry else "failed_calls": 1})
            return self._failed[key]

    def _made(self, call: AnyCall[V], key: str) -> V | Failed:
        """Make a call unless the endpoint was given up; who gives it up wakes all threads that wait to ask it again."""
        if self._over is None:
            try:
                return self._attempts(call, key)
            except JudgeError as error:
                self._over = self._over or error
                self._pace.stop()
        raise self._over

    def _attempts(self, call: AnyCall[V], key: str) -> V | Failed:
        note, troubles = "", list[RequestError]()
        for attempt in range(call.attempts or self.judge.attempts):
            if attempt and not self._pace.rest(key, attempt):
                break
            found = self._once(call, key, note)
            if isinstance(found, Unusable):
                troubles.append(RequestError(str(found), "unusable"))
                if found.is_final:
                    break
                note = f"Your last answer could not be used: {found.fault}. {call.reminder}"
            elif not isinstance(found, RequestError):
                return found
            else:
                troubles.append(found)
                if self._is_hopeless(found, troubles):
                    break
        return self._given_up(call.model, troubles or [_STOPPED])

    def _is_hopeless(self, found: RequestError, troubles: Sequence[RequestError]) -> bool:
        """Return whether another attempt is not worth it: refused, told to wait too long, or nothing listens there."""
        is_held = found.wait is None or self._pace.hold(found.wait)
        return found.kind == "never" or not is_held or self._is_away(troubles)

    def _is_away(self, troubles: Sequence[RequestError]) -> bool:
        """Return whether the endpoint could not be reached in any of the attempts that the settings grant."""
        return len(troubles) >= self.judge.attempts and all(each.kind == "unreachable" for each in troubles)

    def _once(self, call: AnyCall[V], key: str, note: str) -> V | RequestError | Unusable:
        """Make a call; a good answer is kept before anybody hears of it."""
        with self._slots:
            if self._endpoint is None or not self._pace.pass_gate():
                return _STOPPED
            outcome = self._endpoint.ask(call, note)
        self._count(requests=outcome.requests)
        if isinstance(outcome, RequestError):
            return outcome
        self._count(input_tokens=outcome.input_tokens, output_tokens=outcome.output_tokens)
        if outcome.fault and not call.reads_cut_off:
            return Unusable(outcome.fault)
        found = call.read(outcome.words)
        if not isinstance(found, Unusable):
            answer = Answer(call.model, found.model_dump_json(), outcome.input_tokens, outcome.output_tokens)
            self._cache.put(key, answer)
            self._count(calls=1)
            self._lost = 0
        return found

    def _given_up(self, model: str, troubles: Sequence[RequestError]) -> Failed:
        """What is said of a call that failed.

        Raises:
            JudgeError: it is the endpoint that failed.

        """
        last, tries = troubles[-1], len(troubles)
        if self._is_away(troubles):
            raise self._lost_endpoint(f"no judge answers there ({last.why}); start it, or mend --judge-url")
        if last.kind != "never":  # an endpoint that refuses this very call is there, and may answer others
            with self._guard:
                self._lost = 0 if last.kind == "unusable" else self._lost + 1
        if self._lost >= MAX_LOST:
            raise self._lost_endpoint(f"{self._lost} calls failed one after another, the last: {last.why}")
        if tries == 1:
            return Failed(f"{model}: {last.why}")
        return Failed(f"{model}: no usable answer in {tries} attempts, the last: {last.why}")

    def _lost_endpoint(self, why: str) -> JudgeError:
        kept = f"; what was answered is kept in {self.judge.cache}" if self.judge.cache else ""
        where = self._endpoint.url if self._endpoint else self.judge.url
        return JudgeError(f"{where}: {why}{kept}; the same command goes on")

    def _count(self, **more: int) -> None:
        with self._guard:
            self._counts.update(more)


def _check(judge: Judge) -> None:
    """Refuse what cannot be meant."""
    if not judge.models or not all(model.strip() for model in judge.models):
        raise JudgeError("--judge-model: expected the name of a model that the endpoint serves, found none")
    if len(set(judge.models)) < len(judge.models):
        raise JudgeError(
            f"--judge-model: {', '.join(judge.models)}: one is named twice, and its grades would count twice; name "
            "each once, and ask it more often with --judge-samples"
        )
    for name, value in (
        ("--judge-concurrency", judge.concurrency),
        ("--judge-timeout", judge.timeout),
        ("--judge-samples", 1 if judge.samples is None else judge.samples),
        ("the attempts of a call", judge.attempts),
    ):
        if not 0 < value < float("inf"):
            raise JudgeError(f"{name}: expected a number above 0, found {value}")
