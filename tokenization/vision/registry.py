"""Vision rules by name: the built-in ones, and those that other packages add by entry points."""

import difflib
import functools
from collections import defaultdict
from collections.abc import Iterator, Mapping
from importlib.metadata import EntryPoint, entry_points

from tokenization.errors import TokenizationError, UnknownRuleError
from tokenization.vision.families import FAMILIES
from tokenization.vision.names import ALIASES, fold, spellings
from tokenization.vision.rule import VisionRule
from tokenization.vision.services import SERVICES

GROUP = "mmlongbench.vision_rules"
_BUILT_IN = {rule.name: rule for rule in (*FAMILIES, *SERVICES)}
_WRITTEN = {name: name for name in _BUILT_IN} | {alias: name for name, many in ALIASES.items() for alias in many}
_FOLDED = {fold(written): name for written, name in _WRITTEN.items()}


class VisionRules(Mapping[str, VisionRule]):
    """A mapping of names to rules. A look-up accepts any spelling, alias or hub id of a model; a loop yields only the
    rules' own names.

    Entry points are read when this object is made, and each is loaded when it is needed.
    """

    def __init__(self) -> None:
        self._added: defaultdict[str, list[EntryPoint]] = defaultdict(list)
        for point in sorted(entry_points(group=GROUP), key=lambda point: (point.name, point.value)):
            self._added[fold(point.name)].append(point)

    def __getitem__(self, name: str) -> VisionRule:
        found = self._find(name)
        if found is None:
            raise UnknownRuleError(self._unknown(name))
        if found not in self._added:
            return _BUILT_IN[_FOLDED[found]]
        if found in _FOLDED:
            built_in = f"{_FOLDED[found]!r} of this package"
            raise TokenizationError(f"{_described(self._added[found])} hides {built_in}: rename or uninstall it")
        return _load(self._added[found])

    def __contains__(self, name: object) -> bool:
        return self._find(name) is not None

    def __iter__(self) -> Iterator[str]:
        yield from _BUILT_IN
        yield from (points[0].name for folded, points in self._added.items() if folded not in _FOLDED)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _find(self, name: object) -> str | None:
        """Return the folded name of the rule that a name means, or None."""
        if not isinstance(name, str):
            return None
        return next((each for each in spellings(name) if each in _FOLDED or each in self._added), None)

    def _unknown(self, name: object) -> str:
        """Return the message for a name that no rule has."""
        written = {fold(each): each for each in [*_WRITTEN, *self]}
        near = difflib.get_close_matches(next(spellings(str(name))), written, n=5)
        hint = f"did you mean {', '.join(repr(written[each]) for each in near)}? " if near else ""
        return (
            f"no vision rule {name!r}: {hint}vision_rules() lists all; a package adds its own by entry point ({GROUP})"
        )


@functools.cache
def vision_rules() -> VisionRules:
    """Return all vision rules by name: those that were installed when this was first called."""
    return VisionRules()


def vision_rule(name: str) -> VisionRule:
    """Return the rule of a model, by any spelling of its name.

    >>> vision_rule("Qwen/Qwen2.5-VL-7B-Instruct").tokens(1224, 1584)  # 44 x 57 cells and two markers
    2510
    """
    return vision_rules()[name]


def _load(points: list[EntryPoint]) -> VisionRule:
    """Load the rule of an entry point; raise an error that says what is wrong with it."""
    if len(points) > 1:
        raise TokenizationError(f"{_described(points)} have one name: uninstall all but one")
    broken = f"{_described(points)} is broken: "
    try:
        rule = points[0].load()
    except (Exception, SystemExit) as error:  # another package's module may fail in any way; the cause is kept
        raise TokenizationError(f"{broken}{type(error).__name__}: {' '.join(str(error).split())}") from error
    if not isinstance(rule, VisionRule):
        raise TokenizationError(f"{broken}it is {rule!r}, not a VisionRule")
    if fold(rule.name) != fold(points[0].name):
        raise TokenizationError(
            f"{broken}the entry point is named {points[0].name!r}, its rule {rule.name!r}; give both the same name"
        )
    return rule


def _described(points: list[EntryPoint]) -> str:
    """Describe entry points and their origin for a message."""
    found = (f"{point.name!r} ({point.value} of {_origin(point)})" for point in points)
    return f"vision rule {' and '.join(found)}"


def _origin(point: EntryPoint) -> str:
    return point.dist.name if point.dist else "an unnamed distribution"
