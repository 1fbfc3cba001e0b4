"""Reads a line of a file of results: OpenAI's Batch API and `vllm run-batch` write the same form.

The fields that are needed are checked; all others are ignored.
"""

import json
from collections.abc import Mapping
from typing import NamedTuple

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from mmlongbench.errors import Fault
from mmlongbench.models.replies import Reply, RequestError, read_reply


class Failure(NamedTuple):
    """Why a request has no answer."""

    words: str


class Result(NamedTuple):
    """The result of a request."""

    custom_id: str
    outcome: Reply | Failure


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


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
        return Fault(
            "not-a-result",
            "a result of a batch",
            f"{where}: {error.errors()[0]['msg']}",
            todo="give the output file of a batch",
        )
    return Result(line.custom_id, _outcome(line))


def _outcome(line: _Line) -> Reply | Failure:
    response = line.response
    status = response.status_code if response else None
    if line.error is not None or response is None or (status is not None and status != 200):
        return Failure(_words(line))
    try:
        return read_reply(json.dumps(response.body).encode())
    except RequestError as error:
        return Failure(error.why)


def _words(line: _Line) -> str:
    """Return an error in few words: the status and what the server says."""
    status = line.response.status_code if line.response else None
    body = line.response.body if line.response else None
    inner = body.get("error", body) if isinstance(body, dict) else body
    inner_words = inner.get("message") or inner.get("code") if isinstance(inner, dict) else inner
    own = line.error.message or line.error.code if isinstance(line.error, _Error) else line.error
    said = " ".join(str(own or inner_words or "no response").split())[:160]
    return f"status {status}: {said}" if status is not None else said
