"""What an endpoint may say: a chat completion, read leniently, or trouble. Knows no network."""

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel, Field, ValidationError

Kind: TypeAlias = Literal["again", "never", "unreachable", "unusable"]
"""Whether another attempt is worth it; `unreachable`: nothing listens there; `unusable`: words, but no verdict."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What a judge said."""

    words: str
    input_tokens: int
    output_tokens: int
    requests: int = 1
    """How many it took."""
    fault: str = ""
    """Why it cannot be used, whatever it says."""


@dataclass(frozen=True, slots=True)
class RequestError:
    """Why nothing was said."""

    why: str
    kind: Kind = "again"
    status: int = 0
    wait: float | None = None
    """Seconds that the endpoint asks for."""
    requests: int = 1


Outcome: TypeAlias = Reply | RequestError
_CUT_OFF = {"length": "cut off at its bound of tokens", "content_filter": "cut off by the endpoint's filter"}
"""Ends of an answer that is not whole: its last words may be a quotation."""


class _Message(BaseModel):
    content: str | None = None
    refusal: str | None = None


class _Choice(BaseModel):
    message: _Message
    finish_reason: str | None = None


class _Completion(BaseModel):
    """The part of a response that is read."""

    choices: list[_Choice] = Field(min_length=1)
    usage: Any = None


def read_reply(body: bytes) -> Outcome:
    """What a response of status 200 says."""
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
        return RequestError(f"the judge refuses: {' '.join(message.refusal.split())[:120]}")
    words = (message.content or "").encode("utf-8", "replace").decode()
    usage = read.usage if isinstance(read.usage, dict) else {}
    cut_off = _CUT_OFF.get(read.choices[0].finish_reason or "")
    fault = f"an answer that was {cut_off}" if cut_off else ""
    return Reply(words, _whole(usage.get("prompt_tokens")), _whole(usage.get("completion_tokens")), fault=fault)


def _whole(value: object) -> int:
    """A count of tokens; 0 where it is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 40 else 0
