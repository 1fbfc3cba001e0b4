"""Finds a JSON object in a model's reply. It is checked strictly: no value is converted to another type.

There may be prose before the object or a code fence around it. The last object counts, because earlier ones may be
quotations. If this object does not have the form, or a broken object is after or around it, there is no answer.
"""

import json

from pydantic import BaseModel, ValidationError

from mmlongbench.models.calls import Unusable, V

MAX_CHARACTERS = 200_000
"""The maximum characters of an answer; a longer one is not read."""
_MAX_BROKEN = 1000
"""The maximum number of opening braces that begin no object; a reply with more is not used."""


def shape(form: type[BaseModel]) -> dict[str, object]:
    """Return the JSON schema of a form without its description, because a docstring must not be part of a question."""
    schema = form.model_json_schema()
    schema.pop("description", None)
    return schema


def read_object(words: str, form: type[V]) -> V | Unusable:
    """Return the last JSON object of a model's reply if it has the form, otherwise what is wrong."""
    if len(words) > MAX_CHARACTERS:
        return Unusable(f"an answer of {len(words):,} characters, {MAX_CHARACTERS:,} are read")
    if not words.strip():
        return Unusable("an empty answer")
    value = _last_object(words)
    if isinstance(value, str):
        return Unusable(value, quoted(words))
    try:
        said = json.dumps(value)
    except RecursionError:  # writing an object needs slightly more depth than reading it
        return Unusable("a JSON object that is nested too deeply", quoted(words))
    try:
        return form.model_validate_json(said)
    except ValidationError as error:
        first = error.errors()[0]
        is_ours = first["type"] != "extra_forbidden"  # otherwise the place is a name that the model invented
        place = f"{'.'.join(map(str, first['loc']))}: " if first["loc"] and is_ours else ""
        return Unusable(f"{place}{first['msg']}", quoted(said))


def restored_object(kept: str, form: type[V]) -> V | Unusable:
    """Return an answer that was saved as JSON, or why it is not valid."""
    try:
        return form.model_validate_json(kept)
    except ValidationError as error:
        return Unusable(error.errors()[0]["msg"])


def _last_object(words: str) -> dict[str, object] | str:
    """Return the last JSON object of a text, or why there is no reliable one; objects inside others do not count.

    >>> _last_object('Not {"a": 1}, but {"a": 2}.'), _last_object('{"a": 1} {"a": "cut o')
    ({'a': 2}, 'braces behind or around the last JSON object')
    """
    decoder, found, end = json.JSONDecoder(), None, 0
    start, broken, unclosed = words.find("{"), 0, 0
    while start >= 0:
        try:
            found, after = decoder.raw_decode(words, start)
        except (ValueError, RecursionError):
            broken, after = broken + 1, start + 1
        else:
            unclosed += words.count("{", end, start) - words.count("}", end, start)
            end = after
        if broken > _MAX_BROKEN:
            return f"more than {_MAX_BROKEN:,} braces that open no JSON object"
        start = words.find("{", after)
    if found is None:
        return "no JSON object"
    is_last = "{" not in words[end:] and "}" not in words[end:]
    return found if is_last and not unclosed else "braces behind or around the last JSON object"


def quoted(words: str) -> str:
    """Return the beginning of a model's reply in one line."""
    shown = " ".join(words[:400].split())
    return repr(shown if len(shown) <= 80 else f"{shown[:79]}…")
