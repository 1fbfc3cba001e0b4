"""Names of models: one normal spelling, other names of the rules, and parts of names that do not change a count."""

import re
from collections.abc import Iterator

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
