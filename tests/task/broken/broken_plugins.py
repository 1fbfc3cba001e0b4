"""Plug-ins that cannot be used; the module itself can be imported."""

import importlib
import sys
from pathlib import Path
from typing import ClassVar

import mmlongbench.task as mt


class Incomplete(mt.advanced.Builder[mt.Row]):
    """A builder that cannot draft."""

    row_type: ClassVar[type[mt.Row]] = mt.Row


class Stranger:
    """Something else than a builder."""


class Hidden(Incomplete):
    """A builder that has an attribute in place of a method."""

    spec = mt.advanced.TaskSpec(mt.readers.FilePattern("hidden/{name}_K{k}.jsonl"), "sub_em")
    needles = 1  # type: ignore[assignment]

    def draft(self, row: mt.Row, sources: mt.Sources, draws: mt.Draws) -> mt.Draft:
        """Refuse every row."""
        raise NotImplementedError

    def record(self, example: mt.PackedExample) -> mt.Record:
        """Refuse every example."""
        raise NotImplementedError

    def prompt(self, record: mt.Record) -> mt.Prompt:
        """Refuse every record."""
        raise NotImplementedError


def draw_nothing(folder: Path) -> dict[str, Path]:
    """Draw a sample of a reader that does not exist."""
    raise NotImplementedError


def __getattr__(name: str) -> object:
    if name == "Lacking":
        return importlib.import_module("a_library_that_is_not_installed")
    if name == "Quitting":
        sys.exit("this plug-in wants another Python")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
