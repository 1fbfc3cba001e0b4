"""`mmlongbench schema`: JSON Schemas for editors."""

import json

import click


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
