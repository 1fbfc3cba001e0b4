"""Checks questions against the pages of all other documents of the folder.

A context is padded with pages of other documents of the same folder, so every page that may stand in a packed context
is looked at, whatever is packed. This is the only check in which another document can take a question away.
"""

from collections.abc import Mapping, Sequence

from mmlongbench.questions.layer.checks import Failed
from mmlongbench.questions.layer.index import PageIndex


def answered_elsewhere(phrases: Sequence[Sequence[str]], own: str, indexes: Mapping[str, PageIndex]) -> Failed | None:
    """Return the page of another document that has all phrases of one group; None if there is no such page."""
    for group in phrases:
        for name, index in sorted(indexes.items()):
            if name != own and group and (pages := index.pages_with(*group)):
                found = f"{name}, page {pages[0]}: {', '.join(group)}"
                return Failed("padding", "answered-by-padding", found, "no page of another document that answers it")
    return None
