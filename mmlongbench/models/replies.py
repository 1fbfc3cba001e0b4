"""Replies of endpoints, and the errors in their place: what happened, whether another attempt may help, what to do."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from pydantic import BaseModel, Field, ValidationError


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's reply."""

    words: str
    input_tokens: int
    output_tokens: int
    fault: str = ""
    """Why the reply cannot be used, whatever it contains; empty if it can."""
    reasoning: str = ""
    """The model's reasoning, if the endpoint returns it separately from the answer."""
    finish_reason: str = ""
    """Why the model stopped, as the endpoint says it, such as `stop` or `length`."""
    usage: Mapping[str, int] = field(default_factory=dict)
    """The token counts of the endpoint, by name; empty if it gives none."""
    seconds: float = 0.0
    """How long the request took."""
    is_refusal: bool = False
    """Whether the endpoint marks the words as a refusal of the model."""


class RequestError(Exception):
    """A request got no usable reply."""

    def __init__(
        self,
        why: str,
        kind: Literal["again", "never", "unreachable"] = "again",
        *,
        name: str = "",
        status: int = 0,
        wait: float | None = None,
    ) -> None:
        """Keep what is known about the failure.

        Args:
            why: what happened, in one line.
            kind: `again` if another attempt may succeed, `never` if none can, `unreachable` if nothing listens there.
            name: a key of `REFUSALS`; empty for a reply that cannot be used.
            status: the HTTP status.
            wait: the seconds that the endpoint asks to wait.

        """
        super().__init__(why)
        self.why, self.kind, self.name, self.status, self.wait = why, kind, name, status, wait


class Unusable(RequestError):
    """A reply has no answer of the requested form."""

    def __init__(self, fault: str, words: str = "", *, is_final: bool = False) -> None:
        """Keep the fault in this project's words, which a model is told in the next attempt, and the beginning of its
        reply. A final one is not tried again, because the public code whose rules are followed does not either.
        """
        super().__init__(f"{fault} in {words}" if words else fault, "never" if is_final else "again")
        self.fault = fault


_CUT_OFF = {"length": "cut off at its bound of tokens", "content_filter": "cut off by the endpoint's filter"}
"""Why a reply is incomplete, by finish reason. The last object in an incomplete reply may be only a quotation."""


class _Part(BaseModel):
    type: str = "text"
    text: str | None = None


class _Message(BaseModel):
    content: str | list[_Part | str] | None = None
    """A text; some endpoints return a list of parts."""
    refusal: str | None = None
    reasoning_content: object = None
    reasoning: object = None


class _Choice(BaseModel):
    message: _Message
    finish_reason: str | None = None


class _Completion(BaseModel):
    """The part of a response that is used."""

    choices: list[_Choice] = Field(min_length=1)
    usage: object = None


def read_reply(body: bytes) -> Reply:
    """Return the content of a response with status 200; raises RequestError if it holds no chat completion."""
    try:
        read = _Completion.model_validate(json.loads(body))
    except (ValueError, RecursionError) as error:
        why = str(error)
        if isinstance(error, ValidationError):
            first = error.errors()[0]
            why = ": ".join(filter(None, (".".join(map(str, first["loc"])), first["msg"])))
        raise RequestError(f"a response that is no chat completion: {why}"[:200], name="not-a-completion") from error
    message, reason = read.choices[0].message, read.choices[0].finish_reason or ""
    cut_off = _CUT_OFF.get(reason)
    apart = next(
        (text for text in (message.reasoning_content, message.reasoning) if text and isinstance(text, str)), ""
    )
    if message.content is None and not message.refusal and not apart and reason in ("", "error", "abort"):
        raise RequestError("a response without an answer", name="not-a-completion")
    usage = dict(_counts(read.usage))
    parts = [message.content or ""] if not isinstance(message.content, list) else message.content
    texts = [_Part(text=part) if isinstance(part, str) else part for part in parts]
    words = "".join(part.text or "" for part in texts if part.type in ("text", "output_text"))
    if cut_off and apart and words.strip() == apart.strip():
        words = ""  # some servers copy reasoning that never ended into the answer
    return Reply(
        (words or message.refusal or "").encode("utf-8", "replace").decode(),
        prompt_tokens(usage) or 0,
        usage.get("completion_tokens", 0),
        fault=f"an answer that was {cut_off}" if cut_off else "",
        reasoning=apart.encode("utf-8", "replace").decode(),
        finish_reason=reason[:40],
        is_refusal=bool(message.refusal) and not words,
        usage=usage,
    )


def prompt_tokens(usage: Mapping[str, int]) -> int | None:
    """Return the tokens of a prompt; None if the endpoint did not count them.

    Most endpoints count cached tokens among those of the prompt, a few leave them out. They are added if there are more
    of them than the prompt has; see also `leaves_cached_out`.

    >>> [prompt_tokens({"prompt_tokens": n, "cached_tokens": 99 - n}) for n in (90, 9)]
    [90, 99]
    """
    counted, cached = usage.get("prompt_tokens"), usage.get("cached_tokens", 0)
    return counted if counted is None or cached <= counted else counted + cached


def leaves_cached_out(counts: Sequence[tuple[int, int, int]]) -> bool:
    """Return whether an endpoint leaves cached tokens out of its counts: (counted, cached, expected) of its prompts.

    It does if adding them explains nearly all that lacks; a loss of image tokens has no such relation to what was
    cached. If all prompts have as many cached tokens, as of a common beginning, it cannot be told.

    >>> leaves_cached_out([(60, 40, 100), (30, 70, 101), (80, 21, 100)])
    True
    >>> leaves_cached_out([(60, 90, 100), (60, 10, 100), (60, 5, 100)]), leaves_cached_out([(60, 40, 100)] * 3)
    (False, False)
    """
    if len({cached for _, cached, _ in counts}) < 2:
        return False
    off = sum(abs(counted + cached - expected) for counted, cached, expected in counts)
    lacking = sum(expected - counted for counted, _, expected in counts)
    return 4 * off <= lacking


_DETAILS = {
    "prompt_tokens_details": ("cached_tokens", "image_tokens", "text_tokens"),
    "completion_tokens_details": ("reasoning_tokens",),
}
"""The further counts that are kept, by the object that holds them."""
_MAX_COUNT = 1 << 40
"""Counts above this are no counts."""


def _counts(usage: object) -> Iterator[tuple[str, int]]:
    """Yield the token counts of a response, by name."""
    if not isinstance(usage, dict):
        return
    found = [(name, usage.get(name)) for name in ("prompt_tokens", "completion_tokens")]
    for group, names in _DETAILS.items():
        details = usage.get(group)
        if isinstance(details, dict):
            found += [(name, details.get(name)) for name in names]
            images = details.get("multimodal_tokens")
            found += [("image_tokens", images.get("image"))] if isinstance(images, dict) else []
    for name, value in found:
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0 <= value < _MAX_COUNT:
            continue
        if int(value) == value and (value or name != "prompt_tokens"):  # every prompt has a token
            yield name, int(value)


@dataclass(frozen=True, slots=True)
class Refusal:
    """A kind of error of the usual servers: OpenAI, vLLM, SGLang, llama.cpp, transformers and common proxies."""

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
