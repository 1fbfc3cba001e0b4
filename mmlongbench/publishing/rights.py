"""The rights in a release: how many of its assets have a licence and an origin, what the combination allows, and what
of it may be published.

Rights are computed from the table of assets and the licences of the lock; no image and no text is read.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from mmlongbench.errors import ReleaseError
from mmlongbench.manifest.licences import (
    FORBIDDING,
    ORDER,
    UNKNOWN,
    Condition,
    Licence,
    conditions_of,
    may_pass_on,
    strictness,
)
from mmlongbench.manifest.task_files import NO_TASK_FILES, TaskFiles
from mmlongbench.publishing.takedown import Withdrawn, add_same, dropped_of
from mmlongbench.release.assets import Asset, read_assets
from mmlongbench.release.lock import Lock, locked_licences, read_lock
from mmlongbench.release.release import open_release

MAX_NAMED = 5
"""How many contradicting hints are named for each source."""
_FIRST = 3
_CREATIVE_COMMONS = re.compile(
    r"creativecommons\.org/(?:licenses|publicdomain)/([a-z-]+)/|\bCC[ -](BY(?:[ -](?:NC|ND|SA))*|0)\b", re.IGNORECASE
)
_RESERVED = re.compile(r"all rights reserved|do not (?:copy|distribute)|no unauthori[sz]ed", re.IGNORECASE)
_ADVICE: Mapping[Condition, str] = {
    "no-redistribution": "Do not pass the files on, but the manifest and the lock: others build the same bytes from "
    "their own download",
    "no-derivatives": "Ask before passing on, because pages that are rendered or shrunk may be derivatives",
    "non-commercial": "State that the release is for non-commercial use",
    "share-alike": "Pass adaptations on under the same licence",
    "attribution": "Name the authors and the licences with the release",
}
"""What to do about a condition."""


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class SourceRights(_Model):
    """The assets that one source of a dataset gave, under one licence."""

    dataset: str
    source: str
    """The name of the source; empty if it is not known which source an asset is of."""
    origins: tuple[str, ...]
    """Where the source was published; empty if it is not known."""
    licence: str
    """An SPDX expression or the name of terms; empty if no licence is known."""
    licence_kind: str
    """`spdx`, `term` or `unknown`."""
    licence_url: str
    """The page on which the licence is stated."""
    reason: str
    """Why no licence is known, if the manifest says so."""
    images: int
    texts: int
    with_licence: int
    with_origin: int
    conditions: tuple[Condition, ...]
    """What the licence asks for, the strictest first."""
    with_hint: int
    """The images and texts whose own metadata say something about rights."""
    contradictions: tuple[str, ...]
    """Hints that contradict the stated licence, each with an asset; at most `MAX_NAMED`."""
    contradicting: int
    """How many hints contradict the stated licence."""

    @property
    def assets(self) -> int:
        """The images and texts of the release that come from it."""
        return self.images + self.texts

    @property
    def name(self) -> str:
        """The dataset and the source, as messages name them."""
        return f"{self.dataset}/{self.source}" if self.source else self.dataset


class Demand(_Model):
    """A condition of the whole release."""

    condition: Condition
    sources: tuple[str, ...]
    """The parts that ask for it, as dataset/source: licence."""


class Rights(_Model):
    """The rights in a release. Images and texts count once for each dataset that shows them."""

    images: int
    texts: int
    with_licence: int
    with_origin: int
    sources: tuple[SourceRights, ...]
    """The sources, by dataset, source and licence."""
    demands: tuple[Demand, ...]
    """What the combination asks for, the strictest first, and which parts make it so."""
    may_be_shared: bool
    """Whether every part allows to pass it on without asking."""
    advice: tuple[str, ...]
    """What to do before the release is passed on, with reasons, one sentence each."""

    @property
    def unknown(self) -> int:
        """The images and texts without a licence."""
        return self.images + self.texts - self.with_licence

    @property
    def without_licence(self) -> tuple[SourceRights, ...]:
        """The sources of which no licence is known; their questions count too if they give no image and no text."""
        return tuple(source for source in self.sources if source.licence_kind == "unknown")


def rights_of_release(release: Path) -> Rights:
    """Return the rights in a release; a `ReleaseError` if it has no readable lock or no table of assets."""
    lock = read_lock(release)
    return rights_of(read_assets(release), stated_licences(lock), lock.licence_notes)


def stated_licences(lock: Lock) -> Mapping[tuple[str, str], Licence]:
    """Return the licence that the lock states for each source, by dataset and source."""
    stated: dict[tuple[str, str], Licence] = {}
    for data in lock.manifest:
        hashes = data.get("source_sha256")
        names = [*(hashes if isinstance(hashes, dict) else ()), "corpus", ""]
        licences = locked_licences(data)
        stated |= {(str(data.get("name")), name): licences.of(name).licence for name in names}
    return stated


@dataclass(slots=True)
class _Tally:
    """What is counted of one source under one licence; `counts` has fields of `SourceRights`."""

    licence: Licence
    origins: set[str] = field(default_factory=set)
    counts: Counter[str] = field(default_factory=Counter)
    contradictions: list[str] = field(default_factory=list)


def rights_of(assets: Iterable[Asset], stated: Mapping[tuple[str, str], Licence], notes: Iterable[str] = ()) -> Rights:
    """Return the rights in a release, of which one asset is in memory at a time.

    `stated` has the licence of each source, by dataset and source (`stated_licences`), with the text and the conditions
    of named terms. `notes` are what a user must know about the tables of licences; they become advice.
    """
    # The terms that a dataset calls by a name; under an empty dataset, the strictest that any dataset calls so.
    terms: dict[tuple[str, str], Licence] = {}
    for (dataset, _), licence in stated.items():
        for key in ((dataset, licence.name), ("", licence.name)) if licence.kind == "term" else ():
            terms[key] = max(licence, terms.get(key, licence), key=strictness)
    tallies: dict[tuple[str, str, str], _Tally] = {}
    for asset in assets:
        key_of = (asset.dataset, asset.name if asset.kind == "source" else asset.source, asset.licence)
        if key_of not in tallies:
            own = stated.get(key_of[:2], UNKNOWN)
            is_own = (own.kind, own.name) == (asset.licence_kind, asset.licence)
            tallies[key_of] = _Tally(own if is_own else _other_licence(asset, terms))
        tally = tallies[key_of]
        if asset.origin:
            tally.origins.add(asset.origin)
        if asset.kind == "source":
            continue
        is_against = bool(asset.hint) and contradicts(asset.hint, tally.licence)
        tally.counts.update({"images" if asset.kind == "image" else "texts": 1})
        tally.counts["with_licence"] += asset.has_licence
        tally.counts["with_origin"] += asset.has_origin
        tally.counts["with_hint"] += bool(asset.hint)
        tally.counts["contradicting"] += is_against
        if is_against and len(tally.contradictions) < MAX_NAMED:
            tally.contradictions.append(f"{asset.name}: {asset.hint}")
    sources = tuple(
        SourceRights(
            dataset=dataset,
            source=source,
            origins=tuple(sorted(tally.origins)),
            licence=licence_name,
            licence_kind=tally.licence.kind,
            licence_url=tally.licence.url,
            reason=tally.licence.reason,
            conditions=tuple(each for each in ORDER if each in conditions_of(tally.licence)),
            contradictions=tuple(tally.contradictions),
            images=tally.counts["images"],
            texts=tally.counts["texts"],
            with_licence=tally.counts["with_licence"],
            with_origin=tally.counts["with_origin"],
            with_hint=tally.counts["with_hint"],
            contradicting=tally.counts["contradicting"],
        )
        for (dataset, source, licence_name), tally in sorted(tallies.items())
    )
    # A condition of one part binds the whole.
    parts: dict[Condition, dict[str, None]] = {}
    for each in sources:
        for condition in each.conditions:
            parts.setdefault(condition, {})[f"{each.name}: {each.licence or 'no licence is known'}"] = None
    demands = tuple(Demand(condition=each, sources=tuple(parts[each])) for each in ORDER if each in parts)
    return Rights(
        images=sum(each.images for each in sources),
        texts=sum(each.texts for each in sources),
        with_licence=sum(each.with_licence for each in sources),
        with_origin=sum(each.with_origin for each in sources),
        sources=sources,
        demands=demands,
        may_be_shared=all(may_pass_on(frozenset(each.conditions)) for each in sources),
        advice=(*_advice(sources, demands), *(f"Look at {note}." for note in notes)),
    )


def _other_licence(asset: Asset, terms: Mapping[tuple[str, str], Licence]) -> Licence:
    """Return the licence of an asset whose source has another one; terms are those of its dataset, if it has them."""
    if asset.licence_kind == "unknown":
        return UNKNOWN
    if asset.licence_kind == "spdx":
        return Licence("spdx", asset.licence)
    known = terms.get((asset.dataset, asset.licence)) or terms.get(("", asset.licence))
    return known or Licence("term", asset.licence)


def contradicts(hint: str, licence: Licence) -> bool:
    """Return whether metadata name another Creative Commons licence than the stated one, or reserve all rights although
    the stated licence allows to pass the material on.
    """
    if licence.kind == "unknown":
        return False
    if _RESERVED.search(hint):
        return may_pass_on(conditions_of(licence))
    match = _CREATIVE_COMMONS.search(hint)
    if not match:
        return False
    name = (match[1] or match[2]).upper().replace(" ", "-")
    name = {"ZERO": "CC0", "0": "CC0", "MARK": "PUBLIC DOMAIN"}.get(name, f"CC-{name}")
    stated = licence.name.upper()
    is_version = re.match(re.escape(name) + r"(-\d|$)", stated)
    return not is_version and name not in stated.replace(" ", "-").split(";")


def _advice(sources: Sequence[SourceRights], demands: Iterable[Demand]) -> Iterator[str]:
    without = [source for source in sources if source.licence_kind == "unknown"]
    if unknown := [f"{source.name} ({source.reason})" if source.reason else source.name for source in without]:
        yield f"Find out the licence of {_named(unknown)}, or leave it out: without one, nobody may pass it on."
    asked = [f"{source.name}: {source.licence}" for source in sources if "ask-first" in source.conditions]
    if terms := [said for said in dict.fromkeys(asked) if not said.endswith(": ")]:
        yield f"Read the terms, or ask first, because it is not known here what they allow: {_named(terms)}."
    for demand in demands:
        if advice := _ADVICE.get(demand.condition):
            yield f"{advice}: {_named(demand.sources)} {'asks' if len(demand.sources) == 1 else 'ask'} for it."
    for source in sources:
        if source.contradicting:
            said = f"metadata of {source.contradicting:,} assets contradict {source.licence}"
            yield f"Look at {source.name}: {said}, such as {source.contradictions[0]}."
        if missing := source.assets - source.with_origin:
            yield f"Say where {missing:,} assets of {source.name} come from: in `downloads`, or in a table of licences."


def _named(parts: Sequence[str]) -> str:
    """Return the first parts, and how many more there are."""
    more = len(parts) - _FIRST
    return "; ".join(parts[:_FIRST]) + (f"; and {more:,} more" if more > 0 else "")


@dataclass(frozen=True, slots=True)
class Cleared:
    """What may be published of a release."""

    withheld_sources: tuple[SourceRights, ...] = ()
    """The sources whose licence forbids it."""
    withheld_datasets: frozenset[str] = frozenset()
    """The datasets of which nothing is published, because their questions are of such a source."""
    left_out: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """The ids of the questions that are left out, by public file: their examples show an asset of such a source."""
    withheld: Withdrawn = field(default_factory=Withdrawn)
    """The images and texts that are not published."""

    def is_published(self, dataset: str, file: str, id: str) -> bool:
        """Return whether an example may be published."""
        return dataset not in self.withheld_datasets and id not in self.left_out.get(file, ())

    def is_listed(self, asset: Asset) -> bool:
        """Return whether an asset may be in the table of assets."""
        return asset.dataset not in self.withheld_datasets and asset not in self.withheld


def clear(
    release: Path,
    rights: Rights,
    *,
    allow_unknown: bool = False,
    cleared: Sequence[str] = (),
    tasks: TaskFiles = NO_TASK_FILES,
) -> Cleared:
    """Return what may be published. `cleared` are licences that ask to be asked first, and whose owners agreed.

    Raises:
        ReleaseError: a licence is unknown, or asks to be asked first, and nobody has said that it is allowed.

    """

    def names(sources: Iterable[SourceRights]) -> str:
        said = (f"{source.name}: {source.licence}" if source.licence else source.name for source in sources)
        return _named(list(dict.fromkeys(said)))

    if rights.without_licence and not allow_unknown:
        raise ReleaseError(
            f"{release.name}: no licence is known of {names(rights.without_licence)}; state it in the manifest and "
            "build again, take the source out, or publish with --allow-unknown-licence"
        )
    known = {source.licence for source in rights.sources}
    if wrong := sorted(set(cleared) - known):
        raise ReleaseError(f"--cleared {wrong[0]!r}: no source has this licence; there are {', '.join(sorted(known))}")
    stated = [source for source in rights.sources if source.licence_kind != "unknown"]
    open_terms = [source for source in stated if "ask-first" in source.conditions and source.licence not in cleared]
    if asked := [source for source in open_terms if not FORBIDDING & set(source.conditions)]:
        raise ReleaseError(
            f"{release.name}: it is not known what these licences allow: {names(asked)}; state their conditions in "
            f"the manifest, or say with --cleared {asked[0].licence!r} that passing the material on was agreed to"
        )
    # A source that gives nothing else under any licence gives questions.
    giving = {(source.dataset, source.source) for source in rights.sources if source.assets}
    withheld = tuple(
        source
        for source in rights.sources
        if FORBIDDING & set(source.conditions) and (source.assets or (source.dataset, source.source) not in giving)
    )
    if not withheld:
        return Cleared()
    # The examples that show an asset of these sources, one that equals it under another name, or the same page in
    # another form.
    datasets = frozenset(source.dataset for source in withheld if not source.assets)
    gone, hashes = Withdrawn(), set[str]()
    keys = {(source.dataset, source.source, source.licence) for source in withheld}
    for asset in read_assets(release):
        if asset.kind != "source" and (asset.dataset, asset.source, asset.licence) in keys:
            gone.add(asset)
            if asset.chars != 0:
                hashes.add(asset.sha256)
    add_same(gone, hashes, release)
    opened, left_out = open_release(release, tasks), dict[str, frozenset[str]]()
    for file in opened.files:
        if file.dataset and not file.is_bundle and file.dataset.name not in datasets:
            left_out[file.name] = frozenset(dropped_of(opened, file, file.dataset, gone).dropped)
    return Cleared(withheld, datasets, left_out, gone)
