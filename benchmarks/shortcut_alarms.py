"""False alarms of the shortcut audit: the share of clean releases in which it finds something."""

import multiprocessing
import tempfile
from collections import Counter, defaultdict
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import click
from pydantic import BaseModel
from shortcut_bases import build_clean
from shortcut_clean import Clean, Questions, draw_files, relabelled

from mmlongbench.io.progress import Progress
from mmlongbench.release.layout import IMAGES
from mmlongbench.release.release import open_release
from mmlongbench.shortcuts.audit import audit_shortcuts, has_requested_places
from mmlongbench.shortcuts.depths import UNEVEN, Depths
from mmlongbench.shortcuts.features import ImageFacts
from mmlongbench.shortcuts.findings import Verdict
from mmlongbench.shortcuts.leakage import Leakage
from mmlongbench.shortcuts.measured import Measured, uniforms
from mmlongbench.shortcuts.probes import Kept, keep_one, measure
from mmlongbench.shortcuts.reading import asked_questions
from mmlongbench.shortcuts.verdicts import judge
from mmlongbench.statistics import wilson

MOST_DATASETS = 3
SIZES = ((6, 12), (12, 30), (30, 60))
"""How many subjects a dataset has: few, some, or many, equally often."""


class Tried(BaseModel):
    """What a probe said about a dataset of a clean release."""

    family: str
    kind: str
    questions: int
    clusters: int
    p: float | None
    """None if it was counted."""
    verdict: Verdict


class Audited(BaseModel):
    """What the audit said about a clean release."""

    number: int
    of: str
    """Where its questions are from: `drawn`, or the name of a release."""
    p: float | None
    tried: list[Tried]


class Drawn:
    """Audits clean releases that are drawn from files of a folder."""

    def __init__(self, folder: Path) -> None:
        self._clean, self._images = Clean(folder), ImageFacts(folder)

    def audited(self, number: int) -> Audited:
        """Draw a release of 1 to 3 datasets of different families and sizes, and audit it."""
        of = uniforms(1 + 3 * MOST_DATASETS, "clean release", number)
        names, tried = sorted(self._clean.families), []
        for at in range(1 + int(of[0] * MOST_DATASETS)):
            family, size, extra = of[1 + 3 * at : 4 + 3 * at]
            name = names[int(family * len(names))]
            low, high = SIZES[int(size * len(SIZES))]
            questions = self._clean.families[name](low + int(extra * (high - low)), f"{number} {at}")
            tried.append((name, questions, bool(extra < 0.5)))
        return _audited(number, "drawn", [(*each, self._images) for each in tried])


