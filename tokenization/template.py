"""Chat templates: how a model writes a conversation as one text, rendered with jinja2 as transformers renders them."""

import functools
import hashlib
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import NoReturn, TypeAlias

from tokenization.errors import TokenizationError
from tokenization.text import HUB_ID, hub_files, read_file

Turns: TypeAlias = Sequence[tuple[str, Sequence[str | tuple[int, int]]]]
"""A conversation: the role of each turn, and its parts, which are texts and the (width, height) of images."""

FILES = ("chat_template.jinja", "chat_template.json", "tokenizer_config.json")
"""Where a model keeps its template: in the first of these files that has one."""
TODAY = datetime(2025, 1, 1)  # noqa: DTZ001  for templates that write the date: the count must not change with it
_FIRST, _LAST, _IMAGE = "\ue000a\ue001", "\ue000b\ue001", "\ue000c\ue001"  # no template writes these characters
_TOKEN, _SET_TOKEN = re.compile(r"\b[be]os_token\b"), re.compile(r"\bset\s+([be]os_token)\b")
_GENERATION = re.compile(r"(\{%[-+]?\s*)(end)?generation(?=\s*[-+]?%\})")


@dataclass(frozen=True, slots=True)
class ChatTemplate:
    """Writes conversations as a model reads them."""

    name: str
    """What was loaded: a path or a hub id."""
    text: str
    """The template, after lines that set the special tokens that it names. A file of this text is the same template."""

    @property
    def sha256(self) -> str:
        """The SHA-256 of the text in UTF-8, in hexadecimal."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    @property
    def placeholder(self) -> str:
        """What the template writes for an image, without blanks and newlines around it.

        A template whose messages are one string each leaves this to the code around it: then it is a private text. It
        is empty if nothing is written.
        """
        return _placeholder(self)

    def render(self, turns: Turns) -> str:
        """Return the conversation as one text, up to where the model begins its answer."""
        shown = _joined if self.placeholder == _IMAGE else _listed
        return self.write([{"role": role, "content": shown(parts)} for role, parts in turns])

    def pieces(self, turns: Turns) -> list[str]:
        """Return the texts before, between and after the images of a conversation, with all that the template writes
        but the placeholders. There is one more than images. `TextTokenizer.count_pieces` counts them.
        """
        images = sum(not isinstance(part, str) for _, parts in turns for part in parts)
        if images and not self.placeholder:
            raise self._error("it writes nothing for an image: use that of a model that reads images")
        texts = self.render(turns).split(self.placeholder) if images else [self.render(turns)]
        if len(texts) != images + 1:
            reason = f"{len(texts) - 1} times {self.placeholder!r} are written for {images} images"
            raise self._error(f"{reason}; take it out of the texts, or use another template")
        return texts

    def write(self, messages: list[dict[str, object]]) -> str:
        """Return messages as transformers takes them as one text."""
        try:
            return _compiled(self.text)(messages=messages, tools=None, documents=None, add_generation_prompt=True)
        except MemoryError:
            raise
        except Exception as error:  # a template may fail in any way, and raises errors that are meant for its user
            reason = " ".join(str(error).split()) or type(error).__name__
            raise self._error(f"it refuses the conversation: {reason}; change its turns, or use another one") from error

    def _error(self, reason: str) -> TokenizationError:
        return TokenizationError(f"chat template {self.name!r}: {reason}")


def _listed(parts: Sequence[str | tuple[int, int]]) -> object:
    return [{"type": "text", "text": part} if isinstance(part, str) else {"type": "image"} for part in parts]


def _joined(parts: Sequence[str | tuple[int, int]]) -> object:
    return "".join(part if isinstance(part, str) else _IMAGE for part in parts)


@functools.lru_cache(maxsize=16)
def _placeholder(template: ChatTemplate) -> str:
    """Return what a message with an image has more than the same message without it."""

    def written(content: object) -> str:
        return template.write([{"role": "user", "content": content}])

    try:
        without = written(_listed([_FIRST, _LAST]))
    except TokenizationError:
        without = ""  # a list cannot be joined to a text
    if _FIRST not in without or re.search("[\"']type[\"']", without):  # the list itself, spelled by Python or as JSON
        if _FIRST not in written(_FIRST):
            raise template._error("it does not write the text of a message: use another one")
        return _IMAGE
    try:
        shown = written(_listed([_FIRST, (1, 1), _LAST]))
    except TokenizationError:
        return ""  # the template of a model without images
    start = next((at for at, (ours, other) in enumerate(zip(shown, without, strict=False)) if ours != other), 0)
    length = len(shown) - len(without)
    # if it ends as the text before it does, such as in "<|", it may begin earlier
    starts = (at for at in range(start, -1, -1) if shown[:at] + shown[at + length :] == without)
    written_here = (shown[at : at + length].strip() for at in starts)
    whole = (each for each in written_here if each[:1] in "<[" and each[-1:] in ">]")
    return next(whole, shown[start : start + length].strip())


@functools.lru_cache(maxsize=16)
def _compiled(text: str) -> Callable[..., str]:
    """Compile a template with the settings, filters and functions that transformers gives it."""
    from jinja2.exceptions import TemplateError
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    def raise_exception(message: str) -> NoReturn:
        raise TemplateError(message)

    def tojson(value: object, ensure_ascii: bool = False, indent: int | None = None) -> str:
        return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent)

    extensions = ["jinja2.ext.loopcontrols"]
    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=extensions)
    environment.filters["tojson"] = tojson
    environment.globals |= {"raise_exception": raise_exception, "strftime_now": TODAY.strftime}
    # `generation` marks what an assistant says, for training alone
    shown = _GENERATION.sub(lambda tag: f"{tag[1]}{'endif' if tag[2] else 'if true'}", text)
    return environment.from_string(shown).render


def load_template(name: str) -> ChatTemplate:
    """Load a chat template: the path of a `.jinja`, a `chat_template.json` or a `tokenizer_config.json`, a folder that
    has one of them, or a hub id `owner/name` (downloaded). Special tokens are read from the `tokenizer_config.json` in
    the same place.
    """
    from jinja2.exceptions import TemplateSyntaxError

    path = Path(name)
    if not path.exists() and HUB_ID.fullmatch(name) and path.suffix not in (".json", ".jinja"):
        paths = hub_files("chat template", name, *FILES)
    else:
        paths = [path / file for file in FILES] if path.is_dir() else [path, path.with_name(FILES[-1])]
    try:
        read = {each: read_file("chat template", name, each) for each in paths if each.is_file() or each == path}
        files = [
            json.loads(text) if each.suffix == ".json" else {"chat_template": text.decode()}
            for each, text in read.items()
        ]
        template = next((file["chat_template"] for file in files if file.get("chat_template")), None)
        if isinstance(template, list):  # several by name
            template = next((each["template"] for each in template if each["name"] == "default"), None)
        if not isinstance(template, str):
            raise TokenizationError(
                f"chat template {name!r}: there is none: give one of {', '.join(FILES)} that has it"
            )
        # `bos_token` and others: a text, or the description of an added token
        tokens = {key: token for file in files for key, token in file.items() if key.endswith("_token")}
        tokens = {key: token["content"] if isinstance(token, dict) else token for key, token in tokens.items()}
    except (OSError, UnicodeDecodeError, LookupError, TypeError, AttributeError, json.JSONDecodeError) as error:
        raise TokenizationError(f"chat template {name!r} cannot be read ({error}): give another file") from error
    try:
        _compiled(template)
    except TemplateSyntaxError as error:
        raise TokenizationError(f"chat template {name!r}: line {error.lineno}: {error.message}; correct it") from error
    if missing := {*_TOKEN.findall(template)} - {*tokens, *_SET_TOKEN.findall(template)}:
        todo = f"put the model's {FILES[-1]} beside it, or begin it with {{% set {min(missing)} = '…' %}}"
        raise TokenizationError(f"chat template {name!r}: nothing says what {min(missing)} is: {todo}")
    used = {key: token for key, token in sorted(tokens.items()) if re.search(rf"\b{key}\b", template)}
    lines = (
        f"{{% set {key} = {json.dumps(token, ensure_ascii=False)} %}}\n"
        for key, token in used.items()
        if isinstance(token, str)
    )
    return ChatTemplate(name, "".join([*lines, template]))
