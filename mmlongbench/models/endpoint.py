"""Sends requests to an endpoint that speaks OpenAI's protocol. Each is cut off when its time is over.

Importing this module takes a second, because of the client library. Retries of the library are off: `ModelClient` makes
them, since it must also repeat calls whose reply cannot be used.
"""

import os
import socket
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any, Literal
from urllib.parse import urlsplit

import httpx2
import openai
from pydantic import BaseModel, ValidationError

from mmlongbench.io.downloads import retry_after
from mmlongbench.io.printable import without_password, without_secrets
from mmlongbench.models.calls import Call, V
from mmlongbench.models.replies import REFUSALS, Reply, RequestError, name_of, read_reply
from mmlongbench.models.settings import EndpointError

MAX_BYTES = 16 * 1024 * 1024
"""The maximum size of a response."""
_MAX_OF_ERROR = 64 * 1024
"""How many bytes of an error response are read."""
_SHORTEST_KEY = 8
"""The characters of a key that is looked for in messages; a shorter one, as for a local server, is no secret."""
_CONNECT = 10.0
"""The maximum seconds to connect to the endpoint."""
_REFUSES_OPTIONS = (400, 422, 501)
"""The HTTP statuses with which endpoints refuse options that they do not know, such as structured output."""
_WORTH_ANOTHER = (408, 409, 425, 429)
_OF_THE_FORM = {
    "response_format": ("response_format", "schema"),
    "max_completion_tokens": ("max_completion_tokens", "max_tokens"),
}
"""Options that do not change the answer, and their names in refusals. They may be left out after any refusal."""
_OF_THE_DRAW = {"temperature": ("temperature",), "seed": ("seed",)}
"""Options that change the answer, and their names in refusals. An option is left out only if a refusal names it and
names no option of `_OF_THE_FORM`."""
_OTHER_NAMES = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
"""The two names of the limit of an answer; some endpoints know only one of them."""


class _Listed(BaseModel):
    id: str = ""
    max_model_len: int | None = None


class _Models(BaseModel):
    data: list[_Listed] = []


