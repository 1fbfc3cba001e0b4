"""Every page in a real browser: its keys, its list, no error and no request elsewhere, and nothing that axe finds."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from once import linked
from reviewed import suspect_lines
from score_lines import line, write
from tiny import command
from viewing import served, static

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page
    from seen import Seen

pytestmark = pytest.mark.rare
EVIL = "\"'><img src=x onerror=\"document.title='run'\"><script>document.title='run'</script>"
HEADED = "tiles/headed_K1.jsonl"
K2 = "/example-1-1.html"
READY = "body[data-ready]"
SHOWN = "#list article:not(.waits)"
Change = Callable[[list[Any]], list[Any]]


@pytest.fixture(scope="module")
def predictions(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Scores of a model that has every second example wrong."""
    path = tmp_path_factory.mktemp("scores") / "model.jsonl"
    common = {"model": "model", "metric": "doc_qa", "is_own": True, "dataset": "mmlongdoc", "status": "scored"}
    lines = []
    for k in (1, 2):
        name = f"documentQA/mmlongdoc_K{k}.jsonl"
        ids = [json.loads(each)["id"] for each in (finished / "mmlb_data" / name).read_text("utf-8").splitlines()]
        about = {**common, "file": name, "length": k * 1024}
        lines += [{**about, "id": id, "score": float(row % 2)} for row, id in enumerate(ids)]
    path.write_text("".join(json.dumps(each) + "\n" for each in lines), "utf-8")
    return path


