"""Which of the rows that share an id, and do not say their placement, each prediction is for."""

import json
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from pathlib import PurePosixPath
from typing import Any, Protocol, TypeVar

_APPENDED = ("choices_image", "needle_image_list")
"""Pictures of the question, which the public code puts behind those of the context."""


class Told(Protocol):
    """A prediction, as far as this matters."""

    @property
    def told(self) -> bytes | None:
        """Of the row that it is for; None where nothing is known of it."""
        ...


P = TypeVar("P", bound=Told)


def told_by(fields: Mapping[str, Any]) -> bytes | None:
    """A digest of a row's answer and of the names of its images, in a record as in an output of the public code.

    None where there is neither. The order of passages is in no output: rows that differ in nothing else are equal.
    """
    images = _images(fields)
    if "answer" not in fields and not images:
        return None
    said = json.dumps([fields.get("answer"), images], sort_keys=True)
    return blake2b(said.encode(), digest_size=8).digest()


def shared_out(rows: Sequence[bytes | None], predictions: Sequence[P]) -> tuple[list[P | None], bool]:
    """Of each row the prediction for it or None, then the predictions that are left over.

    Rows that nothing tells apart take predictions in their order. Where there are fewer predictions than such rows,
    none counts: which row lost its own cannot be told, and the second of the tuple is true.
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


def _images(fields: Mapping[str, Any]) -> list[str]:
    """Their names without folders, of the context, or of a question that has one."""
    found = next((names for key in ("image_list", "ctxs", "image") if (names := _names(fields.get(key)))), [])
    for key in _APPENDED:
        appended = _names(fields.get(key))
        if appended and found[-len(appended) :] == appended:
            found = found[: -len(appended)]
    return found


def _names(value: object) -> list[str]:
    paths = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    return [PurePosixPath(path).name for path in paths] if all(isinstance(path, str) for path in paths) else []
