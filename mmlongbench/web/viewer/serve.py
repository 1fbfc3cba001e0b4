"""The pages on a port of this machine, or as files.

A server answers only who has the token in the printed address, which keeps out other users of the machine, and pages of
other sites whose names point at it. It writes nothing. Files open from disk and from any host of files; their data are
script files, because browsers do not let a page from disk read other files, and their images are copies.
"""

import logging
import re
import secrets
import shutil
import socket
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import FileResponse, RedirectResponse, Response
from starlette.routing import Mount, Route, Router
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mmlongbench.errors import MMLongBenchError, ReleaseError
from mmlongbench.io.files import write_whole
from mmlongbench.io.printable import printable
from mmlongbench.io.progress import Progress
from mmlongbench.web.kit import asset
from mmlongbench.web.viewer import pages
from mmlongbench.web.viewer.review import pages_beside
from mmlongbench.web.viewer.site import Site
from mmlongbench.web.viewer.viewed import LARGE_SIDE, ViewedFile, plain, small_copy, whole_file

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
_IMAGE = {"cache-control": "private, max-age=3600", "content-encoding": "identity"}
_LEAST_PACKED = 1000
"""Smaller answers are not compressed."""
_LONG_NUMBER = re.compile("[0-9]{10}")
"""Matches a number that no page has; Python refuses to read numbers of more than 4,300 digits."""
_LOG = logging.getLogger("uvicorn.error")


