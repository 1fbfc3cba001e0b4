"""Every page in a real browser: its keys, its list, no error and no request elsewhere, and nothing that axe finds."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page
from seen import Seen, violations
from viewing import served, site_of

from mmlongbench.web.viewer.site import Site
from mmlongbench.web.viewer.static_site import write_site

pytestmark = pytest.mark.slow
EVIL = "\"'><img src=x onerror=\"document.title='run'\"><script>document.title='run'</script>"


K2 = "/example/documentQA/mmlongdoc_K2.jsonl/1"
READY = "body[data-ready]"
SHOWN = "#list article:not(.waits)"


def here(page: Page) -> int:
    """The number of the current block, from 1."""
    return int(page.inner_text("#here").split(" of ")[1].split("·")[-1].strip().replace(",", ""))


def test_keys_of_an_example(seen: Seen) -> None:
    page = seen.open(K2, READY)
    page.wait_for_selector(SHOWN)
    assert here(page) == 1
    for key, place in (("j", 2), ("j", 3), ("k", 2)):
        page.keyboard.press(key)
        assert here(page) == place
    assert page.evaluate("document.activeElement.matches('#list article.current')")
    page.keyboard.press("m")
    assert "evidence" in page.inner_text("#here")
    marked = here(page)
    page.keyboard.press("o")
    assert page.evaluate("document.querySelector('#large').open")
    page.keyboard.press("Escape")
    assert not page.evaluate("document.querySelector('#large').open")
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "goto"
    page.keyboard.type("0")
    page.keyboard.press("Enter")
    assert here(page) == 1
    page.keyboard.press("?")
    assert page.evaluate("document.querySelector('#help').open")
    page.keyboard.press("j")
    assert here(page) == 1, "keys are for the dialog while it is open"
    page.keyboard.press("Escape")
    page.keyboard.press("M")
    assert here(page) >= marked
    page.keyboard.press("c")
    page.wait_for_selector("#said:has-text('copied')")
    copied = json.loads(page.evaluate("navigator.clipboard.readText()"))
    assert [message["role"] for message in copied] == ["user"]


def test_keys_that_lead_to_other_examples_and_lengths(seen: Seen) -> None:
    page = seen.open(K2, READY)
    page.keyboard.press("m")
    unit = page.inner_text("#here").split("·")[-1]
    page.keyboard.press("L")
    page.wait_for_url("**/mmlongdoc_K1.jsonl/1**")
    page.wait_for_selector(READY)
    assert page.inner_text("#here").split("·")[-1] == unit, "the same unit"
    page.keyboard.press("l")
    page.wait_for_url("**/mmlongdoc_K2.jsonl/1**")
    page.wait_for_selector(READY)
    page.keyboard.press("n")
    page.wait_for_url("**/mmlongdoc_K2.jsonl/2")
    page.wait_for_selector(READY)
    page.keyboard.press("p")
    page.wait_for_url("**/mmlongdoc_K2.jsonl/1")
    page.wait_for_selector(READY)
    page.keyboard.press("w")
    page.wait_for_url("**/mmlongdoc_K2.jsonl/3")


def test_the_ruler_leads_to_units_and_follows_a_model(seen: Seen) -> None:
    page = seen.open(K2, READY)
    page.wait_for_selector(SHOWN)
    box = page.locator("#ruler").bounding_box()
    assert box
    page.mouse.click(box["x"] + box["width"] * 0.5, box["y"] + 30)
    middle = here(page)
    assert middle > 1
    page.focus("#ruler")
    page.keyboard.press("ArrowRight")
    assert here(page) == middle + 1
    page.keyboard.press("Home")
    assert here(page) == 1
    page.keyboard.press("End")
    assert page.get_attribute("#ruler", "aria-valuetext") == page.inner_text("#here")
    heads = "#list article:not(.waits) h3"
    before = page.locator(heads).all_inner_texts()
    page.select_option("#model", "1")
    page.wait_for_selector("svg .window", state="attached")
    assert page.locator(heads).all_inner_texts() != before, "the numbers of units follow the model"
    assert "texts as in the release" in page.inner_text("#model-notes")
    assert "more than fit the window" in page.inner_text("#model-notes")
    assert page.locator("#list .outside").count() > 0
    assert page.locator("#list .added-mark").count() > 0
    page.select_option("#model", "")
    page.wait_for_selector("#list article:not(.outside)")
    assert page.locator("svg .window").count() == 0


def test_the_table_filters_as_one_types_and_its_address_keeps_it(seen: Seen) -> None:
    page = seen.open("/dataset/0", "#examples tbody tr")
    page.keyboard.press("/")
    page.keyboard.type("petals")
    page.wait_for_selector("#count:has-text('2 examples')")
    assert page.url.endswith("#q=petals")
    page.click("[data-sort=tokens]")
    page.click("[data-sort=tokens]")
    page.wait_for_selector("th[aria-sort=descending]")
    assert page.inner_text("#examples tbody tr:first-child .c-length") == "2K"
    page.reload()
    page.wait_for_selector("#count:has-text('2 examples')")
    assert page.input_value("#filter") == "petals"
    page.focus("#filter")
    page.keyboard.press("Escape")
    assert page.input_value("#filter") == "petals"  # what the table is filtered by stays to be seen
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_selector(READY)


def test_a_link_that_is_sent_shows_the_same_table_unit_and_model(seen: Seen) -> None:
    page = seen.open("/dataset/0#length=2K&sort=-tokens", "#examples tbody tr")
    page.click("#examples tbody a >> nth=0")
    page.wait_for_selector(READY)
    page.keyboard.press("m")
    page.select_option("#model", "1")
    page.wait_for_selector("svg .window", state="attached")
    page.wait_for_url(lambda url: "u=" in url and "model=gemma3" in url)
    shown = page.inner_text("#here")
    assert "evidence" in shown
    sent = page.url
    page.goto("about:blank")
    page.goto(sent)
    page.wait_for_selector("svg .window", state="attached")
    assert page.inner_text("#here") == shown
    page.keyboard.press("L")
    page.wait_for_url("**/mmlongdoc_K1.jsonl/**")
    page.wait_for_selector("svg .window", state="attached")
    assert "evidence" in page.inner_text("#here")
    page.keyboard.press("n")
    page.wait_for_url(lambda url: "u=" not in url)
    page.wait_for_selector("svg .window", state="attached")
    page.click("#table")
    page.wait_for_selector("th[aria-sort=descending]")
    assert page.url.endswith("/dataset/0#length=2K&sort=-tokens")
    assert page.input_value("#length") == "2K"
    head = page.locator("th", has_text="fill").bounding_box()
    assert head is not None
    page.mouse.click(head["x"] + 2, head["y"] + head["height"] - 2)
    page.wait_for_selector("th[aria-sort=ascending]:has-text('fill')")


def test_a_unit_that_stands_twice_is_found_where_it_was(chromium: Browser, tiles: Path, tmp_path: Path) -> None:
    release = Path(shutil.copytree(tiles, tmp_path / "copy"))
    path = release / "mmlb_data/tiles/headed_K1.jsonl"
    record = json.loads(path.read_text("utf-8").splitlines()[0])
    record["units"] = record["units"] * 3
    path.write_text(json.dumps(record) + "\n", "utf-8")
    with served(site_of(release)) as own:
        page = chromium.new_page()
        page.goto(f"{own}/example/tiles/headed_K1.jsonl/1")
        page.wait_for_selector(READY)
        page.focus("#ruler")
        page.keyboard.press("End")
        page.keyboard.press("ArrowLeft")
        page.wait_for_url(lambda url: "at=" in url)
        sent, place = page.url, here(page)
        page.goto("about:blank")
        page.goto(sent)
        page.wait_for_selector(READY)
        assert here(page) == place
        page.close()


def test_heads_say_by_what_a_table_is_sorted_and_each_model_has_its_own(
    chromium: Browser, finished: Path, predictions: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other.jsonl"
    lines = [json.loads(line) for line in predictions.read_text("utf-8").splitlines()]
    other.write_text(
        "".join(json.dumps({**each, "model": "other", "score": 1.0 - each["score"]}) + "\n" for each in lines), "utf-8"
    )
    with served(site_of(finished, scores=[predictions, other])) as own:
        page = chromium.new_page()
        page.goto(f"{own}/dataset/0")
        page.wait_for_selector("#order:has-text('in the order of the files')")
        for press, said in ((1, "other, ascending"), (2, "other, descending")):
            page.click("th [data-model=other]")
            page.wait_for_selector(f"#order:has-text('sorted by {said}')")
            assert page.locator("th[aria-sort]").all_inner_texts() == ["other"]
            scores = page.locator("#examples tbody td:last-child").all_inner_texts()
            assert scores == sorted(scores, key=float, reverse=press == 2)
        page.click("th [data-model=model]")
        page.wait_for_selector("#order:has-text('sorted by model, ascending')")
        page.click("#model")
        page.wait_for_selector("#order:has-text('the mean score of all models')")
        assert page.locator("th[aria-sort]").count() == 0
        page.set_viewport_size({"width": 320, "height": 700})
        page.select_option("#sort", "tokens")
        page.click("#reverse")
        page.wait_for_selector("#order:has-text('sorted by tokens, descending')", state="attached")
        assert page.locator("#examples tbody tr:first-child [data-name=other]").count() == 1
        page.close()


def test_keys_of_the_release(seen: Seen) -> None:
    page = seen.open("/", "table.cells")
    page.keyboard.press("j")
    assert page.evaluate("document.activeElement.textContent") == "mmlongdoc"
    page.keyboard.press("Enter")
    page.wait_for_selector("#examples tbody tr")


def test_a_long_list_has_few_elements_however_far_one_goes(
    chromium: Browser, tiles: Path, tmp_path: Path, seen: Seen
) -> None:
    release = Path(shutil.copytree(tiles, tmp_path / "copy"))
    path = release / "mmlb_data/tiles/headed_K1.jsonl"
    record = json.loads(path.read_text("utf-8").splitlines()[0])
    texts = [["", f"text {number} " + "word " * (number % 90), ""] for number in range(1500)]
    record["units"] = [*record["units"] * 60, *texts]
    path.write_text(json.dumps(record) + "\n", "utf-8")
    with served(site_of(release)) as own:
        page = chromium.new_page(viewport={"width": 1000, "height": 700})
        page.goto(f"{own}/example/tiles/headed_K1.jsonl/1")
        page.wait_for_selector(SHOWN)
        most = 0
        for token in (0, 0.2, 0.4, 0.6, 0.8, 1):
            page.evaluate("share => window.scrollTo(0, share * document.documentElement.scrollHeight)", token)
            page.wait_for_timeout(150)
            page.wait_for_selector("#list[aria-busy=false]")
            most = max(most, page.locator("#list img").count())
            assert page.locator("#list article").count() <= 75
            assert page.evaluate(IN_ORDER)
        assert 0 < most <= 100
        page.keyboard.press("/")
        page.keyboard.type("no such unit")
        page.keyboard.press("Enter")
        assert "no unit" in page.inner_text("#said")
        page.close()


IN_ORDER = """() => {
  const boxes = [...document.querySelectorAll("#list article")].map(each => each.getBoundingClientRect());
  return boxes.every((box, at) => !at || box.top >= boxes[at - 1].bottom - 1 || box.left >= boxes[at - 1].right - 1);
}"""


def test_markup_of_data_runs_nothing(chromium: Browser, tiles: Path, tmp_path: Path) -> None:
    release = Path(shutil.copytree(tiles, tmp_path / "copy"))
    path = release / "mmlb_data/tiles/headed_K1.jsonl"
    first, *others = path.read_text("utf-8").splitlines()
    record = json.loads(first)
    units = [[EVIL, body, EVIL] for _, body, _ in record["units"]]
    record |= {"id": EVIL, "answer": [EVIL], "units": units, "tile": EVIL}
    path.write_text("\n".join([json.dumps(record), *others]), "utf-8")
    site = site_of(release)
    write_site(site, tmp_path / "site", limit=1)
    number = site.viewed.datasets.index("headed")
    file = site.viewed.by_name["tiles/headed_K1.jsonl"]
    with served(site) as own:
        for address, ready in (
            (f"{own}/dataset/{number}", "#examples tbody tr"),
            (f"{own}/example/tiles/headed_K1.jsonl/1", SHOWN),
            ((tmp_path / f"site/example-{file.number}-1.html").as_uri(), SHOWN),
            ((tmp_path / f"site/dataset-{number}.html").as_uri(), "#examples tbody tr"),
        ):
            page = chromium.new_page()
            page.goto(address)
            page.wait_for_selector(ready)
            assert page.title() != "run"
            assert page.locator("img[src=x]").count() == 0
            page.close()


def test_texts_that_cannot_be_broken_do_not_widen_the_page(chromium: Browser, tiles: Path, tmp_path: Path) -> None:
    release = Path(shutil.copytree(tiles, tmp_path / "copy"))
    path = release / "mmlb_data/tiles/headed_K1.jsonl"
    heap = "z" + "\u0335\u0321\u0489" * 300
    record = json.loads(path.read_text("utf-8").splitlines()[0]) | {"id": heap, "answer": [heap], "tile": heap}
    path.write_text(json.dumps(record) + "\n", "utf-8")
    with served(site_of(release)) as own:
        page = chromium.new_page(viewport={"width": 320, "height": 700})
        page.goto(f"{own}/example/tiles/headed_K1.jsonl/1")
        page.wait_for_selector(SHOWN)
        assert page.evaluate("document.documentElement.scrollWidth") == 320
        page.close()


def test_heads_of_the_release_are_not_broken_into_letters_and_a_raw_line_has_an_address(
    chromium: Browser, address: str
) -> None:
    page = chromium.new_page(viewport={"width": 320, "height": 700})
    page.goto(address)
    assert page.evaluate("document.querySelector('table.cells thead').offsetHeight") < 120
    page.goto(f"{address}/rejects#line-2")
    assert page.locator("#line-2").is_visible()
    assert not page.locator("#line-1").is_visible()
    page.close()


def test_a_site_opens_from_disk_without_a_network(chromium: Browser, site: Site, tmp_path: Path) -> None:
    write_site(site, tmp_path / "site", limit=2)
    context = chromium.new_context(viewport={"width": 1000, "height": 700}, offline=True)
    found = Seen(context.new_page(), (tmp_path / "site").as_uri())
    page = found.open("/review-1.html", ".sheet img")
    assert page.evaluate("document.querySelector('.sheet img').naturalWidth") > 0
    assert page.locator("#decision button").count() == 0
    page = found.open("/report.html", ".curves a.go")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_selector("#examples tbody tr")
    page.goto(page.url.split("#")[0] + "#facet=document type: Bark")
    page.wait_for_selector("#facet:has-text('Bark')")
    page.wait_for_selector("#count:has-text('examples')")
    page = found.open("/index.html", "table.cells")
    page.click("a.go")
    page.wait_for_selector("#examples tbody tr")
    page.fill("#filter", "petals")
    page.wait_for_selector("#count:has-text('2 examples')")
    page.click("[data-sort=tokens]")
    page.fill("#filter", "")
    page.click("#examples tbody a >> nth=0")
    page.wait_for_selector(SHOWN)
    page.wait_for_selector(READY)
    page.keyboard.press("m")
    page.keyboard.press("o")
    assert page.evaluate("document.querySelector('#large').open")
    page.wait_for_timeout(100)
    assert page.evaluate("document.querySelector('#large img').naturalWidth") > 0
    page.keyboard.press("Escape")
    page.select_option("#model", "1")
    page.wait_for_selector("svg .window", state="attached")
    assert page.is_disabled("#copy")
    assert page.evaluate("[...document.querySelectorAll('#list img')].every(each => each.complete)")
    assert (found.errors, found.elsewhere) == ([], [])
    context.close()


PAGES = {
    "/": "table.cells",
    "/rejects": "main",
    "/dataset/0": "#examples tbody tr",
    "/dataset/0#facet=document type: Tree&length=1K": "#examples tbody tr",
    "/review": "table.cells",
    "/review/1": ".sheet",
    "/report": ".curves a.go",
    K2: SHOWN,
}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_fit_a_narrow_screen_and_axe_finds_nothing(chromium: Browser, address: str, scheme: Any) -> None:
    for width in (320, 1200):
        context = chromium.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme, bypass_csp=True)
        page = context.new_page()
        for path, ready in PAGES.items():
            page.goto(address + path)
            page.wait_for_selector(ready, state="attached")
            assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth"), path
            assert violations(page) == [], path
        page.select_option("#model", "1")
        page.focus("#ruler")
        page.keyboard.press("End")
        page.wait_for_selector("#list .outside")
        assert violations(page) == [], "what does not fit a window"
        page.keyboard.press("?")
        assert violations(page) == [], "the keys"
        context.close()
