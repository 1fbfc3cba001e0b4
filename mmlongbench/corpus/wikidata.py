"""Wikidata ids (`Q42`), the second key of an article: where rows have them, and the number that one stands for."""

import re
from collections.abc import Mapping
from typing import Any

INFO_FIELD, ID_FIELD = "wikidata_info", "wikidata_id"
"""KILT's object with the id in it, and the id itself, which Wiki6M has in the row."""
_ID = re.compile(r"[Qq]([1-9][0-9]{0,17})")


def wikidata_of(row: Mapping[str, Any]) -> int:
    """Return the number of a row's Wikidata id; 0 where the row has none, or what it has is no id.

    >>> wikidata_of({"wikidata_info": {"wikidata_id": "Q42"}}), wikidata_of({"wikidata_id": " q7 "})
    (42, 7)
    >>> wikidata_of({"wikidata_info": None}), wikidata_of({"wikidata_info": {"wikidata_id": ""}})
    (0, 0)
    """
    info = row.get(INFO_FIELD)
    found = info.get(ID_FIELD) if isinstance(info, Mapping) else None
    return wikidata_number(found) or wikidata_number(row.get(ID_FIELD))


def wikidata_number(id: object) -> int:
    """Return the number in a Wikidata id; 0 where a value is no such id.

    >>> wikidata_number("Q178185"), wikidata_number("Q0"), wikidata_number("178185"), wikidata_number(None)
    (178185, 0, 0, 0)
    """
    match = _ID.fullmatch(id.strip()) if isinstance(id, str) else None
    return int(match[1]) if match else 0
