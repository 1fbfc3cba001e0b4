"""Assigns predictions to rows that share an id and have no placement."""

import json
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from pathlib import PurePosixPath
from typing import Protocol, TypeVar

_APPENDED = ("choices_image", "needle_image_list")
"""The fields with the pictures of the question; the public code appends these pictures to those of the context."""


class Told(Protocol):
    """A prediction, reduced to what this module needs."""

    @property
    def told(self) -> bytes | None:
        """A digest that identifies the row of the prediction; None if unknown."""
        ...


P = TypeVar("P", bound=Told)


def told_by(fields: Mapping[str, object]) -> bytes | None:
    """Return a digest of a row's answer and image names; it is the same for a record and for an output of the public
    code.

    Return None if the row has neither. Outputs do not contain the order of passages, so rows that differ only in this
    order have the same digest.
    """
    images = _images(fields)
    if "answer" not in fields and not images:
        return None
    said = json.dumps([fields.get("answer"), images], sort_keys=True)
    return blake2b(said.encode(), digest_size=8).digest()


def shared_out(rows: Sequence[bytes | None], predictions: Sequence[P]) -> tuple[list[P | None], bool]:
    """Return a list of predictions, and whether some are ambiguous. The list has a prediction or None for each row, and
    then the predictions that are left over.

    Rows that cannot be distinguished form a group, and take the predictions for the group in order. If a group has
    fewer predictions than rows, it is unknown which row lacks one. Then all predictions for the group are ambiguous,
    and the list does not have them.
    """
    known = {each.told for each in predictions} & set(rows) - {None}
    places: dict[bytes | None, list[int]] = {None: []}
    for place, row in enumerate(rows):
        places.setdefault(row if row in known else None, []).append(place)
    queues: dict[bytes | None, list[P]] = {}
    for each in predictions:
        queues.setdefault(each.told if each.told in known else None, []).append(each)
    given: list[P | None] = [None] * len(rows)
    left, is_ambiguous = list[P](), False
    for told, queue in queues.items():
        at = places[told]
        if len(queue) < len(at):
            is_ambiguous = True
            continue
        for place, each in zip(at, queue, strict=False):
            given[place] = each
        left += queue[len(at) :]
    return [*given, *left], is_ambiguous


def _images(fields: Mapping[str, object]) -> list[str]:
    """Return the file names of the context's images or, if the context has none, of the question's image.

    The pictures of `_APPENDED` at the end of the context's images are left out.
    """
    found = next((names for key in ("image_list", "ctxs", "image") if (names := _names(fields.get(key)))), [])
    for key in _APPENDED:
        appended = _names(fields.get(key))
        if appended and found[-len(appended) :] == appended:
            found = found[: -len(appended)]
    return found


def _names(value: object) -> list[str]:
    paths = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    return [PurePosixPath(path).name for path in paths] if all(isinstance(path, str) for path in paths) else []
