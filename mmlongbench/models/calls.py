"""A call to a model: the messages, the options, and how the reply is read; endpoints are not known here."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar, cast

from pydantic import BaseModel, ValidationError

from mmlongbench.messages import data_uri, messages
from mmlongbench.models.pictures import Picture
from mmlongbench.models.replies import Reply
from mmlongbench.prompt import Image, Prompt

V = TypeVar("V", bound=BaseModel)
"""The class of the answer that is read from a reply."""


@dataclass(frozen=True, slots=True)
class Unusable:
    """A reply without an answer of the requested form."""

    fault: str
    """What is wrong, in this project's words; the model is told this in the next attempt."""
    words: str = ""
    """The beginning of the model's reply."""
    is_final: bool = False
    """Whether there is no further attempt, because the public code whose rules are followed makes none either."""

    def __str__(self) -> str:
        return f"{self.fault} in {self.words}" if self.words else self.fault


class ModelCall(ABC, Generic[V]):
    """One question to a model, with any form of reply."""

    __slots__ = ()

    model: str
    reminder: ClassVar[str]
    """What a model is told about the form after an unusable reply."""

    @property
    @abstractmethod
    def key(self) -> str:
        """Return a hash, in hexadecimal, of everything that the reply depends on."""

    @property
    def attempts(self) -> int | None:
        """Return the maximum number of attempts to get a usable reply; None: as many as the settings allow."""
        return None

    @property
    def reads_cut_off(self) -> bool:
        """Return whether a reply that the endpoint cut off is read like any other."""
        return False

    @property
    def reads_refusals(self) -> bool:
        """Return whether a refusal of the model is read like any other reply."""
        return False

    @abstractmethod
    def messages(self, note: str = "") -> list[dict[str, object]]:
        """Return the conversation in the form of the protocol; a note says what was wrong with the last reply."""

    @abstractmethod
    def options(self) -> dict[str, object]:
        """Return the options of the request, besides the messages."""

    @abstractmethod
    def read(self, words: str) -> V | Unusable:
        """Return the answer that a reply contains, or why it has no usable one."""

    def read_reply(self, reply: Reply) -> V | Unusable:
        """Return the answer that a reply contains, with what the endpoint says about it, or why there is none."""
        return self.read(reply.words)

    @abstractmethod
    def restored(self, kept: str) -> V | Unusable:
        """Return the answer that was saved as JSON, or why it is not usable."""


class VerbatimCall(ModelCall[V]):
    """A question to a model, of which any reply is an answer that is kept as it came: also a refusal, an empty one, or
    one that was cut off. Its class has a field `text` for the words.
    """

    __slots__ = ()

    reminder: ClassVar[str] = ""
    form: ClassVar[type[BaseModel]]
    """The class of the answer."""

    @property
    def reads_cut_off(self) -> bool:
        """Return True: an answer that was cut off is kept, with the reason."""
        return True

    @property
    def reads_refusals(self) -> bool:
        """Return True: a refusal is what the model answered."""
        return True

    def read(self, words: str) -> V:
        """Return a reply without anything that the endpoint says about it."""
        return cast("V", self.form.model_validate({"text": words}))

    def restored(self, kept: str) -> V | Unusable:
        """Return an answer that was saved."""
        try:
            return cast("V", self.form.model_validate_json(kept))
        except ValidationError as error:
            return Unusable(error.errors()[0]["msg"])


def user_message(text: str, pictures: Iterable[Picture]) -> dict[str, object]:
    """Return a user message; pictures come before the words."""
    shown = {str(number): picture for number, picture in enumerate(pictures)}
    if not shown:
        return {"role": "user", "content": text}
    prompt = Prompt.of([*map(Image, shown), text])
    return dict(messages(prompt, lambda path: data_uri(*shown[path].encoded()))[0])
