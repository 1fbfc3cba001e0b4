"""Reads YAML with limits on its size, its depth, and the size of its expanded aliases. It does not interpret the
content.
"""

from collections import Counter
from typing import Any

import yaml

MAX_BYTES = 1024 * 1024
"""The maximum size of a text, in bytes; PyYAML takes about fifteen seconds for a text of this size."""
MAX_NODES = 1_000_000
"""The maximum number of values and keys, with aliases expanded, because printing and checking expand them."""
MAX_DEPTH = 100  # the maximum nesting of lists and mappings


def load_yaml(text: str | bytes, loader: type[yaml.SafeLoader] = yaml.SafeLoader, *, twice: bool = True) -> Any:  # noqa: ANN401  (YAML)
    """Return the value of a YAML text; if `twice` is false, no key may occur twice in a mapping.

    Raises:
        ValueError: the text is not YAML, or over a limit.

    """
    if len(text) > MAX_BYTES:
        raise ValueError(f"{len(text):,} bytes, more than {MAX_BYTES:,}")
    try:
        reader = loader(text)
        node = reader.get_single_node()
        if node is None:
            return None
        _unfolded(node, {}, 0, twice=twice)
        return reader.construct_document(node)
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError(" ".join(str(error).split())) from error
    except (LookupError, AttributeError, TypeError, OverflowError) as error:  # raised for `!!bool 7`, `!!timestamp x`
        raise ValueError(f"a tag that does not fit its value ({type(error).__name__}: {error})") from error


def _unfolded(node: yaml.Node, known: dict[int, int], depth: int, *, twice: bool) -> int:
    """Return how many values a node has when all aliases are expanded; refuse text and keys that cannot be used."""
    if depth > MAX_DEPTH:
        raise ValueError(f"expected at most {MAX_DEPTH} levels of lists and mappings, found more")
    if id(node) not in known:
        inner: list[yaml.Node] = []
        if isinstance(node, yaml.ScalarNode) and any("\ud800" <= character <= "\udfff" for character in node.value):
            raise ValueError(f"expected text that can be written, found a lone surrogate in {ascii(node.value)[:80]}")
        if isinstance(node, yaml.SequenceNode):
            inner = node.value
        elif isinstance(node, yaml.MappingNode):
            keys = Counter(key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode))
            if not twice and (often := [key for key, count in keys.items() if count > 1]):
                raise ValueError(f"{often[0]!r} occurs twice")
            inner = [part for pair in node.value for part in pair]
        known[id(node)] = 1 + sum(_unfolded(part, known, depth + 1, twice=twice) for part in inner)
    if known[id(node)] > MAX_NODES:
        raise ValueError(f"expected at most {MAX_NODES} values with all aliases written out, found more")
    return known[id(node)]
