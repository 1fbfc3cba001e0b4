"""A call whose reply is one JSON object of a schema."""

import json
from dataclasses import dataclass
from typing import ClassVar

from mmlongbench.draws import digest
from mmlongbench.models.calls import ModelCall, Unusable, V, user_message
from mmlongbench.models.pictures import Picture
from mmlongbench.models.reading import read_object, shape

MAX_TOKENS = 8192
"""The token limit of a reply, including a model's reasoning before it."""
_FORM = "Answer with one JSON object of this schema and nothing else:"


@dataclass(frozen=True, slots=True)
class JsonCall(ModelCall[V]):
    """One question to a model, whose reply is a JSON object of a schema."""

    kind: ClassVar[str] = "json"
    """A part of the key, so that different kinds of calls have separate answers."""
    rules: ClassVar[str] = ""
    """The rules at the end of every instruction of this kind."""
    reminder: ClassVar[str] = "Answer with one JSON object of the schema, nothing else."

    model: str
    instruction: str
    material: str
    """The material of the question; texts that others wrote are between fences (see `fence`)."""
    form: type[V]
    """The form that the answer must have."""
    pictures: tuple[Picture, ...] = ()
    sample: int = 0
    """The number of the sample, if several answers to the same question are drawn."""
    temperature: float = 0.0

    @property
    def key(self) -> str:
        """Return a hash of everything that the answer depends on."""
        said = (self.model, self.whole_instruction, self.material, self.sample, self.temperature)
        return digest(self.kind, *said, *(picture.sha256 for picture in self.pictures)).hex()

    @property
    def whole_instruction(self) -> str:
        """Return the instruction with the rules and the schema, because some endpoints ignore the schema in the
        options.
        """
        parts = [self.instruction, self.rules, f"{_FORM}\n{json.dumps(shape(self.form))}"]
        return "\n\n".join(part for part in parts if part)

    def messages(self, note: str = "") -> list[dict[str, object]]:
        """Return the conversation in the form of the protocol; a note says what was wrong with the last answer."""
        text = f"{self.material}\n\n{note}" if note else self.material
        return [{"role": "system", "content": self.whole_instruction}, user_message(text, self.pictures)]

    def options(self) -> dict[str, object]:
        """Return the schema, the temperature and the token limit; if the temperature is not 0, also a seed."""
        form = {"name": self.form.__name__, "schema": shape(self.form), "strict": True}
        return {
            "response_format": {"type": "json_schema", "json_schema": form},
            "temperature": self.temperature,
            "max_completion_tokens": MAX_TOKENS,
            **({"seed": self.sample} if self.temperature else {}),
        }

    def read(self, words: str) -> V | Unusable:
        """Return the last JSON object of a reply if it has the form, otherwise what is wrong."""
        return read_object(words, self.form)

    def restored(self, kept: str) -> V | Unusable:
        """Return a saved answer; it is checked as strictly as a reply."""
        return self.read(kept)
