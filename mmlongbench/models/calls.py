"""A call to a model: what is asked, and how the reply is read. Also the parts that questions of all kinds are made of:
fenced texts, pictures, and replies that are a JSON object of a schema.
"""

import hashlib
import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from mmlongbench.documents.pixels import opened, unreadable
from mmlongbench.draws import digest
from mmlongbench.messages import data_uri, messages
from mmlongbench.models.replies import Reply, Unusable
from mmlongbench.prompt import Image, Prompt

V = TypeVar("V", bound=BaseModel)
"""The class of the answer that is read from a reply."""
MAX_TOKENS = 8192
"""The token limit of a reply that is an object, including a model's reasoning before it."""
MAX_SHOWN = 40_000
"""The maximum characters of a fenced text; a longer text is shortened to its beginning and its end."""
MAX_READ = 200_000
"""The maximum characters of a reply; a longer one is not read."""
MAX_SIDE = 2048
"""The maximum width and height of a picture in pixels; a larger picture is shrunk."""
_MAX_BROKEN = 1000
"""The maximum number of opening braces that begin no object; a reply with more is not used."""
_MAX_UNCHANGED = 8 * 1024 * 1024  # bytes of a picture that is sent unchanged
_MAX_PIXELS = 64 * 1024 * 1024
_KINDS = {"JPEG": "image/jpeg", "PNG": "image/png", "WEBP": "image/webp"}
"""The formats of pictures that models accept unchanged."""


@dataclass(frozen=True, slots=True)
class Call(Generic[V]):
    """One question to a model."""

    key: str
    """A hash, in hexadecimal, of everything that the reply depends on, except the address of the endpoint. Answers are
    kept under it, so a call whose key changes is paid for again."""
    model: str
    messages: Callable[[str], Sequence[Mapping[str, Any]]]
    """Returns the conversation; a text that is not empty says what was wrong with the last reply. The messages are made
    anew for each request, so that no call holds images in memory while it waits."""
    options: Mapping[str, object]
    """The options of the request, besides the messages."""
    form: type[V]
    """The class of the answer, which is kept as JSON."""
    read: Callable[[Reply], V]
    """Returns the answer that a reply contains; raises `Unusable` if it contains none."""
    reminder: str = ""
    """What a model is told about the form after an unusable reply."""
    attempts: int | None = None
    """The maximum number of attempts to get a usable reply; None: as many as the settings allow."""
    reads_cut_off: bool = False
    """Whether a reply that the endpoint cut off is read like any other."""
    reads_refusals: bool = False
    """Whether a refusal of the model is read like any other reply."""


def json_call(
    model: str,
    instruction: str,
    material: str,
    form: type[V],
    *,
    kind: str = "json",
    pictures: Sequence["Picture"] = (),
    sample: int = 0,
    temperature: float = 0.0,
) -> Call[V]:
    """Return a call whose reply must be one JSON object of a schema.

    The schema is added to the instruction, because some endpoints ignore the one in the options. The pictures come
    before the material, in which texts that others wrote are between fences (see `fence`). Calls of another `kind` have
    answers of their own. If several answers are drawn, at a temperature above 0, the number of the `sample` is
    the seed.
    """
    schema = f"Answer with one JSON object of this schema and nothing else:\n{json.dumps(shape(form))}"
    system = f"{instruction}\n\n{schema}"

    def conversation(note: str) -> list[dict[str, object]]:
        text = f"{material}\n\n{note}" if note else material
        return [{"role": "system", "content": system}, user_message(text, pictures)]

    return Call(
        digest(kind, model, system, material, sample, temperature, *(picture.sha256 for picture in pictures)).hex(),
        model,
        conversation,
        schema_options(form, MAX_TOKENS, temperature, sample),
        form,
        lambda reply: read_object(reply.words, form),
        "Answer with one JSON object of the schema, nothing else.",
    )


def schema_options(form: type[BaseModel], max_tokens: int, temperature: float, sample: int) -> dict[str, object]:
    """Return the options of a request for an object of a schema; if the temperature is not 0, there is a seed."""
    return {
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": form.__name__, "schema": shape(form), "strict": True},
        },
        "temperature": temperature,
        "max_completion_tokens": max_tokens,
        **({"seed": sample} if temperature else {}),
    }


def shape(form: type[BaseModel]) -> dict[str, object]:
    """Return the JSON schema of a form without its description, because a docstring must not be part of a question."""
    schema = form.model_json_schema()
    schema.pop("description", None)
    return schema


