"""A call that gives a model one example, and keeps everything that the endpoint says about its answer."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import ClassVar

from pydantic import BaseModel, ConfigDict

from mmlongbench.draws import digest
from mmlongbench.messages import messages
from mmlongbench.models.calls import VerbatimCall
from mmlongbench.models.replies import Reply
from mmlongbench.prompt import Prompt


class ChatAnswer(BaseModel):
    """A model's answer, as the endpoint returned it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    text: str
    """The answer. It still contains the reasoning if the endpoint does not return that separately."""
    reasoning: str = ""
    """The reasoning, if the endpoint returns it separately from the answer."""
    finish_reason: str = ""
    """Why the model stopped, such as `stop` or `length`."""
    usage: Mapping[str, int] = {}
    """The token counts of the endpoint, by name; empty if it gives none."""
    seconds: float = 0.0
    """How long the request took."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """How an answer is drawn."""

    max_tokens: int
    """The maximum number of tokens of the answer."""
    temperature: float = 0.0
    sample: int = 0
    """The number of the answer, if several are drawn for one example; it is the seed if the temperature is above 0."""
    system: str | None = None
    """What the system message says; None: there is none."""


@dataclass(frozen=True, slots=True)
class ChatCall(VerbatimCall[ChatAnswer]):
    """One prompt for a model; any reply is an answer, also an empty one, or one that was cut off."""

    form: ClassVar[type[BaseModel]] = ChatAnswer

    model: str
    prompt: Prompt
    url: Callable[[str], str]
    """Returns the address of an image (see `messages`); it is called anew for each request, so that no call holds
    images in memory while it waits."""
    sent: str
    """A digest of the messages, with the bytes of their images as they are sent."""
    sampling: Sampling

    @property
    def key(self) -> str:
        """Return a hash of everything that the answer depends on, except the address of the endpoint."""
        how = self.sampling
        return digest("chat", self.model, self.sent, how.max_tokens, how.temperature, how.sample).hex()

    def messages(self, note: str = "") -> list[dict[str, object]]:
        """Return the prompt as messages."""
        return [dict(message) for message in messages(self.prompt, self.url, self.sampling.system)]

    def options(self) -> dict[str, object]:
        """Return the limit of the answer and the temperature; if the temperature is not 0, also a seed."""
        how = self.sampling
        seed = {"seed": how.sample} if how.temperature else {}
        return {"max_tokens": how.max_tokens, "temperature": how.temperature, **seed}

    def read_reply(self, reply: Reply) -> ChatAnswer:
        """Return a reply, with what the endpoint says about it."""
        return ChatAnswer(
            text=reply.words,
            reasoning=reply.reasoning,
            finish_reason=reply.finish_reason,
            usage=reply.usage,
            seconds=reply.seconds,
        )
