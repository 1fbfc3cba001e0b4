"""Vision rules by name: those of `models.toml`, and those that other packages add by entry points."""

import difflib
import functools
import re
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, fields
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, TypeAlias

from tokenization.errors import TokenizationError, UnknownRuleError
from tokenization.vision import cells, tiles
from tokenization.vision.rule import Crowd, Provenance, VisionRule, numbered

Values: TypeAlias = Mapping[str, Any]
"""A rule as values of TOML or JSON."""

FORMULAS: Mapping[str, Callable[..., int]] = {
    formula.__name__: formula
    for formula in (
        *(cells.area_share, cells.broken_rows, cells.budgeted_patches, cells.fitted_cells, cells.fixed),
        *(cells.limited_patches, cells.native_grid, cells.padded_cells, cells.patch_cells, tiles.alike_crops),
        *(tiles.anyres, tiles.canvas, tiles.canvas_states, tiles.closest_aspect, tiles.covering_grid, tiles.crop_units),
        *(tiles.fitted_tiles, tiles.hd_crops, tiles.long_side_tiles, tiles.numbered_slices, tiles.padded_crops),
        *(tiles.pan_and_scan, tiles.plain_tiles, tiles.quartered, tiles.scaled_tiles, tiles.sized_slices),
    )
}
"""The formulas that `models.toml` may name."""


@functools.cache
def built_in() -> tuple[Mapping[str, VisionRule], Mapping[str, str]]:
    """Return the rules of `models.toml` by name, and the name of the rule by each folded name and alias."""
    tables = tomllib.loads((Path(__file__).parent / "models.toml").read_text("utf-8"))
    texts = tables.pop("texts")
    rules: dict[str, VisionRule] = {}
    for name, given in tables.items():
        # A variant has what its rule has, and only changes the numbers if it is counted by the same formula.
        base = tables.get(given.get("variant_of"), {})
        found = {key: value for key, value in base.items() if key not in ("aliases", "note", "crowd", "is_numbered")}
        numbers = {**(found["numbers"] if "formula" not in given else {}), **given.get("numbers", {})}
        found |= {key: value for key, value in given.items() if key != "aliases"} | {"numbers": numbers}
        checked, parameters = (found.pop(key).format_map(texts) for key in ("checked", "parameters"))
        rules[name] = _made(name, Provenance(checked, parameters, found.pop("note", "")), found)
    return rules, {fold(each): name for name in rules for each in (name, *tables[name].get("aliases", ()))}


def _made(name: str, provenance: Provenance, values: Values) -> VisionRule:
    given = dict(values)
    formula, numbers, crowd = FORMULAS[given.pop("formula")], given.pop("numbers"), given.pop("crowd", None)
    is_numbered = given.pop("is_numbered", False)
    among = Crowd(**crowd) if crowd else numbered if is_numbered else None
    return VisionRule(name, formula, numbers, provenance, among=among, by_place=is_numbered, **given)


_SEPARATORS = re.compile(r"[-_.:@\s]+")
_BOUNDARY = re.compile(r"(?<=[a-z])(?=[0-9])|(?<=[0-9])(?=[a-z])")
_SIZE = re.compile(
    r"""-(?: (?:0-)?[0-9]+-[bm]   # 7b, 0.5b, 256m
           | a-[0-9]+-b           # a22b: what is active of a mixture of experts
           | [0-9]+-[ek]          # 16e experts, a context of 128k
           | opus|sonnet|haiku|scout|maverick
         )(?=-|$)""",
    re.VERBOSE,
)
_SUFFIX = re.compile(
    r"""-(?: instruct|it|chat|thinking|hf|ov|mpo|video|pretrained|preview|latest|exp|experimental|free
           | awq|gptq|gguf|bnb|int-[48]|fp-8|bf-16|[48]-bit
           | 00[0-9]                             # a snapshot
           | 20[0-9]{2}-[0-9]{2}-[0-9]{2}|20[0-9]{6}|[0-9]{2}-20[0-9]{2}|2[0-9][01][0-9]   # its date
         )$""",
    re.VERBOSE,
)


def fold(name: str) -> str:
    """Return the same spelling for names that differ only in case, in `-`, `.` and `_`, or in a separator between
    letters and digits.

    >>> fold("Qwen2.5-VL") == fold("qwen_2_5_vl")
    True
    """
    return _BOUNDARY.sub("-", _SEPARATORS.sub("-", name.casefold()).strip("-"))


