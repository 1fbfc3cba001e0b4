"""The cost of a kill: CPU seconds of a build killed at 90 % and of its resumption, minus those of a build never killed.

Each build is the command in a process of its own, one worker, warm: sources are drawn, corpora indexed, rankings and
prices kept. The kill is SIGKILL when the process has used its share of the CPU seconds of the build before it; what
starting, reading the manifest and hashing the sources again cost is repeated work, too.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click
import yaml
from drawn import draw_reports, draw_visual_questions
from sources import spread

from mmlongbench.io.files import sha256_of

MOST = 0.15
"""Target: the most work that is repeated."""
LEAST = 30
"""CPU seconds that a build should take; in shorter builds the start would dominate."""
TICKS = os.sysconf("SC_CLK_TCK")


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--only", default="", help="Builds whose names begin so.")
@click.option("--copies", default=12, show_default=True, help="Times that twelve reports are drawn anew.")
@click.option("--questions", default=96, show_default=True, help="About pictures.")
@click.option("--at", "share", default=0.9, show_default=True, help="Share of the CPU seconds before the kill.")
@click.option("--rounds", type=click.IntRange(min=1), default=3, show_default=True)
def main(only: str, copies: int, questions: int, share: float, rounds: int) -> None:
    """Print the CPU seconds of whole, killed and resumed builds, and the work repeated."""
    worlds: dict[str, Callable[[Path], Mapping[str, Any]]] = {
        "docvqa": lambda root: draw_reports(root, copies),
        "vrag": lambda root: draw_visual_questions(root, questions),
    }
    for builder in (each for each in worlds if each.startswith(only)):
        with tempfile.TemporaryDirectory() as folder:
            manifest, out = Path(folder) / "manifest.yaml", Path(folder) / "release"
            _write(manifest, worlds[builder](Path(folder)))
            _built(manifest, out)  # so that rankings and prices are kept
            repeated = [_round(builder, manifest, out, share) for _ in range(rounds)]
        print(f"{builder}: work repeated {spread(repeated, '.1%')} of a build, target <= {MOST:.0%}")


def _write(manifest: Path, dataset: Mapping[str, Any]) -> None:
    source = {name: str(path) for name, path in dataset["source"].items()}
    corpus = {"corpus": str(dataset["corpus"])} if "corpus" in dataset else {}
    manifest.write_text(yaml.safe_dump({"datasets": [{**dataset, "source": source, **corpus}]}), "utf-8")


def _round(builder: str, manifest: Path, out: Path, share: float) -> float:
    """The work repeated after a kill, as a share of a whole build's."""
    whole, files = _built(manifest, out)
    killed, done = _killed(manifest, out, share * whole)
    resumed, again = _built(manifest, out)
    repeated = (killed + resumed - whole) / whole
    small = "" if whole >= LEAST else f"; less than {LEAST} s: draw more"
    print(
        f"{builder}: whole {whole:.1f} s CPU, killed at {killed:.1f} s ({killed / whole:.0%}, {done} shards done), "
        f"going on {resumed:.1f} s: repeated {repeated:.1%}; bytes {'the same' if files == again else 'DIFFER'}{small}"
    )
    return repeated


def _started(manifest: Path, out: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "mmlongbench", "build", str(manifest), "--out", str(out), "-q", "--workers", "1"]
    return subprocess.Popen(command)


def _built(manifest: Path, out: Path) -> tuple[float, dict[str, str]]:
    """CPU seconds of a build that comes to its end, and the SHA-256 of its files, which are removed."""
    process = _started(manifest, out)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise click.ClickException(f"the build ended with {process.returncode}")
    files = {path.relative_to(out).as_posix(): sha256_of(path) for path in out.rglob("*") if path.is_file()}
    shutil.rmtree(out)
    return used.ru_utime + used.ru_stime, files


def _killed(manifest: Path, out: Path, seconds: float) -> tuple[float, int]:
    """CPU seconds of a build that is killed when it has used so many, and how many shards it leaves done."""
    process = _started(manifest, out)
    while _used(process.pid) < seconds:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != -signal.SIGKILL:
        raise click.ClickException("the build was done before it could be killed; give another share: --at 0.8")
    done = sum(1 for stage in (out / ".build").glob("*/*/") for path in stage.rglob("[!.]*.jsonl"))
    return used.ru_utime + used.ru_stime, done


def _used(process: int) -> float:
    """Return the CPU seconds of a process so far; a process that has ended counts as having used its share."""
    fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return float("inf") if fields[0] == "Z" else (int(fields[11]) + int(fields[12])) / TICKS


if __name__ == "__main__":
    main()
