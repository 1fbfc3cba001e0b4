"""The connection to an endpoint, with a time limit for each request and a length limit for error responses.

The HTTP library limits only the wait for each piece of a response, and reads error responses completely. So every
request has its own connection, which is cut when its time is over.
"""

import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

MAX_OF_ERROR = 64 * 1024
"""How many bytes of an error response are read."""


class Deadline:
    """The total time that one request may take."""

    def __init__(self, seconds: float) -> None:
        """Start the timer."""
        self.is_over = False
        self._socket: socket.socket | None = None
        self._timer = threading.Timer(seconds, self.end)
        self._timer.daemon = True
        self._timer.start()

    def end(self) -> None:
        """Cut the connection; if it does not exist yet, it is cut as soon as it does."""
        self.is_over = True
        if self._socket:
            with suppress(OSError):  # it is already closed
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def cancel(self) -> None:
        """Stop the timer, because the request is done."""
        self._timer.cancel()

    def trace(self, _: str, info: Mapping[str, object]) -> None:
        """Keep the connection when it is made, to cut it later; the HTTP library calls this for each of its steps."""
        of_connection = getattr(info.get("return_value"), "get_extra_info", None)
        if of_connection:
            self._socket = of_connection("socket")
            if self.is_over:
                self.end()


class Transport:
    """The requests under way; several threads may use it."""

    def __init__(self, library: Any, http: Any, seconds: float) -> None:  # noqa: ANN401  (modules)
        """Open the HTTP client of a client library; nothing is sent yet."""
        self._http, self._seconds = http, seconds
        self._here = threading.local()
        self._under_way: set[Deadline] = set()
        self._is_stopped = False
        hooks = {"request": [self._watched], "response": [self._bounded]}
        limits = http.Limits(max_keepalive_connections=0)
        # a redirect could carry the key to another host
        self.client = library.DefaultHttpxClient(limits=limits, event_hooks=hooks, follow_redirects=False)

    @contextmanager
    def request(self, seconds: float | None = None) -> Iterator[Deadline]:
        """Make a deadline for the request that the block sends in this thread; None: the one of all requests."""
        self._here.deadline = deadline = Deadline(min(self._seconds, seconds or self._seconds))
        self._under_way.add(deadline)
        try:
            if self._is_stopped:
                deadline.end()
            yield deadline
        finally:
            deadline.cancel()
            self._under_way.discard(deadline)

    def stop(self) -> None:
        """Cut all requests under way, and all later requests."""
        self._is_stopped = True
        for deadline in tuple(self._under_way):
            deadline.end()

    def _watched(self, request: Any) -> None:  # noqa: ANN401  (of the library)
        request.extensions["trace"] = self._here.deadline.trace

    def _bounded(self, response: Any) -> None:  # noqa: ANN401  (as above)
        if response.is_success:
            return
        body = bytearray()
        with suppress(self._http.HTTPError):  # the status is enough
            for chunk in response.stream:
                body += chunk
                if len(body) >= MAX_OF_ERROR:
                    break
        response.stream.close()
        response.stream = self._http.ByteStream(bytes(body[:MAX_OF_ERROR]))
