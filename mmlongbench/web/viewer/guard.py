"""What every request must pass before it reaches a page, and the headers of every answer.

Only reading is allowed. The name of the host must be one
of this machine, so that a page of another site whose name points here gets nothing; a request that says that another
site made it is refused; with a token, whoever does not have it gets nothing.
"""

import ipaddress
import logging
import re
import secrets
import socket
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from mmlongbench.io.printable import printable

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "x-frame-options": "DENY",
}
_LONG_NUMBER = re.compile("[0-9]{1000}")
"""Matches a number that no page has; Python refuses to read numbers of more than 4,300 digits."""
_LOG = logging.getLogger("uvicorn.error")
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class Door:
    """Who may enter."""

    host: str = "127.0.0.1"
    """The address that the server listens on."""
    token: str = ""
    """What a browser must show once; empty: nothing, which is allowed on the loopback address alone."""

    def is_ours(self, name: str) -> bool:
        """Return whether the name of a host in a request is one of this machine. Addresses are allowed if the server
        listens on an address of the network: only a name can be pointed here by someone else.
        """
        if name in _LOOPBACK or name == self.host:
            return True
        if self.is_loopback:
            return False
        return name == socket.gethostname().lower() or _is_address(name)

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach the server."""
        return self.host in _LOOPBACK


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


class Guard:
    """Refuses requests, and adds the headers of safety to answers."""

    def __init__(self, app: ASGIApp, door: Door) -> None:
        self._app, self._door = app, door

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or give it to the pages."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return

        is_begun = False

        async def sending(message: Message) -> None:
            nonlocal is_begun
            is_begun = True
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                headers.setdefault("cache-control", "no-store")
            await send(message)

        try:
            refused = self._refusal(scope)
            await (refused or self._app)(scope, receive, sending)
        except Exception as error:  # a fault of the viewer ends one answer, which has the headers of safety, too
            if is_begun:
                raise
            _LOG.error("%s: %s", type(error).__name__, printable(str(error))[:300])
            await PlainTextResponse(f"the viewer failed: {type(error).__name__}\n", 500)(scope, receive, sending)

    def _refusal(self, scope: Scope) -> Response | None:
        """Return the answer to a request that is refused; None if it is not."""
        headers = Headers(scope=scope)
        host = headers.getlist("host")
        if _LONG_NUMBER.search(scope["path"]):
            return PlainTextResponse("there is no such page\n", 404)
        if len(host) != 1 or not self._door.is_ours(_host_name(host[0])):
            return PlainTextResponse("this is not the name of this machine\n", 421)
        origins = headers.getlist("origin")
        if len(origins) > 1 or any(_netloc(each) != host[0].lower() for each in origins):
            return PlainTextResponse("a page of another site made this request\n", 403)
        is_visit = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
        if headers.get("sec-fetch-site") in ("cross-site", "same-site") and not is_visit:
            return PlainTextResponse("a page of another site made this request\n", 403)
        refused = self._without_token(scope, headers) if self._door.token else None
        if refused or scope["method"] in ("GET", "HEAD"):
            return refused
        return PlainTextResponse("the viewer is read-only\n", 405, {"allow": "GET, HEAD"})

    def _without_token(self, scope: Scope, headers: Headers) -> Response | None:
        name = f"mmlongbench-view-{scope.get('server', ('', 0))[1]}"
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        given = next((value for key, value in query if key == "token"), None)
        if given is not None and self._is_token(given):
            rest = urlencode([(key, value) for key, value in query if key != "token"])
            answer = RedirectResponse(_same_path(scope["path"]) + (f"?{rest}" if rest else ""), 303)
            answer.set_cookie(name, self._door.token, httponly=True, samesite="strict")
            return answer
        if self._is_token(_cookie(headers, name)):
            return None
        return PlainTextResponse("open the address that the command printed: it has a token\n", 401)

    def _is_token(self, given: str) -> bool:
        return secrets.compare_digest(given.encode("utf-8", "replace"), self._door.token.encode("utf-8", "replace"))


def _same_path(path: str) -> str:
    """Return a path of this site, also where it begins like the address of another one (`//elsewhere`)."""
    return "/" + quote(path.lstrip("/\\"))


def _host_name(host: str) -> str:
    """Return the name in a Host header, without the port.

    >>> _host_name("LOCALHOST:7870"), _host_name("[::1]:7870"), _host_name("a@b")
    ('localhost', '::1', '')
    """
    if any(mark in host for mark in "@/\\?# "):
        return ""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _netloc(origin: str) -> str:
    """Return the host and port of an Origin header; empty if it has none.

    >>> _netloc("http://LOCALHOST:7870"), _netloc("http://[")
    ('localhost:7870', '')
    """
    try:
        return urlsplit(origin).netloc.lower()
    except ValueError:
        return ""


def _cookie(headers: Headers, name: str) -> str:
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(name)
    except CookieError:
        return ""
    return found.value if found else ""
