"""Lists the images that the examples of a dataset show, from its packed records."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from mmlongbench.building.dataset import names_by_content
from mmlongbench.building.lines import RECORDS, ShownImages
from mmlongbench.building.stages.records import record_shards
from mmlongbench.errors import BuildError

if TYPE_CHECKING:
    from mmlongbench.building.session import Session


@dataclass(frozen=True, slots=True)
class NeededImages:
    """The images that must be made."""

    pages: frozenset[str]
    """The paths of pages of documents in the release."""
    pictures: tuple[tuple[str, str], ...]
    """(path in the release, name in the source) of each picture, sorted. A picture that an extended release has is
    among them if its path does not depend on its content: it is compared, because two names may give one path."""


def needed_images(session: "Session", name: str) -> NeededImages:
    """Return the images that the examples of a dataset show and that must be made; all its records must be packed.
    Images that an extended release has are left out.

    Raises:
        BuildError: two pictures of the source have one name in the release.

    """
    by_content = names_by_content(session.plan(name).spec)
    pages: set[str] = set()
    pictures: dict[str, str] = {}
    for shard in record_shards(session, name, session.plan(name).spec.lengths):
        shown = session.build_dir.last(shard, RECORDS)
        if not isinstance(shown, ShownImages):
            raise session.build_dir.damaged(shard)
        pages.update(shown.pages)
        for path, origins in shown.pictures.items():
            for origin in origins:
                other = pictures.setdefault(path, origin)
                if by_content:  # all pictures with one path have the same content
                    pictures[path] = min(origin, other)
                elif other != origin:
                    raise BuildError(f"two pictures would be {path}: {pictures[path]!r} and {origin!r}; rename one")
    made = session.released.shown if session.released else frozenset()
    left = {path: origin for path, origin in pictures.items() if path not in made or not by_content}
    return NeededImages(frozenset(pages.difference(pictures, made)), tuple(sorted(left.items())))
