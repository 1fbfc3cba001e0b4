"""Calls plug-ins. An error in a plug-in becomes an error that names the plug-in, the method, the row and the line."""

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mmlongbench.errors import DraftError, MMLongBenchError
from mmlongbench.manifest.registry import described
from mmlongbench.task.rows import Row
from tokenization import TokenizationError

_MAX_SHOWN = 300
"""The maximum characters of an exception's message that are shown."""


class PluginCallError(DraftError):
    """A method of a plug-in raised an exception, or returned a value that is not allowed."""

    def __init__(self, message: str, method: str = "", row: str = "", fault: str = "") -> None:
        super().__init__(message)
        self.method = method
        """The method, such as `draft()`."""
        self.row = row
        """The id of the row that the method was called for; empty if there is none."""
        self.fault = fault or message
        """What is wrong, without the plug-in, the method and the row."""


@contextmanager
def calling(kind: str, name: str, method: str, row: Row | None = None, about: str = "") -> Iterator[None]:
    """Turn errors inside the block into errors that name the plug-in, its method and the row.

    Errors that users can fix, such as a reject, and errors of disk and memory are not changed.

    Args:
        kind: `builder`, `reader`, `sample` or `metric`.
        name: the name of the entry point of the plug-in.
        method: the method that is called; `draw()` for the function of a sample.
        row: the row that the method is called for, if any.
        about: what the method is called for, if that is not a row.

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
    except Exception as error:  # a plug-in's code may fail in any way
        said = " ".join(str(error).split())[:_MAX_SHOWN]
        fault = f"{type(error).__name__}{': ' if said else ''}{said}{_line_of(error)}"
        raise broken(kind, name, method, fault, row, about) from error


def broken(kind: str, name: str, method: str, fault: str, row: Row | None = None, about: str = "") -> PluginCallError:
    """Return the error for a fault of a plug-in's method.

    The error has the file and place of the row only if the reader has set them.
    """
    at = ", ".join(part for part in (row.file, row.place) if part) if row else ""
    subject = f"row {row.id!r}{f' ({at})' if at else ''}" if row else about
    message = f"{described(kind, name)}: {method}{f', {subject}' if subject else ''}: {fault}"
    return PluginCallError(message, method, row.id if row else "", fault if row or not about else f"{about}: {fault}")


def _line_of(error: BaseException) -> str:
    """Return the file and line of the innermost code outside the engine and its libraries, for a message; empty if
    there is none.
    """
    engine = Path(__file__).parents[1]
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if _is_foreign(Path(frame.filename), engine)]
    return f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""


def _is_foreign(path: Path, engine: Path) -> bool:
    is_library = any(part in ("pydantic", "pydantic_core", "contextlib.py", "<frozen") for part in path.parts)
    return not (path.is_relative_to(engine) or is_library or path.name.startswith("<"))