def application(site: Site, token: str) -> Starlette:
    """Return the application; nothing but what begins with the token has an address."""

    def page(make: Callable[..., Any], first: int = 0) -> Callable[[Request], Response]:
        """Return what answers a request for a page; the last number in its name counts from `first`."""

        def answer(request: Request) -> Response:
            numbers = list(request.path_params.values())
            if numbers:
                numbers[-1] -= first
            text = "".join(make(site, *numbers))
            return Response(text.encode("utf-8", "backslashreplace"), media_type="text/html")

        return answer

    def data(make: Callable[..., object]) -> Callable[[Request], Response]:
        def answer(request: Request) -> Response:
            value = make(site, *request.path_params.values())
            return Response(plain(value), media_type="application/json")

        return answer

    def image(request: Request) -> Response:
        size, number, image = request.path_params.values()
        folder, shown = site.file(number).images, site.index.image(number, image)
        if size == "small":
            return Response(small_copy(folder, shown), media_type="image/jpeg", headers=_IMAGE)
        path, kind = whole_file(folder, shown)
        return FileResponse(path, media_type=kind, headers=_IMAGE)

    def file(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in ASSETS:
            raise ReleaseError("there is no such file")
        return Response(asset(name), media_type=ASSETS[name], headers={"cache-control": "no-cache"})

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
    middleware = [Middleware(_Guard, token=token), Middleware(GZipMiddleware, minimum_size=_LEAST_PACKED)]
    handlers = {MMLongBenchError: _fault}
    # a router's own redirects name the host that the request claims
    below = Mount(f"/{token}", Router(routes, redirect_slashes=False))
    entry = Route(f"/{token}", RedirectResponse(f"/{token}/"))
    return Starlette(routes=[below, entry], middleware=middleware, exception_handlers=handlers)


def _fault(_: Request, error: Exception) -> Response:
    """Answer what cannot be shown: it is not there, or it is broken."""
    return Response(f"{error}\n", 404, media_type="text/plain")


class _Guard:
    """Adds the headers of safety to every answer, also where the viewer fails; a failure ends one answer."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app, self._token = app, token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_begun = False

        async def send_safely(message: Message) -> None:
            nonlocal is_begun
            if message["type"] == "http.response.start":
                is_begun = True
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        # a token may have ten digits in a row, too
        if scope["type"] == "http" and _LONG_NUMBER.search(scope["path"], len(self._token) + 1):
            await Response("Not Found", 404, media_type="text/plain")(scope, receive, send_safely)
            return
        try:
            await self._app(scope, receive, send_safely)
        except Exception as error:  # noqa: BLE001  (no traceback: a terminal must not obey the text of a release)
            _LOG.error("%s: %s", type(error).__name__, printable(str(error))[:300])
            if not is_begun:
                answer = Response(f"the viewer failed: {type(error).__name__}\n", 500, media_type="text/plain")
                await answer(scope, receive, send_safely)


def serve(site: Site, port: int, ready: Callable[[str], None]) -> None:
    """Serve the pages until Ctrl-C, at a free port if `port` is 0. `ready` is called with the address when connections
    are accepted.
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


MAX_BYTES = 2 * 1024**3
"""The most bytes of a site."""
LIMIT = 20
"""How many examples of each file are written by default."""


@dataclass(slots=True)
class _Writer:
    """Writes files within a bound."""

    root: Path
    files: int = 0
    size: int = 0
    images: set[tuple[int, str]] = field(default_factory=set)
    """The images that are written, by the number of the file that shows them."""

    def put(self, name: str, data: bytes) -> None:
        if self.size + len(data) > MAX_BYTES:
            raise ReleaseError(
                f"{self.root}: the site would have more than {MAX_BYTES:,} bytes; write fewer examples with --limit"
            )
        write_whole(self.root / name, [data])
        self.files, self.size = self.files + 1, self.size + len(data)

    def page(self, name: str, pieces: Iterable[str]) -> None:
        self.put(name, "".join(pieces).encode("utf-8", "backslashreplace"))

    def data(self, name: str, value: object) -> None:
        self.put(f"data/{name}.js", f"(window.viewData ??= {{}})[{plain(name)}] = {plain(value)};\n".encode())

    def image(self, site: Site, file: ViewedFile, path: str) -> None:
        """Write the copies of an image, once for each file that shows it; a broken image has none."""
        if (file.number, path) in self.images:
            return
        self.images.add((file.number, path))
        name = f"{file.number}-{site.index.images(file.number).index(path)}"
        try:
            small, large = small_copy(file.images, path), small_copy(file.images, path, LARGE_SIDE)
        except ReleaseError:
            return
        self.put(f"images/small-{name}.jpg", small)
        self.put(f"images/large-{name}.jpg", large)


def write_site(site: Site, out: Path, progress: Progress) -> tuple[int, int, int, int]:
    """Write the pages of a release as files, with at most `MAX_BYTES` together; an older site in the folder is
    replaced. Return the examples with a page, those without one, the files and their bytes.
    """
    if site.viewed.lock_id and out.resolve().is_relative_to(site.viewed.path.resolve()):
        raise ReleaseError(f"--static {out}: lies inside the release {site.viewed.name}; give a folder outside of it")
    _make_room(out)
    writer = _Writer(out)
    for name in ASSETS:
        writer.page(f"assets/{name}", [asset(name)])
    shown = [
        (file, row) for file in site.viewed.files for row in range(site.index.head(file.number).rows)[: site.limit]
    ]
    with progress.bar("static: examples", len(shown)) as advance:
        for file, row in shown:
            _write_example(site, file, row, writer)
            advance()
    for number in range(len(site.viewed.datasets)):
        writer.page(f"dataset-{number}.html", pages.dataset_page(site, number))
    for file in site.viewed.files:
        writer.data(f"rows-{file.number}", pages.rows_data(site, file.number))
    if site.review:
        writer.page("review.html", pages.review_page(site))
        for number, subject in enumerate(site.review.subjects):
            writer.page(f"review-{number + 1}.html", pages.subject_page(site, number))
            for page in pages_beside(site.viewed, site.index, subject)[0]:
                if page.file and page.path:
                    writer.image(site, page.file, page.path)
    if site.answers.score_paths:
        writer.page("report.html", pages.report_page(site))
    writer.page("rejects.html", pages.rejects_page(site))
    writer.page("index.html", pages.release_page(site))
    total = sum(site.index.head(file.number).rows for file in site.viewed.files)
    return len(shown), total - len(shown), writer.files, writer.size


def _write_example(site: Site, file: ViewedFile, row: int, writer: _Writer) -> None:
    writer.page(site.address(file, row), pages.example_page(site, file.number, row))
    try:
        opened = site.open(file, row)
    except MMLongBenchError:
        return  # the page says why it cannot be shown
    name = f"example-{file.number}-{row}"
    writer.data(f"{name}-outline", pages.outline_data(site, file.number, row))
    for number in range(opened.chunks):
        writer.data(f"{name}-rows-{number}", pages.chunk_data(site, file.number, row, number))
    for number in range(len(site.models)):
        writer.data(f"{name}-model-{number}", pages.model_data(site, file.number, row, number))
    for path in opened.example.prompt.images:
        writer.image(site, file, path)


def _make_room(out: Path) -> None:
    """Remove an older site; refuse a folder with anything else."""
    if out.exists() and not out.is_dir():
        raise ReleaseError(f"{out}: is a file, expected a folder for the site")
    there = list(out.iterdir()) if out.is_dir() else []
    written = {path for path in there if path.suffix == ".html" and path.is_file()}
    folders = {path for path in there if path.name in ("data", "images", "assets") and path.is_dir()}
    others = [path for path in there if path not in written and path not in folders]
    if there and (others or not (out / "assets" / "view.js").is_file()):
        raise ReleaseError(f"{out}: has other files ({(others or there)[0].name}); give a new folder")
    for path in written:
        path.unlink()
    for path in folders:
        if not path.is_symlink():
            shutil.rmtree(path)
