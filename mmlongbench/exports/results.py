"""Reads a line of a file of results: OpenAI's Batch API and `vllm run-batch` write the same form.

The fields that are needed are checked; all others are ignored.
"""

from collections.abc import Mapping
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from mmlongbench.errors import Fault


class Answer(NamedTuple):
    """What a model answered to a request."""

    text: str
    reasoning: str | None
    """The reasoning that the server returned apart."""
    finish_reason: str | None
    usage: Mapping[str, JsonValue] | None


class Failure(NamedTuple):
    """Why a request has no answer."""

    words: str


class Result(NamedTuple):
    """The result of a request."""

    custom_id: str
    outcome: Answer | Failure


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class _Message(_Part):
    content: str | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None
    refusal: str | None = None


class _Choice(_Part):
    message: _Message
    finish_reason: str | None = None


class _Completion(_Part):
    choices: list[_Choice]
    usage: dict[str, JsonValue] | None = None


class _Error(_Part):
    code: str | int | None = None
    message: str | None = None


class _Response(_Part):
    status_code: int | None = None
    body: JsonValue = None


class _Line(_Part):
    custom_id: str
    response: _Response | None = None
    error: _Error | str | None = None


def read_result(fields: Mapping[str, object]) -> Result | Fault:
    """Return the result that a line holds, or what is wrong with the line."""
    try:
        line = _Line.model_validate(fields)
    except ValidationError as error:
        where = ".".join(map(str, error.errors()[0]["loc"])) or "the line"
        return Fault("not-a-result", "a result of a batch", f"{where}: {error.errors()[0]['msg']}")
    return Result(line.custom_id, _outcome(line))


def _outcome(line: _Line) -> Answer | Failure:
    response = line.response
    status = response.status_code if response else None
    if line.error is not None or response is None or (status is not None and status != 200):
        return Failure(_words(line))
    try:
        completion = _Completion.model_validate(response.body)
    except ValidationError:
        return Failure("the response is no chat completion")
    if not completion.choices:
        return Failure("the response has no choice")
    choice = completion.choices[0]
    message = choice.message
    if message.content is None and message.refusal is not None:
        text = message.refusal
    elif message.content is None and choice.finish_reason is None:
        return Failure("the response has no content")
    else:
        text = message.content or ""
    return Answer(text, message.reasoning or message.reasoning_content, choice.finish_reason, completion.usage)


def _words(line: _Line) -> str:
    """Return an error in few words: the status and what the server says."""
    status = line.response.status_code if line.response else None
    body = line.response.body if line.response else None
    inner = body.get("error", body) if isinstance(body, dict) else body
    inner_words = inner.get("message") or inner.get("code") if isinstance(inner, dict) else inner
    own = line.error.message or line.error.code if isinstance(line.error, _Error) else line.error
    said = " ".join(str(own or inner_words or "no response").split())[:160]
    return f"status {status}: {said}" if status is not None else said
