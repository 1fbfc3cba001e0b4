"""The fields that the engine adds to the records of every builder, and what they mean. A builder describes only its own
fields (`Builder.record_fields`).
"""

from collections.abc import Mapping

from mmlongbench.packing.place import Depth, Permutation

ALWAYS: Mapping[str, str] = {
    "length": "The tokens of the whole prompt: text and images together.",
    "tokens": "An object with text and image (the tokens of the prompt) and reserve (the tokens kept free).",
}
"""The fields of every record."""
AT_DEPTH: Mapping[str, str] = {
    "depth": "The depth that was asked for: 0 is before the first unit of the haystack, 1 after the last one.",
    "depth_achieved": "The depth that was reached: haystack tokens before the needle / all haystack tokens.",
    "needle_start": "The tokens of the prompt before the needle.",
}
"""The fields of a record whose needle is put at a depth."""
PERMUTED: Mapping[str, str] = {
    "permutation": "The number of the permutation, from 0.",
    "depth_achieved": "The depth that was reached by each needle: haystack tokens before it / all haystack tokens.",
    "needle_start": "The tokens of the prompt before each needle.",
    "depth_requested": "The depth that was drawn for each needle; 0 is before the first unit, 1 after the last one.",
}
"""The fields of a record whose needles are permuted."""


def added_fields(placement: type[Depth] | type[Permutation] | None) -> dict[str, str]:
    """Return what each field means that the engine adds to a record.

    Args:
        placement: the kind of the task's placements (`Placements.kind`); None for a task without needles.

    >>> [*added_fields(None)], [*added_fields(Depth)]
    (['length', 'tokens'], ['length', 'tokens', 'depth', 'depth_achieved', 'needle_start'])

    """
    placed = {} if placement is None else AT_DEPTH if placement is Depth else PERMUTED
    return {**ALWAYS, **placed}
