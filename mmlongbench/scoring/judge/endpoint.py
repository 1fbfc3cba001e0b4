"""One request to an endpoint that speaks OpenAI's protocol, and what came of it. Knows no rubric and no cache.

The client library's own retries are off, so that attempts are counted here.
"""

import importlib
import os
import time
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from mmlongbench.scoring.errors import missing
from mmlongbench.scoring.judge.calls import Call, V
from mmlongbench.scoring.judge.errors import JudgeError
from mmlongbench.scoring.judge.pace import retry_after
from mmlongbench.scoring.judge.replies import Outcome, Reply, Trouble, read_reply
from mmlongbench.scoring.judge.verdicts import shape

if TYPE_CHECKING:
    import openai

MOST_TOKENS = 8192
"""Of an answer, with what a model thinks before it."""
MOST_BYTES = 16 * 1024 * 1024
"""Of a response."""
_CONNECT = 10.0
"""Seconds to reach the endpoint, at most."""
_REFUSES_OPTIONS = (400, 422, 501)
"""What endpoints say that do not know structured output, or another option."""
_WORTH_ANOTHER = (408, 409, 425, 429)


class Endpoint:
    """A judge's endpoint; threads may share it."""

    def __init__(self, url: str, timeout: float) -> None:
        """Open the client; nothing is sent yet."""
        self.url = _checked(url)
        self._timeout = timeout
        self._bare: set[str] = set()
        """Models that take no options."""
        self._client = _client(url, timeout)
        http = importlib.import_module(_library().DefaultHttpxClient.__bases__[0].__module__)
        self._unreachable: tuple[type[Exception], ...] = (http.ConnectError, http.ConnectTimeout)
        self._late: tuple[type[Exception], ...] = (_library().APITimeoutError, http.TimeoutException, TimeoutError)
        self._broken_off: tuple[type[Exception], ...] = (_library().APIConnectionError, http.HTTPError)

    def close(self) -> None:
        """Close its connections."""
        self._client.close()

    def ask(self, call: Call[V], note: str = "") -> Outcome:
        """Make a call once; once more without options where the endpoint refuses them."""
        if call.model in self._bare:
            return self._request(call, note, {})
        found = self._request(call, note, _options(call))
        if isinstance(found, Reply) or found.status not in _REFUSES_OPTIONS:
            return found
        bare = self._request(call, note, {})
        if isinstance(bare, Reply):
            self._bare.add(call.model)
        return replace(bare, requests=2)

    def _request(self, call: Call[V], note: str, options: dict[str, Any]) -> Outcome:
        library = _library()
        said: dict[str, Any] = {"model": call.model, "messages": call.messages(note), **options}
        ends = time.monotonic() + self._timeout
        try:
            with self._client.chat.completions.with_streaming_response.create(**said) as response:
                body = self._body(response.iter_bytes(), ends)
        except library.APIStatusError as error:
            return self._refused(error)
        except self._late as error:
            is_away = isinstance(error.__cause__, self._unreachable)
            return Trouble(f"no answer in {self._timeout:g} s", "unreachable" if is_away else "again")
        except self._broken_off as error:
            cause = error.__cause__ or error
            is_away = isinstance(cause, self._unreachable)
            why = " ".join(str(cause).split()) or type(cause).__name__
            return Trouble(why, "unreachable") if is_away else Trouble(f"the connection broke: {why}")
        return read_reply(body) if isinstance(body, bytes) else body

    def _body(self, chunks: Iterable[bytes], ends: float) -> bytes | Trouble:
        """A whole response within time and bounds, however slowly it drips."""
        body = bytearray()
        for chunk in chunks:
            body += chunk
            if len(body) > MOST_BYTES:
                return Trouble(f"a response of more than {MOST_BYTES:,} bytes")
            if time.monotonic() > ends:
                raise TimeoutError
        return bytes(body)

    def _refused(self, error: "openai.APIStatusError") -> Trouble:
        """A status that is no success.

        Raises:
            JudgeError: nothing will come of any call: the key or the path is wrong.

        """
        status = error.status_code
        said = " ".join(str(error.message).removeprefix(f"Error code: {status}").removeprefix(" - ").split())[:200]
        if status == 401:
            raise JudgeError(f"{self.url}: the judge's endpoint refuses the key ({said or status}); set OPENAI_API_KEY")
        if status == 404:
            raise JudgeError(
                f"{self.url}: no such path or model ({said or status}); --judge-url mostly ends in /v1, and "
                "--judge-model is a name that the endpoint lists under /models"
            )
        is_worth = status in _WORTH_ANOTHER or (status >= 500 and status not in _REFUSES_OPTIONS)
        wait = retry_after(error.response.headers) if is_worth else None
        asks = "" if wait is None else f", asks to wait {wait:g} s"
        return Trouble(
            f"HTTP {status}{': ' if said else ''}{said}{asks}", "again" if is_worth else "never", status, wait
        )


def _options(call: Call[V]) -> dict[str, Any]:
    """What is asked for beside the words."""
    form = {"name": call.verdict.__name__, "schema": shape(call.verdict), "strict": True}
    options = {
        "response_format": {"type": "json_schema", "json_schema": form},
        "temperature": call.temperature,
        "max_completion_tokens": MOST_TOKENS,
    }
    return {**options, "seed": call.sample} if call.temperature else options


def _checked(url: str) -> str:
    """An endpoint's address as messages show it, without a password."""
    try:
        parts = urlsplit(url)
        is_good = parts.scheme in ("http", "https") and bool(parts.hostname)
        place = f"{parts.hostname}:{parts.port}" if parts.port else f"{parts.hostname}"
    except ValueError:
        is_good = False
    if not is_good:
        raise JudgeError(f"--judge-url {url!r}: expected an address such as http://127.0.0.1:8000/v1")
    return f"{parts.scheme}://{place}{parts.path}"


def _library() -> Any:  # noqa: ANN401  (the module)
    try:
        return importlib.import_module("openai")
    except ImportError as error:
        raise missing("openai", "a judge") from error


def _client(url: str, timeout: float) -> "openai.OpenAI":
    library = _library()
    limits = library.Timeout(timeout, connect=min(timeout, _CONNECT))
    key = os.environ.get("OPENAI_API_KEY") or "none"
    client: openai.OpenAI = library.OpenAI(base_url=url, api_key=key, timeout=limits, max_retries=0)
    return client
