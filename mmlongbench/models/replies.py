"""Reads a response of an endpoint as a `Reply`, or as a `RequestError` if it holds no chat completion."""

from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class RequestError:
    """Why there is no reply."""

    why: str
    kind: Kind = "again"
    status: int = 0
    wait: float | None = None
    """The seconds that the endpoint asks to wait."""
    requests: int = 1


Outcome: TypeAlias = Reply | RequestError
_CUT_OFF = {"length": "cut off at its bound of tokens", "content_filter": "cut off by the endpoint's filter"}
"""Why a reply is incomplete, by finish reason. The last object in an incomplete reply may be only a quotation."""


class _Message(BaseModel):
    content: str | None = None
    refusal: str | None = None


class _Choice(BaseModel):
    message: _Message
    finish_reason: str | None = None


class _Completion(BaseModel):
    """The part of a response that is used."""

    choices: list[_Choice] = Field(min_length=1)
    usage: object = None


def read_reply(body: bytes, role: str) -> Outcome:
    """Return the content of a response with status 200. `role` is the word for the model in error messages."""
    try:
        read = _Completion.model_validate_json(body)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        return RequestError(
            f"a response that is no chat completion: {place + ': ' if place else ''}{first['msg']}"[:200]
        )
    message = read.choices[0].message
    if message.refusal:
        return RequestError(f"the {role} refuses: {' '.join(message.refusal.split())[:120]}")
    words = (message.content or "").encode("utf-8", "replace").decode()
    usage = read.usage if isinstance(read.usage, dict) else {}
    cut_off = _CUT_OFF.get(read.choices[0].finish_reason or "")
    fault = f"an answer that was {cut_off}" if cut_off else ""
    return Reply(words, _whole(usage.get("prompt_tokens")), _whole(usage.get("completion_tokens")), fault=fault)


def _whole(value: object) -> int:
    """Return a count of tokens; 0 if the value is not one."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 40 else 0
