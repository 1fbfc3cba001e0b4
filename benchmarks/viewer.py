"""The viewer with large examples: how soon a page is painted and can be used, what it sends, how it scrolls.

Two releases are drawn: one needle in photographs, at a length with about 500 of them and at 1M; and passages of text at
1M. A server of its own shows each release. Chromium (`apt-get install chromium`; the extra `test` has what drives it)
opens one example again and again, then scrolls through the whole of it, a step in each frame. Server and browser run on
the same machine.

- paint: the first contentful paint that the browser reports, from the start of the navigation;
- use: from the same start until the keys and the bar work and the rows on the screen are shown;
- frame: the time between two frames while the page scrolls.
"""

import hashlib
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright
from worlds import Source, draw_photographs, passages

from mmlongbench.building.build import build
from mmlongbench.building.executors import LocalExecutor
from mmlongbench.io.progress import Progress
from mmlongbench.manifest.model import Manifest
from mmlongbench.release.layout import DATA

PAINT, USE, FRAME, MEMORY, IMAGES = 1.0, 2.0, 50, 150, 100
"""Targets: seconds, seconds, milliseconds, MB of the server, image elements in the page."""
READY = "body[data-ready]"
SHOWN = "#list article:not(.waits)"

SCROLL = """async step => {
  const times = [];
  let most = 0, before = await new Promise(requestAnimationFrame), still = 0, last = -1;
  while (still < 20) {
    window.scrollBy(0, step);
    const now = await new Promise(requestAnimationFrame);
    times.push(now - before);
    before = now;
    most = Math.max(most, document.images.length);
    still = window.scrollY === last ? still + 1 : 0;
    last = window.scrollY;
  }
  return {times, most, height: document.documentElement.scrollHeight};
}"""


@dataclass(frozen=True, slots=True)
class Opened:
    """One opening of an example."""

    paint: float
    """Seconds, also below."""
    use: float
    sent: int
    """Bytes that the server sent until then."""


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--rounds", default=10, show_default=True, help="Openings of each example.")
@click.option("--step", default=150, show_default=True, help="Pixels scrolled in each frame.")
@click.option("--lengths", default="192K,1M", show_default=True, help="Lengths of the contexts of photographs.")
@click.option("--out", type=click.Path(path_type=Path), help="Keep the releases there, and use those that are there.")
def main(rounds: int, step: int, lengths: str, out: Path | None) -> None:
    """Print a line for each example."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        root = out or Path(folder)
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        for release in (_photographs(root, lengths.split(",")), _passages(root)):
            _measure(release, Path(folder) / f"cache of {release.name}", browser, rounds, step)


def _photographs(root: Path, lengths: list[str]) -> Path:
    """A release of one needle in photographs of COCO's sizes, two questions at each length."""
    release, source = root / "photographs", root / "photographs source"
    if not release.exists():
        files = draw_photographs(source, 4200, 2)
        for path in sorted((source / "images" / "train2017").iterdir()):
            _paint(path)
        keys = {name: str(path) for name, path in files.items()}
        keys["questions"] = str(source / "single.json")
        _build(release, lengths, {"builder": "visual_haystack", "reader": "visual_haystacks", "source": keys})
    return release


