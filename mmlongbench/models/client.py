"""Returns answers to calls from the file of answers, or from the endpoint in a limited number of attempts.

No more calls run at once than the settings allow. A failed call is not made again by the same run; a later run tries it
again.
"""

import fcntl
import threading
import time
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from pydantic import ValidationError
from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_exponential_jitter
from tenacity.nap import sleep_using_event

from mmlongbench.io.sqlite_rows import MEMORY, Store
from mmlongbench.models.calls import Call, V
from mmlongbench.models.replies import RequestError, Unusable
from mmlongbench.models.settings import EndpointError, EndpointSettings

MAX_LOST = 40
"""The number of calls that must fail, one after another, before no more calls are made to the endpoint."""
DRY = "not asked: this is a dry run"
_COUNTS = ("calls", "from_cache", "failed_calls", "requests", "input_tokens", "output_tokens")
_PAUSE = 0.05
"""The seconds between two checks whether another process has finished a call."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """The seconds to wait before a call is made again."""

    first: float = 1.0
    """The wait before the second attempt; it doubles for each further attempt."""
    most: float = 30.0
    """The longest of the waits that double."""
    asked: float = 300.0
    """The longest `Retry-After` that is accepted; a call that should wait longer fails."""


@dataclass(frozen=True, slots=True)
class Failed:
    """A call without a usable answer, and the reason."""

    why: str
    name: str = ""
    """A key of `REFUSALS`; empty for an answer that cannot be used, or if no call was made."""


class CallStore(Store):
    """The answers in a file; the key of an answer is the hash of its call.

    Each answer is written at once. Threads and processes may share a file: one of them makes a call, the others wait
    for its answer.
    """

    table: ClassVar[str] = "answers"
    columns: ClassVar[str] = (
        "call TEXT, model TEXT NOT NULL, verdict TEXT NOT NULL, "
        "input_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL"
    )
    replaces: ClassVar[bool] = True
    writes_ahead: ClassVar[bool] = True

    def __init__(self, path: Path | None, error: type[EndpointError]) -> None:
        """Open or make a file; without a path, answers are kept in memory."""
        self._error = error
        super().__init__(path or MEMORY)
        self._calls = weakref.WeakValueDictionary[str, threading.Lock]()
        with self._usable():
            self._locks = path.with_name(f"{path.name}.lock").open("ab") if path else None
        if self._locks:
            weakref.finalize(self, self._locks.close)

    def unusable(self, error: Exception) -> EndpointError:
        """Return the error to raise when the file cannot be used."""
        role, option = self._error.role, f"{self._error.options}cache"
        return self._error(f"the {role}'s answers {self.path} cannot be used: {error}; name another file with {option}")

    def get(self, key: str) -> str | None:
        """Return the answer to the call with this key as JSON, or None if there is none."""
        row = self.row(key)
        return row[2] if row else None

    @contextmanager
    def alone(self, key: str, wait: Callable[[float], bool]) -> Iterator[None]:
        """Make sure that, for each call, only one thread of all processes runs the block at a time. `wait` waits for
        some seconds, and returns whether to stop waiting.

        Other processes are kept out by a lock on one byte of the lock file, which the operating system releases if this
        process ends. It is tried again and again, because a thread that waits in the kernel may get an error about a
        deadlock.
        """
        with self._guard:
            lock = self._calls.setdefault(key, threading.Lock())
        place = int(key[:15], 16)
        with lock:
            while self._locks:
                with suppress(BlockingIOError):
                    fcntl.lockf(self._locks, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, place)
                    break
                if wait(_PAUSE):
                    break
            try:
                yield
            finally:
                if self._locks:
                    fcntl.lockf(self._locks, fcntl.LOCK_UN, 1, place)

    def close(self) -> None:
        """Close the file."""
        super().close()
        if self._locks:
            self._locks.close()


class ModelClient:
    """A client for the models of one endpoint; several threads may use it.

    Raises:
        EndpointError: the settings make no sense, or the file of answers cannot be used.

    """

    def __init__(
        self, settings: EndpointSettings, backoff: Backoff | None = None, error: type[EndpointError] = EndpointError
    ) -> None:
        """Open the file of answers and the endpoint; no call is made yet. `error` is raised if they cannot be used."""
        settings.check(error)
        self._error = error
        self.settings = settings
        self._endpoint = None
        if not settings.is_dry:
            from mmlongbench.models.endpoint import Endpoint  # takes a second

            self._endpoint = Endpoint(settings.url, settings.timeout, error)
        is_there = settings.cache is not None and (settings.cache.exists() or not settings.is_dry)
        self._store = CallStore(settings.cache if is_there else None, error)
        self._backoff = backoff or Backoff()
        self._slots = threading.BoundedSemaphore(settings.concurrency)
        self._stopped = threading.Event()
        self._open_at = 0.0
        """The time before which no request is sent, because the endpoint asked to wait."""
        self._guard = threading.Lock()
        self._counts = Counter(dict.fromkeys(_COUNTS, 0))
        self._failed: dict[str, Failed] = {}
        self._lost = 0
        self._over: EndpointError | OSError | None = None
        """Why no more calls are made; None as long as calls are made."""

    def stop(self) -> None:
        """Make no more calls; those under way end at once, as failed."""
        self._stopped.set()
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
            usage: dict[str, float] = dict(self._counts)
        usage["requests"] = self._endpoint.requests if self._endpoint else 0
        if self.settings.prices:
            tokens = (usage["input_tokens"], usage["output_tokens"])
            usage["cost"] = sum(count * price / 1e6 for count, price in zip(tokens, self.settings.prices, strict=True))
        return usage

    def window(self, model: str) -> int | None:
        """Return how many tokens of prompt and answer a model takes; None if the endpoint does not say it."""
        return self._endpoint.window(model) if self._endpoint else None

    def left_out(self, model: str) -> frozenset[str]:
        """Return the options that the endpoint refused, and that are therefore not sent to a model."""
        return self._endpoint.left_out(model) if self._endpoint else frozenset()

    def knows(self, call: Call[V]) -> bool:
        """Return whether the answer to a call is on file."""
        return self._store.get(call.key) is not None

    def ask(self, call: Call[V], *, is_fresh: bool = False) -> V | Failed:
        """Return a model's answer as `call.read` reads it, or a `Failed` that says why there is none.

        An answer that is on file is returned, unless `is_fresh` is true: then the model is asked, and its answer takes
        the place of the earlier one.

        Raises:
            EndpointError: the endpoint is not reachable, refuses the key, or has stopped answering.

        """
        with self._store.alone(call.key, self._stopped.wait):
            if not is_fresh and (kept := self._store.get(call.key)):
                with suppress(ValidationError):  # an answer that is none is asked for again
                    answer = call.form.model_validate_json(kept)
                    self._count(from_cache=1)
                    return answer
            if call.key in self._failed:
                return self._failed[call.key]
            if self.settings.is_dry:
                self._failed[call.key] = Failed(DRY)
                self._count(planned_calls=1)
            elif self._over is None:
                try:
                    return self._answer(call)
                except RequestError as error:
                    self._failed[call.key] = Failed(f"{call.model}: {error.why}", error.name)
                    self._count(failed_calls=1)
                except (EndpointError, OSError) as error:  # the endpoint fails as a whole: all waits end
                    self._over = self._over or error
                    self._stopped.set()
            if call.key not in self._failed and self._over:
                raise self._over
            return self._failed[call.key]

    def _answer(self, call: Call[V]) -> V:
        """Make a call until there is a usable reply, or another attempt is useless.

        Raises:
            RequestError: there is no usable reply.
            EndpointError: the endpoint failed, not only this call.

        """
        errors: list[RequestError] = []
        most = call.attempts or self.settings.attempts

        def attempt() -> V:
            fault = next((error.fault for error in reversed(errors) if isinstance(error, Unusable)), "")
            note = f"Your last answer could not be used: {fault}. {call.reminder}" if fault else ""
            try:
                return self._once(call, note)
            except RequestError as error:
                errors.append(error)
                raise

        def is_away() -> bool:
            return len(errors) >= self.settings.attempts and all(error.kind == "unreachable" for error in errors)

        def is_worth_another(error: BaseException) -> bool:
            return (
                isinstance(error, RequestError) and error.kind != "never" and self._holds(error.wait) and not is_away()
            )

        retrying = Retrying(
            stop=stop_after_attempt(most),
            wait=wait_exponential_jitter(
                multiplier=self._backoff.first, max=self._backoff.most, jitter=self._backoff.first / 4
            ),
            sleep=sleep_using_event(self._stopped),
            retry=retry_if_exception(is_worth_another),
            reraise=True,
        )
        try:
            return retrying(attempt)
        except RequestError as last:
            if is_away():
                role, options = self._error.role, self._error.options
                raise self._lost_endpoint(
                    f"no {role} answers there ({last.why}); start it, or correct {options}url"
                ) from last
            if isinstance(last, Unusable):
                self._lost = 0
            elif last.kind != "never":  # an endpoint that refuses this call may answer others
                with self._guard:
                    self._lost += 1
            if self._lost >= MAX_LOST:
                why = f"{self._lost} calls failed one after another, the last: {last.why}"
                raise self._lost_endpoint(why) from last
            if len(errors) > 1:
                last.why = f"no usable answer in {len(errors)} attempts, the last: {last.why}"
            raise

    def _holds(self, seconds: float | None) -> bool:
        """Let no request through for some seconds, as the endpoint asks; return False if that is too long."""
        if seconds is not None and seconds <= self._backoff.asked:
            self._open_at = max(self._open_at, time.monotonic() + seconds)
        return seconds is None or seconds <= self._backoff.asked

    def _once(self, call: Call[V], note: str) -> V:
        """Make a call once; a good answer is saved before it is returned."""
        with self._slots:
            while (left := self._open_at - time.monotonic()) > 0 and not self._stopped.wait(left):
                pass
            if self._endpoint is None or self._stopped.is_set():
                raise RequestError("stopped", "never", name="stopped")
            reply = self._endpoint.ask(call, note)
        self._count(input_tokens=reply.input_tokens, output_tokens=reply.output_tokens)
        if reply.is_refusal and not call.reads_refusals:
            said = " ".join(reply.words.split())[:120]
            raise RequestError(f"the {self._error.role} refuses: {said}", name="refusal")
        if reply.fault and not call.reads_cut_off:
            raise Unusable(reply.fault)
        answer = call.read(reply)
        kept = answer.model_dump_json()
        self._store.write([(call.key, call.model, kept, reply.input_tokens, reply.output_tokens)])
        self._count(calls=1)
        self._lost = 0
        return answer

    def _lost_endpoint(self, why: str) -> EndpointError:
        kept = f"; the answers so far are kept in {self.settings.cache}" if self.settings.cache else ""
        where = self._endpoint.url if self._endpoint else self.settings.url
        return self._error(f"{where}: {why}{kept}; run the same command to continue")

    def _count(self, **more: int) -> None:
        with self._guard:
            self._counts.update(more)
