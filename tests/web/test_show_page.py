"""The page of one example: the prompt in order with its images, nothing from data as markup, no request to a host."""

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from html import unescape
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tiled import tiled
from tiny import command

from mmlongbench.release.finding import Wanted, find_example
from mmlongbench.release.opened import open_release
from mmlongbench.release.showing import shown_example
from mmlongbench.release.shown import ShownExample
from mmlongbench.web.show_page import MAX_EMBEDDED, segments, show_page

EVIL = "\"'><img src=x onerror=\"document.title='run'\">{{ 7 * 7 }}"
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome") or ""
HARNESS = """
<script>
window.onload = () => {
  const said = document.createElement("pre");
  const images = [...document.images];
  const ends = [...document.querySelectorAll(".bar .seg")].map(each => each.getBoundingClientRect().right);
  const right = document.querySelector(".bar")?.getBoundingClientRect().right;
  said.id = "said";
  said.textContent = JSON.stringify({
    title: document.title, errors, images: images.length, loaded: images.filter(each => each.naturalWidth > 0).length,
    segments: ends.length, inside: ends.every(end => end <= right + 1),
    wide: document.documentElement.scrollWidth > document.documentElement.clientWidth,
    asked: performance.getEntriesByType("resource").filter(each => !/^(data|file):/.test(each.name)).length,
  });
  document.body.append(said);
};
</script></body>"""
CATCH = "<head><script>const errors = []; window.onerror = error => { errors.push(String(error)); };</script>"


