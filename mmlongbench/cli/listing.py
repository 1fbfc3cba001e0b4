"""`mmlongbench list`: what is installed, and everything about one name."""

import json
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from functools import singledispatch
from pathlib import Path
from typing import TYPE_CHECKING

import click
from pydantic import BaseModel, JsonValue

from mmlongbench.cli.console import say
from mmlongbench.errors import PluginError, nearest
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

if TYPE_CHECKING:
    from mmlongbench.exports.registry import InstalledTarget
    from mmlongbench.manifest.plugins import Plugin


@click.group()
def schema() -> None:
    """Print a JSON Schema, by which editors complete and check a file."""


@schema.command("manifest")
def manifest_command() -> None:
    """Print the JSON Schema of a manifest.

    An editor uses it if the first line of a manifest is `# yaml-language-server: $schema=manifest.schema.json`.
    Options and sources of the installed builders and readers are in it.
    """
    from mmlongbench.manifest.json_schema import manifest_schema

    click.echo(json.dumps(manifest_schema(), indent=2, ensure_ascii=False))


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


KINDS = ("builder", "reader", "metric", "target", "manifest", "sample")
"""The kinds of things with a name, in the order in which they are shown."""


@click.command("list")
@click.argument("name", required=False)
@click.option("--kind", type=click.Choice(KINDS), help="Only things of this kind.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def list_installed(name: str | None, kind: str | None, as_json: bool) -> None:
    """List the installed builders, readers, samples, metrics, targets of `export` and manifests; a broken one is shown
    with its cause.

    With NAME, show everything about one of these: what it does, its options, its sources, the fields of its rows and
    records, what fits with it, and the files that it writes. NAME may also be a manifest of your own.
    """
    if name is None:
        _list_all(kind, as_json=as_json)
        return

    found = _described(name, kind)
    if as_json:
        click.echo(json.dumps({"found": [each.model_dump(mode="json") for each in found]}))
        return
    for number, each in enumerate(found):
        if number:
            say("")
        show_description(each)


def _list_all(kind: str | None, *, as_json: bool) -> None:
    from mmlongbench.cli.tables import show_list
    from mmlongbench.exports.registry import installed_targets
    from mmlongbench.manifest.loading import installed_manifests
    from mmlongbench.manifest.plugins import GROUPS, installed

    plugins = [plugin for each in GROUPS if kind in (None, each) for plugin in installed(each)]
    targets = installed_targets() if kind in (None, "target") else []
    manifests = installed_manifests() if kind in (None, "manifest") else {}
    if as_json:
        listed = [*map(asdict, plugins), *({"kind": "target", **asdict(target)} for target in targets)]
        click.echo(json.dumps({"plugins": listed, "manifests": sorted(manifests)}))
    else:
        show_list(plugins, targets, manifests)


def _described(name: str, kind: str | None) -> list[BaseModel]:
    """Return the descriptions of everything with a name. The sample of a reader is described only if `kind` asks for
    it, because the description of the reader mentions it.

    Raises:
        PluginError: nothing has this name, or it cannot be used.

    """
    from mmlongbench.exports.registry import installed_targets
    from mmlongbench.manifest.describing import describe_manifest, describe_plugin
    from mmlongbench.manifest.loading import find_manifest, installed_manifests
    from mmlongbench.manifest.plugins import GROUPS, installed

    wanted = KINDS if kind is None else (kind,)
    plugins = [plugin for each in GROUPS if each in wanted for plugin in installed(each)]
    targets = [target for target in installed_targets() if "target" in wanted]
    manifests = installed_manifests() if "manifest" in wanted else {}
    found = [plugin for plugin in plugins if plugin.name == name]
    if kind is None and any(plugin.kind == "reader" for plugin in found):
        found = [plugin for plugin in found if plugin.kind != "sample"]
    described: list[BaseModel] = [describe_plugin(plugin) for plugin in sorted(found, key=_order)]
    described += [_target(target) for target in targets if target.name == name]
    if name in manifests or ("manifest" in wanted and Path(name).suffix in (".yaml", ".yml") and Path(name).is_file()):
        described.append(describe_manifest(name, manifests.get(name) or find_manifest(name)))
    if not described:
        names = [*(plugin.name for plugin in plugins), *(target.name for target in targets), *manifests]
        raise PluginError(
            f"no {_kinds(wanted)} {name!r:.200} is installed{nearest(name, names)}; see `mmlongbench list`"
        )
    return described


def _order(plugin: "Plugin") -> int:
    return KINDS.index(plugin.kind)


def _target(target: "InstalledTarget") -> BaseModel:
    """Return the description of a target of `export`.

    Raises:
        PluginError: the target cannot be used.

    """
    from mmlongbench.exports.registry import target_named
    from mmlongbench.manifest.describing import plugin_text
    from mmlongbench.manifest.descriptions import TargetText

    kind = type(target_named(target.name))
    return TargetText(**{**plugin_text(kind, target.name, target.origin).model_dump(), "about": target.summary})


def _kinds(wanted: tuple[str, ...]) -> str:
    """Return kinds as a message names them."""
    names = [{"target": "export target"}.get(kind, kind) for kind in wanted]
    return f"{', '.join(names[:-1])} or {names[-1]}" if len(names) > 1 else names[0]