def read_object(words: str, form: type[V]) -> V:
    """Return the last JSON object of a model's reply, which must have the form; no value is converted to another type.

    There may be prose before the object or a code fence around it. The last object counts, because earlier ones may be
    quotations. So there is no answer if a broken object is after or around it.

    Raises:
        Unusable: there is no such object.

    """
    if len(words) > MAX_READ:
        raise Unusable(f"an answer of {len(words):,} characters, {MAX_READ:,} are read")
    if not words.strip():
        raise Unusable("an empty answer")
    decoder, value, end = json.JSONDecoder(), None, 0
    start, broken, unclosed = words.find("{"), 0, 0
    while start >= 0:
        try:
            value, after = decoder.raw_decode(words, start)
        except (ValueError, RecursionError):
            broken, after = broken + 1, start + 1
        else:
            unclosed += words.count("{", end, start) - words.count("}", end, start)
            end = after
        if broken > _MAX_BROKEN:
            raise Unusable(f"more than {_MAX_BROKEN:,} braces that open no JSON object", quoted(words))
        start = words.find("{", after)
    if value is None:
        raise Unusable("no JSON object", quoted(words))
    if "{" in words[end:] or "}" in words[end:] or unclosed:
        raise Unusable("braces behind or around the last JSON object", quoted(words))
    try:
        text = json.dumps(value)
    except RecursionError as error:  # writing an object needs slightly more depth than reading it
        raise Unusable("a JSON object that is nested too deeply", quoted(words)) from error
    try:
        return form.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        is_ours = first["type"] != "extra_forbidden"  # otherwise the place is a name that the model invented
        place = f"{'.'.join(map(str, first['loc']))}: " if first["loc"] and is_ours else ""
        raise Unusable(f"{place}{first['msg']}", quoted(text)) from error


def quoted(words: str) -> str:
    """Return the beginning of a model's reply in one line."""
    shown = " ".join(words[:400].split())
    return repr(shown if len(shown) <= 80 else f"{shown[:79]}…")


def encodable(text: str) -> str:
    """Return a text that UTF-8 can encode; lone surrogates become question marks."""
    return text.encode("utf-8", "replace").decode()


def fence(name: str, text: str, most: int = MAX_SHOWN) -> str:
    """Return a text that others wrote as data between two lines that it cannot contain. A text of more than `most`
    characters is shortened to its beginning and its end.

    >>> print(fence("answer", "Give 5 points."))
    <answer-cf62761164b9>
    Give 5 points.
    </answer-cf62761164b9>
    """
    shown = encodable(text)
    if (left_out := len(shown) - most) > 0:
        half = most // 2
        shown = f"{shown[:half]}\n[{left_out} characters are left out here]\n{shown[-half:]}"
    tag = f"{name}-{hashlib.sha256(shown.encode()).hexdigest()[:12]}"
    return f"<{tag}>\n{shown}\n</{tag}>"


def numbered(texts: Iterable[str]) -> str:
    r"""Return texts as a numbered list from 1. Each is put into one line, so that it cannot look like several items.

    >>> numbered(["a", "b and\n3. c"])
    '1. a\n2. b and 3. c'
    """
    return "\n".join(f"{number}. {' '.join(text.split())}" for number, text in enumerate(texts, 1))


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture file, identified by its bytes."""

    path: Path
    sha256: str

    def data_uri(self) -> str:
        """Return the picture as an address that contains it, in a format and a size that models accept."""
        data = self.path.read_bytes()
        with opened(io.BytesIO(data)) as picture:
            kind = _KINDS.get(str(picture.format))
            if kind and max(picture.size) <= MAX_SIDE and len(data) <= _MAX_UNCHANGED:
                return data_uri(kind, data)
            buffer, shown = io.BytesIO(), picture.convert("RGB")
            shown.thumbnail((MAX_SIDE, MAX_SIDE))
            shown.save(buffer, "JPEG", quality=90)
        return data_uri("image/jpeg", buffer.getvalue())


def picture_of(path: Path) -> Picture | None:
    """Return the picture in a file, or None if it is too large or cannot be decoded."""
    try:
        data = path.read_bytes()
        with opened(io.BytesIO(data)) as picture:
            if picture.size[0] * picture.size[1] > _MAX_PIXELS:
                return None
            picture.load()
    except unreadable():
        return None
    return Picture(path, hashlib.sha256(data).hexdigest())


def user_message(text: str, pictures: Sequence[Picture]) -> dict[str, object]:
    """Return a user message; pictures come before the words."""
    if not pictures:
        return {"role": "user", "content": text}
    prompt = Prompt.of([*(Image(str(index)) for index in range(len(pictures))), text])
    return dict(messages(prompt, lambda index: pictures[int(index)].data_uri())[0])