@pytest.fixture(scope="module")
def options(predictions: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[object, ...]:
    suspects = suspect_lines(tmp_path_factory.mktemp("review"))
    models = ("--count-as", "qwen2.5-vl,gemma3", "--fits", "gemma3=1K")
    return (*models, "--scores", predictions, "--suspects", suspects)


@pytest.fixture(scope="module")
def address(finished: Path, options: tuple[object, ...]) -> Iterator[str]:
    with served(finished, *options) as found:
        yield found


@pytest.fixture
def seen(chromium: "Browser", address: str) -> Iterator["Seen"]:
    from seen import Seen

    context = chromium.new_context(viewport={"width": 1200, "height": 800}, service_workers="block")
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    found = Seen(context.new_page(), address)
    yield found
    context.close()
    assert (found.errors, found.elsewhere) == ([], [])


@pytest.fixture
def page(chromium: "Browser") -> Iterator["Page"]:
    found = chromium.new_page()
    yield found
    found.close()


@pytest.fixture
def changed(tiles: Path, tmp_path: Path) -> Callable[[Change], Path]:
    """Copy the release of small tasks, and change the records of `headed`."""

    def change(make: Change) -> Path:
        release = linked(tiles, tmp_path / "copy")
        path = release / "mmlb_data" / HEADED
        records = make([json.loads(each) for each in path.read_text("utf-8").splitlines()])
        path.write_text("".join(json.dumps(each) + "\n" for each in records), "utf-8")
        return release

    return change


def hostile(records: list[Any]) -> list[Any]:
    units = [[EVIL, body, EVIL] for _, body, _ in records[0]["units"]]
    return [records[0] | {"id": EVIL, "answer": [EVIL], "units": units, "tile": EVIL}, *records[1:]]


def here(page: "Page") -> int:
    """The number of the current block, from 1."""
    return int(page.inner_text("#here").split(" of ")[1].split("·")[-1].strip().replace(",", ""))


def test_keys_of_an_example(seen: "Seen") -> None:
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


def test_keys_that_lead_to_other_examples_and_lengths(seen: "Seen") -> None:
    page = seen.open(K2, READY)
    page.keyboard.press("m")
    unit = page.inner_text("#here").split("·")[-1]
    page.keyboard.press("L")
    page.wait_for_url("**/example-0-1.html**")
    page.wait_for_selector(READY)
    assert page.inner_text("#here").split("·")[-1] == unit, "the same unit"
    page.keyboard.press("l")
    page.wait_for_url("**/example-1-1.html**")
    page.wait_for_selector(READY)
    page.keyboard.press("n")
    page.wait_for_url("**/example-1-2.html")
    page.wait_for_selector(READY)
    page.keyboard.press("p")
    page.wait_for_url("**/example-1-1.html")
    page.wait_for_selector(READY)
    page.keyboard.press("w")
    page.wait_for_url("**/example-1-3.html")


def test_the_ruler_leads_to_units_and_follows_a_model(seen: "Seen") -> None:
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


def test_the_table_filters_as_one_types_and_its_address_keeps_it(seen: "Seen") -> None:
    page = seen.open("/dataset-0.html", "#examples tbody tr")
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


def test_a_link_that_is_sent_shows_the_same_table_unit_and_model(seen: "Seen") -> None:
    page = seen.open("/dataset-0.html#length=2K&sort=-tokens", "#examples tbody tr")
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
    page.wait_for_url("**/example-0-*.html**")
    page.wait_for_selector("svg .window", state="attached")
    assert "evidence" in page.inner_text("#here")
    page.keyboard.press("n")
    page.wait_for_url(lambda url: "u=" not in url)
    page.wait_for_selector("svg .window", state="attached")
    page.click("#table")
    page.wait_for_selector("th[aria-sort=descending]")
    assert page.url.endswith("/dataset-0.html#length=2K&sort=-tokens")
    assert page.input_value("#length") == "2K"
    head = page.locator("th", has_text="fill").bounding_box()
    assert head is not None
    page.mouse.click(head["x"] + 2, head["y"] + head["height"] - 2)
    page.wait_for_selector("th[aria-sort=ascending]:has-text('fill')")


def test_a_unit_that_stands_twice_is_found_where_it_was(page: "Page", changed: Callable[[Change], Path]) -> None:
    release = changed(lambda records: [records[0] | {"units": records[0]["units"] * 3}])
    with served(release) as own:
        page.goto(f"{own}/example-0-1.html")
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


def test_heads_say_by_what_a_table_is_sorted_and_each_model_has_its_own(
    page: "Page", finished: Path, predictions: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other.jsonl"
    lines = [json.loads(each) for each in predictions.read_text("utf-8").splitlines()]
    found = [{**each, "model": "other", "score": 1.0 - each["score"]} for each in lines]
    other.write_text("".join(json.dumps(each) + "\n" for each in found), "utf-8")
    with served(finished, "--scores", predictions, "--scores", other) as own:
        page.goto(f"{own}/dataset-0.html")
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


def test_keys_of_the_release(seen: "Seen") -> None:
    page = seen.open("/", "table.cells")
    page.keyboard.press("j")
    assert page.evaluate("document.activeElement.textContent") == "mmlongdoc"
    page.keyboard.press("Enter")
    page.wait_for_selector("#examples tbody tr")


IN_ORDER = """() => {
  const boxes = [...document.querySelectorAll("#list article")].map(each => each.getBoundingClientRect());
  return boxes.every((box, at) => !at || box.top >= boxes[at - 1].bottom - 1 || box.left >= boxes[at - 1].right - 1);
}"""


def test_a_long_list_has_few_elements_however_far_one_goes(page: "Page", changed: Callable[[Change], Path]) -> None:
    texts = [["", f"text {number} " + "word " * (number % 90), ""] for number in range(1500)]
    release = changed(lambda records: [records[0] | {"units": [*records[0]["units"] * 60, *texts]}])
    with served(release) as own:
        page.set_viewport_size({"width": 1000, "height": 700})
        page.goto(f"{own}/example-0-1.html")
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


def test_markup_of_data_runs_nothing(page: "Page", changed: Callable[[Change], Path], tmp_path: Path) -> None:
    release, site = changed(hostile), tmp_path / "site"
    assert static(release, site, "--limit", 1).code == 0
    with served(release) as own:
        for address, ready in (
            (f"{own}/dataset-0.html", "#examples tbody tr"),
            (f"{own}/example-0-1.html", SHOWN),
            ((site / "example-0-1.html").as_uri(), SHOWN),
            ((site / "dataset-0.html").as_uri(), "#examples tbody tr"),
        ):
            page.goto(address)
            page.wait_for_selector(ready)
            assert page.title() != "run"
            assert page.locator("img[src=x]").count() == 0


def test_texts_that_cannot_be_broken_do_not_widen_the_page(page: "Page", changed: Callable[[Change], Path]) -> None:
    heap = "z" + "\u0335\u0321\u0489" * 300
    with served(changed(lambda records: [records[0] | {"id": heap, "answer": [heap], "tile": heap}])) as own:
        page.set_viewport_size({"width": 320, "height": 700})
        page.goto(f"{own}/example-0-1.html")
        page.wait_for_selector(SHOWN)
        assert page.evaluate("document.documentElement.scrollWidth") == 320


def test_heads_of_the_release_are_not_broken_into_letters_and_a_raw_line_has_an_address(
    page: "Page", address: str
) -> None:
    page.set_viewport_size({"width": 320, "height": 700})
    page.goto(address)
    assert page.evaluate("document.querySelector('table.cells thead').offsetHeight") < 120
    page.goto(f"{address}/rejects.html#line-2")
    assert page.locator("#line-2").is_visible()
    assert not page.locator("#line-1").is_visible()


def test_a_site_opens_from_disk_without_a_network(
    chromium: "Browser", finished: Path, options: tuple[object, ...], tmp_path: Path
) -> None:
    from seen import Seen

    assert static(finished, tmp_path / "site", "--limit", 2, *options).code == 0
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
    "/rejects.html": "main",
    "/dataset-0.html": "#examples tbody tr",
    "/dataset-0.html#facet=document type: Tree&length=1K": "#examples tbody tr",
    "/review.html": "table.cells",
    "/review-1.html": ".sheet",
    "/report.html": ".curves a.go",
    K2: SHOWN,
}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_fit_a_narrow_screen_and_axe_finds_nothing(chromium: "Browser", address: str, scheme: Any) -> None:
    from seen import violations

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


def test_keys_of_a_review(seen: "Seen") -> None:
    page = seen.open("/review.html", "table.cells")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url("**/review-1.html")
    page.keyboard.press("j")
    page.keyboard.press("j")
    assert "Page 3: proposed" in page.evaluate("document.activeElement.textContent")
    page.keyboard.press("k")
    assert "Page 2: claimed" in page.evaluate("document.activeElement.textContent")
    page.keyboard.press("n")
    page.wait_for_url("**/review-2.html")
    page.keyboard.press("p")
    page.wait_for_url("**/review-1.html")


def test_points_of_the_report_lead_to_their_examples(seen: "Seen") -> None:
    page = seen.open("/report.html", ".curves a.go")
    page.keyboard.press("j")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')").startswith("model, 1K: ")
    page.keyboard.press("Enter")
    page.wait_for_selector("#examples tbody tr")
    assert page.url.endswith("#length=1K&sort=score&model=model")
    scores = page.locator("#examples tbody td:last-child").all_inner_texts()
    assert scores == sorted(scores, key=float)
    page.goto(page.url.split("#")[0] + "#facet=document type: Bark")
    page.wait_for_selector("#facet:has-text('Bark')")
    some = page.locator("#examples tbody tr").count()
    page.click("#facet")
    page.wait_for_selector("#facet", state="hidden")
    assert 0 < some < page.locator("#examples tbody tr").count()


DEPTHS = (0.04, 0.05, 0.15, 0.2, 0.25, 0.35, 0.4, 0.45, 0.5, 0.55, 0.65, 0.75, 0.95)


def test_a_point_leads_to_all_its_examples_the_worst_of_its_model_first(
    page: "Page", tiles: Path, tmp_path: Path
) -> None:
    """There is one example at each of more depths than a report shows; each model has other examples wrong."""
    release = linked(tiles, tmp_path / "release")
    path = release / "mmlb_data" / HEADED
    record = json.loads(path.read_text("utf-8").splitlines()[0])
    records = [{**record, "id": f"at_{depth}", "depth": depth} for depth in DEPTHS]
    path.write_text("".join(json.dumps(each) + "\n" for each in records), "utf-8")
    about = {"metric": "sub_em", "is_own": True, "file": HEADED, "dataset": "headed", "length": 1024}
    scores = [
        {**about, "model": model, "id": f"at_{depth}", "depth": depth, "status": "scored"}
        | {"score": float((at % 2 == 0) == (model == "even"))}
        for at, depth in enumerate(DEPTHS)
        for model in ("even", "odd")
    ]
    (tmp_path / "scores.jsonl").write_text("".join(json.dumps(each) + "\n" for each in scores), "utf-8")
    assert static(release, tmp_path / "site", "--scores", tmp_path / "scores.jsonl", "--limit", 1).code == 0
    page.goto((tmp_path / "site/report.html").as_uri())
    read = "each => [each.getAttribute('aria-label'), each.getAttribute('href').split('#')[1]]"
    points = page.evaluate(f"[...document.querySelectorAll('a.go')].map({read})")
    assert len({said for said, query in points if "placement=" in query}) == 2 * len({round(10 * at) for at in DEPTHS})
    page.goto((tmp_path / "site/dataset-0.html").as_uri())
    for said, query in points:
        model, number = said.partition(",")[0], re.search(r"(\d+) examples?", said)
        assert number
        page.evaluate("hash => { location.hash = hash; }", query)
        page.wait_for_selector(f"#model:has-text('by {model} ×')")
        page.wait_for_selector(f"#count:text-is('{number[1]} example{'' if number[1] == '1' else 's'}')")
        cells = f"#examples tbody td[data-name={model}]"
        given = [float(each) for each in page.locator(cells).all_inner_texts()]
        assert given == sorted(given)
        assert len(given) == int(number[1])


# Pages that commands write.


@pytest.fixture
def opened(chromium: "Browser", tmp_path: Path) -> Iterator[Callable[..., "Page"]]:
    """Write a page with a command, and open it."""
    from seen import Seen

    context = chromium.new_context(viewport={"width": 1300, "height": 2000}, offline=True)
    found = Seen(context.new_page(), tmp_path.as_uri())

    def open_page(*words: object) -> "Page":
        path = tmp_path / "page.html"
        ran = command(*words, "--html", path)
        assert ran.code in (0, 1), ran.err
        return found.open("/page.html", "main, body")

    yield open_page
    context.close()
    assert found.errors == []
    assert [each for each in found.elsewhere if not each.startswith(("data:", "file:"))] == []


def test_the_page_of_an_audit_sorts(opened: Callable[..., "Page"], finished: Path, tmp_path: Path) -> None:
    release = linked(finished, tmp_path / "copy")
    path = release / "mmlb_data/documentQA/mmlongdoc_K2.jsonl"
    path.write_text("".join(path.read_text("utf-8").splitlines(keepends=True)[:3]), "utf-8")
    page = opened("audit", release)
    order = "[...document.querySelector('#files ~ .wide table').tBodies[0].rows].map(row => row.cells[2].textContent)"
    found = [page.evaluate(order)]
    for _ in range(2):
        page.locator("#files ~ .wide table").first.locator("th button").nth(2).click()
        found.append(page.evaluate(order))
    assert found == [["6", "3"], ["3", "6"], ["6", "3"]]


def test_the_page_of_a_report_is_not_too_wide_and_has_no_dead_link(
    opened: Callable[..., "Page"], tmp_path: Path
) -> None:
    long = f"c-{'long-' * 20}{EVIL}"
    lines = [line(n, n / 4, f"docs {EVIL}", k, model=model) for n in range(4) for k in (8, 16) for model in ("a", long)]
    page = opened("report", write(tmp_path / "scores", lines))
    assert page.title() != "run"
    widths = page.evaluate("[...document.querySelectorAll('table')].map(each => each.scrollWidth - innerWidth)")
    assert max(widths) <= 0
    links = page.evaluate("[...document.querySelectorAll('nav a')].map(each => decodeURIComponent(each.hash).slice(1))")
    assert len(links) >= 4
    assert [each for each in links if not page.evaluate("id => Boolean(document.getElementById(id))", each)] == []
    ground = page.evaluate("getComputedStyle(document.querySelector('td.v')).backgroundColor")
    assert ground not in ("", "rgba(0, 0, 0, 0)")


def test_names_of_many_correlated_datasets_are_in_one_line(opened: Callable[..., "Page"], tmp_path: Path) -> None:
    names = [f"dataset_{n}" for n in range(24)]
    lines = [line(1, (at + 1) / 4, name, model=model) for name in names for at, model in enumerate("abc")]
    page = opened("report", write(tmp_path / "scores", lines))
    heads = "[...document.querySelectorAll('#correlations ~ details[open] tbody th')]"
    found = page.evaluate(f"{heads}.map(each => [each.textContent, each.offsetHeight])")
    assert set(names) <= {name for name, _ in found}
    assert [name for name, height in found if name in names and height > 30] == []


def test_the_page_of_an_example_shows_every_image(
    opened: Callable[..., "Page"], tiles: Path, changed: Callable[[Change], Path]
) -> None:
    copy = changed(hostile)
    (copy / "items/tiles/headed_K1.parquet").unlink()
    for release, dataset, images in ((copy, "headed", 12), (tiles, "shown", 13), (tiles, "headed", 12)):
        page = opened("show", release, "--dataset", dataset)
        assert page.title() != "run"
        loaded = page.evaluate("[...document.images].filter(each => each.naturalWidth > 0).length")
        assert loaded == page.locator("img").count() == images
        assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    ends = page.evaluate("[...document.querySelectorAll('.bar .seg')].map(each => each.getBoundingClientRect().right)")
    assert len(ends) == 15
    assert max(ends) <= page.evaluate("document.querySelector('.bar').getBoundingClientRect().right") + 1
