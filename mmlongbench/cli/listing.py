"""`mmlongbench list`: what is installed, and everything about one name."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click
from pydantic import BaseModel

from mmlongbench.cli.console import say
from mmlongbench.errors import PluginError, nearest

if TYPE_CHECKING:
    from mmlongbench.exports.registry import InstalledTarget
    from mmlongbench.manifest.plugins import Plugin

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
    from mmlongbench.cli.described import show_description

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
