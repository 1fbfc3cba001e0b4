"""Changes one entry of a file of errata and leaves every other byte as it is, comments included."""

import json
import re
from collections.abc import Mapping

import yaml

from mmlongbench.errors import ManifestError
from mmlongbench.manifest.errata import errata_text

_KEPT = re.compile(r"# (\S+) says that the source is right: (\".*\")")


def kept_ids(text: str) -> dict[str, str]:
    """Return the ids of rows whose source was found to be right, with who found it; errata have only comments for them.

    >>> kept_ids(edited("", "row_7", kept_by="anna"))
    {'row_7': 'anna'}
    """
    return {found[0]: found[1] for line in text.splitlines() if (found := _kept(line))}


def edited(text: str, id: str, entry: Mapping[str, object] | None = None, *, kept_by: str = "") -> str:
    """Return a file of errata with another entry for a row.

    Args:
        text: the file, valid errata.
        id: the id of the row.
        entry: the new erratum; None: the row has none.
        kept_by: who found that the source is right, in one word; empty: nobody did.

    Raises:
        ManifestError: the file is not written as a list of entries, one below the other.

    """
    lines = text.splitlines(keepends=True)
    if lines and not lines[-1].endswith(("\n", "\r")):
        lines[-1] += "\n"
    first, last = _span(text, id, lines)
    new = [errata_text({id: entry}, "")] if entry else []
    new += [f"# {kept_by} says that the source is right: {json.dumps(id)}\n"] if kept_by else []
    before, after = ([line for line in some if not _is_kept(line, id)] for some in (lines[:first], lines[last:]))
    return "".join([*before, *new, *after])


def _is_kept(line: str, id: str) -> bool:
    found = _kept(line.rstrip("\r\n"))
    return found is not None and found[0] == id


def _kept(line: str) -> tuple[str, str] | None:
    """Return the id that a comment names and who wrote it; None for any other line, also for one like it by hand."""
    found = _KEPT.fullmatch(line)
    try:
        id = json.loads(found[2]) if found else None
    except ValueError:
        return None
    return (id, found[1]) if found and isinstance(id, str) else None


def _span(text: str, id: str, lines: list[str]) -> tuple[int, int]:
    """Return the numbers of the first line of an entry and of the line after it; a new entry goes to the end."""
    node = yaml.compose(text, yaml.SafeLoader)
    if node is None or (isinstance(node, yaml.ScalarNode) and not node.value):
        return len(lines), len(lines)
    if not isinstance(node, yaml.MappingNode) or node.flow_style:
        raise ManifestError("errata: cannot be changed here; write the entries as lines, without braces around all")
    found = next(((key, value) for key, value in node.value if key.value == id), None)
    if found is None:
        return len(lines), len(lines)
    key, value = found
    end = _end(value)
    return key.start_mark.line, min(len(lines), end.line + (end.column > 0))


def _end(node: yaml.Node) -> yaml.Mark:
    """Return where the last value of an entry ends; a block of lines itself ends only after the comments below it."""
    while isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        last = node.value[-1]
        node = last[1] if isinstance(last, tuple) else last
    return node.end_mark
