"""Makes a training mix of a release: chooses examples, compares them with evaluation releases, and exports them with a
receipt.
"""

import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from mmlongbench.draws import digest
from mmlongbench.errors import ReleaseError
from mmlongbench.exports.export import Choices, check_choices, export_cells
from mmlongbench.exports.target import Exported
from mmlongbench.io.files import sha256_of
from mmlongbench.io.progress import Progress
from mmlongbench.lengths import format_length
from mmlongbench.likeness import BITS, GRAM, SAME
from mmlongbench.manifest.mix import Measure, MixSpec
from mmlongbench.mixes.choosing import Candidate, Chosen, Offer, choose, offer_of
from mmlongbench.mixes.overlaps import KINDS, Comparison, Evaluation, Overlap, Sides
from mmlongbench.release.example_cost import placement_of
from mmlongbench.release.release import Release, open_release
from mmlongbench.release.selection import Cell

RECEIPT = "mix.json"
"""The file of the receipt."""
OVERLAPS = "overlaps.jsonl"
"""The file of what was left out because an evaluation release has it: an `Overlap` a line."""
RULES = {
    "document": "the same name but for case and punctuation, or a page that is like a page of the document",
    "question": f"the same words, {GRAM} words in a row or a resemblance of {SAME}, about the same thing or with the "
    "same answer",
    "picture": f"the same bytes, or a difference of at most {BITS} of 64 bits, confirmed by 256 bits and colours",
    "passage": "the same words",
}
"""When two things count as the same, by kind."""


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ShareReached(_Part):
    """A share of a mix."""

    kind: str
    """`task` or `length`."""
    name: str
    """The name of the task, or the length, such as `8K`."""
    measure: Measure
    """What the shares are shares of."""
    asked: float
    """The share that was asked, from 0 to 1."""
    reached: float
    """The share that the mix has."""
    examples: int
    tokens: int


class CellTaken(_Part):
    """The examples of a dataset at a length."""

    dataset: str
    length: str
    examples: int
    tokens: int


class Compared(_Part):
    """A comparison with an evaluation release."""

    release: str
    """The name of its folder."""
    lock: str
    """The first digits of the hash of its lock."""
    shows: Sides


class Disjoint(_Part):
    """The proof that a mix shares nothing with evaluation releases."""

    shows: Sides
    """What was compared of the examples that may be in the mix."""
    evaluations: tuple[Compared, ...]
    rules: dict[str, str]
    """When two things count as the same, by kind."""
    examples_left_out: int
    """The examples that share something with an evaluation release; `overlaps.jsonl` lists them."""
    left_out_by_kind: dict[str, int]
    """How many of them share a document, a question, a picture or a passage; one may share several."""


class FileMade(_Part):
    """A file of the export."""

    bytes: int
    sha256: str


class MixReceipt(_Part):
    """What a mix is, and what it was made of: `mix.json`. It has no time and no path of this machine."""

    lock: str
    """The first digits of the hash of the lock of the release."""
    mix: MixSpec
    """The mix as it was asked; of evaluation releases, the names of their folders."""
    tokens: int
    """The tokens of all prompts together, as the release counts them; answers are not in it."""
    examples: int
    shares: tuple[ShareReached, ...]
    """Each share that was asked."""
    cells: tuple[CellTaken, ...]
    """What was taken of each dataset at each length."""
    unanswered: int
    """The examples of these datasets and lengths that the release has no answer for."""
    digest: str
    """A hash of which examples are in the mix."""
    disjoint: Disjoint | None
    """The proof that it shares nothing with evaluation releases; None: it was not compared with any."""
    versions: dict[str, str]
    """The packages that made it."""
    files: dict[str, FileMade]
    """The files beside this one."""


@dataclass(frozen=True, slots=True)
class Mixed:
    """A mix that was exported."""

    exported: Exported
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
    """Export a training mix of a release (see `mmlongbench.export_mix`); folders of `disjoint_from` are used as they
    are.
    """
    shown = progress or Progress(False)
    check_choices(release, target, out, choices)
    offer, left_out = offer_of(release, spec), list[Overlap]()
    comparison = _comparison(release, spec, shown) if spec.disjoint_from else None
    if comparison and drops_overlap:
        left_out = list(_overlaps(release, comparison, offer.candidates, shown))
        shared = {_example_of(each) for each in left_out}
        offer = offer.only(
            spec, lambda each: (each.dataset, format_length(each.length), each.id, each.placement) not in shared
        )
    try:
        chosen = choose(spec, offer)
    except ReleaseError as error:
        dropped = len({_example_of(each) for each in left_out})
        more = f"; {dropped:,} examples were left out because an evaluation release has them" if dropped else ""
        raise ReleaseError(f"{error}{more}") from error
    examples = len(chosen.candidates)
    if comparison:
        _refuse(list(_overlaps(release, comparison, chosen.candidates, shown)), examples)
    receipt = _receipt(release, spec, offer, chosen, _proof(comparison, left_out) if comparison else None)
    finished: list[MixReceipt] = []

    def finish(folder: Path, written: Exported) -> None:
        if written.left_out or written.examples != examples:
            named = "; ".join(written.left_out[:3]) or "it names none that it left out"
            raise ReleaseError(
                f"mix: {written.examples:,} of {examples:,} examples were written, so the mix would not be what its "
                f"receipt says: {named}; use a target, or datasets, whose examples can all be written"
            )
        if comparison and drops_overlap:
            lines = "".join(f"{each.model_dump_json()}\n" for each in left_out)
            (folder / OVERLAPS).write_text(lines, "utf-8")
        finished.append(receipt.model_copy(update={"files": dict(_files(folder))}))
        (folder / RECEIPT).write_text(finished[0].model_dump_json(indent=1) + "\n", "utf-8")

    exported = export_cells(release, _cells(release, chosen.candidates), target, out, choices, finish)
    return Mixed(exported, finished[0])


