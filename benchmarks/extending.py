"""An extension of a finished release against a build of all in a new folder: seconds, images made, and the same bytes.

Warm, one worker. The source is the real MMLongBench-Doc subset beside the checkout, or drawn reports. Each round builds
the small release, extends it, and builds all at once.
"""

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
from drawn import draw_reports
from sources import REAL, spread

from mmlongbench.building.build import build
from mmlongbench.building.executors import LocalExecutor
from mmlongbench.io.files import sha256_of
from mmlongbench.io.progress import Progress
from mmlongbench.manifest.model import Manifest, SampleSpec

QUIET = Progress(is_shown=False)
ALL = (8, 32, 64)
"""The lengths of the whole release, in K."""


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--questions", default=40, show_default=True, help="Questions of the whole release.")
@click.option("--copies", default=4, show_default=True, help="Times that twelve reports are drawn, without real ones.")
@click.option("--rounds", type=click.IntRange(min=1), default=3, show_default=True)
def main(questions: int, copies: int, rounds: int) -> None:
    """Print the seconds of extensions and of builds in a new folder, and whether the bytes are the same."""
    with _source(copies) as dataset:
        whole = _manifest(dataset, ALL, questions)
        begun = {
            "one more length (64K)": _manifest(dataset, ALL[:2], questions),
            "a tenth more questions": _manifest(dataset, ALL, questions * 10 // 11),
            "twice the questions, one more length": _manifest(dataset, ALL[:2], questions // 2),
        }
        for name, small in begun.items():
            found = [_round(name, small, whole) for _ in range(rounds)]
            print(f"{name}: an extension takes {spread(found)} of the time of a new build")


@contextmanager
def _source(copies: int) -> Iterator[dict[str, Any]]:
    real = REAL.parent
    if (real / "samples.json").is_file():
        source = {"samples": real / "samples.json", "documents": REAL}
        yield {"name": "mmlongdoc", "builder": "docvqa", "reader": "mmlongbench_doc", "source": source}
        return
    with tempfile.TemporaryDirectory() as drawn:
        yield draw_reports(Path(drawn), copies)


def _manifest(dataset: dict[str, Any], lengths: tuple[int, ...], questions: int) -> Manifest:
    more = {"lengths": tuple(1024 * k for k in lengths), "sample": SampleSpec(n=questions)}
    return Manifest.model_validate({"datasets": [{**dataset, **more}]})


def _round(name: str, small: Manifest, whole: Manifest) -> float:
    """Return the seconds of an extension divided by those of a new build."""
    with tempfile.TemporaryDirectory() as folder:
        out, new = Path(folder) / "extended", Path(folder) / "new"
        _seconds(small, out)
        before = {path: path.stat().st_ino for path in (out / "mmlb_image").rglob("*.*")}
        extending, building = _seconds(whole, out), _seconds(whole, new)
        images = sum(1 for _ in (out / "mmlb_image").rglob("*.*"))
        same = "the same" if _files(out) == _files(new) else "DIFFER"
        again = sum(path.stat().st_ino != inode for path, inode in before.items())
        print(
            f"{name}: {extending:.1f} s against {building:.1f} s; {images - len(before)} of {images} images made, "
            f"{again} of the old ones made again; bytes {same}"
        )
        return extending / building


def _seconds(manifest: Manifest, out: Path) -> float:
    begun = time.perf_counter()
    build(manifest, out, LocalExecutor(1, QUIET))
    return time.perf_counter() - begun


def _files(out: Path) -> dict[str, str]:
    return {path.relative_to(out).as_posix(): sha256_of(path) for path in sorted(out.rglob("*")) if path.is_file()}


if __name__ == "__main__":
    main()
