"""Checks questions against the pages of all other documents of the folder.

A context is padded with pages of other documents of the same folder, so every page that may stand in a packed context
is looked at, whatever is packed. This is the only check in which another document can take a question away.
"""

from collections.abc import Mapping, Sequence

from mmlongbench.questions.layer.checks import Failed
from mmlongbench.questions.layer.index import PageIndex


def answered_elsewhere(
    places: Sequence[tuple[Sequence[str], int]], own: str, indexes: Mapping[str, PageIndex]
) -> Failed | None:
    """Return the page of another document that has all phrases of one group; None if there is no such page.

    Args:
        places: groups of phrases, each with the number that a page must have to be meant; 0 if any page may be meant.
        own: the name of the question's document.
        indexes: the pages of each document, by its name.

    """
    for group, place in places:
        for name, index in sorted(indexes.items()):
            pages = index.pages_with(*group) if name != own and group else ()
            if meant := [page for page in pages if place in (0, page)]:
                found = f"{name}, page {meant[0]}: {', '.join(group)}"
                return Failed("padding", "answered-by-padding", found, "no page of another document that answers it")
    return None
