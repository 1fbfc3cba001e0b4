"""Describes builders, readers, samples, metrics and manifests as values, for `mmlongbench list NAME`; and makes
the JSON Schema of manifests. Nothing is printed here. The texts about fields are those of pydantic's JSON Schema.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import FunctionType
from typing import Any, TypeAlias, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError
from pydantic.json_schema import GenerateJsonSchema

from mmlongbench.errors import MMLongBenchError, PluginError
from mmlongbench.field_texts import field_texts
from mmlongbench.io.locations import LocalPath
from mmlongbench.lengths import K, format_length
from mmlongbench.manifest.binding import bind, calling
from mmlongbench.manifest.loading import installed_datasets, load_manifest
from mmlongbench.manifest.mix import MixSpec
from mmlongbench.manifest.model import LOCATIONS_SCHEMA, SAMPLE, CounterSpec, DatasetSpec, Manifest
from mmlongbench.manifest.plugins import (
    Plugin,
    builder_type,
    docstring,
    installed,
    is_installed,
    metric_type,
    reader_type,
    sample_function,
)
from mmlongbench.manifest.strict_model import arms_of
from mmlongbench.packing.place import Depth, Permutation
from mmlongbench.task.builder import Builder
from mmlongbench.task.metric import PROFILES
from mmlongbench.task.reader import Reader, SampleFiles
from mmlongbench.task.rows import Row
from mmlongbench.task.spec import TaskSpec
from tokenization import vision_rules

JsonObject: TypeAlias = dict[str, Any]
_T = TypeVar("_T")
_ANY: TypeAdapter[Any] = TypeAdapter(Any)

_ALWAYS = {
    "length": "The tokens of the whole prompt: text and images together.",
    "tokens": "An object with text and image (the tokens of the prompt) and reserve (the tokens kept free); with "
    "`count_as` in the manifest also `as`: text and image by each of these counters, null if a model refuses an image.",
}
_PLACED: Mapping[type[Depth] | type[Permutation], Mapping[str, str]] = {
    Depth: {
        "depth": "The depth that was asked for: 0 is before the first unit of the haystack, 1 after the last one.",
        "depth_achieved": "The depth that was reached: haystack tokens before the needle / all haystack tokens.",
        "needle_start": "The tokens of the prompt before the needle.",
    },
    Permutation: {
        "permutation": "The number of the permutation, from 0.",
        "depth_achieved": "The depth that was reached by each needle: haystack tokens before it / all haystack tokens.",
        "needle_start": "The tokens of the prompt before each needle.",
        "depth_requested": "The depth that was drawn for each needle; 0 is before the first unit, 1 after the last "
        "one.",
    },
}
"""The fields that the engine adds to every record, and to one whose needles are placed in one of these ways."""


def describe_plugin(plugin: Plugin) -> JsonObject:
    """Return everything about an installed plug-in. What depends on the options of a builder is listed for the defaults
    first, then for the options of the installed manifests.

    Raises:
        PluginError: it cannot be used; the error says why.

    """
    name, uses = plugin.name, [(manifest, spec) for manifest, specs in _manifests() for spec in specs]
    loaded: Any
    if plugin.kind == "builder":
        loaded = builder_type(name)
        facts = {
            "options": fields_of(loaded.options_type),
            "row_type": loaded.row_type.__name__,
            "row_fields": fields_of(loaded.row_type),
            **_declared(loaded, list(_tasks(name))),
            "manifests": _once(manifest for manifest, spec in uses if spec.builder == name),
        }
    elif plugin.kind == "reader":
        loaded, sample = reader_type(name), None
        with suppress(PluginError):  # none is installed, or it is broken
            sample = sample_function(name)
        facts = {
            "sources": sources_of(loaded),
            "has_sample": is_installed("sample", name),
            "sample": str(sample) if isinstance(sample, SampleFiles) else "",  # its archive, and the folder in it
            "row_type": loaded.row_type.__name__,
            "row_fields": fields_of(loaded.row_type),
            "image_folder": loaded.image_folder,
            "builders": [
                each for each in usable("builder") if issubclass(loaded.row_type, builder_type(each).row_type)
            ],
            "manifests": _once(manifest for manifest, spec in uses if spec.reader == name),
        }
    elif plugin.kind == "metric":
        loaded = metric_type(name)
        metrics = {
            builder: {metric for task in _tasks(builder) for metric in (task.metric, *task.further_metrics)}
            for builder in usable("builder")
        }
        facts = {
            "profiles": {profile: loaded.profiles[profile] for profile in PROFILES if profile in loaded.profiles},
            "builders": [builder for builder in metrics if name in metrics[builder]],
            "manifests": _once(manifest for manifest, spec in uses if _metric_of(spec) == name),
        }
    else:
        loaded = sample_function(name)
        sources = sources_of(reader_type(name)) if is_installed("reader", name) else []
        facts = {"reader": name, "sources": sources}
    return {**code_and_about(loaded, name, plugin.origin), "kind": plugin.kind, **facts}


def code_and_about(loaded: object, name: str, distribution: str) -> JsonObject:
    """Return what every plug-in has: its name, its distribution with the version, the place of its code, such as
    `builders.docvqa.builder:DocVQA`, and the first paragraph of its docstring.
    """
    documented = loaded.func if isinstance(loaded, partial) else loaded
    code = str(documented)
    if isinstance(documented, type | FunctionType):
        code = f"{documented.__module__}:{documented.__qualname__}"
    number = ""
    with suppress(PackageNotFoundError, ValueError):  # an entry point of no distribution
        number = version(distribution)
    about = " ".join(docstring(loaded).partition("\n\n")[0].split())
    return {"name": name, "distribution": distribution, "version": number, "code": code, "about": about}


def _declared(builder: type[Builder[Row]], tasks: Sequence[TaskSpec]) -> JsonObject:
    """Return what the tasks of a builder declare: fields of records, files, placements and metrics."""
    added, files, placements = dict[str, str](), list[tuple[str, str]](), list[str]()
    for task in tasks:
        added |= _ALWAYS
        files.append(("records", task.files.template))
        if task.bundle:
            files.append(("bundle", task.bundle.files.template))
        files.append(("items", f"{task.files.template.rpartition('.')[0]}.parquet"))
        if task.placements:
            added |= _PLACED[task.placements.kind]
            values = task.placements.values
            depths = f"{len(values)} depths ({', '.join(f'{value:g}' for value in values)})"
            placements.append(depths if task.placements.kind is Depth else f"{len(values)} permutations")
    metrics = _once(metric for task in tasks for metric in (task.metric, *task.further_metrics))
    return {
        "record_fields": [
            *({"name": name, "text": text, "is_added": False} for name, text in builder.record_fields.items()),
            *({"name": name, "text": text, "is_added": True} for name, text in added.items()),
        ],
        "files": [{"kind": kind, "pattern": pattern} for kind, pattern in _once(files)],
        "placements": _once(placements),
        "variants": list(builder.variants),
        "readers": [name for name in usable("reader") if issubclass(reader_type(name).row_type, builder.row_type)],
        "metrics": metrics[:1],
        "further_metrics": metrics[1:],
    }


def _tasks(builder: str) -> Iterator[TaskSpec]:
    """Yield what a builder declares with its default options, if it has defaults for all; then with the options of the
    installed manifests that use it.
    """
    kind = builder_type(builder)
    with suppress(ValidationError):
        options = kind.options_type()
        with calling("builder", builder, "spec", about="default options"):
            yield kind(builder, options).spec
    for _, specs in _manifests():
        for spec in specs:
            if spec.builder == builder:
                with suppress(MMLongBenchError):
                    yield bind(spec).task


def _manifests() -> list[tuple[str, tuple[DatasetSpec, ...]]]:
    return sorted(installed_datasets().items())


def _metric_of(spec: DatasetSpec) -> str:
    with suppress(MMLongBenchError):
        return bind(spec).task.metric if is_installed("builder", spec.builder) else ""
    return ""


def _once(values: Iterable[_T]) -> list[_T]:
    return list(dict.fromkeys(values))


def usable(kind: str) -> list[str]:
    """Return the names of the installed plug-ins of a kind that can be loaded."""
    return [plugin.name for plugin in installed(kind) if not plugin.problem]


def sources_of(kind: type[Reader[Row]]) -> list[JsonObject]:
    """Return the sources of a reader, first those that a manifest must give."""
    names = {**dict.fromkeys(kind.sources, False), **dict.fromkeys(kind.optional_sources, True)}
    forms = kind.source_forms
    return [{"name": name, "is_optional": names[name], "form": forms.get(name, "")} for name in names]


def describe_manifest(name: str, path: Path) -> JsonObject:
    """Return the description of a manifest. A builder or reader that is not installed is named only. Paths below the
    manifest's folder are relative to it; a source that must be set, or may be left out, has none.

    Raises:
        ManifestError: the manifest cannot be read.

    """

    def shown(place: Path) -> str:
        return str(place.relative_to(path.parent) if place.is_relative_to(path.parent) else place)

    datasets = []
    for spec in load_manifest(path).datasets:
        reader = reader_type(spec.reader) if is_installed("reader", spec.reader) else None
        source: dict[str, str | None] | str = "sample"
        if not isinstance(spec.source, str):
            source = dict.fromkeys(declared["name"] for declared in (sources_of(reader) if reader else ()))
            for key, locations in spec.source.items():
                paths = (shown(place.path) if isinstance(place, LocalPath) else str(place) for place in locations)
                source[key] = ", ".join(paths)
        datasets.append(
            {
                "name": spec.name,
                "builder": spec.shown_builder,
                "reader": spec.shown_reader,
                "source": source,
                "optional_sources": list(reader.optional_sources) if reader else [],
                "corpus": None if spec.corpus is None else shown(spec.corpus),
                "lengths": list(spec.lengths),
                "metric": _metric_of(spec),
                "options": spec.options,
            }
        )
    first = path.read_text("utf-8").partition("\n")[0]
    about = first.removeprefix("#").strip() if first.startswith("#") else ""
    return {"kind": "manifest", "name": name, "path": str(path), "about": about, "datasets": datasets}


class _AnyType(GenerateJsonSchema):
    """Makes the JSON Schema of a model, with the texts below its fields; a type that JSON Schema cannot state is any
    value there.

    Pydantic can read these texts too, but only when a class is made, which took a fifth of the start of a command.
    """

    def model_schema(self, schema: Any) -> JsonObject:  # noqa: ANN401  (pydantic's)
        return self._with_texts(super().model_schema(schema), schema["cls"])

    def dataclass_schema(self, schema: Any) -> JsonObject:  # noqa: ANN401  (pydantic's)
        return self._with_texts(super().dataclass_schema(schema), schema["cls"])

    def _with_texts(self, schema: JsonObject, kind: type) -> JsonObject:
        for name, text in field_texts(kind).items():
            if name in schema.get("properties", {}):
                schema["properties"][name].setdefault("description", text)
        return schema

    def handle_invalid_for_json_schema(self, schema: Any, error_info: str) -> JsonObject:  # noqa: ANN401  (pydantic's)
        return {}


def json_schema_of(model: type[BaseModel], template: str = "#/$defs/{model}") -> JsonObject:
    """Return the JSON Schema of a model, its fields without titles and with their texts, each on one line."""
    schema = model.model_json_schema(ref_template=template, schema_generator=_AnyType)
    parts = schema.get("$defs", {})
    for part in (schema, *parts.values()):
        for field in part.get("properties", {}).values():
            field.pop("title", None)
            inner = parts.get(field.get("$ref", "").rpartition("/")[2], {})  # pydantic leaves out a text that is equal
            field["description"] = " ".join(field.get("description", inner.get("description", "")).split())
    return schema


_BOUNDS = {"minimum": "at least", "exclusiveMinimum": "above", "maximum": "at most", "exclusiveMaximum": "below"}


def fields_of(model: type[BaseModel]) -> list[JsonObject]:
    """Return the fields of a model in their order, each with its type in words, such as `integer, at least 1`."""
    schema = json_schema_of(model)
    required, parts = schema.get("required", ()), schema.get("$defs", {})
    fields = []
    for name, field in schema.get("properties", {}).items():
        arms = (field, *field.get("anyOf", ()))
        bounds = [f"{words} {arm[key]}" for arm in arms for key, words in _BOUNDS.items() if key in arm]
        default = None  # taken from the model, because a JSON Schema has no default that a function makes
        if name not in required:
            default = model.model_fields[name].get_default(call_default_factory=True, validated_data={})
        fields.append(
            {
                "name": name,
                "type": ", ".join((type_text(field, parts), *bounds)),
                "is_required": name in required,
                "default": _ANY.dump_python(default, mode="json", fallback=repr),
                "text": field["description"],
            }
        )
    return fields


def dataset_keys() -> list[JsonObject]:
    """Return the keys of a dataset in a manifest, as `fields_of` gives them; below a key that is a mapping, its own
    keys follow, such as `pages.dpi`.
    """
    properties = manifest_schema()["$defs"][DatasetSpec.__name__]["properties"]

    def keys_of(model: type[BaseModel], prefix: str) -> Iterator[JsonObject]:
        for field in fields_of(model):
            arms = arms_of(model.model_fields[field["name"]].annotation)
            parts = [kind for kind in arms if issubclass(kind, BaseModel)]
            if not prefix and field["name"] in ("lengths", "admission_length", "reference_length"):
                field["default"] = properties[field["name"]]["default"]
            yield {**field, "name": prefix + field["name"], **({"type": ""} if parts else {})}
            for part in parts:
                yield from keys_of(part, f"{prefix}{field['name']}.")

    return list(keys_of(DatasetSpec, ""))


_WORDS = {"string": "text", "integer": "integer", "number": "number", "boolean": "true | false", "null": "null"}


def type_text(schema: JsonObject, parts: Mapping[str, JsonObject]) -> str:
    """Return a type of JSON Schema in words; `parts` are the definitions that it refers to.

    >>> type_text({"anyOf": [{"enum": ["a", "b"]}, {"type": "null"}]}, {})
    'a | b, or null'
    >>> type_text({"type": "array", "items": {"type": "object", "additionalProperties": {"type": "integer"}}}, {})
    'list of mappings from text to integer'
    """
    if "$ref" in schema:
        return type_text(parts[schema["$ref"].rpartition("/")[2]], parts)
    if "const" in schema or "enum" in schema:
        allowed = schema["enum"] if "enum" in schema else [schema["const"]]
        return " | ".join(value if isinstance(value, str) else json.dumps(value) for value in allowed)
    if unions := [*schema.get("anyOf", ()), *schema.get("oneOf", ())]:
        arms = [type_text(arm, parts) for arm in unions]
        return " or ".join(arm for arm in arms if arm != "null") + (", or null" if "null" in arms else "")
    match schema.get("type"):
        case "array" if "prefixItems" in schema:
            return f"list ({', '.join(type_text(item, parts) for item in schema['prefixItems'])})"
        case "array":
            said = type_text(schema.get("items", {}), parts)
            plural = f"({said})" if " | " in said else re.sub(r"^(any )?(\w+)", r"\1\2s", said)
            return f"list of {plural}"
        case "object" if "properties" in schema:
            return f"mapping with {', '.join(schema['properties'])}"
        case "object" if isinstance(schema.get("additionalProperties"), dict):
            return f"mapping from text to {type_text(schema['additionalProperties'], parts)}"
        case "object":
            return "mapping"
        case kind:
            return "path" if schema.get("format") == "path" else _WORDS.get(str(kind), "any value")


# The JSON Schema of a manifest has the keys of the models that read manifests. Forms that only a validator of these
# models accepts, such as the length `8K`, are added here.
_TOKENS: JsonObject = {"type": "integer", "minimum": K, "multipleOf": K}
_LENGTH: JsonObject = {"anyOf": [{"type": "string", "pattern": r"^\s*[0-9]{1,9}\s*[KkMm]?\s*$"}, _TOKENS]}
_LENGTHS: JsonObject = {
    "anyOf": [
        {"type": "array", "items": _LENGTH, "minItems": 1},
        {"type": "string", "pattern": r"^\s*[0-9]{1,9}\s*[KkMm]?\s*(,\s*[0-9]{1,9}\s*[KkMm]?\s*)*$"},
        _TOKENS,
    ]
}
_NAME: JsonObject = {"type": ["string", "integer"]}  # a name may be made of digits
_INCLUDE: JsonObject = {
    "type": "array",
    "items": {"type": "string"},
    "description": "Manifests whose datasets come first: files beside this one, or names of installed ones.",
}


def manifest_schema() -> JsonObject:
    """Return the JSON Schema of a manifest, by which editors complete and check its keys. The options of installed
    builders and the sources of installed readers are in it.
    """
    schema, mix = json_schema_of(Manifest), json_schema_of(MixSpec)
    dataset = schema["$defs"][DatasetSpec.__name__]
    required = [key for key in dataset.pop("required") if key != "reader"]  # a `mt.Task` reads its own sources
    keys = dataset["properties"]
    wider = {
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
    models = {"anyOf": [{"enum": sorted(vision_rules())}, {"type": "string"}]}  # a name has many spellings
    counter = schema["$defs"][CounterSpec.__name__]["properties"]
    counter["image"]["oneOf"][0] = models
    counter["tokenizer"] = {**counter["text"], "description": "An earlier name of `text`."}
    wider["counter"] = {"anyOf": [models, {"$ref": keys["counter"]["$ref"]}], "default": keys["counter"]["default"]}
    for key, types in wider.items():
        keys[key] = {"description": keys[key]["description"], **types}
    tokens = {"anyOf": [{"type": "integer", "exclusiveMinimum": 0}, _LENGTH]}
    mix["properties"]["tokens"] = {"description": mix["properties"]["tokens"]["description"], **tokens}

    def rule(key: str, value: str, properties: JsonObject) -> JsonObject:
        is_so = {"properties": {key: {"const": value}}, "required": [key]}
        return {"if": is_so, "then": {"properties": properties}}

    dataset["allOf"], options = [], {}
    for name in usable("builder"):
        with suppress(PydanticUserError):  # a type of the options has no schema
            types = json_schema_of(builder_type(name).options_type, f"#/$defs/options-{name}/$defs/{{model}}")
            options[f"options-{name}"] = {"properties": {}, **types}
            dataset["allOf"].append(rule("builder", name, {"options": {"$ref": f"#/$defs/options-{name}"}}))
    for name in usable("reader"):
        sources = sources_of(reader_type(name))
        paths = {source["name"]: {**LOCATIONS_SCHEMA, "description": source["form"]} for source in sources}
        given: JsonObject = {"type": "object", "properties": paths, "additionalProperties": False}
        dataset["allOf"].append(rule("reader", name, {"source": {"anyOf": [given, {"const": SAMPLE}]}}))
    entry, about = {"$ref": f"#/$defs/{DatasetSpec.__name__}"}, schema["properties"]["datasets"]["description"]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Manifest of MMLongBench",
        "description": "What `mmlongbench build` builds.",
        "type": "object",
        "additionalProperties": False,
        "anyOf": [{"required": ["datasets"]}, {"required": ["include"]}],
        "properties": {
            "include": _INCLUDE,
            "defaults": {
                "anyOf": [entry, {"type": "null"}],
                "description": "Keys for every dataset that does not have them, included ones too.",
            },
            "datasets": {"type": "array", "minItems": 1, "items": entry, "description": about},
            "mix": {**mix, "description": "A training mix, which `mmlongbench export --mix` chooses."},
        },
        "if": {"not": {"required": ["defaults"]}},
        "then": {"properties": {"datasets": {"items": {"required": required}}}},
        "$defs": {**schema["$defs"], **options},
    }
