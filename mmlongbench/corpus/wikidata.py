"""Finds the number of a Wikidata id (42 of `Q42`), in a row or in the id itself. It is the second key of articles."""

import re
from collections.abc import Mapping

INFO_FIELD, ID_FIELD = "wikidata_info", "wikidata_id"
"""The fields with the id: in KILT, `wikidata_info` is an object with the field `wikidata_id`; a row of Wiki6M has
`wikidata_id` itself."""
_ID = re.compile(r"[Qq]([1-9][0-9]{0,17})")


def wikidata_of(row: Mapping[str, object]) -> int:
    """Return the number of a row's Wikidata id; 0 if the row has no valid id.

    >>> wikidata_of({"wikidata_info": {"wikidata_id": "Q42"}}), wikidata_of({"wikidata_id": " q7 "})
    (42, 7)
    >>> wikidata_of({"wikidata_info": None}), wikidata_of({"wikidata_info": {"wikidata_id": ""}})
    (0, 0)
    """
    info = row.get(INFO_FIELD)
    found = info.get(ID_FIELD) if isinstance(info, Mapping) else None
    return wikidata_number(found) or wikidata_number(row.get(ID_FIELD))


def wikidata_number(id: object) -> int:
    """Return the number in a Wikidata id; 0 if the value is no such id.

    >>> wikidata_number("Q178185"), wikidata_number("Q0"), wikidata_number("178185"), wikidata_number(None)
    (178185, 0, 0, 0)
    """
    match = _ID.fullmatch(id.strip()) if isinstance(id, str) else None
    return int(match[1]) if match else 0
