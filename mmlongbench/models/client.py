"""Returns answers to calls from the file of answers, or from the endpoint in a limited number of attempts.

No more calls run at once than the settings allow. A failed call is not made again by the same run; a later run tries it
again.
"""

import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mmlongbench.models.call_store import Answer, CallStore
from mmlongbench.models.calls import ModelCall, Unusable, V
from mmlongbench.models.endpoint import Endpoint
from mmlongbench.models.pace import Backoff, RateLimiter
from mmlongbench.models.replies import RequestError
from mmlongbench.models.settings import DEFAULT_CALLER, Caller, EndpointError, EndpointSettings

MAX_LOST = 40
"""The number of calls that must fail, one after another, before no more calls are made to the endpoint."""
DRY = "not asked: this is a dry run"
_STOPPED = RequestError("stopped", "never", name="stopped")
_COUNTS = ("calls", "from_cache", "failed_calls", "requests", "input_tokens", "output_tokens")


@dataclass(frozen=True, slots=True)
class Failed:
    """A call without a usable answer, and the reason."""

    why: str
    name: str = ""
    """The name of the error (see `refusals`); empty for an answer that cannot be used, or if no call was made."""


class ModelClient:
    """A client for the models of one endpoint; several threads may use it.

    Raises:
        EndpointError: the settings make no sense, or the file of answers cannot be used.

    """

    def __init__(self, settings: EndpointSettings, backoff: Backoff, caller: Caller = DEFAULT_CALLER) -> None:
        """Open the file of answers and the endpoint; no call is made yet."""
        settings.check(caller)
        self.settings = settings
        self._caller = caller
        self._endpoint = None if settings.is_dry else Endpoint(settings.url, settings.timeout, caller)
        is_there = settings.cache is not None and (settings.cache.exists() or not settings.is_dry)
        self._store = CallStore(settings.cache if is_there else None, caller)
        self._pace = RateLimiter(backoff)
        self._slots = threading.BoundedSemaphore(settings.concurrency)
        self._guard = threading.Lock()
        self._counts = Counter(dict.fromkeys(_COUNTS, 0))
        self._failed: dict[str, Failed] = {}
        self._lost = 0
        self._over: EndpointError | OSError | None = None
        """Why no more calls are made; None as long as calls are made."""

    def stop(self) -> None:
        """Make no more calls; those under way end at once, as failed."""
        self._pace.stop()
        if self._endpoint:
            self._endpoint.stop()

    def close(self) -> None:
        """Stop, and close files and connections."""
        self.stop()
        if self._endpoint:
            self._endpoint.close()
        self._store.close()

    def usage(self) -> Mapping[str, float]:
        """Return the counts so far, by name.

        They say how many calls a model answered, how many the file answered, how many failed, and how many requests and
        tokens were used. If the settings have prices, the cost is added.
        """
        with self._guard:
            found: dict[str, float] = dict(self._counts)
        if self.settings.prices:
            tokens = (found["input_tokens"], found["output_tokens"])
            found["cost"] = sum(count * price / 1e6 for count, price in zip(tokens, self.settings.prices, strict=True))
        return found

    def window(self, model: str) -> int | None:
        """Return how many tokens of prompt and answer a model takes; None if the endpoint does not say it."""
        return self._endpoint.window(model) if self._endpoint else None

    def left_out(self, model: str) -> frozenset[str]:
        """Return the options that the endpoint refused, and that are therefore not sent to a model."""
        return self._endpoint.left_out(model) if self._endpoint else frozenset()

    def knows(self, call: ModelCall[V]) -> bool:
        """Return whether the answer to a call is on file."""
        return self._store.get(call.key) is not None

    def ask(self, call: ModelCall[V], *, is_fresh: bool = False) -> V | Failed:
        """Return a model's answer as `call.read` reads it, or a `Failed` that says why there is none.

        An answer that is on file is returned, unless `is_fresh` is true: then the model is asked, and its answer takes
        the place of the earlier one.

        Raises:
            EndpointError: the endpoint is not reachable, refuses the key, or has stopped answering.

        """
        key = call.key
        with self._store.alone(key, self._pace.stopped_within):
            kept = None if is_fresh else self._store.get(key)
            known = call.restored(kept.value) if kept else Unusable("none is kept")
            if not isinstance(known, Unusable):
                self._count(from_cache=1)
                return known
            if key not in self._failed:
                found = Failed(DRY) if self.settings.is_dry else self._made(call, key)
                if not isinstance(found, Failed):
                    return found
                self._failed[key] = found
                self._count(**{"planned_calls" if self.settings.is_dry else "failed_calls": 1})
            return self._failed[key]

    def _made(self, call: ModelCall[V], key: str) -> V | Failed:
        """Make a call unless the client has given up the endpoint. If the endpoint fails as a whole during this call,
        the client gives it up, and all waits end.
        """
        if self._over is None:
            try:
                return self._attempts(call, key)
            except (EndpointError, OSError) as error:
                self._over = self._over or error
                self._pace.stop()
        raise self._over

    def _attempts(self, call: ModelCall[V], key: str) -> V | Failed:
        note, troubles = "", list[RequestError]()
        for attempt in range(call.attempts or self.settings.attempts):
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
        """Return whether another attempt is useless: the endpoint refuses, asks to wait too long, or is away."""
        is_held = found.wait is None or self._pace.hold(found.wait)
        return found.kind == "never" or not is_held or self._is_away(troubles)

    def _is_away(self, troubles: Sequence[RequestError]) -> bool:
        """Return whether all attempts that the settings allow were made, and none of them reached the endpoint."""
        return len(troubles) >= self.settings.attempts and all(each.kind == "unreachable" for each in troubles)

    def _once(self, call: ModelCall[V], key: str, note: str) -> V | RequestError | Unusable:
        """Make a call once; a good answer is saved before it is returned."""
        with self._slots:
            if self._endpoint is None or not self._pace.pass_gate():
                return _STOPPED
            outcome = self._endpoint.ask(call, note)
        self._count(requests=outcome.requests)
        if isinstance(outcome, RequestError):
            return outcome
        self._count(input_tokens=outcome.input_tokens, output_tokens=outcome.output_tokens)
        if outcome.is_refusal and not call.reads_refusals:
            said = " ".join(outcome.words.split())[:120]
            return RequestError(f"the {self._caller.role} refuses: {said}", name="refusal")
        if outcome.fault and not call.reads_cut_off:
            return Unusable(outcome.fault)
        found = call.read_reply(outcome)
        if not isinstance(found, Unusable):
            answer = Answer(call.model, found.model_dump_json(), outcome.input_tokens, outcome.output_tokens)
            self._store.keep(key, answer)
            self._count(calls=1)
            self._lost = 0
        return found

    def _given_up(self, model: str, troubles: Sequence[RequestError]) -> Failed:
        """Return the failure of a call.

        Raises:
            EndpointError: the endpoint failed, not only this call.

        """
        last, tries = troubles[-1], len(troubles)
        if self._is_away(troubles):
            role, options = self._caller.role, self._caller.options
            raise self._lost_endpoint(f"no {role} answers there ({last.why}); start it, or correct {options}url")
        if last.kind != "never":  # an endpoint that refuses this call may answer others
            with self._guard:
                self._lost = 0 if last.kind == "unusable" else self._lost + 1
        if self._lost >= MAX_LOST:
            raise self._lost_endpoint(f"{self._lost} calls failed one after another, the last: {last.why}")
        if tries == 1:
            return Failed(f"{model}: {last.why}", last.name)
        return Failed(f"{model}: no usable answer in {tries} attempts, the last: {last.why}", last.name)

    def _lost_endpoint(self, why: str) -> EndpointError:
        kept = f"; the answers so far are kept in {self.settings.cache}" if self.settings.cache else ""
        where = self._endpoint.url if self._endpoint else self.settings.url
        return self._caller.error(f"{where}: {why}{kept}; run the same command to continue")

    def _count(self, **more: int) -> None:
        with self._guard:
            self._counts.update(more)
