"""Vision rules by name: the built-in ones, and those that other packages add by entry points."""

import difflib
import functools
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from importlib.metadata import EntryPoint, entry_points

from tokenization.errors import TokenizationError, UnknownRuleError
from tokenization.vision.families import FAMILIES
from tokenization.vision.rule import VisionRule
from tokenization.vision.services import SERVICES

ALIASES = {
    "mmlongbench": ("benchmark", "benchmark_mmlongbench"),
    "mmlongbench-ceil": ("alt_ceil28",),
    "mmlongbench-floor": ("alt_floor28",),
    "glm-4.1v": ("glm-4.5v", "glm4_1v_4_5v"),
    "glm-4.1v-max-47040000": ("glm4v_max47040000",),
    "pixtral-12b": ("pixtral",),
    "internvl": ("internvl2", "internvl2.5", "internvl3", "internvl2_2_5_3"),
    "cohere2-vision": ("command-a-vision",),
    "nvila": ("nvila_single_image",),
    "nvila-lite": ("nvila_lite_single_image",),
    "llama-3.2-vision": ("llama-3.2", "mllama"),  # counted as in the paper's Table 11; the prompt has a separate rule
    "llava-onevision": ("llava-ov", "llava-onevision-qwen2"),  # a flat list of images, as in Table 11
    "deepseek-vl2": ("deepseek_vl2_up_to_2_images", "deepseek-vl2-small", "deepseek-vl2-tiny"),
    "idefics2": ("idefics2_split",),  # the hub's setting
    "idefics3-8b": ("idefics3", "idefics3-8b-llama3"),
    "smolvlm-2b": ("smolvlm", "smolvlm2", "smolvlm-2.2b", "smolvlm2-2.2b"),
    "smolvlm-256m-500m": ("smolvlm-256m", "smolvlm-500m", "smolvlm2-256m", "smolvlm2-500m"),
    "minicpm-v-2.6": ("minicpm-v-4", "minicpm-v-4.0", "minicpm-v-4.5", "minicpm-o-2.6"),
    "gpt-4o": ("gpt-4.1", "gpt-4.5", "chatgpt-4o", "gpt_4o_4_1_high"),
    "gpt-4o-mini": ("gpt_4o_mini_high",),
    "o3": ("o1", "o1-pro", "o1_o3_high"),
    "o3-low": ("o1-low",),
    "gpt-5": ("gpt_5_high",),
    "gpt-4.1-mini": ("gpt-5-mini", "gpt-5.4-mini"),
    "gpt-4.1-nano": ("gpt-5-nano", "gpt-5.4-nano"),
    # `claude` alone means the rule that is documented for most models, not the rule for 4.7 and later
    "claude": (
        *("claude_standard", "claude-3", "claude-3.5", "claude-3.7", "claude-4", "claude-4.1", "claude-4.5"),
        "claude-4.6",
    ),
    "claude-high-resolution": ("claude-4.7", "claude-4.8"),
    # `gemini` alone means the documented rule whose count depends on the size of the image
    "gemini-2": ("gemini", "gemini-2.0", "gemini-2.0-flash", "gemini-2.0-flash-lite", "gemini_2_crop_unit"),
    "gemini-3": ("gemini-3-high", "gemini-3-pro", "gemini-3-flash", "gemini-3.1-pro"),
}
"""Other names of each rule; names that differ only in parts that `spellings` removes need no entry."""

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
