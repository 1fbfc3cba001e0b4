"""Says where the sources of a dataset were published, and finds which of them a file belongs to.

A source at a URL or on the hub says it itself. For a path of this machine, the entries of `downloads` in the manifest
say it, and the record that `fetch` writes has the commit. Nothing here is downloaded.
"""

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from mmlongbench.building.build_plan import DatasetPlan
from mmlongbench.building.locating import CORPUS
from mmlongbench.errors import FetchError
from mmlongbench.io.locations import HubFiles, Location, Url
from mmlongbench.manifest.downloads import DownloadSpec
from mmlongbench.manifest.fetching.record import Place, load_record
from mmlongbench.manifest.missing import places_of_path
from mmlongbench.manifest.model import DatasetSpec


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a source was published."""

    place: str = ""
    """`hub:owner/name@revision`, a URL, or `sample:reader`; empty if it is not known."""
    prefix: str = ""
    """The path of the source in that place."""
    parts: tuple[tuple[str, str], ...] = ()
    """(path inside the source, place) of the parts of a source that come from several places."""

    def place_of(self, path: str) -> str:
        """Return where something inside the source was published."""
        inside = PurePosixPath(path)
        return next((place for part, place in self.parts if inside.is_relative_to(part)), self.place)

    def inside(self, path: str) -> str:
        """Return the path in that place of something inside the source."""
        return "/".join(filter(None, (self.prefix, path)))


@dataclass(frozen=True, slots=True)
class Located:
    """A file of the sources."""

    source: str
    """The name of its source; empty if it cannot be told."""
    inside: str
    """Its path in the place where the source was published."""
    place: str = ""
    """Where it was published; empty if that is not known."""
    within: str = ""
    """Its path inside its source; empty if `inside` is no path."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names by which a table of licences may call it, the most specific first: its path with the name of the
        source, in the place where the source was published, and in the source.
        """
        inside = self.inside.partition("#page=")[0] if self.within else ""
        below = f"{self.source}/{self.within}" if self.source and self.within else ""
        return tuple(dict.fromkeys(filter(None, (below, inside, self.within))))


class Origins:
    """The origins of a dataset's sources, and which of them a file belongs to."""

    def __init__(self, plan: DatasetPlan) -> None:
        """Find the origin of each source of `plan`; its files are not read."""
        self._plan = plan
        self.names: tuple[str, ...] = (*plan.fingerprints, *((CORPUS,) if plan.corpus else ()))
        """The names of the sources that the manifest gives, with the corpus."""
        self.of: dict[str, Origin] = {name: _origin(plan, name) for name in self.names}
        """The origin of each source, by its name."""
        known = plan.bound.reader_type.extracted_from
        self._extracted = {name: source for name, source in known.items() if source in self.names}
        roots = [(path, name) for name, path in plan.sources.items()]
        self._roots = sorted(roots, key=lambda each: -len(each[0].parts))

    @property
    def only(self) -> str:
        """The name of the only source; empty if there are several."""
        return self.names[0] if len(self.names) == 1 else ""

    def locate(self, path: Path) -> Located:
        """Return which source a file belongs to, and its path in the place where the source was published.

        What the reader has extracted from the sources belongs to the source that the reader names
        (`Reader.extracted_from`), or to the only source; otherwise, it is not known to which.
        """
        for root, name in self._roots:
            if path.is_relative_to(root):
                below = path.relative_to(root).as_posix()
                within = "" if below == "." else below
                if name not in self.of:
                    return self.at(self._extracted.get(name, self.only), within, is_whole=True)
                return self.at(name, within)
        return self.at(self.only, path.name, is_whole=True)

    def at(self, source: str, path: str, *, is_whole: bool = False) -> Located:
        """Return something in a source; `is_whole` says that `path` is no path inside the source."""
        origin = self.of.get(source, Origin())
        within = "" if is_whole or path.startswith("#") else path
        return Located(source, path if is_whole else origin.inside(path), origin.place_of(path), within)


def _origin(plan: DatasetPlan, name: str) -> Origin:
    spec = plan.spec
    if isinstance(spec.source, str):
        return Origin(f"sample:{spec.shown_reader}")
    if name == CORPUS:
        return _of_path(spec, spec.corpus) if spec.corpus else Origin()
    return _of_locations(spec, spec.source.get(name, ()))


def _of_locations(spec: DatasetSpec, locations: Sequence[Location]) -> Origin:
    """Return the origin of a source; several locations in one place have this place in common."""
    found = [_of_location(spec, each) for each in locations]
    if len(found) == 1:
        return found[0]
    places = [each.place for each in found]
    return Origin(" ".join(dict.fromkeys(places))) if all(places) else Origin()


def _of_location(spec: DatasetSpec, location: Location) -> Origin:
    if isinstance(location, HubFiles):
        revision = f"@{location.revision}" if location.revision else ""
        return Origin(f"hub:{location.repository}{revision}", "" if "*" in location.path else location.path)
    return Origin(str(location)) if isinstance(location, Url) else _of_path(spec, location.path)


def _of_path(spec: DatasetSpec, path: Path) -> Origin:
    """Return the origin of a path of this machine, as `downloads` says it; the smallest place that has it."""
    found = sorted(places_of_path(spec, path), key=lambda each: -len(PurePosixPath(each[0].to).parts))
    for place, data in found:
        name = _named(place, data)
        if name and path.is_relative_to(data / place.to):
            below = path.relative_to(data / place.to).as_posix()
            return Origin(name, "" if below == "." or "*" in below else below)
    inside = [(place, data) for place, data in found if (data / place.to).is_relative_to(path)]
    parts = [((data / place.to).relative_to(path).as_posix(), _named(place, data)) for place, data in inside]
    return Origin("", parts=tuple((part, name) for part, name in parts if name))


def _named(place: DownloadSpec, data: Path) -> str:
    """Return the name of a place, with the commit that `fetch` has recorded for it."""
    if not place.hub:
        return place.origin or (place.name if place.url else "")
    commit = place.revision
    with suppress(FetchError):
        if listed := load_record(data).datasets.get(Place(place, "", ()).key):
            commit = listed.commit
    return f"{place.name}@{commit}" if commit else place.name