def spellings(name: str) -> Iterator[str]:
    """Yield the folded names to look up, in order. The first is the name without its owner. Then its suffixes are
    removed one by one. At the end, the same names follow without the model's size.

    >>> list(spellings("owner/Some-VL-7B-Instruct"))
    ['some-vl-7-b-instruct', 'some-vl-7-b', 'some-vl-instruct', 'some-vl']
    """
    full = fold(name.rstrip("/").rpartition("/")[2])
    yield from _without_suffixes(full)
    if (family := _SIZE.sub("", full)) != full:
        yield from _without_suffixes(family)


def _without_suffixes(name: str) -> Iterator[str]:
    """Yield a folded name, then the name without its last suffix, without its last two, and so on."""
    yield name
    while (shorter := _SUFFIX.sub("", name)) != name:
        name = shorter
        yield name


GROUP = "mmlongbench.vision_rules"


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
        rules, names = built_in()
        if found not in self._added:
            return rules[names[found]]
        if found in names:
            hidden = f"{names[found]!r} of this package"
            raise TokenizationError(f"{_described(self._added[found])} hides {hidden}: rename or uninstall it")
        return _load(self._added[found])

    def __contains__(self, name: object) -> bool:
        return self._find(name) is not None

    def __iter__(self) -> Iterator[str]:
        rules, names = built_in()
        yield from rules
        yield from (points[0].name for folded, points in self._added.items() if folded not in names)

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _find(self, name: object) -> str | None:
        if not isinstance(name, str):
            return None
        names = built_in()[1]
        return next((each for each in spellings(name) if each in names or each in self._added), None)

    def _unknown(self, name: object) -> str:
        names = {**built_in()[1], **{fold(each): each for each in self}}
        near = difflib.get_close_matches(next(spellings(str(name))), names, n=5)
        rules = ", ".join(map(repr, dict.fromkeys(names[each] for each in near)))
        hint = f"did you mean {rules}? " if near else ""
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


def rule_fields(rule: VisionRule) -> Values:
    """Return a rule as values of JSON, from which `rule_of_fields` makes it again, whatever the table then says. A rule
    whose code is in another package is the name, the package and its version.
    """
    formulas = {formula: name for name, formula in FORMULAS.items()}
    if rule.formula not in formulas or not (rule.among in (None, numbered) or isinstance(rule.among, Crowd)):
        points = vision_rules()._added.get(fold(rule.name), [])
        found = next((point.dist for point in points if point.dist), None)
        return {"model": rule.name, "package": found.name if found else "", "version": found.version if found else ""}
    values: dict[str, object] = {
        "model": rule.name,
        "formula": formulas[rule.formula],
        "numbers": dict(rule.parameters),
    }
    if isinstance(rule.among, Crowd):
        values["crowd"] = asdict(rule.among)
    elif rule.among:
        values["is_numbered"] = True
    others = (each for each in fields(rule) if each.init and each.name not in _NOT_COUNTING)
    return values | {each.name: found for each in others if (found := getattr(rule, each.name)) != each.default}


_NOT_COUNTING = ("name", "formula", "parameters", "provenance", "among", "by_place", "variant_of", "exact", "text")
"""The fields of a rule that its values have in another form, or that no count depends on."""


def rule_of_fields(values: Values) -> VisionRule:
    """Return the rule that `rule_fields` has described.

    Raises:
        TokenizationError: it needs a package that is not installed, or a newer version of this one.

    """
    given = dict(values)
    name = given.pop("model")
    if "package" in given:
        package = f"the package {given['package']} {given['version']}"
        try:
            rule = vision_rule(name)
        except TokenizationError as error:
            raise TokenizationError(f"vision rule {name!r} is that of {package}: install it ({error})") from error
        if rule_fields(rule) != dict(values):
            raise TokenizationError(f"vision rule {name!r} is that of {package}, and another one is installed")
        return rule
    try:
        return _made(name, Provenance("", "the lock of a release"), given)
    except (KeyError, TypeError) as error:
        raise TokenizationError(
            f"vision rule {name!r} cannot be made from what was recorded ({error}): install a newer version"
        ) from error


def _load(points: list[EntryPoint]) -> VisionRule:
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
    origins = [point.dist.name if point.dist else "an unnamed distribution" for point in points]
    found = (f"{point.name!r} ({point.value} of {origin})" for point, origin in zip(points, origins, strict=True))
    return f"vision rule {' and '.join(found)}"
