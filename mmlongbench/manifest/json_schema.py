"""The JSON Schema of a manifest, by which editors complete and check its keys.

It is made from the models that read manifests, so it has the same keys. Forms that only a validator of these models
accepts, such as the length `8K`, are added here.
"""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, TypeAlias

from pydantic.errors import PydanticUserError

from mmlongbench.documents.limits import Limits
from mmlongbench.field_texts import field_texts_anywhere
from mmlongbench.lengths import K, format_length
from mmlongbench.manifest.describing import sources_of, usable
from mmlongbench.manifest.downloads import DownloadSpec
from mmlongbench.manifest.licences import AssetColumns, LicenceSpec, LicenceTerms
from mmlongbench.manifest.mix import MixSpec
from mmlongbench.manifest.model import (
    LOCATIONS_SCHEMA,
    SAMPLE,
    CounterSpec,
    DatasetSpec,
    ImageSpec,
    Manifest,
    PageRetrievalSpec,
    PageSpec,
    PictureSpec,
    RerankerSpec,
    RetrievalSpec,
    SampleSpec,
)
from mmlongbench.manifest.plugins import builder_type, reader_type

JsonSchema: TypeAlias = dict[str, Any]
DIALECT = "https://json-schema.org/draft/2020-12/schema"
_PARTS: tuple[type, ...] = (
    *(
        AssetColumns,
        CounterSpec,
        DatasetSpec,
        DownloadSpec,
        ImageSpec,
        LicenceSpec,
        LicenceTerms,
        Limits,
        PageSpec,
        PictureSpec,
        RerankerSpec,
        PageRetrievalSpec,
        RetrievalSpec,
        SampleSpec,
    ),
)
"""The models of a manifest's parts, each of which has a definition in the schema."""
_LENGTH: JsonSchema = {
    "anyOf": [
        {"type": "string", "pattern": r"^\s*[0-9]{1,9}\s*[KkMm]?\s*$"},
        {"type": "integer", "minimum": K, "multipleOf": K},
    ]
}
"""A length: a text such as `8K`, or tokens."""
_LENGTHS: JsonSchema = {
    "anyOf": [
        {"type": "array", "items": _LENGTH, "minItems": 1},
        {"type": "string", "pattern": r"^\s*[0-9]{1,9}\s*[KkMm]?\s*(,\s*[0-9]{1,9}\s*[KkMm]?\s*)*$"},
        {"type": "integer", "minimum": K, "multipleOf": K},
    ]
}
"""Several lengths, or one."""
_NAME: JsonSchema = {"type": ["string", "integer"]}
"""A name, which may be made of digits."""
_INCLUDE: JsonSchema = {
    "type": "array",
    "items": {"type": "string"},
    "description": "Manifests whose datasets come first: files beside this one, or names of installed ones.",
}


def manifest_schema() -> JsonSchema:
    """Return the schema of a manifest. The options of installed builders and the sources of installed readers are in
    it.
    """
    made = Manifest.model_json_schema()
    texts = {kind.__name__: field_texts_anywhere(kind) for kind in _PARTS}
    parts = {name: _with_texts(part, texts.get(name, {})) for name, part in made["$defs"].items()}
    dataset = parts[DatasetSpec.__name__]
    required = [key for key in dataset.pop("required") if key != "reader"]  # a `mt.Task` reads its own sources
    _widen(dataset["properties"])
    options = dict(_options())
    dataset["allOf"] = [*map(_if_builder, options), *_sources()]
    one = {"$ref": f"#/$defs/{DatasetSpec.__name__}"}
    datasets = {"type": "array", "minItems": 1, "items": one, "description": field_texts_anywhere(Manifest)["datasets"]}
    defaults = {"anyOf": [one, {"type": "null"}], "description": "Keys for every dataset that does not have them."}
    return {
        "$schema": DIALECT,
        "title": "Manifest of MMLongBench",
        "description": "What `mmlongbench build` builds.",
        "type": "object",
        "additionalProperties": False,
        "anyOf": [{"required": ["datasets"]}, {"required": ["include"]}],
        "properties": {"include": _INCLUDE, "defaults": defaults, "datasets": datasets, "mix": _mix()},
        "if": {"not": {"required": ["defaults"]}},
        "then": {"properties": {"datasets": {"items": {"required": required}}}},
        "$defs": {**parts, **{_definition(name): schema for name, schema in options.items()}},
    }


