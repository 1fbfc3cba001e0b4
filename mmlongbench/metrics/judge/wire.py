"""The way to an endpoint: a bounded time for each request, a bounded length of what is said of an error.

The HTTP library bounds the wait for each single piece only, and its errors are read whole, however long they are. So
every request has a connection of its own, which is cut when its time is over. Knows nothing of what is said.
"""

import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

MAX_OF_ERROR = 64 * 1024
"""Bytes that are read of a response that is no success."""


class Deadline:
    """The time that one request may take, whatever it is spent on."""

    def __init__(self, seconds: float) -> None:
        """Time begins to run."""
        self.is_over = False
        self._socket: socket.socket | None = None
        self._timer = threading.Timer(seconds, self.end)
        self._timer.daemon = True
        self._timer.start()

    def end(self) -> None:
        """Cut the connection; one that is not there yet is cut as it is made."""
        self.is_over = True
        if self._socket:
            with suppress(OSError):  # it is closed already
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def cancel(self) -> None:
        """The request is done."""
        self._timer.cancel()

    def trace(self, _: str, info: Mapping[str, Any]) -> None:
        """Learn of a connection that was made, as the HTTP library tells of what it does."""
        of_connection = getattr(info.get("return_value"), "get_extra_info", None)
        if of_connection:
            self._socket = of_connection("socket")
            if self.is_over:
                self.end()


class Transport:
    """Requests under way; threads may share it."""

    def __init__(self, library: Any, http: Any, seconds: float) -> None:  # noqa: ANN401  (modules)
        """Open the HTTP client of a client library; nothing is sent yet."""
        self._http, self._seconds = http, seconds
        self._here = threading.local()
        self._under_way: set[Deadline] = set()
        self._is_stopped = False
        hooks = {"request": [self._watched], "response": [self._bounded]}
        self.client = library.DefaultHttpxClient(limits=http.Limits(max_keepalive_connections=0), event_hooks=hooks)

    @contextmanager
    def request(self) -> Iterator[Deadline]:
        """One request, by this thread."""
        self._here.deadline = deadline = Deadline(self._seconds)
        self._under_way.add(deadline)
        try:
            if self._is_stopped:
                deadline.end()
            yield deadline
        finally:
            deadline.cancel()
            self._under_way.discard(deadline)

    def stop(self) -> None:
        """Cut all that is under way, for good."""
        self._is_stopped = True
        for deadline in tuple(self._under_way):
            deadline.end()

    def _watched(self, request: Any) -> None:  # noqa: ANN401  (of the library)
        request.extensions["trace"] = self._here.deadline.trace

    def _bounded(self, response: Any) -> None:  # noqa: ANN401  (as above)
        if response.is_success:
            return
        body = bytearray()
        with suppress(self._http.HTTPError):  # the status says enough
            for chunk in response.stream:
                body += chunk
                if len(body) >= MAX_OF_ERROR:
                    break
        response.stream.close()
        response.stream = self._http.ByteStream(bytes(body[:MAX_OF_ERROR]))
