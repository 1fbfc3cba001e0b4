"""`mmlongbench list`: what is installed, and everything about one name; `mmlongbench schema`."""

import json
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from functools import singledispatch
from pathlib import Path

import click
from pydantic import BaseModel, JsonValue

from mmlongbench.cli.console import say
from mmlongbench.cli.options import json_option
from mmlongbench.errors import PluginError, nearest
from mmlongbench.exports.registry import InstalledTarget, installed_targets, target_named
from mmlongbench.lengths import format_length
from mmlongbench.manifest.describing import describe_manifest, describe_plugin, plugin_text
from mmlongbench.manifest.descriptions import (
    BuilderText,
    FieldText,
    ManifestText,
    MetricText,
    PluginText,
    ReaderText,
    SampleText,
    SourceText,
    TargetText,
)
from mmlongbench.manifest.json_schema import manifest_schema
from mmlongbench.manifest.loading import find_manifest, installed_manifests
from mmlongbench.manifest.plugins import GROUPS, Plugin, installed
from mmlongbench.release.layout import DATA, IMAGES, ITEMS

KINDS = ("builder", "reader", "metric", "target", "manifest", "sample")
"""The kinds of things with a name, in the order in which they are shown."""


@click.command("list")
@click.argument("name", required=False)
@click.option("--kind", type=click.Choice(KINDS), help="Only things of this kind.")
@json_option()
def list_installed(name: str | None, kind: str | None, as_json: bool) -> None:
    """List the installed builders, readers, samples, metrics, targets of `export` and manifests; a broken one is shown
    with its cause.

    With NAME, show everything about one of these: what it does, its options, its sources, the fields of its rows and
    records, what fits with it, and the files that it writes. NAME may also be a manifest of your own.
    """
    if name is None:
        _list_all(kind, as_json=as_json)
        return

    found = _descriptions_of(name, kind)
    if as_json:
        click.echo(json.dumps({"found": [each.model_dump(mode="json") for each in found]}))
        return
    for number, each in enumerate(found):
        if number:
            say("")
        _show(each)


def _list_all(kind: str | None, *, as_json: bool) -> None:
    plugins = [plugin for each in GROUPS if kind in (None, each) for plugin in installed(each)]
    targets = installed_targets() if kind in (None, "target") else []
    manifests = installed_manifests() if kind in (None, "manifest") else {}
    if as_json:
        listed = [*map(asdict, plugins), *({"kind": "target", **asdict(target)} for target in targets)]
        click.echo(json.dumps({"plugins": listed, "manifests": sorted(manifests)}))
    else:
        for each in GROUPS:
            say(f"{each}s")
            for plugin in plugins:
                if plugin.kind == each:
                    profiles = f" [{', '.join(plugin.profiles)}]" if plugin.profiles else ""
                    _show_line(plugin, f"{plugin.summary}{profiles}")
        say("targets of export")
        for target in targets:
            _show_line(target, target.summary)
        say("manifests")
        for name, path in sorted(manifests.items()):
            first = path.read_text("utf-8").splitlines()[0]
            say(f"  {name:<18} {first.removeprefix('#').strip()}")


def _show_line(found: Plugin | InstalledTarget, about: str) -> None:
    say(f"  {found.name:<18} {f'BROKEN: {found.problem}' if found.problem else about} ({found.origin})")


def _descriptions_of(name: str, kind: str | None) -> list[BaseModel]:
    """Return the descriptions of everything with a name. The sample of a reader is described only if `kind` asks for
    it, because the description of the reader mentions it.

    Raises:
        PluginError: nothing has this name, or it cannot be used.

    """
    wanted = KINDS if kind is None else (kind,)
    plugins = [plugin for each in GROUPS if each in wanted for plugin in installed(each)]
    targets = [target for target in installed_targets() if "target" in wanted]
    manifests = installed_manifests() if "manifest" in wanted else {}
    found = [plugin for plugin in plugins if plugin.name == name]
    if kind is None and any(plugin.kind == "reader" for plugin in found):
        found = [plugin for plugin in found if plugin.kind != "sample"]
    described: list[BaseModel] = [describe_plugin(plugin) for each in KINDS for plugin in found if plugin.kind == each]
    for target in (target for target in targets if target.name == name):
        text = plugin_text(type(target_named(target.name)), target.name, target.origin).model_dump()
        described.append(TargetText(**{**text, "about": target.summary}))
    if name in manifests or ("manifest" in wanted and Path(name).suffix in (".yaml", ".yml") and Path(name).is_file()):
        described.append(describe_manifest(name, manifests.get(name) or find_manifest(name)))
    if not described:
        names = [*(plugin.name for plugin in plugins), *(target.name for target in targets), *manifests]
        kinds = " or ".join([*([", ".join(wanted[:-1])] if wanted[1:] else []), wanted[-1]])
        kinds = kinds.replace("target", "export target")
        raise PluginError(f"no {kinds} {name!r:.200} is installed{nearest(name, names)}; see `mmlongbench list`")
    return described


_WIDTH = 80
_FILES = {
    "records": f"{DATA}/{{}}, one for each length: the records",
    "bundle": f"{DATA}/{{}}: the same records in the format that the public code reads",
    "items": f"{ITEMS}/{{}}: a row for each unit of each example",
}
"""What the line about a file says, by `FileText.kind`."""


@singledispatch
def _show(found: BaseModel) -> None:
    """Print a description."""
    raise NotImplementedError(type(found).__name__)


