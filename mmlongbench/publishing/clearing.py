"""Decides what of a release may be published: refuses unknown licences, and finds the examples that show an asset whose
licence forbids to pass it on.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mmlongbench.errors import ReleaseError
from mmlongbench.manifest.licences import FORBIDDING
from mmlongbench.manifest.task_files import NO_TASK_FILES, TaskFiles
from mmlongbench.publishing.dropping import dropped_of
from mmlongbench.publishing.rights import Rights, SourceRights
from mmlongbench.publishing.withdrawn import Withdrawn, add_same
from mmlongbench.release.assets import Asset, read_assets
from mmlongbench.release.release import open_release

_NAMED = 3


@dataclass(frozen=True, slots=True)
class Cleared:
    """What may be published of a release."""

    withheld_sources: tuple[SourceRights, ...] = ()
    """The sources whose licence forbids it."""
    withheld_datasets: frozenset[str] = frozenset()
    """The datasets of which nothing is published, because their questions are of such a source."""
    left_out: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """The ids of the questions that are left out, by public file: their examples show an asset of such a source."""
    images: frozenset[str] = frozenset()
    """The paths of the images that are withheld."""
    texts: frozenset[tuple[str, str]] = frozenset()
    """(dataset, unit) of the texts that are withheld."""

    def is_published(self, dataset: str, file: str, id: str) -> bool:
        """Return whether an example may be published."""
        return dataset not in self.withheld_datasets and id not in self.left_out.get(file, ())

    def is_listed(self, asset: Asset) -> bool:
        """Return whether an asset may be in the table of assets."""
        if asset.dataset in self.withheld_datasets:
            return False
        if asset.kind == "image":
            return asset.name not in self.images
        return asset.kind == "source" or (asset.dataset, asset.name) not in self.texts


def clear(
    release: Path,
    rights: Rights,
    *,
    allow_unknown: bool = False,
    cleared: Sequence[str] = (),
    tasks: TaskFiles = NO_TASK_FILES,
) -> Cleared:
    """Return what may be published.

    Args:
        release: the folder of the release.
        rights: its rights.
        allow_unknown: whether assets without a licence are published.
        cleared: the names of licences that ask to be asked first, and whose owners agreed.
        tasks: the task files that the release was built with.

    Raises:
        ReleaseError: a licence is unknown, or asks to be asked first, and nobody has said that it is allowed.

    """
    if rights.without_licence and not allow_unknown:
        raise ReleaseError(
            f"{release.name}: no licence is known of {_names(rights.without_licence)}; state it in the manifest and "
            "build again, take the source out, or publish with --allow-unknown-licence"
        )
    known = {each.licence for each in rights.sources}
    if wrong := sorted(set(cleared) - known):
        raise ReleaseError(f"--cleared {wrong[0]!r}: no source has this licence; there are {', '.join(sorted(known))}")
    asked = [each for each in rights.sources if _must_ask(each) and each.licence not in cleared]
    if asked:
        raise ReleaseError(
            f"{release.name}: it is not known what these licences allow: {_names(asked)}; state their conditions in "
            f"the manifest, or say with --cleared {asked[0].licence!r} that passing the material on was agreed to"
        )
    withheld = tuple(each for each in rights.sources if FORBIDDING & set(each.conditions) and _gives(each, rights))
    return _left_out(release, withheld, tasks) if withheld else Cleared()


def _gives(source: SourceRights, rights: Rights) -> bool:
    """Return whether something is of a source under this licence: images, texts or, if it gives none of these under any
    licence, questions.
    """
    others = (each for each in rights.sources if (each.dataset, each.source) == (source.dataset, source.source))
    return source.assets > 0 or not any(each.assets for each in others)


def _must_ask(source: SourceRights) -> bool:
    is_forbidden = FORBIDDING & set(source.conditions)
    return "ask-first" in source.conditions and source.licence_kind != "unknown" and not is_forbidden


def _names(sources: Sequence[SourceRights]) -> str:
    said = list(dict.fromkeys(f"{each.name}: {each.licence}" if each.licence else each.name for each in sources))
    more = len(said) - _NAMED
    return "; ".join(said[:_NAMED]) + (f"; and {more:,} more" if more > 0 else "")


def _left_out(release: Path, withheld: tuple[SourceRights, ...], tasks: TaskFiles) -> Cleared:
    """Find the examples that show an asset of these sources, one that equals it under another name, or the same page in
    another form.
    """
    datasets = frozenset(each.dataset for each in withheld if not each.assets)
    gone, hashes = Withdrawn(), set[str]()
    keys = {(each.dataset, each.source, each.licence) for each in withheld}
    for asset in _shown(release):
        if (asset.dataset, asset.source, asset.licence) in keys:
            gone.add(asset)
            if asset.chars != 0:
                hashes.add(asset.sha256)
    add_same(gone, hashes, release)
    opened, found = open_release(release, tasks), dict[str, frozenset[str]]()
    for file in opened.files:
        if file.dataset and not file.is_bundle and file.dataset.name not in datasets:
            found[file.name] = frozenset(dropped_of(opened, file, file.dataset, gone).dropped)
    return Cleared(withheld, datasets, found, frozenset(gone.images), frozenset(gone.texts))


def _shown(release: Path) -> Iterator[Asset]:
    return (asset for asset in read_assets(release) if asset.kind != "source")
