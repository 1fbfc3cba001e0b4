"""The names of files, folders and examples in a release, and of the stages that make it."""

import re
from collections.abc import Mapping
from typing import Literal, TypeAlias, get_args

DATA = "mmlb_data"
"""The public files: one for each dataset and length."""
CLAIMS = "_claims.jsonl"
"""The ending of files with the claims of gold summaries, beside the public files; a judge makes them after the
build."""
IMAGES = "mmlb_image"
"""The images, at the paths that records name."""
ITEMS = "items"
"""The items: a Parquet file for each dataset and length, with a row for each unit of each example. A row has, for
example, the unit's role and the tokens before it."""
REJECTS = "rejects.jsonl"
"""The file of everything that was left out, with reasons."""
TOKENIZERS = "tokenizers"
"""The tokenizers that the release was counted with, as `<sha256>.json`; the embedded one is not among them."""
LOCK = "build.lock.json"
"""The file that says what the release is made of; it is written last."""
PUBLISHED_EXAMPLES, PUBLISHED_IMAGES = "data", "images"
"""The folders of a publication with tables of examples, and with tables of images."""
CHECKSUMS = "checksums.txt"
"""The file with the SHA-256 of every file of a publication."""
TOMBSTONES = "takedowns.jsonl"
"""The file beside the lock that says what was taken out of a release after its build, and when. It is not in the lock,
because it has a date."""

StageName: TypeAlias = Literal["documents", "rows", "rankings", "questions", "negatives", "records", "images", "cells"]
STAGE_NAMES: tuple[StageName, ...] = get_args(StageName)


def by_length(path: str) -> list[tuple[int, str]]:
    """Return a key to sort names by, which compares the numbers in them: K8 is before K16."""
    return [(int(part), "") if part.isdecimal() else (0, part) for part in re.split(r"(\d+)", path)]


def name_of(record: Mapping[str, object]) -> str:
    """Return a record's name: its id, and its placement if it has one.

    >>> name_of({"id": "vh-3", "depth": 0.2})
    'vh-3, depth 0.2'
    """
    placed = (f", {key} {record[key]}" for key in ("depth", "permutation", "placement") if record.get(key) is not None)
    return f"{record.get('id')}{''.join(placed)}"


def as_utf8(text: str) -> str:
    r"""Return a text, such as an id or a path, as tables have it: characters that UTF-8 cannot hold are escaped.

    >>> as_utf8("\ud800")
    '\\ud800'
    """
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()