class Endpoint:
    """An endpoint; several threads may use it."""

    def __init__(self, url: str, timeout: float, error: type[EndpointError]) -> None:
        """Open the client, without sending anything; raises EndpointError if the address is not valid."""
        self.url = _checked(url, error)
        """The address in the form for messages, without a password."""
        self.requests = 0
        """The number of requests so far."""
        self._counting = threading.Lock()
        self._error, self._timeout = error, timeout
        self._key = os.environ.get("OPENAI_API_KEY", "")
        self._unknown: dict[str, frozenset[str]] = {}
        """For each model, the options that a refusal named and that are therefore left out."""
        self._names: dict[str, Mapping[str, str]] = {}
        """For each model, the options that a refusal asked for under another name."""
        self._here = threading.local()
        self._under_way: set[_Deadline] = set()
        self._is_stopped = False
        # Every request has its own connection, which can be cut. A redirect could carry the key to another host.
        http = openai.DefaultHttpxClient(
            limits=httpx2.Limits(max_keepalive_connections=0),
            event_hooks={"request": [self._watch], "response": [_read_error]},
            follow_redirects=False,
        )
        limits = openai.Timeout(timeout, connect=min(timeout, _CONNECT))
        key = self._key or "none"
        self._client = openai.OpenAI(base_url=url, api_key=key, timeout=limits, max_retries=0, http_client=http)

    def stop(self) -> None:
        """Cut the connections of calls under way, which then fail; no further call is answered."""
        self._is_stopped = True
        for deadline in tuple(self._under_way):
            deadline.end()

    def close(self) -> None:
        """Close all connections."""
        self._client.close()

    def left_out(self, model: str) -> frozenset[str]:
        """Return the options that the endpoint refused, and that are therefore not sent to a model."""
        return self._unknown.get(model, frozenset())

    def window(self, model: str) -> int | None:
        """Return how many tokens of prompt and answer a model takes, if the endpoint lists it (as vLLM does)."""
        try:
            with self._deadline(_CONNECT), self._client.models.with_streaming_response.list() as response:
                listed = _Models.model_validate_json(_body(response.iter_bytes())).data
        except (openai.OpenAIError, httpx2.HTTPError, RequestError, ValidationError):
            return None
        return next((each.max_model_len for each in listed if each.id == model and (each.max_model_len or 0) > 0), None)

    def ask(self, call: Call[V], note: str = "") -> Reply:
        """Make a call, and repeat it without an option that the endpoint refuses.

        If the refusal names an option and the call succeeds without it, later calls to the model leave this option out
        too. If the refusal names no option, it may be about this call only. Then the options of `_OF_THE_FORM` are left
        out of this call only.

        Raises:
            RequestError: there is no reply.
            EndpointError: every call will fail, because the key or the path is wrong.

        """
        unknown, names = self.left_out(call.model), self._names.get(call.model, {})
        options = {names.get(name, name): value for name, value in call.options.items() if name not in unknown}
        was_renamed = False
        while True:
            try:
                reply = self._request(call, note, options)
            except RequestError as error:
                if error.status not in _REFUSES_OPTIONS:
                    raise
                other = {
                    name: other
                    for name, other in _OTHER_NAMES.items()
                    if name in options and f"'{other}' instead" in error.why
                }
                if other and not was_renamed:
                    was_renamed, names = True, other
                    options = {other.get(name, name): value for name, value in options.items()}
                    continue
                named: frozenset[str] = frozenset()
                for called in (_OF_THE_FORM, _OF_THE_DRAW):
                    named = named or frozenset(
                        name
                        for name in called
                        if name in call.options and any(word in error.why for word in called[name])
                    )
                # A refusal may list what the endpoint knows, and so name what is left out already, and what changes
                # the answer: then the options of the form go first.
                named &= options.keys()
                left_out = named or (_OF_THE_FORM.keys() & call.options.keys() & options.keys())
                if not left_out:
                    raise
                unknown |= named
                options = {name: value for name, value in options.items() if name not in left_out}
            else:
                self._unknown[call.model] = self.left_out(call.model) | unknown
                self._names[call.model] = names
                return reply

    def _request(self, call: Call[V], note: str, options: Mapping[str, object]) -> Reply:
        said: dict[str, Any] = {"model": call.model, "messages": call.messages(note), **options}
        start = time.monotonic()
        with self._deadline(self._timeout) as deadline:
            with self._counting:
                self.requests += 1
            try:
                reply = self._exchange(said)
            except RequestError as error:
                if deadline.is_over and error.kind != "unreachable":
                    raise self._late() from error
                raise
        return replace(reply, seconds=round(time.monotonic() - start, 3))

    def _exchange(self, said: dict[str, Any]) -> Reply:
        try:
            with self._client.chat.completions.with_streaming_response.create(**said) as response:
                return read_reply(_body(response.iter_bytes()))
        except openai.APIStatusError as error:
            raise self._refused(error) from error
        except (openai.APIConnectionError, httpx2.HTTPError) as error:
            cause = error.__cause__ or error
            is_away = isinstance(cause, httpx2.ConnectError | httpx2.ConnectTimeout)
            if isinstance(error, openai.APITimeoutError | httpx2.TimeoutException):
                raise self._late("unreachable" if is_away else "again") from error
            why = self._without_key(" ".join(str(cause).split()) or type(cause).__name__)
            if is_away:
                raise RequestError(why, "unreachable", name="connection") from error
            raise RequestError(f"the connection broke: {why}", name="connection") from error

    def _late(self, kind: Literal["again", "unreachable"] = "again") -> RequestError:
        return RequestError(f"no answer in {self._timeout:g} s", kind, name="timeout")

    def _without_key(self, said: str) -> str:
        """Return an endpoint's message without the key, because files with such messages may be passed on."""
        return said.replace(self._key, "<key>") if len(self._key) >= _SHORTEST_KEY else said

    def _refused(self, error: openai.APIStatusError) -> RequestError:
        """Return the error for a status that is not a success; raise an `EndpointError` if every call will fail,
        because the key or the path is wrong.
        """
        status = error.status_code
        role, options, failure = self._error.role, self._error.options, self._error
        message = str(error.message).removeprefix(f"Error code: {status}").removeprefix(" - ")
        said = self._without_key(" ".join((message or error.response.text).split()))[:200]
        if 300 <= status < 400:
            where = without_secrets(error.response.headers.get("location", "")) or "another address"
            raise failure(f"{self.url}: redirects to {where}; redirects are not followed, give the right {options}url")
        if status == 401:
            raise failure(f"{self.url}: the {role}'s endpoint refuses the key ({said or status}); set OPENAI_API_KEY")
        if status == 404:
            raise failure(
                f"{self.url}: no such path or model ({said or status}); {options}url usually ends in /v1, and "
                f"{options}model is a name that the endpoint lists under /models"
            )
        name = name_of(status, said)
        is_worth = status in _WORTH_ANOTHER or (status >= 500 and status not in _REFUSES_OPTIONS)
        is_worth = is_worth and not REFUSALS[name].is_final
        wait = retry_after(error.response.headers) if is_worth else None
        asks = "" if wait is None else f", asks to wait {wait:g} s"
        why = f"HTTP {status}{': ' if said else ''}{said}{asks}"
        return RequestError(why, "again" if is_worth else "never", name=name, status=status, wait=wait)

    @contextmanager
    def _deadline(self, seconds: float) -> Iterator["_Deadline"]:
        """Limit the time of the request that the block sends in this thread."""
        self._here.deadline = deadline = _Deadline(min(self._timeout, seconds))
        self._under_way.add(deadline)
        try:
            if self._is_stopped:
                deadline.end()
            yield deadline
        finally:
            deadline.timer.cancel()
            self._under_way.discard(deadline)

    def _watch(self, request: httpx2.Request) -> None:
        request.extensions["trace"] = self._here.deadline.trace


