"""`mmlongbench list`: what is installed, and everything about one name; `mmlongbench schema`."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click
from pydantic import JsonValue

from mmlongbench.cli.console import say, say_wrapped
from mmlongbench.cli.options import json_option
from mmlongbench.errors import PluginError, nearest
from mmlongbench.exports.export import InstalledTarget, installed_targets, target_named
from mmlongbench.lengths import format_length
from mmlongbench.manifest.describing import (
    code_and_about,
    dataset_keys,
    describe_manifest,
    describe_plugin,
    manifest_schema,
)
from mmlongbench.manifest.loading import find_manifest, installed_manifests
from mmlongbench.manifest.plugins import GROUPS, Plugin, installed
from mmlongbench.release.layout import DATA, IMAGES, ITEMS


@click.group()
def schema() -> None:
    """Print a JSON Schema, by which editors complete and check a file."""


@schema.command("manifest")
@click.option("--text", "as_text", is_flag=True, help="Print every key with its default and its meaning, to be read.")
def manifest_command(as_text: bool) -> None:
    """Print the JSON Schema of a manifest.

    An editor uses it if the first line of a manifest is `# yaml-language-server: $schema=manifest.schema.json`.
    Options and sources of the installed builders and readers are in it.
    """
    if not as_text:
        click.echo(json.dumps(manifest_schema(), indent=2, ensure_ascii=False))
        return
    datasets = "A manifest has `datasets`, a list of mappings with the keys below."
    _wrapped(f"{datasets} It may have `defaults` (keys for all datasets), `include` (other manifests) and `mix`.", 0)
    _fields("keys of a dataset", dataset_keys())
    _section("options", "`mmlongbench list BUILDER` shows them.")


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
    kinds = (kind,) if kind else KINDS
    plugins = [plugin for group in GROUPS if group in kinds for plugin in installed(group)]
    targets = installed_targets() if "target" in kinds else []
    manifests = installed_manifests() if "manifest" in kinds else {}
    if name is not None:
        described = _described(name, kinds, plugins, targets, manifests)
        if as_json:
            click.echo(json.dumps({"found": described}))
            return
        for number, description in enumerate(described):
            if number:
                say("")
            _show_description(description)
    elif as_json:
        listed = [*map(asdict, plugins), *({"kind": "target", **asdict(target)} for target in targets)]
        click.echo(json.dumps({"plugins": listed, "manifests": sorted(manifests)}))
    else:
        rows = [
            *((f"{plugin.kind}s", plugin.name, _about(plugin, plugin.profiles)) for plugin in plugins),
            *(("targets of export", target.name, _about(target)) for target in targets),
            *(
                ("manifests", title, path.read_text("utf-8").partition("\n")[0])
                for title, path in sorted(manifests.items())
            ),
        ]
        for title in (*(f"{group}s" for group in GROUPS), "targets of export", "manifests"):
            say(title)
            for _, row_name, about in (row for row in rows if row[0] == title):
                say_wrapped(about.removeprefix("#").strip(), f"  {row_name:<18} ", " " * 21)


def _about(found: Plugin | InstalledTarget, profiles: Sequence[str] = ()) -> str:
    about = f"{found.summary} [{', '.join(profiles)}]" if profiles else found.summary
    return f"{f'BROKEN: {found.problem}' if found.problem else about} ({found.origin})"


def _described(
    name: str,
    kinds: Sequence[str],
    plugins: Sequence[Plugin],
    targets: Sequence[InstalledTarget],
    manifests: Mapping[str, Path],
) -> list[Mapping[str, Any]]:
    found = sorted((plugin for plugin in plugins if plugin.name == name), key=lambda each: KINDS.index(each.kind))
    if len(kinds) > 1 and any(plugin.kind == "reader" for plugin in found):  # its description mentions its sample
        found = [plugin for plugin in found if plugin.kind != "sample"]
    described: list[Mapping[str, Any]] = [describe_plugin(plugin) for plugin in found]
    for target in targets:
        if target.name == name:
            facts = code_and_about(type(target_named(name)), name, target.origin)
            described.append({**facts, "about": target.summary, "kind": "target"})
    is_file = "manifest" in kinds and Path(name).suffix in (".yaml", ".yml") and Path(name).is_file()
    if name in manifests or is_file:
        described.append(describe_manifest(name, manifests.get(name) or find_manifest(name)))
    if not described:
        names = [*(plugin.name for plugin in plugins), *(target.name for target in targets), *manifests]
        *others, last = ["export target" if kind == "target" else kind for kind in kinds]
        asked = f"{', '.join(others)} or {last}" if others else last
        raise PluginError(f"no {asked} {name!r:.200} is installed{nearest(name, names)}; see `mmlongbench list`")
    return described


def _show_description(found: Mapping[str, Any]) -> None:
    kind = "export target" if found["kind"] == "target" else found["kind"]
    if kind == "manifest":
        say(f"manifest {found['name']}")
    else:
        origin = " ".join(part for part in (found["distribution"], found["version"]) if part)
        _wrapped(f"{kind} {found['name']}{f', of {origin}' if origin else ''} ({found['code']})", 0)
    if found["about"]:
        _wrapped(found["about"], 2)
    if kind == "manifest":
        for dataset in found["datasets"]:
            _show_dataset(dataset)
    elif kind == "builder":
        _show_builder(found)
    elif kind == "reader":
        _sources(found)
        if found["has_sample"]:
            place = f"in this form are used: {found['sample']}" if found["sample"] else "are drawn."
            _wrapped(f"With `source: sample`, small sources {place}", 2)
        _fields(f"fields of a row ({found['row_type']})", found["row_fields"])
        _section("images", f"{IMAGES}/{found['image_folder']}/")
        _section("what fits with it", _names("builders", found), _names("manifests", found))
    elif kind == "metric":
        profiles = (f"{name}: {source}" if source else name for name, source in found["profiles"].items())
        _section("profiles, the default first", *profiles)
        _section("what fits with it", _names("builders", found), _names("manifests", found))
    elif kind == "sample":
        _section("use", f"A manifest uses it with `reader: {found['reader']}` and `source: sample`.")
        _sources(found)
    else:
        _section("use", f"mmlongbench export RELEASE --to {found['name']} --out FOLDER")


def _show_builder(found: Mapping[str, Any]) -> None:
    _fields(f"options{'' if found['options'] else ': it has none'}", found["options"])
    _fields(f"fields of a row ({found['row_type']})", found["row_fields"])
    for title, is_added in (("fields of a record", False), ("fields that the engine adds to a record", True)):
        if fields := [field for field in found["record_fields"] if field["is_added"] is is_added]:
            _section(title)
            for field in fields:
                _wrapped(field["name"], 2)
                _wrapped(field["text"], 6)
    contents = {
        "records": f"{DATA}/{{}}, one for each length: the records",
        "bundle": f"{DATA}/{{}}: the same records in the format that the public code reads",
        "items": f"{ITEMS}/{{}}: a row for each unit of each example",
    }
    _section("files it writes", *(contents[file["kind"]].format(file["pattern"]) for file in found["files"]))
    if found["placements"]:
        _section("needles are put at", " or ".join(found["placements"]))
    if found["variants"]:
        _section("other forms of a prompt", ", ".join(found["variants"]))
    metrics = [*(f"{name} (by default)" for name in found["metrics"]), *found["further_metrics"]]
    _section(
        "what fits with it",
        _names("readers", found),
        "`mmlongbench list READER` shows the sources of a reader.",
        _names("metrics", {"metrics": metrics}),
        _names("manifests", found),
    )


def _show_dataset(dataset: Mapping[str, Any]) -> None:
    metric = f"; metric {dataset['metric']}" if dataset["metric"] else ""
    plugins = f"builder {dataset['builder']}; reader {dataset['reader']}{metric}"
    _section(f"dataset {dataset['name']}", plugins, f"lengths {', '.join(map(format_length, dataset['lengths']))}")
    if isinstance(dataset["source"], str):
        _wrapped(f"source: {dataset['source']} (the small sources of the reader)", 2)
    else:
        for name, path in dataset["source"].items():
            todo = "optional" if name in dataset["optional_sources"] else f"to be set: --set source.{name}=PATH"
            _wrapped(f"source.{name}: {path or todo}", 2)
    if dataset["corpus"]:
        _wrapped(f"corpus: {dataset['corpus']}", 2)
    for name, value in dataset["options"].items():
        _wrapped(f"options.{name}: {_value(value)}", 2)


def _fields(title: str, fields: Sequence[Mapping[str, Any]]) -> None:
    _section(title)
    for field in fields:
        default = "required" if field["is_required"] else f"by default {_value(field['default'])}"
        _wrapped(f"{field['name']}: {field['type']}; {default}" if field["type"] else field["name"], 2)
        if field["text"]:
            _wrapped(field["text"], 6)


def _sources(found: Mapping[str, Any]) -> None:
    _section("sources")
    for source in found["sources"]:
        _wrapped(f"{source['name']}{' (optional)' if source['is_optional'] else ''}", 2)
        if source["form"]:
            _wrapped(source["form"], 6)


def _section(title: str, *lines: str) -> None:
    say("")
    say(title)
    for line in lines:
        _wrapped(line, 2)


def _names(title: str, found: Mapping[str, Any]) -> str:
    return f"{title}: {', '.join(found[title]) or 'none'}"


def _value(value: JsonValue) -> str:
    """Return a value as YAML has it."""
    return value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False)


def _wrapped(text: str, indent: int) -> None:
    say_wrapped(text, " " * indent, " " * (indent + 2 if indent < 6 else indent), 80)