@_show.register
def _(found: BuilderText) -> None:
    _show_head(found, found.kind)
    _show_fields("options" if found.options else "options: it has none", found.options)
    _show_fields(f"fields of a row ({found.row_type})", found.row_fields)
    for title, is_added in (("fields of a record", False), ("fields that the engine adds to a record", True)):
        if fields := [(field.name, field.text) for field in found.record_fields if field.is_added is is_added]:
            _show_section(title, fields)
    _show_lines("files it writes", (_FILES[file.kind].format(file.pattern) for file in found.files))
    if found.placements:
        _show_lines("needles are put at", [" or ".join(found.placements)])
    if found.variants:
        _show_lines("other forms of a prompt", [", ".join(found.variants)])
    metrics = [*(f"{name} (by default)" for name in found.metrics), *found.further_metrics]
    names = (_names("readers", found.readers), _names("metrics", metrics), _names("manifests", found.manifests))
    _show_lines("what fits with it", [names[0], "`mmlongbench list READER` shows the sources of a reader.", *names[1:]])


@_show.register
def _(found: ReaderText) -> None:
    _show_head(found, found.kind)
    _show_sources(found.sources)
    if found.has_sample:
        _wrapped("With `source: sample`, small sources are drawn.", 2)
    _show_fields(f"fields of a row ({found.row_type})", found.row_fields)
    _show_lines("images", [f"{IMAGES}/{found.image_folder}/"])
    _show_lines("what fits with it", [_names("builders", found.builders), _names("manifests", found.manifests)])


@_show.register
def _(found: MetricText) -> None:
    _show_head(found, found.kind)
    profiles = [f"{name}: {source}" if source else name for name, source in found.profiles.items()]
    _show_lines("profiles, the default first", profiles)
    _show_lines("what fits with it", [_names("builders", found.builders), _names("manifests", found.manifests)])


@_show.register
def _(found: SampleText) -> None:
    _show_head(found, found.kind)
    _show_lines("use", [f"A manifest draws it with `reader: {found.reader}` and `source: sample`."])
    _show_sources(found.sources)


@_show.register
def _(found: TargetText) -> None:
    _show_head(found, "export target")
    _show_lines("use", [f"mmlongbench export RELEASE --to {found.name} --out FOLDER"])


@_show.register
def _(found: ManifestText) -> None:
    say(f"manifest {found.name}")
    if found.about:
        _wrapped(found.about, 2)
    for dataset in found.datasets:
        metric = f"; metric {dataset.metric}" if dataset.metric else ""
        lines = [
            f"builder {dataset.builder}; reader {dataset.reader}{metric}",
            f"lengths {', '.join(map(format_length, dataset.lengths))}",
        ]
        if isinstance(dataset.source, str):
            lines.append(f"source: {dataset.source} (small sources are drawn)")
        else:
            for name, path in dataset.source.items():
                todo = "optional" if name in dataset.optional_sources else f"to be set: --set source.{name}=PATH"
                lines.append(f"source.{name}: {path or todo}")
        if dataset.corpus:
            lines.append(f"corpus: {dataset.corpus}")
        lines += [f"options.{name}: {_as_yaml(value)}" for name, value in dataset.options.items()]
        _show_lines(f"dataset {dataset.name}", lines)


def _show_head(found: PluginText, kind: str) -> None:
    """Print what every description begins with."""
    origin = " ".join(part for part in (found.distribution, found.version) if part)
    _wrapped(f"{kind} {found.name}{f', of {origin}' if origin else ''} ({found.code})", 0)
    if found.about:
        _wrapped(found.about, 2)


def _show_fields(title: str, fields: Sequence[FieldText]) -> None:
    entries = []
    for field in fields:
        default = "required" if field.is_required else f"by default {_as_yaml(field.default)}"
        entries.append((f"{field.name}: {field.type}; {default}", field.text))
    _show_section(title, entries)


def _show_sources(sources: Sequence[SourceText]) -> None:
    names = (f"{each.name}{' (optional)' if each.is_optional else ''}" for each in sources)
    _show_section("sources", zip(names, (each.form for each in sources), strict=True))


def _show_lines(title: str, lines: Iterable[str]) -> None:
    _show_section(title, ((line, "") for line in lines))


def _show_section(title: str, entries: Iterable[tuple[str, str]]) -> None:
    """Print a title, and below it lines, each with a text about it."""
    say("")
    say(title)
    for line, text in entries:
        _wrapped(line, 2)
        if text:
            _wrapped(text, 6)


def _names(title: str, names: Sequence[str]) -> str:
    return f"{title}: {', '.join(names) or 'none'}"


def _as_yaml(value: JsonValue) -> str:
    return value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False)


def _wrapped(text: str, indent: int) -> None:
    """Print a text in lines of at most 80 characters; a longer word is not broken."""
    first = " " * indent
    further = f"{first}  " if indent < 6 else first
    lines = textwrap.wrap(
        text,
        _WIDTH,
        initial_indent=first,
        subsequent_indent=further,
        break_long_words=False,
        break_on_hyphens=False,
    )
    for line in lines:
        say(line)


@click.group()
def schema() -> None:
    """Print a JSON Schema, by which editors complete and check a file."""


@schema.command("manifest")
def manifest_command() -> None:
    """Print the JSON Schema of a manifest.

    An editor uses it if the first line of a manifest is `# yaml-language-server: $schema=manifest.schema.json`.
    Options and sources of the installed builders and readers are in it.
    """
    click.echo(json.dumps(manifest_schema(), indent=2, ensure_ascii=False))