class _Deadline:
    """The total time that one request may take; the HTTP library limits only the wait for each piece of a response."""

    def __init__(self, seconds: float) -> None:
        self.is_over = False
        self._socket: socket.socket | None = None
        self.timer = threading.Timer(seconds, self.end)
        self.timer.daemon = True
        self.timer.start()

    def end(self) -> None:
        """Cut the connection; if it does not exist yet, it is cut as soon as it does."""
        self.is_over = True
        if self._socket:
            with suppress(OSError):  # it is already closed
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def trace(self, _: str, info: Mapping[str, object]) -> None:
        """Keep the connection when it is made; the HTTP library calls this for each of its steps."""
        of_connection = getattr(info.get("return_value"), "get_extra_info", None)
        if of_connection:
            self._socket = of_connection("socket")
            if self.is_over:
                self.end()


def _read_error(response: httpx2.Response) -> None:
    """Read the beginning of an error response; the client library would read it completely."""
    if response.is_success or not isinstance(response.stream, httpx2.SyncByteStream):
        return
    body = bytearray()
    with suppress(httpx2.HTTPError):  # the status is enough
        for chunk in response.stream:
            body += chunk
            if len(body) >= _MAX_OF_ERROR:
                break
    response.stream.close()
    response.stream = httpx2.ByteStream(bytes(body[:_MAX_OF_ERROR]))


def _body(chunks: Iterable[bytes]) -> bytes:
    body = bytearray()
    for chunk in chunks:
        body += chunk
        if len(body) > MAX_BYTES:
            raise RequestError(f"a response of more than {MAX_BYTES:,} bytes", name="not-a-completion")
    return bytes(body)


def _checked(url: str, error: type[EndpointError]) -> str:
    """Return an endpoint's address in the form for messages, without a password."""
    try:
        parts = urlsplit(url)
        place = f"{parts.hostname}:{parts.port}" if parts.port else f"{parts.hostname}"
        if parts.scheme in ("http", "https") and parts.hostname:
            return f"{parts.scheme}://{place}{parts.path}"
    except ValueError:
        pass
    said = without_password(url)
    raise error(f"{error.options}url {said!r}: expected an address such as http://127.0.0.1:8000/v1")
