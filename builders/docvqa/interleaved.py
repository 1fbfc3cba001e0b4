"""Pages as interleaved texts and crops: units, and the fields of a record.

A record has the text of each page with a marker where a crop stands, and the crops in the order of the markers.
"""

from collections.abc import Iterator, Sequence

import mmlongbench.task as mt
from builders.common.pages import parted_unit


def interleaved(documents: mt.Documents, page: mt.Unit) -> mt.Unit:
    """Return a page as texts with crops of its tables and figures between them."""
    parts = documents.page_parts(page.data["document"], page.data["index"])
    text = "\n".join(mt.MARKER if isinstance(part, mt.Crop) else part for part in parts)
    crops = [part for part in parts if isinstance(part, mt.Crop)]
    return parted_unit(page, text, [crop.path for crop in crops], crops=crops)


def crop_fields(units: Sequence[mt.Unit]) -> dict[str, object]:
    """Return the fields of a record about pages that are texts and crops."""
    crops = [crop for unit in units for crop in unit.data["crops"]]
    listed = [{"image": crop.path, "page": crop.page, "kind": crop.kind, "box": list(crop.box)} for crop in crops]
    return {"page_text_list": [unit.data["text"] for unit in units], "crop_list": listed}


def rebuilt(units: Sequence[mt.Unit], texts: Sequence[str], crops: Sequence[mt.Record]) -> Iterator[mt.Unit]:
    """Yield the pages of a record as texts and crops, given pages as images."""
    paths = (str(crop["image"]) for crop in crops)
    for unit, text in zip(units, texts, strict=True):
        yield parted_unit(unit, text, [next(paths) for _ in range(text.count(mt.MARKER))])
