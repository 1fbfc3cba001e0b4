"""Leaks that are planted in built releases, and what the audit says about them."""

import multiprocessing
import re
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import click
from pydantic import BaseModel
from shortcut_bases import REAL, build_drawn, build_real
from shortcut_leaks import LEAKS, Leak
from shortcut_target import Base

from mmlongbench.io.progress import Progress
from mmlongbench.release.release import open_release
from mmlongbench.shortcuts.audit import audit_shortcuts
from mmlongbench.shortcuts.findings import Finding

STRENGTHS = {"weak": 0.2, "medium": 0.5, "strong": 1.0}
"""The share of golds or questions that carry a leak. What is counted is planted a tenth as often, once at least."""


class Row(BaseModel):
    """What the audit says about one planted leak."""

    leak: str
    release: str
    dataset: str
    strength: str
    questions: int
    found: bool
    is_known: bool
    """Whether the same finding is a leak of the release as it was built, so that it does not show the planted one."""
    before: float | None
    """The excess of the same finding in the release as it was built."""
    kind: str
    """The finding with the smallest p, or the largest excess, among those that are right; rather a new leak."""
    excess: float | None
    p: float | None
    p_release: float | None
    wrong: list[str]
    """What was reported besides, and is not reported about the release as it was built."""


class Job(BaseModel):
    """One leak to plant."""

    leak: str
    release: Path
    dataset: str
    strength: str
    known: list[str]
    """The leaks of the release as it was built."""
    before: dict[str, float]
    """The excess of each finding of the release as it was built."""


@click.command()
@click.option("--keep", type=click.Path(path_type=Path, file_okay=False), help="Keep the built releases there.")
@click.option("--only", default="", help="Leaks whose names begin so.")
@click.option("--length", default="32K", show_default=True, help="The length of the real release.")
@click.option("--processes", default=2, show_default=True)
@click.option("--save", type=click.Path(path_type=Path, dir_okay=False), help="Keep the rows; done ones are kept.")
def planted(keep: Path | None, only: str, length: str, processes: int, save: Path | None) -> None:
    """Plant leaks at three strengths in a drawn release and in the real subset, and audit each."""
    with tempfile.TemporaryDirectory() as folder:
        root = keep or Path(folder)
        releases = [root / "drawn" if (root / "drawn").is_dir() else build_drawn(root)]
        if REAL.is_dir():
            releases.append(root / "real" if (root / "real").is_dir() else build_real(root, length))
        done = (
            [Row.model_validate_json(line) for line in save.read_text("utf-8").splitlines()]
            if save and save.is_file()
            else []
        )
        known = {(each.leak, each.release, each.dataset, each.strength) for each in done}
        jobs = [
            each
            for each in _jobs(releases, only)
            if (each.leak, each.release.name, each.dataset, each.strength) not in known
        ]
        with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
            for row in pool.map(_planted, jobs):
                click.echo(_line(row))
                done.append(row)
                if save:
                    with save.open("a", encoding="utf-8") as file:
                        file.write(f"{row.model_dump_json()}\n")
    _show(done)


def _jobs(releases: Sequence[Path], only: str) -> Iterator[Job]:
    for release in releases:
        for dataset in open_release(release).datasets:
            built = _audited(release, dataset, None)
            known, before = _leaks(built), {each.kind: each.excess for each in built.all}
            click.echo(f"{release.name}, {dataset} as built: {', '.join(known) or 'no leak'}")
            for name, leak in LEAKS.items():
                if dataset in leak.datasets and name.startswith(only):
                    for strength in STRENGTHS:
                        about = {"leak": name, "release": release, "dataset": dataset, "strength": strength}
                        yield Job.model_validate({**about, "known": known, "before": before})


def _planted(job: Job) -> Row:
    leak = LEAKS[job.leak]
    with tempfile.TemporaryDirectory(dir=job.release.parent) as folder:  # on the same disk, for hard links
        base = Base.of(job.release, job.dataset)
        target = base.copied(Path(folder) / "planted", STRENGTHS[job.strength])
        leak.plant(target)
        root = target.save()
        findings = _audited(root, job.dataset, target.elsewhere if leak.against else None)
    return _row(job, leak, findings)


def _row(job: Job, leak: Leak, findings: "_Findings") -> Row:
    right = [each for each in findings.all if re.fullmatch(leak.finding, each.kind)]
    best = min(
        right,
        key=lambda each: (each.verdict != "leak" or each.kind in job.known, each.p or 0, -each.excess),
        default=None,
    )
    allowed = re.compile(f"{leak.finding}|{leak.also}")
    wrong = [kind for kind in _leaks(findings) if kind not in job.known and not allowed.fullmatch(kind)]
    return Row(
        **job.model_dump(exclude={"release", "known", "before"}),
        release=job.release.name,
        questions=best.questions if best else 0,
        found=best is not None and best.verdict == "leak",
        is_known=best is not None and best.kind in job.known,
        before=job.before.get(best.kind) if best else None,
        kind=best.kind if best else "no finding",
        excess=best.excess if best else None,
        p=best.p if best else None,
        p_release=findings.p,
        wrong=wrong,
    )


class _Findings(BaseModel):
    all: list[Finding]
    p: float | None


def _audited(release: Path, dataset: str, against: Path | None) -> _Findings:
    found = audit_shortcuts(open_release(release), Progress(is_shown=False), [dataset], against)
    return _Findings(all=list(found.findings), p=found.p)


def _leaks(findings: _Findings) -> list[str]:
    return [each.kind for each in findings.all if each.verdict == "leak"]


def _line(row: Row) -> str:
    excess = "–" if row.excess is None else f"{100 * row.excess:.0f}"
    was = f" (was {100 * row.before:.0f})" if row.before is not None and row.is_known else ""
    p = "–" if row.p is None else f"{row.p:.2g}"
    said = f"{row.leak:<28} {row.release:<6} {row.dataset:<15} {row.strength:<7} {row.questions:>4}"
    wrong = f"  besides: {', '.join(row.wrong)}" if row.wrong else ""
    found = "as built" if row.is_known else "found" if row.found else "missed"
    return f"{said}  {found:<8}  {excess:>4}{was}  {p:>8}  {row.kind}{wrong}"


def _show(done: Sequence[Row]) -> None:
    """Print how many leaks are found, without those whose findings are leaks of the release as it was built."""
    for release in sorted({each.release for each in done}):
        for strength in STRENGTHS:
            of = [each for each in done if (each.release, each.strength) == (release, strength)]
            new = [each for each in of if not each.is_known]
            found, kinds = sum(each.found for each in new), len({each.leak for each in new})
            wrong = sum(bool(each.wrong) for each in of)
            said = f"{release}, {strength}: {found} of {len(new)} leaks found, of {kinds} kinds"
            click.echo(f"{said}; something else is reported in {wrong} of {len(of)}")