@pytest.fixture(scope="module")
def tiles(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A release of small tasks with needles; not to be changed."""
    with tiled(tmp_path_factory.mktemp("tiles")) as release:
        yield release


@pytest.fixture
def hostile(tiles: Path, tmp_path: Path) -> Path:
    """A release with markup in every field of the first record that can have any."""
    release = Path(shutil.copytree(tiles, tmp_path / "copy"))
    path = release / "mmlb_data/tiles/headed_K1.jsonl"
    first, *others = path.read_text("utf-8").splitlines()
    record = json.loads(first)
    picture = release / "mmlb_image/tiles" / "\"><img src=x onerror=alert(1)>'.png"
    shutil.copy(release / "mmlb_image/tiles/0.png", picture)
    units = [[EVIL, body, EVIL] for _, body, _ in record["units"]]
    units[0][1] = f"image: tiles/{picture.name}"
    record |= {"id": EVIL, "answer": [EVIL], "units": units, "tile": EVIL}
    path.write_text("\n".join([json.dumps(record), *others]), "utf-8")
    (release / "items/tiles/headed_K1.parquet").unlink()
    return release


def page(release: Path, dataset: str = "headed", most_embedded: int = MAX_EMBEDDED) -> str:
    opened, found = shown(release, dataset)
    return "".join(show_page(opened, found, most_embedded))


def shown(release: Path, dataset: str) -> tuple[Any, ShownExample]:
    opened = open_release(release)
    return opened, shown_example(opened, find_example(opened, Wanted(dataset=dataset)).example)


def test_the_page_has_the_prompt_in_order_with_each_image_in_its_place(tiles: Path) -> None:
    text = page(tiles)
    found = re.findall(r'<img src="(data:image/png;base64,[^"]+)" alt="([^"]+)"', text)
    assert [path for _, path in found] == [f"tiles/{number}.png" for number in range(12)]
    assert len({data for data, _ in found}) == 12
    assert re.findall(r'<article id="block-(\d+)"', text) == [str(number) for number in range(14)]
    plain = unescape(re.sub(r"<[^>]+>", "", text))
    assert plain.index("Look at the tiles.") < plain.index("A tile:\n0.png") < plain.index("A tile:\n11.png")
    assert (
        plain.index("A tile:\n11.png") < plain.index("Question: which one is 0.png?") < plain.index("scored by sub_em")
    )
    assert "token 25 negative 1.png" not in plain, "an id that the path shows is not repeated"
    assert "token 8 needle" in " ".join(plain.split())


def test_the_bar_is_to_scale_and_marks_needles(tiles: Path) -> None:
    _, found = shown(tiles, "headed")
    bar = list(segments(found))
    assert [each.look for each in bar] == ["frame", "needle", *["negative"] * 11, "frame", "reserve"]
    assert [each.marks for each in bar if each.marks] == [("needle",)]
    needle = found.units[0].unit
    assert needle is not None
    assert bar[1].left == pytest.approx(100 * needle.start / 1024, abs=0.001)
    assert bar[1].width == pytest.approx(100 * needle.tokens / 1024, abs=0.001)
    assert bar[-1].left + bar[-1].width == pytest.approx(100 * (found.tokens.total + found.reserve) / 1024, abs=0.001)
    assert all(one.left + one.width <= other.left + 0.001 for one, other in pairwise(bar))


def test_needles_inside_a_text_are_marked(tiles: Path) -> None:
    marks = re.findall("<mark>(.*?)</mark>", page(tiles, "blanks"))
    assert sorted(marks) == ["The secret number 0 is 222.", "The secret number 1 is 333."]


def test_a_page_over_the_bound_refers_to_the_files_and_says_so(tiles: Path) -> None:
    text = page(tiles, most_embedded=100)
    assert "data:image" not in text
    assert f'<img src="{(tiles / "mmlb_image/tiles/0.png").as_uri()}"' in text
    assert "this page refers to the files of the release" in text
    assert "this page refers to" not in page(tiles)


def test_without_items_there_is_no_bar_and_it_is_said(hostile: Path) -> None:
    text = page(hostile)
    assert '<div class="bar"' not in text
    assert "start tokens and roles are not known" in text
    assert "The places of the units are not known." in text


def test_nothing_from_data_is_markup_and_nothing_is_fetched(hostile: Path) -> None:
    for most in (MAX_EMBEDDED, 1):
        text = page(hostile, most_embedded=most)
        assert text.count("&lt;img src=x onerror=") >= 25
        assert not re.search(r"<img (?!src=\"(data:image/|file:///))", text)
        assert "<script" not in text
        addresses = re.findall(r"(?:src|href)=[\"']([^\"']*)", text)
        assert all(re.match(r"data:image/|file:///|#", address) for address in addresses)
        assert not re.search(r"@import|url\(", text)


@pytest.mark.skipif(not BROWSER, reason="no chromium")
def test_in_a_browser_every_image_is_there_and_markup_of_data_runs_nothing(
    tiles: Path, hostile: Path, tmp_path: Path
) -> None:
    pages = {"evil": page(hostile), "parts": page(hostile, "shown"), "plain": page(tiles)}
    for name, text in pages.items():
        path = tmp_path / f"{name}.html"
        path.write_text(text.replace("<head>", CATCH, 1).replace("</body>", HARNESS, 1), "utf-8")
        options = ["--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}"]
        ran = subprocess.run(
            [BROWSER, *options, "--dump-dom", path.as_uri()], capture_output=True, text=True, check=True
        )
        said = json.loads(re.search(r'<pre id="said">(.*?)</pre>', ran.stdout, re.DOTALL)[1])  # type: ignore[index]
        assert said["title"] != "run"
        assert (said["errors"], said["asked"], said["inside"], said["wide"]) == ([], 0, True, False)
        assert said["images"] == said["loaded"] == (13 if name == "parts" else 12)
        assert said["segments"] == (15 if name == "plain" else 0)


def test_the_command_writes_the_page(tiles: Path, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    ran = command("show", tiles, "tile-1", "--placement", "1", "--html", path)
    assert (ran.code, ran.out, ran.err) == (0, f"{path}: written, with 12 images inside\n", "")
    text = path.read_text("utf-8")
    assert text.startswith("<!doctype html>")
    assert "<title>tile-1, depth 1</title>" in text
