"""Reads what a page sends to be written: within limits of bytes and time, and only from a page of this server."""

import asyncio
import secrets

from pydantic import ValidationError
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response

from mmlongbench.web.viewer.reviewing.decisions import Choice

MAX_BODY = 64 * 1024
"""The most bytes of a request that writes."""
SECONDS = 10
"""How long a request that writes may take to arrive."""
TOKEN = "x-review-token"
"""The header in which a page sends its token."""


def write_refusal(headers: Headers, token: str) -> Response | None:
    """Return the answer to a request that may not write; None if it may.

    A browser sends Origin with every such request and lets no other site set this header, so a request without them was
    made by no page of this server.
    """
    if "origin" not in headers or headers.get("sec-fetch-site", "same-origin") != "same-origin":
        return PlainTextResponse("only a page of this viewer may write\n", 403)
    given = headers.getlist(TOKEN)
    if len(given) != 1 or not secrets.compare_digest(given[0].encode("utf-8", "replace"), token.encode()):
        return PlainTextResponse("the page is of an older viewer: load it again\n", 403)
    if headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        return PlainTextResponse("expected application/json\n", 415)
    if "content-encoding" in headers:
        return PlainTextResponse("expected a body as it is\n", 415)
    return None


async def read_choice(request: Request) -> Choice | Response:
    """Return what a request decides, or the answer to one that cannot be read."""
    length = request.headers.get("content-length", "0")
    if not length.isascii() or not length.isdecimal() or len(length) > 9 or int(length) > MAX_BODY:
        return PlainTextResponse(f"more than {MAX_BODY:,} bytes\n", 413)
    body = bytearray()
    try:
        async with asyncio.timeout(SECONDS):
            async for piece in request.stream():
                body += piece
                if len(body) > MAX_BODY:
                    return PlainTextResponse(f"more than {MAX_BODY:,} bytes\n", 413)
        return Choice.model_validate_json(bytes(body))
    except TimeoutError:
        return PlainTextResponse("the request took too long\n", 408)
    except ClientDisconnect:
        return PlainTextResponse("the request ended early\n", 400)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))[:80]
        return PlainTextResponse(f"{where}: {first['msg']}\n".lstrip(": "), 400)
