"""Files that both readers of summaries meet: PDFs named by id, lines of JSON."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mmlongbench import Fault, SourceError


def pdfs_by_name(folder: Path) -> Mapping[str, Path | Fault]:
    """Every visible PDF below a folder, by its name without the ending; those that share one are refused."""
    if not folder.is_dir():
        raise SourceError(Fault("unreadable-source", "a folder of PDFs", "a file", folder.name))
    named: dict[str, list[Path]] = {}
    for path in sorted(folder.rglob("*")):
        hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
        if path.suffix.lower() == ".pdf" and path.is_file() and not hidden:
            named.setdefault(path.stem, []).append(path)
    return {stem: paths[0] if len(paths) == 1 else _ambiguous(paths, folder) for stem, paths in named.items()}


def _ambiguous(paths: list[Path], folder: Path) -> Fault:
    found = ", ".join(path.relative_to(folder).as_posix() for path in paths)
    return Fault("two-documents-of-one-name", "names that differ", found, folder.name, todo="rename all but one")


def json_lines(path: Path) -> Iterator[tuple[int, Any]]:
    """(number from 1, value or fault) of each line that is not empty."""
    if not path.is_file():
        raise SourceError(Fault("unreadable-source", "lines of JSON", "no such file", path.name))
    with path.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if line.strip():
                try:
                    yield number, json.loads(line)
                except (ValueError, RecursionError) as error:
                    yield number, Fault("invalid-json", "a JSON object", str(error)[:120])
