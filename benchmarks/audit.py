"""The audit on models and `verify`: images counted a second for every family against decoding them, files checked a
second against `sha256sum`, and memory over examples.

2,000 drawn JPEG photographs whose sizes repeat, as those of a collection do, in examples of 128K. Cold: links, header,
EXIF orientation, oddities and all rules, in a process that has seen none; warm: their sizes known. CPU time on one
core, side by side in one run, in turn.
"""

import hashlib
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import click
from PIL import Image
from worlds import spread

from mmlongbench.documents.limits import MAX_PIXELS
from mmlongbench.documents.pixels import header_size
from mmlongbench.io.files import Links
from mmlongbench.release.lock import LockedFile, problem_of
from mmlongbench.release.verify import undecodable
from mmlongbench.task import Draws
from tokenization import vision_rules

SIZES = ((640, 480), (640, 427), (640, 428), (480, 640), (640, 426), (500, 375), (427, 640), (640, 360), (612, 612))
"""The most frequent picture sizes of COCO."""
RARE = 40
"""One picture in this many has a unique size."""
IMAGES = 368
"""Pictures of a Visual Haystacks example of 128K."""
TARGETS = {"cold": 40.0, "warm": 150.0, "hashes": 0.7, "verify": 0.7}
"""The smallest ratios to decoding; of `verify`, to `sha256sum`."""
_COLD = """
import sys, time
from pathlib import Path
from mmlongbench.release.example_cost import ImageSizes
from tokenization import vision_rules
import PIL.JpegImagePlugin
rules = [rule for name, rule in vision_rules().items() if not rule.variant_of]
folder, images = Path(sys.argv[1]), int(sys.argv[2])
names = sorted(file.name for file in folder.glob("*.jpg"))
start = time.process_time()
known = ImageSizes(folder)
sizes = [known[name] for name in names]
for rule in rules:
    for at in range(0, len(sizes), images):
        rule.total(sizes[at : at + images])
print(time.process_time() - start)
"""


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--images", "count", default=2000, show_default=True)
@click.option("--rounds", default=5, show_default=True)
def main(count: int, rounds: int) -> None:
    """Print images a second, ratios with their spread, and the memory of audits of 200 and 2,000 examples."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        files = _draw(root / "mmlb_image/vh", count)
        rules = [rule for rule in vision_rules().values() if not rule.variant_of]
        sizes, links, locked = [header_size(file) for file in files], Links(root), {}
        for file in files:
            data = file.read_bytes()
            locked[f"mmlb_image/vh/{file.name}"] = LockedFile(bytes=len(data), sha256=hashlib.sha256(data).hexdigest())

        def warm() -> None:
            for rule in rules:
                for at in range(0, count, IMAGES):
                    rule.total(sizes[at : at + IMAGES])

        ways: dict[str, Callable[[], float]] = {
            "decoding": lambda: _timed(lambda: [_decode(file) for file in files]),
            "cold": lambda: _cold(files[0].parent),
            "warm": lambda: _timed(warm),
            "sha256sum": lambda: _sha256sum(files),
            "hashes": lambda: _timed(lambda: [problem_of(links, *each) for each in locked.items()]),
            "verify": lambda: _timed(
                lambda: [problem_of(links, *each) or undecodable(root / each[0], MAX_PIXELS) for each in locked.items()]
            ),
        }
        times: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(rounds):
            for name, way in ways.items():
                times[name].append(way())
        click.echo(f"{count} images, {len(set(sizes))} sizes, {len(rules)} families, {rounds} rounds: medians")
        against = "decoding"
        for name, seconds in times.items():
            against = name if name == "sha256sum" else against
            ratio = spread([one / each for one, each in zip(times[against], seconds, strict=True)])
            target = f"target >= {TARGETS[name]:g}" if name in TARGETS else ""
            per_second = count / statistics.median(seconds)
            click.echo(f"  {name:<9} {per_second:>10,.0f} images/s  {ratio:>26} × {against:<9} {target}".rstrip())
        peaks = {n: _peak(root, [file.name for file in files], n) for n in (200, 2000)}
        click.echo(
            f"peak RSS: 200 examples {peaks[200]:.0f} MB, 2,000 {peaks[2000]:.0f} MB: {peaks[2000] / peaks[200]:.2f}×"
        )


def _draw(folder: Path, count: int) -> list[Path]:
    """Photographs of noise on gradients, as costly to decode as real ones."""
    folder.mkdir(parents=True)
    draws, files = Draws(("audit benchmark",)), []
    noise = {size: Image.effect_noise(size, 40).convert("RGB") for size in SIZES}
    for number in range(count):
        size = draws.choice(str(number), SIZES)
        if number % RARE == 0:
            size = (size[0] - number % 97 - 1, size[1] - number % 89)
        picture = noise.get(size) or Image.effect_noise(size, 40).convert("RGB")
        files.append(folder / f"{number:06}.jpg")
        picture.save(files[-1], quality=85)
    return files


def _decode(file: Path) -> tuple[int, int]:
    with Image.open(file) as picture:
        picture.load()
        return picture.size


def _timed(function: Callable[[], object]) -> float:
    start = time.process_time()
    function()
    return time.process_time() - start


def _cold(folder: Path) -> float:
    """Seconds in a process that has counted nothing yet, without its start."""
    command = [sys.executable, "-c", _COLD, str(folder), str(IMAGES)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def _sha256sum(files: list[Path]) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(["sha256sum", *files], capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _peak(folder: Path, names: list[str], examples: int) -> float:
    """Return the MB that an audit of this many Visual Haystacks examples of 128K takes."""
    path = folder / f"mmlb_data/NIAH/vh_single_test_{examples}_K128_dep6.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        for number in range(examples):
            start = number % (len(names) - IMAGES)
            ctxs = [f"vh/{name}" for name in names[start : start + IMAGES]]
            file.write(
                json.dumps({"id": f"vh_single-{number}", "question": "Is it there?", "answer": "Yes", "ctxs": ctxs})
            )
            file.write("\n")
    command = [sys.executable, "-c", _AUDIT, "audit", str(path), "--count-as", "all", "-q"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(done.stdout.splitlines()[-1]) / 1024


_AUDIT = """
from pathlib import Path
from mmlongbench.cli import main
try:
    main()
except SystemExit:  # `getrusage` would include the memory of the parent at the start
    words = Path("/proc/self/status").read_text().split()
    print(words[words.index("VmHWM:") + 1])
"""


if __name__ == "__main__":
    main()
