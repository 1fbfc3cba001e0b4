"""Names the errors of the usual servers: what happened, whether another attempt can help, and what a user can do.

The patterns are from the messages of OpenAI, vLLM, SGLang, llama.cpp, transformers and common proxies.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Refusal:
    """A kind of error."""

    advice: str
    """What a user can do about it."""
    pattern: str = ""
    """A regular expression for messages of this kind, without regard to case; empty if only the status tells."""
    statuses: tuple[int, ...] = ()
    """The HTTP statuses that always mean this kind."""
    is_final: bool = False
    """Whether another attempt is useless, whatever the status is."""


REFUSALS: Mapping[str, Refusal] = {
    "decode-budget": Refusal(
        "start the server with VLLM_MAX_MEDIA_REQUEST_DECODE_BYTES=0",
        r"VLLM_MAX_MEDIA_REQUEST_DECODE_BYTES|media decode budget",
        is_final=True,
    ),
    "encoder-cache": Refusal(
        "an image is larger than the server's encoder cache; see its --max-num-batched-tokens",
        r"encoder cache size",
        is_final=True,
    ),
    "file-not-allowed": Refusal(
        "start the server with --allowed-local-media-path and the folder of the images, or use --images data-uri",
        r"allowed.local.media.path|local media|cannot load local files|must be a subpath",
        is_final=True,
    ),
    "missing-file": Refusal(
        "the server does not see the file; use --images data-uri", r"no such file|FileNotFoundError", is_final=True
    ),
    "image-limit": Refusal(
        "raise the server's limit of images (vLLM: --limit-mm-per-prompt); --skip-oversized leaves such examples out",
        r"at most \d+ image|too many images|images? count .*exceeds|number of images .*exceed|count .* exceeds limit",
        is_final=True,
    ),
    "context-length": Refusal(
        "the prompt is longer than the model's window; --skip-oversized leaves such examples out",
        r"context.?length|context.?window|context size|longer than the (maximum )?model|maximum model length"
        r"|requested token count exceeds|prompt is too long|too many tokens|exceed_context_size",
        is_final=True,
    ),
    "request-size": Refusal(
        "the request has too many bytes for the server or a proxy; use --images file-url or a URL",
        r"request entity too large|payload too large|body too large|request too large",
        (413,),
        is_final=True,
    ),
    "content-filter": Refusal("the server refuses the content", r"content.?filter|content management", is_final=True),
    "unknown-field": Refusal("the server does not know an option of the request", statuses=(422,), is_final=True),
    "overloaded": Refusal("run the same command again, with a smaller --concurrency", statuses=(429, 503)),
    "timeout": Refusal("raise --timeout", statuses=(408, 504)),
    "connection": Refusal("run the same command again"),
    "not-a-completion": Refusal("the endpoint does not answer in the form of OpenAI's chat completions"),
    "refusal": Refusal("the model refuses to answer"),
    "server-error": Refusal("see the log of the server"),
    "bad-request": Refusal("see the message of the server"),
    "stopped": Refusal("run the same command to continue"),
}
"""The kinds of errors by name, in the order in which their patterns are tried."""
SKIPS = ("context-length", "image-limit", "request-size")
"""The errors that say that a model cannot be given an example; a line of predictions has the same word (`skipped`)."""
_OF_SERVERS = ("file-not-allowed", "missing-file", "decode-budget", "encoder-cache", "context-length")
"""The kinds of error that servers report with a status of 500 or more. Patterns of other kinds are not tried there."""


def name_of(status: int, message: str) -> str:
    """Return the name of an error.

    >>> name_of(400, "This model's maximum context length is 8192 tokens."), name_of(503, "busy"), name_of(500, "oops")
    ('context-length', 'overloaded', 'server-error')
    """
    by_status = next((name for name, refusal in REFUSALS.items() if status in refusal.statuses), "")
    if by_status and by_status != "unknown-field":
        return by_status
    for name, refusal in REFUSALS.items():
        is_here = status < 500 or name in _OF_SERVERS
        if refusal.pattern and is_here and re.search(refusal.pattern, message, re.IGNORECASE):
            return name
    return by_status or ("server-error" if status >= 500 else "bad-request")
