"""Which models are related, and who is asked what. A model never checks a question that its own family wrote."""

import re
from collections.abc import Sequence

from mmlongbench.draws import Draws

_NAME = re.compile(r"[a-z]+")


def family(model: str) -> str:
    """Return the name of a model's family: the letters at the beginning of its name.

    >>> family("gpt-4o-2024-05-13"), family("Qwen/Qwen2.5-VL-72B"), family("o3"), family("7b")
    ('gpt', 'qwen', 'o', '7b')
    """
    name = model.rsplit("/", 1)[-1].casefold()
    found = _NAME.match(name)
    return found[0] if found else name


def others(author: str, models: Sequence[str], draws: Draws) -> list[str]:
    """Return the models of other families than an author's in a drawn order, the first ones from different families.

    >>> others("gpt-4o", ["gpt-4o", "gpt-5", "qwen-vl", "qwen-max", "claude-4"], Draws(("seed", "slot")))
    ['claude-4', 'qwen-max', 'qwen-vl']
    """
    drawn = draws.order("readers", [model for model in models if family(model) != family(author)])
    first: dict[str, str] = {}
    for model in drawn:
        first.setdefault(family(model), model)
    return [*first.values(), *(model for model in drawn if model not in first.values())]
