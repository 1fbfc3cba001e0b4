"""Serves the pages until they are interrupted: on a port of this machine, with one process."""

import socket
from collections.abc import Callable
from contextlib import suppress

import uvicorn
from starlette.types import ASGIApp

from mmlongbench.errors import ReleaseError


def serve(app: ASGIApp, host: str, port: int, ready: Callable[[int], None]) -> None:
    """Serve an application until Ctrl-C.

    Args:
        app: the application.
        host: the address to listen on.
        port: the port; 0: a free one.
        ready: called with the port when connections are accepted.

    Raises:
        ReleaseError: the port cannot be used.

    """
    listening = _listen(host, port)
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, server_header=False, lifespan="off", timeout_graceful_shutdown=2
    )
    with listening:
        ready(listening.getsockname()[1])
        with suppress(KeyboardInterrupt):  # the way in which a user ends the server
            uvicorn.Server(config).run(sockets=[listening])


def _listen(host: str, port: int) -> socket.socket:
    """Return a socket that accepts connections, so that the port is known before the server starts."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        made = socket.socket(family, kind, protocol)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        made.listen(128)
    except OSError as error:
        said = error.strerror or str(error)
        raise ReleaseError(f"{host} port {port}: cannot be used: {said}; give another with --port") from error
    return made
