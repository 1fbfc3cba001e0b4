"""Makes a training mix of a release: chooses examples, compares them with evaluation releases, and exports them with a
receipt.
"""

import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from mmlongbench.draws import digest
from mmlongbench.errors import ReleaseError
from mmlongbench.exports.export import Choices, check_choices, export_cells
from mmlongbench.exports.target import Exported
from mmlongbench.io.files import sha256_of
from mmlongbench.io.progress import Progress
from mmlongbench.lengths import format_length
from mmlongbench.likeness import BITS, GRAM, SAME
from mmlongbench.manifest.mix import MixSpec
from mmlongbench.mixes.choosing import Chosen, choose
from mmlongbench.mixes.overlaps import KINDS, Comparison, Evaluation, Overlap
from mmlongbench.mixes.pools import Candidate, Offer, offer_of
from mmlongbench.mixes.receipt import (
    OVERLAPS,
    RECEIPT,
    CellTaken,
    Compared,
    Disjoint,
    FileMade,
    MixReceipt,
    ShareReached,
    Sides,
)
from mmlongbench.release.example_cost import placement_of
from mmlongbench.release.release import Release, open_release
from mmlongbench.release.selection import Cell

RULES = {
    "document": "the same name but for case and punctuation, or a page that is like a page of the document",
    "question": f"the same words, {GRAM} words in a row or a resemblance of {SAME}, about the same thing or with the "
    "same answer",
    "picture": f"the same bytes, or a difference of at most {BITS} of 64 bits, confirmed by 256 bits and colours",
    "passage": "the same words",
}
"""When two things count as the same, by kind."""
_NAMED = 3
_Key = tuple[str, str, str, float | None]


@dataclass(frozen=True, slots=True)
class Mixed:
    """A mix that was exported."""

    exported: Exported
    """What the target wrote."""
    receipt: MixReceipt
    """What the mix is; the folder has it as `mix.json`."""


def export_mix(
    release: Release,
    spec: MixSpec,
    target: str,
    out: Path,
    choices: Choices | None = None,
    *,
    drops_overlap: bool = False,
    progress: Progress | None = None,
) -> Mixed:
    """Export a training mix of a release.

    Args:
        release: the release.
        spec: the mix; folders of `disjoint_from` are used as they are.
        target: the name of an installed target.
        out: the folder, which is new or empty.
        choices: how the target writes.
        drops_overlap: whether examples that share something with an evaluation release are left out; otherwise the
            export stops if one of the mix does.
        progress: shows progress bars; None: none are shown.

    Raises:
        ReleaseError: the mix cannot be met, it shares something with an evaluation release, or the release, an
            evaluation release or `out` cannot be used.
        PluginError: the target, or a builder, is not installed, or is broken.

    """
    shown = progress or Progress(False)
    check_choices(release, target, out, choices)
    offer = offer_of(release, spec)
    comparison = _comparison(release, spec, shown)
    left_out: list[Overlap] = []
    if comparison and drops_overlap:
        left_out = list(_overlaps(release, comparison, offer.candidates, shown))
        shared = {_key_of(each) for each in left_out}
        offer = offer.only(spec, lambda each: _key(each) not in shared)
    chosen = _chosen(spec, offer, left_out)
    if comparison:
        _refuse(list(_overlaps(release, comparison, chosen.candidates, shown)), len(chosen.candidates))
    receipt = _receipt(release, spec, offer, chosen, _proof(comparison, left_out))
    found: list[MixReceipt] = []

    def finish(folder: Path, written: Exported) -> None:
        _check_whole(written, len(chosen.candidates))
        if comparison and drops_overlap:
            lines = "".join(f"{each.model_dump_json()}\n" for each in left_out)
            (folder / OVERLAPS).write_text(lines, "utf-8")
        found.append(receipt.model_copy(update={"files": dict(_files(folder))}))
        (folder / RECEIPT).write_text(found[0].model_dump_json(indent=1) + "\n", "utf-8")

    written = export_cells(release, _cells(release, chosen.candidates), target, out, choices, finish)
    return Mixed(written, found[0])


@dataclass(frozen=True, slots=True)
class _Compared:
    comparison: Comparison
    evaluations: Sequence[Evaluation]


def _comparison(release: Release, spec: MixSpec, progress: Progress) -> _Compared | None:
    """Return the comparison with all evaluation releases of a mix; None: it names none."""
    if not spec.disjoint_from:
        return None
    evaluations = []
    with progress.bar("evaluation releases read", len(spec.disjoint_from)) as advance:
        for folder in spec.disjoint_from:
            try:
                evaluations.append(Evaluation(open_release(Path(folder), release.tasks)))
            except ReleaseError as error:
                raise ReleaseError(f"mix: disjoint_from {folder}: {error}") from error
            advance()
    return _Compared(Comparison(release, evaluations), evaluations)


def _overlaps(
    release: Release, compared: _Compared, candidates: Sequence[Candidate], progress: Progress
) -> Iterator[Overlap]:
    """Yield what examples share with the evaluation releases."""
    with progress.bar("examples compared", len(candidates)) as advance:
        for cell in _cells(release, candidates):
            for example in cell.examples():
                yield from compared.comparison.overlaps(example, placement_of(example.record))
                advance()