def _paint(path: Path) -> None:
    """Replace a picture of one colour by one that costs a browser as much as a photograph: about 50 KB."""
    with Image.open(path) as plain:
        width, height = plain.size
    small = (width // 5, height // 5)
    grains = hashlib.shake_128(path.name.encode()).digest(3 * small[0] * small[1])
    Image.frombytes("RGB", small, grains).resize((width, height), Image.Resampling.BICUBIC).save(path, quality=75)


def _passages(root: Path) -> Path:
    """A release of two questions over passages of text at 1M."""
    release, source = root / "passages", root / "passages source"
    if not release.exists():
        source.mkdir(parents=True)
        _build(release, ["1M"], {"builder": "vrag", **passages(source)})
    return release


def _build(release: Path, lengths: list[str], dataset: Source | Mapping[str, Any]) -> None:
    one = {**dataset, "name": release.name, "lengths": lengths, "seed": 42, "sample": {"n": 2}}
    build(Manifest.model_validate({"datasets": [one]}), release, LocalExecutor(1, Progress(is_shown=False)))


def _measure(release: Path, cache: Path, browser: Browser, rounds: int, step: int) -> None:
    """Serve a release without and with an index, then open and scroll an example of each length."""
    with _server(release, cache) as (_, _, cold):
        pass
    with _server(release, cache) as (address, process, warm):
        click.echo(f"{release.name}: server ready after {cold:.1f} s without an index, {warm:.1f} s with one")
        for path in _examples(release):
            _open(browser, address + path)  # makes the thumbnails
            opened = [_open(browser, address + path) for _ in range(rounds)]
            paints, uses = [each.paint for each in opened], [each.use for each in opened]
            click.echo(
                f"  {path}\n"
                f"    paint {statistics.median(paints):.2f} s (target < {PAINT:g}; slowest {max(paints):.2f}), "
                f"use {statistics.median(uses):.2f} s (target < {USE:g}; slowest {max(uses):.2f}), "
                f"{statistics.median(each.sent for each in opened) / 1e3:,.0f} kB sent"
            )
            _scroll(browser, address + path, step)
        peak, now = _memory(process.pid)
        click.echo(f"  server {now:.0f} MB, at most {peak:.0f} (target < {MEMORY})")


@contextmanager
def _server(release: Path, cache: Path) -> Iterator[tuple[str, "subprocess.Popen[str]", float]]:
    """Yield the address that a server prints, its process, and the seconds until it was ready."""
    command = [sys.executable, "-m", "mmlongbench", "view", str(release), "--port", "0", "-q"]
    started = time.perf_counter()
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None  # noqa: S101
        address = process.stdout.readline().split(" shows ")[0]
        try:
            yield address, process, time.perf_counter() - started
        finally:
            process.terminate()


def _examples(release: Path) -> list[str]:
    """The page of the first example of each public file; the one dataset has a file for each length."""
    files = sum(path.is_file() for path in (release / DATA).rglob("*"))
    return [f"example-{number}-1.html" for number in range(files)]


def _open(browser: Browser, address: str) -> Opened:
    """Open an example in a new, empty browser context."""
    with browser.new_context() as context:
        page = context.new_page()
        sent = _sent(page)
        page.goto(address)
        page.wait_for_selector(READY, state="attached")
        page.wait_for_selector(SHOWN)
        use = page.evaluate("performance.now()") / 1e3
        paint = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime") / 1e3
        return Opened(paint, use, sum(sent))


def _sent(page: Page) -> list[int]:
    """A list that grows by the bytes of each answer of the server."""
    sent: list[int] = []
    network = page.context.new_cdp_session(page)
    network.send("Network.enable")
    network.on("Network.loadingFinished", lambda event: sent.append(int(event["encodedDataLength"])))
    return sent


def _scroll(browser: Browser, address: str, step: int) -> None:
    """Scroll through an example, and print what its frames took."""
    with browser.new_context() as context:
        page = context.new_page()
        sent = _sent(page)
        page.goto(address)
        page.wait_for_selector(SHOWN)
        page.wait_for_timeout(500)
        found = page.evaluate(SCROLL, step)
        times = sorted(found["times"])
        slow = sum(each > FRAME for each in times)
        click.echo(
            f"    {len(times):,} frames over {found['height']:,} px: median {statistics.median(times):.0f} ms, "
            f"99 % {times[len(times) * 99 // 100]:.0f} ms, longest {times[-1]:.0f} ms, {slow} over {FRAME} ms; "
            f"at most {found['most']} image elements (target <= {IMAGES}), {sum(sent) / 1e6:.1f} MB sent"
        )


def _memory(process: int) -> tuple[float, float]:
    """The most and the present memory of a process in MB."""
    lines = dict(line.split(":", 1) for line in Path(f"/proc/{process}/status").read_text().splitlines())
    peak, now = (int(lines[key].split()[0]) / 1024 for key in ("VmHWM", "VmRSS"))
    return peak, now


if __name__ == "__main__":
    main()
