"""The descriptions of builders, readers, metrics, samples and manifests, as values that JSON can hold."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt
from pydantic import BaseModel, ConfigDict, JsonValue, TypeAdapter
from pydantic.fields import FieldInfo

from mmlongbench.field_texts import field_texts_anywhere

_PLAIN: Mapping[object, tuple[str, str]] = {
    str: ("text", "texts"),
    int: ("integer", "integers"),
    float: ("number", "numbers"),
    bool: ("true | false", "(true | false)"),
    NoneType: ("null", "nulls"),
    Path: ("path", "paths"),
    Any: ("any value", "any values"),
    dict: ("mapping", "mappings"),
}
"""The names of types in the singular and in the plural."""
_LISTS = (list, tuple, set, frozenset)
_ANY: TypeAdapter[Any] = TypeAdapter(Any)


class FieldText(BaseModel):
    """A field of a model, as a user reads about it."""

    model_config = ConfigDict(frozen=True)

    name: str
    """The name."""
    type: str
    """The type in words, such as `integer, at least 1` or `none | index | printed`."""
    is_required: bool
    """Whether a value must be given."""
    default: JsonValue = None
    """The default, as JSON has it; null also if a value must be given."""
    text: str
    """What the field means; empty if its class does not say it."""


def fields_of(model: type[BaseModel]) -> tuple[FieldText, ...]:
    """Return the fields of a model in their order; the texts are the strings below the fields in the source code."""
    texts = field_texts_anywhere(model)
    return tuple(_field(name, info, texts) for name, info in model.model_fields.items())


def _field(name: str, info: FieldInfo, texts: Mapping[str, str]) -> FieldText:
    is_required = info.is_required()
    default = None if is_required else info.get_default(call_default_factory=True, validated_data={})
    return FieldText(
        name=info.alias or name,
        type=", ".join((type_text(info.annotation), *_bounds(info.metadata))),
        is_required=is_required,
        default=_ANY.dump_python(default, mode="json", fallback=repr),
        text=info.description or texts.get(name, ""),
    )


def type_text(kind: object) -> str:
    """Return a type in words.

    >>> type_text(Literal["a", "b"] | None), type_text(tuple[str, ...]), type_text(dict[str, int])
    ('a | b, or null', 'list of texts', 'mapping from text to integer')
    >>> type_text(tuple[int, int] | None)
    'list (integer, integer), or null'
    """
    origin, arms = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return type_text(arms[0])
    if origin is Literal:
        return " | ".join(arm if isinstance(arm, str) else json.dumps(arm, default=repr) for arm in arms)
    if origin in (Union, UnionType):
        named = [type_text(arm) for arm in arms if arm is not NoneType]
        return f"{' or '.join(named)}{', or null' if NoneType in arms else ''}"
    if origin in _LISTS and arms:
        several = origin is not tuple or arms[1:] == (...,)
        return f"list of {_plural(arms[0])}" if several else f"list ({', '.join(map(type_text, arms))})"
    if isinstance(origin, type) and issubclass(origin, Mapping) and len(arms) == 2:
        return f"mapping from {type_text(arms[0])} to {type_text(arms[1])}"
    return _named(kind)


def _named(kind: object) -> str:
    """Return the name of a type without arguments."""
    if kind in _PLAIN:
        return _PLAIN[kind][0]
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return f"mapping with {', '.join(kind.model_fields)}"
    return kind.__name__ if isinstance(kind, type) else str(kind)


def _plural(kind: object) -> str:
    if get_origin(kind) is Literal:
        return f"({type_text(kind)})"
    if kind in _PLAIN:
        return _PLAIN[kind][1]
    said = type_text(kind)
    first = said.partition(" ")[0]
    return said.replace(first, f"{first}s", 1) if first in ("mapping", "list") else said


def _bounds(metadata: list[Any]) -> Iterator[str]:
    """Yield the bounds of a number in words."""
    for each in metadata:
        if isinstance(each, Ge):
            yield f"at least {each.ge}"
        elif isinstance(each, Gt):
            yield f"above {each.gt}"
        elif isinstance(each, Le):
            yield f"at most {each.le}"
        elif isinstance(each, Lt):
            yield f"below {each.lt}"


class _Text(BaseModel):
    model_config = ConfigDict(frozen=True)


class SourceText(_Text):
    """A source of a reader."""

    name: str
    """The name under `source` of a dataset."""
    is_optional: bool
    """Whether a manifest may leave it out."""
    form: str
    """What the file or folder must look like; empty if the reader does not say."""


class RecordFieldText(_Text):
    """A field of a record."""

    name: str
    """The name."""
    text: str
    """What it means."""
    is_added: bool
    """Whether the engine adds the field, not the builder."""


class FileText(_Text):
    """A kind of file that a build writes for each length."""

    kind: Literal["records", "bundle", "items"]
    """`records`: one record a line, or as the format of the task has it. `bundle`: the same records in the format that
    the public code reads. `items`: a row of Parquet for each unit of each example."""
    pattern: str
    """The path below `mmlb_data/`; for `items`, below `items/`."""


class PluginText(_Text):
    """What every plug-in has."""

    name: str
    """The name of its entry point, or of its class."""
    distribution: str = ""
    """The installed distribution that it belongs to; empty if it belongs to none."""
    version: str = ""
    """The version of this distribution."""
    code: str
    """Its module and class or function, such as `builders.docvqa.builder:DocVQA`."""
    about: str
    """What it does: the first paragraph of its docstring."""


class BuilderText(PluginText):
    """A builder."""

    kind: Literal["builder"] = "builder"
    options: tuple[FieldText, ...]
    """What a manifest may set under `options`."""
    row_type: str
    """The class of rows that it takes."""
    row_fields: tuple[FieldText, ...]
    """The fields of such a row."""
    record_fields: tuple[RecordFieldText, ...]
    """The fields of its records, those that the engine adds last."""
    files: tuple[FileText, ...]
    """The files that a build writes."""
    placements: tuple[str, ...]
    """How needles are placed, by default first and then with the options of installed manifests; empty if the task
    has none."""
    variants: tuple[str, ...]
    """The names of other forms of its prompts."""
    readers: tuple[str, ...]
    """The installed readers whose rows it takes."""
    metrics: tuple[str, ...]
    """The metrics that score its records by default."""
    further_metrics: tuple[str, ...]
    """Other metrics that can score its records, under these or other options."""
    manifests: tuple[str, ...]
    """The installed manifests that use it."""


class ReaderText(PluginText):
    """A reader."""

    kind: Literal["reader"] = "reader"
    sources: tuple[SourceText, ...]
    """Its sources."""
    has_sample: bool
    """Whether `source: sample` draws small sources."""
    row_type: str
    """The class of the rows that it gives."""
    row_fields: tuple[FieldText, ...]
    """The fields of such a row."""
    image_folder: str
    """The folder of its images below `mmlb_image/`."""
    builders: tuple[str, ...]
    """The installed builders that take its rows."""
    manifests: tuple[str, ...]
    """The installed manifests that use it."""


class MetricText(PluginText):
    """A metric."""

    kind: Literal["metric"] = "metric"
    profiles: Mapping[str, str]
    """The profiles that it offers, the default first, each with the code or paper that its rules come from."""
    builders: tuple[str, ...]
    """The installed builders that name it."""
    manifests: tuple[str, ...]
    """The installed manifests whose datasets it scores by default."""


class SampleText(PluginText):
    """A sample: small sources that a manifest uses with `source: sample`."""

    kind: Literal["sample"] = "sample"
    reader: str
    """The reader that reads it."""
    sources: tuple[SourceText, ...]
    """The sources of this reader."""


class TargetText(PluginText):
    """A target of `export`."""

    kind: Literal["target"] = "target"


class DatasetText(_Text):
    """A dataset of a manifest."""

    name: str
    """The name."""
    builder: str
    """The builder."""
    reader: str
    """The reader."""
    source: Mapping[str, str | None] | Literal["sample"]
    """The path of each source, relative to the manifest where it lies beside it; null for a source that must be set or
    may be left out. `sample` if small sources are drawn."""
    optional_sources: tuple[str, ...] = ()
    """The sources that may be left out."""
    corpus: str | None = None
    """The corpus, if the manifest names one."""
    lengths: tuple[int, ...]
    """The lengths in tokens."""
    metric: str = ""
    """The metric that scores its records by default; empty if the builder is not installed."""
    options: Mapping[str, JsonValue]
    """The options that the manifest sets."""


class ManifestText(_Text):
    """A manifest."""

    kind: Literal["manifest"] = "manifest"
    name: str
    """The name of an installed manifest, or the path of a file."""
    path: str
    """The path of the file."""
    about: str
    """The first comment of the file."""
    datasets: tuple[DatasetText, ...]
    """Its datasets."""
