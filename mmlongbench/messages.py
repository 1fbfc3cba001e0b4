"""Messages: the only way from a prompt to a model. What a model is sent, exported, judged or shown is made here.

The form is that of OpenAI's chat completions: a list of messages with text parts and image parts in reading order.
Where the bytes of an image come from is not known here; `image_urls` knows it.
"""

import base64
from collections.abc import Callable, Iterable, Mapping
from typing import Literal, NotRequired, TypeAlias

from typing_extensions import TypedDict

from mmlongbench.prompt import Prompt

Size: TypeAlias = tuple[int, int]
"""Width and height in pixels."""


class TextPart(TypedDict):
    """A text of a message."""

    type: Literal["text"]
    text: str


class ImageUrl(TypedDict):
    """The address of an image."""

    url: str
    detail: NotRequired[Literal["auto", "low", "high", "original"]]
    """How finely OpenAI's models see the image; other servers ignore it."""


class ImagePart(TypedDict):
    """An image of a message."""

    type: Literal["image_url"]
    image_url: ImageUrl


class Message(TypedDict):
    """What one speaker says."""

    role: Literal["system", "user", "assistant"]
    content: str | list[TextPart | ImagePart]
    """The system message is one text; every other message is a list of parts."""


class Messages(list[Message]):
    """A conversation as a model is sent it: a list, with a note on images that were made smaller."""

    def __init__(self, messages: Iterable[Message], shrunk: Mapping[str, tuple[Size, Size]] | None = None) -> None:
        """Make a list of messages."""
        super().__init__(messages)
        self.shrunk = dict(shrunk or {})
        """The images that were made smaller, by path: (their size in the release, their size here)."""


def messages(prompt: Prompt, url: Callable[[str], str], system: str | None = None) -> list[Message]:
    """Return a prompt as messages: one for each turn, and one before them for a `system` text.

    Args:
        prompt: the prompt.
        url: returns the address of an image from its path below `mmlb_image/`.
        system: what the system message says; None: there is no such message.

    >>> messages(Prompt.of(["What is this?"]), str)
    [{'role': 'user', 'content': [{'type': 'text', 'text': 'What is this?'}]}]

    """
    conversation: list[Message] = [] if system is None else [{"role": "system", "content": system}]
    for turn in prompt.turns:
        content: list[TextPart | ImagePart] = []
        for part in turn.parts:
            if isinstance(part, str):
                content.append({"type": "text", "text": part})
            else:
                content.append({"type": "image_url", "image_url": {"url": url(part.path)}})
        conversation.append({"role": turn.role, "content": content})
    return conversation


def data_uri(media_type: str, data: bytes) -> str:
    """Return the bytes of a file as an address that contains them.

    >>> data_uri("image/png", b"abc")
    'data:image/png;base64,YWJj'
    """
    return f"data:{media_type};base64,{base64.b64encode(data).decode()}"
