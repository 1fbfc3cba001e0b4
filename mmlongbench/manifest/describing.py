"""Describes builders, readers, samples, metrics and manifests as values, for `mmlongbench list NAME`. Nothing is
printed here. The texts about fields are those of pydantic's JSON Schema.
"""

import inspect
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import FunctionType
from typing import Any, TypeAlias, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic.json_schema import GenerateJsonSchema

from mmlongbench.errors import MMLongBenchError
from mmlongbench.io.locations import LocalPath
from mmlongbench.manifest.binding import bind, calling
from mmlongbench.manifest.loading import installed_datasets, load_manifest
from mmlongbench.manifest.model import DatasetSpec
from mmlongbench.manifest.plugins import (
    Plugin,
    builder_type,
    installed,
    is_installed,
    metric_type,
    reader_type,
    sample_function,
)
from mmlongbench.packing.place import Depth, Permutation
from mmlongbench.task.metric import PROFILES
from mmlongbench.task.reader import Reader
from mmlongbench.task.rows import Row
from mmlongbench.task.spec import TaskSpec

JsonObject: TypeAlias = dict[str, Any]
_T = TypeVar("_T")
_ANY: TypeAdapter[Any] = TypeAdapter(Any)

_ALWAYS = {
    "length": "The tokens of the whole prompt: text and images together.",
    "tokens": "An object with text and image (the tokens of the prompt) and reserve (the tokens kept free).",
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
    describe = {"builder": _builder, "reader": _reader, "metric": _metric, "sample": _sample}[plugin.kind]
    return describe(plugin)


def code_and_about(loaded: object, name: str, distribution: str) -> JsonObject:
    """Return what every plug-in has: its name, its distribution with the version, the place of its code, such as
    `builders.docvqa.builder:DocVQA`, and the first paragraph of its docstring.
    """
    documented = loaded.func if isinstance(loaded, partial) else loaded
    code = str(documented)
    if isinstance(documented, type | FunctionType):
        code = f"{documented.__module__}:{documented.__qualname__}"
    paragraph = inspect.cleandoc(documented.__doc__ or "").partition("\n\n")[0]
    number = ""
    with suppress(PackageNotFoundError, ValueError):  # an entry point of no distribution
        number = version(distribution)
    about = " ".join(paragraph.split())
    return {"name": name, "distribution": distribution, "version": number, "code": code, "about": about}


def _builder(plugin: Plugin) -> JsonObject:
    kind = builder_type(plugin.name)
    tasks = list(_tasks(plugin.name))
    metrics = [task.metric for task in tasks][:1]
    others = _once(name for task in tasks for name in (task.metric, *task.further_metrics))
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
    return {
        **code_and_about(kind, plugin.name, plugin.origin),
        "kind": "builder",
        "options": fields_of(kind.options_type),
        "row_type": kind.row_type.__name__,
        "row_fields": fields_of(kind.row_type),
        "record_fields": [
            *({"name": name, "text": text, "is_added": False} for name, text in kind.record_fields.items()),
            *({"name": name, "text": text, "is_added": True} for name, text in added.items()),
        ],
        "files": [{"kind": what, "pattern": pattern} for what, pattern in _once(files)],
        "placements": _once(placements),
        "variants": list(kind.variants),
        "readers": [name for name in usable("reader") if issubclass(reader_type(name).row_type, kind.row_type)],
        "metrics": metrics,
        "further_metrics": [name for name in others if name not in metrics],
        "manifests": _once(name for name, spec in _datasets() if spec.builder == plugin.name),
    }


def _reader(plugin: Plugin) -> JsonObject:
    kind = reader_type(plugin.name)
    return {
        **code_and_about(kind, plugin.name, plugin.origin),
        "kind": "reader",
        "sources": sources_of(kind),
        "has_sample": is_installed("sample", plugin.name),
        "row_type": kind.row_type.__name__,
        "row_fields": fields_of(kind.row_type),
        "image_folder": kind.image_folder,
        "builders": [name for name in usable("builder") if issubclass(kind.row_type, builder_type(name).row_type)],
        "manifests": _once(name for name, spec in _datasets() if spec.reader == plugin.name),
    }


def _metric(plugin: Plugin) -> JsonObject:
    kind = metric_type(plugin.name)
    named = {
        each: {name for task in _tasks(each) for name in (task.metric, *task.further_metrics)}
        for each in usable("builder")
    }
    return {
        **code_and_about(kind, plugin.name, plugin.origin),
        "kind": "metric",
        "profiles": {profile: kind.profiles[profile] for profile in PROFILES if profile in kind.profiles},
        "builders": [builder for builder, metrics in named.items() if plugin.name in metrics],
        "manifests": _once(manifest for manifest, spec in _datasets() if _metric_of(spec) == plugin.name),
    }


def _sample(plugin: Plugin) -> JsonObject:
    return {
        **code_and_about(sample_function(plugin.name), plugin.name, plugin.origin),
        "kind": "sample",
        "reader": plugin.name,
        "sources": sources_of(reader_type(plugin.name)) if is_installed("reader", plugin.name) else [],
    }


def describe_manifest(name: str, path: Path) -> JsonObject:
    """Return the description of a manifest. A builder or reader that is not installed is named only.

    Raises:
        ManifestError: the manifest cannot be read.

    """
    datasets = [_dataset(spec, path.parent) for spec in load_manifest(path).datasets]
    first = path.read_text("utf-8").partition("\n")[0]
    about = first.removeprefix("#").strip() if first.startswith("#") else ""
    return {"kind": "manifest", "name": name, "path": str(path), "about": about, "datasets": datasets}


def _dataset(spec: DatasetSpec, folder: Path) -> JsonObject:
    """Return the description of a dataset. Paths below the manifest's folder are relative to it; a source that must be
    set, or may be left out, has none.
    """

    def shown(path: Path) -> str:
        return str(path.relative_to(folder) if path.is_relative_to(folder) else path)

    reader = reader_type(spec.reader) if is_installed("reader", spec.reader) else None
    source: dict[str, str | None] | str = "sample"
    if not isinstance(spec.source, str):
        source = dict.fromkeys(each["name"] for each in (sources_of(reader) if reader else ()))
        for name, locations in spec.source.items():
            paths = (shown(each.path) if isinstance(each, LocalPath) else str(each) for each in locations)
            source[name] = ", ".join(paths)
    return {
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


def usable(kind: str) -> list[str]:
    """Return the names of the installed plug-ins of a kind that can be loaded."""
    return [plugin.name for plugin in installed(kind) if not plugin.problem]


def sources_of(kind: type[Reader[Row]]) -> list[JsonObject]:
    """Return the sources of a reader, first those that a manifest must give."""
    names = {**dict.fromkeys(kind.sources, False), **dict.fromkeys(kind.optional_sources, True)}
    forms = kind.source_forms
    return [{"name": name, "is_optional": names[name], "form": forms.get(name, "")} for name in names]


def _datasets() -> Iterator[tuple[str, DatasetSpec]]:
    """Yield (name of the manifest, dataset) of every dataset of the installed manifests."""
    return ((name, spec) for name, specs in sorted(installed_datasets().items()) for spec in specs)


def _tasks(builder: str) -> Iterator[TaskSpec]:
    """Yield what a builder declares with its default options, if it has defaults for all; then with the options of the
    installed manifests that use it.
    """
    kind = builder_type(builder)
    with suppress(ValidationError):
        options = kind.options_type()
        with calling("builder", builder, "spec", about="default options"):
            yield kind(builder, options).spec
    for _, spec in _datasets():
        if spec.builder == builder:
            with suppress(MMLongBenchError):
                yield bind(spec).task


def _metric_of(spec: DatasetSpec) -> str:
    with suppress(MMLongBenchError):
        return bind(spec).task.metric if is_installed("builder", spec.builder) else ""
    return ""


def _once(values: Iterable[_T]) -> list[_T]:
    return list(dict.fromkeys(values))


class _AnyType(GenerateJsonSchema):
    """Makes the JSON Schema of a model; a type that JSON Schema cannot state is any value there."""

    def handle_invalid_for_json_schema(self, schema: Any, error_info: str) -> JsonObject:  # noqa: ANN401  (pydantic's)
        return {}


def json_schema_of(model: type[BaseModel], template: str = "#/$defs/{model}") -> JsonObject:
    """Return the JSON Schema of a model, its fields without titles and with their texts, each on one line."""
    made = model.model_json_schema(ref_template=template, schema_generator=_AnyType)
    parts = made.get("$defs", {})
    for part in (made, *parts.values()):
        for field in part.get("properties", {}).values():
            field.pop("title", None)
            inner = parts.get(field.get("$ref", "").rpartition("/")[2], {})  # pydantic leaves out a text that is equal
            field["description"] = " ".join(field.get("description", inner.get("description", "")).split())
    return made


def fields_of(model: type[BaseModel]) -> list[JsonObject]:
    """Return the fields of a model in their order, each with its type in words, such as `integer, at least 1`."""
    schema = json_schema_of(model)
    required, parts = schema.get("required", ()), schema.get("$defs", {})
    found = []
    for name, field in schema.get("properties", {}).items():
        default = None  # taken from the model, because a JSON Schema has no default that a function makes
        if name not in required:
            default = model.model_fields[name].get_default(call_default_factory=True, validated_data={})
        found.append(
            {
                "name": name,
                "type": ", ".join((type_text(field, parts), *_bounds(field))),
                "is_required": name in required,
                "default": _ANY.dump_python(default, mode="json", fallback=repr),
                "text": field["description"],
            }
        )
    return found


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
        return " | ".join(each if isinstance(each, str) else json.dumps(each) for each in allowed)
    if "anyOf" in schema:
        arms = [type_text(arm, parts) for arm in schema["anyOf"]]
        return " or ".join(arm for arm in arms if arm != "null") + (", or null" if "null" in arms else "")
    match schema.get("type"):
        case "array" if "prefixItems" in schema:
            return f"list ({', '.join(type_text(each, parts) for each in schema['prefixItems'])})"
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


def _bounds(schema: JsonObject) -> Iterator[str]:
    words = {"minimum": "at least", "exclusiveMinimum": "above", "maximum": "at most", "exclusiveMaximum": "below"}
    for arm in (schema, *schema.get("anyOf", ())):
        for key, said in words.items():
            if key in arm:
                yield f"{said} {arm[key]}"
