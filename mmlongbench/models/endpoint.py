"""Sends one request to an endpoint that speaks OpenAI's protocol, and reads the result.

The retries of the client library are off, because `ModelClient` counts the attempts.
"""

import importlib
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from mmlongbench.io.downloads import retry_after
from mmlongbench.io.printable import without_password, without_secrets
from mmlongbench.models.calls import ModelCall, V
from mmlongbench.models.options import named_in, of_the_form, renamed
from mmlongbench.models.refusals import REFUSALS, name_of
from mmlongbench.models.replies import Outcome, Reply, RequestError, listed_window, read_reply
from mmlongbench.models.settings import Caller
from mmlongbench.models.wire import Transport

if TYPE_CHECKING:
    import openai

MAX_BYTES = 16 * 1024 * 1024
"""The maximum size of a response."""
_SHORTEST_KEY = 8
"""The characters of a key that is looked for in messages; a shorter one, as for a local server, is no secret."""
_CONNECT = 10.0
"""The maximum seconds to connect to the endpoint."""
_REFUSES_OPTIONS = (400, 422, 501)
"""The HTTP statuses with which endpoints refuse options that they do not know, such as structured output."""
_WORTH_ANOTHER = (408, 409, 425, 429)


class Endpoint:
    """An endpoint; several threads may use it."""

    def __init__(self, url: str, timeout: float, caller: Caller) -> None:
        """Open the client; nothing is sent yet."""
        self.url = _checked(url, caller)
        self._caller = caller
        self._timeout = timeout
        self._key = os.environ.get("OPENAI_API_KEY", "")
        self._unknown: dict[str, frozenset[str]] = {}
        """For each model, the options that a refusal named and that are therefore left out."""
        self._renamed: dict[str, Mapping[str, str]] = {}
        """For each model, the options that a refusal asked for under another name."""
        self._library: Any = importlib.import_module("openai")  # only here, because it takes a second
        http = importlib.import_module(self._library.DefaultHttpxClient.__bases__[0].__module__)
        self._wire = Transport(self._library, http, timeout)
        self._client = self._opened(url)
        self._unreachable: tuple[type[Exception], ...] = (http.ConnectError, http.ConnectTimeout)
        self._late: tuple[type[Exception], ...] = (self._library.APITimeoutError, http.TimeoutException)
        self._broken_off: tuple[type[Exception], ...] = (self._library.APIConnectionError, http.HTTPError)

    def _opened(self, url: str) -> "openai.OpenAI":
        library = self._library
        limits = library.Timeout(self._timeout, connect=min(self._timeout, _CONNECT))
        client: openai.OpenAI = library.OpenAI(
            base_url=url, api_key=self._key or "none", timeout=limits, max_retries=0, http_client=self._wire.client
        )
        return client

    def stop(self) -> None:
        """Cut the connections of calls under way, which then fail; no further call is answered."""
        self._wire.stop()

    def close(self) -> None:
        """Close all connections."""
        self._client.close()

    def window(self, model: str) -> int | None:
        """Return how many tokens of prompt and answer a model takes, if the endpoint lists it (as vLLM does)."""
        try:
            with self._wire.request(_CONNECT), self._client.models.with_streaming_response.list() as response:
                body = _body(response.iter_bytes())
        except (self._library.OpenAIError, *self._broken_off, *self._late):
            return None
        return listed_window(body, model) if isinstance(body, bytes) else None

    def ask(self, call: ModelCall[V], note: str = "") -> Outcome:
        """Make a call, and repeat it without an option that the endpoint refuses.

        If the refusal names an option and the call succeeds without it, later calls to the model leave this option out
        too. If the refusal names no option, it may be about this call only. Then the options of `of_the_form` are left
        out of this call only.
        """
        unknown, requests, own = self._unknown.get(call.model, frozenset()), 1, call.options()
        names = self._renamed.get(call.model, {})
        options = _under_names(names, _without(unknown, own))
        found, was_renamed = self._request(call, note, options), False
        while isinstance(found, RequestError) and found.status in _REFUSES_OPTIONS:
            if not was_renamed and (other := renamed(found.why, options)):
                was_renamed, names, options = True, other, _under_names(other, options)
            else:
                named = named_in(found.why, own) & set(options)
                left_out = named or of_the_form(own) & set(options)
                if not left_out:
                    break
                unknown, options = unknown | named, _without(left_out, options)
            requests += 1
            found = self._request(call, note, options)
        if isinstance(found, Reply):
            self._unknown[call.model] = self._unknown.get(call.model, frozenset()) | unknown
            self._renamed[call.model] = names
        return replace(found, requests=requests)

    def left_out(self, model: str) -> frozenset[str]:
        """Return the options that the endpoint refused, and that are therefore not sent to a model."""
        return self._unknown.get(model, frozenset())

    def _request(self, call: ModelCall[V], note: str, options: Mapping[str, object]) -> Outcome:
        said: dict[str, Any] = {"model": call.model, "messages": call.messages(note), **options}
        start = time.monotonic()
        with self._wire.request() as deadline:
            found = self._exchanged(said)
        if isinstance(found, Reply):
            found = replace(found, seconds=round(time.monotonic() - start, 3))
        if isinstance(found, RequestError):
            found = replace(found, why=self._without_key(found.why))
        is_away = isinstance(found, RequestError) and found.kind == "unreachable"
        return self._late_trouble() if deadline.is_over and not is_away else found

    def _exchanged(self, said: dict[str, Any]) -> Outcome:
        try:
            with self._client.chat.completions.with_streaming_response.create(**said) as response:
                body = _body(response.iter_bytes())
        except self._library.APIStatusError as error:
            return self._refused(error)
        except self._late as error:
            is_away = isinstance(error.__cause__, self._unreachable)
            return replace(self._late_trouble(), kind="unreachable" if is_away else "again")
        except self._broken_off as error:
            cause = error.__cause__ or error
            is_away = isinstance(cause, self._unreachable)
            why = " ".join(str(cause).split()) or type(cause).__name__
            if is_away:
                return RequestError(why, "unreachable", name="connection")
            return RequestError(f"the connection broke: {why}", name="connection")
        return read_reply(body) if isinstance(body, bytes) else body

    def _late_trouble(self) -> RequestError:
        return RequestError(f"no answer in {self._timeout:g} s", name="timeout")

    def _without_key(self, said: str) -> str:
        """Return an endpoint's message without the key, because files with such messages may be passed on."""
        return said.replace(self._key, "<key>") if len(self._key) >= _SHORTEST_KEY else said

    def _refused(self, error: "openai.APIStatusError") -> RequestError:
        """Return the error for a status that is not a success.

        Raises:
            EndpointError: every call will fail, because the key or the path is wrong.

        """
        status = error.status_code
        role, options, failure = self._caller.role, self._caller.options, self._caller.error
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
        return RequestError(
            f"HTTP {status}{': ' if said else ''}{said}{asks}",
            "again" if is_worth else "never",
            status,
            wait,
            name=name,
        )


def _body(chunks: Iterable[bytes]) -> bytes | RequestError:
    """Return a whole response, or an error if it is too large."""
    body = bytearray()
    for chunk in chunks:
        body += chunk
        if len(body) > MAX_BYTES:
            return RequestError(f"a response of more than {MAX_BYTES:,} bytes", name="not-a-completion")
    return bytes(body)


def _without(names: frozenset[str], options: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in options.items() if name not in names}


def _under_names(names: Mapping[str, str], options: Mapping[str, object]) -> dict[str, object]:
    return {names.get(name, name): value for name, value in options.items()}


def _checked(url: str, caller: Caller) -> str:
    """Return an endpoint's address in the form for messages, without a password."""
    try:
        parts = urlsplit(url)
        is_good = parts.scheme in ("http", "https") and bool(parts.hostname)
        place = f"{parts.hostname}:{parts.port}" if parts.port else f"{parts.hostname}"
    except ValueError:
        is_good = False
    if not is_good:
        said = without_password(url)
        raise caller.error(f"{caller.options}url {said!r}: expected an address such as http://127.0.0.1:8000/v1")
    return f"{parts.scheme}://{place}{parts.path}"
