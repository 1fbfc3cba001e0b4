"""The audit on models: images counted a second for every family, against decoding them; memory over examples.

2,000 drawn JPEG photographs whose sizes repeat, as those of a collection do. Cold: header, EXIF orientation and all
rules, in a process that has seen none; warm: their sizes known. Side by side in one run, in turn.
"""

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import click
from PIL import Image

from mmlongbench.documents.pixels import header_size
from mmlongbench.task import Draws
from tokenization import vision_rules

SIZES = ((640, 480), (640, 427), (640, 428), (480, 640), (640, 426), (500, 375), (427, 640), (640, 360), (612, 612))
"""The most frequent picture sizes of COCO."""
RARE = 40
"""One picture in this many has a unique size."""
IMAGES = 368
"""Pictures of a Visual Haystacks example of 128K."""
_COLD = """
import sys, time
from pathlib import Path
from mmlongbench.documents.pixels import header_size
from tokenization import vision_rules
import PIL.JpegImagePlugin
rules = [rule for name, rule in vision_rules().items() if not rule.variant_of]
files = sorted(Path(sys.argv[1]).glob("*.jpg"))
start = time.perf_counter()
for file in files:
    size = header_size(file)
    for rule in rules:
        rule.tokens(*size)
print(time.perf_counter() - start)
"""


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--images", "count", default=2000, show_default=True)
@click.option("--rounds", default=5, show_default=True)
def main(count: int, rounds: int) -> None:
    """Print images a second, ratios, and the memory of audits of 200 and 2,000 examples."""
    with tempfile.TemporaryDirectory() as folder:
        files = _draw(Path(folder) / "mmlb_image/vh", count)
        rules = [rule for rule in vision_rules().values() if not rule.variant_of]
        sizes = [header_size(file) for file in files]

        def warm() -> None:
            for size in sizes:
                for rule in rules:
                    rule.tokens(*size)

        times: dict[str, list[float]] = {"decoding": [], "cold": [], "warm": []}
        for _ in range(rounds):
            times["decoding"].append(_timed(lambda: [_decode(file) for file in files]))
            times["cold"].append(_cold(files[0].parent))
            times["warm"].append(_timed(warm))
        click.echo(f"{count} images, {len(set(sizes))} sizes, {len(rules)} families, {rounds} rounds: medians")
        for name, seconds in times.items():
            per_second = count / statistics.median(seconds)
            ratio = statistics.median(d / s for d, s in zip(times["decoding"], seconds, strict=True))
            click.echo(f"  {name:<9} {per_second:>10,.0f} images/s   {ratio:6.1f}×")
        peaks = {n: _peak(Path(folder), [file.name for file in files], n) for n in (200, 2000)}
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
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def _cold(folder: Path) -> float:
    """Seconds in a process that has counted nothing yet, without its start."""
    return float(
        subprocess.run([sys.executable, "-c", _COLD, folder], capture_output=True, text=True, check=True).stdout
    )


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
    command = [sys.executable, "-c", _AUDIT, "audit", str(path), "--models", "all", "-q"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(done.stdout.splitlines()[-1]) / 1024


_AUDIT = """
import resource, sys
from mmlongbench.cli import main
try:
    main()
except SystemExit:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


if __name__ == "__main__":
    main()
