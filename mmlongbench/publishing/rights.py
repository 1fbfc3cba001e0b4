"""The rights in a release: how many of its assets have a licence and an origin, and what the combination allows.

Everything is computed from the table of assets and the licences of the lock; no image and no text is read.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from mmlongbench.manifest.licences import ORDER, UNKNOWN, Condition, Licence, conditions_of, may_pass_on, strictness
from mmlongbench.release.assets import Asset, read_assets
from mmlongbench.release.lock import Lock, locked_licences, read_lock

MAX_NAMED = 5
"""How many contradicting hints are named for each source."""
_FEW = 3
_CREATIVE_COMMONS = re.compile(
    r"creativecommons\.org/(?:licenses|publicdomain)/([a-z-]+)/|\bCC[ -](BY(?:[ -](?:NC|ND|SA))*|0)\b", re.IGNORECASE
)
_RESERVED = re.compile(r"all rights reserved|do not (?:copy|distribute)|no unauthori[sz]ed", re.IGNORECASE)


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class SourceRights(_Model):
    """The assets that one source of a dataset gave, under one licence."""

    dataset: str
    """The name of the dataset."""
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
    """The images of the release that come from it."""
    texts: int
    """The texts of the release that come from it."""
    with_licence: int
    """The images and texts with a licence."""
    with_origin: int
    """The images and texts with an origin."""
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
    """What is asked for."""
    sources: tuple[str, ...]
    """The parts that ask for it, as dataset/source: licence."""


class Rights(_Model):
    """The rights in a release."""

    images: int
    """Its images, counted once for each dataset that shows them."""
    texts: int
    """Its texts, counted once for each dataset that shows them."""
    with_licence: int
    """The images and texts with a licence."""
    with_origin: int
    """The images and texts with an origin."""
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
    """Return the rights in a release.

    Raises:
        ReleaseError: the release has no readable lock or no table of assets.

    """
    lock = read_lock(release)
    return rights_of(read_assets(release), stated_licences(lock), lock.licence_notes)


def stated_licences(lock: Lock) -> Mapping[tuple[str, str], Licence]:
    """Return the licence that the lock states for each source, by dataset and source.

    Raises:
        ReleaseError: the manifest of the lock cannot be read.

    """
    found: dict[tuple[str, str], Licence] = {}
    for data in lock.manifest:
        hashes = data.get("source_sha256")
        names = [*(hashes if isinstance(hashes, dict) else ()), "corpus", ""]
        licences = locked_licences(data)
        found |= {(str(data.get("name")), name): licences.of(name).licence for name in names}
    return found


@dataclass(slots=True)
class _Tally:
    """The counts of one source under one licence."""

    licence: Licence
    origins: set[str] = field(default_factory=set)
    kinds: Counter[str] = field(default_factory=Counter)
    licensed: int = 0
    placed: int = 0
    hinted: int = 0
    against: list[str] = field(default_factory=list)
    contradicting: int = 0

    def add(self, asset: Asset) -> None:
        if asset.origin:
            self.origins.add(asset.origin)
        if asset.kind == "source":
            return
        self.kinds[asset.kind] += 1
        self.licensed += asset.has_licence
        self.placed += asset.has_origin
        self.hinted += bool(asset.hint)
        if asset.hint and contradicts(asset.hint, self.licence):
            self.contradicting += 1
            if len(self.against) < MAX_NAMED:
                self.against.append(f"{asset.name}: {asset.hint}")


def rights_of(assets: Iterable[Asset], stated: Mapping[tuple[str, str], Licence], notes: Iterable[str] = ()) -> Rights:
    """Return the rights in a release.

    Args:
        assets: the table of assets; one row is in memory at a time.
        stated: the licence of each source, by dataset and source (`stated_licences`); it has the text and the
            conditions of named terms.
        notes: what a user must know about the tables of licences (`Lock.licence_notes`); it becomes advice.

    """
    named = _named_terms(stated)
    tallies: dict[tuple[str, str, str], _Tally] = {}
    for asset in assets:
        key = (asset.dataset, asset.source, asset.licence)
        if asset.kind == "source":
            key = (asset.dataset, asset.name, asset.licence)
        if key not in tallies:
            own = stated.get(key[:2], UNKNOWN)
            is_own = (own.kind, own.name) == (asset.licence_kind, asset.licence)
            tallies[key] = _Tally(own if is_own else _licence(asset, named))
        tallies[key].add(asset)
    sources = tuple(_source(key, tally) for key, tally in sorted(tallies.items()))
    demands = tuple(_demands(sources))
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


def _named_terms(stated: Mapping[tuple[str, str], Licence]) -> Mapping[tuple[str, str], Licence]:
    """Return the terms that a dataset calls by a name, by dataset and name; under an empty dataset, the strictest that
    any dataset calls so.
    """
    found: dict[tuple[str, str], Licence] = {}
    for (dataset, _), licence in stated.items():
        for key in ((dataset, licence.name), ("", licence.name)) if licence.kind == "term" else ():
            found[key] = max(licence, found.get(key, licence), key=strictness)
    return found


def _licence(asset: Asset, named: Mapping[tuple[str, str], Licence]) -> Licence:
    """Return the licence of an asset whose source has another one; terms are those of its dataset, if it has them."""
    if asset.licence_kind == "unknown":
        return UNKNOWN
    if asset.licence_kind == "spdx":
        return Licence("spdx", asset.licence)
    known = named.get((asset.dataset, asset.licence)) or named.get(("", asset.licence))
    return known or Licence("term", asset.licence)


def _source(key: tuple[str, str, str], tally: _Tally) -> SourceRights:
    asked = conditions_of(tally.licence)
    return SourceRights(
        dataset=key[0],
        source=key[1],
        origins=tuple(sorted(tally.origins)),
        licence=key[2],
        licence_kind=tally.licence.kind,
        licence_url=tally.licence.url,
        reason=tally.licence.reason,
        images=tally.kinds["image"],
        texts=tally.kinds["text"],
        with_licence=tally.licensed,
        with_origin=tally.placed,
        conditions=tuple(condition for condition in ORDER if condition in asked),
        with_hint=tally.hinted,
        contradictions=tuple(tally.against),
        contradicting=tally.contradicting,
    )


def _demands(sources: Iterable[SourceRights]) -> Iterator[Demand]:
    """Return what the combination asks for: a condition of one part binds the whole."""
    parts: dict[Condition, dict[str, None]] = {}
    for source in sources:
        said = f"{source.name}: {source.licence or 'no licence is known'}"
        for condition in source.conditions:
            parts.setdefault(condition, {})[said] = None
    return (Demand(condition=each, sources=tuple(parts[each])) for each in ORDER if each in parts)


def contradicts(hint: str, licence: Licence) -> bool:
    """Return whether metadata name another Creative Commons licence than the stated one, or reserve all rights although
    the stated licence allows to pass the material on.
    """
    if _RESERVED.search(hint) and licence.kind != "unknown":
        return may_pass_on(conditions_of(licence))
    found = _CREATIVE_COMMONS.search(hint)
    if not found:
        return False
    said = (found[1] or found[2]).upper().replace(" ", "-")
    said = {"ZERO": "CC0", "0": "CC0", "MARK": "PUBLIC DOMAIN"}.get(said, f"CC-{said}")
    stated = licence.name.upper()
    version = re.match(re.escape(said) + r"(-\d|$)", stated)
    return not version and said not in stated.replace(" ", "-").split(";") and licence.kind != "unknown"


_TODO: Mapping[Condition, str] = {
    "no-redistribution": "Do not pass the files on, but the manifest and the lock: others build the same bytes from "
    "their own download",
    "no-derivatives": "Ask before passing on, because pages that are rendered or shrunk may be derivatives",
    "non-commercial": "State that the release is for non-commercial use",
    "share-alike": "Pass adaptations on under the same licence",
    "attribution": "Name the authors and the licences with the release",
}
"""What to do about a condition."""


def _advice(sources: Sequence[SourceRights], demands: Iterable[Demand]) -> Iterator[str]:
    """Yield what to do before the release is passed on, with reasons."""
    unknown = [f"{each.name} ({each.reason})" if each.reason else each.name for each in sources if _is_unknown(each)]
    if unknown:
        yield f"Find out the licence of {_named(unknown)}, or leave it out: without one, nobody may pass it on."
    asked = [f"{each.name}: {each.licence}" for each in sources if "ask-first" in each.conditions]
    if terms := [said for said in dict.fromkeys(asked) if not said.endswith(": ")]:
        yield f"Read the terms, or ask first, because it is not known here what they allow: {_named(terms)}."
    for demand in demands:
        if todo := _TODO.get(demand.condition):
            yield f"{todo}: {_named(demand.sources)} {'asks' if len(demand.sources) == 1 else 'ask'} for it."
    for each in sources:
        if each.contradicting:
            said = f"metadata of {each.contradicting:,} assets contradict {each.licence}"
            yield f"Look at {each.name}: {said}, such as {each.contradictions[0]}."
        if missing := each.assets - each.with_origin:
            yield f"Say where {missing:,} assets of {each.name} come from: in `downloads`, or in a table of licences."


def _is_unknown(source: SourceRights) -> bool:
    return source.licence_kind == "unknown"


def _named(parts: Sequence[str]) -> str:
    """Return the first parts, and how many more there are."""
    more = len(parts) - _FEW
    return "; ".join(parts[:_FEW]) + (f"; and {more:,} more" if more > 0 else "")