def _comparison(release: Release, spec: MixSpec, progress: Progress) -> Comparison:
    evaluations = []
    with progress.bar("evaluation releases read", len(spec.disjoint_from)) as advance:
        for folder in spec.disjoint_from:
            try:
                evaluations.append(Evaluation(open_release(Path(folder), release.tasks)))
            except ReleaseError as error:
                raise ReleaseError(f"mix: disjoint_from {folder}: {error}") from error
            advance()
    return Comparison(release, evaluations)


def _overlaps(
    release: Release, comparison: Comparison, candidates: Sequence[Candidate], progress: Progress
) -> Iterator[Overlap]:
    with progress.bar("examples compared", len(candidates)) as advance:
        for cell in _cells(release, candidates):
            for example in cell.examples():
                yield from comparison.overlaps(example, placement_of(example.record))
                advance()


def _cells(release: Release, candidates: Iterable[Candidate]) -> list[Cell]:
    keys: dict[tuple[str, int], set[tuple[str, float | None]]] = defaultdict(set)
    for each in candidates:
        keys[each.dataset, each.length].add((each.id, each.placement))
    return [
        Cell(release, dataset, length, lambda id: True, None, frozenset(keys[dataset, length]))
        for dataset in release.datasets
        for length in release.lengths(dataset)
        if (dataset, length) in keys
    ]


def _example_of(overlap: Overlap) -> tuple[str, str, str, float | None]:
    return overlap.dataset, overlap.length, overlap.id, overlap.placement


def _refuse(overlaps: Sequence[Overlap], examples: int) -> None:
    """Stop if something is shared; the error names the first overlap of each kind."""
    if not overlaps:
        return
    count = len({_example_of(each) for each in overlaps})
    first = {each.kind: each for each in reversed(overlaps)}
    named = "; ".join(f"{first[kind]} ({first[kind].evaluation})" for kind in KINDS if kind in first)
    by_kind = Counter(each.kind for each in overlaps)
    counts = ", ".join(f"{kind} {by_kind[kind]:,}" for kind in KINDS if by_kind[kind])
    raise ReleaseError(
        f"mix: {count:,} of {examples:,} examples share something with an evaluation release ({counts}): {named}; "
        "--drop-overlap leaves such examples out and lists them, or build the release from other sources"
    )


def _proof(comparison: Comparison, left_out: Sequence[Overlap]) -> Disjoint:
    by_kind = Counter(each.kind for each in left_out)
    return Disjoint(
        shows=comparison.compared,
        evaluations=tuple(
            Compared(release=each.name, lock=each.lock, shows=each.compared) for each in comparison.evaluations
        ),
        rules=RULES,
        examples_left_out=len({_example_of(each) for each in left_out}),
        left_out_by_kind={kind: by_kind[kind] for kind in KINDS if by_kind[kind]},
    )


def _receipt(release: Release, spec: MixSpec, offer: Offer, chosen: Chosen, proof: Disjoint | None) -> MixReceipt:
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
    keys = sorted((each.dataset, each.length, each.id, str(each.placement)) for each in chosen.candidates)
    versions = {}
    for package in ("mmlongbench", "scipy", *(("imagehash", "datasketch") if proof else ())):
        with suppress(PackageNotFoundError):
            versions[package] = version(package)
    return MixReceipt(
        lock=release.lock_id,
        mix=spec.model_copy(update={"disjoint_from": tuple(Path(each).resolve().name for each in spec.disjoint_from)}),
        tokens=sum(chosen.tokens),
        examples=len(chosen.candidates),
        shares=tuple(shares),
        cells=tuple(
            CellTaken(dataset=name, length=format_length(length), examples=len(tokens), tokens=sum(tokens))
            for (name, length), tokens in sorted(cells.items())
        ),
        unanswered=offer.unanswered,
        digest=digest(*(part for key in keys for part in key)).hex(),
        disjoint=proof,
        versions=versions,
        files={},
    )


def _files(folder: Path) -> Iterator[tuple[str, FileMade]]:
    """Yield each file below a folder by its path; links are not followed."""
    for root, folders, names in os.walk(folder):
        folders.sort()
        for path in (Path(root, name) for name in sorted(names)):
            if not path.is_symlink():
                made = FileMade(bytes=path.stat().st_size, sha256=sha256_of(path))
                yield path.relative_to(folder).as_posix(), made