def _cells(release: Release, candidates: Iterable[Candidate]) -> list[Cell]:
    """Return the cells of some examples, in the order of the release."""
    keys: dict[tuple[str, int], set[tuple[str, float | None]]] = defaultdict(set)
    for each in candidates:
        keys[each.dataset, each.length].add((each.id, each.placement))
    return [
        Cell(release, dataset, length, lambda id: True, None, frozenset(keys[dataset, length]))
        for dataset in release.datasets
        for length in release.lengths(dataset)
        if (dataset, length) in keys
    ]


def _key(each: Candidate) -> _Key:
    return each.dataset, format_length(each.length), each.id, each.placement


def _key_of(overlap: Overlap) -> _Key:
    return overlap.dataset, overlap.length, overlap.id, overlap.placement


def _chosen(spec: MixSpec, offer: Offer, left_out: Sequence[Overlap]) -> Chosen:
    try:
        return choose(spec, offer)
    except ReleaseError as error:
        dropped = len({_key_of(each) for each in left_out})
        more = f"; {dropped:,} examples were left out because an evaluation release has them" if dropped else ""
        raise ReleaseError(f"{error}{more}") from error


def _refuse(found: Sequence[Overlap], examples: int) -> None:
    """Stop if something is shared.

    Raises:
        ReleaseError: something is; the error names the first overlap of each kind.

    """
    if not found:
        return
    count = len({_key_of(each) for each in found})
    first = {each.kind: each for each in reversed(found)}
    named = "; ".join(f"{first[kind]} ({first[kind].evaluation})" for kind in KINDS if kind in first)
    by_kind = Counter(each.kind for each in found)
    counts = ", ".join(f"{kind} {by_kind[kind]:,}" for kind in KINDS if by_kind[kind])
    raise ReleaseError(
        f"mix: {count:,} of {examples:,} examples share something with an evaluation release ({counts}): {named}; "
        "--drop-overlap leaves such examples out and lists them, or build the release from other sources"
    )


def _check_whole(written: Exported, examples: int) -> None:
    """Check that a target wrote all examples of a mix, because the receipt counts them.

    Raises:
        ReleaseError: it did not.

    """
    if written.left_out or written.examples != examples:
        named = "; ".join(written.left_out[:_NAMED]) or "it names none that it left out"
        raise ReleaseError(
            f"mix: {written.examples:,} of {examples:,} examples were written, so the mix would not be what its "
            f"receipt says: {named}; use a target, or datasets, whose examples can all be written"
        )


def _proof(compared: _Compared | None, left_out: Sequence[Overlap]) -> Disjoint | None:
    if compared is None:
        return None
    kinds = Counter(each.kind for each in left_out)
    return Disjoint(
        shows=Sides(**asdict(compared.comparison.compared)),
        evaluations=tuple(
            Compared(release=each.name, lock=each.lock, shows=Sides(**asdict(each.compared)))
            for each in compared.evaluations
        ),
        rules=RULES,
        examples_left_out=len({_key_of(each) for each in left_out}),
        left_out_by_kind={kind: kinds[kind] for kind in KINDS if kinds[kind]},
    )


def _receipt(release: Release, spec: MixSpec, offer: Offer, chosen: Chosen, proof: Disjoint | None) -> MixReceipt:
    names = tuple(Path(folder).resolve().name for folder in spec.disjoint_from)
    cells: dict[tuple[str, int], list[int]] = defaultdict(list)
    for each in chosen.candidates:
        cells[each.dataset, each.length].append(each.tokens)
    shares = [
        ShareReached(
            kind=row.kind,
            name=row.name,
            measure=row.measure,
            asked=round(row.share, 6),
            reached=round(chosen.reached(row), 6),
            examples=sum(chosen.counts[place] for place in row.columns),
            tokens=sum(chosen.tokens[place] for place in row.columns),
        )
        for row in chosen.rows
    ]
    parts = [part for each in sorted(map(_sortable, chosen.candidates)) for part in each]
    return MixReceipt(
        lock=release.lock_id,
        mix=spec.model_copy(update={"disjoint_from": names}),
        tokens=sum(chosen.tokens),
        examples=len(chosen.candidates),
        shares=tuple(shares),
        cells=tuple(
            CellTaken(dataset=name, length=format_length(length), examples=len(found), tokens=sum(found))
            for (name, length), found in sorted(cells.items())
        ),
        unanswered=offer.unanswered,
        digest=digest(*parts).hex(),
        disjoint=proof,
        versions=dict(_versions("mmlongbench", "scipy", *(("imagehash", "datasketch") if proof else ()))),
        files={},
    )


def _sortable(each: Candidate) -> tuple[str, int, str, str]:
    return each.dataset, each.length, each.id, str(each.placement)


def _versions(*names: str) -> Iterator[tuple[str, str]]:
    for name in names:
        with suppress(PackageNotFoundError):
            yield name, version(name)


def _files(folder: Path) -> Iterator[tuple[str, FileMade]]:
    """Yield each file below a folder by its path; links are not followed."""
    for root, folders, names in os.walk(folder):
        folders.sort()
        for path in (Path(root, name) for name in sorted(names)):
            if not path.is_symlink():
                made = FileMade(bytes=path.stat().st_size, sha256=sha256_of(path))
                yield path.relative_to(folder).as_posix(), made
