"""Requests of batch files: one chat completion a line, with the name by which its result comes back."""

from collections.abc import Mapping, Sequence

from mmlongbench.exports.target import Export
from mmlongbench.exports.writing import json_line
from mmlongbench.messages import Message
from mmlongbench.release.release import Example

ENDPOINT = "/v1/chat/completions"


def request_line(name: str, messages: Sequence[Message], export: Export, example: Example) -> bytes:
    """Return the line of a request for an example."""
    model = {"model": export.model} if export.model else {}
    most = answer_tokens(example, export)
    limit = {"max_completion_tokens": most} if most else {}
    body: Mapping[str, object] = {**model, "messages": messages, **limit}
    return json_line({"custom_id": name, "method": "POST", "url": ENDPOINT, "body": body})


def answer_tokens(example: Example, export: Export) -> int:
    """Return the maximum number of tokens of an answer; 0: not limited, because the release kept no tokens free."""
    return export.max_tokens or example.reserve
