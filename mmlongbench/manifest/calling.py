"""Calls of a plug-in: a failure in one becomes an error that names the plug-in, the method, the row and the line."""

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mmlongbench.errors import DraftError, MMLongBenchError
from mmlongbench.manifest.registry import described
from mmlongbench.task.rows import Row
from tokenization import TokenizationError

_MAX_SHOWN = 300
"""Characters of an exception's message."""


class PluginCallError(DraftError):
    """A method of a plug-in that raised an exception, or returned what it must not."""


@contextmanager
def calling(kind: str, name: str, method: str, row: Row | None = None, about: str = "") -> Iterator[None]:
    """Name the plug-in, its method and the row in whatever fails inside the block.

    Errors that users can mend, such as a reject, pass as they are; so do errors of the disk and of the memory.

    Args:
        kind: `builder`, `reader`, `sample` or `metric`.
        name: the name of its entry point.
        method: the method that is called; `draw()` for the function of a sample.
        row: the row it is called for, if any.
        about: what it is called for, where that is no row.

    Raises:
        PluginCallError: the block raised any other exception, or a DraftError.

    """
    try:
        yield
    except PluginCallError:
        raise
    except DraftError as error:
        raise broken(kind, name, method, str(error), row, about) from error
    except (MMLongBenchError, TokenizationError, OSError, MemoryError):
        raise
    except Exception as error:  # a stranger's code may fail in any way
        said = " ".join(str(error).split())[:_MAX_SHOWN]
        fault = f"{type(error).__name__}{': ' if said else ''}{said}{_line_of(error)}"
        raise broken(kind, name, method, fault, row, about) from error


def broken(kind: str, name: str, method: str, fault: str, row: Row | None = None, about: str = "") -> PluginCallError:
    """Return the error that a method of a plug-in has a fault.

    Nothing is known of the row but what its reader gave, so that its file and place stand there where it gave them.
    """
    at = ", ".join(part for part in (row.file, row.place) if part) if row else ""
    subject = f"row {row.id!r}{f' ({at})' if at else ''}" if row else about
    return PluginCallError(f"{described(kind, name)}: {method}{f', {subject}' if subject else ''}: {fault}")


def _line_of(error: BaseException) -> str:
    """The innermost line of code outside the engine and the libraries it calls; empty where there is none."""
    engine = Path(__file__).parents[1]
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if _is_foreign(Path(frame.filename), engine)]
    return f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""


def _is_foreign(path: Path, engine: Path) -> bool:
    is_library = any(part in ("pydantic", "pydantic_core", "contextlib.py", "<frozen") for part in path.parts)
    return not (path.is_relative_to(engine) or is_library or path.name.startswith("<"))