class Built:
    """Builds clean releases in a folder, and audits them as the command does."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def audited(self, number: int) -> Audited:
        """Build a release and audit it; its files are deleted."""
        with tempfile.TemporaryDirectory(dir=self._folder) as folder:
            audit = audit_shortcuts(open_release(build_clean(Path(folder), number)), Progress(is_shown=False))
        tried = [Tried(family="built", **each.model_dump(include=_FIELDS)) for each in audit.findings]
        return Audited(number=number, of="built", p=audit.p, tried=tried)


class Relabelled:
    """Audits the questions of a release whose golds and answers are drawn anew."""

    def __init__(self, release: Path) -> None:
        opened, self._name = open_release(release), release.name
        self._images = ImageFacts(release / IMAGES)
        self._datasets = []
        for name in opened.datasets:
            self._datasets.append((name, list(asked_questions(opened, name)), has_requested_places(opened, name)))

    def audited(self, number: int) -> Audited:
        """Draw other golds and answers, and audit all datasets."""
        drawn = [(name, relabelled(asked, f"{number} {name}"), has) for name, asked, has in self._datasets]
        return _audited(number, self._name, [(*each, self._images) for each in drawn])


def _audited(number: int, of: str, datasets: Sequence[tuple[str, Questions, bool, ImageFacts]]) -> Audited:
    measured, tried = list[tuple[str, str, Measured]](), list[Tried]()
    for at, (name, questions, has_depths, images) in enumerate(datasets):
        kept, counting = Kept(), (Leakage(f"{at}"), Depths(f"{at}"))
        for asked in questions:
            keep_one(kept, asked, images, has_depths=has_depths)
            for each in counting:
                each.add(asked)
        measured += [(name, "clean", each) for each in measure(kept)]
        counted = [finding for each in counting for finding in each.findings() if finding.kind != UNEVEN]
        tried += [Tried(family=name, **each.model_dump(include=_FIELDS)) for each in counted]
    judged = judge(measured)
    tried += [Tried(family=each.dataset, **each.model_dump(include=_FIELDS)) for each in judged.findings]
    return Audited(number=number, of=of, p=judged.p, tried=tried)


_FIELDS = {"kind", "questions", "clusters", "p", "verdict"}


@click.command()
@click.option("--releases", default=1000, show_default=True, help="How many clean releases are drawn.")
@click.option(
    "--of",
    "release",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="A built release: draw golds and answers for its questions anew, instead of drawing all.",
)
@click.option(
    "--built", "is_built", is_flag=True, help="Build each release, and audit its files; this takes seconds for each."
)
@click.option("--processes", default=2, show_default=True)
@click.option("--first", default=0, show_default=True, help="The number of the first release; others draw others.")
@click.option("--save", type=click.Path(path_type=Path, dir_okay=False), help="Keep what was said; done ones are kept.")
def clean(releases: int, release: Path | None, is_built: bool, processes: int, first: int, save: Path | None) -> None:
    """Audit clean releases: the share with p ≤ 0.05, the share with a leak, and both by kind of probe."""
    with tempfile.TemporaryDirectory() as folder:
        source, kind = release or Path(folder), Built if is_built else Relabelled if release else Drawn
        if kind is Drawn:
            draw_files(source)
        done = _read(save)
        todo = [number for number in range(first, first + releases) if number not in {each.number for each in done}]
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(processes, context, _start, (source, kind)) as pool:
            for found in pool.map(_one, todo, chunksize=1):
                done.append(found)
                if save:
                    with save.open("a", encoding="utf-8") as file:
                        file.write(f"{found.model_dump_json()}\n")
    _show([each for each in done if first <= each.number < first + releases])


def _read(save: Path | None) -> list[Audited]:
    lines = save.read_text("utf-8").splitlines() if save and save.is_file() else []
    return [Audited.model_validate_json(line) for line in lines]


_auditor: list[Drawn | Built | Relabelled] = []
"""What a process audits with; made once in each."""


def _start(source: Path, kind: type[Drawn | Built | Relabelled]) -> None:
    _auditor[:] = [kind(source)]


def _one(number: int) -> Audited:
    return _auditor[0].audited(number)


def _show(done: Sequence[Audited]) -> None:
    tried = [each for each in done if each.p is not None]
    click.echo(f"{len(done)} clean releases, {len(tried)} with p; {sum(len(each.tried) for each in done)} findings")
    click.echo(_share("p of the release at most 0.05", [each.p <= 0.05 for each in tried if each.p is not None]))
    click.echo(_share("p of the release at most 0.01", [each.p <= 0.01 for each in tried if each.p is not None]))
    click.echo(_share("a leak by p", [any(one.verdict == "leak" for one in each.tried if one.p) for each in tried]))
    click.echo(
        _share("a counted leak", [any(one.verdict == "leak" for one in each.tried if not one.p) for each in done])
    )
    rows: dict[str, list[Tried]] = defaultdict(list)
    for each in done:
        for one in each.tried:
            rows[one.kind].append(one)
            rows[f"{one.kind} · {one.family}"].append(one)
    for name, of in sorted(rows.items()):
        verdicts = Counter(one.verdict for one in of)
        said = ", ".join(f"{verdicts[each]} {each}" for each in ("leak", "clean", "undecided"))
        if of[0].p is None:
            click.echo(f"  {name:<64} {len(of):>5}  {said}")
        else:
            p = [one.p for one in of if one.p is not None]
            click.echo(f"{_share(f'  {name}', [each <= 0.05 for each in p])}  {said}; mean p {sum(p) / len(p):.2f}")


def _has_leak(audited: Audited, *, counted: bool) -> bool:
    return any(each.verdict == "leak" for each in audited.tried if (each.p is None) is counted)


def _share(name: str, hits: Sequence[bool]) -> str:
    """A line with a share and its Wilson interval.

    >>> _share("heads", [True, False]).split()
    ['heads', '2', '50.0', '%', '(9.5', 'to', '90.5)']
    """
    low, high = wilson(sum(hits) / max(1, len(hits)), len(hits))
    return (
        f"{name:<66} {len(hits):>5} {100 * sum(hits) / max(1, len(hits)):5.1f} % ({100 * low:.1f} to {100 * high:.1f})"
    )
