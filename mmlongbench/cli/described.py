"""Prints the description of a builder, reader, metric, sample, target or manifest in lines of at most 80 characters."""

import json
import textwrap
from collections.abc import Iterable, Sequence
from functools import singledispatch

from pydantic import BaseModel, JsonValue

from mmlongbench.cli.console import say
from mmlongbench.lengths import format_length
from mmlongbench.manifest.descriptions import (
    BuilderText,
    DatasetText,
    FieldText,
    FileText,
    ManifestText,
    MetricText,
    PluginText,
    ReaderText,
    RecordFieldText,
    SampleText,
    SourceText,
    TargetText,
)
from mmlongbench.release.layout import DATA, IMAGES, ITEMS

_WIDTH = 80
_FILES = {
    "records": f"{DATA}/{{}}, one for each length: the records",
    "bundle": f"{DATA}/{{}}: the same records in the format that the public code reads",
    "items": f"{ITEMS}/{{}}: a row for each unit of each example",
}
"""What the line about a file says, by `FileText.kind`."""


@singledispatch
def show_description(found: BaseModel) -> None:
    """Print a description."""
    raise NotImplementedError(type(found).__name__)


@show_description.register
def _(found: BuilderText) -> None:
    _head(found, found.kind)
    _fields("options", found.options, "it has none")
    _fields(f"fields of a row ({found.row_type})", found.row_fields)
    _record_fields(found.record_fields)
    _section("files it writes", map(_file, found.files))
    if found.placements:
        _section("needles are put at", [" or ".join(found.placements)])
    if found.variants:
        _section("other forms of a prompt", [", ".join(found.variants)])
    metrics = [*(f"{name} (by default)" for name in found.metrics), *found.further_metrics]
    _section(
        "what fits with it",
        [
            _names("readers", found.readers),
            "`mmlongbench list READER` shows the sources of a reader.",
            _names("metrics", metrics),
            _names("manifests", found.manifests),
        ],
    )


@show_description.register
def _(found: ReaderText) -> None:
    _head(found, found.kind)
    _sources(found.sources, "With `source: sample`, small sources are drawn." if found.has_sample else "")
    _fields(f"fields of a row ({found.row_type})", found.row_fields)
    _section("images", [f"{IMAGES}/{found.image_folder}/"])
    _section("what fits with it", [_names("builders", found.builders), _names("manifests", found.manifests)])


@show_description.register
def _(found: MetricText) -> None:
    _head(found, found.kind)
    profiles = [f"{name}: {source}" if source else name for name, source in found.profiles.items()]
    _section("profiles, the default first", profiles)
    _section("what fits with it", [_names("builders", found.builders), _names("manifests", found.manifests)])


@show_description.register
def _(found: SampleText) -> None:
    _head(found, found.kind)
    _section("use", [f"A manifest draws it with `reader: {found.reader}` and `source: sample`."])
    _sources(found.sources)


@show_description.register
def _(found: TargetText) -> None:
    _head(found, "export target")
    _section("use", [f"mmlongbench export RELEASE --to {found.name} --out FOLDER"])


@show_description.register
def _(found: ManifestText) -> None:
    say(f"manifest {found.name}")
    if found.about:
        _wrapped(found.about, 2)
    for dataset in found.datasets:
        _dataset(dataset)


def _dataset(found: DatasetText) -> None:
    say("")
    say(f"dataset {found.name}")
    metric = f"; metric {found.metric}" if found.metric else ""
    _wrapped(f"builder {found.builder}; reader {found.reader}{metric}", 2)
    _wrapped(f"lengths {', '.join(map(format_length, found.lengths))}", 2)
    if isinstance(found.source, str):
        _wrapped(f"source: {found.source} (small sources are drawn)", 2)
    else:
        for name, path in found.source.items():
            todo = "optional" if name in found.optional_sources else f"to be set: --set source.{name}=PATH"
            _wrapped(f"source.{name}: {path or todo}", 2)
    if found.corpus:
        _wrapped(f"corpus: {found.corpus}", 2)
    for name, value in found.options.items():
        _wrapped(f"options.{name}: {_value(value)}", 2)


def _head(found: PluginText, kind: str) -> None:
    """Print what every description begins with."""
    origin = " ".join(part for part in (found.distribution, found.version) if part)
    _wrapped(f"{kind} {found.name}{f', of {origin}' if origin else ''} ({found.code})", 0)
    if found.about:
        _wrapped(found.about, 2)


def _fields(title: str, fields: Sequence[FieldText], otherwise: str = "") -> None:
    say("")
    say(f"{title}{'' if fields or not otherwise else f': {otherwise}'}")
    for field in fields:
        default = "required" if field.is_required else f"by default {_value(field.default)}"
        _wrapped(f"{field.name}: {field.type}; {default}", 2)
        if field.text:
            _wrapped(field.text, 6)


def _record_fields(fields: Sequence[RecordFieldText]) -> None:
    own, added = ([field for field in fields if field.is_added is is_added] for is_added in (False, True))
    _texts("fields of a record", own)
    _texts("fields that the engine adds to a record", added)


def _texts(title: str, fields: Sequence[RecordFieldText]) -> None:
    if fields:
        say("")
        say(title)
    for field in fields:
        _wrapped(field.name, 2)
        _wrapped(field.text, 6)


def _sources(sources: Sequence[SourceText], more: str = "") -> None:
    say("")
    say("sources")
    for source in sources:
        _wrapped(f"{source.name}{' (optional)' if source.is_optional else ''}", 2)
        if source.form:
            _wrapped(source.form, 6)
    if more:
        _wrapped(more, 2)


def _section(title: str, lines: Iterable[str]) -> None:
    say("")
    say(title)
    for line in lines:
        _wrapped(line, 2)


def _file(file: FileText) -> str:
    return _FILES[file.kind].format(file.pattern)


def _names(title: str, names: Sequence[str]) -> str:
    return f"{title}: {', '.join(names) or 'none'}"


def _value(value: JsonValue) -> str:
    """Return a value as YAML has it."""
    return value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False)


def _wrapped(text: str, indent: int) -> None:
    """Print a text in lines of at most 80 characters; a longer word is not broken."""
    pad = " " * indent
    lines = textwrap.wrap(
        text,
        _WIDTH,
        initial_indent=pad,
        subsequent_indent=f"{pad}  " if indent < 6 else pad,
        break_long_words=False,
        break_on_hyphens=False,
    )
    for line in lines:
        say(line)
