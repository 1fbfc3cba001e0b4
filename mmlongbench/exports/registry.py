"""Finds the targets of an export by name, through entry points; the built-in ones are found in the same way."""

import inspect
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points

from mmlongbench.errors import PluginError, nearest
from mmlongbench.exports.target import Target

GROUP = "mmlongbench.exports"
"""The group of entry points of targets."""


@dataclass(frozen=True, slots=True)
class InstalledTarget:
    """A target that is installed."""

    name: str
    origin: str
    """The distribution that it belongs to."""
    summary: str = ""
    """What the target is, in one line."""
    problem: str = ""
    """Why it cannot be used; empty if it can."""


def target_named(name: str) -> Target:
    """Return a target.

    Raises:
        PluginError: no target has this name, two targets have it, or the target is broken.

    """
    points = entry_points(group=GROUP)
    found = {(point.value, _origin(point)): point for point in points.select(name=name)}
    if not found:
        names = sorted({point.name for point in points})
        raise PluginError(
            f"no export target {name!r} is installed (there are: {', '.join(names)}){nearest(name, names)}"
        )
    if len(found) > 1:
        origins = " and ".join(sorted(f"{value} of {origin}" for value, origin in found))
        raise PluginError(f"two export targets are called {name!r}: {origins}; uninstall one")
    return _load(next(iter(found.values())))


def installed_targets() -> list[InstalledTarget]:
    """Return every target, after trying to load it; the `problem` of a broken one says what is wrong."""
    return [_try(point) for point in _in_order(entry_points(group=GROUP))]


def _in_order(points: Iterable[EntryPoint]) -> list[EntryPoint]:
    return sorted(points, key=lambda point: (point.name, point.value))


def _try(point: EntryPoint) -> InstalledTarget:
    try:
        target = target_named(point.name)
    except PluginError as error:
        return InstalledTarget(point.name, _origin(point), problem=str(error))
    return InstalledTarget(point.name, _origin(point), target.summary)


def _load(point: EntryPoint) -> Target:
    broken = f"export target {point.name!r} ({point.value} of {_origin(point)}) is broken: "
    try:
        loaded = point.load()
    except (Exception, SystemExit) as error:  # the module of a plug-in may fail in any way; the cause is kept
        raise PluginError(f"{broken}{type(error).__name__}: {' '.join(str(error).split())}") from error
    if not (isinstance(loaded, type) and issubclass(loaded, Target)):
        raise PluginError(f"{broken}{loaded!r} is not a subclass of {Target.__module__}.Target")
    if missing := sorted(loaded.__abstractmethods__):
        raise PluginError(f"{broken}{loaded!r} lacks {', '.join(missing)}, which a target needs")
    if not isinstance(inspect.getattr_static(loaded, "summary", None), str):
        raise PluginError(f"{broken}{loaded!r} lacks summary, a text that says what the target is")
    try:
        return loaded()
    except Exception as error:  # the constructor of a plug-in may fail in any way
        raise PluginError(f"{broken}it cannot be made: {type(error).__name__}: {error}") from error


def _origin(point: EntryPoint) -> str:
    return point.dist.name if point.dist else "an unnamed distribution"
