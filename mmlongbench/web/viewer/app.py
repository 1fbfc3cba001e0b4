"""The pages as a web application: which address is which page. Only files that the index knows are read."""

from collections.abc import Callable, Iterable, Mapping
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route

from mmlongbench.errors import MMLongBenchError
from mmlongbench.web.kit import asset
from mmlongbench.web.viewer.guard import Door, Guard
from mmlongbench.web.viewer.index import plain
from mmlongbench.web.viewer.pages import dataset, example, release, report, review
from mmlongbench.web.viewer.pictures import small_copy, whole_file
from mmlongbench.web.viewer.site import Links, Site
from mmlongbench.web.viewer.sources import ViewedFile
from mmlongbench.web.viewer.tables import Query

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
_EXAMPLE = "/data/example/{file:int}/{row:int}"
_KEPT = "private, max-age=3600"
_LEAST_PACKED = 1000
"""Smaller answers are not compressed."""


class ServerLinks(Links):
    """The addresses of a server."""

    mode = "server"

    def release(self) -> str:
        """Return `/`."""
        return "/"

    def dataset(self, number: int) -> str:
        """Return the address of a dataset."""
        return f"/dataset/{number}"

    def rejects(self) -> str:
        """Return the address of what was left out."""
        return "/rejects"

    def report(self) -> str:
        """Return the address of the report."""
        return "/report"

    def review(self) -> str:
        """Return the address of the list of what is reviewed."""
        return "/review"

    def subject(self, number: int) -> str:
        """Return the address of something that is reviewed."""
        return f"/review/{number + 1}"

    def example(self, file: ViewedFile, row: int) -> str:
        """Return an address with the name of the file, which stays the same when other files are added."""
        return f"/example/{quote(file.name)}/{row + 1}"

    def asset(self, name: str) -> str:
        """Return the address of an asset."""
        return f"/assets/{name}"

    def data(self) -> str:
        """Return the beginning of the addresses of data."""
        return "/data/"

    def small(self) -> str:
        """Return the beginning of the addresses of small copies; the page adds file and number."""
        return "/small/"

    def large(self) -> str:
        """Return the beginning of the addresses of whole images."""
        return "/image/"


def application(site: Site, door: Door | None = None) -> Starlette:
    """Return the application."""
    links = ServerLinks()
    pages = _Pages(site, links)
    routes = [
        Route("/", pages.release),
        Route("/rejects", pages.rejects),
        Route("/dataset/{number:int}", pages.dataset),
        Route("/example/{name:path}/{row:int}", pages.example),
        Route("/report", pages.report),
        Route("/review", pages.review),
        Route("/review/{number:int}", pages.subject),
        Route("/data/dataset/{number:int}/rows", pages.rows),
        Route(f"{_EXAMPLE}/outline", pages.data(example.outline_data)),
        Route(f"{_EXAMPLE}/rows/{{chunk:int}}", pages.data(example.chunk_data, "chunk")),
        Route(
            f"{_EXAMPLE}/text/{{block:int}}/{{piece:int}}",
            pages.data(example.text_data, "block", "piece"),
        ),
        Route(f"{_EXAMPLE}/model/{{model:int}}", pages.data(example.model_data, "model")),
        Route(f"{_EXAMPLE}/messages", pages.data(example.message_data)),
        Route("/small/{file:int}/{number:int}", pages.small),
        Route("/image/{file:int}/{number:int}", pages.image),
        Route("/assets/{name}", _asset),
    ]
    middleware = [Middleware(Guard, door=door or Door()), Middleware(GZipMiddleware, minimum_size=_LEAST_PACKED)]
    return Starlette(routes=routes, middleware=middleware, exception_handlers={MMLongBenchError: _fault})


def _fault(_: Request, error: Exception) -> Response:
    """Answer what cannot be shown: it is not there, or it is broken."""
    return PlainTextResponse(f"{error}\n", 404)


def _asset(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in ASSETS:
        return PlainTextResponse("there is no such file\n", 404)
    return Response(asset(name), media_type=ASSETS[name], headers={"cache-control": "no-cache"})


class _Pages:
    """The pages and their data. The methods are called in threads, so a slow one does not stop the others."""

    def __init__(self, site: Site, links: Links) -> None:
        self._site, self._links = site, links

    def release(self, _: Request) -> Response:
        return _page(release.release_page(self._site, self._links))

    def rejects(self, _: Request) -> Response:
        return _page(release.rejects_page(self._site, self._links))

    def dataset(self, request: Request) -> Response:
        return _page(dataset.dataset_page(self._site, self._links, request.path_params["number"]))

    def example(self, request: Request) -> Response:
        file = self._site.viewed.by_name.get(request.path_params["name"])
        if file is None:
            return PlainTextResponse("there is no such file in the release\n", 404)
        return _page(example.example_page(self._site, self._links, file, request.path_params["row"] - 1))

    def report(self, _: Request) -> Response:
        return _page(report.report_page(self._site, self._links))

    def review(self, _: Request) -> Response:
        return _page(review.review_page(self._site, self._links))

    def subject(self, request: Request) -> Response:
        return _page(review.subject_page(self._site, self._links, request.path_params["number"] - 1))

    def rows(self, request: Request) -> Response:
        query = Query.of(request.query_params)
        return _json(dataset.dataset_data(self._site, self._links, request.path_params["number"], query))

    def data(self, make: Callable[..., object], *names: str) -> Callable[[Request], Response]:
        """Return what answers a request for data of an example; `names` are further numbers of the address."""

        def answer(request: Request) -> Response:
            given = request.path_params
            file = self._site.file(given["file"])
            return _json(make(self._site, file, given["row"], *(given[name] for name in names)))

        return answer

    def small(self, request: Request) -> Response:
        file = self._site.file(request.path_params["file"])
        data = small_copy(file.images, self._site.image(file, request.path_params["number"]))
        return Response(data, media_type="image/jpeg", headers={"cache-control": _KEPT})

    def image(self, request: Request) -> Response:
        file = self._site.file(request.path_params["file"])
        sent = whole_file(file.images, self._site.image(file, request.path_params["number"]))
        headers = {"cache-control": _KEPT, "content-length": str(sent.size), "content-encoding": "identity"}
        return StreamingResponse(sent.pieces, media_type=sent.media_type, headers=headers)


def _page(pieces: Iterable[str]) -> Response:
    return HTMLResponse("".join(pieces).encode("utf-8", "backslashreplace"))


def _json(value: object) -> Response:
    return Response(plain(value), media_type="application/json")
