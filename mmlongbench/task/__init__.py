"""What authors of tasks import: `import mmlongbench.task as mt`.

Readers of upstream data, metrics and the families of the paper need more: `mt.readers`, `mt.metrics`, `mt.advanced`. To
build, read and score releases, use `import mmlongbench as mm`. This package knows no manifest and no build.
"""

from importlib import import_module
from typing import TYPE_CHECKING

from mmlongbench.field_texts import names_for_types, with_field_texts

if TYPE_CHECKING:
    from mmlongbench.corpus.retrieval.text import contains
    from mmlongbench.draft import Closing, Draft, Unit, Wording
    from mmlongbench.draws import Draws
    from mmlongbench.errors import Fault, Rejected
    from mmlongbench.packing.pack import PackedExample
    from mmlongbench.packing.place import DEPTHS, Depth, Permutation
    from mmlongbench.prompt import Image, Part, Prompt, Turn, escape_markers
    from mmlongbench.task import advanced, metrics, readers
    from mmlongbench.task.builder import Choices
    from mmlongbench.task.metric import Evidence, Score
    from mmlongbench.task.rows import Record, Row
    from mmlongbench.task.sources import Document, Page, Sources
    from mmlongbench.task.spec import Options, Placements
    from mmlongbench.task.take_orders import Chain, InOrder, alternate_sides, by_divisor, inside_out, spread
    from mmlongbench.task.task import Folder, Pdfs, Table, Task

__all__ = ["DEPTHS", "Chain", "Choices", "Closing", "Depth", "advanced", "alternate_sides", "by_divisor", "contains"]
__all__ += ["Document", "Draft", "Draws", "Evidence", "Fault", "Folder", "Image", "InOrder", "escape_markers"]
__all__ += ["Options", "PackedExample", "Page", "Part", "Pdfs", "Permutation", "Placements", "inside_out", "metrics"]
__all__ += ["Prompt", "Record", "Rejected", "Row", "Score", "Sources", "Table", "Task", "Turn", "readers", "spread"]
__all__ += ["Unit", "Wording"]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


if not TYPE_CHECKING:  # otherwise a type checker would accept every name

    def __getattr__(name: str) -> object:
        """Import a name when it is first used: most commands need a few modules of this package, and no task."""
        if name in ("advanced", "metrics", "readers"):
            door = import_module(f"{__name__}.{name}")
            for each in door.__all__:
                if isinstance(kind := getattr(door, each), type):
                    with_field_texts(kind)
            return door
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(names_for_types(__name__)[name]), name)
        return with_field_texts(value) if isinstance(value, type) else value