def _with_texts(part: JsonSchema, texts: dict[str, str]) -> JsonSchema:
    """Return the schema of a model, without titles and with the texts of the fields."""
    described = {
        name: {**{key: value for key, value in field.items() if key != "title"}, "description": texts.get(name, "")}
        for name, field in part["properties"].items()
    }
    return {**part, "properties": described}


def _mix() -> JsonSchema:
    """Return the schema of a training mix."""
    made = _with_texts(MixSpec.model_json_schema(), field_texts_anywhere(MixSpec))
    keys = made["properties"]
    keys["tokens"] = {
        "description": keys["tokens"]["description"],
        "anyOf": [{"type": "integer", "exclusiveMinimum": 0}, _LENGTH],
    }
    return {**made, "description": "A training mix, which `mmlongbench export --mix` chooses."}


def _widen(keys: dict[str, JsonSchema]) -> None:
    """Replace the types of keys of a dataset that accept more forms than the type of the model says."""
    wider: dict[str, JsonSchema] = {
        "lengths": {**_LENGTHS, "default": [*map(format_length, keys["lengths"]["default"])]},
        "admission_length": {**_LENGTH, "default": format_length(keys["admission_length"]["default"])},
        "reference_length": {**_LENGTH, "default": format_length(keys["reference_length"]["default"])},
        "placements": {
            "anyOf": [{"type": "array", "items": {"type": "number"}}, {"type": "number"}, {"type": "null"}],
            "default": None,
        },
        "exclude": {"anyOf": [{"type": "array", "items": _NAME}, _NAME], "default": []},
        "builder": _named("builder"),
        "reader": _named("reader"),
    }
    for key, schema in wider.items():
        keys[key] = {"description": keys[key]["description"], **schema}


def _named(kind: str) -> JsonSchema:
    """Return the schema of the name of a plug-in: an installed one, which an editor proposes, or any other text."""
    return {"anyOf": [{"enum": [plugin.name for plugin in usable(kind)]}, {"type": "string"}]}


def _options() -> Iterator[tuple[str, JsonSchema]]:
    """Yield (builder, schema of its options) of each installed builder whose options have a schema."""
    for plugin in usable("builder"):
        kind = builder_type(plugin.name).options_type
        with suppress(PydanticUserError):  # a type of the options has no schema
            template = f"#/$defs/{_definition(plugin.name)}/$defs/{{model}}"
            made = kind.model_json_schema(ref_template=template)
            yield plugin.name, _with_texts({"properties": {}, **made}, field_texts_anywhere(kind))


def _definition(builder: str) -> str:
    return f"options-{builder}"


def _if_builder(builder: str) -> JsonSchema:
    """Return the rule that a dataset with this builder has this builder's options."""
    options = {"$ref": f"#/$defs/{_definition(builder)}"}
    return _rule("builder", builder, {"options": options})


def _sources() -> Iterator[JsonSchema]:
    """Yield, for each installed reader, the rule that a dataset with this reader has this reader's sources."""
    for plugin in usable("reader"):
        sources = sources_of(reader_type(plugin.name))
        paths = {source.name: {**LOCATIONS_SCHEMA, "description": source.form} for source in sources}
        given: JsonSchema = {"type": "object", "properties": paths, "additionalProperties": False}
        yield _rule("reader", plugin.name, {"source": {"anyOf": [given, {"const": SAMPLE}]}})


def _rule(key: str, value: str, properties: JsonSchema) -> JsonSchema:
    """Return the rule that a dataset in which a key has a value has these properties."""
    is_so = {"properties": {key: {"const": value}}, "required": [key]}
    return {"if": is_so, "then": {"properties": properties}}
