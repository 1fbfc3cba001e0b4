"""The pages on a port of this machine, for whoever has the token in the printed address. Nothing can be written.

The token keeps out other programs' users, and pages of other sites whose names point at this machine.
"""

import secrets
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Mount, Route

from mmlongbench.errors import MMLongBenchError, ReleaseError
from mmlongbench.web.kit import asset
from mmlongbench.web.viewer import pages
from mmlongbench.web.viewer.pictures import small_copy, whole_file
from mmlongbench.web.viewer.site import Site
from mmlongbench.web.viewer.viewed import plain

ASSETS: Mapping[str, str] = {
    "page.css": "text/css",
    "roles.css": "text/css",
    "view.css": "text/css",
    "view.js": "text/javascript",
    "view_dataset.js": "text/javascript",
    "view_example.js": "text/javascript",
    "view_list.js": "text/javascript",
    "view_review.js": "text/javascript",
    "view_ruler.js": "text/javascript",
    "view.svg": "image/svg+xml",
}
"""The stylesheets and scripts of the viewer, with their types."""
HOST = "127.0.0.1"
_HEADERS = {
    # whatever a record holds, a page runs and shows only what is the viewer's own
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}
_IMAGE = {**_HEADERS, "cache-control": "private, max-age=3600", "content-encoding": "identity"}
_LEAST_PACKED = 1000
"""Smaller answers are not compressed."""


def application(site: Site, token: str) -> Starlette:
    """Return the application; nothing but what begins with the token has an address."""

    def page(make: Callable[..., Any], first: int = 0) -> Callable[[Request], Response]:
        """Return what answers a request for a page; the last number in its name counts from `first`."""

        def answer(request: Request) -> Response:
            numbers = list(request.path_params.values())
            if numbers:
                numbers[-1] -= first
            text = "".join(make(site, *numbers))
            return Response(text.encode("utf-8", "backslashreplace"), media_type="text/html", headers=_HEADERS)

        return answer

    def data(make: Callable[..., object]) -> Callable[[Request], Response]:
        def answer(request: Request) -> Response:
            value = make(site, *request.path_params.values())
            return Response(plain(value), media_type="application/json", headers=_HEADERS)

        return answer

    def image(request: Request) -> Response:
        size, number, image = request.path_params.values()
        file, paths = site.file(number), site.index.images(number)
        if image >= len(paths):
            raise ReleaseError(f"{file.name}: there is no image {image}")
        if size == "small":
            return Response(small_copy(file.images, paths[image]), media_type="image/jpeg", headers=_IMAGE)
        path, kind = whole_file(file.images, paths[image])
        return FileResponse(path, media_type=kind, headers=_IMAGE)

    def file(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in ASSETS:
            raise ReleaseError("there is no such file")
        return Response(asset(name), media_type=ASSETS[name], headers={**_HEADERS, "cache-control": "no-cache"})

    example = "/data/example-{file:int}-{row:int}"
    routes = [
        Route("/", page(pages.release_page)),
        Route("/index.html", page(pages.release_page)),
        Route("/rejects.html", page(pages.rejects_page)),
        Route("/report.html", page(pages.report_page)),
        Route("/review.html", page(pages.review_page)),
        Route("/review-{number:int}.html", page(pages.subject_page, 1)),
        Route("/dataset-{number:int}.html", page(pages.dataset_page)),
        Route("/example-{file:int}-{row:int}.html", page(pages.example_page, 1)),
        Route("/data/rows-{file:int}.json", data(pages.rows_data)),
        Route(f"{example}-outline.json", data(pages.outline_data)),
        Route(f"{example}-rows-{{chunk:int}}.json", data(pages.chunk_data)),
        Route(f"{example}-text-{{block:int}}-{{piece:int}}.json", data(pages.text_data)),
        Route(f"{example}-model-{{model:int}}.json", data(pages.model_data)),
        Route(f"{example}-messages.json", data(pages.message_data)),
        Route("/images/{size}-{file:int}-{image:int}.jpg", image),
        Route("/assets/{name}", file),
    ]
    middleware = [Middleware(GZipMiddleware, minimum_size=_LEAST_PACKED)]
    handlers = {MMLongBenchError: _fault}
    return Starlette(routes=[Mount(f"/{token}", routes=routes)], middleware=middleware, exception_handlers=handlers)


def _fault(_: Request, error: Exception) -> Response:
    """Answer what cannot be shown: it is not there, or it is broken."""
    return Response(f"{error}\n", 404, media_type="text/plain", headers=_HEADERS)


def serve(site: Site, port: int, ready: Callable[[str], None]) -> None:
    """Serve the pages until Ctrl-C.

    Args:
        site: what pages are made of.
        port: the port; 0: a free one.
        ready: called with the address when connections are accepted.

    Raises:
        ReleaseError: the port cannot be used.

    """
    token = secrets.token_urlsafe(16)
    try:
        listening = socket.create_server((HOST, port))
    except OSError as error:
        why = error.strerror or str(error)
        raise ReleaseError(f"{HOST} port {port}: cannot be used: {why}; give another with --port") from error
    config = uvicorn.Config(
        application(site, token),
        log_level="warning",
        access_log=False,
        server_header=False,
        lifespan="off",
        timeout_graceful_shutdown=2,
    )
    with listening:
        ready(f"http://{HOST}:{listening.getsockname()[1]}/{token}/")
        with suppress(KeyboardInterrupt):  # the way in which a user ends the server
            uvicorn.Server(config).run(sockets=[listening])
