"""What a reader makes of one raw row."""

from pathlib import Path
from typing import Any

import mmlongbench as mm


def cleaned_row(reader: mm.Reader[mm.Row], id: str, fields: dict[str, Any], **sources: Path) -> mm.Row | mm.Fault:
    return reader.row(mm.RawRow(id, fields, "file", "line 1"), sources)
