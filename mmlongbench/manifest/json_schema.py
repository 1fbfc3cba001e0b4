"""The JSON Schema of a manifest, by which editors complete and check its keys.

It is made from the models that read manifests, so it has the same keys. Forms that only a validator of these models
accepts, such as the length `8K`, are added here.
"""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from pydantic.errors import PydanticUserError

from mmlongbench.lengths import K, format_length
from mmlongbench.manifest.describing import JsonObject, json_schema_of, sources_of, usable
from mmlongbench.manifest.mix import MixSpec
from mmlongbench.manifest.model import LOCATIONS_SCHEMA, SAMPLE, DatasetSpec, Manifest
from mmlongbench.manifest.plugins import builder_type, reader_type

DIALECT = "https://json-schema.org/draft/2020-12/schema"
_TOKENS: JsonObject = {"type": "integer", "minimum": K, "multipleOf": K}
_LENGTH: JsonObject = {"anyOf": [{"type": "string", "pattern": r"^\s*[0-9]{1,9}\s*[KkMm]?\s*$"}, _TOKENS]}
"""A length: a text such as `8K`, or tokens."""
_LENGTHS: JsonObject = {
    "anyOf": [
        {"type": "array", "items": _LENGTH, "minItems": 1},
        {"type": "string", "pattern": r"^\s*[0-9]{1,9}\s*[KkMm]?\s*(,\s*[0-9]{1,9}\s*[KkMm]?\s*)*$"},
        _TOKENS,
    ]
}
"""Several lengths, or one."""
_NAME: JsonObject = {"type": ["string", "integer"]}
"""A name, which may be made of digits."""
_INCLUDE: JsonObject = {
    "type": "array",
    "items": {"type": "string"},
    "description": "Manifests whose datasets come first: files beside this one, or names of installed ones.",
}


def manifest_schema() -> JsonObject:
    """Return the schema of a manifest. The options of installed builders and the sources of installed readers are in
    it.
    """
    made = json_schema_of(Manifest)
    dataset = made["$defs"][DatasetSpec.__name__]
    required = [key for key in dataset.pop("required") if key != "reader"]  # a `mt.Task` reads its own sources
    keys = dataset["properties"]
    for key, schema in _wider(keys).items():
        keys[key] = {"description": keys[key]["description"], **schema}
    options = dict(_options())
    rules = [_rule("builder", name, {"options": {"$ref": f"#/$defs/options-{name}"}}) for name in options]
    dataset["allOf"] = [*rules, *_sources()]
    one = {"$ref": f"#/$defs/{DatasetSpec.__name__}"}
    said = made["properties"]["datasets"]["description"]
    mix = json_schema_of(MixSpec)
    mix["properties"]["tokens"] = {
        "description": mix["properties"]["tokens"]["description"],
        "anyOf": [{"type": "integer", "exclusiveMinimum": 0}, _LENGTH],
    }
    return {
        "$schema": DIALECT,
        "title": "Manifest of MMLongBench",
        "description": "What `mmlongbench build` builds.",
        "type": "object",
        "additionalProperties": False,
        "anyOf": [{"required": ["datasets"]}, {"required": ["include"]}],
        "properties": {
            "include": _INCLUDE,
            "defaults": {
                "anyOf": [one, {"type": "null"}],
                "description": "Keys for every dataset that does not have them.",
            },
            "datasets": {"type": "array", "minItems": 1, "items": one, "description": said},
            "mix": {**mix, "description": "A training mix, which `mmlongbench export --mix` chooses."},
        },
        "if": {"not": {"required": ["defaults"]}},
        "then": {"properties": {"datasets": {"items": {"required": required}}}},
        "$defs": {**made["$defs"], **{f"options-{name}": schema for name, schema in options.items()}},
    }


def _wider(keys: dict[str, Any]) -> dict[str, JsonObject]:
    """Return the types of the keys of a dataset that accept more forms than the type of the model says."""
    return {
        "lengths": {**_LENGTHS, "default": [*map(format_length, keys["lengths"]["default"])]},
        "admission_length": {**_LENGTH, "default": format_length(keys["admission_length"]["default"])},
        "reference_length": {**_LENGTH, "default": format_length(keys["reference_length"]["default"])},
        "placements": {
            "anyOf": [{"type": "array", "items": {"type": "number"}}, {"type": "number"}, {"type": "null"}],
            "default": None,
        },
        "exclude": {"anyOf": [{"type": "array", "items": _NAME}, _NAME], "default": []},
        # An editor proposes the installed plug-ins; a task file has any other name.
        "builder": {"anyOf": [{"enum": usable("builder")}, {"type": "string"}]},
        "reader": {"anyOf": [{"enum": usable("reader")}, {"type": "string"}]},
    }


def _options() -> Iterator[tuple[str, JsonObject]]:
    """Yield (builder, schema of its options) of each installed builder whose options have a schema."""
    for name in usable("builder"):
        with suppress(PydanticUserError):  # a type of the options has no schema
            schema = json_schema_of(builder_type(name).options_type, f"#/$defs/options-{name}/$defs/{{model}}")
            yield name, {"properties": {}, **schema}


def _sources() -> Iterator[JsonObject]:
    """Yield, for each installed reader, the rule that a dataset with this reader has this reader's sources."""
    for name in usable("reader"):
        sources = sources_of(reader_type(name))
        paths = {source["name"]: {**LOCATIONS_SCHEMA, "description": source["form"]} for source in sources}
        given: JsonObject = {"type": "object", "properties": paths, "additionalProperties": False}
        yield _rule("reader", name, {"source": {"anyOf": [given, {"const": SAMPLE}]}})


def _rule(key: str, value: str, properties: JsonObject) -> JsonObject:
    is_so = {"properties": {key: {"const": value}}, "required": [key]}
    return {"if": is_so, "then": {"properties": properties}}
