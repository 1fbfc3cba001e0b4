"""Reads a response of an endpoint as a `Reply`, or as a `RequestError` if it holds no chat completion."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from pydantic import BaseModel, Field, ValidationError

Kind: TypeAlias = Literal["again", "never", "unreachable", "unusable"]
"""`again`: another attempt may succeed; `never`: no attempt can succeed; `unreachable`: nothing listens at the address;
`unusable`: there is a reply, but it does not have the form."""


@dataclass(frozen=True, slots=True)
class Reply:
    """A model's reply."""

    words: str
    input_tokens: int
    output_tokens: int
    requests: int = 1
    """The number of requests that it took."""
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


@dataclass(frozen=True, slots=True)
class RequestError:
    """Why there is no reply."""

    why: str
    kind: Kind = "again"
    status: int = 0
    wait: float | None = None
    """The seconds that the endpoint asks to wait."""
    requests: int = 1
    name: str = ""
    """The name of the error (see `refusals`); empty for a reply that cannot be used."""


Outcome: TypeAlias = Reply | RequestError
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


def read_reply(body: bytes) -> Outcome:
    """Return the content of a response with status 200."""
    try:
        read = _Completion.model_validate(json.loads(body))
    except (ValueError, RecursionError) as error:
        if not isinstance(error, ValidationError):
            return RequestError(f"a response that is no chat completion: {error}"[:200], name="not-a-completion")
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        return RequestError(
            f"a response that is no chat completion: {place + ': ' if place else ''}{first['msg']}"[:200],
            name="not-a-completion",
        )
    message = read.choices[0].message
    reason = read.choices[0].finish_reason or ""
    cut_off = _CUT_OFF.get(reason)
    apart = next(
        (text for text in (message.reasoning_content, message.reasoning) if isinstance(text, str) and text), ""
    )
    if message.content is None and not message.refusal and not apart and reason in ("", "error", "abort"):
        return RequestError("a response without an answer", name="not-a-completion")
    usage = dict(_counts(read.usage))
    words = _text_of(message.content)
    if cut_off and apart and words.strip() == apart.strip():
        words = ""  # some servers copy reasoning that never ended into the answer
    return Reply(
        _encodable(words or message.refusal or ""),
        prompt_tokens(usage) or 0,
        usage.get("completion_tokens", 0),
        fault=f"an answer that was {cut_off}" if cut_off else "",
        reasoning=_encodable(apart),
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


class _Listed(BaseModel):
    id: str = ""
    max_model_len: int | None = None


class _Models(BaseModel):
    """The part of a list of models that is used."""

    data: list[_Listed] = []


def listed_window(body: bytes, model: str) -> int | None:
    """Return the window of a model from an endpoint's list of models; None if the list does not say it."""
    try:
        listed = _Models.model_validate_json(body).data
    except ValidationError:
        return None
    return next((each.max_model_len for each in listed if each.id == model and (each.max_model_len or 0) > 0), None)


def _text_of(content: str | list[_Part | str] | None) -> str:
    """Return the text of a message; parts of other kinds, such as reasoning, are left out."""
    if content is None or isinstance(content, str):
        return content or ""
    parts = [_Part(text=part) if isinstance(part, str) else part for part in content]
    return "".join(part.text or "" for part in parts if part.type in ("text", "output_text"))


def _encodable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


_DETAILS = {
    "prompt_tokens_details": ("cached_tokens", "image_tokens", "text_tokens"),
    "completion_tokens_details": ("reasoning_tokens",),
}
"""The further counts that are kept, by the object that holds them."""


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
        count = _whole(value)
        if count is not None and (count or name != "prompt_tokens"):  # every prompt has a token
            yield name, count


def _whole(value: object) -> int | None:
    """Return a count of tokens; None if the value is not a count."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < _MAX_TOKENS:
        return None
    return int(value) if int(value) == value else None


_MAX_TOKENS = 1 << 40
"""Counts above this are no counts."""
